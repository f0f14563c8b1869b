"""Networks: a Runge-Kutta step per layer, and what can be computed with one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NoReturn, Self, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ocdl import _core, _validation
from ocdl._validation import FloatArray, LabelArray
from ocdl.controls import ControlLayout, Controls
from ocdl.objective import Objective
from ocdl.projection import project_simplex
from ocdl.tableau import Tableau

__all__ = ["Network", "Trajectory"]

FIELDS = ("dense",)
TIME_STEPS = ("fixed", "free", "simplex")
PRESETS: dict[str, dict[str, Any]] = {
    "net": {"residual": False},
    "resnet": {"time_steps": "fixed"},
    "odenet": {"time_steps": "free"},
    "odenet+simplex": {"time_steps": "simplex"},
}
DEFAULT_OBJECTIVE = Objective()


@dataclass(frozen=True)
class Trajectory:
    """The states of all samples after every layer, (layers + 1, samples, dim), and the outputs, (samples, outputs)."""

    states: FloatArray
    outputs: FloatArray


class Network:
    """A network as a discretised optimal control problem.

    Layer j takes one Runge-Kutta step of size ``h[j]`` for ``y' = f(y, (K[j], b[j]))``, from y(0) = x (extra components
    start at 0) to y(T); the outputs are ``W y(T) + mu``. A network is immutable and holds no weights: the controls are
    passed to its methods.

    Parameters
    ----------
    n_features : int
        Components of a sample.
    n_layers : int
        Number of steps, N.
    n_outputs : int
        1 for two classes, else the number of classes.
    tableau : str or Tableau
        The explicit Runge-Kutta method; `ocdl.tableaux` lists the names.
    residual : bool
        False gives the feed-forward network ``y[j+1] = f(y[j], u[j])``, which has neither tableau nor steps.
    field : {"dense"}
        The vector field: ``sigma(K y + b)``.
    activation : {"tanh", "sigmoid", "softplus", "relu", "leaky_relu", "sin", "identity"}
        The function sigma.
    time_steps : {"fixed", "free", "simplex"}
        Whether the steps are given, learned, or learned on {h >= 0, sum h = T}. The gradient with respect to fixed
        steps is 0.
    horizon : float
        The final time T; steps start at T/N.
    augment : int
        Extra components of the state.
    stage_controls : bool
        Whether every stage of a layer has a pair (K, b) of its own.
    dtype : {"float64", "float32"}
        The number type of controls, data and results.

    Examples
    --------
    >>> import numpy as np, ocdl
    >>> net = ocdl.Network(2, 10, tableau="kutta4")
    >>> u = net.init(random_state=0)
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> net.predict(u, X).shape
    (2, 1)
    >>> J, g = net.value_and_grad(u, X, [0, 1])
    >>> net.value(u - 0.1 * g, X, [0, 1]) < J
    True
    """

    def __init__(
        self,
        n_features: int,
        n_layers: int,
        *,
        n_outputs: int = 1,
        tableau: str | Tableau = "euler",
        residual: bool = True,
        field: str = "dense",
        activation: str = "tanh",
        time_steps: str = "fixed",
        horizon: float = 1.0,
        augment: int = 0,
        stage_controls: bool = False,
        dtype: DTypeLike = "float64",
    ) -> None:
        self._settings: dict[str, Any] = {
            "n_features": _validation.integer(n_features, "n_features", least=1),
            "n_layers": _validation.integer(n_layers, "n_layers", least=1),
            "n_outputs": _validation.integer(n_outputs, "n_outputs", least=1),
            "tableau": _explicit_tableau(tableau),
            "residual": _validation.boolean(residual, "residual"),
            "field": _validation.choice(field, "field", FIELDS),
            "activation": _validation.choice(activation, "activation", _core.activation_names()),
            "time_steps": _validation.choice(time_steps, "time_steps", TIME_STEPS),
            "horizon": _validation.positive(horizon, "horizon"),
            "augment": _validation.integer(augment, "augment", least=0),
            "stage_controls": _validation.boolean(stage_controls, "stage_controls"),
            "dtype": _float_dtype(dtype),
        }
        if not self.residual and self.time_steps != "fixed":
            raise ValueError(
                f"time_steps={time_steps!r} needs residual=True: a feed-forward network has no steps to learn"
            )
        stages = (self.stages,) if self.stage_controls else ()
        layers, dim = self.n_layers, self.dim
        self._layout = ControlLayout(
            (
                (layers, *stages, dim, dim),
                (layers, *stages, dim),
                (layers if self.residual else 0,),
                (self.n_outputs, dim),
                (self.n_outputs,),
            ),
            self.dtype,
        )
        self._core_network = _core.Network(
            features=self.n_features,
            dim=dim,
            layers=layers,
            outputs=self.n_outputs,
            tableau=self.tableau._core_tableau,
            activation=self.activation,
            residual=self.residual,
            stage_controls=self.stage_controls,
            learns_steps=self.time_steps != "fixed",
            horizon=self.horizon,
        )

    @classmethod
    def preset(cls, architecture: str, n_features: int, n_layers: int, **overrides: Any) -> Self:
        """Return one of the paper's four architectures.

        Parameters
        ----------
        architecture : {"net", "resnet", "odenet", "odenet+simplex"}
            Feed-forward; fixed steps; free steps; steps on the simplex.
        n_features, n_layers : int
            As for `Network`.
        **overrides
            Any other argument of `Network`.

        Examples
        --------
        >>> import ocdl
        >>> ocdl.Network.preset("odenet+simplex", 2, 20).time_steps
        'simplex'
        """
        _validation.choice(architecture, "architecture", tuple(PRESETS))
        return cls(n_features, n_layers, **(PRESETS[architecture] | overrides))

    n_features = property(lambda self: self._settings["n_features"], doc="Components of a sample.")
    n_layers = property(lambda self: self._settings["n_layers"], doc="Number of layers N.")
    n_outputs = property(lambda self: self._settings["n_outputs"], doc="Number of outputs.")
    tableau = property(lambda self: self._settings["tableau"], doc="The Runge-Kutta method.")
    residual = property(lambda self: self._settings["residual"], doc="False for a feed-forward network.")
    field = property(lambda self: self._settings["field"], doc="Name of the vector field.")
    activation = property(lambda self: self._settings["activation"], doc="Name of the activation.")
    time_steps = property(lambda self: self._settings["time_steps"], doc='"fixed", "free" or "simplex".')
    horizon = property(lambda self: self._settings["horizon"], doc="Final time T.")
    augment = property(lambda self: self._settings["augment"], doc="Extra components of the state.")
    stage_controls = property(
        lambda self: self._settings["stage_controls"], doc="Whether stages have their own controls."
    )
    dtype = property(lambda self: self._settings["dtype"], doc="Number type of controls, data and results.")
    dim = property(lambda self: self.n_features + self.augment, doc="Dimension of the state.")
    stages = property(lambda self: self.tableau.stages if self.residual else 1, doc="Stages per layer.")
    n_controls = property(lambda self: self._layout.size, doc="Length of the vector of controls.")

    def init(self, random_state: Any = None, scheme: str = "paper") -> Controls:
        """Return random controls to start a training from.

        Parameters
        ----------
        random_state : None, int, numpy Generator or RandomState
            The seed or the source of the random numbers.
        scheme : {"paper", "scaled"}
            "paper": K and W are standard normal. "scaled": they are divided by the square root of the dimension. In
            both, b and mu are 0 and the steps T/N.
        """
        _validation.choice(scheme, "scheme", ("paper", "scaled"))
        rng = random_state if isinstance(random_state, np.random.RandomState) else _generator(random_state)
        scale = 1.0 if scheme == "paper" else 1.0 / math.sqrt(self.dim)
        K_shape, _, _, W_shape, _ = self._layout.shapes
        return self.controls(K=scale * rng.standard_normal(K_shape), W=scale * rng.standard_normal(W_shape))

    def controls(
        self,
        *,
        K: ArrayLike | None = None,
        b: ArrayLike | None = None,
        h: ArrayLike | None = None,
        W: ArrayLike | None = None,
        mu: ArrayLike | None = None,
    ) -> Controls:
        """Return controls with these values, copied; what is missing is 0, and the steps are T/N.

        Parameters
        ----------
        K, b, W, mu : array_like, optional
            Arrays of the shapes that `Controls` lists.
        h : array_like of shape (layers,), optional
            Any finite steps; on a network with ``time_steps="simplex"`` a point of the simplex.
        """
        u = Controls(self._layout, np.zeros(self._layout.size, self.dtype))
        stage = ", stages" if self.stage_controls else ""
        meanings = (f"(layers{stage}, dim, dim)", f"(layers{stage}, dim)", "(layers,)", "(outputs, dim)", "(outputs,)")
        if h is not None and not self.residual:
            raise ValueError("h: a feed-forward network (residual=False) has no time steps")
        u.h[...] = self.horizon / self.n_layers
        for part, value, shape, meaning in zip(
            ("K", "b", "h", "W", "mu"), (K, b, h, W, mu), self._layout.shapes, meanings, strict=True
        ):
            if value is not None:
                getattr(u, part)[...] = _validation.shaped(value, part, shape, meaning, self.dtype)
        if self.time_steps == "simplex":
            u.h[...] = self._onto_simplex(u.h)
        return u

    def from_vector(self, v: ArrayLike) -> Controls:
        """Return the controls that a vector holds, ordered K, b, h, W, mu; the inverse of `Controls.to_vector`."""
        size = (self._layout.size,)
        return Controls(self._layout, _validation.shaped(v, "v", size, "(n_controls,)", self.dtype).copy())

    def forward(self, u: Controls, X: ArrayLike) -> Trajectory:
        """Return the states after every layer and the outputs."""
        vector, X = self._vector(u), self._samples(X)
        states, outputs = self._core_network.forward(vector, X, True)
        if _core.first_non_finite(outputs) >= 0 or _core.first_non_finite(states) >= 0:
            self._report_overflow(vector, X)
        return Trajectory(states, outputs)

    def predict(self, u: Controls, X: ArrayLike) -> FloatArray:
        """Return the outputs ``W y(T) + mu``, (samples, outputs); no trajectory is stored."""
        vector, X = self._vector(u), self._samples(X)
        _, outputs = self._core_network.forward(vector, X, False)
        if _core.first_non_finite(outputs) >= 0:
            self._report_overflow(vector, X)
        return outputs

    def value(
        self,
        u: Controls,
        X: ArrayLike,
        y: ArrayLike,
        objective: Objective = DEFAULT_OBJECTIVE,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the objective J(u).

        Parameters
        ----------
        u : Controls
        X : array_like of shape (samples, features)
        y : array_like of shape (samples,)
            Labels 0, 1, ...; a network with one output takes 0 and 1.
        objective : Objective
        sample_weight : array_like of shape (samples,), optional
            Weights of the samples' losses, not negative.
        """
        vector, X, labels, weights = self._problem(u, X, y, sample_weight)
        J = self._core_network.value(vector, X, labels, weights, _core_of(objective))
        if not math.isfinite(J):
            self._report_overflow(vector, X)
        return J

    def value_and_grad(
        self,
        u: Controls,
        X: ArrayLike,
        y: ArrayLike,
        objective: Objective = DEFAULT_OBJECTIVE,
        sample_weight: ArrayLike | None = None,
        *,
        input_grad: bool = False,
    ) -> tuple[float, Controls]:
        """Return J(u) and its exact gradient, by one forward and one adjoint sweep.

        Parameters are those of `value`; with ``input_grad=True`` the gradient has an attribute ``X``, the derivative
        with respect to the data.
        """
        vector, X, labels, weights = self._problem(u, X, y, sample_weight)
        J, gradient, input_gradient, finite = self._core_network.value_and_grad(
            vector, X, labels, weights, _core_of(objective), _validation.boolean(input_grad, "input_grad")
        )
        if not finite:
            self._report_overflow(vector, X)
        return J, Controls(self._layout, gradient, input_gradient)

    def adjoint(
        self,
        u: Controls,
        X: ArrayLike,
        y: ArrayLike,
        objective: Objective = DEFAULT_OBJECTIVE,
        sample_weight: ArrayLike | None = None,
    ) -> FloatArray:
        """Return the costates p[j] = dJ/dy[j] of all samples, (layers + 1, samples, dim)."""
        vector, X, labels, weights = self._problem(u, X, y, sample_weight)
        costates = self._core_network.adjoint(vector, X, labels, weights, _core_of(objective))
        if _core.first_non_finite(costates) >= 0:
            self._report_overflow(vector, X)
        return costates

    def tangent(self, u: Controls, X: ArrayLike, du: Controls | None = None, dX: ArrayLike | None = None) -> FloatArray:
        """Return the derivative of the states along a direction, (layers + 1, samples, dim).

        Parameters
        ----------
        u : Controls
        X : array_like of shape (samples, features)
        du : Controls, optional
            The direction of the controls; none: 0. On a network with fixed steps its part h counts, too.
        dX : array_like of shape (samples, features), optional
            The direction of the data; none: 0.
        """
        vector, X = self._vector(u), self._samples(X)
        direction = None if du is None else self._vector(du, "du")
        input_direction = None
        if dX is not None:
            input_direction = _validation.samples(dX, self.n_features, self.dtype, "dX")
            if len(input_direction) != len(X):
                raise ValueError(f"dX has {len(input_direction)} samples but X has {len(X)}")
        tangents = self._core_network.tangent(vector, X, direction, input_direction)
        if _core.first_non_finite(tangents) >= 0:
            self._report_overflow(vector, X)
        return tangents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Network) and self._settings == other._settings

    def __hash__(self) -> int:
        return hash(tuple(self._settings.values()))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_network_from, (self._settings,))

    def __repr__(self) -> str:
        names = self._settings | {"tableau": self.tableau.name or self.tableau, "dtype": str(self.dtype)}
        return f"Network({', '.join(f'{name}={value!r}' for name, value in names.items())})"

    def _samples(self, X: ArrayLike) -> FloatArray:
        return _validation.samples(X, self.n_features, self.dtype)

    def _problem(
        self, u: Controls, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[FloatArray, FloatArray, LabelArray, FloatArray | None]:
        if isinstance(u, Controls) and u._layout is self._layout and self._core_network.fits(u._vector, X, y):
            rows, labels = cast(FloatArray, X), cast(LabelArray, y)  # nothing to convert and nothing to refuse
            return u._vector, rows, labels, _validation.weights(sample_weight, len(rows), self.dtype)
        vector, rows = self._vector(u), self._samples(X)
        labels = _validation.labels(y, len(rows), self.n_outputs)
        return vector, rows, labels, _validation.weights(sample_weight, len(rows), self.dtype)

    def _vector(self, u: Controls, name: str = "u") -> FloatArray:
        if not isinstance(u, Controls):
            raise TypeError(
                f"{name} must be Controls, as net.init() and net.controls() make them, got {type(u).__name__}"
            )
        if u._layout is not self._layout and u._layout != self._layout:
            own = Controls(self._layout, u._vector)
            raise ValueError(f"{name} does not fit the network: it is {u!r}, the network takes {own!r}")
        bad = _core.first_non_finite(u._vector)
        if bad >= 0:
            for part in ("K", "b", "h", "W", "mu"):
                _validation.real_array(getattr(u, part), f"{name}.{part}", self.dtype)
        return u._vector

    def _onto_simplex(self, h: FloatArray) -> FloatArray:
        tolerance = self.horizon * 1e3 * float(np.finfo(self.dtype).eps) * self.n_layers
        lowest, total = int(np.argmin(h)), float(np.sum(h, dtype=np.float64))
        if h[lowest] < 0:
            raise ValueError(f"h[{lowest}] is {h[lowest]}; on the simplex no step is negative")
        if abs(total - self.horizon) > tolerance:
            raise ValueError(
                f"h sums to {total} but must sum to the horizon {self.horizon}; ocdl.project_simplex moves it there"
            )
        return project_simplex(h, self.horizon)

    def _report_overflow(self, vector: FloatArray, X: FloatArray) -> NoReturn:
        """Say where the numbers left the finite range."""
        rows = 256
        for first in range(0, len(X), rows):
            states, outputs = self._core_network.forward(vector, X[first : first + rows], True)
            for layer, state in enumerate(states):
                bad = _core.first_non_finite(state)
                if bad >= 0:
                    raise FloatingPointError(
                        f"the flow overflows {self.dtype}: the state of sample {first + bad // self.dim} is not finite "
                        f"after layer {layer - 1} of {self.n_layers}; scale the data or the controls down"
                    )
            bad = _core.first_non_finite(outputs)
            if bad >= 0:
                raise FloatingPointError(
                    f"the outputs W y + mu overflow {self.dtype} for sample {first + bad // self.n_outputs}; "
                    "scale the data or the controls down"
                )
        raise FloatingPointError(
            f"the objective or its derivatives overflow {self.dtype} although the flow is finite; "
            "scale the data or the controls down"
        )


def _explicit_tableau(tableau: str | Tableau) -> Tableau:
    if isinstance(tableau, str):
        tableau = Tableau.named(tableau)
    if not isinstance(tableau, Tableau):
        raise TypeError(f"tableau must be a name or a Tableau, got {type(tableau).__name__}")
    if not tableau.is_explicit:
        raise ValueError(f"tableau must be explicit (A strictly lower triangular), got {tableau!r}")
    return tableau


def _float_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    try:
        known = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"dtype must be 'float64' or 'float32', got {dtype!r}") from error
    if known not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise ValueError(f"dtype must be 'float64' or 'float32', got {dtype!r}")
    return known.newbyteorder("=")


def _generator(random_state: Any) -> np.random.Generator:
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_state must be None, a whole number, a numpy Generator or RandomState, got {random_state!r}"
        ) from error


def _core_of(objective: Objective) -> _core.Objective:
    if not isinstance(objective, Objective):
        raise TypeError(f"objective must be an Objective, got {type(objective).__name__}")
    return objective._core_objective


def _network_from(settings: dict[str, Any]) -> Network:
    return Network(**settings)
