"""torchdiffeq: one fixed step of length 1 per layer, differentiated through the solver.

Its own adjoint is left out: it solves the continuous adjoint equation, whose result is not the gradient of the network.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from contender import Contender
from jobs import Gradient, Job, Problem
from torchdiffeq import odeint
from torchdiffeq._impl.fixed_grid import FixedGridODESolver
from torchdiffeq._impl.misc import Perturb
from torchdiffeq._impl.odeint import SOLVERS
from torchdiffeq._impl.rk_common import rk4_step_func

from peers.torch_peer import differentiated, squared_loss


class Kutta4(FixedGridODESolver):
    """The classical method: the "rk4" of torchdiffeq is the 3/8 rule."""

    order = 4

    def _step_func(self, func, t0, dt, t1, y0):
        f0 = func(t0, y0, perturb=Perturb.NEXT if self.perturb else Perturb.NONE)
        return rk4_step_func(func, t0, dt, t1, y0, f0=f0, perturb=self.perturb), f0


SOLVERS["kutta4"] = Kutta4


def network_loss(job: Job) -> Callable[..., torch.Tensor]:
    """y' = h_j tanh(K_j y + b_j) for j < t < j + 1; the solver evaluates on the inner side of each end of a step."""
    times = torch.tensor([0.0, job.N], dtype=getattr(torch, job.dtype))
    options = {"step_size": 1.0, "perturb": True}

    def loss(K, b, h, W, mu, first, labels):
        layers = list(zip(K.unbind(), b.unbind(), h.unbind(), strict=True))

        def field(t, state):
            layer_K, layer_b, layer_h = layers[int(t)]
            return layer_h * torch.tanh(torch.addmm(layer_b[:, None], layer_K, state))

        states = odeint(field, first, times, method=job.tableau, options=options)
        return squared_loss(states[-1], W, mu, labels)

    return loss


def gradient(job: Job, problem: Problem, threads: int) -> Callable[[], Gradient]:
    return differentiated(job, problem, threads, network_loss(job))


CONTENDERS = {"torchdiffeq": Contender(gradient)}
