"""Convert `random_state` to a source of random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ocdl.base import validation

RandomSource = np.random.Generator | np.random.RandomState


def random_source(random_state: Any) -> RandomSource:
    """Return the given source of random numbers, or a new one with the given seed."""
    if isinstance(random_state, np.random.RandomState):
        return random_state
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            "random_state must be None, a whole number, a numpy Generator or RandomState, "
            f"got {validation.format_with_type(random_state)}"
        ) from error


def draw_seed(random_state: Any) -> int:
    """Return a seed for the core, drawn from the random state."""
    return int.from_bytes(random_source(random_state).bytes(7), "little")
