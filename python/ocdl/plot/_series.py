"""Check what pictures of dynamics take: observed series, their times, and models that simulate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.base.names import pluralise
from ocdl.base.validation import FloatArray
from ocdl.plot._classes import OKABE_ITO

FLOAT64 = np.dtype(np.float64)
LINE, OBSERVED, GREY = OKABE_ITO[0], OKABE_ITO[1], "0.65"
METHODS = ("simulate", "initial_state", "derivative")


def require_dynamics(model: object, name: str = "model") -> Any:
    """Return a model that has the methods of `ocdl.Dynamics`, once it is fitted."""
    if isinstance(model, type) or not all(callable(getattr(model, method, None)) for method in METHODS):
        raise TypeError(f"{name} must be a fitted Dynamics, got {validation.format_with_type(model)}")
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    return model


def component_names(X: Any, model: object = None) -> list[str] | None:
    """Return the names of the components: the columns of data frames, or those that a model was fitted with."""
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else X
    columns = getattr(first, "columns", None)
    if columns is None:
        columns = getattr(model, "feature_names_in_", None)
    return None if columns is None else [str(name) for name in columns]


def component_label(names: list[str] | None, component: int) -> str:
    """Return the name of a component, or its symbol."""
    return f"$y_{{{component + 1}}}$" if names is None or component >= len(names) else names[component]


def validate_series(X: Any, name: str = "X") -> list[FloatArray]:
    """Return one series, a stack or a list of series as a list of arrays (times, components); NaN is missing."""
    if isinstance(X, (list, tuple)) and len(X) and np.ndim(X[0]) == 2:
        series = [_validate_one(one, f"{name}[{i}]") for i, one in enumerate(X)]
    else:
        array = validation.plain_array(X, name, FLOAT64)
        if array.ndim not in (2, 3):
            raise ValueError(
                f"{name} must have shape (times, components) or (series, times, components), or be a list of series, "
                f"got shape {array.shape}"
            )
        series = [_validate_one(one, name) for one in (array if array.ndim == 3 else array[None])]
    if not series:
        raise ValueError(f"{name} must have at least one series, got none")
    widths = {one.shape[1] for one in series}
    if len(widths) > 1:
        counts = " and ".join(map(str, sorted(widths)))
        raise ValueError(f"{name}: all series must have the same components, got series with {counts} of them")
    return series


def validate_times(times: Any, series: Sequence[FloatArray], name: str = "times") -> list[FloatArray]:
    """Return the times of each series: a time step, times that all series share, or a list of times."""
    if np.ndim(times) == 0:
        step = validation.positive(times, name)
        return [step * np.arange(len(one)) for one in series]
    is_list = isinstance(times, (list, tuple)) and len(times) and np.ndim(times[0]) == 1
    if not is_list and np.ndim(times) == 2:
        is_list, times = True, list(np.asarray(times))
    rows = times if is_list else [times] * len(series)
    if len(rows) != len(series):
        raise ValueError(
            f"{name} has the times of {len(rows)} series, but there are {pluralise(len(series), 'series')}"
        )
    result = []
    for i, (row, one) in enumerate(zip(rows, series, strict=True)):
        label = f"{name}[{i}]" if is_list else name
        clock = validation.real_array(row, label, FLOAT64)
        if clock.shape != (len(one),):
            raise ValueError(f"{label} must have shape ({len(one)},), a time for each row, got {clock.shape}")
        if (np.diff(clock) <= 0).any():
            raise ValueError(f"{label} must increase")
        result.append(clock)
    return result


def validate_inputs(inputs: Any, series: Sequence[FloatArray], name: str = "inputs") -> list[FloatArray | None]:
    """Return the inputs of each series, a row for each of its times; None: the model takes none."""
    if inputs is None:
        return [None] * len(series)
    rows = validate_series(inputs, name)
    if [len(one) for one in rows] != [len(one) for one in series]:
        lengths = ", ".join(str(len(one)) for one in rows)
        raise ValueError(
            f"{name} must have a row for each time of each series, {', '.join(str(len(one)) for one in series)}; "
            f"got {lengths}"
        )
    return list(rows)


def interpolate_inputs(inputs: FloatArray | None, times: FloatArray, at: FloatArray) -> FloatArray | None:
    """Return inputs between their times, linearly."""
    if inputs is None:
        return None
    return np.stack([np.interp(at, times, column) for column in inputs.T], axis=1)


def validate_components(components: ArrayLike | None, count: int, maximum: int | None = None) -> list[int]:
    """Return the numbers of the components to draw; None: all of them."""
    chosen = range(count) if components is None else np.atleast_1d(np.asarray(components)).tolist()
    numbers = [validation.integer(number, "components", minimum=0) for number in chosen]
    if not numbers or max(numbers) >= count or len({*numbers}) < len(numbers):
        raise ValueError(f"components must be different numbers from 0 to {count - 1}, got {components!r}")
    if maximum is not None and len(numbers) != maximum:
        raise ValueError(f"components must be {maximum} numbers, got {components!r}")
    return numbers


def _validate_one(one: Any, name: str) -> FloatArray:
    array = validation.plain_array(one, name, FLOAT64)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"{name} must have shape (times, components), neither of them 0, got {array.shape}")
    if np.isinf(array).any():
        raise ValueError(f"{name} must be finite, or NaN where nothing was observed")
    return array
