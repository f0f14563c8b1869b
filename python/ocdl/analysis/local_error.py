"""Errors of single layers, estimated by an embedded pair of methods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ocdl.base.validation import FloatArray
from ocdl.model.controls import Controls
from ocdl.model.flow import Flow
from ocdl.model.tableau import Tableau

__all__ = ["local_errors"]


def local_errors(net: Flow, u: Controls, X: ArrayLike, *, inputs: ArrayLike | None = None) -> FloatArray:
    """Return for each layer and sample how far the two methods of an embedded pair are apart.

    With the second weights v of the tableau it is ``|h[j] sum_i (w[i] - v[i]) k_i|_2`` at the states of the network: an
    estimate of the error of the layer as a step of the ODE, of the less accurate of both methods. `adapt` adds layers
    where it is large.

    Parameters
    ----------
    u : Controls
    X : array_like of shape (samples, features)
    inputs : array_like, optional
        As for `forward`.

    Returns
    -------
    ndarray of shape (layers, samples)

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit the network, or its tableau has no second weights.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(1, 2, tableau="improved_euler", activation="identity", horizon=0.2)
    >>> u = net.controls(K=[[[1.0]], [[0.0]]])  # y' = y, then y' = 0
    >>> net.local_errors(u, [[2.0]]).round(6).tolist()  # h^2 / 2 * 2 in the first layer
    [[0.01], [0.0]]
    """
    second = embedded_method(net)
    states = net.forward(u, X, inputs=inputs).states
    x = None if inputs is None else np.asarray(inputs)
    layer_inputs = 1 + (net.input_hold == "linear")
    errors = np.empty((net.n_layers, states.shape[1]))
    layer = replace(
        net,
        n_features=net.dim,
        augment=0,
        n_layers=1,
        tableau=second,
        control_intervals=None,
        time_steps="fixed",
        nonexpansive=False,
    )
    for j in range(net.n_layers):
        parts = {part.name: getattr(u, part.name)[[net.layer_sets[j]]] for part in net.parts if part.role == "field"}
        of_layer = layer.controls(**parts, h=u.h[[j]])
        end = layer.final_state(of_layer, states[j], inputs=None if x is None else x[:, j : j + layer_inputs])
        errors[j] = np.linalg.norm(states[j + 1] - end, axis=1)
    return errors


def embedded_method(net: Flow) -> Tableau:
    """Return the method with the second weights, or raise a ValueError that says which methods have some."""
    tableau = net.tableau
    if tableau.b_embedded is None:
        raise ValueError(
            f"the tableau needs second weights, as 'improved_euler', 'dormand_prince' or Tableau(..., b_embedded=...), "
            f"got {tableau!r}"
        )
    return Tableau(tableau.A, tableau.b_embedded, tableau.c)
