"""Measure the order with which a flow converges as its steps become smaller."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ocdl.base.validation import FloatArray, LabelArray
from ocdl.depth import refinement
from ocdl.model.controls import Controls
from ocdl.model.flow import Flow
from ocdl.model.inputs import refine_inputs

SAMPLES = 50  # at most: all of them have the same order
FINEST = 128  # times as many layers
TARGET_CONTROLS = 5_000_000  # of a refined network, unless the two refinements that an order needs take more
MAX_CONTROLS = 50_000_000
SETTLED = 0.5  # by which the last two orders may differ
CLOSE = 0.1  # fraction of the largest state: larger differences do not show the order yet
ABOVE_NOISE = 1000.0  # roundoffs of the states that a difference must be above


class Convergence(NamedTuple):
    """The observed order of a method, from the differences of the flows with n and 2 n layers.

    Attributes
    ----------
    layers : ndarray of shape (k,)
        The numbers n of layers.
    differences : ndarray of shape (k,)
    order : float
        The order with which the last two fall; NaN for a feed-forward network, without a common ODE, if all
        differences are roundoff, or if the steps are too long for the differences to fall regularly.
    reason : str
        Why the order is NaN.

    Examples
    --------
    >>> import numpy as np, ocdl
    >>> net = ocdl.Network(2, 10)
    >>> report = net.certify(net.init(random_state=0), np.array([[0.0, 1.0], [1.0, 0.0]]), [0, 1])
    >>> result = report.convergence
    >>> isinstance(result, ocdl.Convergence), len(result.layers) == len(result.differences), result.reason
    (True, True, '')
    >>> round(result.order)
    1
    """

    layers: LabelArray
    differences: FloatArray
    order: float
    reason: str


def convergence(net: Flow, u: Controls, X: ArrayLike, inputs: ArrayLike | None = None) -> Convergence:
    """Measure in float64 how flows of the same ODE converge as their steps become smaller."""
    if not net.residual:
        return _no_order("a feed-forward network has no time")
    if net.stage_controls:
        return _no_order("stages with controls of their own have no common ODE")
    exact = replace(net, dtype=np.dtype(np.float64), time_steps="free")
    v, rows = exact.from_vector(u.to_vector()), np.asarray(X, dtype=np.float64)[:SAMPLES]
    held = None if inputs is None else np.asarray(inputs, dtype=np.float64)[:SAMPLES]
    before = exact.final_state(v, rows, inputs=held)
    size = float(np.abs(before).max())
    noise = ABOVE_NOISE * float(np.finfo(np.float64).eps) * max(1.0, size)
    differences: list[float] = []
    finest = min(FINEST, max(4, TARGET_CONTROLS // net.n_controls)) if 4 * net.n_controls <= MAX_CONTROLS else 1
    factor = 1
    while 2 * factor <= finest:
        factor *= 2
        fine, w = refinement.refine(exact, v, factor, interpolation="constant")
        after = fine.final_state(w, rows, inputs=None if held is None else refine_inputs(net, held, factor))
        difference = float(np.abs(after - before).max())
        if not difference > noise:
            break
        differences.append(difference)
        before = after
    layers = net.n_layers * 2 ** np.arange(len(differences))
    values = np.array(differences)
    if len(values) < 2:
        return Convergence(layers, values, math.nan, "the flow is exact to roundoff, or too large to refine")
    orders = np.log2(values[:-1] / values[1:])
    if orders[-1] < -SETTLED / 2 or np.ptp(orders[-2:]) > SETTLED or values[-1] > CLOSE * size:
        return Convergence(layers, values, math.nan, f"it has not settled at {layers[-1]} layers")
    return Convergence(layers, values, float(orders[-1]), "")


def _no_order(reason: str) -> Convergence:
    return Convergence(np.empty(0, np.int64), np.empty(0), math.nan, reason)
