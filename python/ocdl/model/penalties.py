"""Penalties of the controls, and their sums."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ocdl import _core
from ocdl.base import validation

__all__ = ["L1", "EvenSteps", "Penalty", "Regulariser", "Tikhonov", "TimeSmoothness"]

PENALTIES = _core.penalties()  # by name: whether it is nonsmooth where a control is 0


@dataclass(frozen=True)
class Penalty:
    """One term of a `Regulariser`: which penalty, its weight, and the parts of the controls that it acts on.

    ``parts=None`` means all but the time steps, which carry the horizon.
    """

    name: str
    weight: float
    parts: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", validation.choice(self.name, "name", PENALTIES))
        object.__setattr__(self, "weight", validation.not_negative(self.weight, "weight"))
        if self.parts is not None:
            object.__setattr__(self, "parts", _names(self.parts))

    @property
    def is_nonsmooth(self) -> bool:
        """Whether it has no gradient where a control is 0."""
        return PENALTIES[self.name]

    def __str__(self) -> str:
        parts = "" if self.parts is None else f", parts={self.parts!r}"
        return f"{title_of(self.name)}({self.weight!r}{parts})"


def title_of(penalty: str) -> str:
    """Return the name of the function that makes a penalty: ``TimeSmoothness`` for "time_smoothness"."""
    return penalty.title().replace("_", "")


def _names(parts: Any) -> tuple[str, ...]:
    try:
        given = None if isinstance(parts, (str, bytes)) else list(parts)
    except TypeError:
        given = None
    if given is None:
        raise TypeError(f"parts must be a collection of names, as in ('K', 'W'), got {validation.written(parts)}")
    names = tuple(validation.text(part, "a name in parts") for part in given)
    if not names:
        raise ValueError("parts must name at least one part of the controls")
    return tuple(dict.fromkeys(names))


class Regulariser:
    """The penalty R(u): a sum of `Tikhonov`, `L1`, `TimeSmoothness` and `EvenSteps` terms.

    Parameters
    ----------
    *terms : Penalty
        The terms; the weights of equal ones are added.
    **weights : float
        Weights of penalties by their names: ``tikhonov``, ``l1``, ``time_smoothness``, ``even_steps``.

    Attributes
    ----------
    terms : tuple of Penalty
        The terms, each with ``name``, ``weight`` and ``parts``.

    Raises
    ------
    TypeError
        If a term is no penalty.
    ValueError
        If a name is not known, or a weight is negative or not finite.

    Examples
    --------
    >>> import ocdl
    >>> ocdl.Tikhonov(1e-3) + ocdl.TimeSmoothness(0.1)
    Tikhonov(0.001) + TimeSmoothness(0.1)
    >>> ocdl.Regulariser(tikhonov=1e-3) == ocdl.Tikhonov(1e-3)
    True
    >>> [term.weight for term in (ocdl.Tikhonov(1e-3) + ocdl.Tikhonov(2e-3)).terms]
    [0.003]
    """

    __slots__ = ("terms",)
    terms: tuple[Penalty, ...]

    def __init__(self, *terms: Penalty, **weights: float) -> None:
        for term in terms:
            if not isinstance(term, Penalty):
                raise TypeError(f"terms must be Penalty records, got {type(term).__name__}")
        for name, weight in weights.items():
            penalty = validation.choice(name, "the name of a penalty", PENALTIES)
            terms = (*terms, Penalty(penalty, validation.not_negative(weight, name)))
        merged: dict[tuple[str, tuple[str, ...] | None], float] = {}
        for term in terms:
            key = term.name, term.parts
            merged[key] = merged.get(key, 0.0) + term.weight
        kept = (Penalty(name, weight, parts) for (name, parts), weight in merged.items() if weight)
        places = list(PENALTIES)
        order = sorted(kept, key=lambda term: (places.index(term.name), term.parts or ()))
        object.__setattr__(self, "terms", tuple(order))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Regulariser does not change; {name!r} cannot be set")

    def weight(self, name: str) -> float:
        """Return the weight of a penalty on its usual parts; 0 where it is no term.

        Parameters
        ----------
        name : str
            The name of a penalty.

        Returns
        -------
        float

        Examples
        --------
        >>> import ocdl
        >>> ocdl.Tikhonov(0.5).weight("tikhonov"), ocdl.Tikhonov(0.5).weight("l1")
        (0.5, 0.0)
        """
        return next((term.weight for term in self.terms if term.name == name and term.parts is None), 0.0)

    def __getattr__(self, name: str) -> float:
        if name in PENALTIES:
            return self.weight(name)
        raise AttributeError(f"a Regulariser has no {name!r}; its penalties are {', '.join(PENALTIES)}")

    def __add__(self, other: object) -> Regulariser:
        if not isinstance(other, Regulariser):
            return NotImplemented
        return Regulariser(*self.terms, *other.terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Regulariser) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.terms)

    def __repr__(self) -> str:
        return " + ".join(map(str, self.terms)) or "Regulariser()"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Regulariser, self.terms)

    def to_list(self) -> list[list[Any]]:
        """Return the terms as JSON can hold them.

        Returns
        -------
        list of [name, weight, parts]
            ``parts`` is None where they are the usual ones.

        Examples
        --------
        >>> import ocdl
        >>> ocdl.Tikhonov(0.5, parts=("K",)).to_list()
        [['tikhonov', 0.5, ['K']]]
        """
        return [[term.name, term.weight, None if term.parts is None else list(term.parts)] for term in self.terms]

    @staticmethod
    def from_list(stored: Any) -> Regulariser:
        """Return the regulariser that `to_list` has written.

        Parameters
        ----------
        stored : list of [name, weight, parts]

        Returns
        -------
        Regulariser

        Raises
        ------
        ValueError, TypeError
            If it is no such list.

        Examples
        --------
        >>> import ocdl
        >>> ocdl.Regulariser.from_list([["l1", 0.5, None]])
        L1(0.5)
        """
        if not isinstance(stored, list) or not all(isinstance(term, list) and len(term) == 3 for term in stored):
            raise ValueError(f"a regulariser is stored as a list of (name, weight, parts), got {stored!r:.80}")
        return Regulariser(*(Penalty(*term) for term in stored))


def Tikhonov(weight: float, parts: Iterable[str] | None = None) -> Regulariser:
    """Return the penalty ``weight / 2 * |u|^2`` of the controls.

    Parameters
    ----------
    weight : float
        Not negative.
    parts : collection of str, optional
        The parts of the controls that count; none: all but the time steps, that is ``("K", "b", "W", "mu")``.

    Returns
    -------
    Regulariser

    Raises
    ------
    TypeError, ValueError
        If `weight` is not a finite number, or negative, or `parts` names none.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(1, 1)
    >>> u = net.controls(K=[[[3.0]]], W=[[4.0]])
    >>> objective = ocdl.Objective("squared_error", regulariser=ocdl.Tikhonov(0.1, parts=("K",)))
    >>> round(net.value(u, [[0.0]], [0.0], objective), 6)  # 0.1 / 2 * 3^2
    0.45
    """
    return _single("tikhonov", weight, parts)


def L1(weight: float, parts: Iterable[str] | None = None) -> Regulariser:
    """Return the penalty ``weight * |u|_1`` of the controls, which makes many of them exactly 0.

    `GradientDescent`, `Backtracking` and `Armijo` take its proximal map, the soft threshold; `LBFGS` becomes
    orthant-wise (OWL-QN, Andrew and Gao 2007). `Adam` takes the subgradient, which is 0 at 0, and gives no exact
    zeros. `NewtonCG` refuses it.

    Parameters
    ----------
    weight : float
        Not negative.
    parts : collection of str, optional
        As for `Tikhonov`. Training refuses "h" with steps on the simplex, where ``|h|_1`` is the horizon.

    Returns
    -------
    Regulariser

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
    >>> objective = ocdl.Objective("cross_entropy", regulariser=ocdl.L1(0.05))
    >>> r = ocdl.train(net, net.init(random_state=0), X, y, objective=objective, max_iter=200)
    >>> int((r.controls.K == 0).sum()), r.controls.K.size
    (20, 20)
    """
    return _single("l1", weight, parts)


def TimeSmoothness(weight: float) -> Regulariser:
    """Return the penalty ``weight / 2 * N/T * sum_j |(K, b)[j+1] - (K, b)[j]|^2`` on a network of N layers.

    Parameters
    ----------
    weight : float
        Not negative.

    Returns
    -------
    Regulariser

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
    >>> smooth = ocdl.Objective(regulariser=ocdl.TimeSmoothness(1.0))
    >>> net.value(u, [[0.0, 1.0]], [1], smooth) == net.value(u, [[0.0, 1.0]], [1])
    True
    """
    return _single("time_smoothness", weight, None)


def EvenSteps(weight: float) -> Regulariser:
    """Return the penalty ``weight / 2 * sum_j ((h[j] - T/N) / (T/N))^2`` of learned time steps.

    Without one, learned steps grow and evade the penalties of K and b: a larger step does what a larger K would do.

    Parameters
    ----------
    weight : float
        Not negative.

    Returns
    -------
    Regulariser

    Raises
    ------
    TypeError, ValueError
        If `weight` is not a finite number, or negative.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(2, 2, time_steps="free")
    >>> even = ocdl.Objective(regulariser=ocdl.EvenSteps(1.0))
    >>> u = net.controls(h=[1.0, 0.5])  # one of them twice the even step
    >>> net.value(u, [[0.0, 1.0]], [1], even) - net.value(u, [[0.0, 1.0]], [1])
    0.5
    """
    return _single("even_steps", weight, None)


def _single(name: str, weight: float, parts: Iterable[str] | None) -> Regulariser:
    return Regulariser(Penalty(name, weight, None if parts is None else _names(parts)))
