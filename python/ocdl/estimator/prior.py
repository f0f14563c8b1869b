"""The prior of the estimators: what the controls are like before any data, so that noise is not learned.

With m the sum of the sample weights, d the dimension of the state and s = T / N, the mean of the losses is joined by ::

    alpha / (2 m) [ 3 |W|^2 + s sum_j (1.2 d^1.5 |K_j|^2 + 2 |b_j|^2) + 200 sum_j ((h_j - s) / s)^2 ]

where the last term is there for free steps only. It is the negative logarithm of normal densities. A flow with K = 0
is logistic or linear regression; the factor that grows with d makes the flow fall back there on wide and noisy tables,
while two columns stay free. Without the last term steps would grow and evade what holds K.
"""

from __future__ import annotations

from ocdl.model.flow import Flow
from ocdl.model.penalties import EvenSteps, Regulariser, Tikhonov

MATRIX, MATRIX_POWER = 1.2, 1.5
VECTOR = 2.0
READOUT = 3.0
STEPS = 200.0
WEAK = 0.1  # of the field's part, at first: symmetric data would be caught at K = 0
WEAK_ITERATIONS, WEAK_SHARE = 30, 0.2  # at most, and of all iterations


def prior(net: Flow, total_weight: float, alpha: float, *, noise: float = 1.0, weak: bool = False) -> Regulariser:
    """Return the prior for samples of this total weight; `noise` is the variance of what no model could predict.

    Weak, it holds the field a tenth as much.
    """
    unit = alpha * noise / total_weight
    step = net.horizon / net.n_layers if net.residual else 1.0 / net.n_layers
    field = unit * step * (WEAK if weak else 1.0)
    terms = Regulariser()
    for part in net.parts:
        dimensions = part.axes.count("dim")
        if part.role == "field":
            weight = field * (MATRIX * net.dim**MATRIX_POWER if dimensions == 2 else VECTOR)
            terms = terms + Tikhonov(weight, parts=(part.name,))
        elif part.role == "readout" and dimensions:
            terms = terms + Tikhonov(unit * READOUT, parts=(part.name,))
        elif part.role == "steps" and net.time_steps == "free":
            terms = terms + EvenSteps(unit * STEPS)
    return terms
