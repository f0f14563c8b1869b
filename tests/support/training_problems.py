"""Problems for tests of trainings."""

from __future__ import annotations

from typing import Any

from ocdl import LBFGS, Adam, Armijo, Backtracking, Chain, GradientDescent, Network, NewtonCG, datasets

OPTIMISERS = {
    "gradient descent": GradientDescent(0.1),
    "backtracking": Backtracking(),
    "armijo": Armijo(),
    "adam": Adam(),
    "adam on batches": Adam(batch_size=32),
    "lbfgs": LBFGS(),
    "newton": NewtonCG(),
    "gauss-newton": NewtonCG(curvature="gauss_newton"),
    "chain": Chain((Adam(), 20), (LBFGS(), None)),
}


def small_problem(architecture: str = "odenet", n_layers: int = 6, **overrides: Any) -> tuple[Any, ...]:
    net = Network.preset(architecture, 2, n_layers, **overrides)
    X, y = datasets.make_donut2d(200, random_state=1)
    return net, net.init(random_state=2), X, y
