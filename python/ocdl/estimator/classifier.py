"""The classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from ocdl.base.keywords import known_keywords
from ocdl.base.validation import FloatArray
from ocdl.estimator import defaults
from ocdl.estimator.base import ODEEstimator
from ocdl.estimator.plan import Callback
from ocdl.estimator.samples import Samples, merge_samples, reweight
from ocdl.estimator.settings import FOREIGN_KEYWORDS
from ocdl.estimator.targets import ClassTargets, class_factors, require_one_label
from ocdl.model.objective import predict_class
from ocdl.model.penalties import Penalty
from ocdl.model.tableau import Tableau
from ocdl.training.optimisers import Chain, Optimiser

__all__ = ["ODEClassifier"]


def _has_probabilities(estimator: ODEClassifier) -> bool:
    if estimator._loss.is_custom and not hasattr(estimator.loss, "inverse_link"):
        raise AttributeError(
            f"the custom loss {estimator._loss.name} has no method inverse_link(outputs), which returns probabilities"
        )
    return True


class ODEClassifier(ClassifierMixin, ODEEstimator):  # type: ignore[misc]
    """A classifier that moves the data by a learned differential equation until a linear classifier separates it.

    Its defaults are for noisy tables: a prior restrains the flow, more strongly with more columns and fewer rows.
    Unless the data show otherwise, the result is logistic regression. Standardise the inputs.

    Parameters
    ----------
    architecture : {"odenet", "resnet", "odenet+simplex", "net"}
        Learned time steps, fixed ones, learned ones on the simplex (see `prune`), or a feed-forward network.
    n_layers : int or None
        Number of steps. None: 5, or 2 for a feed-forward network.
    tableau : str or Tableau
        The Runge-Kutta method; `ocdl.tableaux` lists the names.
    activation : {"tanh", "sigmoid", "softplus", "relu", "leaky_relu", "sin", "identity"}
        The nonlinearity of the vector field.
    field : {"dense", "antisymmetric", "hamiltonian", "gradient"}
        The vector field, as for `Network`; all but "dense" need an architecture other than "net".
    horizon : float
        The final time T.
    augment : int
        Extra components of the state, which start at 0.
    loss : {"cross_entropy", "squared"} or object
        "squared" is the paper's. A custom loss, as `Objective` takes it, is called with labels 0, 1, ...; with a method
        ``inverse_link(outputs)``, which returns probabilities, there is `predict_proba` as well.
    optimiser : str, optimiser or None
        None: L-BFGS until the loss hardly falls any more. Otherwise `GradientDescent`, `Backtracking`, `Armijo`,
        `Adam`, `LBFGS`, `NewtonCG`, by name or as an object, or a `Chain`.
    max_iter : int
        The most iterations, or epochs with mini-batches. There is a warning if the loss still falls at the end.
    tol : float
        The training has converged when the norm of the gradient is at most this.
    penalties : Penalty, sequence of Penalty or None
        `Tikhonov`, `L1`, `GroupL1`, `TimeSmoothness`, `EvenSteps`, or several of them, in place of the prior.
    class_weight : dict, "balanced" or None
        Weights of the classes, as in scikit-learn; "balanced" takes sample weights into account, too.
    validation_fraction : float
        Fraction of the distinct samples that early stopping keeps for validation where there is no `X_val`.
    early_stopping : bool
        Whether to stop when the validation loss stops falling, with the controls of the lowest one.
    warm_start : bool
        Whether `fit` continues from the controls of the last fit.
    verbose : int
        Above 0: a progress bar, and the savings of `prune`.
    random_state : None, int, numpy Generator or RandomState
        The source of the first controls, of splits and of random batches.
    n_jobs : int or None
        Threads; -1: all. None: `ocdl.get_num_threads()`. Results do not depend on it.
    learning_rate, batch_size : float and int, or None
        Of an optimiser that is given by name and has them, as "adam".
    alpha : float, "auto" or "cv"
        The factor of the prior: larger for noisier data, 0 for none. "auto" chooses among 0.03, 0.1, 0.3 and 1, the
        default strength, by rows that are left out of short trainings: a third of at most 4,500 rows, or fewer with
        more than 30 columns; below 1,000 rows each third in turn. It tries weaker and weaker priors until the loss of
        these rows rises, and takes one other than 1 only if it lowers the loss by more than a standard error. With
        fewer than 20 rows, or if the prior leaves only a linear model anyway, 1 is taken. This costs about as much as
        the fit, with a few hundred rows several times as much. "cv" uses all rows, tries 3 and 10 as well, and takes
        the lowest loss; `alpha_` is the value that was chosen.
    patience : int
        Evaluations without a lower validation loss after which early stopping ends the training; one per ten iterations
        or epoch.
    n_components : int, "auto" or None
        The flow moves this number of principal components of the columns; None: all columns. With "auto" it moves
        principal components that hold all rows where there are fewer rows than columns. Otherwise, from 300 rows on and
        with ``alpha="auto"``, it moves the columns that count: those without which, permuted in left-out rows, the loss
        rises by more than two standard errors, if a training with these columns alone predicts other left-out rows
        better by half a standard error. A "hamiltonian" field takes all columns.

    Attributes
    ----------
    classes_ : ndarray of shape (classes,)
    network_ : Network
    controls_ : Controls
    history_ : History
        Of both phases of a default training; the first losses include the weak prior. With mini-batches by epochs.
    n_iter_ : int
        Iterations; with mini-batches epochs.
    status_ : Status
    alpha_ : float
        The factor of the prior that was used.
    components_ : ndarray of shape (components, features) or None
        The network takes ``X @ components_.T``; None: it takes X. For columns that count the rows are unit vectors.
    feature_importances_ : ndarray of shape (features,)
        By how much the loss of training rows, at most 1,000, rises if a column is permuted; the sum is 1. 0 for a
        column that was left out. `partial_fit` computes none.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    TypeError
        If a keyword is not known; the message suggests a similar one. `fit` checks the values.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import ocdl
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = make_pipeline(StandardScaler(), ocdl.ODEClassifier(random_state=0)).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> model[-1].classes_, model[-1].n_features_in_, model[-1].alpha_
    (array([0, 1]), 2, 0.03)
    >>> model[-1].network_.n_layers, model[-1].controls_.K.shape, model[-1].history_.score_name
    (5, (5, 3, 3), 'accuracy')
    >>> model[-1].status_ in ocdl.Status, model[-1].n_iter_ == len(model[-1].history_) - 1
    (True, True)
    >>> model[-1].components_, bool(model[-1].feature_importances_.min() > 0.2)  # both columns count
    (None, True)
    """

    _targets_type = ClassTargets

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
        loss: Any = defaults.CLASSIFIER_LOSS,
        optimiser: str | Optimiser | Chain | None = None,
        max_iter: int = defaults.MAX_ITER,
        tol: float = defaults.TOL,
        penalties: Penalty | Sequence[Penalty] | None = None,
        class_weight: Any = None,
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
        self.class_weight = class_weight
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
        """Train on samples X of shape (samples, features) with labels y of any kind; return the estimator.

        Equal samples are merged and their weights added, so that a weight of 2 is the same as a row twice, and the
        order of the rows does not matter.

        Parameters
        ----------
        X : array_like of shape (samples, features)
        y : array_like of shape (samples,)
        sample_weight : array_like of shape (samples,), optional
            Only ratios count. After equal samples are merged, whole numbers are divided by their greatest common
            divisor and count as frequencies; others are scaled to the sum (sum w)^2 / sum w^2, the number of equally
            weighted samples with the same information. `class_weight` does not change the sum.
        X_val, y_val : array_like, optional
            Validation data: their loss and accuracy are in `history_`, and early stopping uses them.
        sample_weight_val : array_like, optional
            Weights of the validation data.
        callback : callable, optional
            Called with a `TrainingState`, at most several times a second; if it returns True, the training ends. It is
            not called while cross-validation chooses `alpha`.

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
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> model = ocdl.ODEClassifier(random_state=0).fit(X, y)
        >>> model.score(X, y) > 0.8
        True
        """
        require_one_label(y)
        return self._fit(self._plan(X, y, sample_weight, (X_val, y_val, sample_weight_val), callback))

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Run one epoch of Adam over these samples; return the estimator.

        Parameters
        ----------
        X : array_like of shape (samples, features)
        y : array_like of shape (samples,)
        classes : array_like
            All classes, also those of later calls; required in the first call.
        sample_weight : array_like of shape (samples,), optional

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            If `classes` is missing in the first call or differs in a later one, or the data do not fit.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> model = ocdl.ODEClassifier(random_state=0)
        >>> for _ in range(3):
        ...     model = model.partial_fit(X, y, classes=[0, 1])
        >>> model.predict(X).shape
        (100,)
        """
        require_one_label(y)
        if hasattr(self, "controls_"):
            targets = self._targets
            if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
                raise ValueError(
                    f"classes={classes!r} is not the same as in the first call of partial_fit: {self.classes_}"
                )
        elif classes is None:
            raise ValueError(
                "classes is required in the first call of partial_fit: all classes, also those of later calls"
            )
        else:
            targets = ClassTargets.learn(np.asarray(classes), "classes")
        return self._partial_fit(X, y, sample_weight, targets)

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return the outputs W y(T) + mu, (samples, classes); of two classes (samples,), positive for the second.

        Parameters
        ----------
        X : array_like of shape (samples, features)

        Returns
        -------
        ndarray of shape (samples,) or (samples, classes)

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` has another number of features, or numbers that are not finite.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> model = ocdl.ODEClassifier(random_state=0).fit(X, y)
        >>> bool(((model.decision_function(X) > 0) == model.predict(X)).all())
        True
        """
        rows = self._validate_rows(X)
        outputs = self.network_.predict(self.controls_, rows)
        return outputs[:, 0] if self.network_.n_outputs == 1 else outputs

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the predicted class of each sample.

        Parameters
        ----------
        X : array_like of shape (samples, features)

        Returns
        -------
        ndarray of shape (samples,)

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` has another number of features, or numbers that are not finite.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> model = ocdl.ODEClassifier(random_state=0).fit(X, y)
        >>> sorted(set(model.predict(X).tolist()))
        [0, 1]
        """
        rows = self._validate_rows(X)
        labels: NDArray[Any] = self.classes_[predict_class(self.network_.predict(self.controls_, rows))]
        return labels

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the probabilities of the classes, (samples, classes).

        Two classes have C(z) = 1 / (1 + exp(-z)) and 1 - C(z), several the softmax of the outputs; trained with the
        squared loss several have C of their outputs, normalised.

        Parameters
        ----------
        X : array_like of shape (samples, features)

        Returns
        -------
        ndarray of shape (samples, classes)

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` has another number of features, or numbers that are not finite.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> model = ocdl.ODEClassifier(random_state=0).fit(X, y)
        >>> p = model.predict_proba(X)
        >>> p.shape, bool(abs(p.sum(axis=1) - 1).max() < 1e-12)
        ((100, 2), True)
        """
        rows = self._validate_rows(X)
        outputs = self.network_.predict(self.controls_, rows)
        return self._loss.inverse_link(outputs)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Return the logarithms of the probabilities of the classes, (samples, classes).

        Parameters
        ----------
        X : array_like of shape (samples, features)

        Returns
        -------
        ndarray of shape (samples, classes)

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` has another number of features, or numbers that are not finite.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> model = ocdl.ODEClassifier(random_state=0).fit(X, y)
        >>> bool((model.predict_log_proba(X) <= 0).all())
        True
        """
        with np.errstate(divide="ignore"):
            logarithms: FloatArray = np.log(self.predict_proba(X))
        return logarithms

    @property
    def _targets(self) -> ClassTargets:
        return ClassTargets(self.classes_)

    def _encode(self, X: FloatArray, y: Any, sample_weight: Any, known: Any) -> tuple[Samples, ClassTargets]:
        targets: ClassTargets = known or ClassTargets.learn(y)
        is_warm = known is None and self.warm_start and hasattr(self, "controls_")
        if is_warm and not np.array_equal(targets.classes_, self.classes_):
            raise ValueError(
                f"warm_start=True, but y has the classes {targets.classes_} and the last fit had {self.classes_}"
            )
        samples = merge_samples(X, targets.encode(y), self._weights(sample_weight, X))
        if self.class_weight is not None:
            samples = reweight(samples, class_factors(self.class_weight, targets.classes_, samples)[samples.y])
        return samples, targets
