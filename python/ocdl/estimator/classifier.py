"""The scikit-learn estimator."""

from __future__ import annotations

import math
import os
import warnings
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ocdl.base import validation as checks
from ocdl.base.threads import limited_threads
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.estimator import defaults
from ocdl.estimator import files as estimator_files
from ocdl.model.activations import ACTIVATIONS
from ocdl.model.controls import Controls
from ocdl.model.objective import Objective, decided, meaning_of_outputs
from ocdl.model.penalties import Regulariser
from ocdl.model.tableau import Tableau
from ocdl.network import Network
from ocdl.training.loop import train
from ocdl.training.optimisers import Chain, Optimiser
from ocdl.training.result import Result, Status

__all__ = ["ODEClassifier"]

STILL_FALLING = 0.9  # of the loss a tenth of the iterations ago: there is more to come
NEXT_TO_NOTHING = 0.01  # of the first loss: what comes is not worth a warning
EVALUATIONS_WITHOUT_PROGRESS = 10  # end a training with early stopping
ROWS_LOOKED_AT = 500  # for saturated units


class ODEClassifier(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that moves the data by a learned differential equation until a linear classifier separates it.

    Parameters
    ----------
    architecture : {"odenet", "resnet", "odenet+simplex", "net"}
        Learned time steps, fixed ones, learned ones on the simplex (most become 0: see `prune`), or a feed-forward
        network.
    n_layers : int
        Number of steps.
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
    loss : {"cross_entropy", "squared"}
        "squared" is the paper's.
    optimiser : optimiser or None
        Any of `GradientDescent`, `Backtracking`, `Armijo`, `Adam`, `LBFGS`, `NewtonCG` and `Chain`; None:
        ``Adam(lr=0.01)``, which stops before it learns the noise. A chain of Adam and L-BFGS finds lower losses; give
        it a regulariser.
    max_iter : int
        Iterations at most. A warning says when the loss was still falling then.
    tol : float
        The training has converged when the norm of the gradient is at most this.
    regulariser : Regulariser or None
        A sum of `Tikhonov`, `L1` and `TimeSmoothness`.
    class_weight : dict, "balanced" or None
        Weights of the classes, as everywhere in scikit-learn.
    validation_fraction : float
        Share of the samples that is kept for validation; their loss is in `history_`.
    early_stopping : bool
        Whether to stop when the validation loss stops falling, and to keep the controls with the lowest one.
    warm_start : bool
        Whether `fit` goes on from where the last one ended.
    verbose : int
        Above 0: show a progress bar, and what `prune` saves.
    random_state : None, int or RandomState
        The source of the first controls, of the split and of random batches.
    n_jobs : int or None
        Threads; -1: all. None: as many as `ocdl.get_num_threads` says. Results do not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (classes,)
    network_ : Network
    controls_ : Controls
    history_ : History
    n_iter_ : int
    status_ : Status
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import ocdl
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = make_pipeline(StandardScaler(), ocdl.ODEClassifier(random_state=0)).fit(X, y)
    >>> model.score(X, y)
    1.0
    """

    def __init__(
        self,
        architecture: str = defaults.ARCHITECTURE,
        n_layers: int = defaults.N_LAYERS,
        tableau: str | Tableau = defaults.TABLEAU,
        activation: str = "tanh",
        field: str = defaults.FIELD,
        horizon: float = 1.0,
        augment: int = 1,
        loss: str = defaults.LOSS,
        optimiser: Optimiser | Chain | None = None,
        max_iter: int = defaults.MAX_ITER,
        tol: float = 1e-3,
        regulariser: Regulariser | None = None,
        class_weight: Any = None,
        validation_fraction: float = 0.0,
        early_stopping: bool = False,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
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

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on samples X of shape (samples, features) with labels y of any kind; return the estimator.

        Equal samples are merged and their weights added, so that a weight of 2 is the same as a row twice, and the
        order of the rows does not matter.
        """
        rows, targets = self._validated(X, y)
        classes, labels = _classes_of(targets)
        weights = self._weights(sample_weight, rows, targets)
        rng = check_random_state(self.random_state)
        training, validation = self._split(rows, labels, weights, rng)
        network = Network.preset(
            self.architecture,
            rows.shape[1],
            self.n_layers,
            n_outputs=1 if len(classes) == 2 else len(classes),
            tableau=self.tableau,
            field=self.field,
            activation=self.activation,
            horizon=self.horizon,
            augment=self.augment,
        )
        start = self._start(network, classes, rng)
        _warn_of_saturation(network, start, training[0])
        result = self._train(network, start, training, validation, rng)
        self.classes_ = classes
        self.network_, self.controls_, self.history_ = network, result.controls, result.history
        self.n_iter_, self.status_ = result.n_iter, result.status
        self._warn_unless_converged(result)
        return self

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return the outputs W y(T) + mu, (samples, classes); of two classes (samples,), positive for the second."""
        rows = self._checked(X)
        outputs = self.network_.predict(self.controls_, rows)
        return outputs[:, 0] if self.network_.n_outputs == 1 else outputs

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the predicted class of each sample."""
        rows = self._checked(X)
        chosen: NDArray[Any] = self.classes_[decided(self.network_.predict(self.controls_, rows))]
        return chosen

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the probabilities of the classes, (samples, classes).

        Two classes have C(z) = 1 / (1 + exp(-z)) and 1 - C(z), several the softmax of the outputs; trained with the
        squared loss several have C of their outputs, normalised.
        """
        rows = self._checked(X)
        return meaning_of_outputs(self.network_.predict(self.controls_, rows), self.loss)

    def transform(self, X: ArrayLike) -> FloatArray:
        """Return the states at time T, (samples, features + augment), which a linear classifier tells apart."""
        rows = self._checked(X)
        return self.network_.final_state(self.controls_, rows)

    def trajectory(self, X: ArrayLike) -> FloatArray:
        """Return the states after every layer, (layers + 1, samples, features + augment)."""
        rows = self._checked(X)
        return self.network_.forward(self.controls_, rows).states

    def prune(self) -> Self:
        """Drop the layers whose time step is 0, which changes no prediction; return the estimator.

        With `verbose` above 0 it prints what that saves; ``network_.saving(controls_)`` says it beforehand.
        """
        check_is_fitted(self)
        if self.verbose:
            print(self.network_.saving(self.controls_))
        self.network_, self.controls_ = self.network_.prune(self.controls_)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file without code in it (no pickle), for `load`."""
        check_is_fitted(self)
        estimator_files.save(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the estimator that `save` wrote: it predicts the same, to the last bit."""
        return estimator_files.load(path, cls)

    @property
    def _n_features_out(self) -> int:
        return int(self.network_.dim)

    def _checked(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        rows: FloatArray = self._validated(X, reset=False)
        return rows

    def _validated(self, *data: ArrayLike, **options: Any) -> Any:
        """Return what scikit-learn makes of the data, or raise what it says, without the warnings on the way there."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return validate_data(self, *data, dtype=np.float64, **options)
        except OverflowError as error:
            raise ValueError(f"X must hold numbers within the range of float64: {error}") from error

    def _weights(self, sample_weight: ArrayLike | None, rows: FloatArray, y: NDArray[Any]) -> FloatArray:
        """Return the weights of the samples, those of their classes included."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                weights: FloatArray = _check_sample_weight(sample_weight, rows, ensure_non_negative=True)
        except ArithmeticError as error:
            raise ValueError(f"sample_weight must hold numbers within the range of float64: {error!r}") from error
        if self.class_weight is not None:
            weights = weights * compute_sample_weight(self.class_weight, y)
        if not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError("sample_weight and class_weight must give weights that are finite and not negative")
        return weights

    def _split(
        self, rows: FloatArray, labels: LabelArray, weights: FloatArray, rng: np.random.RandomState
    ) -> tuple[tuple[FloatArray, LabelArray, FloatArray | None], tuple[FloatArray, LabelArray] | None]:
        if checks.not_negative(self.validation_fraction, "validation_fraction") >= 1:
            raise ValueError(f"validation_fraction must be below 1, got {self.validation_fraction}")
        early_stopping = checks.boolean(self.early_stopping, "early_stopping")
        if self.validation_fraction == 0:
            if early_stopping:
                raise ValueError("early_stopping=True needs samples to look at: set validation_fraction, to 0.1 say")
            return _canonical(rows, labels, weights), None
        kept, looked_at = train_test_split(
            np.arange(len(rows)), test_size=self.validation_fraction, stratify=labels, random_state=rng
        )
        return _canonical(rows[kept], labels[kept], weights[kept]), (rows[looked_at], labels[looked_at])

    def _start(self, network: Network, classes: NDArray[Any], rng: np.random.RandomState) -> Controls:
        if self.warm_start and hasattr(self, "controls_"):
            if not np.array_equal(classes, self.classes_):
                raise ValueError(
                    f"warm_start=True, but y has the classes {classes} and the last fit had {self.classes_}"
                )
            if network != self.network_:
                raise ValueError("warm_start=True, but a parameter has changed that changes the network")
            return self.controls_
        return network.init(random_state=rng, scheme="scaled")

    def _train(
        self,
        network: Network,
        start: Controls,
        training: tuple[FloatArray, LabelArray, FloatArray | None],
        validation: tuple[FloatArray, LabelArray] | None,
        rng: np.random.RandomState,
    ) -> Result:
        rows, labels, weights = training
        with limited_threads(None if self.n_jobs is None else joblib.effective_n_jobs(self.n_jobs)):
            return train(
                network,
                start,
                rows,
                labels,
                sample_weight=weights,
                objective=Objective(self.loss, regulariser=self.regulariser),
                optimiser=defaults.OPTIMISER if self.optimiser is None else self.optimiser,
                max_iter=self.max_iter,
                tol=self.tol,
                validation=validation,
                patience=EVALUATIONS_WITHOUT_PROGRESS if self.early_stopping else None,
                eval_every=10 if self.early_stopping else 50,
                progress=bool(self.verbose),
                random_state=rng,
            )

    def _warn_unless_converged(self, result: Result) -> None:
        loss = result.history.loss
        before = loss[-max(2, len(loss) // 10) :][0]
        if result.status is Status.NOT_FINITE:
            reason, advice = "", "scale the inputs, or choose smaller steps of the optimiser"
        elif result.status is Status.ITERATION_LIMIT and NEXT_TO_NOTHING * loss[0] < loss[-1] < STILL_FALLING * before:
            reason = f"in the last tenth of them the loss fell from {before:.4g}, and "
            advice = "increase max_iter or tol, scale the inputs, or choose another optimiser"
        else:
            return
        warnings.warn(
            f"the training has not converged: {result.message}; {reason}tol={self.tol:g}; {advice}",
            ConvergenceWarning,
            stacklevel=3,
        )


def _classes_of(y: NDArray[Any]) -> tuple[NDArray[Any], LabelArray]:
    """Return the classes in their order, at least two, and the number of each sample's class."""
    with np.errstate(over="ignore", invalid="ignore"):  # y is compared with whole numbers
        check_classification_targets(y)
    try:
        classes, labels = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise TypeError(f"y must hold labels of one kind, all numbers or all texts: {error}") from error
    if len(classes) < 2:
        raise ValueError(f"y has one class, {classes[0]!r}; a classifier needs samples of at least 2 classes")
    return classes, labels


def _canonical(
    rows: FloatArray, labels: LabelArray, weights: FloatArray
) -> tuple[FloatArray, LabelArray, FloatArray | None]:
    """Return the samples in an order of their own, equal ones merged, none of weight 0; equal weights become None."""
    distinct, place = np.unique(np.column_stack([labels, rows]), axis=0, return_inverse=True)
    total = np.bincount(place.ravel(), weights, len(distinct))
    if not total.any():
        raise ValueError("every sample to train on has weight 0, from sample_weight and class_weight")
    distinct, total = distinct[total > 0], total[total > 0]
    same = bool(np.all(total == total[0]))
    return np.ascontiguousarray(distinct[:, 1:]), distinct[:, 0].astype(np.int64), None if same else total


def _warn_of_saturation(network: Network, start: Controls, rows: FloatArray) -> None:
    """Warn where every unit is flat at the first layer: nothing can then be learned from differences of the inputs."""
    flat_beyond = ACTIVATIONS[network.activation].flat_beyond
    if math.isinf(flat_beyond):
        return
    sample = rows[:: max(1, len(rows) // ROWS_LOOKED_AT)]
    state = np.zeros((len(sample), network.dim))
    state[:, : network.n_features] = sample
    parts = network._swept_parts(start)
    K, b = (parts[name][0].reshape(-1, *parts[name].shape[-n:])[0] for name, n in (("K", 2), ("b", 1)))
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.abs(state @ K.T + b)
    if np.all(size > flat_beyond):
        warnings.warn(
            f"every unit is saturated at the start: the inputs are as large as {np.abs(sample).max():.3g}; "
            "scale them, for example with sklearn.preprocessing.StandardScaler in a pipeline",
            UserWarning,
            stacklevel=4,
        )
