"""Checks at the border: each names the argument, what came and what is accepted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocdl import _core
from ocdl.base.names import NO_ALIASES, counted, did_you_mean, meant

FloatArray = NDArray[Any]  # float32 or float64, whichever the network has
LabelArray = NDArray[np.int64]
LABEL_DTYPE = np.dtype(np.int64)
LARGEST_COUNT = 2**31 - 1  # of layers, components, threads; what the core's integers hold
LONGEST_SHOWN = 200  # characters of a value in a message
MOST_BITS = 10_000  # of a number that is written in digits: Python refuses to for thousands of them


def integer(value: object, name: str, *, least: int) -> int:
    """Return a whole number that is at least `least`, and not absurdly large."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {shown(value)}")
    number = int(value)
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {written(number)}")
    if number > LARGEST_COUNT:
        raise ValueError(f"{name} must be at most {LARGEST_COUNT}, got {written(number)}")
    return number


def integer_up_to(value: object, name: str, limit: int) -> int:
    """Return a whole number that is not negative and below the limit."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) < limit:
        raise ValueError(f"{name} must be a whole number from 0 to {limit - 1}, got {shown(value)}")
    return int(value)


def real(value: object, name: str) -> float:
    """Return a finite real number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, got {shown(value)}")
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
    """Return True or False, and nothing that merely counts as one of them."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def choice(value: object, name: str, known: Iterable[str], aliases: Mapping[str, str] = NO_ALIASES) -> str:
    """Return the known name that is meant: case, "-", "_" and " " do not matter, and aliases stand for names."""
    known = list(known)
    listed = ", ".join(map(repr, known))
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {listed}, got {shown(value)}")
    found = meant(value, known, aliases)
    if found is None:
        raise ValueError(f"{name} must be one of {listed}, got {written(value)}{did_you_mean(value, known, aliases)}")
    return found


def text(value: object, name: str) -> str:
    """Return a text of whole characters: a lone half of a pair of surrogates cannot be written anywhere."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} must be text that UTF-8 can hold, got {value!r:.80}") from error
    return value


def plain_array(value: ArrayLike, name: str, dtype: np.dtype[Any]) -> FloatArray:
    """Return real numbers as the core can view them, `dtype` in C order: the array itself where it is one already."""
    return cast(FloatArray, value) if _is_plain(value, dtype) else _converted(value, name, dtype)


def real_array(value: ArrayLike, name: str, dtype: np.dtype[Any]) -> FloatArray:
    """Return the same of numbers that are finite."""
    array = plain_array(value, name, dtype)
    bad = _core.first_non_finite(array)
    if bad >= 0:
        raise ValueError(_not_finite(value, array, bad, name, dtype))
    return array


def _is_plain(value: object, dtype: np.dtype[Any]) -> bool:
    """Whether the core can view it as it is."""
    if type(value) is not np.ndarray or value.dtype != dtype:
        return False
    flags = value.flags
    return flags.c_contiguous and flags.aligned


def _converted(value: ArrayLike, name: str, dtype: np.dtype[Any]) -> FloatArray:
    try:
        raw = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of real numbers, got a ragged sequence") from error
    if raw.dtype.kind not in "biufO":
        raise TypeError(f"{name} must hold real numbers, got dtype {raw.dtype}")
    require_unmasked(value, name)
    if raw.dtype.kind == "O":
        raw = _numbers(raw, name)
    with np.errstate(over="ignore"):
        return np.require(raw, dtype, ["C", "A"])


def require_unmasked(value: ArrayLike, name: str) -> None:
    """Raise where some entries of an array are masked: what stands behind a mask is not meant."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name} has masked values; fill or drop them first")


def _numbers(objects: NDArray[np.object_], name: str) -> NDArray[np.float64]:
    """Return Python's numbers (fractions, decimals, large integers) as float64; text is none, even "1"."""
    for value in objects.flat:
        if value is None or isinstance(value, (str, bytes)):
            raise TypeError(f"{name} must hold real numbers, got {shown(value)}")
    try:
        return objects.astype(np.float64)
    except OverflowError as error:
        raise ValueError(f"{name} must hold finite numbers, got one beyond the range of float64") from error
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold real numbers: {error}") from error


def _not_finite(value: ArrayLike, array: FloatArray, bad: int, name: str, dtype: np.dtype[Any]) -> str:
    place = np.unravel_index(bad, array.shape)
    original = np.asarray(value)[place]
    entry = f"{name}[{', '.join(str(int(i)) for i in place)}]"
    if isinstance(original, np.number) and np.isfinite(original):
        return f"{entry} = {original} is too large for {dtype}"
    return f"{entry} is {original}; all of {name} must be finite"


