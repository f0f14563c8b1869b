"""The jobs of dynamics.py: y' = V tanh(K y + b), the same at all times, learned from observations of short windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True)
class DynamicsJob:
    """m windows of N steps of length h; all steps are observed, or each window at its own times."""

    name: str
    d: int
    width: int
    N: int
    m: int
    h: float
    own_times: int = 0
    threads: int = 1
    instruction_set: str = ""
    """What everybody is held to; empty: each takes what the processor has."""

    @property
    def horizon(self) -> float:
        return self.N * self.h

    @property
    def summary(self) -> str:
        observed = f"{self.own_times} own times each" if self.own_times else "every step observed"
        threads = "one thread" if self.threads == 1 else f"{self.threads} threads"
        held = f", {self.instruction_set.upper()}" if self.instruction_set else ""
        return f"d {self.d}, width {self.width}, {self.m:g} windows of {self.N} steps, {observed}, {threads}{held}"

    def problem(self) -> DynamicsProblem:
        """Controls of a field with slopes of size 1, windows with random starts, and values to fit."""
        rng = np.random.default_rng(0)
        K = rng.standard_normal((self.width, self.d)) / np.sqrt(self.d)
        b = 0.5 * rng.standard_normal(self.width)
        V = rng.standard_normal((self.d, self.width)) / np.sqrt(self.width)
        X = rng.standard_normal((self.m, self.d))
        times = np.arange(self.N + 1) * self.h
        if self.own_times:
            times = np.sort(rng.uniform(0, self.horizon, (self.m, self.own_times)), axis=1)
        values = X[:, None] + 0.3 * rng.standard_normal((self.m, times.shape[-1], self.d))
        return DynamicsProblem(K, b, V, X, times, values)


DYNAMICS_JOBS = (
    DynamicsJob("D1", d=2, width=50, N=9, m=20, h=0.025, instruction_set="avx2"),
    DynamicsJob("D2", d=4, width=64, N=20, m=1000, h=0.05, threads=2),
    DynamicsJob("D3", d=16, width=128, N=20, m=1000, h=0.05, threads=2),
    DynamicsJob("D4", d=2, width=50, N=100, m=20, h=0.05, own_times=30),
)


class DynamicsProblem(NamedTuple):
    """K (w,d), b (w,), V (d,w); first states X (m,d); times (k,) or (m,k) with values (m,k,d)."""

    K: np.ndarray
    b: np.ndarray
    V: np.ndarray
    X: np.ndarray
    times: np.ndarray
    values: np.ndarray


class DynamicsGradient(NamedTuple):
    """Half the sum of all squared errors, and its derivatives."""

    loss: Any
    K: Any
    b: Any
    V: Any


def error(found: DynamicsGradient, expected: DynamicsGradient) -> float:
    """The largest difference, relative to the largest entry of each part."""
    return max(
        float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))
        for ours, theirs in zip(found, expected, strict=True)
    )
