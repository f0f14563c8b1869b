"""How much each column matters to a fitted network."""

from __future__ import annotations

from typing import Any

import numpy as np

from ocdl.base.validation import FloatArray
from ocdl.estimator.plan import FitPlan
from ocdl.estimator.samples import Samples
from ocdl.model.controls import Controls
from ocdl.model.objective import Objective
from ocdl.network import Network
from ocdl.training.result import Result, Status

MIN_ROWS, MAX_ROWS = 30, 1000
EVALUATIONS = 10  # of all rows, which take as long, unless the rows are few


def importances(plan: FitPlan, result: Result) -> FloatArray:
    """Return by how much the loss rises without each column, relative to their sum; 0 if the training failed."""
    rows = len(plan.probe.X)
    columns = plan.probe.X.shape[1] if plan.components is None else plan.components.shape[1]
    if result.status is Status.NOT_FINITE:
        return np.zeros(columns)
    some = plan.probe.select(np.arange(min(rows, MAX_ROWS, max(EVALUATIONS * rows // columns, MIN_ROWS))))
    rises = rises_without_columns(plan.network, result.controls, some, plan.loss, plan.components)
    positive = np.maximum(rises, 0.0)
    shares: FloatArray = positive / (positive.sum() or 1.0)
    return shares


def rises_without_columns(
    network: Network, u: Controls, samples: Samples, loss: Any, components: FloatArray | None
) -> FloatArray:
    """Return by how much the mean loss rises if a column is permuted, for each column.

    The samples lie in the subspace. A hash has sorted them, so moving a column down by a row is a random permutation.
    """
    X, y, weights, _ = samples
    objective = Objective(loss)
    plain = network.value(u, X, y, objective, sample_weight=weights)
    directions = np.eye(X.shape[1]) if components is None else components.T
    rises = np.zeros(len(directions))
    for j, direction in enumerate(directions):
        if direction.any():
            column = X @ direction
            moved = X + np.outer(np.roll(column, 1) - column, direction)
            rises[j] = network.value(u, moved, y, objective, sample_weight=weights) - plain
    return rises
