"""Networks as ONNX graphs: the formulas of `Network.forward`, layer by layer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement

import numpy as np

from ocdl.base.validation import FloatArray
from ocdl.interop.onnx_graph import Graph
from ocdl.model.activations import ACTIVATIONS
from ocdl.model.controls import Controls
from ocdl.model.fields import FIELDS
from ocdl.model.inputs import refuse_inputs
from ocdl.model.losses import Loss
from ocdl.network import Network


def add_states(graph: Graph, net: Network, u: Controls, x: str) -> list[str]:
    """Add the layers; return the names of the states after 0, 1, ... of them, (samples, dim) each.

    A layer whose step is 0 adds nothing: its state is the one before.
    """
    parts = net._swept_parts(u)
    y = graph.add("Pad", x, graph.indices(0, 0, 0, net.augment)) if net.augment else x
    states = [y]
    for layer, interval in enumerate(net.layer_sets):
        if not net.residual:
            y = _add_field(graph, net, parts, interval, 0, y)
        elif parts["h"][layer] != 0:
            y = _add_layer(graph, net, parts, parts["h"][layer], interval, y)
        states.append(y)
    return states


def add_readout(graph: Graph, u: Controls, state: str) -> str:
    """Add the readout W y + mu, (samples, outputs)."""
    return graph.add("Gemm", state, graph.constant(u.W), graph.constant(u.mu), transB=1)


def add_trajectory(graph: Graph, states: list[str]) -> str:
    """Add the concatenation of the states of all layers, (layers + 1, samples, dim)."""
    axis = graph.indices(0)
    return graph.add("Concat", *(graph.add("Unsqueeze", state, axis) for state in states), axis=0)


def require_explicit(net: Network) -> None:
    """Refuse an implicit method: equations that are solved to roundoff are no formula."""
    refuse_inputs(net, "ONNX")
    if net.residual and not net.tableau.is_explicit:
        raise ValueError(
            "ONNX takes networks with an explicit tableau, whose layers are formulas, got "
            f"tableau={net.tableau.name or net.tableau!r}, whose stages are solved for"
        )


def _add_layer(graph: Graph, net: Network, parts: dict[str, FloatArray], h: float, interval: int, y: str) -> str:
    A, weights = net.tableau.A, net.tableau.b
    k: list[str] = []
    for i in range(net.stages):
        argument = _add_combination(graph, y, h * A[i, :i], k)
        k.append(_add_field(graph, net, parts, interval, i, argument))
    return _add_combination(graph, y, h * weights, k)


def _add_combination(graph: Graph, y: str, coefficients: FloatArray, k: list[str]) -> str:
    """Add y + sum_i coefficients[i] k[i]."""
    for coefficient, stage in zip(coefficients, k, strict=True):
        if coefficient != 0:
            y = graph.add("Add", y, graph.add("Mul", stage, graph.constant(coefficient)))
    return y


# ---- fields ----


def _add_field(graph: Graph, net: Network, parts: dict[str, FloatArray], interval: int, stage: int, y: str) -> str:
    index = (interval, stage) if net.stage_controls else interval
    field_parts = {part.name: parts[part.name][index] for part in net.parts if part.role == "field"}
    return add_field(graph, net, y, field_parts)


def add_field(graph: Graph, net: Network, y: str, parts: dict[str, FloatArray]) -> str:
    """Add the field of a network with these parts, (samples, dim), at the states y."""
    return FIELD_NODES[FIELDS[net.field].swept_as](graph, net, y, **parts)


def _add_dense(graph: Graph, net: Network, y: str, K: FloatArray, b: FloatArray) -> str:
    return ACTIVATION_NODES[net.activation](graph, _add_affine(graph, y, K, b))


def _add_affine(graph: Graph, y: str, K: FloatArray, b: FloatArray) -> str:
    return graph.add("Gemm", y, graph.constant(K), graph.constant(b), transB=1)


def _add_hamiltonian(graph: Graph, net: Network, y: str, K: FloatArray, b: FloatArray) -> str:
    """J K^T sigma(K y + b): of rows, sigma(...) times K J^T, whose halves of columns are K's, exchanged.

    MatMul is not used: onnxruntime merges it with the next coefficient, as an attribute in single precision.
    """
    positions, momenta = np.split(K, 2, axis=1)
    moved = np.concatenate([momenta, -positions], axis=1)
    return graph.add("Gemm", _add_dense(graph, net, y, K, b), graph.constant(moved))


def _add_gradient(graph: Graph, net: Network, y: str, K: FloatArray, b: FloatArray) -> str:
    """-K^T sigma(K y + b)."""
    return graph.add("Gemm", _add_dense(graph, net, y, K, b), graph.constant(-K))


def _add_mlp(graph: Graph, net: Network, y: str, **parts: FloatArray) -> str:
    hidden = _add_dense(graph, net, y, parts["K"], parts["b"])
    linear = _add_affine(graph, y, parts["A"], parts["c"])
    return graph.add("Gemm", hidden, graph.constant(parts["V"]), linear, transB=1)


def _add_polynomial(graph: Graph, net: Network, y: str, C: FloatArray) -> str:
    """C phi(y): each monomial but the first is an earlier one times a component of y."""
    components = [graph.add("Gather", y, graph.indices(i), axis=1) for i in range(net.dim)]
    phi: dict[tuple[int, ...], str] = {}
    assert net.degree is not None
    for order in range(1, net.degree + 1):
        for variables in combinations_with_replacement(range(net.dim), order):
            last = components[variables[-1]]
            phi[variables] = last if order == 1 else graph.add("Mul", phi[variables[:-1]], last)
    monomials = graph.add("Concat", *phi.values(), axis=1)
    return _add_affine(graph, monomials, C[:, 1:], C[:, 0])


FIELD_NODES: dict[str, Callable[..., str]] = {
    "dense": _add_dense,
    "hamiltonian": _add_hamiltonian,
    "gradient": _add_gradient,
    "mlp": _add_mlp,
    "polynomial": _add_polynomial,
}


# ---- activations ----


def _operator_node(name: str) -> Callable[[Graph, str], str]:
    return lambda graph, z: graph.add(name, z)


def _add_softplus(graph: Graph, z: str) -> str:
    """log(1 + exp(z)) = max(z, 0) + log(1 + exp(-|z|)); onnxruntime has its own Softplus in single precision only."""
    small = graph.add("Exp", graph.add("Neg", graph.add("Abs", z)))
    return graph.add("Add", graph.add("Relu", z), graph.add("Log", graph.add("Add", small, graph.constant(1.0))))


def _add_leaky_relu(graph: Graph, z: str) -> str:
    """Add max(z, slope z), exact for a slope below 1; the LeakyRelu of ONNX has its slope in single precision."""
    _, slopes, _ = ACTIVATIONS["leaky_relu"].derivatives(np.array([-1.0]))
    return graph.add("Max", z, graph.add("Mul", z, graph.constant(slopes[0])))


ACTIVATION_NODES: dict[str, Callable[[Graph, str], str]] = {
    "tanh": _operator_node("Tanh"),
    "sigmoid": _operator_node("Sigmoid"),
    "softplus": _add_softplus,
    "relu": _operator_node("Relu"),
    "leaky_relu": _add_leaky_relu,
    "sin": _operator_node("Sin"),
    "identity": lambda _, z: z,
}


# ---- inverse links ----


def _add_logistic(graph: Graph, z: str) -> str:
    return graph.add("Concat", graph.add("Sigmoid", graph.add("Neg", z)), graph.add("Sigmoid", z), axis=1)


def _add_probabilities(graph: Graph, z: str, n_outputs: int) -> str:
    return _add_logistic(graph, z) if n_outputs == 1 else graph.add("Softmax", z, axis=1)


def _add_squared_probability(graph: Graph, z: str, n_outputs: int) -> str:
    """C(z) of each output, normalised: the softmax of log C(z) = -softplus(-z), which no small C(z) disturbs."""
    if n_outputs == 1:
        return _add_logistic(graph, z)
    return graph.add("Softmax", graph.add("Neg", _add_softplus(graph, graph.add("Neg", z))), axis=1)


def _identity(_: Graph, z: str, __: int) -> str:
    return z


MEAN_NODES: dict[str, Callable[[Graph, str, int], str]] = {
    "squared": _add_squared_probability,
    "cross_entropy": _add_probabilities,
    "squared_error": _identity,
    "huber": _identity,
    "quantile": _identity,
    "poisson": lambda graph, z, _: graph.add("Exp", z),
}


def add_means(graph: Graph, loss: Loss, z: str, n_outputs: int) -> str:
    """Add the inverse link of a built-in loss: probabilities or numbers."""
    return MEAN_NODES[loss.name](graph, z, n_outputs)
