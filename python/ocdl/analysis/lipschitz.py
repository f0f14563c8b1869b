"""Bound the Lipschitz constant of the flow from the controls alone."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ocdl.base.validation import FloatArray
from ocdl.model.activations import ACTIVATIONS
from ocdl.model.controls import Controls
from ocdl.model.fields import FIELDS
from ocdl.model.flow import Flow
from ocdl.model.nonexpansive import FIELD
from ocdl.model.tableau import Tableau

__all__ = ["lipschitz_bound"]

ROUNDOFF = 1e-12  # of the singular values of matrices that were projected


def _norms(K: FloatArray) -> FloatArray:
    norms: FloatArray = np.linalg.norm(K, 2, axis=(-2, -1))
    return norms


def _mlp_bound(parts: dict[str, FloatArray], steepest: float) -> FloatArray:
    return _norms(parts["V"]) * steepest * _norms(parts["K"]) + _norms(parts["A"])


# A Lipschitz constant in y of each field that is swept, from its parts and the steepest slope of its activation. A
# polynomial has none.
FIELD_BOUNDS: dict[str, Callable[[dict[str, FloatArray], float], FloatArray]] = {
    "dense": lambda parts, steepest: _norms(parts["K"]) * steepest,
    "hamiltonian": lambda parts, steepest: _norms(parts["K"]) ** 2 * steepest,
    "gradient": lambda parts, steepest: _norms(parts["K"]) ** 2 * steepest,
    "mlp": _mlp_bound,
}


def _list_bounded_fields() -> list[str]:
    return [name for name, field in FIELDS.items() if field.swept_as in FIELD_BOUNDS]


def lipschitz_bound(net: Flow, u: Controls) -> float:
    """Return an upper bound of the Lipschitz constant of the flow x -> y[N], from the controls alone.

    With Lipschitz constants L_i of the field at the stages of a layer, ``L_i = |K[j, i]|_2 sup|sigma'|`` for the dense
    field and ``|V[j, i]|_2 |K[j, i]|_2 sup|sigma'| + |A[j, i]|_2`` for the field "mlp", differences of states grow at
    most by ::

        1 + |h[j]| sum_i |w[i]| L_i r_i,    r = (I - M)^-1 (1, ..., 1),    M[i, l] = |h[j]| |A[i, l]| L_l

    with the coefficients A and weights w of the tableau; the bound is the product over all layers. For an implicit
    method it is infinite where the spectral radius of M is not below 1. A feed-forward layer has the factor L, and a
    layer of the field "gradient" with an increasing activation has the factor 1 where ``0 <= h[j] L_i <= 2 r`` with the
    `Tableau.contractivity_radius` r. The
    outputs W y[N] + mu change at most by ``|W|_2`` times as much. Inputs stay as they are.

    Parameters
    ----------
    u : Controls

    Returns
    -------
    float
        Infinite where there is no bound.

    Raises
    ------
    TypeError, ValueError
        If the controls do not fit the network, or its field has no Lipschitz constant, as "polynomial".

    Examples
    --------
    >>> import numpy as np, ocdl
    >>> net = ocdl.Network(2, 10, activation="identity")
    >>> u = net.controls(K=[np.eye(2)] * 10)  # y' = y with ten Euler steps
    >>> bool(np.isclose(net.lipschitz_bound(u), 1.1**10))
    True
    """
    swept_as = FIELDS[net.field].swept_as
    if swept_as not in FIELD_BOUNDS:
        raise ValueError(
            f"lipschitz_bound: field={net.field!r} has no Lipschitz constant, {', '.join(_list_bounded_fields())} have"
        )
    parts = {name: part.astype(np.float64) for name, part in net._swept_parts(u).items()}
    if net.n_inputs:  # K and A have columns for the inputs behind those for the state
        parts = {name: part[..., : net.dim] if name in ("K", "A") else part for name, part in parts.items()}
    L = FIELD_BOUNDS[swept_as](parts, ACTIVATIONS[net.activation].steepest)
    L = L[net._sets_of(slice(None))]
    if not net.residual:
        return float(np.prod(L))
    is_contracted = np.zeros(net.n_layers, bool)
    if net.field == FIELD and ACTIVATIONS[net.activation].increases:
        steepest = L if L.ndim == 1 else L.max(axis=1)
        h = u.h.astype(np.float64)
        is_contracted = (h >= 0) & (h * steepest <= 2 * net.tableau.contractivity_radius * (1 + ROUNDOFF))
    stages = L if net.stage_controls else np.repeat(L[:, None], net.stages, axis=1)
    return math.prod(
        1.0 if is_contracted[j] else step_bound(net.tableau, float(h), stages[j]) for j, h in enumerate(np.abs(u.h))
    )


def step_bound(tableau: Tableau, h: float, L: FloatArray) -> float:
    """Return the largest factor by which a step of size `h` enlarges differences; L bounds each stage."""
    M = h * np.abs(tableau.A) * L
    if np.abs(np.linalg.eigvals(M)).max() >= 1:
        return math.inf
    reach = np.linalg.solve(np.eye(tableau.stages) - M, np.ones(tableau.stages))
    return float(1 + h * (np.abs(tableau.b) @ (L * reach)))
