"""Time series as users have them, checked: one, a stack or a list, with shared or own times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.base import validation
from ocdl.base.names import pluralise

Floats = NDArray[np.float64]
FLOAT64 = np.dtype(np.float64)
MIN_TIMES = 2


@dataclass(frozen=True, eq=False)
class Series:
    """A series: `values` (n, q) at increasing `times` (n,), NaN where nothing was observed, and `inputs` (n, r)."""

    times: Floats
    values: Floats
    inputs: Floats | None

    def __len__(self) -> int:
        return len(self.times)


@dataclass(frozen=True, eq=False)
class SeriesSet:
    """Series with the same columns; `is_single`: they were given as one array."""

    members: tuple[Series, ...]
    names: tuple[str, ...] | None
    input_names: tuple[str, ...] | None
    is_single: bool

    @property
    def n_columns(self) -> int:
        return int(self.members[0].values.shape[1])

    @property
    def n_inputs(self) -> int:
        inputs = self.members[0].inputs
        return 0 if inputs is None else inputs.shape[1]


def read_series(X: Any, times: Any, inputs: Any = None) -> SeriesSet:
    """Return the series of `Dynamics.fit`; errors name the argument, what was given and what is accepted."""
    arrays, is_single, names = _read_tables(X, "X")
    clocks = _read_times(times, [len(array) for array in arrays], is_single)
    tables: list[Floats | None] = [None] * len(arrays)
    input_names = None
    if inputs is not None:
        given, given_single, input_names = _read_tables(inputs, "inputs")
        if given_single != is_single or len(given) != len(arrays):
            raise ValueError(
                f"inputs must be given as X is, got {pluralise(len(given), 'series', 'series')} of inputs for "
                f"{pluralise(len(arrays), 'series', 'series')}"
            )
        for i, (table, array) in enumerate(zip(given, arrays, strict=True)):
            where = "inputs" if is_single else f"inputs[{i}]"
            if len(table) != len(array):
                raise ValueError(f"{where} has {len(table)} rows but X has {len(array)} there: one row per time")
            if not np.isfinite(table).all():
                raise ValueError(f"{where} must be finite: inputs are known at every time")
            tables[i] = table
    for i, array in enumerate(arrays):
        where = "X" if is_single else f"X[{i}]"
        if np.isinf(array).any():
            raise ValueError(f"{where} has infinite values; values must be finite, or NaN where something is missing")
        rows = int((~np.isnan(array)).any(axis=1).sum())
        if rows == 0:
            raise ValueError(f"{where} is all NaN: nothing was observed")
        if rows < MIN_TIMES:
            raise ValueError(f"{where} has one observation only; a series needs at least {MIN_TIMES} times")
    empty = np.flatnonzero(np.all([np.isnan(array).all(axis=0) for array in arrays], axis=0))
    if empty.size:
        raise ValueError(f"column {empty[0]} of X is all NaN: leave it out, or use observe and augment")
    members = tuple(Series(*one) for one in zip(clocks, arrays, tables, strict=True))
    return SeriesSet(members, names, input_names, is_single)


def _read_tables(given: Any, name: str) -> tuple[list[Floats], bool, tuple[str, ...] | None]:
    """Return the tables of all series, whether they were given as one, and the names of their columns."""
    if isinstance(given, (list, tuple)) and len(given) == 0:
        raise ValueError(f"{name} is an empty list; it needs at least one series")
    is_list = isinstance(given, (list, tuple)) and all(np.ndim(one) == 2 for one in given)
    if is_list:
        tables = [_read_table(one, f"{name}[{i}]") for i, one in enumerate(given)]
        frames = [_column_names(one) for one in given]
        if any(names != frames[0] for names in frames):
            raise ValueError(f"the tables in {name} must have the same columns, got {frames}"[:400])
    elif np.ndim(given) == 3:
        stack = validation.plain_array(given, name, FLOAT64)
        tables, frames = [_read_table(one, f"{name}[{i}]") for i, one in enumerate(stack)], [None]
    else:
        tables, frames = [_read_table(given, name)], [_column_names(given)]
    if not tables:
        raise ValueError(f"{name} has no series; it needs at least one")
    widths = sorted({table.shape[1] for table in tables})
    if len(widths) > 1:
        raise ValueError(f"the series in {name} must have as many columns as one another, got {widths}")
    return tables, not is_list and np.ndim(given) == 2, frames[0]


def _read_table(given: Any, name: str) -> Floats:
    array: Floats = np.asarray(validation.plain_array(given, name, FLOAT64))
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"{name} must be one series of shape (times, components), a stack (series, times, components), or a list "
            f"of series, got shape {array.shape}"
        )
    return array


def _column_names(given: Any) -> tuple[str, ...] | None:
    columns = getattr(given, "columns", None)
    return None if columns is None else tuple(str(column) for column in columns)


def _read_times(times: Any, lengths: list[int], is_single: bool) -> list[Floats]:
    """Return the times of each series."""
    if isinstance(times, str) or times is None:
        raise TypeError("times must be a time step, an array of times, or a list of these, one per series")
    if not isinstance(times, (list, tuple)) and np.ndim(times) == 0:
        step = validation.positive(times, "times")
        return [step * np.arange(length, dtype=np.float64) for length in lengths]
    is_list = isinstance(times, (list, tuple))
    if (is_list and len(times) > 0 and all(np.ndim(one) == 1 for one in times)) or (
        not is_list and np.ndim(times) == 2
    ):
        if len(times) != len(lengths):
            raise ValueError(
                f"times has {pluralise(len(times), 'array')} for {pluralise(len(lengths), 'series', 'series')}"
            )
        return [_check_times(one, f"times[{i}]", n) for i, (one, n) in enumerate(zip(times, lengths, strict=True))]
    return [_check_times(times, "times", lengths[0])] if is_single else _share_times(times, lengths)


def _is_list_of_arrays(times: Any) -> bool:
    if isinstance(times, (list, tuple)):
        return len(times) > 0 and all(np.ndim(one) == 1 for one in times)
    return np.ndim(times) == 2


def _share_times(times: Any, lengths: list[int]) -> list[Floats]:
    if len(set(lengths)) > 1:
        raise ValueError(
            f"times must be a list with an array for each series, which have different lengths: {lengths[:8]}"
        )
    shared = _check_times(times, "times", lengths[0])
    return [shared] * len(lengths)


def _check_times(given: Any, name: str, length: int) -> Floats:
    clock = np.asarray(validation.real_array(given, name, FLOAT64))
    if clock.shape != (length,):
        raise ValueError(f"{name} must have shape ({length},), one time per row of the series, got {clock.shape}")
    late = np.flatnonzero(np.diff(clock) <= 0)
    if late.size:
        i = int(late[0])
        raise ValueError(f"{name} must increase, but {name}[{i + 1}] = {clock[i + 1]} comes after {clock[i]}")
    return clock


def simulation_times(times: Any) -> Floats:
    """Return the times of a simulation, checked."""
    clock = np.asarray(validation.real_array(times, "times", FLOAT64))
    if clock.ndim != 1 or clock.size == 0:
        raise ValueError(f"times must have shape (times,), got {clock.shape}")
    return _check_times(clock, "times", len(clock))
