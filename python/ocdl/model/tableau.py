"""Runge-Kutta methods as data."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocdl import _core
from ocdl.base import markup, validation

__all__ = ["Tableau", "method_of", "tableaux"]

ALIASES = {
    "ResNet/Euler": "euler",  # the paper's name; "Improved Euler" is spelled like ours
    "Kutta(3)": "kutta3",
    "Kutta(4)": "kutta4",
    "forward_euler": "euler",
    "explicit_euler": "euler",
    "heun": "improved_euler",
    "heun2": "improved_euler",
    "explicit_midpoint": "midpoint",
    "rk4": "kutta4",
    "rk45": "dormand_prince",
    "dopri5": "dormand_prince",
    "backward_euler": "implicit_euler",
    "crank_nicolson": "trapezoidal",
}

# Second weights of named methods, whose order is lower by one.
EMBEDDED_WEIGHTS = {
    "improved_euler": (1.0, 0.0),
    "dormand_prince": (5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40),
}

LARGEST_DENOMINATOR = 100_000  # of a coefficient that is written as a fraction


class Tableau:
    """The coefficients of a Runge-Kutta method.

    One step of size ``h`` for ``y' = f(y)`` with ``s`` stages is ::

        y_i = y + h * sum_j A[i, j] * k_j,   k_i = f(y_i),   y_new = y + h * sum_i b[i] * k_i

    A tableau is immutable. Two tableaux are equal when their coefficients ``A``, ``b`` and ``c`` are, whatever their
    names.

    Parameters
    ----------
    A : array_like of shape (s, s)
        Stage coefficients. Fractions are accepted.
    b : array_like of shape (s,)
        Weights; they sum to 1.
    c : array_like of shape (s,), optional
        Abscissae; by default the row sums of `A`.
    b_embedded : array_like of shape (s,), optional
        Second weights, which sum to 1: the difference of both steps estimates the error of a step. Named methods that
        have them are "improved_euler" and "dormand_prince".
    name : str, optional
        The name of the method. An empty name counts as none.

    Attributes
    ----------
    A, b, c : ndarray of float64
        The coefficients, read-only.
    b_embedded : ndarray of float64 or None
        The second weights, read-only, if there are any.
    name : str or None
        The name, if there is one.
    stages : int
        The number of stages, ``s``.
    order : int
        The order of convergence, derived from the order conditions of all rooted trees of up to six nodes. Methods
        of a higher order report 6.
    is_explicit : bool
        Whether `A` is strictly lower triangular.
    contractivity_radius : float
        How long steps may be that expand no distance, derived from `A` and `b`.

    Raises
    ------
    TypeError
        If a coefficient is not a real number or `name` not a string.
    ValueError
        If a shape does not fit, a coefficient is not finite, or `b` or `b_embedded` do not sum to 1.

    See Also
    --------
    tableaux : The names that `Tableau.named` accepts.

    Examples
    --------
    >>> from ocdl import Tableau
    >>> Tableau.named("kutta4")
    <Tableau kutta4: 4 stages, order 4, explicit>

    The properties of a custom method are derived from its coefficients:

    >>> from fractions import Fraction
    >>> twelfth = Fraction(1, 12)
    >>> radau = Tableau([[5 * twelfth, -twelfth], [9 * twelfth, 3 * twelfth]], [9 * twelfth, 3 * twelfth])
    >>> radau.order, radau.is_explicit
    (3, False)
    >>> radau.c.round(6).tolist()
    [0.333333, 1.0]
    """

    __slots__ = ("_b_embedded", "_core_tableau")

    _core_tableau: _core.Tableau
    _b_embedded: tuple[float, ...] | None

    def __init__(
        self,
        A: ArrayLike,
        b: ArrayLike,
        c: ArrayLike | None = None,
        *,
        b_embedded: ArrayLike | None = None,
        name: str | None = None,
    ) -> None:
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name must be a string or None, got {type(name).__name__}")
        validation.text(name or "", "name")
        core_tableau = _core.Tableau(
            _coefficients(A, "A", ndim=2),
            _coefficients(b, "b", ndim=1),
            None if c is None else _coefficients(c, "c", ndim=1),
            name or "",
        )
        object.__setattr__(self, "_core_tableau", core_tableau)
        object.__setattr__(self, "_b_embedded", None if b_embedded is None else self._validate_weights(b_embedded))

    def _validate_weights(self, b_embedded: ArrayLike) -> tuple[float, ...]:
        weights = _coefficients(b_embedded, "b_embedded", ndim=1)
        if len(weights) != self.stages:
            raise ValueError(f"b_embedded must have {self.stages} entries, one for each stage, got {len(weights)}")
        _core.Tableau(self.A, weights, self.c, "")  # raises unless they are finite and sum to 1
        return tuple(weights.tolist())

    @classmethod
    def _wrap(cls, core_tableau: _core.Tableau, b_embedded: tuple[float, ...] | None = None) -> Self:
        tableau = cls.__new__(cls)
        object.__setattr__(tableau, "_core_tableau", core_tableau)
        object.__setattr__(tableau, "_b_embedded", b_embedded)
        return tableau

    @classmethod
    def named(cls, name: str) -> Self:
        """Look up a method by its name.

        Parameters
        ----------
        name : str
            One of `tableaux()`; case, "-", "_" and " " do not matter. Common other names are accepted if they are
            unambiguous: ``rk4`` is kutta4, ``dopri5`` and ``rk45`` are dormand_prince, ``heun`` is improved_euler.
            (What torchdiffeq calls "rk4" is rk38.)

        Returns
        -------
        Tableau

        Raises
        ------
        TypeError
            If `name` is not a string.
        ValueError
            If no method has this name; the message lists the known names and suggests a similar one.

        Examples
        --------
        >>> from ocdl import Tableau
        >>> Tableau.named("improved_euler").A.tolist()
        [[0.0, 0.0], [1.0, 0.0]]
        >>> Tableau.named("RK4").name
        'kutta4'
        """
        text = validation.text(name, "name")
        known = validation.choice(text, "the name of a tableau", tableaux(), ALIASES)
        return cls._wrap(_core.Tableau.named(known), EMBEDDED_WEIGHTS.get(known))

    @property
    def A(self) -> NDArray[np.float64]:
        """The coefficients of the stages, (stages, stages), read-only.

        Examples
        --------
        >>> from ocdl import Tableau
        >>> Tableau.named("midpoint").A.tolist()
        [[0.0, 0.0], [0.5, 0.0]]
        """
        return self._core_tableau.A

    @property
    def b(self) -> NDArray[np.float64]:
        """The weights, (stages,), read-only; they sum to 1.

        Examples
        --------
        >>> from ocdl import Tableau
        >>> Tableau.named("midpoint").b.tolist()
        [0.0, 1.0]
        """
        return self._core_tableau.b

    @property
    def c(self) -> NDArray[np.float64]:
        """The abscissae, (stages,), read-only: the row sums of `A` unless others were given.

        Examples
        --------
        >>> from ocdl import Tableau
        >>> Tableau.named("midpoint").c.tolist()
        [0.0, 0.5]
        """
        return self._core_tableau.c

    @property
    def b_embedded(self) -> NDArray[np.float64] | None:
        """The second weights, (stages,), read-only, or None.

        Examples
        --------
        >>> from ocdl import Tableau
        >>> Tableau.named("improved_euler").b_embedded.tolist()
        [1.0, 0.0]
        """
        if self._b_embedded is None:
            return None
        weights = np.array(self._b_embedded)
        weights.flags.writeable = False
        return weights

    @property
    def name(self) -> str | None:
        """The name, or None.

        Examples
        --------
        >>> from ocdl import Tableau
        >>> Tableau.named("RK4").name
        'kutta4'
        """
        return self._core_tableau.name or None

    @property
    def stages(self) -> int:
        """The number of stages.

        Examples
        --------
        >>> from ocdl import Tableau
        >>> Tableau.named("dormand_prince").stages
        7
        """
        return self._core_tableau.stages

    @property
    def order(self) -> int:
        """The order of convergence, derived from the coefficients.

        The order conditions of all rooted trees of up to six nodes are checked; a method of a higher order reports 6.

        Examples
        --------
        >>> from ocdl import Tableau
        >>> [Tableau.named(name).order for name in ("euler", "midpoint", "kutta4", "gauss3")]
        [1, 2, 4, 6]
        """
        return self._core_tableau.order

    @property
    def is_explicit(self) -> bool:
        """Whether each stage needs only those before it: `A` is strictly lower triangular.

        Examples
        --------
        >>> from ocdl import Tableau
        >>> Tableau.named("kutta4").is_explicit, Tableau.named("gauss2").is_explicit
        (True, False)
        """
        return self._core_tableau.is_explicit

    @property
    def contractivity_radius(self) -> float:
        """The radius r of the disc in which steps expand no distance (Dahlquist and Jeltsch 1979).

        A step of size h of a field with ``<f(y) - f(z), y - z> <= -rho |f(y) - f(z)|^2`` expands no distance where
        ``h <= 2 r rho``: of the field "gradient", where ``h L |K|_2^2 <= 2 r`` with the largest slope L of its
        activation. With ``Q = diag(b) A + A^T diag(b) - b b^T`` it is ``-1 / lambda`` for the smallest eigenvalue
        lambda of ``diag(b)^(-1/2) Q diag(b)^(-1/2)``: infinite where Q is positive semidefinite, 0 where the weight of
        a stage that counts is not positive.

        Examples
        --------
        >>> from ocdl import Tableau
        >>> [round(Tableau.named(name).contractivity_radius, 4) for name in ("euler", "rk38", "implicit_midpoint")]
        [1.0, 0.4641, inf]
        """
        live = _live_stages(self.A, self.b)
        A, b = self.A[np.ix_(live, live)], self.b[live]
        if b.min() <= 0:
            return 0.0
        Q = b[:, None] * A + (b[:, None] * A).T - np.outer(b, b)
        smallest = float(np.linalg.eigvalsh(Q / np.sqrt(np.outer(b, b))).min())
        return math.inf if smallest >= -1e-13 else -1 / smallest

    def adjoint(self) -> Self:
        """The partner with which this method forms a symplectic pair.

        Applied to the costates of the optimal control problem it gives the exact gradient of the discrete problem.
        Its coefficients are ``b[j] - b[j] * A[j, i] / b[i]``, its weights those of this method.

        Returns
        -------
        Tableau

        Raises
        ------
        ValueError
            If a weight is 0; the message names the stage, counted from 1. Gradients do not need the partner and work
            with such methods too.

        Examples
        --------
        The explicit and the implicit Euler method together are symplectic Euler:

        >>> from ocdl import Tableau
        >>> Tableau.named("euler").adjoint() == Tableau([[1]], [1])
        True
        """
        return self._wrap(self._core_tableau.adjoint())

    def __repr__(self) -> str:
        title = "Tableau" if self.name is None else f"Tableau {self.name}"
        stages = "1 stage" if self.stages == 1 else f"{self.stages} stages"
        return f"<{title}: {stages}, order {self.order}, {'explicit' if self.is_explicit else 'implicit'}>"

    def _repr_html_(self) -> str:
        """The Butcher table: abscissae left of the line, weights below it."""
        line, cell = "1px solid currentColor", "padding: 2px 8px; text-align: center;"
        rows = []
        for abscissa, coefficients in zip(self.c, self.A, strict=True):
            cells = "".join(f'<td style="{cell}">{_fraction(a)}</td>' for a in coefficients)
            rows.append(f'<tr><td style="{cell} border-right: {line}">{_fraction(abscissa)}</td>{cells}</tr>')
        weights = "".join(f'<td style="{cell} border-top: {line}">{_fraction(weight)}</td>' for weight in self.b)
        rows.append(f'<tr><td style="{cell} border-right: {line}; border-top: {line}"></td>{weights}</tr>')
        description = repr(self).strip("<>")
        return f'{markup.paragraph(description)}<table style="border-collapse: collapse">{"".join(rows)}</table>'

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tableau):
            return NotImplemented
        return all(np.array_equal(getattr(self, part), getattr(other, part)) for part in ("A", "b", "c"))

    def __hash__(self) -> int:
        # Numbers, not bytes: 0.0 and -0.0 are equal and have to hash alike.
        return hash((*self.A.flat, *self.b, *self.c))

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[NDArray[np.float64], ...]]:
        return partial(type(self), b_embedded=self.b_embedded, name=self.name), (self.A, self.b, self.c)

    def __setattr__(self, attribute: str, value: object) -> NoReturn:
        raise AttributeError(f"a Tableau is immutable: cannot assign {attribute!r}; build a new Tableau instead")

    def __delattr__(self, attribute: str) -> NoReturn:
        raise AttributeError(f"a Tableau is immutable: cannot delete {attribute!r}")


def tableaux() -> list[str]:
    """The names of the methods that `Tableau.named` accepts.

    Returns
    -------
    list of str

    Examples
    --------
    >>> import ocdl
    >>> ocdl.tableaux()[:4]
    ['euler', 'improved_euler', 'kutta3', 'kutta4']
    """
    return _core.tableau_names()


def method_of(tableau: str | Tableau) -> Tableau:
    """Return the method of this name, or the method itself."""
    if isinstance(tableau, str):
        tableau = Tableau.named(tableau)
    if not isinstance(tableau, Tableau):
        raise TypeError(f"tableau must be a name or a Tableau, got {type(tableau).__name__}")
    return tableau


def _live_stages(A: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the stages that the step depends on."""
    live = b != 0
    for _ in range(len(b)):
        live |= (A[live] != 0).any(axis=0)
    return np.flatnonzero(live)


def _fraction(coefficient: float) -> str:
    """Return a coefficient as a fraction if it equals one up to roundoff, else as a decimal number."""
    fraction = Fraction(coefficient).limit_denominator(LARGEST_DENOMINATOR)
    if abs(float(fraction) - coefficient) <= 4 * np.finfo(np.float64).eps * abs(coefficient):
        return str(fraction).replace("-", "\N{MINUS SIGN}")
    return f"{coefficient:.6f}".replace("-", "\N{MINUS SIGN}")


def _coefficients(values: ArrayLike, name: str, *, ndim: int) -> NDArray[np.float64]:
    array = validation.real_array(values, name, np.dtype(np.float64))
    if array.ndim != ndim:
        raise ValueError(f"{name} must be an array of {ndim} dimension(s), got {array.ndim}: shape {array.shape}")
    return array
