"""More layers where the errors of layers are large."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ocdl.analysis.local_error import embedded_method, local_errors
from ocdl.base import validation
from ocdl.depth.refinement import split_layers
from ocdl.model.controls import Controls
from ocdl.model.flow import SomeFlow

__all__ = ["adapt"]

MAX_ROUNDS = 20


def adapt(
    net: SomeFlow, u: Controls, X: ArrayLike, tol: float, *, max_layers: int = 10_000
) -> tuple[SomeFlow, Controls]:
    """Return a network whose layers are split until the errors of all are at most `tol`, and its controls.

    The errors are those of `local_errors`, the largest over the samples. A layer is split into as many equally long
    ones as the order of the less accurate method suggests, and they share its K and b: the ODE stays, and the flow
    comes closer to its solution.

    Parameters
    ----------
    u : Controls
    X : array_like of shape (samples, features)
    tol : float
        Positive.
    max_layers : int
        The most layers that the new network may have.

    Returns
    -------
    net : Network
    u : Controls

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit the network, its tableau has no second weights, it has inputs, or more than
        `max_layers` would be needed.

    Examples
    --------
    >>> import numpy as np, ocdl
    >>> net = ocdl.Network(1, 2, tableau="improved_euler", activation="identity", horizon=2.0)
    >>> u = net.controls(K=[[[1.0]], [[0.0]]])  # y' = y, then y' = 0
    >>> fine, v = net.adapt(u, [[1.0]], 1e-3)
    >>> bool(fine.local_errors(v, [[1.0]]).max() <= 1e-3), bool(np.sum(v.h == 1.0) == 1)
    (True, True)
    """
    tol = validation.positive(tol, "tol")
    max_layers = validation.integer(max_layers, "max_layers", minimum=net.n_layers)
    if net.n_inputs:
        raise ValueError("adapt takes networks without inputs, whose values at the new layers are not known")
    if net.time_steps == "simplex" and bool((u.h == 0).any()):
        raise ValueError("adapt takes networks without steps of 0: prune removes them")
    order = embedded_method(net).order
    for _ in range(MAX_ROUNDS):
        errors = local_errors(net, u, X).max(axis=1, initial=0.0)
        if errors.max() <= tol:
            return net, u
        with np.errstate(divide="ignore", over="ignore"):
            counts = np.where(errors > tol, np.ceil(1.1 * (errors / tol) ** (1 / (order + 1))), 1.0)
        counts = np.maximum(counts, 1 + (errors > tol))
        if not counts.sum() <= max_layers:
            raise ValueError(
                f"tol={tol} needs about {counts.sum():.0f} layers, more than max_layers={max_layers}: raise either"
            )
        net, u = split_layers(net, u, counts.astype(np.int64))
    raise ValueError(f"tol={tol} is not reached after {MAX_ROUNDS} rounds: the largest error is {errors.max():.3g}")
