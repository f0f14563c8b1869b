"""torchdiffeq on the jobs of dynamics.py, as its demo is written: differentiated through the solver."""

from __future__ import annotations

from collections.abc import Callable

import torch
from contender import Contender
from dynamics_jobs import DynamicsGradient, DynamicsJob, DynamicsProblem
from torch import nn
from torchdiffeq import odeint


class Field(nn.Module):
    def __init__(self, problem: DynamicsProblem) -> None:
        super().__init__()
        w, d = problem.K.shape
        self.inner, self.outer = nn.Linear(d, w), nn.Linear(w, d, bias=False)
        with torch.no_grad():
            self.inner.weight.copy_(torch.from_numpy(problem.K))
            self.inner.bias.copy_(torch.from_numpy(problem.b))
            self.outer.weight.copy_(torch.from_numpy(problem.V))

    def forward(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.outer(torch.tanh(self.inner(y)))


def gradient(method: str) -> Callable[[DynamicsJob, DynamicsProblem, int], Callable[[], DynamicsGradient]]:
    def build(job: DynamicsJob, problem: DynamicsProblem, threads: int) -> Callable[[], DynamicsGradient]:
        torch.set_num_threads(threads)
        torch.set_default_dtype(torch.float64)
        field = Field(problem)
        first, times = torch.from_numpy(problem.X), torch.from_numpy(problem.times)
        values = torch.from_numpy(problem.values).transpose(0, 1)

        def evaluate() -> DynamicsGradient:
            field.zero_grad()
            loss = 0.5 * ((odeint(field, first, times, method=method) - values) ** 2).sum()
            loss.backward()
            parts = (field.inner.weight.grad, field.inner.bias.grad, field.outer.weight.grad)
            return DynamicsGradient(loss.detach(), *parts)

        return evaluate

    return build


def unsupported(job: DynamicsJob) -> str:
    return "it has the same times for all samples of a batch" if job.own_times else ""


CONTENDERS = {
    "torchdiffeq, rk4": Contender(gradient("rk4"), unsupported=unsupported),
    "torchdiffeq, dopri5": Contender(gradient("dopri5"), unsupported=unsupported),
}
