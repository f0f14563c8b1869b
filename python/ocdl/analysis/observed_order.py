"""The order with which the flow of a network converges when its steps become smaller."""

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

SAMPLES = 50  # at most: all of them have the same order
FINEST = 128  # times as many layers
ENOUGH_CONTROLS = 5_000_000  # of a refined network, unless it takes more for the two refinements that an order needs
MOST_CONTROLS = 50_000_000
SETTLED = 0.5  # by which the last two orders may differ
CLOSE = 0.1  # of the largest state: flows that differ by more say nothing of an order yet
ABOVE_NOISE = 1000.0  # roundoffs of the states that a difference must be above


class Convergence(NamedTuple):
    """Differences of the flows with n and 2 n layers, for these n, and the order with which the last two fall.

    The order is NaN, and `reason` says why, where there is no time, no common ODE, nothing above roundoff, or where the
    steps are so long that the differences do not fall regularly yet.
    """

    layers: LabelArray
    differences: FloatArray
    order: float
    reason: str


def convergence(net: Flow, u: Controls, X: ArrayLike) -> Convergence:
    """Return how flows of networks with the same ODE and ever smaller steps approach each other, in float64."""
    if not net.residual:
        return _none("a feed-forward network has no time")
    if net.stage_controls:
        return _none("stages with controls of their own have no common ODE")
    exact = replace(net, dtype=np.dtype(np.float64), time_steps="free")
    v, rows = exact.from_vector(u.to_vector()), np.asarray(X, dtype=np.float64)[:SAMPLES]
    before = exact.final_state(v, rows)
    size = float(np.abs(before).max())
    noise = ABOVE_NOISE * float(np.finfo(np.float64).eps) * max(1.0, size)
    differences: list[float] = []
    finest = min(FINEST, max(4, ENOUGH_CONTROLS // net.n_controls)) if 4 * net.n_controls <= MOST_CONTROLS else 1
    factor = 1
    while 2 * factor <= finest:
        factor *= 2
        fine, w = refinement.refine(exact, v, factor, interpolation="constant")
        after = fine.final_state(w, rows)
        difference = float(np.abs(after - before).max())
        if not difference > noise:
            break
        differences.append(difference)
        before = after
    layers = net.n_layers * 2 ** np.arange(len(differences))
    found = np.array(differences)
    if len(found) < 2:
        return Convergence(layers, found, math.nan, "the flow is exact to roundoff, or too large to refine")
    orders = np.log2(found[:-1] / found[1:])
    if orders[-1] < -SETTLED / 2 or np.ptp(orders[-2:]) > SETTLED or found[-1] > CLOSE * size:
        return Convergence(layers, found, math.nan, f"it has not settled at {layers[-1]} layers")
    return Convergence(layers, found, float(orders[-1]), "")


def _none(reason: str) -> Convergence:
    return Convergence(np.empty(0, np.int64), np.empty(0), math.nan, reason)
