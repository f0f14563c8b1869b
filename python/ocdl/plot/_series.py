"""What pictures of dynamics share: fitted models, components and their names, colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.plot._classes import OKABE_ITO

FLOAT64 = np.dtype(np.float64)
LINE, OBSERVED, GREY = OKABE_ITO[0], OKABE_ITO[1], "0.65"
METHODS = ("simulate", "initial_state", "derivative")


def require_dynamics(model: object, name: str = "model") -> Any:
    """Return a fitted model that has the methods of `ocdl.Dynamics`."""
    if isinstance(model, type) or not all(callable(getattr(model, method, None)) for method in METHODS):
        raise TypeError(f"{name} must be a fitted Dynamics, got {validation.format_with_type(model)}")
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    return model


def component_label(names: Sequence[str] | None, component: int) -> str:
    """Return the name of a component, or its symbol."""
    return f"y{component}" if names is None else names[component]


def observe(model: Any, states: FloatArray) -> FloatArray:
    """Return what is observed of states (..., components), (..., columns of X)."""
    outputs: FloatArray = states @ model._observation_matrix.T
    return outputs


def observed_names(model: Any, given: Sequence[str] | None) -> Sequence[str] | None:
    """Return the names of the columns: those of a table, or those of the components that they observe."""
    matrix = model._observation_matrix
    if given is not None or (np.count_nonzero(matrix, axis=1) > 1).any():
        return given
    return [model.state_names_[j] for j in np.abs(matrix).argmax(axis=1)]


def to_components(model: Any, values: FloatArray) -> FloatArray:
    """Return observed values in the place of the components that they observe, NaN for the others."""
    matrix = getattr(model, "_observation_matrix", None)
    if matrix is None:  # a function, whose states are observed
        return values
    if (np.count_nonzero(matrix, axis=1) > 1).any():
        raise ValueError("X must be left out: the model observes sums of components, which no axis shows")
    if values.shape[1] != len(matrix):
        raise ValueError(f"X has {values.shape[1]} columns, but the model was fitted with {len(matrix)}")
    places = np.abs(matrix).argmax(axis=1)
    states = np.full((len(values), matrix.shape[1]), np.nan)
    states[:, places] = values / matrix[np.arange(len(matrix)), places]
    return states


def validate_trajectories(trajectories: Any) -> list[FloatArray]:
    """Return one trajectory, a stack or a list of them as a list of arrays (times, components)."""
    if isinstance(trajectories, (list, tuple)) and all(np.ndim(one) == 2 for one in trajectories):
        arrays = [validation.real_array(one, f"trajectories[{i}]", FLOAT64) for i, one in enumerate(trajectories)]
    else:
        array = validation.real_array(trajectories, "trajectories", FLOAT64)
        if array.ndim not in (2, 3):
            raise ValueError(
                f"trajectories must have shape (times, components) or (trajectories, times, components), "
                f"got {array.shape}"
            )
        arrays = [*array] if array.ndim == 3 else [array]
    if not arrays or not all(one.size for one in arrays):
        raise ValueError("trajectories must not be empty")
    return arrays


def validate_components(components: ArrayLike | None, count: int) -> list[int]:
    """Return the numbers of the components to draw; None: all of them."""
    if components is None:
        return list(range(count))
    numbers = [validation.integer(one, "components", minimum=0) for one in np.atleast_1d(np.asarray(components))]
    if not numbers or max(numbers) >= count or len({*numbers}) < len(numbers):
        raise ValueError(f"components must be different numbers from 0 to {count - 1}, got {components!r}")
    return numbers


def interpolate_inputs(inputs: FloatArray, times: FloatArray, at: FloatArray) -> FloatArray:
    """Return inputs between their times, linearly."""
    return np.stack([np.interp(at, times, column) for column in inputs.T], axis=1)
