"""The classifier."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from ocdl.base import validation
from ocdl.base.keywords import known_keywords
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.estimator import defaults
from ocdl.estimator.base import Callback, ODEEstimator
from ocdl.estimator.files import classes_from, classes_to
from ocdl.estimator.samples import Samples, canonical, reweighted
from ocdl.estimator.settings import KEYWORDS_OF_OTHERS
from ocdl.model.objective import decided, meaning_of_outputs
from ocdl.model.penalties import Regulariser
from ocdl.model.tableau import Tableau
from ocdl.storage.container import exact_record
from ocdl.training.optimisers import Chain, Optimiser

__all__ = ["ODEClassifier"]

SEVERAL = (list, tuple, set, np.ndarray)  # what holds the labels of a sample where it has several


def _has_probabilities(estimator: ODEClassifier) -> bool:
    if estimator._own_loss and not hasattr(estimator.loss, "probabilities"):
        raise AttributeError(
            f"the loss {type(estimator.loss).__name__} has no method probabilities(outputs): what its outputs stand "
            "for is not known"
        )
    return True


class ODEClassifier(ClassifierMixin, ODEEstimator):  # type: ignore[misc]
    """A classifier that moves the data by a learned differential equation until a linear classifier separates it.

    Its defaults are for noisy tables: a prior holds the flow back, the more so the more columns and the fewer rows
    there are, and where the data do not speak against it, what remains is logistic regression. Inputs should be
    standardised.

    Parameters
    ----------
    architecture : {"odenet", "resnet", "odenet+simplex", "net"}
        Learned time steps, fixed ones, learned ones on the simplex (some become 0: see `prune`), or a feed-forward
        network.
    n_layers : int or None
        Number of steps. None: 5, of a feed-forward network 2.
    tableau : str or Tableau
        The Runge-Kutta method; `ocdl.tableaux` lists the names.
    activation : {"tanh", "sigmoid", "softplus", "relu", "leaky_relu", "sin", "identity"}
        The nonlinearity of the vector field.
    field : {"dense", "antisymmetric", "hamiltonian"}
        The vector field, as for `Network`; all but "dense" need an architecture other than "net".
    horizon : float
        The final time T.
    augment : int
        Extra components of the state, which start at 0 and give the flow room.
    loss : {"cross_entropy", "squared"} or object
        "squared" is the paper's. A loss of one's own, as `Objective` takes it, is given labels 0, 1, ...; with a method
        ``probabilities(outputs)`` it has `predict_proba` as well.
    optimiser : str, optimiser or None
        None: L-BFGS until the loss hardly falls any more. Or any of `GradientDescent`,
        `Backtracking`, `Armijo`, `Adam`, `LBFGS`, `NewtonCG`, by name or as an object, or a `Chain`.
    max_iter : int
        Iterations at most. A warning says when the loss was still falling by an amount that matters.
    tol : float
        The training has converged when the norm of the gradient is at most this.
    regulariser : Regulariser or None
        A sum of `Tikhonov`, `L1`, `TimeSmoothness` and `EvenSteps` that replaces the prior.
    class_weight : dict, "balanced" or None
        Weights of the classes, as everywhere in scikit-learn; sample weights count for "balanced" too.
    validation_fraction : float
        Share of the distinct samples that is kept for validation; their loss is in `history_`.
    early_stopping : bool
        Whether to stop when the validation loss stops falling, and to keep the controls with the lowest one. Without
        `validation_fraction` and `eval_set` a tenth of the samples is looked at.
    warm_start : bool
        Whether `fit` goes on from where the last one ended.
    verbose : int
        Above 0: show a progress bar, and what `prune` saves.
    random_state : None, int or RandomState
        The source of the first controls, of splits and of random batches.
    n_jobs : int or None
        Threads; -1: all. None: as many as `ocdl.get_num_threads` says. Results do not depend on it.
    learning_rate, batch_size : float and int, or None
        Those of Adam, which they choose where no optimiser is named.
    alpha : float or "cv"
        The factor of the prior: larger for noisier data, 0 for none. "cv" lets stratified folds choose it, which takes
        some times as long; it is then in `alpha_`.
    patience : int
        Evaluations, every tenth iteration, without a lower validation loss after which early stopping ends.

    Attributes
    ----------
    classes_ : ndarray of shape (classes,)
    network_ : Network
    controls_ : Controls
    history_ : History
        Of both phases of a default training; the loss of the first ones is that under the weak prior.
    n_iter_ : int
    status_ : Status
    alpha_ : float
        The factor of the prior that was used.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Raises
    ------
    TypeError
        If a keyword is not known; the message says which one may be meant. The values are looked at by `fit`.

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
    (array([0, 1]), 2, 1.0)
    >>> model[-1].network_.n_layers, model[-1].controls_.K.shape, model[-1].history_.score_name, model[-1].status_.name
    (5, (5, 3, 3), 'accuracy', 'DECREASE')
    >>> model[-1].n_iter_ == len(model[-1].history_) - 1
    True
    """

    _target_kind = "classes"

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
        loss: Any = defaults.CLASSIFIER_LOSS,
        optimiser: str | Optimiser | Chain | None = None,
        max_iter: int = defaults.MAX_ITER,
        tol: float = defaults.TOL,
        regulariser: Regulariser | None = None,
        class_weight: Any = None,
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

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        eval_set: tuple[ArrayLike, ArrayLike] | None = None,
        callbacks: Iterable[Callback] = (),
    ) -> Self:
        """Train on samples X of shape (samples, features) with labels y of any kind; return the estimator.

        Equal samples are merged and their weights added, so that a weight of 2 is the same as a row twice, and the
        order of the rows does not matter.

        Parameters
        ----------
        X : array_like of shape (samples, features)
        y : array_like of shape (samples,)
        sample_weight : array_like of shape (samples,), optional
        eval_set : (X, y), optional
            Data to look at during the training: their loss and accuracy are in `history_`, and early stopping goes by
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
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> model = ocdl.ODEClassifier(random_state=0).fit(X, y)
        >>> model.score(X, y) > 0.8
        True
        """
        _require_one_label(y)
        return self._fit(X, y, sample_weight, eval_set, callbacks)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Make one epoch of Adam over these samples; return the estimator.

        Parameters
        ----------
        X : array_like of shape (samples, features)
        y : array_like of shape (samples,)
        classes : array_like
            All classes that will ever come; needed in the first call.
        sample_weight : array_like of shape (samples,), optional

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            If `classes` is missing in the first call or another one later, or the data do not fit.

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
        _require_one_label(y)
        is_first = not hasattr(self, "controls_")
        if is_first:
            if classes is None:
                raise ValueError("classes must be given in the first call of partial_fit: all that will ever come")
            self.classes_, _ = _classes_of(np.asarray(classes), "classes")
        elif classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(
                f"classes={classes!r} is not the same as in the first call of partial_fit: {self.classes_}"
            )
        self._classes_are_given = True
        try:
            return self._partial_fit(X, y, sample_weight)
        finally:
            del self._classes_are_given
            if is_first and not hasattr(self, "controls_"):  # it has failed, and the next call is the first one again
                del self.classes_

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
        rows = self._checked(X)
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
        rows = self._checked(X)
        chosen: NDArray[Any] = self.classes_[decided(self.network_.predict(self.controls_, rows))]
        return chosen

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
        rows = self._checked(X)
        outputs = self.network_.predict(self.controls_, rows)
        if self._own_loss:
            return np.asarray(self.loss.probabilities(outputs))
        return meaning_of_outputs(outputs, self.loss)

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

    def _samples_of(self, X: FloatArray, y: Any, sample_weight: Any) -> Samples:
        if hasattr(self, "_classes_are_given"):
            classes, labels = self.classes_, self._targets_of(y)
        else:
            classes, labels = _classes_of(y)
            if self.warm_start and hasattr(self, "controls_") and not np.array_equal(classes, self.classes_):
                raise ValueError(
                    f"warm_start=True, but y has the classes {classes} and the last fit had {self.classes_}"
                )
        samples = canonical(X, labels, self._weights(sample_weight, X))
        if self.class_weight is not None:
            samples = reweighted(samples, self._factors(classes, samples)[samples.y])
        self.classes_ = classes
        return samples

    def _factors(self, classes: NDArray[Any], samples: Samples) -> FloatArray:
        """Return the weight of each class; balanced, all classes that there are weigh the same together."""
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            order = np.argsort(samples.y)
            ends = np.searchsorted(samples.y[order], np.arange(1, len(classes)))
            totals = np.array([*map(math.fsum, np.split(samples.row_weights[order], ends))])
            return samples.total / np.count_nonzero(totals) / np.where(totals > 0, totals, 1.0)
        if not isinstance(self.class_weight, dict):
            accepted = "a dict of classes and their weights, 'balanced' or None"
            raise TypeError(f"class_weight must be {accepted}, got {validation.shown(self.class_weight)}")
        for label, weight in self.class_weight.items():
            validation.not_negative(weight, f"class_weight[{validation.written(label)}]")
        factors: FloatArray = compute_class_weight(self.class_weight, classes=classes, y=classes)
        return factors

    def _targets_of(self, y: Any) -> LabelArray:
        try:
            labels = np.searchsorted(self.classes_, y).clip(0, len(self.classes_) - 1)
            unknown = np.flatnonzero(self.classes_[labels] != y)
        except TypeError as error:
            raise TypeError(f"y must hold labels of the kind of the classes, {self.classes_}: {error}") from error
        if len(unknown):
            raise ValueError(f"y has the class {_plain(y[unknown[0]])!r}, which is none of {self.classes_}")
        numbers: LabelArray = labels.astype(np.int64)
        return numbers

    def _stored_targets(self) -> dict[str, Any]:
        return {"classes": classes_to(self.classes_)}

    def _restore_targets(self, stored: Any) -> None:
        self.classes_ = classes_from(
            exact_record(stored, "the targets", ("classes",))["classes"], self.network_.n_outputs
        )

    def _outputs(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)


def _require_one_label(y: Any) -> None:
    shape: tuple[int, ...] = getattr(y, "shape", ())
    is_table = len(shape) == 2 and shape[1] > 1
    if is_table or (isinstance(y, (list, tuple)) and any(isinstance(labels, SEVERAL) for labels in y)):
        given = f"shape {tuple(shape)}" if is_table else "a list for each sample"
        raise ValueError(
            f"y has {given}, several labels for each sample; wrap the estimator in "
            "sklearn.multioutput.MultiOutputClassifier to have one for each column"
        )


def _classes_of(y: NDArray[Any], name: str = "y") -> tuple[NDArray[Any], LabelArray]:
    """Return the classes in their order, at least two, and the number of each sample's class."""
    try:
        classes, labels = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise TypeError(f"{name} must hold labels of one kind, all numbers or all texts: {error}") from error
    with np.errstate(over="ignore", invalid="ignore"):  # y is compared with whole numbers
        check_classification_targets(y)
    if len(classes) < 2:
        raise ValueError(
            f"{name} has one class, {_plain(classes[0])!r}; a classifier needs samples of at least 2 classes"
        )
    return classes, labels


def _plain(label: Any) -> Any:
    """Return a label as Python writes it."""
    return label.item() if isinstance(label, np.generic) else label
