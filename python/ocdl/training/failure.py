"""Whether a training that has ended has failed, whatever the optimiser says."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ocdl.base.validation import FloatArray
from ocdl.model.losses import Loss
from ocdl.streaming.streamed import Streamed
from ocdl.training.history import History
from ocdl.training.result import Result, Status
from ocdl.training.session import Problem, Session

SAID_ALREADY = (Status.INTERRUPTED, Status.NOT_FINITE, Status.VALIDATION)
ROUNDOFF = 1e-6  # of the loss: rises that are no failure
NO_SLOPE = 1e-6
HARDLY_FALLEN = 0.5  # of the first loss
ROWS_LOOKED_AT = 1000
RUN = 50  # of these, one behind the other, where rows are read


def judged(session: Session, history: History, status: Status) -> Status:
    """Return the status, or what is wrong: a loss above the first one, or outputs that no longer depend on anything."""
    if status in SAID_ALREADY:
        return status
    optimiser = session.optimisers[session.stage.number][0]
    on_batches = getattr(optimiser, "batch_size", None) is not None
    rose = _is_above(float(history.loss[-1]), float(history.loss[0])) and not on_batches
    flat = history.gradient_norm[-1] <= session.problem.tol
    if _is_saturated(session, history) or (rose and flat):
        return Status.SATURATED
    return Status.ROSE if rose else status


def judged_from(result: Result, before: float, after: float, tol: float) -> Result:
    """Return the result of a training in several phases, or what is wrong: from `before` to `after` its loss has risen.

    A phase that starts where another one has failed sees nothing of that.
    """
    if result.status in (*SAID_ALREADY, Status.ROSE, Status.SATURATED) or not _is_above(after, before):
        return result
    status = Status.SATURATED if result.history.gradient_norm[-1] <= tol else Status.ROSE
    return result._ended_as(status)


def _is_above(last: float, first: float) -> bool:
    return last > first + ROUNDOFF * abs(first)


def _is_saturated(session: Session, history: History) -> bool:
    """Whether the median slope is nothing while the largest class alone is predicted and the loss has hardly fallen."""
    problem = session.problem
    record = problem.objective.record
    if not isinstance(record, Loss) or record.targets != "classes" or not len(history.score):
        return False
    if history.loss[-1] < HARDLY_FALLEN * history.loss[0] or math.isnan(history.score[-1]):
        return False
    classes = max(problem.net.n_outputs, 2)
    y, weights = problem.y, problem.sample_weight
    if isinstance(problem.X, Streamed):
        _, y, weights = _looked_at(problem)
    totals = np.sum(problem.ranks.said(np.bincount(y, weights, classes)), axis=0)
    if _is_above(float(history.score[-1]), float(totals.max() / totals.sum())):
        return False
    said = problem.ranks.said(_steepness(session))
    slopes = [some for some in said if some is not None]
    return len(slopes) == len(said) and bool(np.median(np.concatenate(slopes)) < NO_SLOPE)


def _looked_at(problem: Problem) -> tuple[FloatArray, Any, FloatArray | None]:
    """Return rows of this rank that stand for its own, evenly spaced; of a source the same ones on every rank."""
    if isinstance(problem.X, Streamed):
        return problem.X.some_rows(ROWS_LOOKED_AT // RUN, RUN)
    share = problem.share
    first, all_rows = (0, len(problem.X)) if share is None else (share.first_row, share.all_rows)
    step = max(1, all_rows // ROWS_LOOKED_AT)
    rows = slice(-first % step, None, step)
    return np.ascontiguousarray(problem.X[rows]), np.ascontiguousarray(problem.y[rows]), None


def _steepness(session: Session) -> FloatArray | None:
    """Return the norms of the slopes at some rows; None where they are not finite."""
    problem = session.problem
    X, y, _ = _looked_at(problem)
    if not len(X):
        return np.zeros(0)
    try:
        outputs = problem.net.predict(session.controls, X)
        slopes = replace(problem.objective, reduction="sum").slopes(outputs, y)
    except FloatingPointError:
        return None
    norms: FloatArray = np.linalg.norm(slopes, axis=1)
    return norms
