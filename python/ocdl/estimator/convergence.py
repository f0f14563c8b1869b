"""Warnings of the estimators: a training that failed or is not finished, and inputs that units cannot tell apart."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ocdl.base.validation import FloatArray
from ocdl.estimator import defaults
from ocdl.model.activations import ACTIVATIONS
from ocdl.model.controls import Controls
from ocdl.network import Network
from ocdl.training.history import History
from ocdl.training.result import Result, Status

STILL_FALLING = 0.9  # of the loss a tenth of the iterations ago: there is more to come
SETTLED = 0.05  # of all that the loss fell, in the last tenth of the iterations: more says that it has only begun
STEEP = 100.0  # times tol, of the gradient: less is nearly a minimum
RISEN = 1.25  # times the lowest loss: it was better before
FEWEST_LOOKED_AT = 10  # iterations: one alone says little
NEXT_TO_NOTHING = 0.01  # of the first loss: what comes is not worth a warning
ROWS_LOOKED_AT = 500  # for saturated units
MOST_FLAT = 0.85  # of the units: what the others say may not be enough
LITTLE = 0.8  # of the loss of a constant: above it little is predicted
ADVICE = {
    Status.NOT_FINITE: "scale the inputs, or choose smaller steps of the optimiser",
    Status.STAGES: "choose more layers, a larger alpha, or an explicit tableau",
    Status.ROSE: "choose a smaller learning rate or another optimiser, and scale the inputs",
    Status.SATURATED: "scale the inputs, choose a smaller learning rate, or the loss 'cross_entropy', which does not "
    "flatten where it is wrong",
}


class Unfinished(NamedTuple):
    """What a training that had made all its iterations was about to do, and what to change."""

    reason: str
    advice: str


def unfinished(history: History, tol: float, *, on_batches: bool) -> Unfinished | None:
    """Return how a training could have gone on, None where it had settled.

    The losses of batches differ by chance. So their means over a tenth of the iterations are compared, and what is no
    larger than twice the error of these means does not count.
    """
    loss, count = history.loss, len(history) - 1
    last = min(count // 2 if on_batches else count, max(FEWEST_LOOKED_AT, count // 10))
    if last == 0:
        return None
    parts = (loss[:last], loss[-2 * last : -last], loss[-last:]) if on_batches else (loss[0], loss[-1 - last], loss[-1])
    first, before, now = map(float, map(np.mean, parts))
    if not on_batches and now > RISEN * loss.min() > 0:
        reason = f"after {loss.argmin()} of them the loss was {loss.min():.4g}; "
        return Unfinished(reason, "choose a smaller learning rate or another optimiser, and scale the inputs")
    chance = 2.0 * math.sqrt(sum(map(np.var, parts[1:])) / last)
    goes_on = before - now > SETTLED * (first - now) and history.gradient_norm[-1] > STEEP * max(tol, defaults.TOL)
    if before - now > chance and now > NEXT_TO_NOTHING * first and (now < STILL_FALLING * before or goes_on):
        reason = f"in the last {last} of them the loss fell from {before:.6g} to {now:.6g}; "
        return Unfinished(
            reason, "increase max_iter or the learning rate, scale the inputs, or choose another optimiser"
        )
    return None


def warn_unless_converged(result: Result, tol: float, *, left: Unfinished | None, worse_than_constant: bool) -> None:
    """Warn where a training failed, or had to end before it was worth something.

    That is one that is worse than a constant, or one with something left to do.
    """
    if result.status in ADVICE:
        reason, advice = "", ADVICE[result.status]
    elif worse_than_constant:
        reason = "outputs that are 0 for every sample would predict better; "
        advice = "increase max_iter, choose another learning rate or optimiser, or scale the inputs"
    elif result.status is Status.ITERATION_LIMIT and left is not None:
        reason, advice = left
    else:
        return
    warnings.warn(
        f"the training has not converged: {result.message}; {reason}tol={tol:g}; {advice}",
        ConvergenceWarning,
        stacklevel=5,
    )


class Saturation(NamedTuple):
    """The share of the units that were flat at the first layer, over all rows, and what to do about it."""

    share: float
    advice: str

    @property
    def may_matter(self) -> bool:
        """Whether most units were flat, but not all, of which a warning was said at the start."""
        return MOST_FLAT < self.share < 1.0


def saturation(network: Network, start: Controls, rows: FloatArray) -> Saturation:
    """Return how many units are flat at the first layer, and warn where all are.

    Little can then be learned from differences of the inputs.
    """
    flat_beyond = ACTIVATIONS[network.activation].flat_beyond
    if math.isinf(flat_beyond):
        return Saturation(0.0, "")
    sample = rows[:: max(1, len(rows) // ROWS_LOOKED_AT)]
    state = np.zeros((len(sample), network.dim))
    state[:, : network.n_features] = sample
    parts = network._swept_parts(start)
    K, b = (parts[name][0].reshape(-1, *parts[name].shape[-n:])[0] for name, n in (("K", 2), ("b", 1)))
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.abs(state @ K.T + b)
    column = int(np.abs(sample).max(axis=0).argmax())
    largest = f"{np.abs(sample[:, column]).max():.3g}"
    if np.ptp(sample[:, column]) == 0:  # a scaler may leave it so: the mean of large numbers is rounded
        advice = f"X[:, {column}] has a size of {largest} in every row and tells nothing; leave it out"
    else:
        advice = f"the inputs are as large as {largest}; scale them, for example with "
        advice += "sklearn.preprocessing.StandardScaler in a pipeline"
    found = Saturation(float(np.mean(size > flat_beyond)), advice)
    if found.share == 1.0:
        warnings.warn(f"every unit is saturated at the start: {advice}", UserWarning, stacklevel=4)
    return found


def warn_of_scale(found: Saturation) -> None:
    """Warn where most units were flat and little has been learned."""
    message = f"little is predicted, and nearly every unit was saturated at the start: {found.advice}"
    warnings.warn(message, UserWarning, stacklevel=5)
