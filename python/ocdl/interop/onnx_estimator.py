"""Fitted estimators, and models for tables of numbers, as files in ONNX."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.base.validation import FloatArray
from ocdl.interop import onnx_network
from ocdl.interop.onnx_graph import Graph, Tensor, checked_opset, write
from ocdl.model.losses import Loss
from ocdl.model.objective import Objective
from ocdl.storage.container import FilePath
from ocdl.tables.encoding import Encoding
from ocdl.tables.model import TableModel

NUMERIC = ("number", "boolean")  # the kinds of columns that a row of numbers can hold


def write_estimator(path: FilePath, estimator: Any, opset: int | None) -> None:
    """Write a fitted estimator: its input is "X", its outputs those of `predictions`."""
    _write(path, estimator, None, opset)


def write_table_model(path: FilePath, model: TableModel, opset: int | None) -> None:
    """Write a model for the columns of a table, in their order: what they become is part of the graph."""
    others = [feature.name for feature in model.encoding.features if feature.kind not in NUMERIC]
    if others:
        named = ", ".join(f"{name!r:.80}" for name in others)
        raise ValueError(
            f"ONNX takes models whose columns are numbers, but this one learned from texts or dates in {named}; train "
            "it without them (--drop), or encode them as numbers before"
        )
    _write(path, model.estimator, model.encoding, opset)


def _write(path: FilePath, estimator: Any, encoding: Encoding | None, opset: int | None) -> None:
    onnx_network.require_explicit(estimator.network_)
    opset = checked_opset(opset)
    net = estimator.network_
    graph = Graph(net.dtype)
    outputs = predictions(graph, estimator, "X" if encoding is None else _encoded(graph, encoding, "X"))
    for name, output in outputs.items():
        graph.add("Identity", name, output=output.name)
    names = getattr(estimator, "feature_names_in_", None)
    names = None if names is None else names.tolist()
    if encoding is not None:
        names = encoding.feature_names
    metadata = {} if names is None else {"feature_names": json.dumps(names)}
    write(path, graph, [Tensor("X", net.dtype, (net.n_features,))], list(outputs.values()), opset, metadata)


def predictions(graph: Graph, estimator: Any, x: str) -> dict[str, Tensor]:
    """Add what an estimator predicts; return names in the graph, and what they are called outside.

    Of a classifier "label", (samples,), and "probabilities", (samples, classes); of a regressor "variable", (samples,
    targets). These are the names that scikit-learn's converters give.
    """
    net, u = estimator.network_, estimator.controls_
    z = onnx_network.read_out(graph, u, onnx_network.states(graph, net, u, x)[-1])
    loss = Objective(estimator.loss).record
    if not hasattr(estimator, "classes_"):
        means = onnx_network.means(graph, loss, z, net.n_outputs) if isinstance(loss, Loss) else z
        scaled = graph.add("Mul", means, graph.constant(estimator.target_scale_))
        predicted = graph.add("Add", scaled, graph.constant(estimator.target_mean_))
        return {predicted: Tensor("variable", graph.dtype, (net.n_outputs,))}
    if not isinstance(loss, Loss):
        raise ValueError(
            f"the loss {type(loss).__name__} is one of your own, and ONNX cannot hold what its outputs stand for; "
            "ocdl.export_onnx(path, model.network_, model.controls_) writes the outputs"
        )
    classes = label_values(estimator.classes_)
    chosen = graph.add("Gather", graph.labels(classes), _decided(graph, z, net.n_outputs))
    probabilities = onnx_network.means(graph, loss, z, net.n_outputs)
    return {
        chosen: Tensor("label", classes.dtype, ()),
        probabilities: Tensor("probabilities", graph.dtype, (len(classes),)),
    }


def label_values(classes: NDArray[Any]) -> NDArray[Any]:
    """Return classes in a type that ONNX has: whole numbers as int64, texts as objects."""
    if classes.dtype.kind == "b" or (classes.dtype.kind == "f" and classes.dtype.itemsize <= 8):
        return classes
    if classes.dtype.kind in "iu" and int(classes[-1]) <= np.iinfo(np.int64).max:
        return classes.astype(np.int64)
    values = classes.astype(object)
    if not all(isinstance(value, str) for value in values):
        raise ValueError(f"ONNX has labels that are numbers of 64 bits or texts, got {classes!r:.200}")
    return values


def _decided(graph: Graph, z: str, n_outputs: int) -> str:
    """Add the number of the class: by the sign of one output, by the largest of several."""
    if n_outputs > 1:
        return graph.add("ArgMax", z, axis=1, keepdims=0)
    positive = graph.add("Cast", graph.add("Greater", z, graph.constant(0.0)), to=Graph.INDEX)
    return graph.add("Squeeze", positive, graph.indices(1))


def _encoded(graph: Graph, encoding: Encoding, x: str) -> str:
    """Add what the columns become: missing numbers, NaN, are filled in where that was learned, all are standardised."""
    features = encoding.features
    fill: FloatArray = np.array([np.nan if feature.fill is None else feature.fill for feature in features])
    given = graph.add("Where", graph.add("IsNaN", x), graph.constant(fill), x)
    moved = graph.add("Sub", given, graph.constant([feature.mean for feature in features]))
    return graph.add("Div", moved, graph.constant([feature.scale for feature in features]))
