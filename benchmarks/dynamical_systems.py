"""The systems of `dynamics_learning.py`: ten that are judged, and those on which the settings of ocdl were chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

Floats = NDArray[np.float64]
POINTS = 81  # of a judged trajectory, the first half of them within the time of the data


@dataclass(frozen=True)
class Benchmark:
    """A system y' = field(y, x), the box of its initial states, the time of its data and its true terms.

    `terms` are the coefficients of a polynomial by (component, exponents); none: it is no polynomial.
    """

    field: Callable[[Floats, float], list[float]]
    low: tuple[float, ...]
    high: tuple[float, ...]
    end: float
    terms: dict[tuple[int, tuple[int, ...]], float] = field(default_factory=dict)
    has_input: bool = False


JUDGED_ON = {
    "cubic spiral": Benchmark(
        lambda y, x: [-0.1 * y[0] ** 3 - 2 * y[1] ** 3, 2 * y[0] ** 3 - 0.1 * y[1] ** 3],
        (-2.0, -2.0), (2.0, 2.0), 6.0,
        {(0, (3, 0)): -0.1, (0, (0, 3)): -2.0, (1, (3, 0)): 2.0, (1, (0, 3)): -0.1},
    ),
    "Van der Pol": Benchmark(
        lambda y, x: [y[1], (1 - y[0] ** 2) * y[1] - y[0]],
        (-3.0, -3.0), (3.0, 3.0), 10.0,
        {(0, (0, 1)): 1.0, (1, (0, 1)): 1.0, (1, (1, 0)): -1.0, (1, (2, 1)): -1.0},
    ),
    "Lotka-Volterra": Benchmark(
        lambda y, x: [1.5 * y[0] - y[0] * y[1], y[0] * y[1] - 3 * y[1]],
        (1.0, 0.5), (6.0, 3.0), 6.0,
        {(0, (1, 0)): 1.5, (0, (1, 1)): -1.0, (1, (1, 1)): 1.0, (1, (0, 1)): -3.0},
    ),
    "pendulum": Benchmark(lambda y, x: [y[1], -np.sin(y[0]) - 0.1 * y[1]], (-2.0, -1.0), (2.0, 1.0), 12.0),
    "forced Duffing": Benchmark(
        lambda y, x: [y[1], y[0] - y[0] ** 3 - 0.3 * y[1] + x],
        (-1.5, -1.0), (1.5, 1.0), 10.0,
        {(0, (0, 1, 0)): 1.0, (1, (1, 0, 0)): 1.0, (1, (3, 0, 0)): -1.0, (1, (0, 1, 0)): -0.3, (1, (0, 0, 1)): 1.0},
        has_input=True,
    ),
    "Lorenz": Benchmark(
        lambda y, x: [10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]],
        (-15.0, -15.0, 10.0), (15.0, 15.0, 40.0), 1.5,
        {
            (0, (1, 0, 0)): -10.0, (0, (0, 1, 0)): 10.0, (1, (1, 0, 0)): 28.0, (1, (1, 0, 1)): -1.0,
            (1, (0, 1, 0)): -1.0, (2, (1, 1, 0)): 1.0, (2, (0, 0, 1)): -8 / 3,
        },
    ),
    "Hopf": Benchmark(
        lambda y, x: [
            0.5 * y[0] - y[1] - y[0] * (y[0] ** 2 + y[1] ** 2), y[0] + 0.5 * y[1] - y[1] * (y[0] ** 2 + y[1] ** 2)
        ],
        (-1.5, -1.5), (1.5, 1.5), 8.0,
        {
            (0, (1, 0)): 0.5, (0, (0, 1)): -1.0, (0, (3, 0)): -1.0, (0, (1, 2)): -1.0,
            (1, (1, 0)): 1.0, (1, (0, 1)): 0.5, (1, (2, 1)): -1.0, (1, (0, 3)): -1.0,
        },
    ),
    "double well": Benchmark(
        lambda y, x: [y[1], y[0] - y[0] ** 3 - 0.2 * y[1]],
        (-1.5, -1.0), (1.5, 1.0), 10.0,
        {(0, (0, 1)): 1.0, (1, (1, 0)): 1.0, (1, (3, 0)): -1.0, (1, (0, 1)): -0.2},
    ),
    "saturating predator": Benchmark(
        lambda y, x: [y[0] * (1 - y[0] / 3) - y[0] * y[1] / (1 + y[0]), 0.8 * y[0] * y[1] / (1 + y[0]) - 0.4 * y[1]],
        (0.3, 0.3), (3.0, 2.0), 20.0,
    ),
    "toggle switch": Benchmark(
        lambda y, x: [3 / (1 + y[1] ** 2) - y[0], 3 / (1 + y[0] ** 2) - y[1]], (0.1, 0.1), (3.0, 3.0), 6.0
    ),
}  # fmt: skip

CHOSEN_ON = (
    "FitzHugh-Nagumo, the Brusselator, Roessler, SIR, a damped oscillator with a cubic spring, two tanks with square "
    "roots, glycolysis (Selkov), an oscillator with quadratic damping, competing species, and x' = y z - x, "
    "y' = x z / 2 - y, z' = 1 - z - x y"
)


@dataclass(frozen=True)
class Data:
    """Noisy series to learn from, and exact trajectories of new initial states at `times`; inputs or None."""

    X: list[Floats]
    times: list[Floats]
    inputs: list[Floats] | None
    y0: Floats
    new_times: Floats
    new_inputs: Floats | None
    truth: Floats
    spread: Floats


def make_data(system: Benchmark, noise: float, seed: int, series: int = 20, n: int = 30, new: int = 10) -> Data:
    """Return series with own irregular times; noise is relative to the standard deviation of each component."""
    rng = np.random.default_rng([seed, round(1000 * noise)])
    low, high = np.array(system.low), np.array(system.high)
    X, times, inputs = [], [], []
    for _ in range(series):
        gaps = rng.uniform(0.2, 1.8, n - 1)
        t = np.append(0.0, np.cumsum(gaps)) * system.end / gaps.sum()
        x = rng.uniform(-1, 1, n) if system.has_input else np.zeros(n)
        X.append(_solve(system, low + (high - low) * rng.random(len(low)), t, x))
        times.append(t)
        inputs.append(x[:, None])
    spread = np.concatenate(X).std(axis=0)
    X = [one + noise * spread * rng.standard_normal(one.shape) for one in X]
    y0 = low + (high - low) * rng.random((new, len(low)))
    new_times = np.linspace(0, 2 * system.end, POINTS)
    new_x = rng.uniform(-1, 1, (new, POINTS)) if system.has_input else np.zeros((new, POINTS))
    truth = np.stack([_solve(system, y, new_times, x) for y, x in zip(y0, new_x, strict=True)])
    known = system.has_input
    return Data(X, times, inputs if known else None, y0, new_times, new_x[..., None] if known else None, truth, spread)


def _solve(system: Benchmark, y0: Floats, times: Floats, x: Floats) -> Floats:
    found = solve_ivp(
        lambda t, y: system.field(y, float(np.interp(t, times, x))),
        (0.0, times[-1]), y0, t_eval=times, rtol=1e-8, atol=1e-9, method="RK45",
        max_step=float(np.diff(times).min()) if system.has_input else np.inf,
    )  # fmt: skip
    return found.y.T


def simulation_errors(simulated: Floats, data: Data) -> tuple[float, float]:
    """Return the root mean square errors over the spread within the time of the data and beyond, 10 at most each."""
    error = np.clip(np.nan_to_num((simulated - data.truth) / data.spread, nan=10.0), -10, 10)
    middle = POINTS // 2 + 1
    return float(np.sqrt(np.mean(error[:, :middle] ** 2))), float(np.sqrt(np.mean(error[:, middle:] ** 2)))


def is_true_equation(system: Benchmark, exponents: Floats, coefficients: Floats) -> bool:
    """Whether the terms are the true ones, with coefficients within 5 %."""
    found = {
        (i, tuple(int(e) for e in row)): float(c)
        for i, line in enumerate(coefficients)
        for row, c in zip(exponents, line, strict=True)
        if c != 0
    }
    return found.keys() == system.terms.keys() and all(abs(found[k] / c - 1) <= 0.05 for k, c in system.terms.items())
