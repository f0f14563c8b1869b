"""Series of a damped oscillator: a' = -a/10 + 2 b, b' = -2 a - b/10, as arrays and as a table."""

from __future__ import annotations

import numpy as np
import pandas as pd

A = np.array([[-0.1, 2.0], [-2.0, -0.1]])


def oscillate(start: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the exact states at times, (times, 2), from a state at time 0."""
    angle, decay = 2 * times, np.exp(-0.1 * times)
    rotation = np.stack([np.cos(angle), np.sin(angle), -np.sin(angle), np.cos(angle)], axis=1).reshape(-1, 2, 2)
    states: np.ndarray = decay[:, None] * (rotation @ start)
    return states


def make_series(count: int, length: int = 20, noise: float = 0.01) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return noisy series from different starts, and the irregular times of each."""
    rng = np.random.default_rng([count, length])
    times = [np.append(0.0, np.sort(rng.uniform(0.1, 4, length - 1))) for _ in range(count)]
    X = [oscillate(rng.uniform(-2, 2, 2), clock) + noise * rng.normal(size=(length, 2)) for clock in times]
    return X, times


def make_table(count: int, length: int = 20) -> pd.DataFrame:
    """Return such series as rows in a random order: name, t, a, b."""
    X, times = make_series(count, length)
    rows = [
        pd.DataFrame({"name": f"s{i}", "t": clock, "a": x[:, 0], "b": x[:, 1]})
        for i, (x, clock) in enumerate(zip(X, times, strict=True))
    ]
    return pd.concat(rows).sample(frac=1, random_state=0, ignore_index=True)
