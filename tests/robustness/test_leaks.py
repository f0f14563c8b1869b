"""Fits and predictions without end: memory, descriptors and threads stay what they were."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from soak import Soak

from ocdl import ODEClassifier

LOOKS = 200
PIECES = 9
KILOBYTES_PER_THOUSAND = 1.0  # what memory may grow by, once there are enough rounds to see it
NOISE = 2000.0  # kilobytes that the allocator may take or give back at any time

X, Y = make_moons(40, noise=0.1, random_state=0)


def fit(seed: int) -> ODEClassifier:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # five iterations are few
        return ODEClassifier(n_layers=5, max_iter=5, tol=0.0, random_state=seed).fit(X, Y)


MODEL = fit(0)


def predict(seed: int) -> None:
    MODEL.predict_proba(X[seed % 30 : seed % 30 + 1 + seed % 10])


ROUNDS: dict[str, tuple[Callable[[int], object], int]] = {"fits": (fit, 100_000), "predictions": (predict, 1_000_000)}


def look() -> tuple[int, int, int]:
    """Return resident memory in kilobytes, open descriptors and threads."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]), len(os.listdir("/proc/self/fd")), int(status["Threads"])


def growth(do: Callable[[int], object], times: int) -> float:
    """Return the slope of the memory over the last nine tenths, in kilobytes per thousand rounds.

    The median over pieces: what leaks does so in all of them, and the allocator takes more at once in a few.
    """
    appearances, places = [], np.linspace(times // 10, times, min(LOOKS, times // 2), dtype=int)
    following = iter(places.tolist())
    due = next(following)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for n in range(times + 1):
            if n == due:
                appearances.append(look())
                due = next(following, times + 1)
            do(n)
    memory, descriptors, threads = np.array(appearances).T
    for counts in (descriptors, threads):  # another test of this process may close or open one meanwhile
        first, *_, last = np.array_split(counts, PIECES)
        assert np.median(last) <= np.median(first)
    pieces = zip(np.array_split(places, PIECES), np.array_split(memory, PIECES), strict=True)
    return float(1000 * np.median([np.polyfit(at, kilobytes, 1)[0] for at, kilobytes in pieces]))


def test_a_leak_is_seen() -> None:
    kept = []  # more than other tests may have left to the allocator
    assert growth(lambda n: kept.append(np.ones(100_000)), 500) > 400_000


@pytest.mark.parametrize("what", ROUNDS)
def test_nothing_is_left_behind(what: str) -> None:
    assert growth(ROUNDS[what][0], 500) * 0.5 <= NOISE


@pytest.mark.slow
@pytest.mark.parametrize("what", ROUNDS)
def test_nothing_is_left_behind_for_long(what: str, soak: Soak) -> None:
    do, full = ROUNDS[what]
    times = soak.times(full, least=100)
    slope = growth(do, times)
    soak.measured(f"{slope:+.3f} kB of memory per 1,000")
    assert slope <= max(KILOBYTES_PER_THOUSAND, NOISE / times * 1000 if times < full else 0)
