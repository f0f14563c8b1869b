"""Outcomes and verdicts for tests of reproductions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ocdl.reproduce.claims import CLAIMS
from ocdl.reproduce.results import Results
from ocdl.reproduce.runs import Run
from ocdl.reproduce.store import Outcome
from ocdl.reproduce.verdict import Verdict
from ocdl.training.history import History


def history(loss: float, test: float = 1.0, early: float = 1.0, training: float | None = None) -> History:
    """A training of 101 iterations with these last values, and an early loss."""
    course = np.full(102, early)
    course[-1] = loss
    nothing, ends = np.zeros(102), np.array([0, 101])
    accuracy = np.array([0.5, test if training is None else training])
    every_iteration = (course, nothing, nothing, nothing.astype(np.int64), nothing)
    return History(*every_iteration, ends, accuracy, np.array([1.0, loss]), np.array([0.5, test]), np.zeros((2, 20)))


def make_outcome(run: Run, past: History, steps: Any = (), controls: Any = None) -> Outcome:
    return Outcome(run, past, np.asarray(steps, dtype=float), np.zeros((10, 2)), controls, 1, 1.0)


def verdict(number: int, outcomes: Iterator[Outcome] | list[Outcome]) -> Verdict:
    results = Results()
    for one in outcomes:
        results.add(one)
    claim = CLAIMS[number - 1]
    return Verdict(claim, list(claim.cases(results)))


def architectures(seed: int = 1, **changed: Any) -> list[Outcome]:
    """Four networks that are as the paper says; keywords replace the history or the steps of some."""
    h = np.full(20, 0.05)
    free, sparse = np.tile([0.3, -0.2], 10), np.zeros(20)
    sparse[[3, 8]] = 0.5
    given = {
        "Net": (history(0.1, 0.7, 0.9), ()),
        "ResNet": (history(0.01, 0.99, 0.5), h),
        "ODENet": (history(0.011, 0.99, 0.4), free),
        "ODENet+Simplex": (history(0.012, 0.99, 0.6), sparse),
    } | changed
    return [make_outcome(Run("architectures", "squares", name, seed, 101), *parts) for name, parts in given.items()]
