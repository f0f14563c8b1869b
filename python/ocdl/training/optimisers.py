"""The optimisers: validated settings for the methods of the core."""

from __future__ import annotations

from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, cast, get_args

from ocdl import _core
from ocdl.base import validation
from ocdl.base.keywords import known_keywords
from ocdl.base.names import resolve_name

__all__ = ["LBFGS", "Adam", "Armijo", "Backtracking", "Chain", "GradientDescent", "NewtonCG"]


class Settings:
    """The base class of the optimisers: settings that the core takes by their names."""

    def __post_init__(self) -> None:
        self._validate()
        for field in fields(cast(Any, self)):  # numbers become Python's, so that equal settings have equal reprs
            value = getattr(self, field.name)
            if value is not None and field.type != "str":
                object.__setattr__(self, field.name, float(value) if field.type == "float" else int(value))

    def _validate(self) -> None: ...

    def _core_method(self, seed: int) -> _core.Method:
        """Return the core's method; those that draw batches do so from this seed."""
        settings = {name: 0 if value is None else value for name, value in asdict(cast(Any, self)).items()}
        if "batch_size" in settings:
            settings["seed"] = seed
        return _core.Method(type(self).__name__, settings)

    @property
    def _vectors(self) -> int:
        """The number of vectors of controls that the method holds: two iterates with their gradients."""
        return 4


@known_keywords({"lr": "step", "learning_rate": "step", "step_size": "step"})
@dataclass(frozen=True)
class GradientDescent(Settings):
    """Algorithm 1 of the paper: ``u <- P(u - step g)``, with the projection P onto the simplex of time steps.

    Parameters
    ----------
    step : float
        The length of the step in units of the gradient, positive.

    Raises
    ------
    TypeError, ValueError
        If a setting is not a number of its range; the message names it.

    Examples
    --------
    >>> import ocdl
    >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
    >>> net = ocdl.Network(2, 5)
    >>> r = ocdl.train(net, net.init(random_state=0), X, y, optimiser=ocdl.GradientDescent(step=0.1), max_iter=20)
    >>> bool(r.history.loss[-1] < r.history.loss[0])
    True
    """

    step: float

    def _validate(self) -> None:
        validation.positive(self.step, "step")


@known_keywords()
@dataclass(frozen=True)
class Backtracking(Settings):
    """Algorithm 2 of the paper: gradient steps of length 1/L, with L determined by trial.

    A trial ``u~ = P(u - g / L)`` is accepted once ``J(u~) <= J(u) + <g, u~ - u> + L/2 |u~ - u|^2``, up to roundoff. The
    loss never increases.

    Parameters
    ----------
    L0 : float
        The first L.
    rho_up : float
        L is multiplied by this after a trial that is rejected; above 1.
    rho_down : float
        L is multiplied by this after an iteration; positive, at most 1.
    max_trials : int
        Trials of one iteration; when all are rejected the training ends.

    Raises
    ------
    TypeError, ValueError
        If a setting is not a number of its range; the message names it.

    Examples
    --------
    >>> import ocdl
    >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
    >>> net = ocdl.Network(2, 5)
    >>> r = ocdl.train(net, net.init(random_state=0), X, y, optimiser=ocdl.Backtracking(), max_iter=20)
    >>> bool(r.history.loss[-1] < r.history.loss[0])
    True
    """

    L0: float = 0.1
    rho_up: float = 1.5
    rho_down: float = 0.99
    max_trials: int = 200

    def _validate(self) -> None:
        validation.positive(self.L0, "L0")
        if validation.real(self.rho_up, "rho_up") <= 1:
            raise ValueError(f"rho_up must be above 1, got {self.rho_up}")
        _fraction(self.rho_down, "rho_down", one_allowed=True)
        validation.integer(self.max_trials, "max_trials", minimum=1)


