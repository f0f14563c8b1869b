"""Warnings of the estimators: a training that failed or is not finished, and inputs that units cannot tell apart."""

from __future__ import annotations

import math
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ocdl.base.validation import FloatArray
from ocdl.model.activations import ACTIVATIONS
from ocdl.model.controls import Controls
from ocdl.network import Network
from ocdl.training.result import Result, Status

STILL_FALLING = 0.9  # of the loss a tenth of the iterations ago: there is more to come
FEWEST_LOOKED_AT = 10  # iterations: one alone says little
NEXT_TO_NOTHING = 0.01  # of the first loss: what comes is not worth a warning
ROWS_LOOKED_AT = 500  # for saturated units
ADVICE = {
    Status.NOT_FINITE: "scale the inputs, or choose smaller steps of the optimiser",
    Status.ROSE: "choose a smaller learning rate or another optimiser, and scale the inputs",
    Status.SATURATED: "scale the inputs, choose a smaller learning rate, or the loss 'cross_entropy', which does not "
    "flatten where it is wrong",
}


def warn_unless_converged(result: Result, tol: float, *, worse_than_constant: bool) -> None:
    """Warn where a training failed, or had to end before it was worth something.

    That is one that was still lowering the loss by an amount that matters, or is worse than a constant.
    """
    loss = result.history.loss
    last = min(len(loss) - 1, max(FEWEST_LOOKED_AT, len(loss) // 10))
    before = loss[-1 - last]
    if result.status in ADVICE:
        reason, advice = "", ADVICE[result.status]
    elif result.status is Status.ITERATION_LIMIT and NEXT_TO_NOTHING * loss[0] < loss[-1] < STILL_FALLING * before:
        reason = f"in the last {last} of them the loss fell from {before:.4g}, and "
        advice = "increase max_iter or tol, scale the inputs, or choose another optimiser"
    elif worse_than_constant:
        reason = "outputs that are 0 for every sample would predict better; "
        advice = "increase max_iter, choose another learning rate or optimiser, or scale the inputs"
    else:
        return
    warnings.warn(
        f"the training has not converged: {result.message}; {reason}tol={tol:g}; {advice}",
        ConvergenceWarning,
        stacklevel=5,
    )


def warn_of_saturation(network: Network, start: Controls, rows: FloatArray) -> None:
    """Warn where units are flat at the first layer: little can then be learned from differences of the inputs."""
    flat_beyond = ACTIVATIONS[network.activation].flat_beyond
    if math.isinf(flat_beyond):
        return
    sample = rows[:: max(1, len(rows) // ROWS_LOOKED_AT)]
    state = np.zeros((len(sample), network.dim))
    state[:, : network.n_features] = sample
    parts = network._swept_parts(start)
    K, b = (parts[name][0].reshape(-1, *parts[name].shape[-n:])[0] for name, n in (("K", 2), ("b", 1)))
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.abs(state @ K.T + b)
    if np.all(size > flat_beyond):
        column = int(np.abs(sample).max(axis=0).argmax())
        largest = f"{np.abs(sample[:, column]).max():.3g}"
        if np.ptp(sample[:, column]) == 0:  # a scaler may leave it so: the mean of large numbers is rounded
            found = f"X[:, {column}] has a size of {largest} in every row and tells nothing; leave it out"
        else:
            found = f"the inputs are as large as {largest}; scale them, for example with "
            found += "sklearn.preprocessing.StandardScaler in a pipeline"
        warnings.warn(f"every unit is saturated at the start: {found}", UserWarning, stacklevel=4)
