"""Measure how a flow stretches small variations, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocdl.base import markup
from ocdl.base.validation import FloatArray
from ocdl.model import overflow
from ocdl.model.controls import Controls
from ocdl.model.flow import Flow
from ocdl.model.inputs import split_inputs

__all__ = ["Stability", "stability"]

MAX_ROWS = 40  # in a notebook; print shows all
ENTRIES = 2**22  # of Jacobians in memory at a time
COLUMNS = ("layer", "step", "growth", "total growth", "log norm", "abscissa")


@dataclass(frozen=True)
class Stability:
    """How a network's flow treats small variations of the state; prints as a table.

    Returned by `Network.stability`. All values are the largest over the samples.

    Attributes
    ----------
    steps : ndarray of shape (layers,)
        The time steps h.
    growth : ndarray of shape (layers,)
        The largest factor by which layer j stretches a variation, ``|v[j+1]| / |v[j]|``: the norm of
        ``dy[j+1]/dy[j]``.
    total_growth : ndarray of shape (layers,)
        The same from the first state on, ``|v[j+1]| / |v[0]|``.
    log_norm : ndarray of shape (layers,)
        The logarithmic norm of the vector field: the largest eigenvalue of the symmetric part of df/dy at y[j]. It
        bounds growth: where it is at most m along the way, no variation of y' = f(y) grows faster than ``exp(m t)``,
        and where it is at most 0 none grows at all. With m > 0 growth is possible, but need not last.
    abscissa : ndarray of shape (layers,)
        The spectral abscissa of the vector field: the largest real part of an eigenvalue of df/dy at y[j], at most the
        logarithmic norm. It bounds no growth by itself. It is the rate in the long run where df/dy never changes; a
        matrix that is not normal lets variations grow before that, and one that changes in time, as it does from layer
        to layer, may let them grow for ever, although the abscissa is negative throughout.

    Both are of the differential equation, forward in time: a layer with h < 0 goes backward, where -df/dy counts, and
    one step of the method is near the equation's flow where h df/dy is small. `growth` is of the step itself.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(1, 2, activation="identity")
    >>> report = net.stability(net.controls(K=[[[1.0]], [[-1.0]]]), [[1.0]])
    >>> report.steps.tolist(), report.growth.tolist(), report.total_growth.tolist()
    ([0.5, 0.5], [1.5, 0.5], [1.5, 0.75])
    >>> report.log_norm.tolist(), report.abscissa.tolist()
    ([1.0, -1.0], [1.0, -1.0])

    A matrix that is not normal: both eigenvalues are -1, and yet variations grow at first.

    >>> net = ocdl.Network(2, 1, activation="identity", horizon=0.1)
    >>> report = net.stability(net.controls(K=[[[-1.0, 10.0], [0.0, -1.0]]]), [[0.0, 0.0]])
    >>> report.abscissa.tolist(), report.log_norm.tolist(), bool(report.growth[0] > 1.4)
    ([-1.0], [4.0], True)
    """

    steps: NDArray[np.float64]
    growth: NDArray[np.float64]
    total_growth: NDArray[np.float64]
    log_norm: NDArray[np.float64]
    abscissa: NDArray[np.float64]

    def __str__(self) -> str:
        first, *others = COLUMNS
        lines = [first + "".join(f" {name:>12}" for name in others)]
        lines += [f"{layer:5d}" + "".join(f" {number:12.4g}" for number in row) for layer, row in self._rows()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(str(layer), *(f"{number:.4g}" for number in row)) for layer, row in self._rows()]
        if len(rows) > MAX_ROWS:
            rows = [*rows[: MAX_ROWS // 2], ("...",) * len(rows[0]), *rows[-(MAX_ROWS // 2) :]]
        return markup.table(COLUMNS, rows)

    def _rows(self) -> Iterator[tuple[int, tuple[float, ...]]]:
        columns = (self.steps, self.growth, self.total_growth, self.log_norm, self.abscissa)
        return enumerate(zip(*columns, strict=True))


def stability(net: Flow, u: Controls, X: ArrayLike, *, inputs: ArrayLike | None = None) -> Stability:
    """Return how much each layer stretches small variations, and logarithmic norm and spectral abscissa of its field.

    The Jacobians of all samples are computed, dim x dim each: this is for states of at most some dozen components.

    Parameters
    ----------
    u : Controls
    X : array_like of shape (samples, features)
    inputs : array_like of shape (samples, layers [+ 1], inputs), optional
        As for `Network.forward`.

    Returns
    -------
    Stability
        ``growth``, ``total_growth``, ``log_norm`` and ``abscissa``, one number per layer; it prints as a table.

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
    layer         step       growth total growth     log norm     abscissa
        0       0.3333 ...
    """
    if not net.residual:
        raise ValueError("stability needs a network with residual=True: a feed-forward network has no flow")
    rows, given = split_inputs(net, net._samples(net._joined(X, inputs)))
    states = net.forward(u, rows, inputs=given).states[:-1]
    return _measure_stability(net, u, states if given is None else _with_inputs(net, states, given))


def _with_inputs(net: Flow, states: FloatArray, inputs: FloatArray) -> FloatArray:
    """Return the rows of single layers: their states, each followed by the inputs of its layer."""
    count = 2 if net.input_hold == "linear" else 1  # times that a layer takes
    of_layers = [inputs[:, layer : layer + count].reshape(len(inputs), -1) for layer in range(net.n_layers)]
    return np.concatenate([states, np.stack(of_layers)], axis=2)


def _measure_stability(net: Flow, u: Controls, states: FloatArray) -> Stability:
    """Return the stability of the flow along these states with their inputs, (layers, samples, dim + inputs)."""
    growth, total_growth, log_norm, abscissa = np.full((4, net.n_layers), -np.inf)
    samples_at_once = max(1, ENTRIES // net.dim**2)
    for first in range(0, states.shape[1], samples_at_once):
        y = np.ascontiguousarray(states[:, first : first + samples_at_once])
        total = np.eye(net.dim)
        layers_at_once = max(1, samples_at_once // y.shape[1])
        for begin in range(0, net.n_layers, layers_at_once):
            layers = slice(begin, begin + layers_at_once)
            steps = _step_jacobians(net, u, y, layers)
            fields = _field_jacobians(net, u, y, layers)
            symmetric = 0.5 * (fields + fields.swapaxes(-2, -1))
            _update_maximum(growth[layers], _norms(steps))
            _update_maximum(log_norm[layers], np.linalg.eigvalsh(symmetric)[..., -1])
            _update_maximum(abscissa[layers], np.linalg.eigvals(fields).real)
            with np.errstate(over="ignore", invalid="ignore"):
                for layer, jacobians in enumerate(steps):
                    total = steps[layer] = jacobians @ total
            _update_maximum(total_growth[layers], _norms(steps))
    return Stability(u.h.astype(np.float64), growth, total_growth, log_norm, abscissa)


def _update_maximum(largest: FloatArray, numbers: FloatArray) -> None:
    """Replace `largest`, (layers,), by its maximum with these numbers, (layers, ...), in place."""
    np.maximum(largest, numbers.reshape(len(largest), -1).max(axis=1), out=largest)


def _norms(jacobians: FloatArray) -> FloatArray:
    """Return the norms of matrices, infinite where entries overflow."""
    norms = np.full(jacobians.shape[:-2], np.inf)
    is_finite = np.isfinite(jacobians).all(axis=(-2, -1))
    norms[is_finite] = np.linalg.norm(jacobians[is_finite], 2, axis=(-2, -1))
    return norms


def _step_jacobians(net: Flow, u: Controls, y: FloatArray, layers: slice) -> FloatArray:
    """Return dy[j+1]/dy[j] of these layers at the states y, (layers, samples, dim, dim)."""
    steps = {part.name: getattr(u, part.name)[layers] for part in net.parts if part.role == "steps"}
    return _jacobians(net, _field_parts(net, u, layers) | steps, y[layers], {})


def _field_parts(net: Flow, u: Controls, layers: slice) -> dict[str, FloatArray]:
    """Return the field's controls of these layers, one entry per layer, also where layers share them."""
    sets = net._sets_of(layers)
    return {part.name: getattr(u, part.name)[sets] for part in net.parts if part.role == "field"}


