"""Networks as graphs of ONNX: the formulas of `Network.forward`, written out layer by layer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ocdl.base.validation import FloatArray
from ocdl.interop.onnx_graph import Graph
from ocdl.model.activations import ACTIVATIONS
from ocdl.model.controls import Controls
from ocdl.model.fields import FIELDS
from ocdl.model.losses import Loss
from ocdl.network import Network


def states(graph: Graph, net: Network, u: Controls, x: str) -> list[str]:
    """Add the layers; return the names of the states after 0, 1, ... of them, (samples, dim) each.

    A layer whose step is 0 adds nothing: its state is the one before.
    """
    parts = net._swept_parts(u)
    y = graph.add("Pad", x, graph.indices(0, 0, 0, net.augment)) if net.augment else x
    found = [y]
    for layer in range(net.n_layers):
        if not net.residual:
            y = _field(graph, net, parts, layer, 0, y)
        elif parts["h"][layer] != 0:
            y = _layer(graph, net, parts, layer, y)
        found.append(y)
    return found


def read_out(graph: Graph, u: Controls, state: str) -> str:
    """Add the readout W y + mu, (samples, outputs)."""
    return graph.add("Gemm", state, graph.constant(u.W), graph.constant(u.mu), transB=1)


def trajectory(graph: Graph, found: list[str]) -> str:
    """Add what puts the states of all layers into one tensor, (layers + 1, samples, dim)."""
    axis = graph.indices(0)
    return graph.add("Concat", *(graph.add("Unsqueeze", state, axis) for state in found), axis=0)


def require_explicit(net: Network) -> None:
    """Refuse an implicit method: equations that are solved to roundoff are no formula."""
    if net.residual and not net.tableau.is_explicit:
        raise ValueError(
            "ONNX takes networks with an explicit tableau, whose layers are formulas, got "
            f"tableau={net.tableau.name or net.tableau!r}, whose stages are solved for"
        )


def _layer(graph: Graph, net: Network, parts: dict[str, FloatArray], layer: int, y: str) -> str:
    A, weights, h = net.tableau.A, net.tableau.b, parts["h"][layer]
    k: list[str] = []
    for i in range(net.stages):
        argument = _combined(graph, y, h * A[i, :i], k)
        k.append(_field(graph, net, parts, layer, i, argument))
    return _combined(graph, y, h * weights, k)


def _combined(graph: Graph, y: str, coefficients: FloatArray, k: list[str]) -> str:
    """Add y + sum_i coefficients[i] k[i]."""
    for coefficient, slope in zip(coefficients, k, strict=True):
        if coefficient != 0:
            y = graph.add("Add", y, graph.add("Mul", slope, graph.constant(coefficient)))
    return y


# ---- fields, by what they are swept as ----


def _field(graph: Graph, net: Network, parts: dict[str, FloatArray], layer: int, stage: int, y: str) -> str:
    place = (layer, stage) if net.stage_controls else layer
    own = {part.name: parts[part.name][place] for part in net.parts if part.role == "field"}
    return FIELD_NODES[FIELDS[net.field].swept_as](graph, net.activation, y, **own)


def _dense(graph: Graph, activation: str, y: str, K: FloatArray, b: FloatArray) -> str:
    return ACTIVATION_NODES[activation](graph, graph.add("Gemm", y, graph.constant(K), graph.constant(b), transB=1))


def _hamiltonian(graph: Graph, activation: str, y: str, K: FloatArray, b: FloatArray) -> str:
    """J K^T sigma(K y + b): of rows, sigma(...) times K J^T, whose halves of columns are K's, exchanged.

    No MatMul: onnxruntime merges that with the coefficient after it, as an attribute in single precision.
    """
    positions, momenta = np.split(K, 2, axis=1)
    moved = np.concatenate([momenta, -positions], axis=1)
    return graph.add("Gemm", _dense(graph, activation, y, K, b), graph.constant(moved))


FIELD_NODES: dict[str, Callable[..., str]] = {"dense": _dense, "hamiltonian": _hamiltonian}


# ---- activations ----


def _operator(name: str) -> Callable[[Graph, str], str]:
    return lambda graph, z: graph.add(name, z)


def _softplus(graph: Graph, z: str) -> str:
    """log(1 + exp(z)) = max(z, 0) + log(1 + exp(-|z|)); onnxruntime has its own Softplus in single precision only."""
    small = graph.add("Exp", graph.add("Neg", graph.add("Abs", z)))
    return graph.add("Add", graph.add("Relu", z), graph.add("Log", graph.add("Add", small, graph.constant(1.0))))


def _leaky_relu(graph: Graph, z: str) -> str:
    """ONNX has the slope of its own LeakyRelu in single precision; where it is below 1, the larger of both is meant."""
    _, slopes, _ = ACTIVATIONS["leaky_relu"].derivatives(np.array([-1.0]))
    return graph.add("Max", z, graph.add("Mul", z, graph.constant(slopes[0])))


ACTIVATION_NODES: dict[str, Callable[[Graph, str], str]] = {
    "tanh": _operator("Tanh"),
    "sigmoid": _operator("Sigmoid"),
    "softplus": _softplus,
    "relu": _operator("Relu"),
    "leaky_relu": _leaky_relu,
    "sin": _operator("Sin"),
    "identity": lambda _, z: z,
}


# ---- what outputs stand for, by the loss of the training ----


def _logistic(graph: Graph, z: str) -> str:
    return graph.add("Concat", graph.add("Sigmoid", graph.add("Neg", z)), graph.add("Sigmoid", z), axis=1)


def _cross_entropy(graph: Graph, z: str, n_outputs: int) -> str:
    return _logistic(graph, z) if n_outputs == 1 else graph.add("Softmax", z, axis=1)


def _squared(graph: Graph, z: str, n_outputs: int) -> str:
    """C(z) of each output, normalised: the softmax of log C(z) = -softplus(-z), which no small C(z) disturbs."""
    if n_outputs == 1:
        return _logistic(graph, z)
    return graph.add("Softmax", graph.add("Neg", _softplus(graph, graph.add("Neg", z))), axis=1)


def _itself(_: Graph, z: str, __: int) -> str:
    return z


MEAN_NODES: dict[str, Callable[[Graph, str, int], str]] = {
    "squared": _squared,
    "cross_entropy": _cross_entropy,
    "squared_error": _itself,
    "huber": _itself,
    "quantile": _itself,
    "poisson": lambda graph, z, _: graph.add("Exp", z),
}


def means(graph: Graph, loss: Loss, z: str, n_outputs: int) -> str:
    """Add what outputs stand for after a training with a loss of ours: probabilities, or numbers."""
    return MEAN_NODES[loss.name](graph, z, n_outputs)
