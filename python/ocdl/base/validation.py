"""Validation of arguments: each error names the argument, the given value and what is accepted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocdl import _core
from ocdl.base.names import NO_ALIASES, pluralise, resolve_name, suggestion

FloatArray = NDArray[Any]  # float32 or float64, whichever the network has
LabelArray = NDArray[np.int64]
LABEL_DTYPE = np.dtype(np.int64)
LARGEST_COUNT = 2**31 - 1  # of layers, components, threads; what the core's integers hold
MAX_LENGTH = 200  # characters of a value in a message
MAX_BITS = 10_000  # of a number in a message: Python limits the conversion to digits


def integer(value: object, name: str, *, minimum: int) -> int:
    """Return a whole number from `minimum` to the largest that the core can hold."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {format_with_type(value)}")
    number = int(value)
    if number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {format_value(number)}")
    if number > LARGEST_COUNT:
        raise ValueError(f"{name} must be at most {LARGEST_COUNT}, got {format_value(number)}")
    return number


def integer_up_to(value: object, name: str, limit: int) -> int:
    """Return a whole number that is not negative and below the limit."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) < limit:
        raise ValueError(f"{name} must be a whole number from 0 to {limit - 1}, got {format_with_type(value)}")
    return int(value)


def real(value: object, name: str) -> float:
    """Return a finite real number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, got {format_with_type(value)}")
    try:
        number = float(value)
    except OverflowError as error:
        raise ValueError(f"{name} must be finite, got a number beyond the range of float64") from error
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")
    return number


def positive(value: object, name: str) -> float:
    """Return a finite number above 0."""
    number = real(value, name)
    if number <= 0:
        raise ValueError(f"{name} must be positive, got {number}")
    return number


def not_negative(value: object, name: str) -> float:
    """Return a finite number that is 0 or above."""
    number = real(value, name)
    if number < 0:
        raise ValueError(f"{name} must not be negative, got {number}")
    return number


def boolean(value: object, name: str) -> bool:
    """Return a boolean; values that are only truthy or falsy are refused."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {format_with_type(value)}")
    return bool(value)


def choice(value: object, name: str, known: Iterable[str], aliases: Mapping[str, str] = NO_ALIASES) -> str:
    """Return the known name for a value, ignoring case, "-", "_" and " "; aliases stand for names."""
    known = list(known)
    listed = ", ".join(map(repr, known))
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {listed}, got {format_with_type(value)}")
    match = resolve_name(value, known, aliases)
    if match is None:
        raise ValueError(
            f"{name} must be one of {listed}, got {format_value(value)}{suggestion(value, known, aliases)}"
        )
    return match


def text(value: object, name: str) -> str:
    """Return text that UTF-8 can hold: without lone surrogates."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} must be text that UTF-8 can hold, got {value!r:.80}") from error
    return value


def collection_of_names(value: Any, name: str, example: tuple[str, ...]) -> Iterable[Any]:
    """Return the value if it can be iterated over and is no text; its entries are not checked."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0:
        raise TypeError(f"{name} must be a collection of names, as in {example}, got {format_value(value)}")
    return value


def plain_array(value: ArrayLike, name: str, dtype: np.dtype[Any]) -> FloatArray:
    """Return an array that the core can view, `dtype` in C order; without a copy where possible."""
    return cast(FloatArray, value) if _is_plain(value, dtype) else _convert(value, name, dtype)


def real_array(value: ArrayLike, name: str, dtype: np.dtype[Any]) -> FloatArray:
    """Return such an array of finite numbers."""
    array = plain_array(value, name, dtype)
    bad = _core.first_non_finite(array)
    if bad >= 0:
        raise ValueError(_nonfinite_message(value, array, bad, name, dtype))
    return array


def _is_plain(value: object, dtype: np.dtype[Any]) -> bool:
    """Whether the core can view the array without a copy."""
    if type(value) is not np.ndarray or value.dtype != dtype:
        return False
    flags = value.flags
    return flags.c_contiguous and flags.aligned


def _convert(value: ArrayLike, name: str, dtype: np.dtype[Any]) -> FloatArray:
    raw = to_array(value, name)
    if raw.dtype.kind not in "biufO":
        raise TypeError(f"{name} must hold real numbers, got dtype {raw.dtype}")
    require_unmasked(value, name)
    if raw.dtype.kind == "O":
        raw = _to_float64(raw, name)
    with np.errstate(over="ignore"):
        return np.require(raw, dtype, ["C", "A"])


def to_array(value: Any, name: str) -> NDArray[Any]:
    """Return any sequence as an array; a ragged one is an error."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of real numbers, got a ragged sequence") from error


