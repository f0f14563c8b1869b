"""Write the field of a learned dynamical system as an ONNX file."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.dynamics.equations import unit_factors
from ocdl.dynamics.plan import LearnedSystem
from ocdl.interop.onnx_graph import Graph, Tensor, validate_opset, write
from ocdl.interop.onnx_network import add_field
from ocdl.network import Network
from ocdl.storage.container import FilePath

Floats = NDArray[np.float64]
FLOAT64 = np.dtype(np.float64)


def write_field(path: FilePath, model: Any, opset: int | None) -> None:
    """Write f(y, x) of a fitted `Dynamics` in the units of the data, the mean of its models.

    The inputs are "y", (samples, components), and of a system with inputs "x", (samples, inputs); the output is
    "derivative", (samples, components).
    """
    opset = validate_opset(opset)
    system = model.models_[0].system
    graph = Graph(FLOAT64)
    inputs = [Tensor("y", FLOAT64, (system.dim,))]
    z = "y"
    if system.n_inputs:
        inputs.append(Tensor("x", FLOAT64, (system.n_inputs,)))
        z = graph.add("Concat", "y", "x", axis=1)
    total = ""
    for learned in model.models_:
        net, parts = _field_in_units(learned)
        one = add_field(graph, net, z, parts)
        total = graph.add("Add", total, one) if total else one
    mean = graph.add("Mul", total, graph.constant(1 / len(model.models_)))
    graph.add("Identity", mean, output="derivative")
    names = {"state_names": json.dumps(model.state_names_), "input_names": json.dumps(model.input_names_)}
    write(path, graph, inputs, [Tensor("derivative", FLOAT64, (system.dim,))], opset, names)


def _field_in_units(learned: LearnedSystem) -> tuple[Network, dict[str, Floats]]:
    """Return the parts of the field for states, inputs and time in the units of the data, and a network of its kind."""
    system, units = learned.system, learned.units
    variables = system.dim + system.n_inputs
    part = {name: system.part(learned.theta, name) for name in system.layout}
    if system.field == "polynomial":
        net = Network(variables, 1, field="polynomial", degree=system.degree)
        return net, {"C": part["C"] * unit_factors(learned)}
    net = Network(variables, 1, field="mlp", width=system.width)
    shift = np.concatenate([units.shift, units.input_shift])
    scale = np.concatenate([units.scale, units.input_scale])
    rate = units.scale / units.time
    K, A = part["K"] / scale, part["A"] / scale
    return net, {
        "K": K,
        "b": part["b"] - K @ shift,
        "V": part["V"] * rate[:, None],
        "A": A * rate[:, None],
        "c": (part["c"] - A @ shift) * rate,
    }
