"""How much a sample matters: the derivative of its loss, and how far its prediction is from another one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocdl.base import validation
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.model.controls import Controls
from ocdl.model.flow import Flow
from ocdl.model.objective import DEFAULT_OBJECTIVE, Objective, decided

__all__ = ["Flips", "sensitivity", "smallest_flip"]

MOST_HALVINGS = 60  # beyond, nothing but roundoff would change


@dataclass(frozen=True, eq=False)
class Flips:
    """Perturbations that change predictions, as `Network.smallest_flip` finds them.

    Attributes
    ----------
    distance : ndarray of shape (samples,)
        How far each sample is moved; infinite where no change was found.
    direction : ndarray of shape (samples, features)
        Where to, of length 1; zero where the gradient is.
    X : ndarray of shape (samples, features)
        The moved samples, ``X + distance * direction``; NaN where no change was found.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(1, 1)
    >>> flips = net.smallest_flip(net.controls(W=[[1.0]]), [[0.25], [-3.0]])
    >>> flips
    <Flips: 1 of 2 predictions can be changed, the nearest at 0.25>
    >>> flips.distance.round(5).tolist(), flips.direction.tolist(), bool(flips.X[0, 0] <= 0)
    ([0.25, inf], [[-1.0], [1.0]], True)
    """

    distance: FloatArray
    direction: FloatArray
    X: FloatArray

    def __repr__(self) -> str:
        return f"<Flips: {self._summary()}>"

    def _summary(self) -> str:
        found = np.isfinite(self.distance)
        nearest = f", the nearest at {self.distance[found].min():.3g}" if found.any() else ""
        return f"{found.sum()} of {len(found)} predictions can be changed{nearest}"


def sensitivity(
    net: Flow, u: Controls, X: ArrayLike, y: ArrayLike, objective: Objective = DEFAULT_OBJECTIVE
) -> FloatArray:
    """Return the derivative of each sample's loss with respect to the sample, (samples, features).

    It is the costate p[0] without the weights of the mean: a large row is a sample whose loss a small perturbation
    changes much.

    Parameters
    ----------
    u : Controls
    X : array_like of shape (samples, features)
    y : array_like of shape (samples,) or (samples, outputs)
        The targets, as for `Network.value`.
    objective : Objective
        Only its loss counts.

    Returns
    -------
    ndarray of shape (samples, features)

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit the network; the message names it, what came and what is accepted.
    FloatingPointError
        If the flow leaves the finite range; the message names the sample and the layer.

    Examples
    --------
    >>> import numpy as np, ocdl
    >>> X, y = ocdl.datasets.make_spiral(100, random_state=0)
    >>> net = ocdl.Network(2, 10)
    >>> u = net.init(random_state=0)
    >>> most_sensitive = np.argmax(np.linalg.norm(net.sensitivity(u, X, y), axis=1))
    """
    each = replace(objective, reduction="sum", regulariser=None)
    rows = net._samples(X)
    derivative = net.pull_back(u, rows, each.slopes(net.predict(u, rows), y)).X
    assert derivative is not None
    return derivative


def smallest_flip(
    net: Flow, u: Controls, X: ArrayLike, *, radius: float = 1.0, steps: int = 64, tol: float = 1e-6
) -> Flips:
    """Return the smallest perturbation along the gradient that changes each prediction.

    A sample of predicted class c moves along the straight line of steepest descent of the margin ``z_c - z_k`` (with
    one output of z or -z), where k is the class that the linearised margins say is nearest. Along this line the first
    change of the prediction, to whichever class, is searched for on a grid and then by bisection.

    Parameters
    ----------
    u : Controls
    X : array_like of shape (samples, features)
    radius : float
        How far to look.
    steps : int
        Points of the grid. A stretch of another prediction shorter than ``radius / steps`` may be missed.
    tol : float
        The bisection ends when the distance is known up to ``tol * radius``.

    Returns
    -------
    Flips
        The moved samples are predicted differently, to the last bit of their coordinates.

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit the network; the message names it, what came and what is accepted.
    FloatingPointError
        If the flow leaves the finite range; the message names the sample and the layer.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(1, 1)
    >>> u = net.controls(W=[[1.0]])  # class 1 where x > 0
    >>> net.smallest_flip(u, [[0.25], [-3.0]]).distance.round(5).tolist()
    [0.25, inf]
    """
    rows = validation.samples(X, net.n_features, net.dtype)
    radius, tol = validation.positive(radius, "radius"), validation.positive(tol, "tol")
    steps = validation.integer(steps, "steps", least=1)
    before = decided(net.predict(u, rows))
    direction = _descent(net, u, rows, before)

    def moved(which: LabelArray, distance: FloatArray) -> FloatArray:
        there: FloatArray = (rows[which] + distance[:, None] * direction[which]).astype(net.dtype)
        return there

    def changed(which: LabelArray, distance: FloatArray) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = decided(net.predict(u, moved(which, distance))) != before[which]
        return found

    high = np.full(len(rows), math.inf)
    waiting = np.flatnonzero(direction.any(axis=1))
    for step in range(1, steps + 1):
        if len(waiting) == 0:
            break
        found = changed(waiting, np.full(len(waiting), radius * step / steps))
        high[waiting[found]] = radius * step / steps
        waiting = waiting[~found]
    flipped = np.flatnonzero(np.isfinite(high))
    low = high[flipped] - radius / steps
    halvings = min(math.ceil(-math.log2(tol) - math.log2(steps)), MOST_HALVINGS)
    for _ in range(halvings if len(flipped) else 0):
        middle = (low + high[flipped]) / 2
        beyond = changed(flipped, middle)
        high[flipped[beyond]] = middle[beyond]
        low[~beyond] = middle[~beyond]
    target = np.full_like(rows, math.nan)
    target[flipped] = moved(flipped, high[flipped])
    return Flips(high, direction, target)


def _descent(net: Flow, u: Controls, rows: FloatArray, before: LabelArray) -> FloatArray:
    """Return the unit vector of steepest descent of the margin that is lost first, for each row."""
    nearest = np.full(len(rows), math.inf)
    direction = np.zeros(rows.shape)
    for c in np.unique(before):
        own = np.flatnonzero(before == c)
        for k in range(max(net.n_outputs, 2)):
            if k == c:
                continue
            margin, slope = _margin(net, u, rows[own], int(c), k)
            steepness = np.linalg.norm(slope, axis=1)
            distance = np.divide(margin, steepness, out=np.full(len(own), math.inf), where=steepness > 0)
            closer = distance < nearest[own]
            nearest[own[closer]] = distance[closer]
            direction[own[closer]] = -slope[closer] / steepness[closer, None]
    return direction


def _margin(net: Flow, u: Controls, rows: FloatArray, c: int, k: int) -> tuple[FloatArray, FloatArray]:
    """Return z_c - z_k and its gradient by the data, in float64; one output z is that of class 1 against class 0."""
    coefficients = np.zeros(net.n_outputs)
    if net.n_outputs == 1:
        coefficients[0] = 1 if c == 1 else -1
    else:
        coefficients[[c, k]] = 1, -1
    margin = net.predict(u, rows).astype(np.float64) @ coefficients
    gradient = net.pull_back(u, rows, np.tile(coefficients, (len(rows), 1))).X
    assert gradient is not None
    return margin, gradient.astype(np.float64)
