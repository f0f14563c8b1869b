"""Random numbers: what `random_state` may be, and what it becomes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ocdl.base import validation

RandomSource = np.random.Generator | np.random.RandomState


def random_source(random_state: Any) -> RandomSource:
    """Return the source of random numbers: the one that is given, or a new one with this seed."""
    if isinstance(random_state, np.random.RandomState):
        return random_state
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            "random_state must be None, a whole number, a numpy Generator or RandomState, "
            f"got {validation.shown(random_state)}"
        ) from error


def seed_of(random_state: Any) -> int:
    """Return a seed for the core, drawn from the random state."""
    return int.from_bytes(random_source(random_state).bytes(7), "little")
