"""JAX: one jit-compiled call, feature-major; layers scanned or, for a narrow state if that is faster, unrolled."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from contender import Contender
from jax.flatten_util import ravel_pytree
from jobs import L0, RHO_DOWN, RHO_UP, Gradient, Job, Problem, Tableau, Training

from peers.backtracking import MOST_TRIALS

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_cpu_enable_async_dispatch", False)  # half of the time on J1 would be dispatch

# Up to this width a product written out as scaled rows, fused with tanh, can beat XLA's dot.
WRITTEN_OUT_WIDTH = 4
TRIALS = 5


def written_out_product(K: jax.Array, state: jax.Array) -> jax.Array:
    return sum(K[:, column, None] * state[column] for column in range(K.shape[1]))


def step(
    method: Tableau, product: Callable[..., jax.Array], state: jax.Array, controls: tuple[jax.Array, ...]
) -> jax.Array:
    """One layer: all stages read the same K and b."""
    K, b, h = controls
    slopes: list[jax.Array] = []
    for row in method.A:
        argument = state + sum(h * a * slope for a, slope in zip(row, slopes, strict=False) if a)
        slopes.append(jnp.tanh(product(K, argument) + b[:, None]))
    return state + sum(h * weight * slope for weight, slope in zip(method.b, slopes, strict=True))


def unrolled(job: Job, K: jax.Array, b: jax.Array, h: jax.Array, first: jax.Array) -> jax.Array:
    state = first
    for j in range(job.N):
        state = step(job.method, written_out_product, state, (K[j], b[j], h[j]))
    return state


def scanned(job: Job, K: jax.Array, b: jax.Array, h: jax.Array, first: jax.Array) -> jax.Array:
    def layer(state, controls):
        return step(job.method, jnp.matmul, state, controls), None

    # Several stages are cheaper to recompute than to write to memory and read back; a single one is not.
    body = jax.checkpoint(layer) if job.method.stages > 1 else layer
    return jax.lax.scan(body, first, (K, b, h))[0]


def forms(job: Job) -> list[Callable[..., jax.Array]]:
    """The ways to the last state that are worth trying: unrolling is faster in a small gradient, slower in J8."""
    return [scanned, unrolled] if job.d <= WRITTEN_OUT_WIDTH else [scanned]


def quickest(candidates: list[Callable[[], Any]]) -> Callable[[], Any]:
    """The one with the shortest of a few evaluations, the first of which compiles and does not count."""
    return candidates[0] if len(candidates) == 1 else min(candidates, key=shortest_seconds)


def shortest_seconds(evaluate: Callable[[], Any]) -> float:
    evaluate()
    seconds = []
    for _ in range(TRIALS):
        start = time.perf_counter()
        evaluate()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def squared_loss(state: jax.Array, W: jax.Array, mu: jax.Array, labels: jax.Array) -> jax.Array:
    return 0.5 * jnp.mean((jax.nn.sigmoid((W @ state)[0] + mu) - labels) ** 2)


def differentiated(job: Job, problem: Problem, final: Callable[..., jax.Array]) -> Callable[[], Gradient]:
    """Loss and gradient of `final(job, K, b, h, first)` as one compiled call."""
    K, b, h, W, mu, X, labels = (jnp.asarray(array) for array in problem)
    first = jnp.array(X.T)

    def loss(K, b, W, mu, h, first, labels):
        return squared_loss(final(job, K, b, h, first), W, mu, labels)

    call = jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2, 3, 4) if job.learned_steps else (0, 1, 2, 3)))

    def evaluate() -> Gradient:
        value, (dK, db, dW, dmu, *dh) = jax.block_until_ready(call(K, b, W, mu, h, first, labels))
        return Gradient(value, dK, db, dh[0] if dh else None, dW, dmu)

    return evaluate


def gradient(job: Job, problem: Problem, threads: int) -> Callable[[], Gradient]:
    return quickest([differentiated(job, problem, final) for final in forms(job)])


def prediction(job: Job, problem: Problem, threads: int) -> Callable[[], jax.Array]:
    K, b, h, W, mu, X, _ = (jnp.asarray(array) for array in problem)
    first = jnp.array(X.T)

    def compiled(final: Callable[..., jax.Array]) -> Callable[[], jax.Array]:
        outputs = jax.jit(lambda K, b, h, W, mu, first: (W @ final(job, K, b, h, first) + mu[:, None]).T)
        return lambda: jax.block_until_ready(outputs(K, b, h, W, mu, first))

    return quickest([compiled(final) for final in forms(job)])


def training(job: Job, problem: Problem, threads: int) -> Callable[[], Training]:
    return quickest([trained(job, problem, final) for final in forms(job)])


def trained(job: Job, problem: Problem, final: Callable[..., jax.Array]) -> Callable[[], Training]:
    """Algorithm 2 as one compiled call: a loop over the trials, of which an accepted one ends an iteration.

    A loop over iterations with a loop over trials inside takes as long, and so does K, b, W, mu instead of one vector.
    """
    K, b, h, W, mu, X, labels = (jnp.asarray(array) for array in problem)
    first = jnp.array(X.T)
    start, separate = ravel_pytree((K, b, W, mu))

    def objective(controls, h, first, labels):
        K, b, W, mu = separate(controls)
        return job.m * squared_loss(final(job, K, b, h, first), W, mu, labels)

    @jax.jit
    def call(start, h, first, labels):
        def evaluated(controls):
            return controls, *jax.value_and_grad(objective)(controls, h, first, labels)

        def try_step(progress):
            point, L, losses, iteration, evaluations = progress
            u, phi, g = point
            trial = evaluated(u - g / L)
            accepted = trial[1] <= phi - g @ g / (2 * L)
            point = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), trial, point)
            losses = losses.at[iteration + 1].set(trial[1])
            return point, L * jnp.where(accepted, RHO_DOWN, RHO_UP), losses, iteration + accepted, evaluations + 1

        def unfinished(progress):
            _, _, _, iteration, evaluations = progress
            return (iteration < job.iterations) & (evaluations < MOST_TRIALS * job.iterations)

        point = evaluated(start)
        losses = jnp.zeros(job.iterations + 1).at[0].set(point[1])
        _, _, losses, _, evaluations = jax.lax.while_loop(unfinished, try_step, (point, L0, losses, 0, 1))
        return Training(losses, evaluations)

    return lambda: jax.block_until_ready(call(start, h, first, labels))


CONTENDERS = {"jax": Contender(gradient, prediction, training)}