@known_keywords()
@dataclass(frozen=True)
class Armijo(Settings):
    """Gradient steps of a length t determined by trial, as in the paper's comparison of Runge-Kutta methods.

    A trial ``u~ = P(u - t g)`` is accepted once ``J(u~) <= J(u) + c <g, u~ - u>``, up to roundoff.

    Parameters
    ----------
    c : float
        The fraction of the predicted decrease that a step must reach, between 0 and 1.
    shrink : float
        t is multiplied by this after a trial that is rejected, between 0 and 1.
    grow : float
        The first trial of an iteration is `grow` times the last accepted t, at least 1.
    first_step, max_step : float
        The very first trial, and the largest of all.
    max_trials : int
        Trials of one iteration; when all are rejected the training ends.

    Raises
    ------
    TypeError, ValueError
        If a setting is not a number of its range; the message names it.

    Examples
    --------
    >>> import ocdl
    >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
    >>> net = ocdl.Network(2, 5)
    >>> r = ocdl.train(net, net.init(random_state=0), X, y, optimiser=ocdl.Armijo(), max_iter=20)
    >>> bool(r.history.loss[-1] < r.history.loss[0])
    True
    """

    c: float = 0.4
    shrink: float = 0.5
    grow: float = 2.0
    first_step: float = 0.1
    max_step: float = 10.0
    max_trials: int = 100

    def _validate(self) -> None:
        _fraction(self.c, "c")
        _fraction(self.shrink, "shrink")
        if validation.positive(self.grow, "grow") < 1:
            raise ValueError(f"grow must be at least 1, got {self.grow}")
        validation.positive(self.first_step, "first_step")
        validation.positive(self.max_step, "max_step")
        validation.integer(self.max_trials, "max_trials", minimum=1)


@known_keywords({"learning_rate": "lr", "learning_rate_init": "lr", "step": "lr", "betas": "beta1", "eps": "epsilon"})
@dataclass(frozen=True)
class Adam(Settings):
    """Adam (Kingma and Ba 2015), on all samples or on batches; an iteration is one step.

    Parameters
    ----------
    lr : float
        The learning rate: about the length of the step of each control.
    batch_size : int, optional
        Samples per step, drawn without replacement from a new random order in every epoch; none: all samples. The
        losses and gradients in the history are then those of the batches.
    beta1, beta2 : float
        The decay rates of the averages of the gradient and of its square, at least 0 and below 1.
    epsilon : float
        Added to the root of the averaged square.

    Raises
    ------
    TypeError, ValueError
        If a setting is not a number of its range; the message names it.

    Examples
    --------
    >>> import ocdl
    >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
    >>> net = ocdl.Network(2, 5)
    >>> adam = ocdl.Adam(lr=0.05, batch_size=20)
    >>> r = ocdl.train(net, net.init(random_state=0), X, y, optimiser=adam, max_iter=20, random_state=0)
    >>> bool(r.history.loss[-1] < r.history.loss[0])
    True
    """

    lr: float = 0.05
    batch_size: int | None = None
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def _validate(self) -> None:
        validation.positive(self.lr, "lr")
        if self.batch_size is not None:
            validation.integer(self.batch_size, "batch_size", minimum=1)
        for name in ("beta1", "beta2"):
            if validation.not_negative(getattr(self, name), name) >= 1:
                raise ValueError(f"{name} must be below 1, got {getattr(self, name)}")
        validation.positive(self.epsilon, "epsilon")

    @property
    def _vectors(self) -> int:
        return super()._vectors + 5  # the direction, both averages and their next values


@known_keywords({"m": "memory", "history_size": "memory"})
@dataclass(frozen=True)
class LBFGS(Settings):
    """The limited-memory BFGS method with a strong Wolfe search.

    With time steps on the simplex, directions are reduced to the face on which the steps can move and searched along
    the projected arc.

    Parameters
    ----------
    memory : int
        Pairs of steps and gradient changes that make up the model of the curvature.
    max_trials : int
        Evaluations of one line search; when none lowers the loss the training ends.

    Raises
    ------
    TypeError, ValueError
        If a setting is not a number of its range; the message names it.

    Examples
    --------
    >>> import ocdl
    >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
    >>> net = ocdl.Network(2, 5)
    >>> r = ocdl.train(net, net.init(random_state=0), X, y, optimiser=ocdl.LBFGS(memory=10), max_iter=20)
    >>> bool(r.history.loss[-1] < r.history.loss[0])
    True
    """

    memory: int = 20
    max_trials: int = 25

    def _validate(self) -> None:
        validation.integer(self.memory, "memory", minimum=1)
        validation.integer(self.max_trials, "max_trials", minimum=1)

    @property
    def _vectors(self) -> int:
        return super()._vectors + 3 + 2 * (self.memory + 1)  # the search, the direction, and the pairs


