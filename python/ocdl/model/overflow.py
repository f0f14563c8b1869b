"""Error messages for evaluations that overflow, or whose implicit stage equations cannot be solved."""

from typing import Any, NoReturn

import numpy as np

from ocdl import _core
from ocdl.base.validation import FloatArray

UNSOLVED = "the stage equations"  # begins a sentence about equations without a solution
ROWS = 256  # that run forward at a time, so that the search needs little memory for any number of samples


def report(core_network: _core.Network, vector: FloatArray, X: FloatArray) -> NoReturn:
    """Run forward again and raise a FloatingPointError that names the first sample and layer that are not finite."""
    raise FloatingPointError(describe_overflow(core_network, vector, X) or describe_later_overflow(vector.dtype))


def describe_unsolved_stages(
    core_network: _core.Network, vector: FloatArray, X: FloatArray, first_row: int = 0
) -> str | None:
    """Return a sentence about the first sample and layer whose stage equations are not solved; None if they are."""
    sentence = describe_overflow(core_network, vector, X, first_row) if core_network.is_implicit else None
    return sentence if sentence is not None and sentence.startswith(UNSOLVED) else None


def describe_overflow(core_network: _core.Network, vector: FloatArray, X: FloatArray, first_row: int = 0) -> str | None:
    """Return a sentence about the first sample and layer that are not finite; samples are counted from `first_row`."""
    for first in range(0, len(X), ROWS):
        states, outputs = core_network.forward(vector, X[first : first + ROWS])
        for layer, state in enumerate(states):
            bad = _core.first_non_finite(state)
            if bad >= 0:
                sample = first_row + first + bad // state.shape[1]
                if core_network.is_implicit and np.isnan(state.flat[bad]):
                    return (
                        f"{UNSOLVED} of layer {layer - 1} of {len(states) - 1} were not solved for sample "
                        f"{sample}: Newton's method does not converge; take shorter steps, or scale the controls down"
                    )
                return (
                    f"the flow overflows {vector.dtype}: the state of sample {sample} is not "
                    f"finite after layer {layer - 1} of {len(states) - 1}; scale the data or the controls down"
                )
        bad = _core.first_non_finite(outputs)
        if bad >= 0:
            return (
                f"the outputs W y + mu overflow {vector.dtype} for sample "
                f"{first_row + first + bad // outputs.shape[1]}; scale the data or the controls down"
            )
    return None


def describe_later_overflow(dtype: np.dtype[Any]) -> str:
    """Return the message for an overflow after the flow, when every state is finite."""
    return (
        f"the objective or its derivatives overflow {dtype} although the flow is finite; "
        "scale the data or the controls down"
    )
