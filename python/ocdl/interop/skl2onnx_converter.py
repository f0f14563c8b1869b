"""Convert estimators with skl2onnx, alone or at the end of a pipeline.

skl2onnx refuses options for classes that are not registered. So classifiers are registered too, with ``zipmap``, which
most programs set to False: the probabilities are an array in any case.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ocdl.estimator import ODEClassifier
from ocdl.interop import onnx_network
from ocdl.interop.extras import missing_library
from ocdl.interop.onnx_estimator import add_predictions, label_values
from ocdl.interop.onnx_graph import Graph, validate_opset

try:
    from skl2onnx import update_registered_converter
    from skl2onnx.common import data_types
except ModuleNotFoundError as error:
    raise missing_library("the conversion of a pipeline", "skl2onnx", "onnx") from error

ALIAS = "OcdlODEClassifier"


def describe_outputs(operator: Any) -> None:
    """Declare the types and shapes of the predictions of an estimator."""
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
    """Add the nodes of an estimator, in the number type of the input."""
    estimator, (source,) = operator.raw_operator, operator.inputs
    onnx_network.require_explicit(estimator.network_)
    opset = validate_opset(container.target_opset)
    numbers = data_types.guess_tensor_type(source.type)
    dtype = np.dtype(np.float64 if isinstance(numbers, data_types.DoubleTensorType) else np.float32)
    graph = Graph(dtype, prefix=scope.get_unique_variable_name("ocdl") + "_")
    x = source.full_name
    if not isinstance(source.type, type(numbers)):  # for example integers
        x = graph.add("Cast", x, to=data_types.guess_proto_type(numbers))
    predictions = add_predictions(graph, estimator, x)
    for name, output in zip(predictions, operator.outputs, strict=True):
        graph.add("Identity", name, output=output.full_name)
    container.initializers.extend(graph.constants)
    container.nodes.extend(graph.nodes)
    container.node_domain_version_pair_sets.add(
        ("", opset)
    )  # as add_node does, but without its search through all names


def declare_outputs(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> list[Any]:
    """Declare the outputs of a classifier, as skl2onnx does for classes that are not registered."""
    operator = scope.declare_local_operator(ALIAS, model)
    operator.inputs = inputs
    numbers = data_types.guess_tensor_type(inputs[0].type)
    operator.outputs += [scope.declare_local_variable(name, numbers) for name in ("label", "probabilities")]
    return [*operator.outputs]


update_registered_converter(
    ODEClassifier, ALIAS, describe_outputs, add_nodes, parser=declare_outputs, options={"zipmap": [False]}
)