@known_keywords()
@dataclass(frozen=True)
class NewtonCG(Settings):
    """Newton's method with conjugate gradients within a trust region (Steihaug 1983).

    An iteration minimises the model ``<g, s> + 1/2 <s, B s>`` over ``|s| <= radius`` by conjugate gradients, until the
    residual is at most ``min(forcing, sqrt(|g|)) |g|``, the region ends or a direction has negative curvature.
    It then tries ``P(u + t s)`` for t = 1 and less until ``J(u~) <= J(u) + 1e-4 <g, u~ - u>`` or, where that is within
    the roundoff of J, the gradient is smaller; the loss never increases by more than its roundoff. It adapts
    the radius to how well the model has predicted the decrease. With time steps on the simplex, s is reduced to
    the face on which the steps can move. Every product with B counts as 3 evaluations in `Result.n_evals` and
    `History.trials`, about its cost. The products of float32 networks are computed in float64.

    Parameters
    ----------
    curvature : {"hessian", "gauss_newton"}
        Which matrix B is: see `Network.hessian_product` and `Network.gauss_newton_product`.
    radius : float
        The first radius.
    forcing : float
        The factor by which the gradient of the model is reduced, between 0 and 1.
    max_products : int
        Conjugate gradient steps of one iteration.
    max_trials : int
        Trial steps of one iteration; when all are rejected the training ends.

    Raises
    ------
    TypeError, ValueError
        If a setting is not a number of its range; the message names it.

    Examples
    --------
    >>> import ocdl
    >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
    >>> net = ocdl.Network(2, 5)
    >>> r = ocdl.train(net, net.init(random_state=0), X, y, optimiser=ocdl.NewtonCG(), max_iter=20)
    >>> bool(r.history.loss[-1] < r.history.loss[0])
    True
    """

    curvature: str = "hessian"
    radius: float = 1.0
    forcing: float = 0.5
    max_products: int = 20
    max_trials: int = 25

    def _validate(self) -> None:
        object.__setattr__(self, "curvature", validation.choice(self.curvature, "curvature", _core.curvature_names()))
        validation.positive(self.radius, "radius")
        _fraction(self.forcing, "forcing")
        validation.integer(self.max_products, "max_products", minimum=1)
        validation.integer(self.max_trials, "max_trials", minimum=1)

    @property
    def _vectors(self) -> int:
        return super()._vectors + 10  # conjugate gradients, and dual numbers


Optimiser = GradientDescent | Backtracking | Armijo | Adam | LBFGS | NewtonCG
SINGLE_OPTIMISERS: tuple[Any, ...] = get_args(Optimiser)
ALIASES = {
    "gd": "GradientDescent",
    "newton": "NewtonCG",
    "algorithm 1": "GradientDescent",
    "algorithm 2": "Backtracking",
}


