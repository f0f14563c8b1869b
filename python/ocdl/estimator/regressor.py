"""The regressor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.model_selection import KFold

from ocdl.base import validation
from ocdl.base.keywords import known_keywords
from ocdl.base.names import counted
from ocdl.base.validation import FloatArray
from ocdl.estimator import defaults
from ocdl.estimator.base import FOLDS, Callback, ODEEstimator
from ocdl.estimator.samples import Samples, canonical, linear_residuals, quartiles
from ocdl.estimator.settings import KEYWORDS_OF_OTHERS
from ocdl.model.controls import Controls
from ocdl.model.losses import Loss
from ocdl.model.objective import Objective, meaning_of_outputs
from ocdl.model.penalties import Regulariser
from ocdl.model.tableau import Tableau
from ocdl.network import Network
from ocdl.storage.container import exact_record
from ocdl.training.optimisers import Chain, Optimiser

__all__ = ["ODERegressor"]

CAUTION = 2.5
ROBUST = ("huber", "quantile")  # losses that do not follow outliers
FAR = 5.0  # scaled targets beyond are outliers
QUANTILE_STEEPNESS = 0.5
NORMAL_QUARTILES = 1.349  # how far apart they are, in standard deviations
FEW_NUMBERS = 10_000  # in X: folds are made quickly
FLOW_SHARE = 0.3  # of what a linear model leaves, where it leaves much that is no noise
LEAST_NOISE = 0.05  # of the variance of the targets: less is not believed before anything is learned


class ODERegressor(RegressorMixin, ODEEstimator):  # type: ignore[misc]
    """A regressor that moves the data by a learned differential equation until the targets are a linear function of it.

    Its defaults are for noisy tables, as those of `ODEClassifier`: where the data do not speak against it, what remains
    is linear regression. Inputs should be standardised; targets are scaled inside.

    Parameters
    ----------
    loss : {"squared_error", "huber", "quantile", "poisson"}, loss of `ocdl.losses`, or object
        What is compared with the targets, which are scaled to mean 0 and standard deviation 1 before. With "huber" and
        "quantile", which do not follow outliers, the median and the quartiles say how, which do not either: they go to
        0 and, on average, -0.67 and 0.67, as those of normal numbers; the ``delta`` of Huber's loss is in these units.
        Of "poisson" targets are divided by their mean. A custom loss gets targets scaled to mean 0 and standard
        deviation 1, in the shape that `y` has: (samples,) for single targets, (samples, targets) for several. Its
        outputs are always (samples, targets), and `predict` takes them back to the scale of `y`.
    alpha : float or "cv"
        The factor of the prior, which is relative to the noise of the targets, taken to be what a linear model leaves;
        all of their variance, where there are no more rows than columns. Where X has few numbers, up to 10,000, folds
        say whether less of it is noise: a prior that is 0.3 times as strong then has to predict rows that were left out
        clearly better.
    architecture, n_layers, tableau, activation, field, horizon, augment, optimiser, max_iter, tol, regulariser
        As for `ODEClassifier`.
    validation_fraction, early_stopping, warm_start, verbose, random_state, n_jobs, learning_rate, batch_size, patience
        As for `ODEClassifier`.

    Attributes
    ----------
    network_ : Network
    controls_ : Controls
    history_ : History
        Its loss and its score are those of the scaled targets.
    target_mean_, target_scale_ : ndarray of shape (targets,)
        How the targets were scaled: (y - mean) / scale; with "huber" and "quantile" the mean is the median.
    n_iter_, status_, alpha_, n_features_in_, feature_names_in_
        As for `ODEClassifier`.

    Raises
    ------
    TypeError
        If a keyword is not known; the message says which one may be meant. The values are looked at by `fit`.

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
    >>> model[-1].history_.score_name, model[-1].controls_.K.shape
    ('R^2', (5, 11, 11))
    >>> model[-1].n_iter_ > 10, model[-1].status_ in ocdl.Status, model[-1].alpha_
    (True, True, 1.0)
    """

    _target_kind = "numbers"

    @known_keywords(KEYWORDS_OF_OTHERS)
    def __init__(
        self,
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
        regulariser: Regulariser | None = None,
        validation_fraction: float = 0.0,
        early_stopping: bool = False,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        alpha: float | str = defaults.ALPHA,
        patience: int = defaults.PATIENCE,
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
        self.regulariser = regulariser
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

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        eval_set: tuple[ArrayLike, ArrayLike] | None = None,
        callbacks: Iterable[Callback] = (),
    ) -> Self:
        """Train on samples X of shape (samples, features) with targets y, (samples,) or (samples, targets).

        Parameters and promises are those of `ODEClassifier.fit`.

        Parameters
        ----------
        X : array_like of shape (samples, features)
        y : array_like of shape (samples,) or (samples, targets)
        sample_weight : array_like of shape (samples,), optional
        eval_set : (X, y), optional
            Data to look at during the training: their loss and score are in `history_`, and early stopping goes by
            them.
        callbacks : iterable of callables
            Each is called with a `TrainingState` several times a second at most; True ends the training.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            If a parameter of the estimator is not of its kind or range, or the data do not fit each other; the message
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
        return self._fit(X, y, sample_weight, eval_set, callbacks)

    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Make one epoch of Adam over these samples; return the estimator.

        The targets of the first call say how all are scaled.

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
            If a parameter of the estimator is not of its kind or range, or the data do not fit each other; the message
            names it.

        Examples
        --------
        >>> import ocdl
        >>> from sklearn.datasets import make_friedman1
        >>> X, y = make_friedman1(100, random_state=0)
        >>> ocdl.ODERegressor(random_state=0).partial_fit(X, y).predict(X).shape
        (100,)
        """
        self._scale_is_given = hasattr(self, "target_scale_")
        try:
            return self._partial_fit(X, y, sample_weight)
        finally:
            del self._scale_is_given

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
        rows = self._checked(X)
        outputs = self.network_.predict(self.controls_, rows)
        means = outputs if self._own_loss else meaning_of_outputs(outputs, self.loss)
        with np.errstate(over="ignore"):
            predicted: FloatArray = means * self.target_scale_ + self.target_mean_
        if not np.isfinite(predicted).all():
            raise FloatingPointError(
                "a prediction overflows: the targets that the model has learned spread by "
                f"{self.target_scale_.max():.3g}; scale them or the controls down"
            )
        return predicted[:, 0] if self._is_single else predicted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _validation_options(self, *y: Any) -> dict[str, Any]:
        return {"multi_output": True, "y_numeric": True} if y else {}

    def _samples_of(self, X: FloatArray, y: Any, sample_weight: Any) -> Samples:
        weights = self._weights(sample_weight, X)
        with np.errstate(over="ignore"):
            numbers = np.asarray(y, np.float64)
        if not np.isfinite(numbers).all():
            raise ValueError("y must hold finite numbers")
        merged = canonical(X, numbers, weights)
        if not getattr(self, "_scale_is_given", False):
            self._is_single = numbers.ndim == 1
            self.target_mean_, self.target_scale_ = self._scaling(merged)
        return merged._replace(y=self._targets_of(merged.y))

    def _scaling(self, samples: Samples) -> tuple[FloatArray, FloatArray]:
        targets, weights = samples.y.reshape(len(samples.y), -1), samples.row_weights
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.average(targets, axis=0, weights=weights)
            spread = np.sqrt(np.average((targets - mean) ** 2, axis=0, weights=weights))
        if self._least_target == 0 and np.isfinite(mean).all():
            return np.zeros_like(mean), np.where(mean > 0, mean, 1.0)
        if not np.isfinite(mean).all() or not np.isfinite(spread).all():
            raise ValueError("y holds numbers whose squares are beyond the range of float64; scale it down")
        if self._is_robust:
            low, median, high = quartiles(targets, weights)
            is_wide = high > low  # where most targets are one number, the others say what the scale is
            mean = np.where(is_wide, median, mean)
            spread = np.where(is_wide, (high - low) / NORMAL_QUARTILES, spread)
        return mean, np.where(spread > 0, spread, 1.0)

    @property
    def _is_robust(self) -> bool:
        record = Objective(self.loss).record
        return isinstance(record, Loss) and record.name in ROBUST

    @property
    def _least_target(self) -> float:
        record = Objective(self.loss).record
        return record.least_target if isinstance(record, Loss) else -np.inf

    def _targets_of(self, y: Any) -> NDArray[Any]:
        targets = np.asarray(y, np.float64).reshape(len(y), -1)
        if targets.shape[1] != len(self.target_mean_):
            raise ValueError(
                f"y has {counted(targets.shape[1], 'target')}, but the model has learned {len(self.target_mean_)}"
            )
        if targets.min() < self._least_target:
            raise ValueError(f"y has the target {targets.min()}; the loss {self.loss!r} takes none below 0")
        with np.errstate(over="ignore"):
            scaled = np.ascontiguousarray((targets - self.target_mean_) / self.target_scale_)
        if not np.isfinite(scaled).all():
            raise ValueError(
                f"y has the target {targets[~np.isfinite(scaled)][0]}, and those that the model has learned spread by "
                f"{self.target_scale_.min():.3g}: the one divided by the other overflows"
            )
        return scaled[:, 0] if self._is_single else scaled

    def _stored_targets(self) -> dict[str, Any]:
        return {"mean": self.target_mean_.tolist(), "scale": self.target_scale_.tolist(), "single": self._is_single}

    def _restore_targets(self, stored: Any) -> None:
        record = exact_record(stored, "the targets", ("mean", "scale", "single"))
        shape, dtype = (self.network_.n_outputs,), np.dtype(np.float64)
        self.target_mean_ = validation.shaped(record["mean"], "mean", shape, "(targets,)", dtype)
        self.target_scale_ = validation.shaped(record["scale"], "scale", shape, "(targets,)", dtype)
        self._is_single = validation.boolean(record["single"], "single")
        if self._is_single and shape != (1,):
            raise ValueError(f"single targets need one output, got {shape[0]}")

    def _outputs(self) -> int:
        return len(self.target_mean_)

    def _noise_believed(
        self, network: Network, start: Controls, samples: Samples, alpha: float, rng: np.random.RandomState
    ) -> float:
        """Return all, or a share where a linear model of few rows leaves what a flow would explain.

        That is so where rows that were left out are predicted better by more than twice the error of the mean; with the
        default optimiser, whatever is used for the rest.
        """
        if len(samples.X) < 2 * FOLDS or samples.X.size > FEW_NUMBERS or not _leaves_something(samples):
            return 1.0
        most = min(validation.integer(self.max_iter, "max_iter", least=1), defaults.MAX_ITER)
        trial, objective = clone(self).set_params(max_iter=most, verbose=0, early_stopping=False), Objective(self.loss)
        gains = np.zeros(len(samples.X))
        for kept, left_out in KFold(FOLDS, shuffle=True, random_state=rng).split(samples.X):
            for sign, share in ((1.0, 1.0), (-1.0, FLOW_SHARE)):
                how = (alpha, share, None, False, None, (), rng)
                u = trial._trained(network, start, samples.chosen(kept), *how)[0].controls
                for i in left_out:
                    gains[i] += sign * network.value(u, samples.X[i : i + 1], samples.y[i : i + 1], objective)
        weights = samples.row_weights / samples.row_weights.sum()
        gain = weights @ gains
        return FLOW_SHARE if gain > 2.0 * np.linalg.norm(weights * (gains - gain)) else 1.0

    def _noise_left(self, noise: float, network: Network, controls: Controls, samples: Samples) -> float:
        """Return the geometric mean of what a linear model leaves, too much, and of what a weakly held flow does."""
        if self._least_target == 0 or self._own_loss or not _leaves_something(samples):
            return noise
        targets = samples.y.reshape(len(samples.y), -1)
        residual = self._without_outliers(targets - network.predict(controls, samples.X))
        left = float(np.mean(np.average(residual**2, axis=0, weights=samples.row_weights))) * self._steepness
        return float(np.sqrt(noise * np.clip(left, LEAST_NOISE * noise, noise)))

    def _noise(self, samples: Samples) -> float:
        """Return what a linear model leaves of the variance of the scaled targets, with some caution."""
        if self._least_target == 0:
            return 1.0
        if not _leaves_something(samples):
            return CAUTION * self._steepness
        left = float(np.mean(linear_residuals(samples._replace(y=self._without_outliers(samples.y)))))
        freedom = len(samples.X) - samples.X.shape[1] - 1
        return CAUTION * self._steepness * float(np.clip(left * len(samples.X) / freedom, LEAST_NOISE, 1.0))

    @property
    def _steepness(self) -> float:
        """How much a residual of the size of the noise weighs, beside half of its square."""
        record = Objective(self.loss).record
        return QUANTILE_STEEPNESS if isinstance(record, Loss) and record.name == "quantile" else 1.0

    def _without_outliers(self, numbers: FloatArray) -> FloatArray:
        """Return targets or residuals, with outliers drawn in where the loss does not follow them."""
        return np.clip(numbers, -FAR, FAR) if self._is_robust else numbers


def _leaves_something(samples: Samples) -> bool:
    """Whether a linear model cannot go through all points, where what it leaves would say nothing of the noise."""
    rows, columns = samples.X.shape
    return bool(rows > columns + 1)
