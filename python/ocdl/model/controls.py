"""The controls of a network: one vector with names for its parts."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ocdl.base import validation
from ocdl.base.validation import FloatArray

__all__ = ["Controls"]


class Part(NamedTuple):
    """A part of the controls, an entry of ``Network.parts``.

    Attributes
    ----------
    name : str
    role : {"field", "steps", "readout"}
        "field" for the vector field, "steps" for the time steps, "readout" for the linear map to the outputs.
    axes : tuple of str
    shape : tuple of int

    Examples
    --------
    >>> import ocdl
    >>> part = ocdl.Network(2, 10).parts[0]
    >>> isinstance(part, ocdl.Part), part.name, part.role, part.shape, len(part.axes)
    (True, 'K', 'field', (10, 2, 2), 3)
    """

    name: str
    role: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of its entries."""
        return math.prod(self.shape)

    @property
    def meaning(self) -> str:
        """The names of the axes, written like a shape."""
        return f"({', '.join(self.axes)}{',' if len(self.axes) == 1 else ''})"


@dataclass(frozen=True)
class ControlLayout:
    """The parts of a vector of controls, in their order; the network is their only source."""

    parts: tuple[Part, ...]
    dtype: np.dtype[Any]

    def __post_init__(self) -> None:
        for part in self.parts:
            Controls._add_part_property(part.name)

    @cached_property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    @cached_property
    def slices(self) -> dict[str, tuple[slice, tuple[int, ...]]]:
        """The slice of the vector that holds each part, and the shape of the part."""
        ends = list(itertools.accumulate(part.size for part in self.parts))
        return {
            part.name: (slice(end - part.size, end), part.shape) for part, end in zip(self.parts, ends, strict=True)
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return (ControlLayout, (self.parts, self.dtype))


PART_DOCSTRING = """The part {name}: a view of the vector of controls, made on demand.

    Examples
    --------
    >>> import numpy as np, ocdl
    >>> u = ocdl.Network(2, 3).init(random_state=0)
    >>> all(np.shares_memory(getattr(u, name), part) for name, part in u.parts().items())
    True
    """


class Controls:
    """Controls of a network, or anything of their shape: a gradient, a direction.

    Create them with `Network.init`, `Network.controls` or `Network.from_vector`. The parts are views of one vector:
    changing ``u.K[0]`` changes the controls. ``+``, ``-`` and multiplication with a number act on all parts.

    Attributes
    ----------
    K : ndarray of shape (layers, dim, dim), or (layers, stages, dim, dim) with stage controls
    b : ndarray of shape (layers, dim), or (layers, stages, dim)
    h : ndarray of shape (layers,); empty for a feed-forward network
    W : ndarray of shape (outputs, dim)
    mu : ndarray of shape (outputs,)
        K and b of a network with control intervals have one entry for each of these, not for each layer. Other fields
        than the default have other parts, as `Network.parts` lists them.
    X : ndarray of shape (samples, features) or None
        Only on a gradient: the derivative with respect to the data, with ``input_grad=True``.
    inputs : ndarray of shape (samples, layers [+ 1], inputs) or None
        The same with respect to the inputs of a network that takes some.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(2, 3)
    >>> u = net.init(random_state=0)
    >>> u.K.shape, u.b.shape, u.h.shape
    ((3, 2, 2), (3, 2), (3,))
    >>> u.W.shape, u.mu.shape, u.X
    ((1, 2), (1,), None)
    >>> (u - 0.5 * u).norm() == 0.5 * u.norm()
    True
    """

    __slots__ = ("X", "_layout", "_vector", "inputs")
    __array_ufunc__ = None  # a NumPy number times controls is our __rmul__, not an array of objects

    def __init__(
        self, layout: ControlLayout, vector: FloatArray, X: FloatArray | None = None, inputs: FloatArray | None = None
    ) -> None:
        self._layout = layout
        self._vector = vector
        self.X = X
        self.inputs = inputs

    @classmethod
    def _add_part_property(cls, name: str) -> None:
        """Add a property for parts of this name, which is faster than `__getattr__`."""

        def part(self: Controls) -> FloatArray:
            try:
                position, shape = self._layout.slices[name]
            except KeyError:
                raise AttributeError from None  # Python calls __getattr__ next, which raises with a message
            return self._vector[position].reshape(shape)

        if name not in vars(cls):
            setattr(cls, name, property(part, doc=PART_DOCSTRING.format(name=name)))

    def __getattr__(self, name: str) -> FloatArray:
        known = "" if name.startswith("_") else f"; its parts are {', '.join(self._layout.slices)}"
        raise AttributeError(f"Controls have no attribute {name!r}{known}")

    def parts(self) -> dict[str, FloatArray]:
        """Return all parts by their names, in their order; they share the memory of the controls.

        Returns
        -------
        dict of str to ndarray
            ``K``, ``b``, ``h``, ``W`` and ``mu``.

        Examples
        --------
        >>> import ocdl
        >>> u = ocdl.Network(2, 3).init(random_state=0)
        >>> {name: part.shape for name, part in u.parts().items()}
        {'K': (3, 2, 2), 'b': (3, 2), 'h': (3,), 'W': (1, 2), 'mu': (1,)}
        """
        return {name: getattr(self, name) for name in self._layout.slices}

    def to_vector(self) -> NDArray[Any]:
        """Return a copy of all controls as one vector, ordered K, b, h, W, mu.

        Returns
        -------
        ndarray of shape (n_controls,)

        Examples
        --------
        >>> import ocdl
        >>> net = ocdl.Network(2, 3)
        >>> u = net.init(random_state=0)
        >>> u.to_vector().shape, (net.from_vector(u.to_vector()) - u).norm()
        ((24,), 0.0)
        """
        return self._vector.copy()

    def copy(self) -> Self:
        """Return a copy.

        Returns
        -------
        Controls

        Examples
        --------
        >>> import ocdl
        >>> u = ocdl.Network(2, 3).init(random_state=0)
        >>> v = u.copy()
        >>> v.h[0] = 0.0
        >>> bool(u.h[0] > 0)
        True
        """
        by_data = (None if array is None else array.copy() for array in (self.X, self.inputs))
        return type(self)(self._layout, self._vector.copy(), *by_data)

    def dot(self, other: Controls) -> float:
        """Return the inner product over all parts.

        Parameters
        ----------
        other : Controls
            Of the same network.

        Returns
        -------
        float

        Raises
        ------
        TypeError
            If `other` is something else.
        ValueError
            If the controls belong to different networks.
        FloatingPointError
            If the product is beyond the range of the numbers.

        Examples
        --------
        >>> import math, ocdl
        >>> u = ocdl.Network(2, 3).init(random_state=0)
        >>> math.isclose(u.dot(u), u.norm() ** 2)
        True
        """
        with np.errstate(over="ignore", invalid="ignore"):
            product = float(self._vector @ self._vector_of(other, "dot"))
        if not math.isfinite(product):
            raise FloatingPointError(f"dot: the product overflows {self._layout.dtype}; scale the controls down")
        return product

    def norm(self) -> float:
        """Return the Euclidean norm over all parts.

        Returns
        -------
        float

        Raises
        ------
        FloatingPointError
            If it is beyond the range of float64.

        Examples
        --------
        >>> import ocdl
        >>> ocdl.Network(1, 1).controls(K=[[[3.0]]], h=[0.0], W=[[4.0]]).norm()
        5.0
        """
        with np.errstate(over="ignore"):
            norm = float(np.linalg.norm(self._vector))
        if norm == 0 or math.isinf(norm):  # the squares may have left the range although the norm has not
            largest = float(np.abs(self._vector).max())
            norm = largest * float(np.linalg.norm(self._vector / largest)) if 0 < largest < math.inf else largest
        if math.isinf(norm):
            raise FloatingPointError("norm: it is beyond the range of float64; scale the controls down")
        return norm

    def __add__(self, other: object) -> Self:
        if not isinstance(other, Controls):
            return NotImplemented
        return self._combine(np.add, self._vector_of(other, "+"), "+")

    def __sub__(self, other: object) -> Self:
        if not isinstance(other, Controls):
            return NotImplemented
        return self._combine(np.subtract, self._vector_of(other, "-"), "-")

    def __mul__(self, factor: object) -> Self:
        if not isinstance(factor, Real):
            return NotImplemented
        return self._combine(np.multiply, validation.real(factor, "the factor of controls"), "*")

    __rmul__ = __mul__

    def __truediv__(self, divisor: object) -> Self:
        if not isinstance(divisor, Real):
            return NotImplemented
        number = validation.real(divisor, "the divisor of controls")
        if number == 0:
            raise ZeroDivisionError("the divisor of controls must not be 0")
        return self._combine(np.divide, number, "/")

    def __neg__(self) -> Self:
        return self._with_vector(-self._vector)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self._layout, self._vector, self.X, self.inputs))

    def __repr__(self) -> str:
        parts = ", ".join(f"{part.name} {part.shape}" for part in self._layout.parts)
        return f"<Controls {parts}, {self._layout.dtype}>"

    def _with_vector(self, vector: FloatArray) -> Self:
        return type(self)(self._layout, vector)

    def _combine(self, operation: np.ufunc, other: FloatArray | float, sign: str) -> Self:
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                return self._with_vector(operation(self._vector, other, dtype=self._layout.dtype))
        except FloatingPointError as error:
            raise FloatingPointError(f"{sign}: the result is beyond the range of {self._layout.dtype}") from error

    def _vector_of(self, other: Controls, operation: str) -> FloatArray:
        if not isinstance(other, Controls):
            raise TypeError(f"{operation} takes controls, got {type(other).__name__}")
        if other._layout != self._layout:
            raise ValueError(f"{operation}: controls of different networks, {self!r} and {other!r}")
        return other._vector
