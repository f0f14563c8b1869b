"""Write a network with its controls as an ONNX file."""

from __future__ import annotations

from ocdl.base import validation
from ocdl.model.controls import Controls
from ocdl.model.losses import CrossEntropy
from ocdl.network import Network
from ocdl.storage.container import FilePath

__all__ = ["export_onnx"]

OUTPUTS = ("logits", "probabilities", "states")


def export_onnx(
    path: FilePath, net: Network, u: Controls, *, outputs: str = "logits", opset: int | None = None
) -> None:
    """Write a network with its controls as an ONNX file, which programs without Python can run.

    The graph has one input, "X" of shape (samples, features) with any number of samples, and one output named as
    `outputs`, in the network's number type. Layers whose step is 0 are left out. It needs ``pip install 'ocdl[onnx]'``.

    Parameters
    ----------
    path : str or path-like
        The file, which is replaced whole or not at all; ``.onnx`` is customary.
    net : Network
        With an explicit tableau.
    u : Controls
    outputs : {"logits", "probabilities", "states"}
        "logits": the outputs of `Network.predict`, (samples, outputs). "probabilities": of the classes, (samples,
        classes), by the logistic function of one output and the softmax of several. "states": those after every layer,
        (layers + 1, samples, dim).
    opset : int, optional
        The version of ONNX's operators, from 13 on; 17 where none is given.

    Raises
    ------
    ImportError
        If onnx is not installed.
    TypeError, ValueError
        If an argument does not fit, the tableau is implicit, or `opset` too old.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(2, 10, tableau="kutta4")
    >>> ocdl.export_onnx("net.onnx", net, net.init(random_state=0))  # doctest: +SKIP
    """
    if not isinstance(net, Network):
        raise TypeError(f"net must be a Network, got {type(net).__name__}")
    net._vector(u)
    outputs = validation.choice(outputs, "outputs", OUTPUTS)
    from ocdl.interop.onnx_graph import Graph, Tensor, validate_opset, write
    from ocdl.interop.onnx_network import add_means, add_readout, add_states, add_trajectory, require_explicit

    require_explicit(net)
    opset = validate_opset(opset)
    graph = Graph(net.dtype)
    states = add_states(graph, net, u, "X")
    if outputs == "states":
        result, shape = add_trajectory(graph, states), Tensor(outputs, net.dtype, (net.dim,), (net.n_layers + 1,))
    else:
        result, shape = add_readout(graph, u, states[-1]), Tensor(outputs, net.dtype, (net.n_outputs,))
        if outputs == "probabilities":
            result = add_means(graph, CrossEntropy(), result, net.n_outputs)
            shape = shape._replace(axes=(max(net.n_outputs, 2),))
    graph.add("Identity", result, output=outputs)
    write(path, graph, [Tensor("X", net.dtype, (net.n_features,))], [shape], opset, {})
