"""The jobs that every benchmark refers to, and the data of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


class Tableau(NamedTuple):
    """An explicit Runge-Kutta method: strictly lower triangular A and weights b."""

    A: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]

    @property
    def stages(self) -> int:
        return len(self.b)


TABLEAUX = {
    "euler": Tableau(A=((0.0,),), b=(1.0,)),
    "kutta4": Tableau(
        A=((0.0, 0.0, 0.0, 0.0), (0.5, 0.0, 0.0, 0.0), (0.0, 0.5, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)),
        b=(1 / 6, 1 / 3, 1 / 3, 1 / 6),
    ),
}


@dataclass(frozen=True)
class Job:
    """A network of N layers and width d with tanh and squared loss, on m samples."""

    name: str
    d: int
    N: int
    m: int
    tableau: str = "euler"
    learned_steps: bool = False
    dtype: str = "float64"
    horizon: float = 1.0
    data: str = "normal"
    iterations: int = 0
    thread_counts: tuple[int, ...] = (2,)

    @property
    def method(self) -> Tableau:
        return TABLEAUX[self.tableau]

    @property
    def summary(self) -> str:
        steps = ", learned steps" if self.learned_steps else ""
        iterations = f", {self.iterations} iterations on {self.data} data" if self.iterations else ""
        return f"d {self.d}, N {self.N}, m {self.m:g}, {self.tableau}, {self.dtype}{steps}{iterations}"

    def problem(self) -> Problem:
        return make_problem(self)


GRADIENT_JOBS = (
    Job("J1", d=2, N=20, m=1000, thread_counts=(2, 1)),
    Job("J2", d=2, N=15, m=1000, tableau="kutta4", horizon=1.5, thread_counts=(2, 1)),
    Job("J3", d=2, N=20, m=1000, learned_steps=True, thread_counts=(2, 1)),
    Job("J4", d=784, N=20, m=100),
    Job("J4f", d=784, N=20, m=100, dtype="float32"),
    Job("J5", d=16, N=100, m=10_000, tableau="kutta4"),
    Job("J6", d=512, N=20, m=10_000, dtype="float32"),
    Job("J9", d=2, N=5, m=100, thread_counts=(2, 1)),
)
TRAINING_JOBS = (Job("J7", d=2, N=20, m=1000, data="spiral", iterations=1000, thread_counts=(2, 1)),)
PREDICTION_JOBS = (Job("J8", d=2, N=20, m=1_000_000, thread_counts=(2, 1)),)
JOBS = {job.name: job for job in GRADIENT_JOBS + TRAINING_JOBS + PREDICTION_JOBS}

# A training is Algorithm 2 with these constants, on the sum of the losses instead of their mean and with fixed steps.
L0, RHO_UP, RHO_DOWN = 1.0, 2.0, 0.9


class Problem(NamedTuple):
    """Controls K (N,d,d), b (N,d), h (N,), W (1,d), mu (1,); samples X (m,d) with labels y (m,) of 0 and 1."""

    K: np.ndarray
    b: np.ndarray
    h: np.ndarray
    W: np.ndarray
    mu: np.ndarray
    X: np.ndarray
    y: np.ndarray


class Gradient(NamedTuple):
    """Loss and derivatives in the shapes of the controls; h is None unless the steps are learned."""

    loss: Any
    K: Any
    b: Any
    h: Any
    W: Any
    mu: Any


class Training(NamedTuple):
    """The objective before the first and after every iteration; how often it was evaluated with its gradient."""

    losses: Any
    evaluations: Any


def make_problem(job: Job) -> Problem:
    """Random controls and samples, the same for every contender; K and W are scaled so that any width behaves alike."""
    rng = np.random.default_rng(0)
    draw = {
        "K": rng.standard_normal((job.N, job.d, job.d)) / np.sqrt(job.d),
        "b": 0.1 * rng.standard_normal((job.N, job.d)),
        "h": np.full(job.N, job.horizon / job.N),
        "W": rng.standard_normal((1, job.d)) / np.sqrt(job.d),
        "mu": rng.standard_normal(1),
    }
    if job.learned_steps:
        draw["h"] *= rng.uniform(0.5, 1.5, job.N)
    X, y = DATA[job.data](job, rng)
    return Problem(**{name: array.astype(job.dtype, copy=False) for name, array in (draw | {"X": X, "y": y}).items()})


def normal_data(job: Job, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Nothing to learn: labels are drawn by themselves."""
    return rng.standard_normal((job.m, job.d), dtype=job.dtype), rng.integers(0, 2, job.m)


def spiral_data(job: Job, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The paper's two spirals in the plane, in the order of their classes."""
    radius, angle = np.linspace(0.1, 1, job.m // 2), np.linspace(0.1, 2 * np.pi, job.m // 2)
    arm = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    X = np.concatenate([arm, -arm])
    return X + 0.05 * rng.standard_normal(X.shape), np.repeat([0, 1], len(arm))


DATA = {"normal": normal_data, "spiral": spiral_data}
