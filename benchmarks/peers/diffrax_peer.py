"""diffrax: one fixed step of length 1 per layer, controls piecewise constant in time, checkpointed reverse mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import diffrax
import jax
import jax.numpy as jnp
from contender import Contender
from jobs import Gradient, Job, Problem

from peers.jax_peer import differentiated

# One checkpoint per layer is fastest; where that takes more than this, diffrax chooses a smaller number itself.
CHECKPOINT_BYTES = 500_000_000


class Kutta4(diffrax.AbstractSolver):
    """The classical fourth-order method; all four stages read the controls at the start of the step.

    A tableau solver of diffrax evaluates the last stage at the end of the step, where the next layer's controls hold.
    """

    term_structure: ClassVar = diffrax.ODETerm
    interpolation_cls: ClassVar = diffrax.LocalLinearInterpolation

    def order(self, terms):
        return 4

    def init(self, terms, t0, t1, y0, args):
        return None

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        length = terms.contr(t0, t1)
        k1 = terms.vf(t0, y0, args)
        k2 = terms.vf(t0, y0 + length / 2 * k1, args)
        k3 = terms.vf(t0, y0 + length / 2 * k2, args)
        k4 = terms.vf(t0, y0 + length * k3, args)
        y1 = y0 + length / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y1, None, {"y0": y0, "y1": y1}, None, diffrax.RESULTS.successful

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)


SOLVERS = {"euler": diffrax.Euler, "kutta4": Kutta4}


def layer_field(t, state, controls):
    K, b, h = controls
    j = t.astype(int)
    return h[j] * jnp.tanh(K[j] @ state + b[j][:, None])


def last_state(job: Job, K: jax.Array, b: jax.Array, h: jax.Array, first: jax.Array) -> jax.Array:
    checkpoints = job.N if job.N * first.nbytes <= CHECKPOINT_BYTES else None
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(layer_field),
        SOLVERS[job.tableau](),
        t0=0,
        t1=job.N,
        dt0=1,
        y0=first,
        args=(K, b, h),
        saveat=diffrax.SaveAt(t1=True),
        adjoint=diffrax.RecursiveCheckpointAdjoint(checkpoints),
        max_steps=job.N,
    )
    return solution.ys[0]


def gradient(job: Job, problem: Problem, threads: int) -> Callable[[], Gradient]:
    return differentiated(job, problem, last_state)


CONTENDERS = {"diffrax": Contender(gradient)}
