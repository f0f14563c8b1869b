"""A user's loop of torchdiffeq: Adam through the solver, from the first observations, for a given processor time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from torchdiffeq import odeint

RATE = 1e-2
STEPS = 60  # of the solver over the time of the data


class Field(torch.nn.Module):
    """The same field as ocdl's, V tanh(K y + b) + A y + c, on scaled states."""

    def __init__(self, dim: int, width: int) -> None:
        super().__init__()
        self.hidden, self.readout = torch.nn.Linear(dim, width), torch.nn.Linear(width, dim)
        self.linear = torch.nn.Linear(dim, dim)

    def forward(self, t: Any, y: torch.Tensor) -> torch.Tensor:
        return self.readout(torch.tanh(self.hidden(y))) + self.linear(y)


def fit_and_simulate(data: Any, seconds: float, seed: int, width: int = 32) -> tuple[np.ndarray, int]:
    """Return the simulated trajectories of the new states and the number of iterations."""
    torch.manual_seed(seed)
    torch.set_default_dtype(torch.float64)
    values = np.concatenate(data.X)
    shift, scale, span = values.mean(axis=0), values.std(axis=0), max(t[-1] for t in data.times)
    targets = [torch.tensor((one - shift) / scale) for one in data.X]
    merged = np.unique(np.concatenate(data.times))
    places = [torch.tensor(np.searchsorted(merged, t)) for t in data.times]
    clock = torch.tensor(merged / span)
    starts = torch.stack([one[0] for one in targets])
    field = Field(values.shape[1], width)
    optimiser = torch.optim.Adam(field.parameters(), lr=RATE)
    options = {"step_size": 1 / STEPS, "interp": "cubic"}
    iterations, begin = 0, time.process_time()
    while time.process_time() - begin < seconds:
        optimiser.zero_grad()
        path = odeint(field, starts, clock, method="rk4", options=options)
        loss = sum(((path[p, i] - y) ** 2).mean() for i, (p, y) in enumerate(zip(places, targets, strict=True)))
        loss.backward()
        optimiser.step()
        iterations += 1
    with torch.no_grad():
        states = torch.tensor((data.y0 - shift) / scale)
        new = odeint(
            field, states, torch.tensor(data.new_times / span), method="rk4", options={"step_size": 0.5 / STEPS}
        )
    return np.swapaxes(new.numpy(), 0, 1) * scale + shift, iterations
