"""The prior of the estimators: a distribution of the controls before any data, so that noise is not learned.

With m the sum of the sample weights, d the dimension of the state and s = T / N, the mean of the losses is joined by ::

    alpha / (2 m) [ 3 |W|^2 + s sum_j (1.2 d^1.5 |K_j|^2 + 2 |b_j|^2) + 200 sum_j ((h_j - s) / s)^2 ]

where the last term applies to free steps only. It is the negative logarithm of normal densities. A flow with K = 0
is logistic or linear regression; the factor that grows with d makes the flow fall back there on wide and noisy tables,
while two columns stay free. Without the last term, steps would grow and evade the penalty of K.

The outputs of a feed-forward network with K = 0 do not depend on the data. Entries of variance 1/d keep lengths::

    alpha / (2 m) [ 3 |W|^2 + sum_j (d |K_j|^2 + |b_j|^2) ]
"""

from __future__ import annotations

import math

from ocdl.model.flow import Flow
from ocdl.model.penalties import EvenSteps, Penalty, Tikhonov

MATRIX, MATRIX_POWER = 1.2, 1.5
VECTOR = 2.0
READOUT = 3.0
STEPS = 200.0
WEAK = 0.1  # factor of the weights of the field at first: with symmetric data K = 0 is a stationary point
WEAK_ITERATIONS, WEAK_FRACTION = 30, 0.2  # at most, and of all iterations
SHORT = 0.25  # a reach below which the flow starts at rest


def prior(
    net: Flow, total_weight: float, alpha: float, *, noise: float = 1.0, weak: bool = False
) -> tuple[Penalty, ...]:
    """Return the prior for samples of this total weight; `noise` is the variance of what no model could predict.

    Weak, it holds the field a tenth as much.
    """
    unit = alpha * noise / total_weight
    step, matrix, vector = _field_weights(net)
    largest = max(step * matrix, step * vector, READOUT, STEPS)
    if not math.isfinite(unit * largest):
        of_one = noise / total_weight * READOUT
        what = (
            f"alpha={alpha:g} is so large, with horizon={net.horizon:g}," if math.isfinite(of_one) else "y is so large"
        )
        raise ValueError(f"{what} that the weights of the prior are beyond the range of float64")
    field = unit * step * (WEAK if weak else 1.0)
    penalties: list[Penalty] = []
    for part in net.parts:
        dimensions = part.axes.count("dim")
        if part.role == "field":
            penalties.append(Tikhonov(field * (matrix if dimensions == 2 else vector), parts=(part.name,)))
        elif part.role == "readout" and dimensions:
            penalties.append(Tikhonov(unit * READOUT, parts=(part.name,)))
        elif part.role == "steps" and net.time_steps == "free":
            penalties.append(EvenSteps(unit * STEPS))
    return tuple(penalties)


def reach(net: Flow, total_weight: float, alpha: float, noise: float) -> float:
    """Return how far the flow can move a row, as a fraction of its length, before the prior costs more than it gains.

    To lower a loss of 1 it pays at most  s sum_j |K_j|^2 <= 2 m / (1.2 alpha d^1.5),  and a row y moves by at most
    s sum_j |K_j| |y| <= sqrt(T s sum_j |K_j|^2) |y|.
    """
    if alpha == 0 or not net.residual:
        return math.inf
    return math.sqrt(2.0 * net.horizon * total_weight / (alpha * noise * MATRIX * net.dim**MATRIX_POWER))


def _field_weights(net: Flow) -> tuple[float, float, float]:
    """Return the common factor of the field's weights, that of matrices and that of vectors."""
    if net.residual:
        return net.horizon / net.n_layers, MATRIX * net.dim**MATRIX_POWER, VECTOR
    return 1.0, float(net.dim), 1.0
