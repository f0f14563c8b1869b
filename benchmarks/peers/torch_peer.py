"""PyTorch: plain autograd, and the same function through torch.compile."""

from __future__ import annotations

from collections.abc import Callable

import torch
from contender import Contender
from jobs import Gradient, Job, Problem, Tableau

from peers.backtracking import backtracking

# torch.compile unrolls the layers; beyond this many stages its compilation takes minutes.
COMPILED_STAGES = 100


def step(method: Tableau, state: torch.Tensor, K: torch.Tensor, b: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    """One layer on feature-major states."""
    slopes: list[torch.Tensor] = []
    for row in method.A:
        argument = state
        for a, slope in zip(row, slopes, strict=False):
            if a:
                argument = argument + (h * a) * slope
        slopes.append(torch.tanh(torch.addmm(b[:, None], K, argument)))
    for weight, slope in zip(method.b, slopes, strict=True):
        state = state + (h * weight) * slope
    return state


def last_state(job: Job, first: torch.Tensor, K: torch.Tensor, b: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    state = first
    for layer_K, layer_b, layer_h in zip(K.unbind(), b.unbind(), h.unbind(), strict=True):
        state = step(job.method, state, layer_K, layer_b, layer_h)
    return state


def squared_loss(state: torch.Tensor, W: torch.Tensor, mu: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return 0.5 * (torch.sigmoid((W @ state)[0] + mu) - labels).square().mean()


def differentiated(
    job: Job, problem: Problem, threads: int, loss: Callable[..., torch.Tensor]
) -> Callable[[], Gradient]:
    """Loss and gradient of `loss(K, b, h, W, mu, first, labels)` by autograd."""
    torch.set_num_threads(threads)
    K, b, h, W, mu, X, labels = (torch.from_numpy(array) for array in problem)
    first = X.T.contiguous()
    learned = [K, b, W, mu, h] if job.learned_steps else [K, b, W, mu]
    for parameter in learned:
        parameter.requires_grad_()

    def evaluate() -> Gradient:
        value = loss(K, b, h, W, mu, first, labels)
        dK, db, dW, dmu, *dh = torch.autograd.grad(value, learned)
        return Gradient(value.detach(), dK, db, dh[0] if dh else None, dW, dmu)

    return evaluate


def network_loss(job: Job) -> Callable[..., torch.Tensor]:
    def loss(K, b, h, W, mu, first, labels):
        return squared_loss(last_state(job, first, K, b, h), W, mu, labels)

    return loss


def gradient(job: Job, problem: Problem, threads: int) -> Callable[[], Gradient]:
    return differentiated(job, problem, threads, network_loss(job))


def compiled_gradient(job: Job, problem: Problem, threads: int) -> Callable[[], Gradient]:
    return differentiated(job, problem, threads, torch.compile(network_loss(job), fullgraph=True, dynamic=False))


def network_outputs(job: Job, problem: Problem, threads: int) -> tuple[Callable[..., torch.Tensor], list[torch.Tensor]]:
    torch.set_num_threads(threads)
    K, b, h, W, mu, X, _ = (torch.from_numpy(array) for array in problem)

    def outputs(K, b, h, W, mu, first):
        return (W @ last_state(job, first, K, b, h) + mu[:, None]).T

    return outputs, [K, b, h, W, mu, X.T.contiguous()]


def prediction(job: Job, problem: Problem, threads: int) -> Callable[[], torch.Tensor]:
    return torch.inference_mode()(bound(*network_outputs(job, problem, threads)))


def compiled_prediction(job: Job, problem: Problem, threads: int) -> Callable[[], torch.Tensor]:
    outputs, arguments = network_outputs(job, problem, threads)
    return torch.no_grad()(bound(torch.compile(outputs, fullgraph=True, dynamic=False), arguments))


def bound(function: Callable[..., torch.Tensor], arguments: list[torch.Tensor]) -> Callable[[], torch.Tensor]:
    return lambda: function(*arguments)


def too_deep_to_compile(job: Job) -> str:
    stages = job.N * job.method.stages
    return "" if stages <= COMPILED_STAGES else f"{stages} unrolled stages take minutes to compile"


CONTENDERS = {
    "torch": Contender(gradient, prediction, backtracking(gradient)),
    "torch.compile": Contender(
        compiled_gradient, compiled_prediction, backtracking(compiled_gradient), too_deep_to_compile
    ),
}
