"""Build ONNX graphs and write them to files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocdl.base import validation
from ocdl.interop.extras import missing_library
from ocdl.storage.container import FilePath
from ocdl.storage.disk import replace_file

try:
    import onnx
except ModuleNotFoundError as error:
    raise missing_library("a file in ONNX", "onnx", "onnx") from error

OPSET = 17
ML, ML_OPSET = "ai.onnx.ml", 2  # the operators for texts
MIN_OPSET = 13  # the first with axes as inputs and softmax along one axis
MAX_FILE_SIZE = 2**31 - 1  # bytes that protobuf can hold


class Tensor(NamedTuple):
    """An input or output of a graph: its name, number type, and the lengths of its axes after that of the samples."""

    name: str
    dtype: np.dtype[Any]
    axes: tuple[int, ...]
    axes_before: tuple[int, ...] = ()

    def to_value_info(self) -> Any:
        """Return the ValueInfoProto of the tensor; the number of samples is free."""
        shape = [*self.axes_before, "samples", *self.axes]
        return onnx.helper.make_tensor_value_info(self.name, element_type(self.dtype), shape)


class Graph:
    """Nodes and constants, in order; each method adds something and returns the name of the result.

    Attributes
    ----------
    dtype : numpy.dtype
        The number type of everything that is no index and no label.
    nodes, constants : list
        What ONNX calls NodeProto and TensorProto.
    """

    INDEX = int(onnx.TensorProto.INT64)

    def __init__(self, dtype: np.dtype[Any], prefix: str = "") -> None:
        self.dtype, self.nodes, self.constants = dtype, list[Any](), list[Any]()
        self._prefix, self._known = prefix, dict[tuple[str, tuple[int, ...], bytes], str]()
        self._bytes = 0  # of the constants

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output."""
        name = self._name(operator.lower(), len(self.nodes)) if output is None else output
        self.nodes.append(onnx.helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, values: ArrayLike) -> str:
        """Add numbers in the graph's number type; equal ones are stored once."""
        return self._store(np.ascontiguousarray(values, self.dtype))

    def indices(self, *values: int) -> str:
        """Add integers, for example axes."""
        return self._store(np.array(values, np.int64))

    def labels(self, values: NDArray[Any]) -> str:
        """Add labels in their own type: numbers, texts or booleans."""
        name = self._name("labels", len(self.constants))
        if values.dtype.kind == "O":
            texts = [_encode_utf8(str(text)) for text in values]
            self.constants.append(onnx.helper.make_tensor(name, onnx.TensorProto.STRING, [len(texts)], texts))
        else:
            self.constants.append(onnx.numpy_helper.from_array(values, name))
        return name

    def index_of(self, texts: str, known: Sequence[str]) -> str:
        """Add the position of each text among the known ones, and their number for all others."""
        keys = [_encode_utf8(text) for text in known]
        attributes: dict[str, Any] = {
            "keys_strings": keys,
            "values_int64s": list(range(len(keys))),
            "default_int64": len(keys),
        }
        return self.add("LabelEncoder", texts, domain=ML, **attributes)

    def _store(self, array: NDArray[Any]) -> str:
        require_file_size(array.nbytes)  # before it is copied
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._bytes += array.nbytes
            require_file_size(self._bytes)
            self._known[key] = self._name("constant", len(self.constants))
            self.constants.append(onnx.numpy_helper.from_array(array, self._known[key]))
        return self._known[key]

    def _name(self, kind: str, number: int) -> str:
        return f"{self._prefix}{kind}_{number}"


def _encode_utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text {text!r} has half a character, and ONNX holds texts in UTF-8, which has none"
        ) from error


def element_type(dtype: np.dtype[Any]) -> int:
    """Return the ONNX number of a type; object represents texts."""
    return int(onnx.TensorProto.STRING if dtype.kind == "O" else onnx.helper.np_dtype_to_tensor_dtype(dtype))


def require_file_size(size: int) -> None:
    """Refuse a file that is too large for protobuf."""
    if size > MAX_FILE_SIZE:
        raise ValueError(f"a file in ONNX holds at most {MAX_FILE_SIZE} bytes, and this network needs more")


def validate_opset(opset: int | None) -> int:
    """Return a supported version of the ONNX operators; None is the default."""
    if opset is None:
        return OPSET
    number, newest = validation.integer(opset, "opset", minimum=MIN_OPSET), int(onnx.defs.onnx_opset_version())
    if number > newest:
        raise ValueError(f"opset must be at most {newest}, the newest of the installed onnx, got {number}")
    return number


def write(
    path: FilePath,
    graph: Graph,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    opset: int,
    metadata: Mapping[str, str],
) -> None:
    """Write a graph to a file atomically."""
    graph_proto = onnx.helper.make_graph(
        graph.nodes, "ocdl", [i.to_value_info() for i in inputs], [o.to_value_info() for o in outputs], graph.constants
    )
    operators = [onnx.helper.make_opsetid("", opset)]
    if any(node.domain == ML for node in graph.nodes):
        operators.append(onnx.helper.make_opsetid(ML, ML_OPSET))
    model = onnx.helper.make_model(
        graph_proto,
        opset_imports=operators,
        ir_version=onnx.helper.find_min_ir_version_for(operators),  # the oldest possible: runtimes refuse newer ones
        producer_name="ocdl",
        producer_version=version("ocdl"),
    )
    onnx.helper.set_model_props(model, dict(metadata))
    require_file_size(model.ByteSize())
    replace_file(os.fsdecode(path), model.SerializeToString())
