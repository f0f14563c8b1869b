"""The diagnosis of a training that has ended: whether it failed, independently of the optimiser."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ocdl.base.validation import FloatArray
from ocdl.model.objective import predict_class
from ocdl.training.history import History
from ocdl.training.problem import Problem
from ocdl.training.result import Status
from ocdl.training.session import Session

FINAL = (Status.INTERRUPTED, Status.NOT_FINITE, Status.STAGES, Status.EARLY_STOPPING)  # no criterion changes these
ROUNDOFF = 1e-6  # of the loss: a rise by less is no failure
VANISHED = 1e-6  # norm of a gradient by the outputs
SETTLED = 0.05  # of the whole fall of the loss: less in the last iterations is no reason to go on
STEEP = 0.01  # norm of the gradient: less is nearly a minimum
ROSE_AGAIN = 1.25  # times the lowest loss
MIN_ITERATIONS = 10  # of which a mean is taken
PROBED_ROWS = 1000

LARGER_STEPS = "increase max_iter{rate}, scale the inputs, or choose another optimiser"
SMALLER_STEPS = "choose a smaller learning rate or another optimiser, and scale the inputs"
ADVICE = {
    Status.NOT_FINITE: "scale the inputs, or choose smaller steps of the optimiser",
    Status.STAGES: "choose more layers, a larger alpha, or an explicit tableau",
    Status.DIVERGED: SMALLER_STEPS,
    Status.SATURATED: "scale the inputs, choose a smaller learning rate, or the loss 'cross_entropy', which does not "
    "flatten where it is wrong",
}


class Diagnosis(NamedTuple):
    """The status of a training; where it failed or is unfinished, also what to change, and the reason if any."""

    status: Status
    advice: str = ""
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Evidence:
    """The data on which a training is judged.

    `first_loss`, `last_loss` and `constant_loss` are of one objective on all rows: at the start, at the end, and for
    outputs that are 0 for every sample; NaN where unknown. With `on_batches` the losses of the history are those of
    batches, of which neighbours differ by chance.
    """

    status: Status
    history: History
    first_loss: float
    last_loss: float
    is_saturated: Callable[[], bool]
    constant_loss: float = math.nan
    on_batches: bool = False
    has_learning_rate: bool = True


def diagnose(evidence: Evidence) -> Diagnosis:
    """Return whether a training failed or is unfinished.

    - The status of an interrupt, a loss that is not finite, unsolved stages and early stopping does not change.
    - SATURATED: the outputs are wrong where the loss has no gradient any more.
    - DIVERGED: the last loss is above the first one by more than roundoff.
    - At the iteration limit a training is unfinished if outputs that are 0 for every sample have a lower loss;
    - or if the loss is above 1.25 times the lowest one of the history;
    - or if it is still falling: in the last tenth of the iterations (at least 10) by more than 5 % of the whole fall,
      while the norm of the gradient is above 0.01. With batches the means over so many iterations are compared, and
      less than twice their standard error does not count.
    """
    status = evidence.status
    if status not in FINAL:
        if evidence.is_saturated():
            status = Status.SATURATED
        elif _is_above(evidence.last_loss, evidence.first_loss):
            status = Status.DIVERGED
    if status in ADVICE:
        return Diagnosis(status, ADVICE[status])
    if status is not Status.ITERATION_LIMIT:
        return Diagnosis(status)
    larger_steps = LARGER_STEPS.format(rate=" or the learning rate" if evidence.has_learning_rate else "")
    if evidence.last_loss > evidence.constant_loss:
        return Diagnosis(status, larger_steps, "outputs that are 0 for every sample would predict better")
    loss = evidence.history.loss
    lowest = float(loss.min())
    if not evidence.on_batches and loss[-1] > ROSE_AGAIN * lowest > 0:
        return Diagnosis(status, SMALLER_STEPS, f"after {loss.argmin()} of them the loss was {lowest:.4g}")
    if fall := _recent_fall(evidence):
        return Diagnosis(status, larger_steps, fall)
    return Diagnosis(status)


@np.errstate(over="ignore", invalid="ignore")  # the square of a large loss is not finite
def _recent_fall(evidence: Evidence) -> str:
    """Return a sentence on the fall of the loss in the last iterations; empty if the loss has settled."""
    loss, count, on_batches = evidence.history.loss, len(evidence.history) - 1, evidence.on_batches
    last = min(count // 2 if on_batches else count, max(MIN_ITERATIONS, count // 10))
    if last == 0:
        return ""
    spans = (loss[:last], loss[-2 * last : -last], loss[-last:]) if on_batches else (loss[0], loss[-1 - last], loss[-1])
    first, before, now = (float(np.mean(span)) for span in spans)
    chance = 2.0 * math.sqrt(sum(float(np.var(span)) for span in spans[1:]) / last)
    is_falling = evidence.history.gradient_norm[-1] > STEEP and before - now > SETTLED * (first - now)
    if before - now <= chance or not is_falling:
        return ""
    return f"in the last {last} of them the loss fell from {before:.6g} to {now:.6g}"


def collect_evidence(session: Session, history: History, status: Status) -> Evidence:
    """Return the evidence of a session; with batches the last loss on all rows is unknown."""
    optimiser = session.optimisers[session.stage.number][0]
    on_batches = getattr(optimiser, "batch_size", None) is not None
    first, last = float(history.loss[0]), math.nan if on_batches else float(history.loss[-1])
    return Evidence(status, history, first, last, lambda: _is_saturated(session, history), on_batches=on_batches)


def _is_saturated(session: Session, history: History) -> bool:
    """Whether the loss of labels has no gradient at half of the rows that are predicted wrongly.

    The losses of numbers have a gradient wherever they are not small, and of a custom loss no prediction is known to be
    wrong. It is computed only where the loss has risen to where the gradient vanishes, or where no more is correct
    than if the largest class alone were predicted.
    """
    problem = session.problem
    if problem.objective._loss.targets != "classes":
        return False
    rose = _is_above(float(history.loss[-1]), float(history.loss[0]))
    is_flat = history.gradient_norm[-1] <= problem.tol
    if not (rose and is_flat) and not _predicts_one_class(problem, history):
        return False
    norms = problem.ranks.allgather(_gradient_norms_where_wrong(session))
    known = [values for values in norms if values is not None]
    joined = np.concatenate(known) if len(known) == len(norms) else np.zeros(0)
    return len(joined) > 0 and bool(np.median(joined) < VANISHED)


def _is_above(last: float, first: float) -> bool:
    return last > first + ROUNDOFF * abs(first)


def _predicts_one_class(problem: Problem, history: History) -> bool:
    """Whether as much is correct as if the largest class alone were predicted, and the loss is above half of its first.

    Collective where rows are on several ranks.
    """
    if not len(history.score) or math.isnan(history.score[-1]) or history.loss[-1] < 0.5 * history.loss[0]:
        return False
    classes = max(problem.net.n_outputs, 2)
    y, weights = problem.data.labels()
    totals = np.sum(problem.ranks.allgather(np.bincount(y, weights, classes)), axis=0)
    return not _is_above(float(history.score[-1]), float(totals.max() / totals.sum()))


def _gradient_norms_where_wrong(session: Session) -> FloatArray | None:
    """Return the norms of the loss's gradients by the outputs, at rows that count and are predicted wrongly.

    None where outputs are not finite.
    """
    problem = session.problem
    X, y, weights = problem.data.spaced_rows(PROBED_ROWS)
    if not len(X):
        return np.zeros(0)
    try:
        outputs = problem.net._predict_rows(session.controls, X)
        gradients = replace(problem.objective, reduction="sum").output_grad(outputs, y)
    except FloatingPointError:
        return None
    is_wrong = predict_class(outputs) != y
    if weights is not None:
        is_wrong &= weights > 0
    norms: FloatArray = np.linalg.norm(gradients[is_wrong], axis=1)
    return norms
