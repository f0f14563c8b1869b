"""Whether a training that has ended has failed, whatever the optimiser says."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ocdl.model.losses import Loss
from ocdl.training.history import History
from ocdl.training.result import Status
from ocdl.training.session import Session

SAID_ALREADY = (Status.INTERRUPTED, Status.NOT_FINITE, Status.VALIDATION)
ROUNDOFF = 1e-6  # of the loss: rises that are no failure
NO_SLOPE = 1e-6
HARDLY_FALLEN = 0.5  # of the first loss
ROWS_LOOKED_AT = 1000


def judged(session: Session, history: History, status: Status) -> Status:
    """Return the status, or what is wrong: a loss above the first one, or outputs that no longer depend on anything."""
    if status in SAID_ALREADY:
        return status
    first, last = float(history.loss[0]), float(history.loss[-1])
    optimiser = session.optimisers[session.stage.number][0]
    on_batches = getattr(optimiser, "batch_size", None) is not None
    rose = last > first + ROUNDOFF * abs(first) and not on_batches
    flat = history.gradient_norm[-1] <= session.problem.tol
    if _is_saturated(session, history) or (rose and flat):
        return Status.SATURATED
    return Status.ROSE if rose else status


def _is_saturated(session: Session, history: History) -> bool:
    """Whether the median slope is nothing while the largest class alone is predicted and the loss has hardly fallen."""
    problem = session.problem
    record = problem.objective.record
    if not isinstance(record, Loss) or record.targets != "classes" or not len(history.score):
        return False
    weights = np.ones(len(problem.y)) if problem.sample_weight is None else problem.sample_weight
    largest = np.bincount(problem.y, weights).max() / weights.sum()
    if history.score[-1] > largest or math.isnan(history.score[-1]):
        return False
    if history.loss[-1] < HARDLY_FALLEN * history.loss[0]:
        return False
    rows = slice(None, None, max(1, len(problem.X) // ROWS_LOOKED_AT))
    X = np.ascontiguousarray(problem.X[rows])
    try:
        outputs = problem.net.predict(session.controls, X)
        slopes = replace(problem.objective, reduction="sum").slopes(outputs, np.ascontiguousarray(problem.y[rows]))
    except FloatingPointError:
        return False
    return bool(np.median(np.linalg.norm(slopes, axis=1)) < NO_SLOPE)
