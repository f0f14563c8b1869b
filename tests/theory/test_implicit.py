"""Implicit methods: what their stage equations, their symmetry and their symplecticity promise, to roundoff."""

from __future__ import annotations

import re
import warnings
from functools import cache
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import reference
from numpy.typing import NDArray
from problems import ACTIVATIONS, FIELDS, IMPLICIT, field_options, random_problem
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning

import ocdl
from ocdl import Controls, Network, Objective, Tableau

EPS = np.finfo(float).eps
SYMMETRIC = ["implicit_midpoint", "trapezoidal", "gauss2", "gauss3"]


def constant_controls(net: Network, K: NDArray[np.float64], b: NDArray[np.float64], steps: float) -> ocdl.Controls:
    N = net.n_layers
    return net.controls(K=np.broadcast_to(K, (N, *K.shape)), b=np.broadcast_to(b, (N, *b.shape)), h=np.full(N, steps))


@pytest.mark.parametrize("tableau", IMPLICIT)
@pytest.mark.parametrize("dim", [1, 2, 3, 5, 30])
def test_a_linear_field_is_multiplied_by_the_stability_function(tableau: str, dim: int) -> None:
    """y[1] = R(hK) y[0] with R(Z) = I + (b^T x Z) (I - A x Z)^-1 (1 x I), also for large, zero and negative steps."""
    method, rng = Tableau.named(tableau), np.random.default_rng(dim)
    net = Network(dim, 1, tableau=tableau, activation="identity")
    K, X = rng.normal(size=(dim, dim)) / np.sqrt(dim), rng.normal(size=(7, dim))
    for h in (0.1, 3.0, 0.0, -1.0):
        s, identity = method.stages, np.eye(dim)
        system = np.eye(s * dim) - h * np.kron(method.A, K)
        stages = np.linalg.solve(system, np.tile(identity, (s, 1)))
        R = identity + h * np.kron(method.b, K) @ stages
        y = net.forward(constant_controls(net, K, np.zeros(dim), h), X).states[1]
        scale = np.linalg.cond(system) * np.abs(y).max()
        np.testing.assert_allclose(y, X @ R.T, rtol=0, atol=20 * dim * EPS * scale)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("tableau", ["implicit_midpoint", "sdirk2", "gauss2", "gauss3"])
def test_values_and_gradients_match_fifty_digits(tableau: str, activation: str) -> None:
    """J and a directional derivative against arithmetic with 50 digits, of a network with steps of any size."""
    net = Network(2, 2, tableau=tableau, activation=activation, time_steps="free")
    problem = random_problem(net, samples=2, seed=4)
    problem.u.h[...] = [0.9, -0.4]
    objective = Objective("cross_entropy", reduction="sum")
    J, g = net.value_and_grad(*problem.data, objective)
    with mp.workdps(50):
        direction = problem.du.to_vector()
        value = mp_value(net, problem.u.to_vector(), direction, mp.mpf(0), problem.X, problem.y)
        step = mp.mpf(10) ** -22
        after, before = (
            mp_value(net, problem.u.to_vector(), direction, shift, problem.X, problem.y) for shift in (step, -step)
        )
        slope = (after - before) / (2 * step)
    assert abs(J - float(value)) <= 1e-14 * float(value)
    assert abs(g.dot(problem.du) - float(slope)) <= 1e-13 * np.abs(g.to_vector() * direction).sum()


