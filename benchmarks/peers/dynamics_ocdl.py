"""ocdl on the jobs of dynamics.py, through its public interface."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from contender import Contender
from dynamics_jobs import DynamicsGradient, DynamicsJob, DynamicsProblem

import ocdl


def gradient(tableau: str) -> Callable[[DynamicsJob, DynamicsProblem, int], Callable[[], DynamicsGradient]]:
    def build(job: DynamicsJob, problem: DynamicsProblem, threads: int) -> Callable[[], DynamicsGradient]:
        ocdl.set_num_threads(threads)
        net = ocdl.Network(
            job.d,
            job.N,
            n_outputs=job.d,
            field="mlp",
            width=job.width,
            control_intervals=1,
            tableau=tableau,
            horizon=job.horizon,
        )
        u = net.controls(K=problem.K[None], b=problem.b[None], V=problem.V[None], W=np.eye(job.d))
        observations = ocdl.Observations(problem.times, problem.values)
        objective = ocdl.Objective("squared_error", reduction="sum")

        def evaluate() -> DynamicsGradient:
            loss, g = net.value_and_grad(u, problem.X, observations, objective)
            return DynamicsGradient(loss, g.K[0], g.b[0], g.V[0])

        return evaluate

    return build


CONTENDERS = {"ocdl": Contender(gradient("kutta4")), "ocdl, 3/8 rule": Contender(gradient("rk38"))}
