"""How skl2onnx converts our estimators, alone or at the end of a pipeline: it asks each for these two functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ocdl.interop import onnx_network
from ocdl.interop.extras import missing
from ocdl.interop.onnx_estimator import label_values, predictions
from ocdl.interop.onnx_graph import Graph, checked_opset

try:
    from skl2onnx.common import data_types
except ModuleNotFoundError as error:
    raise missing("the conversion of a pipeline", "skl2onnx", "onnx") from error


def describe_outputs(operator: Any) -> None:
    """Tell skl2onnx the types and shapes of what an estimator predicts."""
    estimator, rows = operator.raw_operator, operator.inputs[0].get_first_dimension()
    check_is_fitted(estimator)
    numbers = data_types.guess_tensor_type(operator.inputs[0].type)
    if not hasattr(estimator, "classes_"):
        operator.outputs[0].type = type(numbers)([rows, estimator.network_.n_outputs])
        return
    classes = label_values(estimator.classes_)
    texts = classes.dtype.kind == "O"
    label = data_types.StringTensorType() if texts else data_types.guess_data_type(classes)[0][1]
    operator.outputs[0].type = type(label)([rows])
    operator.outputs[1].type = type(numbers)([rows, len(classes)])


def add_nodes(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of an estimator, in the number type of what comes in."""
    estimator, (source,) = operator.raw_operator, operator.inputs
    onnx_network.require_explicit(estimator.network_)
    opset = checked_opset(container.target_opset)
    numbers = data_types.guess_tensor_type(source.type)
    dtype = np.dtype(np.float64 if isinstance(numbers, data_types.DoubleTensorType) else np.float32)
    graph = Graph(dtype, prefix=scope.get_unique_variable_name("ocdl") + "_")
    x = source.full_name
    if not isinstance(source.type, type(numbers)):  # whole numbers, say
        x = graph.add("Cast", x, to=data_types.guess_proto_type(numbers))
    found = predictions(graph, estimator, x)
    for name, output in zip(found, operator.outputs, strict=True):
        graph.add("Identity", name, output=output.full_name)
    container.initializers.extend(graph.constants)
    container.nodes.extend(graph.nodes)
    container.node_domain_version_pair_sets.add(("", opset))  # what add_node would note, which looks at every name
