"""Second order: products with the Hessian and the Gauss-Newton matrix are exact, and the Hamiltonian's Hessian is."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from problems import ACTIVATIONS, EXPLICIT, LOSSES, Problem, objectives, problems, random_problem

import ocdl
from ocdl import L1, Network, Objective, Tikhonov, TimeSmoothness

SMOOTH = [name for name in ACTIVATIONS if name not in ("relu", "leaky_relu")]
PENALTIES = (Tikhonov(0.3), L1(0.2), TimeSmoothness(0.1))
WEIGHTS = reference.weights_of(PENALTIES)


def directions(p: Problem) -> tuple[ocdl.Controls, ocdl.Controls]:
    """Two directions; steps that are fixed are no variables."""
    other = p.net.from_vector(np.random.default_rng(1).normal(size=p.net.n_controls))
    first = p.du.copy()
    if p.net.time_steps == "fixed":
        first.h[...] = other.h[...] = 0
    return first, other


@settings(max_examples=40)
@given(problems(max_layers=8, max_dim=5), objectives)
def test_hessian_and_gauss_newton_matrix_are_symmetric_and_linear(p: Problem, objective: Objective) -> None:
    v, w = directions(p)
    for product in (p.net.hessian_product, p.net.gauss_newton_product):
        Bv, Bw, Bsum = (product(*p.data, objective, du=d, sample_weight=p.sample_weight) for d in (v, w, 2.0 * v - w))
        size = Bv.norm() * w.norm() + Bw.norm() * v.norm()
        assert abs(w.dot(Bv) - v.dot(Bw)) <= 1e-13 * size
        assert (Bsum - (2.0 * Bv - Bw)).norm() <= 1e-13 * (2 * Bv.norm() + Bw.norm())


def curvature_of_losses(z: NDArray[Any], loss: str) -> NDArray[Any]:
    """The matrices D of the Gauss-Newton product, (samples, outputs, outputs)."""
    q = z.shape[1]
    slopes = reference.sigmoid(z) * reference.sigmoid(-z)
    if loss == "squared":
        return np.einsum("io,op->iop", slopes**2, np.eye(q))
    if q == 1:
        return slopes[:, :, None]
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return np.einsum("io,op->iop", p, np.eye(q)) - np.einsum("io,ip->iop", p, p)


@settings(max_examples=40)
@given(problems(max_layers=8, max_dim=5), objectives)
def test_the_gauss_newton_form_is_the_losses_curvature_along_the_tangent(p: Problem, objective: Objective) -> None:
    """<v, B v> = sum_i w_i <dz_i, D_i dz_i> with the derivative dz of the outputs along v; so it is not negative."""
    net, (v, _) = p.net, directions(p)
    states, tangents = net.forward(p.u, p.X).states[-1], net.tangent(p.u, p.X, v)[-1]
    dz = tangents @ p.u.W.T + states @ v.W.T + v.mu
    D = curvature_of_losses(net.predict(p.u, p.X), objective.loss)
    weights = p.sample_weight / p.sample_weight.sum() if objective.reduction == "mean" else p.sample_weight
    expected = float(np.einsum("i,io,iop,ip->", weights, dz, D, dz))
    form = v.dot(net.gauss_newton_product(*p.data, objective, du=v, sample_weight=p.sample_weight))
    assert form == pytest.approx(expected, rel=1e-11, abs=1e-14)
    assert form >= 0


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_gauss_newton_is_the_hessian_of_the_cross_entropy_in_the_classifier(n_outputs: int) -> None:
    """The outputs are linear in W and mu."""
    p = random_problem(Network(2, 5, n_outputs=n_outputs), 20)
    v, objective = p.du.copy(), Objective("cross_entropy")
    v.K[...] = v.b[...] = v.h[...] = 0
    H, B = (f(*p.data, objective, du=v) for f in (p.net.hessian_product, p.net.gauss_newton_product))
    for part in ("W", "mu"):
        np.testing.assert_allclose(getattr(B, part), getattr(H, part), rtol=1e-12, atol=1e-15)


def test_gauss_newton_tends_to_the_hessian_as_residuals_vanish() -> None:
    """For the squared loss, the difference of the forms in mu is the residual times C''."""
    net = Network(1, 1)
    direction = net.controls(h=[0.0])
    direction.mu[...] = 1
    for z in (-3.0, -6.0, -12.0):
        u = net.controls(K=[[[0.0]]], W=[[0.0]], mu=[z])
        H, B = (
            f(u, [[0.0]], [0], Objective(), du=direction).mu[0] for f in (net.hessian_product, net.gauss_newton_product)
        )
        C = 1 / (1 + math.exp(-z))
        assert H - B == pytest.approx(C * C * (1 - C) * (1 - 2 * C), rel=1e-12)


# ---- fifty digits --------------------------------------------------------------------------------------------------


def mp_objective(net: Network, vector: list[Any], X: Any, y: Any, objective: Objective) -> Any:
    """J in mpmath's numbers: the formulas of the mathematics page, sample by sample, for one output."""
    N, d, s = net.n_layers, net.dim, net.stages
    shared = 1 if not net.stage_controls else s
    K0, b0 = 0, N * shared * d * d
    h0 = b0 + N * shared * d
    W0 = h0 + (N if net.residual else 0)
    A, weights = net.tableau.A, net.tableau.b
    sigma = reference.MP_ACTIVATIONS[net.activation].value
    total = mp.mpf(0)
    for x, label in zip(X, y, strict=True):
        state = [mp.mpf(float(c)) for c in x] + [mp.mpf(0)] * net.augment
        for j in range(N):
            values: list[list[Any]] = []
            for i in range(s):
                pair = j * shared + (i if shared > 1 else 0)
                h = vector[h0 + j] if net.residual else mp.mpf(1)
                stage = [state[c] + h * sum(mp.mpf(float(A[i, m])) * values[m][c] for m in range(i)) for c in range(d)]
                rows = (vector[K0 + (pair * d + r) * d : K0 + (pair * d + r + 1) * d] for r in range(d))
                values.append([sigma(mp.fdot(row, stage) + vector[b0 + pair * d + r]) for r, row in enumerate(rows)])
            if net.residual:
                h = vector[h0 + j]
                state = [
                    state[c] + h * sum(mp.mpf(float(weights[i])) * values[i][c] for i in range(s)) for c in range(d)
                ]
            else:
                state = values[0]
        z = mp.fdot(vector[W0 : W0 + d], state) + vector[W0 + d]
        if objective.loss == "squared":
            total += (1 / (1 + mp.exp(-z)) - int(label)) ** 2 / 2
        else:
            total += mp.log(1 + mp.exp(z)) - int(label) * z
    return total / len(X) if objective.reduction == "mean" else total


