"""The regressor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from ocdl.base.keywords import known_keywords
from ocdl.base.validation import FloatArray
from ocdl.estimator import defaults
from ocdl.estimator.base import ODEEstimator
from ocdl.estimator.plan import Callback
from ocdl.estimator.samples import Samples, linear_residuals, merge_samples
from ocdl.estimator.settings import FOREIGN_KEYWORDS
from ocdl.estimator.targets import ROBUST, NumberTargets
from ocdl.model.losses import Quantile
from ocdl.model.penalties import Penalty
from ocdl.model.tableau import Tableau
from ocdl.training.optimisers import Chain, Optimiser

__all__ = ["ODERegressor"]

CAUTION = 2.5  # factor from the residual variance of a linear model to the noise that the prior is relative to
MAX_SCALED_TARGET = 5.0  # scaled targets beyond are outliers
QUANTILE_SLOPE = 0.5
MIN_NOISE = 0.05  # of the variance of the targets


class ODERegressor(RegressorMixin, ODEEstimator):  # type: ignore[misc]
    """A regressor that moves the data by a learned differential equation until the targets are a linear function of it.

    Its defaults are for noisy tables, as those of `ODEClassifier`: unless the data show otherwise, the result is linear
    regression. Standardise the inputs; the estimator scales the targets.

    Parameters
    ----------
    loss : {"squared_error", "huber", "quantile", "poisson"}, loss of `ocdl.losses`, or object
        The loss compares outputs with targets that are scaled to mean 0 and standard deviation 1. For "huber" and
        "quantile", which are robust, the scaling is robust, too: it moves the median to 0 and the quartiles, on
        average, to -0.67 and 0.67, those of the normal distribution; the ``delta`` of Huber's loss is in these units.
        For "poisson" the targets are divided by their mean. A custom loss is called with targets of mean 0 and standard
        deviation 1 in the shape of `y`: (samples,) for single targets, (samples, targets) for several. The outputs
        always have shape (samples, targets), and `predict` returns them on the scale of `y`.
    alpha : float, "auto" or "cv"
        As for `ODEClassifier`. The prior is relative to the noise of the targets, which is estimated as 2.5 times the
        residual variance of a linear model, or as the whole variance if there are no more rows than columns; a smaller
        factor means less noise.
    architecture, n_layers, tableau, activation, field, horizon, augment, optimiser, max_iter, tol, penalties
        As for `ODEClassifier`.
    validation_fraction, early_stopping, warm_start, verbose, random_state, n_jobs, learning_rate, batch_size, patience
        As for `ODEClassifier`.
    n_components : int, "auto" or None
        As for `ODEClassifier`.

    Attributes
    ----------
    network_ : Network
    controls_ : Controls
    history_ : History
        Its loss and its score are those of the scaled targets.
    target_mean_, target_scale_ : ndarray of shape (targets,)
        How the targets were scaled: (y - mean) / scale; with "huber" and "quantile" the mean is the median.
    target_ndim_ : int
        The number of dimensions of y.
    n_iter_, status_, alpha_, components_, feature_importances_, n_features_in_, feature_names_in_
        As for `ODEClassifier`.

    Raises
    ------
    TypeError
        If a keyword is not known; the message suggests a similar one. `fit` checks the values.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import ocdl
    >>> X, y = make_friedman1(300, random_state=0)
    >>> model = make_pipeline(StandardScaler(), ocdl.ODERegressor(random_state=0)).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> model[-1].target_mean_.shape, model[-1].target_scale_.shape, model[-1].network_.n_outputs
    ((1,), (1,), 1)
    >>> model[-1].history_.score_name, model[-1].controls_.K.shape, model[-1].target_ndim_
    ('R^2', (5, 6, 6), 1)
    >>> model[-1].components_.any(axis=0).nonzero()[0].tolist()  # the other five columns do not count
    [0, 1, 2, 3, 4]
    >>> model[-1].feature_importances_[5:].tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0]
    >>> model[-1].n_iter_ > 10, model[-1].status_ in ocdl.Status, model[-1].alpha_
    (True, True, 0.03)
    """

    _targets_type = NumberTargets

    @known_keywords(FOREIGN_KEYWORDS)
    def __init__(
        self,
        *,
        architecture: str = defaults.ARCHITECTURE,
        n_layers: int | None = None,
        tableau: str | Tableau = defaults.TABLEAU,
        activation: str = defaults.ACTIVATION,
        field: str = defaults.FIELD,
        horizon: float = defaults.HORIZON,
        augment: int = defaults.AUGMENT,
        loss: Any = defaults.REGRESSOR_LOSS,
        optimiser: str | Optimiser | Chain | None = None,
        max_iter: int = defaults.MAX_ITER,
        tol: float = defaults.TOL,
        penalties: Penalty | Sequence[Penalty] | None = None,
        validation_fraction: float = defaults.VALIDATION_FRACTION,
        early_stopping: bool = False,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        alpha: float | str = defaults.ALPHA,
        patience: int = defaults.PATIENCE,
        n_components: int | str | None = defaults.COMPONENTS,
    ) -> None:
        self.architecture = architecture
        self.n_layers = n_layers
        self.tableau = tableau
        self.activation = activation
        self.field = field
        self.horizon = horizon
        self.augment = augment
        self.loss = loss
        self.optimiser = optimiser
        self.max_iter = max_iter
        self.tol = tol
        self.penalties = penalties
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.alpha = alpha
        self.patience = patience
        self.n_components = n_components

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Train on samples X of shape (samples, features) with targets y, (samples,) or (samples, targets).

        Equal samples are merged as in `ODEClassifier.fit`.

        Parameters
        ----------
        X : array_like of shape (samples, features)
        y : array_like of shape (samples,) or (samples, targets)
        sample_weight : array_like of shape (samples,), optional
            Only ratios count. After equal samples are merged, whole numbers are divided by their greatest common
            divisor and count as frequencies; others are scaled to the sum (sum w)^2 / sum w^2, the number of equally
            weighted samples with the same information.
        X_val, y_val : array_like, optional
            Validation data: their loss and score are in `history_`, and early stopping uses them.
        sample_weight_val : array_like, optional
            Weights of the validation data.
        callback : callable, optional
            As for `ODEClassifier.fit`.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            If a parameter of the estimator has a wrong type or value, or the data do not fit each other; the message
            names it.

        Examples
        --------
        >>> import ocdl
        >>> from sklearn.datasets import make_friedman1
        >>> X, y = make_friedman1(100, random_state=0)
        >>> model = ocdl.ODERegressor(random_state=0).fit(X, y)
        >>> model.score(X, y) > 0.5
        True
        """
        return self._fit(self._plan(X, y, sample_weight, (X_val, y_val, sample_weight_val), callback))

    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Run one epoch of Adam over these samples; return the estimator.

        The targets of the first call determine the scale of all.

        Parameters
        ----------
        X : array_like of shape (samples, features)
        y : array_like of shape (samples,) or (samples, targets)
        sample_weight : array_like of shape (samples,), optional

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            If a parameter of the estimator has a wrong type or value, or the data do not fit each other; the message
            names it.

        Examples
        --------
        >>> import ocdl
        >>> from sklearn.datasets import make_friedman1
        >>> X, y = make_friedman1(100, random_state=0)
        >>> ocdl.ODERegressor(random_state=0).partial_fit(X, y).predict(X).shape
        (100,)
        """
        targets = self._targets if hasattr(self, "controls_") else None
        return self._partial_fit(X, y, sample_weight, targets)

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return the predicted targets, (samples,) or (samples, targets).

        Parameters
        ----------
        X : array_like of shape (samples, features)

        Returns
        -------
        ndarray of shape (samples,) or (samples, targets)

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` has another number of features, or numbers that are not finite.
        FloatingPointError
            If a prediction overflows.

        Examples
        --------
        >>> import ocdl
        >>> from sklearn.datasets import make_friedman1
        >>> X, y = make_friedman1(100, random_state=0)
        >>> model = ocdl.ODERegressor(random_state=0).fit(X, y)
        >>> model.predict(X).shape
        (100,)
        """
        rows = self._validate_rows(X)
        outputs = self.network_.predict(self.controls_, rows)
        means = self._loss.inverse_link(outputs)
        with np.errstate(over="ignore"):
            predicted: FloatArray = means * self.target_scale_ + self.target_mean_
        if not np.isfinite(predicted).all():
            raise FloatingPointError(
                "a prediction overflows: the targets that the model has learned spread by "
                f"{self.target_scale_.max():.3g}; scale them or the controls down"
            )
        return predicted[:, 0] if self.target_ndim_ == 1 else predicted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _validation_options(self, *y: Any) -> dict[str, Any]:
        return {"multi_output": True, "y_numeric": True} if y else {}

    @property
    def _targets(self) -> NumberTargets:
        return NumberTargets(self.target_mean_, self.target_scale_, self.target_ndim_)

    def _encode(self, X: FloatArray, y: Any, sample_weight: Any, known: Any) -> tuple[Samples, NumberTargets]:
        weights = self._weights(sample_weight, X)
        with np.errstate(over="ignore"):
            numbers = np.asarray(y, np.float64)
        if not np.isfinite(numbers).all():
            raise ValueError("y must hold finite numbers")
        merged = merge_samples(X, numbers, weights)
        targets: NumberTargets = known or NumberTargets.learn(merged, self._loss)
        return merged._replace(y=targets.encode(merged.y, self.loss)), targets

    def _noise(self, samples: Samples) -> float:
        """Return a cautious estimate of the residual variance of a linear model of the scaled targets."""
        if self._loss.minimum_target == 0:
            return 1.0
        if not _is_overdetermined(samples):
            return CAUTION * self._loss_slope
        variance = float(np.mean(linear_residuals(samples._replace(y=self._clip_outliers(samples.y)))))
        freedom = len(samples.X) - samples.X.shape[1] - 1
        return CAUTION * self._loss_slope * float(np.clip(variance * len(samples.X) / freedom, MIN_NOISE, 1.0))

    @property
    def _loss_slope(self) -> float:
        """The loss of a residual of the size of the noise, relative to half of its square."""
        return QUANTILE_SLOPE if isinstance(self._loss, Quantile) else 1.0

    def _clip_outliers(self, numbers: FloatArray) -> FloatArray:
        """Return the targets, with outliers clipped if the loss is robust."""
        return np.clip(numbers, -MAX_SCALED_TARGET, MAX_SCALED_TARGET) if isinstance(self._loss, ROBUST) else numbers


def _is_overdetermined(samples: Samples) -> bool:
    """Whether there are more rows than coefficients of a linear model, so that its residuals estimate the noise."""
    rows, columns = samples.X.shape
    return bool(rows > columns + 1)
