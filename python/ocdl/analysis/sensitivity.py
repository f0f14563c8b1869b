"""Sensitivity of losses to the data, and perturbations that change predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocdl.base import validation
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.model.controls import Controls
from ocdl.model.flow import Flow
from ocdl.model.inputs import split_inputs
from ocdl.model.objective import DEFAULT_OBJECTIVE, Objective, predict_class
from ocdl.model.observations import Observations

__all__ = ["MinimalPerturbation", "minimal_perturbation", "sensitivity"]

MAX_HALVINGS = 60  # more would only change roundoff


@dataclass(frozen=True, eq=False)
class MinimalPerturbation:
    """The smallest perturbations that change predictions; returned by `Network.minimal_perturbation`.

    Attributes
    ----------
    distance : ndarray of shape (samples,)
        How far each sample is moved; infinite where no change was found.
    direction : ndarray of shape (samples, features)
        The unit direction; zero where the gradient is zero.
    X : ndarray of shape (samples, features)
        The moved samples, ``X + distance * direction``; NaN where no change was found.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(1, 1)
    >>> perturbation = net.minimal_perturbation(net.controls(W=[[1.0]]), [[0.25], [-3.0]])
    >>> perturbation
    <MinimalPerturbation: 1 of 2 predictions can be changed, the nearest at 0.25>
    >>> perturbation.distance.round(5).tolist(), perturbation.direction.tolist(), bool(perturbation.X[0, 0] <= 0)
    ([0.25, inf], [[-1.0], [1.0]], True)
    """

    distance: FloatArray
    direction: FloatArray
    X: FloatArray

    def __repr__(self) -> str:
        return f"<MinimalPerturbation: {self._summary()}>"

    def _summary(self) -> str:
        result = np.isfinite(self.distance)
        nearest = f", the nearest at {self.distance[result].min():.3g}" if result.any() else ""
        return f"{result.sum()} of {len(result)} predictions can be changed{nearest}"


def sensitivity(
    net: Flow,
    u: Controls,
    X: ArrayLike,
    y: ArrayLike | Observations,
    objective: Objective | None = None,
    *,
    inputs: ArrayLike | None = None,
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
    objective : Objective, optional
        Default: ``Objective()``. Only its loss counts.
    inputs : array_like of shape (samples, layers [+ 1], inputs), optional
        As for `Network.forward`.

    Returns
    -------
    ndarray of shape (samples, features)

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit the network; the message names it, the given value and what is accepted.
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
    each = replace(DEFAULT_OBJECTIVE if objective is None else objective, reduction="sum", penalties=())
    rows, given = split_inputs(net, net._samples(net._joined(X, inputs)))
    if isinstance(y, Observations):
        derivative = net.value_and_grad(u, rows, y, each, inputs=given, input_grad=True)[1].X
    else:
        cotangents = each.output_grad(net.predict(u, rows, inputs=given), y)
        derivative = net.vjp(u, rows, output_cotangents=cotangents, inputs=given).X
    assert derivative is not None
    return derivative


def minimal_perturbation(
    net: Flow,
    u: Controls,
    X: ArrayLike,
    *,
    radius: float = 1.0,
    steps: int = 64,
    tol: float = 1e-6,
    inputs: ArrayLike | None = None,
) -> MinimalPerturbation:
    """Return the smallest perturbation along the gradient that changes each prediction.

    A sample of predicted class c moves along the straight line of steepest descent of the margin ``z_c - z_k`` (with
    one output of z or -z), where k is the class that the linearised margins say is nearest. Along this line the first
    change of the prediction, to whichever class, is searched for on a grid and then by bisection.

    Parameters
    ----------
    u : Controls
    X : array_like of shape (samples, features)
    radius : float
        The largest distance to search.
    steps : int
        Points of the grid. A stretch of another prediction shorter than ``radius / steps`` may be missed.
    tol : float
        The bisection ends when the distance is known up to ``tol * radius``.
    inputs : array_like of shape (samples, layers [+ 1], inputs), optional
        As for `Network.forward`; they stay as they are.

    Returns
    -------
    MinimalPerturbation
        The moved samples are predicted differently, to the last bit of their coordinates.

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit the network; the message names it, the given value and what is accepted.
    FloatingPointError
        If the flow leaves the finite range; the message names the sample and the layer.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(1, 1)
    >>> u = net.controls(W=[[1.0]])  # class 1 where x > 0
    >>> net.minimal_perturbation(u, [[0.25], [-3.0]]).distance.round(5).tolist()
    [0.25, inf]
    """
    rows, given = split_inputs(net, net._samples(net._joined(X, inputs)))
    radius, tol = validation.positive(radius, "radius"), validation.positive(tol, "tol")
    steps = validation.integer(steps, "steps", minimum=1)
    before = predict_class(net.predict(u, rows, inputs=given))
    direction = _descent_directions(net, u, rows, given, before)

    def move(which: LabelArray, distance: FloatArray) -> FloatArray:
        result: FloatArray = (rows[which] + distance[:, None] * direction[which]).astype(net.dtype)
        return result

    def is_changed(which: LabelArray, distance: FloatArray) -> NDArray[np.bool_]:
        after = predict_class(net.predict(u, move(which, distance), inputs=_select(given, which)))
        result: NDArray[np.bool_] = after != before[which]
        return result

    high = np.full(len(rows), math.inf)
    waiting = np.flatnonzero(direction.any(axis=1))
    for step in range(1, steps + 1):
        if len(waiting) == 0:
            break
        result = is_changed(waiting, np.full(len(waiting), radius * step / steps))
        high[waiting[result]] = radius * step / steps
        waiting = waiting[~result]
    flipped = np.flatnonzero(np.isfinite(high))
    low = high[flipped] - radius / steps
    halvings = min(math.ceil(-math.log2(tol) - math.log2(steps)), MAX_HALVINGS)
    for _ in range(halvings if len(flipped) else 0):
        middle = (low + high[flipped]) / 2
        beyond = is_changed(flipped, middle)
        high[flipped[beyond]] = middle[beyond]
        low[~beyond] = middle[~beyond]
    target = np.full_like(rows, math.nan)
    target[flipped] = move(flipped, high[flipped])
    return MinimalPerturbation(high, direction, target)


def _select(inputs: FloatArray | None, rows: LabelArray) -> FloatArray | None:
    return None if inputs is None else inputs[rows]


def _descent_directions(
    net: Flow, u: Controls, rows: FloatArray, inputs: FloatArray | None, before: LabelArray
) -> FloatArray:
    """Return the unit vector of steepest descent of the margin that is lost first, for each row."""
    nearest = np.full(len(rows), math.inf)
    direction = np.zeros(rows.shape)
    for c in np.unique(before):
        of_class = np.flatnonzero(before == c)
        for k in range(max(net.n_outputs, 2)):
            if k == c:
                continue
            margin, gradient = _margin(net, u, rows[of_class], _select(inputs, of_class), int(c), k)
            norms = np.linalg.norm(gradient, axis=1)
            distance = np.divide(margin, norms, out=np.full(len(of_class), math.inf), where=norms > 0)
            closer = distance < nearest[of_class]
            nearest[of_class[closer]] = distance[closer]
            direction[of_class[closer]] = -gradient[closer] / norms[closer, None]
    return direction


def _margin(
    net: Flow, u: Controls, rows: FloatArray, inputs: FloatArray | None, c: int, k: int
) -> tuple[FloatArray, FloatArray]:
    """Return z_c - z_k and its gradient by the data, in float64; one output z is that of class 1 against class 0."""
    coefficients = np.zeros(net.n_outputs)
    if net.n_outputs == 1:
        coefficients[0] = 1 if c == 1 else -1
    else:
        coefficients[[c, k]] = 1, -1
    margin = net.predict(u, rows, inputs=inputs).astype(np.float64) @ coefficients
    gradient = net.vjp(u, rows, output_cotangents=np.tile(coefficients, (len(rows), 1)), inputs=inputs).X
    assert gradient is not None
    return margin, gradient.astype(np.float64)
