"""Whether a training that has ended has failed, whatever the optimiser says."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ocdl.base.validation import FloatArray
from ocdl.model.losses import Loss
from ocdl.model.objective import decided
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
    """Return the status, or what is wrong: a loss above the first one, or outputs that are saturated at wrong values.

    Outputs are saturated where the loss of labels has no gradient although the prediction is wrong; where it is right
    a vanishing gradient is no failure. The losses of real targets have a gradient wherever they are not small, and of
    a custom loss no prediction is known to be wrong.
    """
    if status in SAID_ALREADY:
        return status
    optimiser = session.optimisers[session.stage.number][0]
    on_batches = getattr(optimiser, "batch_size", None) is not None
    rose = _is_above(float(history.loss[-1]), float(history.loss[0])) and not on_batches
    is_flat = history.gradient_norm[-1] <= session.problem.tol
    if _is_of_labels(session.problem) and ((rose and is_flat) or _predicts_one_class(session.problem, history)):
        norms = session.problem.ranks.allgather(_gradient_norms_where_wrong(session))
        if _are_nearly_zero(norms):
            return Status.SATURATED
    return Status.ROSE if rose else status


def judged_from(result: Result, before: float, after: float) -> Result:
    """Return the result of a training in several phases, or what is wrong: from `before` to `after` its loss has risen.

    A phase that starts where another one has failed sees nothing of that.
    """
    if result.status in (*SAID_ALREADY, Status.ROSE, Status.SATURATED) or not _is_above(after, before):
        return result
    return result._ended_as(Status.ROSE)


def _is_above(last: float, first: float) -> bool:
    return last > first + ROUNDOFF * abs(first)


def _are_nearly_zero(norms: list[FloatArray | None]) -> bool:
    """Whether there are norms, of all ranks, and half of them are nearly 0."""
    known = [some for some in norms if some is not None]
    joined = np.concatenate(known) if len(known) == len(norms) else np.zeros(0)
    return len(joined) > 0 and bool(np.median(joined) < NO_SLOPE)


def _is_of_labels(problem: Problem) -> bool:
    record = problem.objective.record
    return isinstance(record, Loss) and record.targets == "classes"


def _predicts_one_class(problem: Problem, history: History) -> bool:
    """Whether as much is right as if the largest class alone were predicted, and the loss has hardly fallen."""
    if not len(history.score) or math.isnan(history.score[-1]):
        return False
    if history.loss[-1] < HARDLY_FALLEN * history.loss[0]:
        return False
    classes = max(problem.net.n_outputs, 2)
    y, weights = problem.y, problem.sample_weight
    if isinstance(problem.X, Streamed):
        _, y, weights = _looked_at(problem)
    totals = np.sum(problem.ranks.allgather(np.bincount(y, weights, classes)), axis=0)
    return not _is_above(float(history.score[-1]), float(totals.max() / totals.sum()))


def _looked_at(problem: Problem) -> tuple[FloatArray, Any, FloatArray | None]:
    """Return rows of this rank that stand for its own, evenly spaced; of a source the same ones on every rank."""
    if isinstance(problem.X, Streamed):
        return problem.X.some_rows(ROWS_LOOKED_AT // RUN, RUN)
    distribution = problem.row_distribution
    first, all_rows = (0, len(problem.X)) if distribution is None else (distribution.first_row, distribution.all_rows)
    step = max(1, all_rows // ROWS_LOOKED_AT)
    rows = slice(-first % step, None, step)
    weights = None if problem.sample_weight is None else problem.sample_weight[rows]
    return np.ascontiguousarray(problem.X[rows]), np.ascontiguousarray(problem.y[rows]), weights


def _gradient_norms_where_wrong(session: Session) -> FloatArray | None:
    """Return the norms of the loss's gradients by the outputs, at rows that count and are predicted wrongly.

    None where outputs are not finite.
    """
    problem = session.problem
    X, y, weights = _looked_at(problem)
    if not len(X):
        return np.zeros(0)
    try:
        outputs = problem.net.predict(session.controls, X)
        gradients = replace(problem.objective, reduction="sum").slopes(outputs, y)
    except FloatingPointError:
        return None
    is_wrong = decided(outputs) != y
    if weights is not None:
        is_wrong &= weights > 0
    norms: FloatArray = np.linalg.norm(gradients[is_wrong], axis=1)
    return norms
