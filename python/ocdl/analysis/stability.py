"""Whether a network's flow stretches what it carries, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocdl.base import markup
from ocdl.base.validation import FloatArray
from ocdl.model.controls import Controls
from ocdl.model.flow import Flow

__all__ = ["Stability", "stability"]

MOST_ROWS = 40  # that a notebook shows; print shows all
ENTRIES = 2**22  # of Jacobians that are held at a time, however many samples there are


@dataclass(frozen=True)
class Stability:
    """How a network's flow treats small variations of the state; prints as a table.

    Made by `Network.stability`. All values are the largest over the samples.

    Attributes
    ----------
    steps : ndarray of shape (layers,)
        The time steps h.
    growth : ndarray of shape (layers,)
        The largest factor by which layer j stretches a variation, ``|v[j+1]| / |v[j]|``: the norm of
        ``dy[j+1]/dy[j]``.
    total_growth : ndarray of shape (layers,)
        The same from the first state on, ``|v[j+1]| / |v[0]|``.
    abscissa : ndarray of shape (layers,)
        The spectral abscissa of the vector field: the largest real part of an eigenvalue of df/dy at y[j]. For steps
        forward in time, variations grow where it is positive and do not where the flow is contractive.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(1, 2, activation="identity")
    >>> report = net.stability(net.controls(K=[[[1.0]], [[-1.0]]]), [[1.0]])
    >>> report.steps.tolist(), report.growth.tolist(), report.total_growth.tolist(), report.abscissa.tolist()
    ([0.5, 0.5], [1.5, 0.5], [1.5, 0.75], [1.0, -1.0])
    """

    steps: NDArray[np.float64]
    growth: NDArray[np.float64]
    total_growth: NDArray[np.float64]
    abscissa: NDArray[np.float64]

    def __str__(self) -> str:
        lines = ["layer       step     growth      total   abscissa"]
        lines += [f"{layer:5d}" + "".join(f" {number:10.4g}" for number in row) for layer, row in self._rows()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(str(layer), *(f"{number:.4g}" for number in row)) for layer, row in self._rows()]
        if len(rows) > MOST_ROWS:
            rows = [*rows[: MOST_ROWS // 2], ("...",) * len(rows[0]), *rows[-(MOST_ROWS // 2) :]]
        return markup.table(("layer", "step", "growth", "total growth", "abscissa"), rows)

    def _rows(self) -> Iterator[tuple[int, tuple[float, ...]]]:
        return enumerate(zip(self.steps, self.growth, self.total_growth, self.abscissa, strict=True))


def stability(net: Flow, u: Controls, X: ArrayLike) -> Stability:
    """Return how much each layer stretches small variations of the state, and the spectral abscissa of its field.

    The Jacobians of all samples are computed, dim x dim each: this is for states of at most some dozen components.

    Parameters
    ----------
    u : Controls
    X : array_like of shape (samples, features)

    Returns
    -------
    Stability
        ``growth``, ``total_growth`` and ``abscissa``, one number per layer; it prints as a table.

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit, or the network is feed-forward.
    FloatingPointError
        If the flow leaves the finite range; the message names the sample and the layer.

    Examples
    --------
    The Jacobian of an antisymmetric field has imaginary eigenvalues only:

    >>> import numpy as np, ocdl
    >>> net = ocdl.Network(2, 3, field="antisymmetric", tableau="implicit_midpoint")
    >>> u = net.controls(K=np.tile([[0.0, 1.0], [0.0, 0.0]], (3, 1, 1)))
    >>> report = net.stability(u, [[0.5, -0.5], [1.0, 2.0]])
    >>> bool(np.abs(report.abscissa).max() < 1e-15)
    True
    >>> print(report)  # doctest: +ELLIPSIS
    layer       step     growth      total   abscissa
        0     0.3333 ...
    """
    if not net.residual:
        raise ValueError("stability needs a network with residual=True: a feed-forward network has no flow")
    return _stability_along(net, u, net.forward(u, X).states)


def _stability_along(net: Flow, u: Controls, states: FloatArray) -> Stability:
    """Return the stability of the flow along these states, (layers + 1, samples, dim)."""
    growth, total_growth, abscissa = (np.zeros(net.n_layers) for _ in range(3))
    abscissa -= np.inf
    at_once = max(1, ENTRIES // net.dim**2)
    for first in range(0, states.shape[1], at_once):
        chunk = np.ascontiguousarray(states[:, first : first + at_once])
        total = np.eye(net.dim)
        for layer, y in enumerate(chunk[:-1]):
            jacobian = _jacobians(net, _layer_controls(net, u, layer), y, {})
            total = jacobian @ total
            growth[layer] = max(growth[layer], _norm(jacobian))
            total_growth[layer] = max(total_growth[layer], _norm(total))
            for part in _stage_controls(net, u, layer) if net.stage_controls else [_layer_controls(net, u, layer)]:
                # One Euler step of size 1 has the Jacobian I + df/dy.
                euler = {"tableau": "euler", "stage_controls": False}
                field = _jacobians(net, part | {"h": [1.0]}, y, euler) - np.eye(net.dim)
                abscissa[layer] = max(abscissa[layer], float(np.linalg.eigvals(field).real.max()))
    return Stability(u.h.astype(np.float64), growth, total_growth, abscissa)


def _layer_controls(net: Flow, u: Controls, layer: int) -> dict[str, FloatArray]:
    """The controls of one layer, as those of a network that has no other."""
    return {part.name: getattr(u, part.name)[layer : layer + 1] for part in net.parts if part.role != "readout"}


def _stage_controls(net: Flow, u: Controls, layer: int) -> list[dict[str, FloatArray]]:
    """The controls of each stage of a layer, as those of a network that has no other."""
    parts = {part.name: getattr(u, part.name)[layer] for part in net.parts if part.role == "field"}
    return [{name: stages[i : i + 1] for name, stages in parts.items()} for i in range(net.stages)]


def _jacobians(net: Flow, controls: dict[str, Any], y: FloatArray, changes: dict[str, Any]) -> FloatArray:
    """The derivatives of the state after one layer by the state before it, (samples, dim, dim)."""
    sizes = {"n_features": net.dim, "augment": 0, "n_layers": 1, "n_outputs": 1, "time_steps": "fixed"}
    layer = type(net)(**(net._arguments() | sizes | changes))
    samples, dim = y.shape
    directions = np.tile(np.eye(dim, dtype=net.dtype), (samples, 1))
    columns = layer.tangent(layer.controls(**controls), np.repeat(y, dim, axis=0), dX=directions)[1]
    jacobians: FloatArray = columns.reshape(samples, dim, dim).swapaxes(1, 2).astype(np.float64)
    return jacobians


def _norm(jacobians: FloatArray) -> float:
    return float(np.linalg.norm(jacobians, 2, axis=(-2, -1)).max())
