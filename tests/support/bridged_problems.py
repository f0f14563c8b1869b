"""What the bridges to other libraries are tried on: small problems, and fifty networks of every kind."""

from __future__ import annotations

from itertools import cycle, islice, product
from typing import Any

import numpy as np
from problems import ACTIVATIONS, EXPLICIT, FIELDS, IMPLICIT, Problem, field_options, random_problem

import ocdl
from ocdl import Network
from ocdl.interop.bridge import RETURNS

FIFTY = list(
    islice(
        zip(
            cycle(FIELDS),
            cycle(x for pair in zip(cycle(EXPLICIT), IMPLICIT * 2, strict=False) for x in pair),
            cycle(product(RETURNS, ACTIVATIONS)),
            strict=False,
        ),
        50,
    )
)


def numbered(number: int, **options: Any) -> tuple[Problem, str]:
    """Problem number 0 to 49, and what the bridge returns of it."""
    field, tableau, (returns, activation) = FIFTY[number]
    net = Network(
        2 + number % 3,
        1 + number % 4,
        n_outputs=1 + number % 2,
        tableau=tableau,
        **field_options(field),
        activation=activation,
        augment=2 - number % 3 % 2,
        **options,
    )
    return random_problem(net, 3, seed=number), returns


def problem(seed: int = 0, samples: int = 5, **options: Any) -> Problem:
    return random_problem(Network(2, 3, **({"time_steps": "free", "n_outputs": 2} | options)), samples, seed)


def expected_of(p: Problem, returns: str) -> np.ndarray:
    trajectory = p.net.forward(p.u, p.X)
    return {"outputs": trajectory.outputs, "state": trajectory.states[-1], "trajectory": trajectory.states}[returns]


def layer_of(p: Problem, returns: str = "outputs", **options: Any) -> Any:
    """The problem's network and controls as a layer of PyTorch, where that is installed."""
    return ocdl.torch.OCDLayer(p.net, p.u, returns, **options)
