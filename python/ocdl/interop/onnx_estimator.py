"""Write fitted estimators and table models as ONNX files."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.interop import onnx_network
from ocdl.interop.onnx_graph import Graph, Tensor, element_type, validate_opset, write
from ocdl.model.objective import resolve_loss
from ocdl.storage.container import FilePath
from ocdl.tables.categories import TargetMeans
from ocdl.tables.columns import CYCLES, Feature
from ocdl.tables.dialect import parse_number
from ocdl.tables.encoding import Encoding
from ocdl.tables.model import TableModel

NUMERIC = ("number", "boolean")  # the kinds of columns that one array of numbers holds


def write_estimator(path: FilePath, estimator: Any, opset: int | None) -> None:
    """Write a fitted estimator: its input is "X", its outputs those of `predictions`."""
    _write(path, estimator, None, opset)


def write_table_model(path: FilePath, model: TableModel, opset: int | None) -> None:
    """Write a table model; the encoding of the columns is part of the graph.

    Columns of numbers are one input "X", in their order. Where there are texts, dates or categories, every column is an
    input with its name, of shape (samples, 1): texts as strings, all others as numbers, dates as days since 1970.
    """
    _write(path, model.estimator, model.encoding, opset)


def has_one_input(encoding: Encoding) -> bool:
    """Whether all columns fit into one array of numbers."""
    return all(feature.kind in NUMERIC for feature in encoding.features)


def _write(path: FilePath, estimator: Any, encoding: Encoding | None, opset: int | None) -> None:
    onnx_network.require_explicit(estimator.network_)
    opset = validate_opset(opset)
    net = estimator.network_
    if encoding is None or has_one_input(encoding):
        graph = Graph(net.dtype)
        inputs = [Tensor("X", net.dtype, (estimator.n_features_in_ if encoding is None else len(encoding.features),))]
        x = "X" if encoding is None else _add_numbers(graph, encoding, "X", _add_indicators(graph, encoding, "X"))
    else:
        graph = Graph(net.dtype, prefix="ocdl_")
        texts = np.dtype(object)
        inputs = [
            Tensor(feature.name, texts if feature.kind == "text" else net.dtype, (1,)) for feature in encoding.features
        ]
        x = _add_columns(graph, encoding)
    outputs = add_predictions(graph, estimator, x)
    for name, output in outputs.items():
        graph.add("Identity", name, output=output.name)
    names = getattr(estimator, "feature_names_in_", None)
    names = None if names is None else names.tolist()
    if encoding is not None:
        names = encoding.feature_names
    metadata = {} if names is None else {"feature_names": json.dumps(names)}
    write(path, graph, inputs, list(outputs.values()), opset, metadata)


def add_predictions(graph: Graph, estimator: Any, x: str) -> dict[str, Tensor]:
    """Add the predictions of an estimator; return the names in the graph and the outputs that they become.

    Of a classifier "label", (samples,), and "probabilities", (samples, classes); of a regressor "variable", (samples,
    targets). These are the names that scikit-learn's converters give.
    """
    net, u = estimator.network_, estimator.controls_
    if estimator.components_ is not None:
        x = graph.add("MatMul", x, graph.constant(estimator.components_.T))
    z = onnx_network.add_readout(graph, u, onnx_network.add_states(graph, net, u, x)[-1])
    loss = resolve_loss(estimator.loss)
    has_classes = hasattr(estimator, "classes_")
    if loss.is_custom and (has_classes or hasattr(estimator.loss, "inverse_link")):
        raise ValueError(
            f"ONNX cannot hold the inverse link of the custom loss {loss.name}; "
            "ocdl.export_onnx(path, model.network_, model.controls_) writes the outputs"
        )
    if not has_classes:
        means = z if loss.is_custom else onnx_network.add_means(graph, loss, z, net.n_outputs)
        scaled = graph.add("Mul", means, graph.constant(estimator.target_scale_))
        predicted = graph.add("Add", scaled, graph.constant(estimator.target_mean_))
        return {predicted: Tensor("variable", graph.dtype, (net.n_outputs,))}
    classes = label_values(estimator.classes_)
    label = graph.add("Gather", graph.labels(classes), _add_predicted_class(graph, z, net.n_outputs))
    probabilities = onnx_network.add_means(graph, loss, z, net.n_outputs)
    return {
        label: Tensor("label", classes.dtype, ()),
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


def _add_predicted_class(graph: Graph, z: str, n_outputs: int) -> str:
    """Add the number of the class: by the sign of one output, by the largest of several."""
    if n_outputs > 1:
        return graph.add("ArgMax", z, axis=1, keepdims=0)
    positive = graph.add("Cast", graph.add("Greater", z, graph.constant(0.0)), to=Graph.INDEX)
    return graph.add("Squeeze", positive, graph.indices(1))


def _add_columns(graph: Graph, encoding: Encoding) -> str:
    """Add the encoding of columns that are separate inputs."""
    numbers, indicators = [], []
    for feature in encoding.numbers:
        if feature.n_means:
            numbers.append(_add_target_means(graph, feature, encoding.means[feature.name]))
            continue
        numbers.append(feature.name)
        for cycle in feature.cycles:
            angle = graph.add("Mul", feature.name, graph.constant(2 * np.pi / CYCLES[cycle]))
            numbers += [graph.add("Cos", angle), graph.add("Sin", angle)]
        if feature.has_indicator:
            indicators.append(graph.add("Cast", graph.add("IsNaN", feature.name), to=element_type(graph.dtype)))
    blocks = indicators + [_add_memberships(graph, feature, feature.values) for feature in encoding.texts]
    if not numbers:
        return graph.add("Concat", *blocks, axis=1)
    return _add_numbers(graph, encoding, graph.add("Concat", *numbers, axis=1), blocks)


def _add_indicators(graph: Graph, encoding: Encoding, x: str) -> list[str]:
    """Add the missing-value indicators of columns in one input."""
    indicators = []
    for j, feature in enumerate(encoding.features):
        if feature.has_indicator:
            column = graph.add("Gather", x, graph.indices(j), axis=1)
            indicators.append(graph.add("Cast", graph.add("IsNaN", column), to=element_type(graph.dtype)))
    return indicators


def _add_numbers(graph: Graph, encoding: Encoding, x: str, others: list[str]) -> str:
    """Add imputed and standardised numbers, with other blocks beside them."""
    if encoding.imputer is not None:
        x = graph.add("Where", graph.add("IsNaN", x), graph.constant(encoding.imputer.statistics_), x)
    if encoding.scaler is not None:
        moved = graph.add("Sub", x, graph.constant(encoding.scaler.mean_))
        x = graph.add("Div", moved, graph.constant(encoding.scaler.scale_))
    return graph.add("Concat", x, *others, axis=1) if others else x


def _add_target_means(graph: Graph, feature: Feature, fitted: TargetMeans) -> str:
    """Add the target means of a column, (samples, k)."""
    if feature.kind == "text":
        rows = graph.add("Gather", graph.constant(fitted.means), graph.index_of(feature.name, fitted.texts), axis=0)
        return graph.add("Squeeze", rows, graph.indices(1))
    others = fitted.means[-1]
    deviation = graph.add(
        "MatMul", _add_memberships(graph, feature, fitted.texts), graph.constant(fitted.means[:-1] - others)
    )
    return graph.add("Add", deviation, graph.constant(others))


def _add_memberships(graph: Graph, feature: Feature, texts: Sequence[str]) -> str:
    """Add the one-hot encoding of the texts of a column, (samples, texts)."""
    if feature.kind == "text":
        table = np.vstack([np.eye(len(texts)), np.zeros(len(texts))])
        rows = graph.add("Gather", graph.constant(table), graph.index_of(feature.name, texts), axis=0)
        return graph.add("Squeeze", rows, graph.indices(1))
    numbers = [parse_number(text, ".") if text else math.nan for text in texts]
    strange = [text for text, number in zip(texts, numbers, strict=True) if text and math.isnan(number)]
    if strange:
        raise ValueError(f"ONNX takes {feature.name!r:.80} as numbers, and {strange[0]!r:.80} is none")
    equal = graph.add("Equal", feature.name, graph.constant([numbers]))
    if "" in texts:  # missing
        is_missing = graph.constant([[float(not text) for text in texts]])
        missing = graph.add("Cast", graph.add("IsNaN", feature.name), to=element_type(graph.dtype))
        either = graph.add("Mul", missing, is_missing)
        return graph.add("Add", graph.add("Cast", equal, to=element_type(graph.dtype)), either)
    return graph.add("Cast", equal, to=element_type(graph.dtype))
