"""The network of a benchmark, written with other libraries as one would: NumPy, PyTorch and JAX.

Each function takes a tableau and a `Problem` and returns what is timed: a call that returns the loss and its
derivatives by K, b, W and mu, or with ``gradient=False`` the outputs. Samples are columns here.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ocdl.base.threads import get_num_threads
from ocdl.base.validation import FloatArray
from ocdl.model.tableau import Tableau

Evaluate = Callable[[], tuple[Any, ...]]
TRIALS = 3
NARROW, SHALLOW = 4, 20  # up to this width, and so many stages in all, XLA is faster where all is written out


class Problem(NamedTuple):
    """Controls K (N, d, d), b (N, d), W (1, d), mu (1,) and the step h; samples as columns, (d, m), and labels (m,)."""

    K: FloatArray
    b: FloatArray
    W: FloatArray
    mu: FloatArray
    h: float
    X: FloatArray
    y: FloatArray


def numpy_peer(tableau: Tableau, problem: Problem, *, gradient: bool) -> Evaluate:
    """The adjoint by hand: forward keeps arguments and values of all stages, backward walks through them.

    The products run on one thread if that is faster than on all.
    """
    from threadpoolctl import ThreadpoolController

    libraries = ThreadpoolController()
    K, b, W, mu, h, X, y = problem
    A, weights, stages = tableau.A, tableau.b, range(tableau.stages)

    def outputs() -> tuple[FloatArray]:
        state = _last_state(_affine, np.tanh, tableau, K, b, h, X)
        return (W @ state + mu[:, None],)

    def loss_and_gradient() -> tuple[Any, ...]:
        state, kept = X, []
        for j in range(len(K)):
            arguments: list[FloatArray] = []
            values: list[FloatArray] = []
            for i in stages:
                arguments.append(_combined(state, h * A[i], values))
                values.append(np.tanh(_affine(K[j], b[j], arguments[i])))
            state = _combined(state, h * weights, values)
            kept.append((arguments, values))
        probability = 1 / (1 + np.exp(-(W @ state + mu[:, None])))
        residual = probability - y
        dz = residual * probability * (1 - probability) / len(y)
        costate = W.T @ dz
        dK, db = np.zeros_like(K), np.zeros_like(b)
        for j in reversed(range(len(K))):
            arguments, values = kept[j]
            pulled: list[FloatArray] = [costate] * len(stages)
            for i in reversed(stages):
                cotangent = _combined(weights[i] * costate, A[i + 1 :, i], pulled[i + 1 :])
                slope = values[i] * values[i]
                np.subtract(1, slope, out=slope)
                cotangent *= slope
                cotangent *= h
                dK[j] += cotangent @ arguments[i].T
                db[j] += cotangent.sum(axis=1)
                pulled[i] = K[j].T @ cotangent
            for term in pulled:
                costate = costate + term
        return 0.5 * np.mean(residual**2), dK, db, dz @ state.T, dz.sum(axis=1)

    call = loss_and_gradient if gradient else outputs

    def on_one_thread() -> tuple[Any, ...]:
        with libraries.limit(limits=1, user_api="blas"):
            return call()

    return min((on_one_thread, call), key=_shortest)


def torch_peer(tableau: Tableau, problem: Problem, *, gradient: bool) -> Evaluate:
    """Automatic differentiation of the layers, one after the other; on one thread if that is faster than on all."""
    torch: Any = import_module("torch")
    K, b, W, mu, X, y = (torch.from_numpy(array) for array in problem if isinstance(array, np.ndarray))
    learned = [K, b, W, mu]

    def affine(K: Any, b: Any, argument: Any) -> Any:
        return torch.addmm(b[:, None], K, argument)

    def outputs() -> tuple[Any]:
        return (W @ _last_state(affine, torch.tanh, tableau, K.unbind(), b.unbind(), problem.h, X) + mu[:, None],)

    def loss_and_gradient() -> tuple[Any, ...]:
        loss = 0.5 * (torch.sigmoid(outputs()[0]) - y).square().mean()
        derivatives = torch.autograd.grad(loss, learned)
        return loss.detach(), *derivatives

    for parameter in learned if gradient else ():
        parameter.requires_grad_()
    call = loss_and_gradient if gradient else torch.inference_mode()(outputs)

    def on(threads: int) -> Evaluate:
        def evaluate() -> tuple[Any, ...]:
            torch.set_num_threads(threads)
            return call()

        return evaluate

    return min((on(1), on(get_num_threads())), key=_shortest)


def jax_peer(tableau: Tableau, problem: Problem, *, gradient: bool) -> Evaluate:
    """One compiled call; the layers of a small gradient are written out, others are scanned."""
    jax: Any = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # half of the time of a small gradient
    K, b, W, mu, X, y = (jax.numpy.asarray(array) for array in problem if isinstance(array, np.ndarray))
    tanh, h = jax.numpy.tanh, problem.h
    small = gradient and len(X) <= NARROW and len(K) * tableau.stages <= SHALLOW

    def scanned(K: Any, b: Any, X: Any) -> Any:
        def layer(state: Any, controls: Any) -> Any:
            return _step(_affine, tanh, tableau, h, state, *controls), None

        # Several stages are cheaper to compute again than to read back from memory.
        return jax.lax.scan(jax.checkpoint(layer) if tableau.stages > 1 else layer, X, (K, b))[0]

    def outputs(X: Any, K: Any, b: Any, W: Any, mu: Any) -> Any:
        state = _last_state(_affine_by_rows, tanh, tableau, K, b, h, X) if small else scanned(K, b, X)
        return W @ state + mu[:, None]

    def loss(controls: Any, X: Any, y: Any) -> Any:
        return 0.5 * ((jax.nn.sigmoid(outputs(X, *controls)) - y) ** 2).mean()

    if not gradient:
        predict = jax.jit(outputs)
        return lambda: (jax.block_until_ready(predict(X, K, b, W, mu)),)
    differentiated = jax.jit(jax.value_and_grad(loss))

    def loss_and_gradient() -> tuple[Any, ...]:
        value, derivatives = jax.block_until_ready(differentiated((K, b, W, mu), X, y))
        return value, *derivatives

    return loss_and_gradient


PEERS = {"numpy": numpy_peer, "torch": torch_peer, "jax": jax_peer}


def _shortest(evaluate: Evaluate) -> float:
    """Return the least time of a few evaluations, without the first."""
    evaluate()
    return min(timeit.repeat(evaluate, number=1, repeat=TRIALS))


def _last_state(affine: Any, tanh: Any, tableau: Tableau, K: Any, b: Any, h: float, state: Any) -> Any:
    for layer_K, layer_b in zip(K, b, strict=True):
        state = _step(affine, tanh, tableau, h, state, layer_K, layer_b)
    return state


def _step(affine: Any, tanh: Any, tableau: Tableau, h: float, state: Any, K: Any, b: Any) -> Any:
    values: list[Any] = []
    for row in tableau.A:
        values.append(tanh(affine(K, b, _combined(state, h * row, values))))
    return _combined(state, h * tableau.b, values)


def _combined(start: Any, coefficients: FloatArray, terms: list[Any]) -> Any:
    """Return start + sum of coefficient * term, without those that are 0 and those still to come."""
    for coefficient, term in zip(coefficients.tolist(), terms, strict=False):
        if coefficient:
            start = start + coefficient * term
    return start


def _affine(K: Any, b: Any, argument: Any) -> Any:
    return K @ argument + b[:, None]


def _affine_by_rows(K: Any, b: Any, argument: Any) -> Any:
    return sum((K[:, i, None] * argument[i] for i in range(K.shape[1])), b[:, None])
