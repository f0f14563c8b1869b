"""diffrax on the jobs of dynamics.py, as its documentation writes neural ODEs: a solve per window, under vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
from contender import Contender
from dynamics_jobs import DynamicsGradient, DynamicsJob, DynamicsProblem

import peers.jax_peer  # noqa: F401, computes in double precision

STEPS = (20, 25, 30, 40, 60, 100)  # of equal length, where error and time are weighed
TOLERANCES = (3e-7, 1e-7, 3e-8, 1e-8)
REFERENCE_TOLERANCE = 1e-12
MOST_STEPS = 4096


def field(t: jax.Array, y: jax.Array, controls: Any) -> jax.Array:
    K, b, V = controls
    return V @ jnp.tanh(K @ y + b)


def gradient(
    solver: diffrax.AbstractSolver, steps: int | None = None, tolerance: float | None = None
) -> Callable[[DynamicsJob, DynamicsProblem, int], Callable[[], DynamicsGradient]]:
    """With so many steps of equal length, the job's number of them, or steps chosen for a tolerance."""

    def build(job: DynamicsJob, problem: DynamicsProblem, threads: int) -> Callable[[], DynamicsGradient]:
        count = steps or job.N
        options: dict[str, Any] = {"dt0": job.horizon / count, "max_steps": count + 1}
        if tolerance is not None:
            controller = diffrax.PIDController(rtol=tolerance, atol=tolerance)
            options = {"dt0": None, "max_steps": MOST_STEPS, "stepsize_controller": controller}

        def solve(controls: Any, first: jax.Array, times: jax.Array) -> jax.Array:
            return diffrax.diffeqsolve(
                diffrax.ODETerm(field),
                solver,
                t0=0.0,
                t1=job.horizon,
                y0=first,
                args=controls,
                saveat=diffrax.SaveAt(ts=times),
                **options,
            ).ys

        def loss(controls: Any, first: jax.Array, times: jax.Array, values: jax.Array) -> jax.Array:
            states = jax.vmap(solve, (None, 0, 0 if times.ndim == 2 else None))(controls, first, times)
            return 0.5 * jnp.sum((states - values) ** 2)

        call = jax.jit(jax.value_and_grad(loss))
        controls = tuple(jnp.asarray(part) for part in (problem.K, problem.b, problem.V))
        data = tuple(jnp.asarray(part) for part in (problem.X, problem.times, problem.values))

        def evaluate() -> DynamicsGradient:
            value, derivatives = jax.block_until_ready(call(controls, *data))
            return DynamicsGradient(value, *derivatives)

        return evaluate

    return build


def with_steps(count: int) -> str:
    return f"diffrax, Tsit5, {count} steps"


def with_tolerance(tolerance: float) -> str:
    return f"diffrax, Tsit5, tolerance {tolerance:.0e}"


CONTENDERS = {
    "diffrax, Tsit5": Contender(gradient(diffrax.Tsit5())),
    "reference": Contender(gradient(diffrax.Dopri8(), tolerance=REFERENCE_TOLERANCE)),
    **{with_steps(count): Contender(gradient(diffrax.Tsit5(), steps=count)) for count in STEPS},
    **{with_tolerance(each): Contender(gradient(diffrax.Tsit5(), tolerance=each)) for each in TOLERANCES},
}
