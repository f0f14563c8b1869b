"""Second derivatives: products with the Hessian, and the Hessian of the Hamiltonian of one layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ocdl import _core
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.model import overflow

if TYPE_CHECKING:
    from ocdl.network import Network


def curvature_product(
    net: Network,
    problem: tuple[FloatArray, FloatArray, LabelArray, FloatArray | None],
    objective: _core.Objective,
    direction: FloatArray,
    curvature: str,
) -> FloatArray:
    """Return the product as a vector; the core computes it in double precision, whatever the network's numbers are."""
    vector, X, labels, weights = problem
    product = net._core_network.curvature_product(
        _wide(vector),
        _wide(X),
        labels,
        None if weights is None else _wide(weights),
        objective,
        curvature,
        _wide(direction),
    ).astype(net.dtype, copy=False)
    if _core.first_non_finite(product) >= 0:
        overflow.report(net._core_network, vector, X)
    return product


def _wide(array: FloatArray) -> FloatArray:
    return array.astype(np.float64, copy=False)


def _sigmoid(z: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * z)))


def _slope_of_sigmoid(z: FloatArray) -> FloatArray:
    return _sigmoid(z) * _sigmoid(-z)


def _zero(z: FloatArray) -> FloatArray:
    return np.zeros_like(z)


# sigma, sigma' and sigma''; kinks have the slope of their left side at 0, as in the core.
ACTIVATIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2, lambda z: -2 * np.tanh(z) * (1 - np.tanh(z) ** 2)),
    "sigmoid": (_sigmoid, _slope_of_sigmoid, lambda z: _slope_of_sigmoid(z) * (1 - 2 * _sigmoid(z))),
    "softplus": (lambda z: np.logaddexp(0, z), _sigmoid, _slope_of_sigmoid),
    "relu": (lambda z: np.maximum(z, 0), lambda z: np.where(z > 0, 1.0, 0.0), _zero),
    "leaky_relu": (lambda z: np.maximum(z, 0.01 * z), lambda z: np.where(z > 0, 1.0, 0.01), _zero),
    "sin": (np.sin, np.cos, lambda z: -np.sin(z)),
    "identity": (lambda z: z, np.ones_like, _zero),
}


def hamiltonian_hessian(
    net: Network, h: float, K: FloatArray, b: FloatArray, state: FloatArray, costate: FloatArray
) -> FloatArray:
    """Return the Hessian for each stage, (stages, d^2 + d, d^2 + d), from y[j] and p[j+1].

    K and b, (stages, d, d) and (stages, d), are those of the layer's stages.
    """
    sigma, slope, bend = ACTIVATIONS[net.activation]
    A, weights = (net.tableau.A, net.tableau.b) if net.residual else (np.zeros((1, 1)), np.ones(1))
    d, stages = net.dim, range(net.stages)
    states: list[FloatArray] = []
    values: list[FloatArray] = []
    for i in stages:
        states.append(state + h * sum((A[i, m] * values[m] for m in range(i)), np.zeros_like(state)))
        values.append(sigma(states[i] @ K[i].T + b[i]))
    cotangents = [weights[i] * costate for i in stages]
    for i in reversed(stages):
        eta = h * (slope(states[i] @ K[i].T + b[i]) * cotangents[i]) @ K[i]
        for m in range(i):
            cotangents[m] = cotangents[m] + A[i, m] * eta
    hessians = np.zeros((net.stages, d * d + d, d * d + d))
    for i in stages:
        extended = np.column_stack([states[i], np.ones(len(state))])
        bent = cotangents[i] * bend(states[i] @ K[i].T + b[i])
        blocks = np.einsum("nr,na,nb->rab", bent, extended, extended)
        for row in range(d):  # the controls that component `row` of f depends on: row `row` of K, and b[row]
            place = np.append(np.arange(row * d, (row + 1) * d), d * d + row)
            hessians[i][np.ix_(place, place)] = blocks[row]
    return hessians
