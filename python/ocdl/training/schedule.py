"""Schedules: which iterations are evaluated or stored."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ocdl.base import validation


@dataclass(frozen=True)
class Every:
    """Due at the multiples of a number."""

    step: int

    def __contains__(self, iteration: int) -> bool:
        return iteration % self.step == 0

    def after(self, iteration: int) -> int:
        """Return the next iteration at which it is due."""
        return (iteration // self.step + 1) * self.step


@dataclass(frozen=True)
class Listed:
    """Due at these iterations, in increasing order."""

    iterations: tuple[int, ...]

    def __contains__(self, iteration: int) -> bool:
        return bisect_left(self.iterations, iteration) < bisect_right(self.iterations, iteration)

    def after(self, iteration: int) -> int:
        """Return the next iteration at which it is due, LARGEST_COUNT after the last one."""
        index = bisect_right(self.iterations, iteration)
        return self.iterations[index] if index < len(self.iterations) else validation.LARGEST_COUNT


Schedule = Every | Listed


def evaluations(eval_every: int | Sequence[int]) -> Schedule:
    """Return the argument `eval_every` as a schedule; the start belongs to all of them."""
    if isinstance(eval_every, (str, bytes)) or not isinstance(eval_every, (Sequence, np.ndarray)):
        return Every(validation.integer(eval_every, "eval_every", minimum=1))
    if isinstance(eval_every, np.ndarray) and eval_every.ndim != 1:
        raise TypeError(
            f"eval_every must be a whole number or a list of them, got an array of shape {eval_every.shape}"
        )
    listed = {validation.integer(entry, f"eval_every[{i}]", minimum=0) for i, entry in enumerate(eval_every)}
    return Listed(tuple(sorted(listed | {0})))
