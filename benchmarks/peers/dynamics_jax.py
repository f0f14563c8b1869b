"""JAX on the jobs of dynamics.py: Kutta's method written out by hand, or as a scan over the steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from contender import Contender
from dynamics_jobs import DynamicsGradient, DynamicsJob, DynamicsProblem

from peers.jax_peer import WRITTEN_OUT_WIDTH, quickest, written_out_product

Field = Callable[[Any, jax.Array], jax.Array]
States = Callable[[DynamicsJob, Field, Any, jax.Array], jax.Array]


def field_of_rows(controls: Any, y: jax.Array) -> jax.Array:
    K, b, V = controls
    return jnp.tanh(y @ K.T + b) @ V.T


def field_of_columns(controls: Any, y: jax.Array) -> jax.Array:
    K, b, V = controls
    return V @ jnp.tanh(K @ y + b[:, None])


def field_written_out(controls: Any, y: jax.Array) -> jax.Array:
    K, b, V = controls
    return V @ jnp.tanh(written_out_product(K, y) + b[:, None])


def step(h: float, field: Field, controls: Any, y: jax.Array) -> jax.Array:
    k1 = field(controls, y)
    k2 = field(controls, y + h / 2 * k1)
    k3 = field(controls, y + h / 2 * k2)
    k4 = field(controls, y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def written_out(job: DynamicsJob, field: Field, controls: Any, first: jax.Array) -> jax.Array:
    states = [first]
    for _ in range(job.N):
        states.append(step(job.h, field, controls, states[-1]))
    return jnp.stack(states)


def scanned(job: DynamicsJob, field: Field, controls: Any, first: jax.Array) -> jax.Array:
    return scan(job, field, controls, first, lambda layer: layer)


def scanned_again(job: DynamicsJob, field: Field, controls: Any, first: jax.Array) -> jax.Array:
    """With the stages computed again on the way back."""
    return scan(job, field, controls, first, jax.checkpoint)


def scan(job: DynamicsJob, field: Field, controls: Any, first: jax.Array, wrap: Callable[[Any], Any]) -> jax.Array:
    def layer(y: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        y = step(job.h, field, controls, y)
        return y, y

    return jnp.concatenate([first[None], jax.lax.scan(wrap(layer), first, None, length=job.N)[1]])


def differentiated(
    job: DynamicsJob, problem: DynamicsProblem, states: States, field: Field
) -> Callable[[], DynamicsGradient]:
    """Loss and gradient as one compiled call; columns are samples but for `field_of_rows`."""
    in_rows = field is field_of_rows
    controls = tuple(jnp.asarray(part) for part in (problem.K, problem.b, problem.V))
    first = jnp.asarray(problem.X if in_rows else problem.X.T)
    values = jnp.asarray(problem.values.transpose((1, 0, 2) if in_rows else (1, 2, 0)))

    def loss(controls: Any, first: jax.Array, values: jax.Array) -> jax.Array:
        return 0.5 * jnp.sum((states(job, field, controls, first) - values) ** 2)

    call = jax.jit(jax.value_and_grad(loss))

    def evaluate() -> DynamicsGradient:
        value, gradient = jax.block_until_ready(call(controls, first, values))
        return DynamicsGradient(value, *gradient)

    return evaluate


def gradient(*forms: States) -> Callable[[DynamicsJob, DynamicsProblem, int], Callable[[], DynamicsGradient]]:
    """The quickest of all forms, with samples as rows and as columns."""

    def build(job: DynamicsJob, problem: DynamicsProblem, threads: int) -> Callable[[], DynamicsGradient]:
        fields = [field_of_rows, field_of_columns]
        if job.d <= WRITTEN_OUT_WIDTH:
            fields.append(field_written_out)
        return quickest([differentiated(job, problem, states, field) for states in forms for field in fields])

    return build


def unsupported(job: DynamicsJob) -> str:
    return "own times are not written for it" if job.own_times else ""


CONTENDERS = {
    "jax, written out": Contender(gradient(written_out), unsupported=unsupported),
    "jax, scan": Contender(gradient(scanned, scanned_again), unsupported=unsupported),
}
