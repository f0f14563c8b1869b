"""Time series of systems with known equations, by SciPy's integrator of high order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

Floats = NDArray[np.float64]
Field = Callable[[float, Floats], list[float]]


def oscillator(_: float, y: Floats) -> list[float]:
    """A damped oscillator with a cubic spring: four terms of degree 3."""
    return [y[1], -y[0] - 0.3 * y[1] - 0.5 * y[0] ** 3]


def saturation(_: float, y: Floats) -> list[float]:
    """A damped oscillator that no polynomial is."""
    return [y[1], -2 * np.sin(y[0]) - 0.2 * y[1]]


def solve(field: Field, y0: Floats, times: Floats) -> Floats:
    """Return the states at times, (times, components), from y0 at the first of them."""
    span = (float(times[0]), float(times[-1]))
    found = solve_ivp(field, span, y0, t_eval=times, rtol=1e-10, atol=1e-12, method="DOP853")
    return np.asarray(found.y.T)


def irregular_series(
    field: Field, *, count: int = 10, n: int = 20, end: float = 6.0, noise: float = 0.0, seed: int = 0
) -> tuple[list[Floats], list[Floats]]:
    """Return series with own irregular times, from states within [-1.5, 1.5]^2."""
    rng = np.random.default_rng(seed)
    X, times = [], []
    for _ in range(count):
        t = np.append(0.0, np.cumsum(rng.uniform(0.3, 1.7, n - 1)))
        t *= end / t[-1]
        y = solve(field, rng.uniform(-1.5, 1.5, 2), t)
        X.append(y + noise * rng.standard_normal(y.shape))
        times.append(t)
    return X, times
