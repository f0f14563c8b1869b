"""Strange values for every argument: arrays of any type, layout and size, and what is no number at all."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

FLOATS = ("f2", "f4", "f8", "g", ">f4", ">f8")
INTEGERS = ("i1", "i4", "i8", "u1", "u8", ">i4", ">u8")
OTHERS = ("?", "c8", "c16", "O", "U3", "S3", "M8[s]", "m8[s]", "V4", "f8,i4")

REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-320, 1e-300, 1e30, -1e300, 1.7e308, np.nan, np.inf, -np.inf)
WHOLE = (0, 1, 2, 3, -1, 100, -(2**63), 2**63 - 1, 2**64 - 1)
OBJECTS = (0, 1, 0.5, np.nan, None, "1", b"1", 10**400, Fraction(1, 3), Decimal("0.5"), 1j, [], {}, True, object)

UNWRITTEN = (10**5000, -(10**5000), [10**5000])  # Python refuses to write so many digits

SCALARS: tuple[Any, ...] = (
    *REALS,
    *WHOLE,
    *OBJECTS,
    "",
    "tanh",
    "\ud800",
    (),
    [1, 2],
    np.float32(0.25),
    np.float16(np.inf),
    np.longdouble("1e400"),
    np.int8(-3),
    np.uint64(2**64 - 1),
    np.bool_(True),
    np.array(0.5),
    np.array([]),
    np.str_("euler"),
    Decimal("sNaN"),
    Decimal("1e999"),
    float,
    range(3),
    np.datetime64("2000"),
    *UNWRITTEN,
)


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def strided(array: np.ndarray) -> np.ndarray:
    room = np.repeat(array[..., None], 3, axis=-1) if array.ndim else array
    return room[..., 1] if array.ndim else room


def repeated(array: np.ndarray) -> np.ndarray:
    if array.size == 0:
        return array
    first = array.ravel()[:1].reshape((1,) * array.ndim)  # its first entry in an array, as it may be a list itself
    return np.broadcast_to(first, array.shape)


LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "plain": np.array,
    "fortran": np.asfortranarray,
    "reversed": lambda array: array[::-1] if array.ndim else array,
    "strided": strided,
    "repeated": repeated,
    "read-only": read_only,
    "list": lambda array: array.tolist(),
    "masked": np.ma.masked_array,
    "partly masked": lambda array: np.ma.masked_array(array, np.arange(array.size).reshape(array.shape) % 2 == 0),
    "subclass": lambda array: array.view(np.recarray) if array.dtype.kind == "V" else array.view(np.ndarray),
    "memory view": lambda array: memoryview(array) if array.dtype.char in "bBhHiIlLqQfd?" else array,
}


def filled(dtype: str, shape: tuple[int, ...], entries: list[int], ordinary: int) -> np.ndarray:
    """Return an array of small numbers with some strange ones among them."""
    kind = np.dtype(dtype).kind
    pool: tuple[Any, ...] = {"O": OBJECTS, "f": REALS, "c": REALS, "i": WHOLE, "u": WHOLE}.get(kind, (0, 1))
    array = (np.arange(int(np.prod(shape))) % ordinary).reshape(shape)
    if kind == "V":
        return np.zeros(shape, dtype)
    if kind == "O":
        objects = array.astype(object)
        for position, entry in enumerate(entries[: array.size]):
            objects.flat[position * 7 % array.size] = pool[entry % len(pool)]
        return objects
    with np.errstate(all="ignore"):
        numbers = array.astype(dtype)
        for position, entry in enumerate(entries[: array.size]):
            value = pool[entry % len(pool)]
            if kind in "iu":
                value = int(np.clip(value, np.iinfo(dtype).min, np.iinfo(dtype).max))
            numbers.flat[position * 7 % array.size] = value
    return numbers


@st.composite
def arrays(draw: st.DrawFn, right: tuple[int, ...]) -> Any:
    """Draw an array, often of the right shape."""
    shapes = [right, right, right, right[:-1], (*right, 1), (0, *right[1:]), (*right[:-1], 0), (), (0,)]
    wrong = tuple(size + 1 for size in right)
    dtype = draw(st.sampled_from((*FLOATS, *FLOATS, *INTEGERS, *OTHERS)))
    entries = draw(st.lists(st.integers(0, 50), max_size=4))
    array = filled(dtype, draw(st.sampled_from([*shapes, wrong])), entries, draw(st.sampled_from((1, 2, 2, 3))))
    return LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))](array)


def values(right: tuple[int, ...] | None) -> st.SearchStrategy[Any]:
    """Any value, most often an array of the right shape."""
    scalars = st.sampled_from(SCALARS)
    return scalars if right is None else st.one_of(arrays(right), arrays(right), arrays(right), scalars)