def require_unmasked(value: ArrayLike, name: str) -> None:
    """Raise a ValueError if entries of an array are masked: their values are undefined."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name} has masked values; fill or drop them first")


def _to_float64(objects: NDArray[np.object_], name: str) -> NDArray[np.float64]:
    """Return Python's numbers (fractions, decimals, large integers) as float64; refuse text, even "1"."""
    for value in objects.flat:
        if value is None or isinstance(value, (str, bytes)):
            raise TypeError(f"{name} must hold real numbers, got {format_with_type(value)}")
    try:
        return objects.astype(np.float64)
    except OverflowError as error:
        raise ValueError(f"{name} must hold finite numbers, got one beyond the range of float64") from error
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold real numbers: {error}") from error


def _nonfinite_message(value: ArrayLike, array: FloatArray, bad: int, name: str, dtype: np.dtype[Any]) -> str:
    index = np.unravel_index(bad, array.shape)
    original = np.asarray(value)[index]
    entry = f"{name}[{', '.join(str(int(i)) for i in index)}]"
    if isinstance(original, np.number) and np.isfinite(original):
        return f"{entry} = {original} is too large for {dtype}"
    return f"{entry} is {original}; all of {name} must be finite"


def samples(X: ArrayLike, features: int, dtype: np.dtype[Any], name: str = "X", minimum: int = 1) -> FloatArray:
    """Return at least `minimum` samples, rows of `features` numbers."""
    array = real_array(X, name, dtype)
    if array.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions, (samples, features), got shape {array.shape}; "
            "a single sample is X.reshape(1, -1), a single feature X.reshape(-1, 1)"
        )
    if array.shape[1] != features:
        raise ValueError(f"{name} has {pluralise(array.shape[1], 'feature')} but the network takes {features}")
    if array.shape[0] < minimum:
        raise ValueError(f"{name} is empty: at least one sample is needed")
    return array


def labels(y: ArrayLike, n_samples: int, n_outputs: int) -> LabelArray:
    """Return integer labels 0, 1, ..., one per sample."""
    highest = max(n_outputs - 1, 1)
    array = cast(LabelArray, y) if _is_plain(y, LABEL_DTYPE) else _to_whole_numbers(y)
    if array.ndim != 1:
        raise ValueError(f"y must have one dimension, (samples,), got shape {array.shape}")
    if array.shape[0] != n_samples:
        raise ValueError(f"y has {pluralise(array.shape[0], 'label')} but X has {pluralise(n_samples, 'sample')}")
    bad = _core.first_outside(array, 0, highest)
    if bad >= 0:
        outputs = pluralise(n_outputs, "output")
        raise ValueError(f"y[{bad}] is {array[bad]}; a network with {outputs} takes labels 0 to {highest}")
    return array


