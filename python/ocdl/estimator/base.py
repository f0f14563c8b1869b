"""The base class of classifier and regressor: it plans a fit and applies the fitted flow."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from numbers import Number
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ocdl.base import validation
from ocdl.base.randomness import draw_seed
from ocdl.base.validation import FloatArray
from ocdl.estimator import defaults, files
from ocdl.estimator.epochs import AdamState, resolve_adam
from ocdl.estimator.fitting import fit_network
from ocdl.estimator.onnx_methods import OnnxMethods
from ocdl.estimator.plan import Callback, FitPlan, FittedNetwork
from ocdl.estimator.samples import Samples, columns_without_numbers, require_dense, split, warn_of_scale
from ocdl.estimator.settings import AUTO, resolve_alpha, resolve_components, resolve_optimiser, resolve_threads
from ocdl.estimator.subspace import choose_components, project
from ocdl.estimator.targets import ClassTargets, NumberTargets
from ocdl.model.controls import Controls
from ocdl.model.fields import FIELDS_WITHOUT_OPTION
from ocdl.model.losses import Loss, loss_names
from ocdl.model.objective import resolve_loss
from ocdl.network import Network
from ocdl.training.validation import Validation

MAX_NAMES = 8  # of columns that a message lists
MAX_SEED = 2**32  # of NumPy's older generators

Targets = ClassTargets | NumberTargets


class ODEEstimator(OnnxMethods, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The methods that classifier and regressor share."""

    components_: FloatArray | None
    feature_importances_: FloatArray
    network_: Network
    controls_: Controls
    alpha_: float
    n_iter_: int
    _targets_type: ClassVar[type[ClassTargets] | type[NumberTargets]]
    _training_state: AdamState | None = None  # of partial_fit

    def transform(self, X: ArrayLike) -> FloatArray:
        """Return the states at time T, (samples, components + augment), of which the outputs are a linear function.

        Parameters
        ----------
        X : array_like of shape (samples, features)

        Returns
        -------
        ndarray of shape (samples, components + augment)
            Without `components_` there are as many as features.

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
        rows = self._validate_rows(X)
        return self.network_.final_state(self.controls_, rows)

    def trajectory(self, X: ArrayLike) -> FloatArray:
        """Return the states after every layer, (layers + 1, samples, components + augment).

        Parameters
        ----------
        X : array_like of shape (samples, features)

        Returns
        -------
        ndarray of shape (layers + 1, samples, components + augment)

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
        rows = self._validate_rows(X)
        return self.network_.forward(self.controls_, rows).states

    def prune(self) -> Self:
        """Drop the layers whose time step is 0, which changes no prediction; return the estimator.

        With `verbose` above 0 it prints the savings; ``network_.saving(controls_)`` returns them beforehand.

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
        """Write the fitted estimator to a file without code in it (no pickle), for `ocdl.load`.

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
        >>> bool((ocdl.load("model.ocdl").predict(X) == model.predict(X)).all())
        True
        """
        check_is_fitted(self)
        files.save(path, self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "controls_")

    # ---- defined by the subclasses ----

    @property
    def _targets(self) -> Targets:
        """The classes or the scale of the targets of the last fit."""
        raise NotImplementedError

    def _encode(self, X: FloatArray, y: Any, sample_weight: Any, known: Targets | None) -> tuple[Samples, Targets]:
        """Return merged rows with targets in the form of the loss, and the `Targets`: the known ones or new ones."""
        raise NotImplementedError

    def _noise(self, samples: Samples) -> float:
        """Return the variance that the prior is relative to."""
        return 1.0

    # ---- fitting ----

    def _fit(self, plan: FitPlan) -> Self:
        return self._set_fitted(fit_network(plan))

    def _plan(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        validation_data: tuple[Any, Any, Any] = (None, None, None),
        callback: Callback | None = None,
        targets: Targets | None = None,
    ) -> FitPlan:
        """Return the plan of a fit to these data; all arguments are checked here, once."""
        optimiser = resolve_optimiser(self.optimiser, self.learning_rate, self.batch_size)
        alpha = resolve_alpha(self.alpha, self.penalties)
        early = validation.boolean(self.early_stopping, "early_stopping")
        is_warm = validation.boolean(self.warm_start, "warm_start") and hasattr(self, "controls_")
        self._require_loss()
        rows, checked_y = self._validate(X, y)
        samples, targets = self._encode(rows, checked_y, sample_weight, targets)
        warn_of_scale(samples.X)
        noise = self._noise(samples)
        random = np.random.RandomState(draw_seed(self.random_state) % MAX_SEED)
        n_components = resolve_components(self.n_components, rows.shape[1], self.field)
        components = self.components_ if is_warm else choose_components(n_components, samples.X)
        evaluated = self._validation_data(*validation_data, targets, components)
        samples = samples.project(components)
        fraction = validation.not_negative(self.validation_fraction, "validation_fraction")
        if fraction >= 1:
            raise ValueError(f"validation_fraction must be below 1, got {self.validation_fraction}")
        patience = validation.integer(self.patience, "patience", minimum=1)
        if early and evaluated is None:
            samples, evaluated = split(samples, fraction, random)
        network = self._network(samples.X.shape[1], targets)
        start = self._warm_controls(network) if is_warm else network.init(random_state=random, scheme="scaled")
        return FitPlan(
            samples=samples,
            probe=samples,
            targets=targets,
            network=network,
            start=start,
            loss=self.loss,
            alpha=self.alpha_ if is_warm and isinstance(alpha, str) else alpha,
            noise=noise,
            seed=int(random.randint(2**31)),
            components=components,
            selects_columns=n_components == AUTO and components is None and not is_warm,
            penalties=self.penalties,
            optimiser=optimiser,
            max_iter=validation.integer(self.max_iter, "max_iter", minimum=1),
            tol=validation.not_negative(self.tol, "tol"),
            rtol=defaults.RTOL if optimiser is None else 0.0,
            is_warm=is_warm,
            validation=evaluated and replace(evaluated, patience=patience if early else None),
            callback=callback,
            progress=bool(self.verbose),
            threads=resolve_threads(self.n_jobs),
        )

    def _plan_on_ranks(
        self, probe: tuple[Any, Any], targets: Targets | None, X: FloatArray, y: Any, n_rows: int, communicator: Any
    ) -> FitPlan:
        """Return the plan of a fit by several ranks, of which this one has the rows X of `n_rows`; none are merged.

        The probe is a sample of all rows, the same on every rank.
        """
        plan = self._plan(*probe, targets=targets)
        samples = Samples(np.ascontiguousarray(X, np.float64), plan.targets.encode(y), None, float(n_rows))
        return replace(plan, samples=samples.project(plan.components), communicator=communicator)

    def _set_fitted(self, fitted: FittedNetwork) -> Self:
        """Set the attributes of a fitted estimator; warn if the training failed or has not converged."""
        for name, value in vars(fitted.targets).items():
            setattr(self, name, value)
        self.network_, self.controls_ = fitted.network, fitted.controls
        self.alpha_, self.n_iter_ = fitted.alpha, fitted.n_iter
        self.components_ = fitted.components
        if fitted.importances is not None:
            self.feature_importances_ = fitted.importances
        if fitted.diagnosis is not None:
            assert fitted.history is not None
            self.history_, self.status_ = fitted.history, fitted.diagnosis.status
            self._training_state = None
            if fitted.diagnosis.advice:
                reason = f"{fitted.diagnosis.reason}; " if fitted.diagnosis.reason else ""
                text = f"the training has not converged: {fitted.message}; {reason}tol={float(self.tol):g}; "
                warnings.warn(text + fitted.diagnosis.advice, ConvergenceWarning, stacklevel=4)
        return self

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, targets: Targets | None) -> Self:
        """Run one epoch of Adam over these rows, starting from the controls and averages of the last one."""
        is_first = not hasattr(self, "controls_")
        adam = resolve_adam(self.optimiser, self.learning_rate, self.batch_size)
        alpha = resolve_alpha(self.alpha, self.penalties)
        self._require_loss()
        rows, checked_y = self._validate(X, y, reset=is_first)
        samples, targets = self._encode(rows, checked_y, sample_weight, targets)
        noise = self._noise(samples)
        if is_first and resolve_components(self.n_components, rows.shape[1], self.field) not in (None, AUTO):
            raise ValueError(
                f"partial_fit takes all columns: n_components must be 'auto' or None, got {self.n_components!r}"
            )
        components = None if is_first else self.components_
        samples = samples.project(components)
        random = np.random.RandomState(draw_seed(self.random_state) % MAX_SEED)
        network = self._network(rows.shape[1], targets) if is_first else self.network_
        start = network.init(random_state=random, scheme="scaled") if is_first else self.controls_
        state = self._training_state or AdamState(adam, int(random.randint(2**31)))
        state = replace(state, total_weight=state.total_weight + samples.total)
        plan = FitPlan(
            samples=samples,
            probe=samples,
            targets=targets,
            network=network,
            start=start,
            loss=self.loss,
            alpha=1.0 if isinstance(alpha, str) else alpha,
            noise=noise,
            seed=state.seed,
            components=components,
            penalties=self.penalties,
            threads=resolve_threads(self.n_jobs),
            adam=state,
        )
        fitted = fit_network(plan)
        assert fitted.adam is not None
        self._set_fitted(replace(fitted, n_iter=0 if is_first else self.n_iter_))
        self._training_state = fitted.adam
        self.n_iter_ += 1
        return self

    def _network(self, n_features: int, targets: Targets) -> Network:
        return Network.preset(
            self.architecture,
            n_features,
            defaults.resolve_layers(self.architecture, self.n_layers),
            n_outputs=targets.n_outputs,
            tableau=self.tableau,
            field=validation.choice(self.field, "field", FIELDS_WITHOUT_OPTION),
            activation=self.activation,
            horizon=self.horizon,
            augment=self.augment,
        )

    def _warm_controls(self, network: Network) -> Controls:
        """Return the controls of the last fit, from which `warm_start` continues."""
        if network != self.network_:
            raise ValueError(
                "warm_start=True, but the network is another one: a parameter has changed, or the number of columns of "
                "X or y"
            )
        return self.controls_

    # ---- checks ----

    def _validation_data(
        self, X_val: Any, y_val: Any, weights: Any, targets: Targets, components: FloatArray | None
    ) -> Validation | None:
        if X_val is None and y_val is None and weights is None:
            return None
        if X_val is None or y_val is None:
            raise ValueError("X_val and y_val must be given together")
        try:
            rows, checked_y = self._validate(X_val, y_val, reset=False)
            encoded = targets.encode(checked_y)
        except (TypeError, ValueError) as error:
            raise type(error)(f"X_val and y_val: {error}") from error
        checked_weights = None if weights is None else self._weights(weights, rows)
        return Validation(project(rows, components), encoded, sample_weight=checked_weights)

    def _validate_rows(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        rows: FloatArray = self._validate(X, reset=False)
        return project(rows, self.components_)

    def _validate(self, X: Any, *y: Any, **options: Any) -> Any:
        """Return the data that scikit-learn has validated, or raise its error, without its warnings."""
        require_dense(X)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return validate_data(self, X, *y, dtype=np.float64, **self._validation_options(*y), **options)
        except ArithmeticError as error:
            names = "X and y" if y else "X"
            raise ValueError(f"{names} must hold numbers within the range of float64: {error!r}") from error
        except (TypeError, ValueError) as error:
            if unreadable := columns_without_numbers(X):
                raise ValueError(
                    f"X has columns without numbers: {', '.join(map(repr, unreadable[:MAX_NAMES]))}; encode them, "
                    "for example with sklearn.preprocessing.OneHotEncoder in a ColumnTransformer, or leave them out"
                ) from error
            raise

    def _validation_options(self, *y: Any) -> dict[str, Any]:
        return {}

    def _weights(self, sample_weight: Any, rows: FloatArray) -> FloatArray:
        if isinstance(sample_weight, Number):  # the weight of all samples, which scikit-learn does not check
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
        if self._loss.targets not in (self._targets_type.loss_kind, "any"):
            names = ", ".join(map(repr, loss_names(self._targets_type.loss_kind)))
            raise ValueError(f"loss must be one of {names}, or a custom loss, got {self.loss!r}")

    @property
    def _loss(self) -> Loss:
        return resolve_loss(self.loss)
