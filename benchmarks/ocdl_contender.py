"""ocdl through its public interface."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from contender import BEFORE, Contender
from jobs import L0, RHO_DOWN, RHO_UP, Gradient, Job, Problem, Training

import ocdl


def network_and_controls(job: Job, problem: Problem) -> tuple[ocdl.Network, ocdl.Controls]:
    net = ocdl.Network(
        job.d,
        job.N,
        tableau=job.tableau,
        time_steps="free" if job.learned_steps else "fixed",
        horizon=job.horizon,
        dtype=job.dtype,
    )
    return net, net.controls(K=problem.K, b=problem.b, h=problem.h, W=problem.W, mu=problem.mu)


def gradient(job: Job, problem: Problem, threads: int) -> Callable[[], Gradient]:
    ocdl.set_num_threads(threads)
    net, controls = network_and_controls(job, problem)
    labels = problem.y.astype(np.int64)
    objective = ocdl.Objective(loss="squared", reduction="mean")

    def evaluate() -> Gradient:
        loss, g = net.value_and_grad(controls, problem.X, labels, objective)
        return Gradient(loss, g.K, g.b, g.h if job.learned_steps else None, g.W, g.mu)

    return evaluate


def prediction(job: Job, problem: Problem, threads: int) -> Callable[[], np.ndarray]:
    ocdl.set_num_threads(threads)
    net, controls = network_and_controls(job, problem)
    return lambda: net.predict(controls, problem.X)


def training(job: Job, problem: Problem, threads: int) -> Callable[[], Training]:
    ocdl.set_num_threads(threads)
    net, controls = network_and_controls(job, problem)
    labels = problem.y.astype(np.int64)
    objective = ocdl.Objective(loss="squared", reduction="sum")
    optimiser = ocdl.Backtracking(L0=L0, rho_up=RHO_UP, rho_down=RHO_DOWN)

    def train() -> Training:
        r = ocdl.train(
            net,
            controls,
            problem.X,
            labels,
            objective=objective,
            optimiser=optimiser,
            max_iter=job.iterations,
            tol=0,
            eval_every=10**9,  # no accuracies: the peers compute none
        )
        return Training(r.history.loss, r.n_evals)

    return train


CONTENDERS = dict.fromkeys(("ocdl", BEFORE), Contender(gradient, prediction, training))
