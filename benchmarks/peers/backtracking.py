"""Algorithm 2 as a loop in Python around a gradient that reads the problem's arrays anew at every evaluation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jobs import L0, RHO_DOWN, RHO_UP, Gradient, Job, Problem, Training

MOST_TRIALS = 200

GradientBuilder = Callable[[Job, Problem, int], Callable[[], Gradient]]
TrainingBuilder = Callable[[Job, Problem, int], Callable[[], Training]]


def backtracking(gradient: GradientBuilder) -> TrainingBuilder:
    """The training that takes its steps with this gradient: all K, b, W and mu are views of one vector."""

    def training(job: Job, problem: Problem, threads: int) -> Callable[[], Training]:
        learned = (problem.K, problem.b, problem.W, problem.mu)
        start = np.concatenate([part.ravel() for part in learned])
        trial = start.copy()
        pieces = np.split(trial, np.cumsum([part.size for part in learned])[:-1])
        K, b, W, mu = (piece.reshape(part.shape) for piece, part in zip(pieces, learned, strict=True))
        evaluate = gradient(job, problem._replace(K=K, b=b, W=W, mu=mu), threads)

        def sum_and_gradient() -> tuple[float, np.ndarray]:
            """Of the losses at `trial`; the gradient builder has their mean."""
            mean = evaluate()
            g = np.concatenate([np.ravel(part) for part in (mean.K, mean.b, mean.W, mean.mu)])
            return job.m * float(mean.loss), job.m * g

        def train() -> Training:
            u, L, evaluations = start, L0, 1
            trial[:] = u
            phi, g = sum_and_gradient()
            losses = [phi]
            for _ in range(job.iterations):
                decrease = g @ g / 2
                for _ in range(MOST_TRIALS):
                    np.subtract(u, g / L, out=trial)
                    value, next_g = sum_and_gradient()
                    evaluations += 1
                    if value <= phi - decrease / L:
                        break
                    L *= RHO_UP
                else:
                    raise ArithmeticError(f"no step was accepted after {len(losses) - 1} iterations")
                u, phi, g, L = trial.copy(), value, next_g, RHO_DOWN * L
                losses.append(phi)
            return Training(np.array(losses), evaluations)

        return train

    return training