@pytest.mark.parametrize("activation", SMOOTH)
@pytest.mark.parametrize("tableau", ["euler", "kutta4", "dormand_prince"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_hessian_form_matches_second_differences_in_fifty_digits(tableau: str, activation: str, loss: str) -> None:
    stage_controls = tableau == "kutta4"
    net = Network(2, 2, tableau=tableau, activation=activation, time_steps="free", stage_controls=stage_controls)
    p, objective = random_problem(net, 3, seed=5), Objective(loss)
    v, w = directions(p)
    form = w.dot(net.hessian_product(*p.data, objective, du=v))
    with mp.workdps(50):
        step = mp.mpf(10) ** -14
        vectors = [[mp.mpf(float(c)) for c in part.to_vector()] for part in (p.u, v, w)]

        def J(a: int, b: int) -> Any:
            moved = [c + step * (a * dv + b * dw) for c, dv, dw in zip(*vectors, strict=True)]
            return mp_objective(net, moved, p.X, p.y, objective)

        exact = float((J(1, 1) - J(1, -1) - J(-1, 1) + J(-1, -1)) / (4 * step**2))
    assert form == pytest.approx(exact, rel=1e-11)


# ---- extremes ------------------------------------------------------------------------------------------------------


def outputs_only(n_outputs: int, mu: list[float]) -> tuple[Network, ocdl.Controls]:
    """A network whose outputs are mu."""
    net = Network(1, 1, n_outputs=n_outputs)
    return net, net.controls(K=[[[0.0]]], W=np.zeros((n_outputs, 1)), mu=mu)


@pytest.mark.parametrize("z", [-700.0, -40.0, -1.0, 0.0, 2.0, 40.0, 700.0])
@pytest.mark.parametrize("label", [0, 1])
def test_second_derivatives_keep_their_digits_at_huge_outputs(z: float, label: int) -> None:
    net, u = outputs_only(1, [z])
    v = net.controls(K=[[[0.0]]], h=[0.0], mu=[1.0])
    with mp.workdps(700):
        C = 1 / (1 + mp.exp(-mp.mpf(z)))
        slope = C * (1 - C)
        squared, gauss_newton = float(slope**2 + (C - label) * slope * (1 - 2 * C)), float(slope**2)
        cross_entropy = float(slope)
    for objective, hessian, approximation in (
        (Objective("cross_entropy"), cross_entropy, cross_entropy),
        (Objective("squared"), squared, gauss_newton),
    ):
        data = (u, [[0.0]], [label], objective)
        assert net.hessian_product(*data, du=v).mu[0] == pytest.approx(hessian, rel=1e-12, abs=1e-320)
        assert net.gauss_newton_product(*data, du=v).mu[0] == pytest.approx(approximation, rel=1e-12, abs=1e-320)


@pytest.mark.parametrize("mu", [[0.0, 0.0, 0.0], [1.0, 1.0, -2.0], [-300.0, 0.0, 300.0], [5.0, 4.0, 5.0]])
def test_the_softmax_has_its_hessian_at_ties_and_at_huge_outputs(mu: list[float]) -> None:
    net, u = outputs_only(3, mu)
    p = np.exp(np.array(mu) - max(mu))
    p /= p.sum()
    expected = np.diag(p) - np.outer(p, p)
    for label in range(3):
        for column in range(3):
            v = net.controls(K=[[[0.0]]], h=[0.0], mu=np.eye(3)[column])
            Hv = net.hessian_product(u, [[0.0]], [label], Objective("cross_entropy"), du=v)
            np.testing.assert_allclose(Hv.mu, expected[column], rtol=1e-12, atol=1e-15)


# ---- what belongs to it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("product", ["hessian_product", "gauss_newton_product"])
@pytest.mark.parametrize("net", [Network(2, 4, stage_controls=True, tableau="heun3"), Network(2, 4, residual=False)])
def test_penalties_add_their_hessian(net: Network, product: str) -> None:
    p = random_problem(net, 5)
    multiply = getattr(net, product)
    difference = multiply(*p.data, Objective(penalties=PENALTIES), du=p.du) - multiply(*p.data, Objective(), du=p.du)
    expected = net.from_vector(np.zeros(net.n_controls))
    for part in ("K", "b", "W", "mu"):
        getattr(expected, part)[...] = WEIGHTS["tikhonov"] * getattr(p.du, part)
    for part in ("K", "b"):
        jumps = WEIGHTS["time_smoothness"] * net.n_layers / net.horizon * np.diff(getattr(p.du, part), axis=0)
        getattr(expected, part)[1:] += jumps
        getattr(expected, part)[:-1] -= jumps
    np.testing.assert_allclose(difference.to_vector(), expected.to_vector(), rtol=1e-12, atol=1e-13)


def test_fixed_steps_are_no_variables() -> None:
    p = random_problem(Network(2, 4), 5)
    still = p.du.copy()
    still.h[...] = 0
    assert np.any(p.du.h != 0)
    moving, resting = (p.net.hessian_product(*p.data, Objective(), du=du) for du in (p.du, still))
    assert np.array_equal(moving.to_vector(), resting.to_vector())
    assert np.all(moving.h == 0)


def test_single_precision_is_computed_in_double() -> None:
    p = random_problem(Network(3, 4, dtype="float32", time_steps="free"), 20)
    wide = Network(3, 4, time_steps="free")
    u, du = (wide.from_vector(c.to_vector().astype(float)) for c in (p.u, p.du))
    exact = wide.hessian_product(
        u, p.X.astype(float), p.y, Objective(), du=du, sample_weight=p.sample_weight.astype(float)
    )
    rounded = p.net.hessian_product(*p.data, Objective(), du=p.du, sample_weight=p.sample_weight).to_vector()
    assert rounded.dtype == np.float32
    assert np.array_equal(rounded, exact.to_vector().astype(np.float32))


@pytest.mark.usefixtures("all_threads")
@pytest.mark.parametrize("dim", [2, 100])
def test_bits_do_not_depend_on_threads(dim: int) -> None:
    p = random_problem(Network(dim, 3, tableau="kutta4", time_steps="free"), 700)
    results = []
    for threads in (1, 2, 3, 7):
        ocdl.set_num_threads(threads)
        results.append(p.net.hessian_product(*p.data, Objective(), du=p.du).to_vector())
    assert all(np.array_equal(result, results[0]) for result in results)


def test_errors_name_wrong_arguments() -> None:
    p = random_problem(Network(2, 3), 5)
    other = Network(2, 4).init(0)
    for multiply in (p.net.hessian_product, p.net.gauss_newton_product):
        with pytest.raises(TypeError, match="du must be Controls"):
            multiply(*p.data, Objective(), du=np.zeros(3))
        with pytest.raises(ValueError, match="du does not fit"):
            multiply(*p.data, Objective(), du=other)
        with pytest.raises(TypeError, match="objective"):
            multiply(*p.data, "squared", du=p.du)
    with pytest.raises(ValueError, match="layer must be at most 2, got 3"):
        p.net.hamiltonian_hessian(*p.data, layer=3)
    object.__setattr__(p.net, "field", "hamiltonian")
    with pytest.raises(ValueError, match="field='hamiltonian'"):
        p.net.hamiltonian_hessian(*p.data)


def test_overflow_is_reported() -> None:
    net = Network(1, 2, activation="identity")
    u = net.controls(K=[[[1e200]], [[1e200]]], W=[[1.0]])
    with pytest.raises(FloatingPointError, match="not finite after layer 1"):
        net.hessian_product(u, [[1.0]], [0], Objective(), du=u)


# ---- the Hamiltonian -----------------------------------------------------------------------------------------------


def stage_cotangents(p: Problem, layer: int, objective: Objective) -> list[NDArray[Any]]:
    """g_i = dJ/dk_i / h of a layer, by the complex step in every entry of k_i."""
    net, vector, cotangents = p.net, p.u.to_vector(), []
    u = reference.parts(net, vector)
    start = reference.states(net, vector, p.X)[layer]
    scale = 1 / len(p.X) if objective.reduction == "mean" else 1.0
    for i in range(net.stages):
        g = np.zeros((len(p.X), net.dim))
        for c in range(net.dim):  # samples do not interact: one component of all of them at a time
            y, values = start, []
            for m in range(net.stages):
                state = y + u["h"][layer] * sum((net.tableau.A[m, k] * values[k] for k in range(m)), np.zeros_like(y))
                argument = state @ reference.stage(u, "K", layer, m).T + reference.stage(u, "b", layer, m)
                k = reference.ACTIVATIONS[net.activation].value(argument)
                values.append(k + 1j * reference.STEP * np.eye(net.dim)[c] if m == i else k)
            y = y + u["h"][layer] * sum(weight * k for weight, k in zip(net.tableau.b, values, strict=True))
            for later in range(layer + 1, net.n_layers):
                _, k_later = reference.stages_of_layer(net, u, later, y)
                y = y + u["h"][later] * sum(weight * k for weight, k in zip(net.tableau.b, k_later, strict=True))
            losses = reference.losses(y @ u["W"].T + u["mu"], p.y, objective.loss)
            g[:, c] = scale * losses.imag / reference.STEP / u["h"][layer]
        cotangents.append(g)
    return cotangents


@settings(max_examples=40)
@given(st.data())
def test_the_hamiltonians_hessian_is_the_complex_step_of_its_gradient(data: st.DataObject) -> None:
    net = Network(
        2,
        3,
        tableau=data.draw(st.sampled_from(EXPLICIT)),
        activation=data.draw(st.sampled_from(ACTIVATIONS)),
        stage_controls=data.draw(st.booleans()),
        augment=data.draw(st.integers(0, 1)),
        n_outputs=data.draw(st.integers(1, 3)),
    )
    p, layer = random_problem(net, 6, seed=data.draw(st.integers(0, 1000))), data.draw(st.integers(0, 2))
    objective, d = data.draw(objectives), net.dim
    u = reference.parts(net, p.u.to_vector())
    slope, h = reference.ACTIVATIONS[net.activation].slope, u["h"][layer]
    A, values = (
        net.tableau.A,
        reference.stages_of_layer(net, u, layer, reference.states(net, p.u.to_vector(), p.X)[layer]),
    )
    start = reference.states(net, p.u.to_vector(), p.X)[layer]
    expected = []
    for i, g in enumerate(stage_cotangents(p, layer, objective)):
        y = start + h * sum((A[i, m] * values[1][m] for m in range(i)), np.zeros_like(start))
        columns = []
        for unit in np.eye(d * d + d):
            K = reference.stage(u, "K", layer, i) + 1j * reference.STEP * unit[: d * d].reshape(d, d)
            b = reference.stage(u, "b", layer, i) + 1j * reference.STEP * unit[d * d :]
            delta = slope(y @ K.T + b) * g
            columns.append(np.append((delta.T @ y).ravel(), delta.sum(axis=0)).imag / reference.STEP)
        expected.append(np.array(columns))
    whole = np.array(expected) if net.stage_controls else np.sum(expected, axis=0)
    actual = net.hamiltonian_hessian(*p.data, objective, layer=layer)
    np.testing.assert_allclose(actual, whole, rtol=0, atol=1e-12 * max(1.0, float(np.abs(whole).max())))
