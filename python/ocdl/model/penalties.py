"""Penalties of the controls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ocdl import _core
from ocdl.base import validation
from ocdl.model.controls import Part

__all__ = ["L1", "EvenSteps", "GroupL1", "Kinetic", "Penalty", "Tikhonov", "TimeSmoothness"]

_NONSMOOTH = _core.penalties()  # by name


class Penalty:
    """A penalty of the controls, for ``Objective(penalties=...)``: the base class of `Tikhonov`, `L1` and others.

    Attributes
    ----------
    name : str
    weight : float
    parts : tuple of str or None
        The parts of the controls that it acts on; None: those that the subclass names.
    is_nonsmooth : bool
        Whether it has no gradient where a control is 0.

    Examples
    --------
    >>> import ocdl
    >>> penalty = ocdl.L1(0.01, parts=["W"])
    >>> isinstance(penalty, ocdl.Penalty), penalty.name, penalty.weight, penalty.parts, penalty.is_nonsmooth
    (True, 'l1', 0.01, ('W',), True)
    >>> penalty == ocdl.L1(0.01, parts=("W",))
    True
    """

    name: ClassVar[str]
    is_nonsmooth: ClassVar[bool]
    weight: float
    parts: Sequence[str] | None = None

    def __init_subclass__(cls) -> None:
        if vars(cls).get("name") not in _NONSMOOTH:
            raise TypeError(
                f"Penalty cannot be subclassed by {cls.__name__}: the core computes the penalties of ocdl only"
            )
        cls.is_nonsmooth = _NONSMOOTH[cls.name]

    def __init__(self) -> None:
        raise TypeError(
            "Penalty is a base class: create one of Tikhonov, L1, GroupL1, TimeSmoothness, EvenSteps and Kinetic"
        )

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", validation.not_negative(self.weight, "weight"))
        if self.parts is not None:
            object.__setattr__(self, "parts", _validate_names(self.parts))

    def __repr__(self) -> str:
        parts = "" if self.parts is None else f", parts={self.parts!r}"
        return f"{type(self).__name__}({self.weight!r}{parts})"


def _validate_names(parts: Any) -> tuple[str, ...]:
    collection = validation.collection_of_names(parts, "parts", ("K", "W"))
    names = tuple(validation.text(part, "a name in parts") for part in collection)
    if not names:
        raise ValueError("parts must name at least one part of the controls")
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True, repr=False)
class Tikhonov(Penalty):
    """The penalty ``weight / 2 * |u|^2`` of the controls.

    Parameters
    ----------
    weight : float
        Not negative.
    parts : collection of str, optional
        The parts of the controls that count; none: all but the time steps, that is ``("K", "b", "W", "mu")``.

    Raises
    ------
    TypeError, ValueError
        If `weight` is not a finite number, or negative, or `parts` names none.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(1, 1)
    >>> u = net.controls(K=[[[3.0]]], W=[[4.0]])
    >>> objective = ocdl.Objective("squared_error", penalties=ocdl.Tikhonov(0.1, parts=("K",)))
    >>> round(net.value(u, [[0.0]], [0.0], objective), 6)  # 0.1 / 2 * 3^2
    0.45
    """

    name = "tikhonov"
    weight: float
    parts: Sequence[str] | None = None


@dataclass(frozen=True, repr=False)
class L1(Penalty):
    """The penalty ``weight * |u|_1`` of the controls, which makes many of them exactly 0.

    `GradientDescent`, `Backtracking` and `Armijo` take its proximal map, the soft threshold; `LBFGS` becomes
    orthant-wise (OWL-QN, Andrew and Gao 2007). `Adam` takes the subgradient, which is 0 at 0, and gives no exact
    zeros. `NewtonCG` refuses it.

    Parameters
    ----------
    weight : float
        Not negative.
    parts : collection of str, optional
        As for `Tikhonov`. Training refuses "h" with steps on the simplex, where ``|h|_1`` is the horizon.

    Raises
    ------
    TypeError, ValueError
        If `weight` is not a finite number, or negative, or `parts` names none.

    Examples
    --------
    >>> import ocdl
    >>> ocdl.L1(0.01, parts=("W",))
    L1(0.01, parts=('W',))
    >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
    >>> net = ocdl.Network(2, 5)
    >>> objective = ocdl.Objective("cross_entropy", penalties=ocdl.L1(0.05))
    >>> r = ocdl.train(net, net.init(random_state=0), X, y, objective=objective, max_iter=200)
    >>> int((r.controls.K == 0).sum()), r.controls.K.size
    (20, 20)
    """

    name = "l1"
    weight: float
    parts: Sequence[str] | None = None


@dataclass(frozen=True, repr=False)
class GroupL1(Penalty):
    """The penalty ``weight * sum_j |u_j|_2`` of groups of controls, which makes whole groups exactly 0.

    Group j has the entries with index j on one axis of all given parts, in every layer. With ``parts=("K", "W")`` and
    ``axis="dim"`` it is column j of K and W: how feature j enters. With ``parts=("K", "b", "V")`` and ``axis="width"``
    of the field "mlp" it is hidden unit j, which `Network.prune` removes. Methods take it as `L1`.

    Parameters
    ----------
    weight : float
        Not negative.
    parts : collection of str
        Parts of the controls that have the axis, at the same length.
    axis : str
        The name of an axis, as ``net.parts`` has them; of two with this name the last one counts.

    Raises
    ------
    TypeError, ValueError
        If `weight` is not a finite number, or negative, `parts` names none, or `axis` is no name.

    Examples
    --------
    >>> import numpy as np, ocdl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 4))
    >>> net = ocdl.Network(4, 3)  # only two of four features matter
    >>> objective = ocdl.Objective("cross_entropy", penalties=ocdl.GroupL1(0.01, ("K", "W"), "dim"))
    >>> r = ocdl.train(net, net.init(0), X, X[:, 0] > X[:, 1] ** 2, objective=objective, max_iter=500)
    >>> [bool(np.any(r.controls.K[:, :, j])) for j in range(4)]
    [True, True, False, False]
    """

    name = "group_l1"
    weight: float
    parts: Sequence[str] = field()  # without the default of the base class
    axis: str = field()

    def __post_init__(self) -> None:
        super().__post_init__()
        validation.text(self.axis, "axis")

    def __repr__(self) -> str:
        return f"GroupL1({self.weight!r}, {self.parts!r}, {self.axis!r})"

    def _require_fit(self, parts: Mapping[str, Part]) -> None:
        """Raise if one of the parts lacks the axis, or two have it at different lengths."""
        lengths = {}
        for name in self.parts:
            axes = parts[name].axes
            if self.axis not in axes:
                raise ValueError(f"penalties: {self!r} groups by the axis {self.axis!r}, but {name} has {axes}")
            lengths[name] = dict(zip(axes, parts[name].shape, strict=True))[self.axis]
        if len(set(lengths.values())) > 1:
            raise ValueError(f"penalties: {self!r} groups by an axis of different lengths: {lengths}")


@dataclass(frozen=True, repr=False)
class TimeSmoothness(Penalty):
    """The penalty ``weight / 2 * N/T * sum_j |(K, b)[j+1] - (K, b)[j]|^2`` on a network of N layers.

    With control intervals j counts these, and N is their number.

    Parameters
    ----------
    weight : float
        Not negative.

    Raises
    ------
    TypeError, ValueError
        If `weight` is not a finite number, or negative.

    Examples
    --------
    Controls that do not change from layer to layer cost nothing:

    >>> import numpy as np, ocdl
    >>> net = ocdl.Network(2, 5)
    >>> u = net.controls(K=np.ones((5, 2, 2)))
    >>> smooth = ocdl.Objective(penalties=ocdl.TimeSmoothness(1.0))
    >>> net.value(u, [[0.0, 1.0]], [1], smooth) == net.value(u, [[0.0, 1.0]], [1])
    True
    """

    name = "time_smoothness"
    weight: float


@dataclass(frozen=True, repr=False)
class EvenSteps(Penalty):
    """The penalty ``weight / 2 * sum_j ((h[j] - T/N) / (T/N))^2`` of learned time steps.

    Without one, learned steps grow and evade the penalties of K and b: a larger step does what a larger K would do.

    Parameters
    ----------
    weight : float
        Not negative.

    Raises
    ------
    TypeError, ValueError
        If `weight` is not a finite number, or negative.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(2, 2, time_steps="free")
    >>> even = ocdl.Objective(penalties=ocdl.EvenSteps(1.0))
    >>> u = net.controls(h=[1.0, 0.5])  # one of them twice the even step
    >>> net.value(u, [[0.0, 1.0]], [1], even) - net.value(u, [[0.0, 1.0]], [1])
    0.5
    """

    name = "even_steps"
    weight: float


@dataclass(frozen=True, repr=False)
class Kinetic(Penalty):
    """The kinetic energy of the samples, ``weight * sum_j |h[j]| sum_i b[i] |k_i|^2``, with the stage values k_i.

    It is a running cost: the flow moves the samples no farther and no faster than the loss requires. Samples count
    with their weights, and are averaged or added up as the losses are. Products with the Hessian contain it,
    Gauss-Newton products do not.

    Parameters
    ----------
    weight : float
        Not negative.

    Raises
    ------
    TypeError, ValueError
        If `weight` is not a finite number, or negative. Networks raise it if they are feed-forward, or their tableau
        has a negative weight b[i], so that the energy has no lower bound; so do custom losses.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(1, 4, activation="identity")
    >>> u = net.controls(b=[[3.0]] * 4)  # y' = 3 for a time of 1
    >>> energy = ocdl.Objective("squared_error", penalties=ocdl.Kinetic(0.1))
    >>> round(net.value(u, [[0.0]], [0.0], energy), 12)
    0.9
    """

    name = "kinetic"
    weight: float


PENALTIES: dict[str, type[Penalty]] = {
    kind.name: kind for kind in (Tikhonov, L1, GroupL1, TimeSmoothness, EvenSteps, Kinetic)
}


def validate_penalties(penalties: Penalty | Iterable[Penalty] | None) -> tuple[Penalty, ...]:
    """Return one penalty, several or None as a tuple."""
    if penalties is None:
        return ()
    if isinstance(penalties, Penalty):
        return (penalties,)
    accepted = f"one of {', '.join(kind.__name__ for kind in PENALTIES.values())}, a sequence of these, or None"
    if not isinstance(penalties, (list, tuple)):
        raise TypeError(f"penalties must be {accepted}, got {validation.format_with_type(penalties)}")
    for i, penalty in enumerate(penalties):
        if not isinstance(penalty, Penalty):
            raise TypeError(
                f"penalties must be {accepted}, got {validation.format_with_type(penalty)} as penalties[{i}]"
            )
    return tuple(penalties)


def penalties_to_list(penalties: Iterable[Penalty]) -> list[list[Any]]:
    """Return the penalties as JSON can hold them, each as [name, weight, parts], and of groups the axis."""
    return [
        [
            penalty.name,
            penalty.weight,
            penalty.parts and list(penalty.parts),
            *([penalty.axis] if isinstance(penalty, GroupL1) else []),
        ]
        for penalty in penalties
    ]


def penalties_from_list(stored: Any) -> tuple[Penalty, ...]:
    """Return the penalties of `penalties_to_list`; ValueError or TypeError if it is no such list."""
    if not isinstance(stored, list) or not all(
        isinstance(penalty, list) and 3 <= len(penalty) <= 4 for penalty in stored
    ):
        raise ValueError(f"penalties are stored as a list of [name, weight, parts], got {stored!r:.80}")
    penalties = []
    for name, weight, parts, *axis in stored:
        kind: Any = PENALTIES[validation.choice(name, "the name of a penalty", PENALTIES)]
        penalties.append(kind(weight, *([] if parts is None else [parts]), *axis))
    return tuple(penalties)
