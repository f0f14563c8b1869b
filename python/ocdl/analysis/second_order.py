"""Second derivatives: products with the Hessian, and the Hessian of the Hamiltonian of one layer."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.model.activations import ACTIVATIONS
from ocdl.model.controls import Controls
from ocdl.model.flow import Flow
from ocdl.model.objective import Objective
from ocdl.model.observations import Observations

__all__ = ["gauss_newton_product", "hamiltonian_hessian", "hessian_product"]


def hessian_product(
    net: Flow,
    u: Controls,
    X: ArrayLike,
    y: ArrayLike | Observations,
    objective: Objective | None = None,
    *,
    du: Controls,
    sample_weight: ArrayLike | None = None,
    inputs: ArrayLike | None = None,
) -> Controls:
    """Return the Hessian of J at u times the direction `du`.

    Exact: the derivative of the gradient along `du`, by one forward and one adjoint sweep in dual numbers. It takes
    about three times as long as `value_and_grad`. Where a penalty or an activation is nonsmooth, its second derivative
    counts as 0. Fixed time steps are no variables: ``du.h`` is ignored, and that part of the product is 0. Networks of
    float32 are computed in float64.

    Parameters
    ----------
    u : Controls
    X : array_like of shape (samples, features)
    y : array_like of shape (samples,) or (samples, outputs), or Observations
        The targets, as for `Network.value`.
    objective : Objective, optional
        Default: ``Objective()``.
    du : Controls
        The direction.
    sample_weight : array_like of shape (samples,), optional
    inputs : array_like of shape (samples, layers [+ 1], inputs), optional
        As for `Network.forward`.

    Returns
    -------
    Controls

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit the network, or the loss is a custom one, without second derivatives.
    FloatingPointError
        If the flow leaves the finite range; the message names the sample and the layer.

    Examples
    --------
    The Hessian is symmetric:

    >>> import numpy as np, ocdl
    >>> net = ocdl.Network(2, 10, tableau="kutta4", time_steps="free")
    >>> u, v, w = (net.init(random_state=seed) for seed in range(3))
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0]]), [0, 1]
    >>> Hv, Hw = (net.hessian_product(u, X, y, du=du) for du in (v, w))
    >>> bool(np.isclose(w.dot(Hv), v.dot(Hw), rtol=1e-12))
    True
    """
    return net._curvature_product(u, X, y, objective, du, sample_weight, "hessian", inputs)


def gauss_newton_product(
    net: Flow,
    u: Controls,
    X: ArrayLike,
    y: ArrayLike | Observations,
    objective: Objective | None = None,
    *,
    du: Controls,
    sample_weight: ArrayLike | None = None,
    inputs: ArrayLike | None = None,
) -> Controls:
    """Return the Gauss-Newton matrix of J at u times the direction `du`.

    With the outputs z and their derivative Z with respect to the controls it is the sum of ``Z^T D Z`` over the
    samples, weighted and reduced as the losses are, plus the Hessian of the penalties: positive semidefinite.
    For the cross entropy, D is its second derivative with respect to z. The squared loss is not convex in z: its D
    is diagonal with the entries C'(z)^2, the square of the residual's derivative. Where the outputs depend linearly
    on the controls, the matrix of the cross entropy is its Hessian. Cost and conventions are those of
    `hessian_product`.

    Parameters
    ----------
    u : Controls
    X : array_like of shape (samples, features)
    y : array_like of shape (samples,) or (samples, outputs), or Observations
        The targets, as for `Network.value`.
    objective : Objective, optional
        Default: ``Objective()``.
    du : Controls
        The direction.
    sample_weight : array_like of shape (samples,), optional
    inputs : array_like of shape (samples, layers [+ 1], inputs), optional
        As for `Network.forward`.

    Returns
    -------
    Controls

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit the network, or the loss is a custom one, without second derivatives.
    FloatingPointError
        If the flow leaves the finite range; the message names the sample and the layer.

    Examples
    --------
    It has no negative eigenvalue:

    >>> import numpy as np, ocdl
    >>> net = ocdl.Network(2, 10)
    >>> u, v = net.init(random_state=0), net.init(random_state=1)
    >>> X, y, objective = np.array([[0.0, 1.0], [1.0, 0.0]]), [0, 1], ocdl.Objective("cross_entropy")
    >>> v.dot(net.gauss_newton_product(u, X, y, objective, du=v)) >= 0
    True
    """
    return net._curvature_product(u, X, y, objective, du, sample_weight, "gauss_newton", inputs)


def hamiltonian_hessian(
    net: Flow,
    u: Controls,
    X: ArrayLike,
    y: ArrayLike | Observations,
    objective: Objective | None = None,
    *,
    layer: int = 0,
    sample_weight: ArrayLike | None = None,
) -> FloatArray:
    """Return the Hessian H_uu of a layer's Hamiltonian with respect to its controls (K, b).

    The Hamiltonian of layer j is ::

        H(K, b) = sum over samples and stages i of <g_i, f(y_i, (K, b))>

    with the stage states y_i of `forward` and the g_i of `adjoint` held fixed. For Euler's method it is
    <p[j+1], f(y[j], (K, b))>, and always ``dJ/d(K, b) = h[j] dH/d(K, b)``, up to the penalties, summed over
    the layers that share (K, b). It is not the
    block of the Hessian of J that belongs to the layer: states and costates do not follow the controls. Computed
    in float64, for the field "dense" and explicit methods.

    Parameters
    ----------
    u : Controls
    X : array_like of shape (samples, features)
    y : array_like of shape (samples,) or (samples, outputs), or Observations
        The targets, as for `Network.value`.
    objective : Objective, optional
        Default: ``Objective()``.
    layer : int
        From 0 to n_layers - 1.
    sample_weight : array_like of shape (samples,), optional

    Returns
    -------
    ndarray of shape (d^2 + d, d^2 + d), or (stages, d^2 + d, d^2 + d) with stage controls
        Entries are ordered as K[j], row by row, and b[j].

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit the network, which has the field "dense" and an explicit tableau.
    FloatingPointError
        If the flow leaves the finite range; the message names the sample and the layer.

    Examples
    --------
    >>> import numpy as np, ocdl
    >>> net = ocdl.Network(2, 10)
    >>> u, X = net.init(random_state=0), np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> net.hamiltonian_hessian(u, X, [0, 1], layer=9).shape
    (6, 6)
    """
    if net.field != "dense" or not net.tableau.is_explicit:
        raise ValueError(
            "hamiltonian_hessian takes networks with field='dense' and an explicit tableau, "
            f"got field={net.field!r} and tableau={net.tableau.name or net.tableau!r}"
        )
    if validation.integer(layer, "layer", minimum=0) >= net.n_layers:
        raise ValueError(f"layer must be at most {net.n_layers - 1}, got {layer}")
    p = net.adjoint(u, X, y, objective, sample_weight=sample_weight)[layer + 1]
    state = net.forward(u, X).states[layer]
    h = float(u.h[layer]) if net.residual else 1.0
    interval = net.layer_sets[layer]
    K, b = (part[interval] if net.stage_controls else [part[interval]] * net.stages for part in (u.K, u.b))
    K, b, state, p = (np.asarray(part, np.float64) for part in (K, b, state, p))
    hessians = _stage_hessians(net, h, K, b, state, p)
    return hessians if net.stage_controls else hessians.sum(axis=0)


def _stage_hessians(
    net: Flow, h: float, K: FloatArray, b: FloatArray, state: FloatArray, costate: FloatArray
) -> FloatArray:
    """Return the Hessian for each stage, (stages, d^2 + d, d^2 + d), from y[j] and p[j+1].

    K and b, (stages, d, d) and (stages, d), are those of the layer's stages.
    """
    activation = ACTIVATIONS[net.activation]
    A, weights = (net.tableau.A, net.tableau.b) if net.residual else (np.zeros((1, 1)), np.ones(1))
    d, stages = net.dim, range(net.stages)
    states: list[FloatArray] = []
    values: list[FloatArray] = []
    slopes: list[FloatArray] = []
    bends: list[FloatArray] = []
    for i in stages:
        states.append(state + h * sum((A[i, m] * values[m] for m in range(i)), np.zeros_like(state)))
        value, slope, bend = activation.derivatives(states[i] @ K[i].T + b[i])
        values.append(value)
        slopes.append(slope)
        bends.append(bend)
    cotangents = [weights[i] * costate for i in stages]
    for i in reversed(stages):
        eta = h * (slopes[i] * cotangents[i]) @ K[i]
        for m in range(i):
            cotangents[m] = cotangents[m] + A[i, m] * eta
    hessians = np.zeros((net.stages, d * d + d, d * d + d))
    for i in stages:
        extended = np.column_stack([states[i], np.ones(len(state))])
        blocks = np.einsum("nr,na,nb->rab", cotangents[i] * bends[i], extended, extended)
        for row in range(d):  # the controls that component `row` of f depends on: row `row` of K, and b[row]
            indices = np.append(np.arange(row * d, (row + 1) * d), d * d + row)
            hessians[i][np.ix_(indices, indices)] = blocks[row]
    return hessians