def _field_jacobians(net: Flow, u: Controls, y: FloatArray, layers: slice) -> FloatArray:
    """Return df/dy of these layers at the states y, (layers, sets of controls in a layer, samples, dim, dim)."""
    parts = _field_parts(net, u, layers)
    sets = [parts]
    if net.stage_controls:
        sets = [{name: part[:, i] for name, part in parts.items()} for i in range(net.stages)]
    # One Euler step of size 1 has the Jacobian I + df/dy.
    changes = {"tableau": "euler", "stage_controls": False, "horizon": 1.0}
    jacobians = [_jacobians(net, controls, y[layers], changes) for controls in sets]
    return np.stack(jacobians, axis=1) - np.eye(net.dim)


def _jacobians(net: Flow, parts: dict[str, FloatArray], y: FloatArray, changes: dict[str, Any]) -> FloatArray:
    """Return the derivatives of the state after a layer by the state before it, (layers, samples, dim, dim).

    `parts` has the controls of each layer; a single-layer network evaluates them one after the other.
    """
    (layers, samples, width), dim = y.shape, net.dim
    sizes: dict[str, Any] = {"n_features": dim, "augment": 0, "n_layers": 1, "n_outputs": 1}
    sizes |= {"time_steps": "fixed", "control_intervals": None}
    single = type(net)(**(net._arguments() | sizes | changes))
    u = single.controls()
    buffers = {name: getattr(u, name) for name in parts}
    directions = np.tile(np.eye(dim, width, dtype=net.dtype), (samples, 1))
    jacobians = np.empty((layers, samples, dim, dim))
    for layer in range(layers):
        for name, part in parts.items():
            buffers[name][0] = part[layer]
        rows = np.repeat(y[layer], dim, axis=0)
        columns = single._core_network.tangent(u._vector, rows, None, directions)[1]
        if not np.isfinite(columns).all():
            overflow.report(single._core_network, u._vector, rows)
        jacobians[layer] = columns.reshape(samples, dim, dim).swapaxes(1, 2)
    return jacobians