def samples(X: ArrayLike, features: int, dtype: np.dtype[Any], name: str = "X", least: int = 1) -> FloatArray:
    """Return data as rows of `features` numbers, at least so many."""
    array = real_array(X, name, dtype)
    if array.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions, (samples, features), got shape {array.shape}; "
            "a single sample is X.reshape(1, -1), a single feature X.reshape(-1, 1)"
        )
    if array.shape[1] != features:
        raise ValueError(f"{name} has {counted(array.shape[1], 'feature')} but the network takes {features}")
    if array.shape[0] < least:
        raise ValueError(f"{name} is empty: at least one sample is needed")
    return array


def labels(y: ArrayLike, n_samples: int, n_outputs: int) -> LabelArray:
    """Return labels 0, 1, ... as whole numbers, one per sample."""
    highest = max(n_outputs - 1, 1)
    array = cast(LabelArray, y) if _is_plain(y, LABEL_DTYPE) else _whole_numbers(y)
    if array.ndim != 1:
        raise ValueError(f"y must have one dimension, (samples,), got shape {array.shape}")
    if array.shape[0] != n_samples:
        raise ValueError(f"y has {counted(array.shape[0], 'label')} but X has {counted(n_samples, 'sample')}")
    bad = _core.first_outside(array, 0, highest)
    if bad >= 0:
        outputs = counted(n_outputs, "output")
        raise ValueError(f"y[{bad}] is {array[bad]}; a network with {outputs} takes labels 0 to {highest}")
    return array


def numbers(y: ArrayLike, n_samples: int, n_outputs: int, dtype: np.dtype[Any], least: float) -> FloatArray:
    """Return real targets, one for each sample and output, none below `least`."""
    array = real_array(y, "y", dtype)
    accepted = [(n_samples, n_outputs)] + [(n_samples,)] * (n_outputs == 1)
    if array.shape not in accepted:
        if array.ndim in (1, 2) and array.shape[1:] in [shape[1:] for shape in accepted]:
            raise ValueError(f"y has {counted(array.shape[0], 'target')} but X has {counted(n_samples, 'sample')}")
        meant = " or ".join(f"{shape}" for shape in reversed(accepted))
        raise ValueError(f"y must have shape {meant}, a number for each sample and output, got {array.shape}")
    if least > -math.inf and array.min(initial=math.inf) < least:
        place = np.unravel_index(int(np.argmin(array)), array.shape)
        entry = f"y[{', '.join(str(int(i)) for i in place)}]"
        raise ValueError(f"{entry} is {array[place]}; this loss takes targets from {least:g} on")
    return array


def _whole_numbers(y: ArrayLike) -> LabelArray:
    try:
        raw = np.asarray(y)
    except ValueError as error:
        raise ValueError("y must be an array of labels, got a ragged sequence") from error
    if raw.dtype.kind not in "biufO":
        raise TypeError(f"y must hold the labels 0, 1, ... as whole numbers, got dtype {raw.dtype}")
    require_unmasked(y, "y")
    if raw.dtype.kind == "O":
        raw = _numbers(raw, "y")
    if raw.dtype.kind == "f":
        with np.errstate(over="ignore"):
            raw = raw.astype(np.float64)
        wrong = ~np.isfinite(raw) | (raw != np.round(raw)) | (np.abs(raw) > 2**53)
        if wrong.any():
            place = np.unravel_index(int(np.argmax(wrong)), raw.shape)
            entry = f"y[{', '.join(str(int(i)) for i in place)}]"
            raise ValueError(f"{entry} is {raw[place]}; labels are the whole numbers 0, 1, ...")
    if raw.dtype == np.uint64:
        raw = np.minimum(raw, np.iinfo(np.int64).max)
    return np.require(raw, LABEL_DTYPE, ["C", "A"])


def weights(
    sample_weight: ArrayLike | None, n_samples: int, dtype: np.dtype[Any], *, are_all: bool = True, mean: bool = True
) -> FloatArray | None:
    """Return the samples' weights, none of them negative.

    If they are all, their sum is a positive number, for a mean one to divide by.
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
    """Raise where the sum of all weights is not positive and finite, or a mean would divide by a number too small."""
    if total == 0:
        raise ValueError("sample_weight is 0 for every sample; at least one must be positive")
    if not np.isfinite(total):
        raise ValueError("sample_weight has a sum beyond the range of float64; scale it down")
    if mean and total < 1 / float(np.finfo(dtype).max):
        raise ValueError(f"sample_weight has a sum of {total}: its inverse is beyond the range of {dtype}; scale it up")


def shaped(value: ArrayLike, name: str, shape: tuple[int, ...], meaning: str, dtype: np.dtype[Any]) -> FloatArray:
    """Return an array of exactly this shape."""
    array = real_array(value, name, dtype)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, {meaning}, got {array.shape}")
    return array


def shown(value: object) -> str:
    """Return a value with its type, for a message."""
    return f"{written(value)} ({type(value).__name__})"


def written(value: object) -> str:
    """Return a value as Python writes it, cut where that is long; of one that cannot be written, what it is."""
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        return f"a number of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception:
        return object.__repr__(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