class Chain:
    """Optimisers one after the other, each for some of the iterations.

    Parameters
    ----------
    *stages : (optimiser, int or None)
        An optimiser and its iterations; None, for the last one only: as many as are left. An optimiser that makes no
        more progress ends earlier.

    Attributes
    ----------
    stages : tuple of (optimiser, int or None)
        The optimisers, each with its iterations.

    Raises
    ------
    TypeError
        If a stage is no pair of an optimiser and a number.
    ValueError
        If there is no stage, or None stands before the last one.

    Examples
    --------
    >>> import ocdl
    >>> chain = ocdl.Chain((ocdl.GradientDescent(step=0.1), 150), (ocdl.LBFGS(), None))
    >>> chain
    Chain((GradientDescent(step=0.1), 150), (LBFGS(memory=20, max_trials=25), None))
    >>> chain.stages[1]
    (LBFGS(memory=20, max_trials=25), None)
    """

    def __init__(self, *stages: tuple[Optimiser, int | None]) -> None:
        if not stages:
            raise ValueError("Chain needs at least one stage, a pair (optimiser, iterations)")
        checked = []
        for number, stage in enumerate(stages):
            if not isinstance(stage, tuple) or len(stage) != 2:
                raise TypeError(
                    f"stage {number} of a Chain must be a pair (optimiser, iterations), "
                    f"got {validation.format_value(stage)}"
                )
            method, iterations = stage
            single_optimiser(method, f"the optimiser of stage {number}")
            if iterations is not None:
                iterations = validation.integer(iterations, f"the iterations of stage {number}", minimum=0)
            elif number + 1 < len(stages):
                raise ValueError(f"stage {number} of a Chain is not the last: it needs a number of iterations")
            checked.append((method, iterations))
        self.stages: tuple[tuple[Optimiser, int | None], ...] = tuple(checked)

    def __repr__(self) -> str:
        return f"Chain({', '.join(map(repr, self.stages))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Chain) and self.stages == other.stages

    def __hash__(self) -> int:
        return hash(self.stages)


def single_optimiser(value: Any, name: str) -> Optimiser:
    """Return an optimiser that is not a chain."""
    if not isinstance(value, SINGLE_OPTIMISERS):
        known = [kind.__name__ for kind in SINGLE_OPTIMISERS]
        name_meant = resolve_name(value, known, ALIASES) if isinstance(value, str) else None
        hint = f"; did you mean ocdl.{name_meant}()?" if name_meant else ""
        raise TypeError(f"{name} must be one of {', '.join(known)}, got {validation.format_value(value)}{hint}")
    return cast(Optimiser, value)


def optimiser_by_name(name: object, argument: str = "optimiser") -> Optimiser:
    """Return the optimiser of this name, ``"adam"`` or ``"L-BFGS"``, with its default settings."""
    known = {type(optimiser).__name__: optimiser for optimiser in list_default_optimisers()}
    return known[validation.choice(name, argument, known, ALIASES)]


def list_default_optimisers() -> list[Optimiser]:
    """Return the optimisers whose settings all have defaults."""
    return [kind() for kind in SINGLE_OPTIMISERS if all(field.default is not MISSING for field in fields(kind))]


def stages_of(optimiser: Any) -> tuple[tuple[Optimiser, int | None], ...]:
    """Return the optimisers of a training, each with its number of iterations."""
    if isinstance(optimiser, Chain):
        return optimiser.stages
    return ((single_optimiser(optimiser, "optimiser"), None),)


def _fraction(value: object, name: str, *, one_allowed: bool = False) -> None:
    number = validation.positive(value, name)
    if number > 1 or (number == 1 and not one_allowed):
        raise ValueError(f"{name} must be {'at most' if one_allowed else 'below'} 1, got {number}")


def to_dict(optimiser: Optimiser | Chain) -> dict[str, Any]:
    """Return an optimiser as JSON can hold it."""
    if isinstance(optimiser, Chain):
        return {"Chain": [[to_dict(method), iterations] for method, iterations in optimiser.stages]}
    return {type(optimiser).__name__: asdict(optimiser)}


def from_dict(stored: Any) -> Optimiser | Chain:
    """Return the optimiser of `to_dict`; ValueError or TypeError where it is none."""
    if not isinstance(stored, dict) or len(stored) != 1:
        raise ValueError(f"an optimiser is stored under its name, got {stored!r:.80}")
    ((name, settings),) = stored.items()
    if name == "Chain":
        if not isinstance(settings, list) or not all(isinstance(stage, list) and len(stage) == 2 for stage in settings):
            raise ValueError("a Chain is stored as a list of pairs")
        return Chain(*((single_optimiser(from_dict(method), "a stage"), n) for method, n in settings))
    kinds = {kind.__name__: kind for kind in SINGLE_OPTIMISERS}
    if name not in kinds or not isinstance(settings, dict):
        raise ValueError(f"no optimiser is stored like this: {stored!r:.80}")
    return cast(Optimiser, kinds[name](**settings))
