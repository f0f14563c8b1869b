"""Plain transcriptions of the formulas of the mathematics page, one sample after the other where that is shortest.

Nothing here is shared with the package but the tableau's numbers. All functions accept complex controls and data, so
that the complex step, Im J(u + i eps w) / eps, differentiates them without cancellation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
from numpy.typing import NDArray

import ocdl

Array = NDArray[Any]
STEP = 1e-100  # of the complex step; nothing is subtracted, so that it may be tiny


class Activation(NamedTuple):
    value: Callable[[Any], Any]
    slope: Callable[[Any], Any]


def sigmoid(z: Array) -> Array:
    return 0.5 * (1 + np.tanh(0.5 * z))


def log1p(z: Array) -> Array:
    """NumPy's complex log1p loses the digits of small numbers; this is exact for the tiny imaginary part of a step."""
    real = np.log1p(z.real)
    return real + 1j * z.imag / (1 + z.real) if np.iscomplexobj(z) else real


def softplus(z: Array) -> Array:
    sign = np.where(z.real > 0, -1.0, 1.0)
    return np.where(z.real > 0, z, 0) + log1p(np.exp(sign * z))


ACTIVATIONS = {
    "tanh": Activation(np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "sigmoid": Activation(sigmoid, lambda z: sigmoid(z) * sigmoid(-z)),
    "softplus": Activation(softplus, sigmoid),
    "relu": Activation(lambda z: np.where(z.real > 0, z, 0), lambda z: np.where(z.real > 0, 1.0, 0.0)),
    "leaky_relu": Activation(lambda z: np.where(z.real > 0, z, 0.01 * z), lambda z: np.where(z.real > 0, 1.0, 0.01)),
    "sin": Activation(np.sin, np.cos),
    "identity": Activation(lambda z: z, lambda z: np.ones_like(z)),
}

MP_ACTIVATIONS = {  # the same in as many digits as one likes
    "tanh": Activation(mp.tanh, lambda z: 1 - mp.tanh(z) ** 2),
    "sigmoid": Activation(lambda z: 1 / (1 + mp.exp(-z)), lambda z: 1 / (2 + mp.exp(z) + mp.exp(-z))),
    "softplus": Activation(lambda z: mp.log1p(mp.exp(z)), lambda z: 1 / (1 + mp.exp(-z))),
    "relu": Activation(lambda z: max(z, mp.mpf(0)), lambda z: mp.mpf(z > 0)),
    "leaky_relu": Activation(
        lambda z: z if z > 0 else mp.mpf(0.01) * z,
        lambda z: mp.mpf(1) if z > 0 else mp.mpf(0.01),
    ),
    "sin": Activation(mp.sin, mp.cos),
    "identity": Activation(lambda z: z, lambda _: mp.mpf(1)),
}


def parts(net: ocdl.Network, vector: Array) -> dict[str, Array]:
    """Cut a vector of controls, real or complex, into those of the field with an axis for stages, h, W and mu."""
    N, s, d, q = net.n_layers, net.stages if net.stage_controls else 1, net.dim, net.n_outputs
    shapes = {name: (N, s, *shape) for name, shape in field_parts(net).items()}
    shapes |= {"h": (N if net.residual else 0,), "W": (q, d), "mu": (q,)}
    cuts = np.cumsum([np.prod(shape, dtype=int) for shape in shapes.values()])
    assert cuts[-1] == len(vector)
    pieces = np.split(vector, cuts[:-1])
    return {name: piece.reshape(shape) for (name, shape), piece in zip(shapes.items(), pieces, strict=True)}


def stage(u: dict[str, Array], name: str, layer: int, i: int) -> Array:
    pieces = u[name][layer]
    return pieces[i if len(pieces) > 1 else 0]


def at_stage(net: ocdl.Network, u: dict[str, Array], layer: int, i: int) -> list[Array]:
    """What the field takes there: K and b of most fields."""
    return [stage(u, name, layer, i) for name in field_parts(net)]


class Field(NamedTuple):
    """f(y) of rows y, and its Jacobian at one row; both given sigma, the field's controls and y."""

    value: Callable[..., Array]
    jacobian: Callable[..., Array]


def symplectic(d: int) -> Array:
    return np.kron([[0, 1], [-1, 0]], np.eye(d // 2))


def exponents(d: int, degree: int) -> Array:
    """The exponents of all monomials in d variables up to this degree, in graded lexicographic order."""
    actual = [
        np.bincount(np.array(variables, dtype=int), minlength=d)
        for order in range(degree + 1)
        for variables in combinations_with_replacement(range(d), order)
    ]
    assert len(actual) == math.comb(d + degree, degree)
    return np.array(actual)


def exponents_of(C: Array, d: int) -> Array:
    """Those of the monomials in d variables that C multiplies."""
    count = C.shape[1]
    return exponents(d, next(degree for degree in range(1, count) if math.comb(d + degree, degree) == count))


def power(y: Array, p: Array) -> Array:
    """Products of y**p along the last axis, by multiplications: complex powers lose digits."""
    result = np.ones(np.broadcast_shapes(y.shape, p.shape), dtype=y.dtype)
    for n in range(p.max(initial=0)):
        result = np.where(p > n, result * y, result)
    return result.prod(axis=-1)


def polynomial_jacobian(_: Activation, C: Array, y: Array) -> Array:
    p, unit = exponents_of(C, len(y)), np.eye(len(y), dtype=int)
    return C @ np.stack([p[:, i] * power(y, np.maximum(p - unit[i], 0)) for i in range(len(y))], axis=1)


FIELDS = {
    "dense": Field(
        lambda sigma, K, b, y: sigma.value(y @ K.T + b),
        lambda sigma, K, b, y: sigma.slope(K @ y + b)[:, None] * K,
    ),
    "antisymmetric": Field(
        lambda sigma, K, b, y: sigma.value(y @ (K - K.T).T + b),
        lambda sigma, K, b, y: sigma.slope((K - K.T) @ y + b)[:, None] * (K - K.T),
    ),
    "hamiltonian": Field(
        lambda sigma, K, b, y: sigma.value(y @ K.T + b) @ K @ symplectic(K.shape[1]).T,
        lambda sigma, K, b, y: symplectic(K.shape[1]) @ K.T @ (sigma.slope(K @ y + b)[:, None] * K),
    ),
    "gradient": Field(
        lambda sigma, K, b, y: -sigma.value(y @ K.T + b) @ K,
        lambda sigma, K, b, y: -K.T @ (sigma.slope(K @ y + b)[:, None] * K),
    ),
    "mlp": Field(
        lambda sigma, K, b, V, A, c, y: sigma.value(y @ K.T + b) @ V.T + y @ A.T + c,
        lambda sigma, K, b, V, A, c, y: V @ (sigma.slope(K @ y + b)[:, None] * K) + A,
    ),
    "polynomial": Field(
        lambda sigma, C, y: power(y[..., None, :], exponents_of(C, y.shape[-1])) @ C.T, polynomial_jacobian
    ),
}


def field_parts(net: ocdl.Network) -> dict[str, tuple[int, ...]]:
    """What a field takes, and the shape of each of these parts at one stage."""
    d, n = net.dim, net.dim + net.n_inputs
    if net.field == "mlp":
        assert net.width is not None
        return {"K": (net.width, n), "b": (net.width,), "V": (d, net.width), "A": (d, n), "c": (d,)}
    if net.field == "polynomial":
        assert net.degree is not None
        return {"C": (d, math.comb(n + net.degree, net.degree))}
    units = net.width or d
    return {"K": (units, d), "b": (units,)}


FIXED_POINT_SWEEPS = 32  # at most, of stage equations that are a contraction by 1/4


def with_inputs(net: ocdl.Network, layer: int, i: int, y: Array, inputs: Array | None) -> Array:
    """z = (y, x) at stage i of a layer."""
    if inputs is None:
        return y
    c = net.tableau.c[i] if net.input_hold == "linear" else 0
    x = (1 - c) * inputs[:, layer] + (c * inputs[:, layer + 1] if c else 0)
    return np.concatenate([y, x], axis=1)


def stages_of_layer(
    net: ocdl.Network, u: dict[str, Array], layer: int, y: Array, inputs: Array | None = None
) -> tuple[list[Array], list[Array]]:
    """The stage states y_i and the k_i of rows y; those of an implicit method by fixed-point iteration."""
    A = net.tableau.A if net.residual else np.zeros((1, 1))
    y_stages, k = [y] * net.stages, [np.zeros_like(y)] * net.stages
    for _ in range(FIXED_POINT_SWEEPS if np.triu(A).any() else 1):
        before = list(k)
        for i in range(net.stages):
            y_stages[i] = y + sum(u["h"][layer] * A[i, m] * k[m] for m in range(net.stages) if A[i, m])
            controls = at_stage(net, u, layer, i)
            z = with_inputs(net, layer, i, y_stages[i], inputs)
            k[i] = FIELDS[net.field].value(ACTIVATIONS[net.activation], *controls, z)
        if all(map(np.array_equal, k, before)):
            break
    return y_stages, k


def states(net: ocdl.Network, vector: Array, X: Array, inputs: Array | None = None) -> Array:
    """y[0], ..., y[N], shape (N + 1, samples, dim)."""
    u = parts(net, vector)
    y = np.zeros((len(X), net.dim), dtype=np.result_type(vector, X, *([] if inputs is None else [inputs])))
    y[:, : net.n_features] = X
    trajectory = [y]
    for layer in range(net.n_layers):
        _, k = stages_of_layer(net, u, layer, y, inputs)
        if net.residual:
            y = y + u["h"][layer] * sum(weight * k_i for weight, k_i in zip(net.tableau.b, k, strict=True))
        else:
            (y,) = k
        trajectory.append(y)
    return np.array(trajectory)


def outputs(net: ocdl.Network, vector: Array, X: Array, inputs: Array | None = None) -> Array:
    u = parts(net, vector)
    return states(net, vector, X, inputs)[-1] @ u["W"].T + u["mu"]


def losses(z: Array, y: Array, loss: str) -> Array:
    """The loss of each row of outputs."""
    target = y[:, None] if z.shape[1] == 1 else np.eye(z.shape[1])[y]
    if loss == "squared":
        return (0.5 * (sigmoid(z) - target) ** 2).sum(axis=1)
    assert loss == "cross_entropy"
    if z.shape[1] == 1:
        return softplus(np.where(target == 1, -z, z))[:, 0]
    largest = np.eye(z.shape[1], dtype=bool)[z.real.argmax(axis=1)]
    others = np.where(largest, 0, np.exp(z - z[largest][:, None])).sum(axis=1)
    return log1p(others) + (z[largest] - (target * z).sum(axis=1))


def weights_of(penalties: Iterable[ocdl.Penalty]) -> dict[str, float]:
    """Return the weight of each penalty on its usual parts; 0 where there is none."""
    weights = dict.fromkeys(("tikhonov", "l1", "time_smoothness", "even_steps"), 0.0)
    for penalty in penalties:
        assert penalty.parts is None
        weights[penalty.name] += penalty.weight
    return weights


def sum_of_penalties(net: ocdl.Network, vector: Array, penalties: Iterable[ocdl.Penalty]) -> Any:
    """Return R(u) of penalties of the usual parts."""
    weight = weights_of(penalties)
    u = parts(net, vector)
    penalised = np.concatenate([part.ravel() for name, part in u.items() if name != "h"])
    jumps = sum((np.diff(u[name], axis=0) ** 2).sum() for name in field_parts(net))
    return (
        weight["tikhonov"] / 2 * (penalised**2).sum()
        + weight["l1"] * (np.sign(penalised.real) * penalised).sum()
        + weight["time_smoothness"] / 2 * net.n_layers / net.horizon * jumps
    )


def value(
    net: ocdl.Network,
    vector: Array,
    X: Array,
    y: Array,
    objective: ocdl.Objective,
    sample_weight: Array | None = None,
    inputs: Array | None = None,
) -> Any:
    weights = np.ones(len(X)) if sample_weight is None else sample_weight
    total = (weights * losses(outputs(net, vector, X, inputs), y, objective.loss)).sum()
    mean = total / weights.sum() if objective.reduction == "mean" else total
    return sum_of_penalties(net, vector, objective.penalties) + mean


def gradient(
    net: ocdl.Network, vector: Array, X: Array, y: Array, objective: ocdl.Objective, sample_weight: Array | None = None
) -> tuple[Array, Array]:
    """The derivatives of `value` with respect to all controls and to X, by the complex step."""
    rest = (y, objective, sample_weight)
    by_controls = [slope(net, vector, X, *rest, direction=unit) for unit in np.eye(len(vector))]
    by_data = [slope(net, vector, X, *rest, dX=unit.reshape(X.shape)) for unit in np.eye(X.size)]
    return np.array(by_controls), np.reshape(by_data, X.shape)


def slope(
    net: ocdl.Network, vector: Array, X: Array, *rest: Any, direction: Array | float = 0.0, dX: Array | float = 0.0
) -> float:
    """The derivative of `value` along a direction, by the complex step; `rest` are its other arguments."""
    shifted = value(net, vector + 1j * STEP * direction, X + 1j * STEP * dX, *rest)
    return float(shifted.imag) / STEP


def tangents(net: ocdl.Network, vector: Array, X: Array, direction: Array, dX: Array) -> Array:
    """The derivative of `states` along a direction, by the complex step."""
    return states(net, vector + 1j * STEP * direction, X + 1j * STEP * dX).imag / STEP


def final_costate(
    net: ocdl.Network, vector: Array, X: Array, y: Array, objective: ocdl.Objective, sample_weight: Array | None = None
) -> Array:
    """p[N] = dJ/dy[N], by the complex step in each of its components (samples do not interact)."""
    u = parts(net, vector)
    final = states(net, vector, X)[-1]
    weights = np.ones(len(X)) if sample_weight is None else sample_weight
    scale = weights / weights.sum() if objective.reduction == "mean" else weights
    columns = [
        scale * losses((final + 1j * STEP * unit) @ u["W"].T + u["mu"], y, objective.loss).imag / STEP
        for unit in np.eye(net.dim)
    ]
    return np.stack(columns, axis=1)


def partitioned_costates(net: ocdl.Network, vector: Array, X: Array, final: Array) -> Array:
    """The paper's symplectic partitioned pair, with the partner (A~, b~) of the tableau:

        p_i = p[j] + h sum_l a~_il l_l,   l_i = -(d_y f(y_i, u))^T p_i,   p[j+1] = p[j] + h sum_i b~_i l_i,

    p[j+1] given. Eliminating p[j] leaves one linear system for all stages p_i of a sample, solved as it stands.
    """
    u, partner, s, d = parts(net, vector), net.tableau.adjoint(), net.stages, net.dim
    trajectory = states(net, vector, X)
    costates = [final]
    for layer in reversed(range(net.n_layers)):
        h = u["h"][layer]
        y_stages, _ = stages_of_layer(net, u, layer, trajectory[layer])
        before = np.empty_like(final)
        for sample, p_next in enumerate(costates[-1]):
            jacobian = FIELDS[net.field].jacobian
            transposed = [
                jacobian(ACTIVATIONS[net.activation], *at_stage(net, u, layer, i), y_i[sample]).T
                for i, y_i in enumerate(y_stages)
            ]
            # p_i - p[j+1] = h sum_l (a~_il - b~_l) l_l
            system = np.eye(s * d)
            for i in range(s):
                for m in range(s):
                    block = h * (partner.A[i, m] - partner.b[m]) * transposed[m]
                    system[i * d : (i + 1) * d, m * d : (m + 1) * d] += block
            p_stages = np.linalg.solve(system, np.tile(p_next, s)).reshape(s, d)
            before[sample] = p_next + h * sum(partner.b[i] * transposed[i] @ p_stages[i] for i in range(s))
        costates.append(before)
    return np.array(costates[::-1])