def numbers(y: ArrayLike, n_samples: int, n_outputs: int, dtype: np.dtype[Any], minimum: float) -> FloatArray:
    """Return real targets of at least `minimum`, one for each sample and output."""
    array = real_array(y, "y", dtype)
    accepted = [(n_samples, n_outputs)] + [(n_samples,)] * (n_outputs == 1)
    if array.shape not in accepted:
        if array.ndim in (1, 2) and array.shape[1:] in [shape[1:] for shape in accepted]:
            raise ValueError(f"y has {pluralise(array.shape[0], 'target')} but X has {pluralise(n_samples, 'sample')}")
        shapes = " or ".join(f"{shape}" for shape in reversed(accepted))
        raise ValueError(f"y must have shape {shapes}, a number for each sample and output, got {array.shape}")
    if minimum > -math.inf and array.min(initial=math.inf) < minimum:
        index = np.unravel_index(int(np.argmin(array)), array.shape)
        entry = f"y[{', '.join(str(int(i)) for i in index)}]"
        raise ValueError(f"{entry} is {array[index]}; this loss takes targets from {minimum:g} on")
    return array


def _to_whole_numbers(y: ArrayLike) -> LabelArray:
    try:
        raw = np.asarray(y)
    except ValueError as error:
        raise ValueError("y must be an array of labels, got a ragged sequence") from error
    if raw.dtype.kind not in "biufO":
        raise TypeError(f"y must hold the labels 0, 1, ... as whole numbers, got dtype {raw.dtype}")
    require_unmasked(y, "y")
    if raw.dtype.kind == "O":
        raw = _to_float64(raw, "y")
    if raw.dtype.kind == "f":
        with np.errstate(over="ignore"):
            raw = raw.astype(np.float64)
        wrong = ~np.isfinite(raw) | (raw != np.round(raw)) | (np.abs(raw) > 2**53)
        if wrong.any():
            index = np.unravel_index(int(np.argmax(wrong)), raw.shape)
            entry = f"y[{', '.join(str(int(i)) for i in index)}]"
            raise ValueError(f"{entry} is {raw[index]}; labels are the whole numbers 0, 1, ...")
    if raw.dtype == np.uint64:
        raw = np.minimum(raw, np.iinfo(np.int64).max)
    return np.require(raw, LABEL_DTYPE, ["C", "A"])


def weights(
    sample_weight: ArrayLike | None, n_samples: int, dtype: np.dtype[Any], *, are_all: bool = True, mean: bool = True
) -> FloatArray | None:
    """Return non-negative sample weights.

    With `are_all` the sum must be positive and finite; a mean divides by it.
    """
    if sample_weight is None:
        return None
    array = real_array(sample_weight, "sample_weight", dtype)
    if array.shape != (n_samples,):
        raise ValueError(f"sample_weight must have shape ({n_samples},), one per sample, got {array.shape}")
    if n_samples and array.min() < 0:
        lowest = int(np.argmin(array))
        raise ValueError(f"sample_weight[{lowest}] is {array[lowest]}; weights must not be negative")
    if are_all:
        with np.errstate(over="ignore"):
            require_total_weight(float(np.sum(array, dtype=np.float64)), dtype, mean=mean)
    return array


def require_total_weight(total: float, dtype: np.dtype[Any], *, mean: bool) -> None:
    """Raise a ValueError unless the sum of all weights is positive, finite and large enough to divide by."""
    if total == 0:
        raise ValueError("sample_weight is 0 for every sample; at least one must be positive")
    if not np.isfinite(total):
        raise ValueError("sample_weight has a sum beyond the range of float64; scale it down")
    if mean and total < 1 / float(np.finfo(dtype).max):
        raise ValueError(f"sample_weight has a sum of {total}: its inverse is beyond the range of {dtype}; scale it up")


def array_of_shape(
    value: ArrayLike, name: str, shape: tuple[int, ...], meaning: str, dtype: np.dtype[Any]
) -> FloatArray:
    """Return a finite array of exactly this shape."""
    array = real_array(value, name, dtype)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, {meaning}, got {array.shape}")
    return array


def format_with_type(value: object) -> str:
    """Return a value and its type, for a message."""
    return f"{format_value(value)} ({type(value).__name__})"


def format_value(value: object) -> str:
    """Return the repr of a value, shortened if it is long; its type and address if repr fails."""
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return f"a number of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception:
        return object.__repr__(value)
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}..."