def mp_value(net: Network, vector, direction, shift: mp.mpf, X, y) -> mp.mpf:
    u = [mp.mpf(float(a)) + shift * mp.mpf(float(w)) for a, w in zip(vector, direction, strict=True)]
    K = [mp.matrix(2, 2) for _ in range(2)]
    for n in range(8):
        K[n // 4][n % 4 // 2, n % 2] = u[n]
    b, h, W, mu = (u[8:10], u[10:12]), u[12:14], u[14:16], u[16]
    total = mp.mpf(0)
    for row, label in zip(X, y, strict=True):
        state = [mp.mpf(float(number)) for number in row]
        for layer in range(2):
            state = mp_step(net.tableau, net.activation, K[layer], b[layer], h[layer], state)
        z = mp.fdot(W, state) + mu
        total += mp.log1p(mp.exp(-z if label else z))
    return total


def mp_step(tableau: Tableau, activation: str, K: mp.matrix, b: list, h: mp.mpf, y: list) -> list:
    """One step by Newton's method, with the coefficients that the package rounded to doubles."""
    sigma, slope = reference.MP_ACTIVATIONS[activation]
    s = tableau.stages
    A = [[mp.mpf(float(a)) for a in row] for row in tableau.A]
    k = [mp.mpf(0)] * (2 * s)
    for _ in range(9):
        residual, jacobian = mp.matrix(2 * s, 1), mp.eye(2 * s)
        for i in range(s):
            state = [y[c] + h * mp.fdot(A[i], k[c::2]) for c in range(2)]
            for r in range(2):
                z = K[r, 0] * state[0] + K[r, 1] * state[1] + b[r]
                residual[2 * i + r] = k[2 * i + r] - sigma(z)
                for m in range(s):
                    for c in range(2):
                        jacobian[2 * i + r, 2 * m + c] -= h * A[i][m] * slope(z) * K[r, c]
        k = list(mp.matrix(k) - mp.lu_solve(jacobian, residual))
    weights = [mp.mpf(float(w)) for w in tableau.b]
    return [y[c] + h * mp.fdot(weights, k[c::2]) for c in range(2)]


@pytest.mark.parametrize("tableau", ["implicit_midpoint", "gauss2", "gauss3"])
def test_gauss_methods_conserve_quadratic_invariants(tableau: str) -> None:
    """The flow of a linear antisymmetric field is a rotation: |y| stays what it is over 1,000 layers."""
    net = Network(4, 1000, tableau=tableau, field="antisymmetric", activation="identity")
    rng = np.random.default_rng(0)
    u = net.from_vector(np.zeros(net.n_controls))
    u.K[...], u.h[...] = rng.normal(size=u.K.shape), rng.uniform(0.05, 0.5, 1000)
    states = net.forward(u, rng.normal(size=(20, 4))).states
    sizes = np.linalg.norm(states, axis=-1)
    assert np.abs(sizes / sizes[0] - 1).max() <= 1000 * EPS
    explicit = Network(4, 1000, tableau="kutta4", field="antisymmetric", activation="identity")
    others = np.linalg.norm(explicit.forward(explicit.from_vector(u.to_vector()), states[0]).states, axis=-1)
    assert np.abs(others / others[0] - 1).max() >= 1e-3


@cache
def energy_errors(tableau: str, layers: int = 10_000, step: float = 0.25) -> NDArray[np.float64]:
    """|H(y[j]) - H(y[0])| along the Hamiltonian flow with constant controls, H(y) = sum log cosh(K y + b)."""
    K, b = np.array([[1.2, -0.5], [0.3, 0.9]]), np.array([0.1, -0.2])
    net = Network(2, layers, tableau=tableau, field="hamiltonian", horizon=layers * step)
    states = net.forward(constant_controls(net, K, b, step), [[1.5, 0.5], [-0.4, 1.0]]).states
    energy = np.log(np.cosh(states @ K.T + b)).sum(axis=-1)
    return np.abs(energy - energy[0]).max(axis=1)


@pytest.mark.parametrize("tableau", ["implicit_midpoint", "gauss2"])
def test_symplectic_methods_keep_the_energy_and_kutta4_loses_it(tableau: str) -> None:
    """Bounded over 10,000 layers: no larger in the last tenth than in the first. That of kutta4 grows with time."""
    errors = energy_errors(tableau)
    assert errors[9000:].max() <= 1.01 * errors[:1000].max()
    drift = energy_errors("kutta4")
    assert drift[9000:].min() >= 5 * drift[:1000].max()
    assert drift[10_000] >= 2 * energy_errors("gauss2").max()


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("tableau", SYMMETRIC)
def test_negated_steps_invert_symmetric_methods(tableau: str, field: str) -> None:
    """Forward through the layers, then back through them in reverse order with steps of the other sign."""
    rng, layers = np.random.default_rng(1), 50
    half = random_problem(Network(4, layers, tableau=tableau, **field_options(field), time_steps="free"), samples=1).u
    half.h[...] = rng.uniform(0.02, 0.3, layers)
    net = Network(4, 2 * layers, tableau=tableau, **field_options(field))
    there = {part.name: half.parts()[part.name] for part in net.parts if part.role == "field"}
    u = net.controls(
        **{name: np.concatenate([part, part[::-1]]) for name, part in there.items()},
        h=np.concatenate([half.h, -half.h[::-1]]),
    )
    X = rng.normal(size=(30, 4))
    states = net.forward(u, X).states
    there_alone = Network(4, layers, **field_options(field), tableau=tableau, time_steps="free")
    way_back = there_alone.controls(**{name: part[::-1] for name, part in there.items()}, h=-half.h[::-1])
    stretch = (  # of an error on the way there and back
        there_alone.stability(half, X).total_growth.max()
        * there_alone.stability(way_back, states[layers]).total_growth.max()
    )
    assert np.abs(states[layers] - X).max() >= 0.1
    np.testing.assert_allclose(states[-1], X, rtol=0, atol=2 * layers * stretch * EPS * np.abs(states).max())


def test_steps_of_zero_change_nothing_and_their_gradient_is_that_of_the_formula() -> None:
    """dJ/dh = <b-weighted costate, k> where h = 0, which has to be the limit of small steps."""
    problems = [random_problem(Network(3, 4, tableau=name, time_steps="free"), samples=5) for name in IMPLICIT]
    for problem in problems:
        net, u = problem.net, problem.u.copy()
        u.h[2] = 0
        states = net.forward(u, problem.X).states
        np.testing.assert_array_equal(states[3], states[2])
        _, g = net.value_and_grad(u, problem.X, problem.y)
        k = np.tanh(states[2] @ u.K[2].T + u.b[2])
        p = net.adjoint(u, problem.X, problem.y)[3]
        assert g.h[2] == pytest.approx(np.vdot(p, k), rel=1e-13)


# ---- equations without a solution ----


def unsolvable() -> tuple[Network, ocdl.Controls]:
    """Implicit Euler for y' = max(y, 0) with h = 1 in layer 1: y = x + max(y, 0) has no solution where x > 0."""
    net = Network(1, 3, tableau="implicit_euler", activation="relu")
    return net, net.controls(K=np.ones((3, 1, 1)), h=[0.5, 1.0, 0.5], W=[[1.0]])


def test_equations_without_solution_name_layer_and_sample() -> None:
    net, u = unsolvable()
    X, y = [[-1.0], [1.0], [-0.5]], [0, 1, 0]
    message = r"stage equations of layer 1 of 3 were not solved for sample 1: Newton's method does not converge"
    for call in (
        lambda: net.forward(u, X),
        lambda: net.predict(u, X),
        lambda: net.value(u, X, y),
        lambda: net.value_and_grad(u, X, y),
        lambda: net.tangent(u, X),
    ):
        with pytest.raises(FloatingPointError, match=message):
            call()


def test_a_sample_without_solution_does_not_harm_its_neighbours() -> None:
    net, u = unsolvable()
    X = np.array([[-1.0], [-2.0], [0.5], [-3.0]])
    outputs = net._core_network.forward(u.to_vector(), X)[1]
    assert np.isnan(outputs.ravel()).tolist() == [False, False, True, False]
    np.testing.assert_array_equal(outputs[[0, 1, 3]], net.predict(u, X[[0, 1, 3]]))


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
def test_kinks_are_solved_across(activation: str) -> None:
    """Short steps make the equations of a kink solvable, wherever it lies; the solution satisfies them."""
    rng = np.random.default_rng(0)
    net = Network(3, 1, tableau="implicit_euler", activation=activation)
    u = net.controls(K=rng.normal(size=(1, 3, 3)), b=rng.normal(size=(1, 3)), h=[0.2])
    y, y_next = net.forward(u, rng.normal(size=(2000, 3))).states
    z = y_next @ u.K[0].T + u.b[0]
    k = np.where(z > 0, z, 0 if activation == "relu" else 0.01 * z)
    np.testing.assert_allclose(y_next, y + 0.2 * k, rtol=0, atol=1e-14)


def test_a_training_rejects_trials_whose_equations_have_no_solution() -> None:
    """Steps that are far too long are taken back like those that overflow."""
    X, y = ocdl.datasets.make_donut2d(60, random_state=0)
    net = Network(2, 5, tableau="implicit_midpoint", activation="identity", time_steps="free", horizon=2.0)
    result = ocdl.train(net, net.init(random_state=0), X, y, optimiser=ocdl.Backtracking(L0=1e-6), max_iter=20)
    assert np.isfinite(result.history.loss).all()
    assert result.history.trials.max() > 10
    assert result.history.loss[-1] < result.history.loss[0]
    broken, u = unsolvable()
    with pytest.raises(FloatingPointError, match="stage equations of layer 1 of 3 were not solved for sample 1"):
        ocdl.train(broken, u, [[-1.0], [1.0]], [0, 1])


@pytest.mark.parametrize("tableau", IMPLICIT)
def test_single_precision_agrees_with_double(tableau: str) -> None:
    net, single = (Network(3, 10, tableau=tableau, time_steps="free", dtype=dtype) for dtype in ("float64", "float32"))
    problem = random_problem(net, samples=200)
    u = single.from_vector(problem.u.to_vector().astype(np.float32))
    J, g = net.value_and_grad(*problem.data)
    J_single, g_single = single.value_and_grad(u, problem.X.astype(np.float32), problem.y)
    assert J_single == pytest.approx(J, rel=1e-5)
    np.testing.assert_allclose(g_single.to_vector(), g.to_vector(), rtol=0, atol=1e-5 * np.abs(g.to_vector()).max())


def test_the_estimator_trains_an_implicit_method() -> None:
    X, y = ocdl.datasets.make_donut2d(100, random_state=0)
    model = ocdl.ODEClassifier(tableau="gauss2", n_layers=5, max_iter=60, random_state=0, augment=1, alpha=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert model.score(X, y) > 0.8


class TestStagesStatus:
    """Equations that have no solution: y1 = y0 + h softplus(K y1) for h K > 1, whatever solves for it."""

    X = np.linspace(1.0, 3.0, 40).reshape(-1, 1)

    def problem(self, dtype: str = "float64") -> tuple[Network, Controls]:
        net = Network(1, 3, tableau="implicit_euler", activation="softplus", dtype=dtype)
        return net, net.controls(K=np.full((3, 1, 1), 0.5), W=[[1.0]])

    @pytest.mark.parametrize("optimiser", [ocdl.GradientDescent(50.0), ocdl.Adam(lr=20.0)], ids=repr)
    def test_a_step_into_unsolvable_equations_ends_a_training_with_layer_and_sample(self, optimiser: Any) -> None:
        net, u = self.problem()
        y = 20 * self.X[:, 0]
        objective = ocdl.Objective("squared_error")
        result = ocdl.train(net, u, self.X, y, objective=objective, optimiser=optimiser, max_iter=100)
        assert result.status is ocdl.Status.STAGES
        assert re.search(r"the stage equations of layer \d of 3 were not solved for sample \d+", result.message)
        assert np.isfinite(result.history.loss[-1])

    def test_an_overflow_is_not_a_stage_failure(self) -> None:
        net = Network(1, 3, activation="softplus")
        u = net.controls(K=np.full((3, 1, 1), 0.5), W=[[1.0]])
        objective = ocdl.Objective("squared_error")
        result = ocdl.train(
            net, u, self.X, 20 * self.X[:, 0], objective=objective, optimiser=ocdl.GradientDescent(1e200), max_iter=9
        )
        assert result.status is ocdl.Status.NOT_FINITE


class TestSteepFields:
    """Newton's method alone does not solve these equations; each has one solution."""

    def test_a_steep_contraction_is_solved_everywhere(self) -> None:
        """y + tanh(10 y) = x, by bisection."""
        net, x = Network(1, 1, tableau="implicit_euler"), np.linspace(-1, 1, 41)
        states = net.final_state(net.controls(K=[[[-10.0]]]), x[:, None])[:, 0]
        exact = [optimize.brentq(lambda y, at=at: y + np.tanh(10 * y) - at, -2, 2, xtol=1e-15) for at in x]
        np.testing.assert_allclose(states, exact, rtol=0, atol=1e-14)
        assert net.final_state(net.controls(K=[[[-10.0]]]), [[0.5]])[0, 0] == pytest.approx(0.04864, abs=1e-5)

    @pytest.mark.parametrize("tableau", IMPLICIT)
    def test_every_method_solves_it(self, tableau: str) -> None:
        """Beside SciPy's solver of the stage equations."""
        net, x = Network(1, 1, tableau=tableau), np.linspace(-1, 1, 41)
        A, b = net.tableau.A, net.tableau.b
        states = net.final_state(net.controls(K=[[[-10.0]]]), x[:, None])[:, 0]
        for at, state in zip(x, states, strict=True):
            stages = optimize.root(lambda k, at=at: k + np.tanh(10 * (at + A @ k)), np.zeros(len(b)), tol=1e-14)
            assert state == pytest.approx(at + b @ stages.x, abs=1e-10)

    @pytest.mark.parametrize("k", [10.0, 20.0, 40.0])
    def test_antisymmetric_fields_are_solved(self, k: float) -> None:
        """y1 = y0 + tanh(A (y0 + y1) / 2), A = [[0, k], [-k, 0]], whose matrix is never singular."""
        net = Network(2, 1, tableau="implicit_midpoint", field="antisymmetric")
        X = np.random.default_rng(0).normal(size=(200, 2))
        states = net.final_state(net.controls(K=[[[0.0, k], [0.0, 0.0]]]), X)
        middle = (X + states) / 2
        residual = states - X - np.tanh(middle @ np.array([[0.0, -k], [k, 0.0]]))
        np.testing.assert_allclose(residual, 0, atol=1e-12)

    @pytest.mark.parametrize("field", ["dense", "antisymmetric"])
    @pytest.mark.parametrize("tableau", ["implicit_euler", "implicit_midpoint"])
    def test_no_training_ends_while_the_loss_still_falls(self, tableau: str, field: str) -> None:
        """Where a dense field makes the solution jump, J jumps, too, and no step along the gradient lowers it."""
        X, y = ocdl.datasets.make_spiral(200, random_state=0)
        net = Network(2, 5, tableau=tableau, **field_options(field))
        for seed in range(2):
            result = ocdl.train(net, net.init(random_state=seed), X, y, optimiser=ocdl.LBFGS(), max_iter=300)
            if result.status in (ocdl.Status.ITERATION_LIMIT, ocdl.Status.GRADIENT):
                continue
            assert result.status is ocdl.Status.LINE_SEARCH_FAILED
            assert field == "dense"
            J, g = net.value_and_grad(result.controls, X, y)
            u, g = result.controls.to_vector(), g.to_vector()
            for t in 10.0 ** np.arange(0, -13, -1):
                try:
                    trial = net.value(net.from_vector(u - t * g), X, y)
                except FloatingPointError:
                    continue
                assert trial >= J * (1 - 1e-12)
