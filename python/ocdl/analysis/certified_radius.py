"""How far a sample can move without changing its class: a guarantee."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ocdl.analysis.lipschitz import lipschitz_bound
from ocdl.base.validation import FloatArray
from ocdl.model.controls import Controls
from ocdl.model.flow import Flow

__all__ = ["certified_radius"]


def certified_radius(net: Flow, u: Controls, X: ArrayLike, *, inputs: ArrayLike | None = None) -> FloatArray:
    """Return for each sample a radius within which the predicted class is the same.

    With the Lipschitz bound B of the flow, `lipschitz_bound`, a sample with the outputs z and the class c keeps it
    within ``min over o of (z[c] - z[o]) / (B |W[c] - W[o]|_2)``; of two classes, with one output, within
    ``|z| / (B |W|_2)``. B is at most 1 for networks with ``nonexpansive=True``. Compare `minimal_perturbation`, an
    upper bound of what the radius is a lower bound of.

    Parameters
    ----------
    u : Controls
    X : array_like of shape (samples, features)
    inputs : array_like, optional
        The inputs of the samples, which do not move.

    Returns
    -------
    ndarray of shape (samples,)
        Infinite where no perturbation changes the class; 0 where there is no Lipschitz bound.

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit the network, or its field has no Lipschitz constant, as "polynomial".

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(2, 4, field="gradient", nonexpansive=True)
    >>> u = net.controls(W=[[3.0, 4.0]])
    >>> net.certified_radius(u, [[1.0, 0.5], [-2.0, 0.0]]).tolist()
    [1.0, 1.2]
    """
    z = net.predict(u, X, inputs=inputs).astype(np.float64)
    bound = lipschitz_bound(net, u)
    W = u.W.astype(np.float64)
    if net.n_outputs == 1:
        margins, reach = np.abs(z), np.linalg.norm(W, axis=1)[None, :]
    else:
        predicted = z.argmax(axis=1)
        margins = z[np.arange(len(z)), predicted][:, None] - z
        reach = np.linalg.norm(W[predicted][:, None, :] - W[None, :, :], axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        radii = margins / (bound * reach)
    radii[(margins > 0) & (reach == 0)] = np.inf
    if net.n_outputs > 1:
        radii[np.arange(len(z)), predicted] = np.inf
    result: FloatArray = np.nan_to_num(radii, nan=0.0, posinf=np.inf).min(axis=1)
    return result
