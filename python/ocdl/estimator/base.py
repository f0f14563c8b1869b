"""What classifier and regressor have in common: a flow that is fitted to rows, and everything that is done with it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from numbers import Number
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ocdl.base import validation
from ocdl.base.threads import limited_threads
from ocdl.base.validation import FloatArray
from ocdl.estimator import convergence, defaults, files
from ocdl.estimator.epochs import AdamEpochs, adam_of
from ocdl.estimator.prior import SHORT, WEAK_ITERATIONS, WEAK_SHARE, prior, reach
from ocdl.estimator.samples import Samples, columns_without_numbers
from ocdl.estimator.settings import CHOSEN_BY_FOLDS, alpha_of, optimiser_of, threads_of
from ocdl.model.controls import Controls
from ocdl.model.losses import Loss, names_of
from ocdl.model.objective import Objective
from ocdl.model.penalties import Regulariser
from ocdl.network import Network
from ocdl.training.failure import judged_from
from ocdl.training.loop import require_memory, train
from ocdl.training.optimisers import LBFGS, Chain, Optimiser, stages_of
from ocdl.training.result import Result, Status
from ocdl.training.watching import TrainingState

ALPHAS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # among which folds choose
FOLDS = 3
MOST_NAMES = 8  # of columns that a message lists
LARGEST_MEMORY = 2**30  # bytes that the pairs of L-BFGS may take

Callback = Callable[[TrainingState], Any]
Validation = tuple[FloatArray, NDArray[Any]]


class ODEEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The part of the estimators that knows neither classes nor numbers."""

    network_: Network
    controls_: Controls
    _target_kind: str  # what the losses compare with: "classes" or "numbers"
    _checkpoint: str | None = None  # files of `train` that the command line sets
    _resume: str | None = None
    _communicator: Any = None  # of the ranks that fit together
    _looked_at: Samples | None = None  # rows that stand for all, where these have no more than a part of them

    def transform(self, X: ArrayLike) -> FloatArray:
        """Return the states at time T, (samples, features + augment), of which the outputs are a linear function.

        Parameters
        ----------
        X : array_like of shape (samples, features)

        Returns
        -------
        ndarray of shape (samples, features + augment)

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
        >>> model.transform(X).shape
        (100, 3)
        """
        rows = self._checked(X)
        return self.network_.final_state(self.controls_, rows)

    def trajectory(self, X: ArrayLike) -> FloatArray:
        """Return the states after every layer, (layers + 1, samples, features + augment).

        Parameters
        ----------
        X : array_like of shape (samples, features)

        Returns
        -------
        ndarray of shape (layers + 1, samples, features + augment)

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
        >>> model.trajectory(X).shape
        (6, 100, 3)
        """
        rows = self._checked(X)
        return self.network_.forward(self.controls_, rows).states

    def prune(self) -> Self:
        """Drop the layers whose time step is 0, which changes no prediction; return the estimator.

        With `verbose` above 0 it prints what that saves; ``network_.saving(controls_)`` says it beforehand.

        Returns
        -------
        self

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `fit` has not been called.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> model = ocdl.ODEClassifier(random_state=0).fit(X, y)
        >>> before = model.predict(X)
        >>> bool((model.prune().predict(X) == before).all())
        True
        """
        check_is_fitted(self)
        if self.verbose:
            print(self.network_.saving(self.controls_))
        self.network_, self.controls_ = self.network_.prune(self.controls_)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file without code in it (no pickle), for `load`.

        Parameters
        ----------
        path : str or path-like
            Any name; ``.ocdl`` is customary.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `fit` has not been called.
        OSError
            If the file cannot be written; the old one is intact.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> model = ocdl.ODEClassifier(random_state=0).fit(X, y)
        >>> model.save("model.ocdl")
        """
        check_is_fitted(self)
        files.save(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the estimator that `save` wrote: it predicts the same, to the last bit.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        ODEClassifier or ODERegressor
            Of the class that is asked.

        Raises
        ------
        ModelFileError
            If the file is damaged, foreign, newer, or holds something else.
        OSError
            If it cannot be read.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> model = ocdl.ODEClassifier(random_state=0).fit(X, y)
        >>> model.save("model.ocdl")
        >>> bool((ocdl.ODEClassifier.load("model.ocdl").predict(X) == model.predict(X)).all())
        True
        """
        return files.load(path, cls)

    def to_onnx(self, path: str | os.PathLike[str], *, opset: int | None = None) -> None:
        """Write the fitted estimator as a file in ONNX, which programs without Python can run.

        The input is "X", (samples, features) in float64. A classifier has the outputs "label", (samples,), and
        "probabilities", (samples, classes); a regressor has "variable", (samples, targets). A pipeline that ends with
        an estimator is converted by ``skl2onnx.to_onnx``. Both need ``pip install 'ocdl[onnx]'``.

        Parameters
        ----------
        path : str or path-like
        opset : int, optional
            As for `ocdl.export_onnx`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `fit` has not been called.
        ImportError
            If onnx is not installed.
        ValueError
            If the tableau is implicit, or `opset` too old.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> model = ocdl.ODEClassifier(random_state=0).fit(X, y)
        >>> model.to_onnx("model.onnx")  # doctest: +SKIP
        """
        check_is_fitted(self)
        from ocdl.interop.onnx_estimator import write_estimator

        write_estimator(path, self, opset)

    def onnx_shape_calculator(self) -> Callable[[Any], None]:
        """Return what tells skl2onnx the types and shapes of the predictions; it asks for that itself.

        Returns
        -------
        callable

        Examples
        --------
        >>> import ocdl
        >>> callable(ocdl.ODEClassifier().onnx_shape_calculator())  # doctest: +SKIP
        True
        """
        from ocdl.interop.skl2onnx_converter import describe_outputs

        return describe_outputs

    def onnx_converter(self) -> Callable[[Any, Any, Any], None]:
        """Return what converts the estimator for skl2onnx; it asks for that itself.

        Returns
        -------
        callable

        Examples
        --------
        >>> import ocdl
        >>> callable(ocdl.ODEClassifier().onnx_converter())  # doctest: +SKIP
        True
        """
        from ocdl.interop.skl2onnx_converter import add_nodes

        return add_nodes

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "controls_")

    # ---- what the two kinds fill in ----

    def _samples_of(self, X: FloatArray, y: Any, sample_weight: Any) -> Samples:
        """Return merged rows with targets as the loss takes them; notes what the targets were."""
        raise NotImplementedError

    def _targets_of(self, y: Any) -> NDArray[Any]:
        """Return targets of other rows, of a validation set say, as the loss takes them."""
        raise NotImplementedError

    def _outputs(self) -> int:
        """Return how many outputs the targets need."""
        raise NotImplementedError

    def _stored_targets(self) -> dict[str, Any]:
        """Return what the targets were, as JSON can hold it."""
        raise NotImplementedError

    def _restore_targets(self, stored: Any) -> None:
        """Take it back from there; the network is known already."""
        raise NotImplementedError

    def _noise(self, samples: Samples) -> float:
        """Return the variance that the prior is relative to."""
        return 1.0

    def _noise_believed(
        self, network: Network, start: Controls, samples: Samples, alpha: float, rng: np.random.RandomState
    ) -> float:
        """Return the share of that variance that is taken for noise."""
        return 1.0

    def _noise_left(self, noise: float, network: Network, controls: Controls, samples: Samples) -> float:
        """Return that variance when a weak prior has shown what can be learned."""
        return noise

    # ---- fitting ----

    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any, callbacks: Iterable[Callback]) -> Self:
        optimiser = optimiser_of(self.optimiser, self.learning_rate, self.batch_size)
        alpha = alpha_of(self.alpha, self.regulariser)
        self._require_loss()
        rows, targets = self._validated(X, y)
        before = vars(self).copy() if validation.boolean(self.warm_start, "warm_start") else {}
        samples = self._samples_of(rows, targets, sample_weight)
        rng = np.random.RandomState(self._seed())
        validated = self._evaluated(eval_set)
        samples, validated = self._split(samples, validated, rng)
        network = self._network(samples)
        stages = stages_of(_sized(network) if optimiser is None else optimiser)
        require_memory(network, len(samples.X), [method for method, _ in stages])
        start = self._warm(before, network) or network.init(random_state=rng, scheme="scaled")
        is_warm = "controls_" in before
        flat = convergence.saturation(network, start, samples.X)
        with limited_threads(threads_of(self.n_jobs)):
            self._believed = before.get("_believed", 1.0)
            if alpha == CHOSEN_BY_FOLDS:
                alpha = self._alpha_by_folds(network, start, samples, rng)
            elif alpha != 0 and not is_warm:
                self._believed = self._noise_believed(network, start, samples, float(alpha), rng)
            assert not isinstance(alpha, str)
            how = (alpha, self._believed, optimiser, is_warm, validated, callbacks, rng)
            trained = self._trained(network, start, samples, *how)
            return self._fitted(network, alpha, samples, flat, *trained)

    def _fit_part(
        self, looked_at: tuple[FloatArray, Any], X: FloatArray, y: Any, n_rows: int, callbacks: Iterable[Callback]
    ) -> Self:
        """Train on rows of one rank, whole shards of `n_rows`, together with the others; rows are not merged.

        Rows that were looked at, the same on every rank, stand for all: they say how targets are scaled and how much of
        them is noise.
        """
        optimiser = optimiser_of(self.optimiser, self.learning_rate, self.batch_size)
        alpha = alpha_of(self.alpha, self.regulariser)
        if isinstance(alpha, str):
            raise ValueError("alpha='cv' needs all rows in one place; choose a number")
        self._require_loss()
        self._classes_are_given = True  # a regressor has none
        try:
            rows, targets = self._validated(*looked_at)
            self._looked_at = self._samples_of(rows, targets, None)
        finally:
            del self._classes_are_given
        samples = Samples(np.ascontiguousarray(X, np.float64), self._targets_of(y), None, float(n_rows))
        rng = np.random.RandomState(self._seed())
        network = self._network(samples)
        start = network.init(random_state=rng, scheme="scaled")
        flat = convergence.saturation(network, start, self._looked_at.X)
        trained = self._trained(network, start, samples, alpha, 1.0, optimiser, False, None, callbacks, rng)
        del self._looked_at
        return self._fitted(network, alpha, samples, flat, *trained)

    def _fitted(
        self,
        network: Network,
        alpha: float,
        samples: Samples,
        flat: convergence.Saturation,
        result: Result,
        left: convergence.Unfinished | None,
    ) -> Self:
        self.alpha_ = alpha
        self.network_, self.controls_, self.history_ = network, result.controls, result.history
        self.n_iter_, self.status_ = result.n_iter, result.status
        self.__dict__.pop("_epochs", None)
        is_worse = result.status is Status.ITERATION_LIMIT and self._is_above_constant(network, result, samples)
        convergence.warn_unless_converged(result, float(self.tol), left=left, worse_than_constant=is_worse)
        # A custom loss may have any value where all is right, so that a fraction of it says nothing.
        is_comparable = result.status is not Status.NOT_FINITE and not self._own_loss
        if flat.may_matter and is_comparable and self._is_above_constant(network, result, samples, convergence.LITTLE):
            convergence.warn_of_scale(flat)
        return self

    def _is_above_constant(self, network: Network, result: Result, samples: Samples, share: float = 1.0) -> bool:
        """Whether the loss is above that of outputs which are 0 for every sample, as no minimum is under any prior.

        Or above a share of it.
        """
        trained, constant = (
            self._value(network, u, samples, Objective(self.loss)) for u in (result.controls, network.controls())
        )
        return trained > share * constant

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """One epoch of Adam over these rows, from where the last one ended; its averages are kept."""
        is_first = not hasattr(self, "controls_")
        adam = adam_of(self.optimiser, self.learning_rate, self.batch_size)
        alpha = alpha_of(self.alpha, self.regulariser)
        if isinstance(alpha, str):
            raise ValueError("alpha='cv' needs all rows at once: fit, or a number")
        self._require_loss()
        rows, targets = self._validated(X, y, reset=is_first)
        samples = self._samples_of(rows, targets, sample_weight)
        rng = np.random.RandomState(self._seed())
        if is_first:
            self.network_ = self._network(samples)
            self.controls_ = self.network_.init(random_state=rng, scheme="scaled")
            self.n_iter_ = 0
        if not hasattr(self, "_epochs"):
            self._epochs = AdamEpochs(adam, int(rng.randint(2**31)))
        self._epochs.rows_seen += samples.total
        objective = self._objective(self.network_, self._epochs.rows_seen, alpha, self._noise(samples))
        self.controls_, made = self._epochs.run(self.network_, self.controls_, samples, objective)
        self.n_iter_ += made
        return self

    def _seed(self) -> int:
        """Return a seed of this fit's own; of a generator the next one."""
        try:
            return int(check_random_state(self.random_state).randint(2**31))
        except ValueError as error:
            raise ValueError(
                "random_state must be None, a whole number from 0 to 2**32 - 1 or a numpy RandomState, "
                f"got {validation.shown(self.random_state)}"
            ) from error

    def _network(self, samples: Samples) -> Network:
        return Network.preset(
            self.architecture,
            samples.X.shape[1],
            defaults.layers_of(self.architecture, self.n_layers),
            n_outputs=self._outputs(),
            tableau=self.tableau,
            field=self.field,
            activation=self.activation,
            horizon=self.horizon,
            augment=self.augment,
        )

    def _warm(self, before: dict[str, Any], network: Network) -> Controls | None:
        """Return the controls of the last fit, where `warm_start` goes on from them."""
        if "controls_" not in before:
            return None
        if network != before["network_"]:
            raise ValueError(
                "warm_start=True, but the network is another one: a parameter has changed, or the number of columns of "
                "X or y"
            )
        controls: Controls = before["controls_"]
        return controls

    def _objective(self, network: Network, total: float, alpha: float, noise: float, weak: bool = False) -> Objective:
        penalty: Regulariser | None = self.regulariser
        if penalty is None and alpha > 0:
            penalty = prior(network, total, alpha, noise=noise, weak=weak)
        return Objective(self.loss, regulariser=penalty)

    def _trained(
        self,
        network: Network,
        start: Controls,
        samples: Samples,
        alpha: float,
        believed: float,
        optimiser: Optimiser | Chain | None,
        is_warm: bool,
        validated: Validation | None,
        callbacks: Iterable[Callback],
        rng: np.random.RandomState,
    ) -> tuple[Result, convergence.Unfinished | None]:
        """Train, first under a weak prior and then under the whole one; return what was left to do then, too.

        A flow that the prior lets go nowhere starts there instead, with the readout that fits: as every row then lies
        where it lay, the search for the rest is short, and on thousands of columns each of its steps is long. At rest
        one layer does what all do, in a fraction of the time.
        """
        looked_at = self._looked_at or samples
        noise = believed * self._noise(looked_at)
        early = validation.boolean(self.early_stopping, "early_stopping")
        whole: dict[str, Any] = {
            "max_iter": validation.integer(self.max_iter, "max_iter", least=1),
            "validation": validated,
            "patience": validation.integer(self.patience, "patience", least=1) if early else None,
            "eval_every": 10 if early else 50,
            "checkpoint": self._checkpoint,
            "resume": self._resume,
        }
        watching = _Callbacks(callbacks, network)
        common: dict[str, Any] = {
            "sample_weight": samples.weights,
            "optimiser": _sized(network) if optimiser is None else optimiser,
            "tol": validation.not_negative(self.tol, "tol"),
            "rtol": defaults.RTOL if optimiser is None else 0.0,
            "progress": bool(self.verbose),
            "callback": watching if watching.called else None,
            "random_state": rng,
            "communicator": self._communicator,
        }
        first = None
        weak = min(WEAK_ITERATIONS, int(WEAK_SHARE * whole["max_iter"]))
        if alpha > 0 and not is_warm and weak > 0:
            is_held = reach(network, samples.total, alpha, noise) < SHORT
            objective = self._objective(network, samples.total, alpha, noise, weak=not is_held)
            swept = replace(network, n_layers=1) if is_held else network
            first = train(
                swept,
                swept.controls() if is_held else start,
                samples.X,
                samples.y,
                objective=objective,
                max_iter=weak,
                freeze=[part.name for part in network.parts if is_held and part.role != "readout"],
                **common,
            )
            if is_held:
                first = _in_all_layers(first, network)
            if watching.ended:
                return first._ended_as(Status.INTERRUPTED), None
            if first.status is Status.NOT_FINITE:
                return first, None
            begun_at, start = start, first.controls
            whole["max_iter"] -= first.n_iter
            if self.alpha != CHOSEN_BY_FOLDS:  # which have judged the factor beside the noise of before
                noise = self._noise_left(noise, network, start, looked_at)
        objective = self._objective(network, samples.total, alpha, noise)
        result = train(network, start, samples.X, samples.y, objective=objective, **whole, **common)
        last_method, _ = stages_of(common["optimiser"])[-1]
        on_batches = getattr(last_method, "batch_size", None) is not None
        left = convergence.unfinished(result.history, common["tol"], on_batches=on_batches)
        if first is None:
            return result, left
        result = first.followed_by(result)
        if result.status is Status.NOT_FINITE:
            return result, left
        before, after = (self._value(network, u, samples, objective) for u in (begun_at, result.controls))
        return judged_from(result, before, after), left

    def _value(self, network: Network, u: Controls, samples: Samples, objective: Objective) -> float:
        """Return J on the rows of all ranks."""
        if self._communicator is None:
            return network.value(u, samples.X, samples.y, objective, samples.weights)
        made = train(network, u, samples.X, samples.y, objective=objective, max_iter=0, communicator=self._communicator)
        return float(made.history.loss[0])

    def _alpha_by_folds(self, network: Network, start: Controls, samples: Samples, rng: np.random.RandomState) -> float:
        """Return the factor with the lowest loss on rows that were left out; each fold goes from weak to strong."""
        labels = samples.y if samples.y.dtype.kind == "i" else np.zeros(len(samples.y), np.int64)
        smallest = int(np.bincount(labels)[np.unique(labels)].min())
        seed = int(rng.randint(2**31))
        if len(samples.X) < 2 * FOLDS:
            return defaults.ALPHA
        stratified = smallest >= FOLDS
        folds = (StratifiedKFold if stratified else KFold)(FOLDS, shuffle=True, random_state=seed)
        losses = np.zeros(len(ALPHAS))
        for kept, left_out in folds.split(samples.X, labels):
            training, held_out = samples.chosen(kept), samples.chosen(left_out)
            noise, u = self._noise(training), start
            for number, alpha in enumerate(ALPHAS):
                result = train(
                    network,
                    u,
                    training.X,
                    training.y,
                    sample_weight=training.weights,
                    objective=self._objective(network, training.total, alpha, noise),
                    optimiser=_sized(network),
                    max_iter=self.max_iter if number == 0 else self.max_iter // 4,
                    tol=self.tol,
                    rtol=10 * defaults.RTOL,
                    eval_every=10**9,
                )
                u = result.controls
                losses[number] += held_out.total * network.value(
                    u, held_out.X, held_out.y, Objective(self.loss), held_out.weights
                )
        return ALPHAS[int(np.argmin(losses))]

    # ---- checks ----

    def _split(
        self, samples: Samples, validated: Validation | None, rng: np.random.RandomState
    ) -> tuple[Samples, Validation | None]:
        """Return the samples to train on and those to look at, drawn from merged rows."""
        share = validation.not_negative(self.validation_fraction, "validation_fraction")
        if share >= 1:
            raise ValueError(f"validation_fraction must be below 1, got {self.validation_fraction}")
        if validated is not None:
            return samples, validated
        if validation.boolean(self.early_stopping, "early_stopping") and share == 0:
            share = defaults.VALIDATION_FRACTION
        if share == 0:
            return samples, None
        labels = samples.y if samples.y.dtype.kind == "i" else None
        count = math.ceil(share * len(samples.X))
        classes = 0 if labels is None else len(np.unique(labels))
        if labels is not None and (np.bincount(labels)[np.unique(labels)].min() < 2 or count < classes):
            labels = None  # too few of a class for a share of each
        if count >= len(samples.X):
            raise ValueError(
                f"validation_fraction={share:g} of {len(samples.X)} distinct samples leaves none to train on"
            )
        kept, looked_at = train_test_split(
            np.arange(len(samples.X)), test_size=count, stratify=labels, random_state=rng
        )
        training, held_out = samples.parted(np.sort(kept), np.sort(looked_at))
        return training, (held_out.X, held_out.y)

    def _evaluated(self, eval_set: Any) -> Validation | None:
        if eval_set is None:
            return None
        if not isinstance(eval_set, (tuple, list)) or len(eval_set) != 2:
            entries = f" of {len(eval_set)}" if isinstance(eval_set, (tuple, list)) else ""
            raise TypeError(f"eval_set must be a pair (X, y), got {type(eval_set).__name__}{entries}")
        try:
            rows, targets = self._validated(*eval_set, reset=False)
            return rows, self._targets_of(targets)
        except (TypeError, ValueError) as error:
            raise type(error)(f"eval_set: {error}") from error

    def _checked(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        rows: FloatArray = self._validated(X, reset=False)
        return rows

    def _validated(self, X: Any, *y: Any, **options: Any) -> Any:
        """Return what scikit-learn makes of the data, or raise what it says, without the warnings on the way there."""
        if issparse(X):
            raise TypeError(
                f"X is sparse ({type(X).__name__}), but a flow moves dense rows; make it dense with X.toarray(), or "
                "reduce it with sklearn.decomposition.TruncatedSVD in a pipeline"
            )
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return validate_data(self, X, *y, dtype=np.float64, **self._validation_options(*y), **options)
        except ArithmeticError as error:
            names = "X and y" if y else "X"
            raise ValueError(f"{names} must hold numbers within the range of float64: {error!r}") from error
        except (TypeError, ValueError) as error:
            names = ", ".join(map(repr, columns_without_numbers(X)[:MOST_NAMES]))
            if not names:
                raise
            raise ValueError(
                f"X has columns without numbers: {names}; encode them, for example with "
                "sklearn.preprocessing.OneHotEncoder in a ColumnTransformer, or leave them out"
            ) from error

    def _validation_options(self, *y: Any) -> dict[str, Any]:
        return {}

    def _weights(self, sample_weight: Any, rows: FloatArray) -> FloatArray:
        if isinstance(sample_weight, Number):  # which stands for all, and is not looked at below
            sample_weight = validation.real(sample_weight, "sample_weight")
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                weights: FloatArray = _check_sample_weight(sample_weight, rows, ensure_non_negative=True)
        except ArithmeticError as error:
            raise ValueError(f"sample_weight must hold numbers within the range of float64: {error!r}") from error
        return weights

    @property
    def _n_features_out(self) -> int:
        return int(self.network_.dim)

    def _require_loss(self) -> None:
        record = Objective(self.loss).record
        if isinstance(record, Loss) and record.targets != self._target_kind:
            names = ", ".join(map(repr, names_of(self._target_kind)))
            raise ValueError(f"loss must be one of {names}, or one of your own, got {self.loss!r}")

    @property
    def _own_loss(self) -> bool:
        return not isinstance(Objective(self.loss).record, Loss)


def _sized(network: Network) -> LBFGS:
    """Return L-BFGS with as many pairs as memory takes."""
    pairs = LARGEST_MEMORY // (2 * 8 * max(network.n_controls, 1)) - 1
    return LBFGS(memory=int(np.clip(pairs, 3, defaults.OPTIMISER.memory)))


def _in_all_layers(result: Result, network: Network) -> Result:
    """Return the result of a training at rest, where one layer has stood for all."""
    steps = np.repeat(result.history.time_steps / network.n_layers, network.n_layers, axis=1)
    history = replace(result.history, time_steps=steps)
    return replace(result, controls=_layered(result.controls, network), history=history)


def _layered(u: Controls, network: Network) -> Controls:
    return u if len(u.K) == network.n_layers else network.controls(W=u.W, mu=u.mu)


class _Callbacks:
    """All callbacks as one, which knows whether any of them has ended the training."""

    def __init__(self, callbacks: Iterable[Callback], network: Network) -> None:
        if not isinstance(callbacks, Iterable):
            raise TypeError(f"callbacks must be a list of callables, got {type(callbacks).__name__}")
        self.called, self.ended, self._network = list(callbacks), False, network
        for callback in self.called:
            if not callable(callback):
                raise TypeError(f"callbacks must be callable, got {type(callback).__name__}")

    def __call__(self, state: TrainingState) -> bool:
        state = replace(state, controls=_layered(state.controls, self._network))
        answers = [bool(callback(state)) for callback in self.called]
        self.ended = any(answers)
        return self.ended
