"""The sum of squares of multiple shooting and its derivatives, against the core and against differences."""

from __future__ import annotations

import numpy as np
import pytest

import ocdl
from ocdl.dynamics.least_squares import minimise
from ocdl.dynamics.series import Series
from ocdl.dynamics.shooting import Shooting, Weights, reduce
from ocdl.dynamics.system import System, monomial_exponents
from ocdl.dynamics.windows import cut_windows, interpolate

RNG = np.random.default_rng(0)
SYSTEMS = {
    "mlp": System("mlp", 2, 0, 4, None, "kutta4"),
    "polynomial": System("polynomial", 2, 0, None, 2, "kutta4"),
    "inputs": System("polynomial", 2, 1, None, 2, "kutta4"),
}


def series(n_inputs: int, count: int = 3) -> list[Series]:
    found = []
    for i in range(count):
        times = np.sort(RNG.uniform(0, 2, 9 + i))
        values = RNG.standard_normal((9 + i, 2))
        values[3, 1] = np.nan
        found.append(Series(times, values, RNG.standard_normal((9 + i, n_inputs)) if n_inputs else None))
    return found


def problem_of(name: str, layers: int = 5) -> tuple[Shooting, np.ndarray, np.ndarray, Weights]:
    system = SYSTEMS[name]
    windows = cut_windows(series(system.n_inputs), layers, 0.1)
    theta = 0.3 * RNG.standard_normal(system.n_parameters)
    states = RNG.standard_normal((len(windows), 2))
    P = system.n_parameters
    weights = Weights(
        np.array([0.5, 0.7]), np.array([0.2, 0.3]), np.full(P, 0.1), np.full(P, 0.05), np.array([0.0, 0.4])
    )
    free = np.ones(P, bool)
    free[1] = False
    return Shooting(system, windows, np.array([[1.0, 0.5], [0.0, 1.0]]), free), theta, states, weights


@pytest.mark.parametrize("name", SYSTEMS)
def test_gradient_is_that_of_the_value(name: str) -> None:
    problem, theta, states, weights = problem_of(name)
    equations = problem.linearise(theta, states, weights)
    assert equations is not None
    gradient = equations.parameter_gradient.sum(axis=0) + (weights.prior * (theta - weights.mean))[problem.free]
    windows = problem.windows
    by_states = equations.state_gradient.reshape(windows.n_chains, -1, 2)[windows.chain, windows.position]

    def value(theta: np.ndarray, states: np.ndarray) -> float:
        found = problem.residuals(theta, states, weights)
        assert found is not None
        return 0.5 * found.value

    h = 1e-5
    for j, parameter in enumerate(np.flatnonzero(problem.free)):
        step = h * np.eye(len(theta))[parameter]
        difference = (value(theta + step, states) - value(theta - step, states)) / (2 * h)
        np.testing.assert_allclose(gradient[j], difference, rtol=1e-6, atol=1e-6)
    for index in np.ndindex(states.shape):
        step = np.zeros_like(states)
        step[index] = h
        difference = (value(theta, states + step) - value(theta, states - step)) / (2 * h)
        np.testing.assert_allclose(by_states[index], difference, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", SYSTEMS)
def test_values_at_times_are_those_of_the_core(name: str) -> None:
    problem, theta, states, weights = problem_of(name)
    found = problem.residuals(theta, states, weights)
    assert found is not None
    windows = problem.windows
    net = problem.system.network(windows.layers, windows.step)
    assert len(set(windows.series.tolist())) == 3
    u = problem.system.controls(net, theta)
    inputs = windows.inputs
    for i in range(len(windows)):
        present = ~np.isnan(windows.values[i]).all(axis=1)
        if not present.any():
            continue
        place = np.sum(windows.weights[i] * windows.stencil[i], axis=-1) * windows.step
        x = None if inputs is None else inputs[i : i + 1]
        outputs = net.outputs_at(u, states[i : i + 1], np.minimum(place[present], net.horizon), inputs=x)[0]
        expected = outputs @ problem.W.T - windows.values[i][present]
        np.testing.assert_allclose(found.errors[i][present], expected, rtol=1e-10, atol=1e-10)


def test_matrix_is_that_of_gauss_and_newton_in_the_core() -> None:
    problem, theta, states, _ = problem_of("mlp", layers=30)  # one window for each series
    windows, P = problem.windows, problem.system.n_parameters
    weights = Weights(np.ones(2), np.ones(2), np.zeros(P), np.zeros(P), np.zeros(2))
    equations = problem.linearise(theta, states, weights)
    assert equations is not None
    net = ocdl.Network(2, 30, n_outputs=2, tableau="kutta4", field="mlp", width=4, horizon=3.0, control_intervals=1)
    u = problem.system.controls(net, theta)
    u.W[...] = problem.W
    place = np.sum(windows.weights * windows.stencil, axis=-1) * windows.step
    place[np.isnan(windows.values).all(axis=2)] = np.nan
    y = ocdl.Observations(place, windows.values)
    objective = ocdl.Objective("squared_error", reduction="sum")
    matrix = equations.parameter.sum(axis=0)
    (chosen,) = np.nonzero(problem.free)
    for j in (0, 5, len(chosen) - 1):
        direction = net.from_vector(np.eye(net.n_controls)[chosen[j]])
        product = net.gauss_newton_product(u, states, y, objective, du=direction).to_vector()[chosen]
        np.testing.assert_allclose(matrix[j], product, rtol=1e-9, atol=1e-9)


def test_reduction_solves_the_whole_system() -> None:
    problem, theta, states, weights = problem_of("polynomial")
    equations = problem.linearise(theta, states, weights)
    assert equations is not None
    reduced = reduce(equations, 0.0)
    for c in range(problem.windows.n_chains):
        joint = np.block([[equations.state[c], equations.mixed[c]], [equations.mixed[c].T, equations.parameter[c]]])
        right = np.concatenate([equations.state_gradient[c], equations.parameter_gradient[c]])
        joint += 1e-6 * np.eye(len(joint))
        P = equations.parameter.shape[1]
        step = np.linalg.solve(reduced.matrix[c] + 1e-6 * np.eye(P), reduced.gradient[c])
        np.testing.assert_allclose(step, np.linalg.solve(joint, right)[-P:], rtol=1e-3, atol=1e-3)


def test_minimum_of_exact_data_is_zero() -> None:
    system = SYSTEMS["polynomial"]
    theta = np.zeros(system.n_parameters)
    system.part(theta, "C")[...] = [[0, 0, 1, 0, 0, 0], [0, -1, -0.2, 0.1, 0, 0]]
    net = system.network(20, 0.1)
    path = net.forward(system.controls(net, theta), [[1.0, 0.0]]).states[:, 0]
    windows = cut_windows([Series(0.1 * np.arange(21), path, None)], 5, 0.1)
    problem = Shooting(system, windows, np.eye(2), np.ones(len(theta), bool))
    weights = Weights(np.full(2, 1e-3), np.full(2, 1e-3), np.zeros(12), np.zeros(12), np.zeros(2))
    states = path[::5][: len(windows)] + 0.05
    found = minimise(problem, theta + 0.05, states, weights, max_iter=50, rtol=0.0)
    assert found is not None
    np.testing.assert_allclose(found.theta, theta, atol=1e-7)


def test_overflow_is_none() -> None:
    problem, theta, states, weights = problem_of("polynomial")
    assert problem.residuals(1e200 * np.ones_like(theta), states, weights) is None
    assert minimise(problem, 1e200 * np.ones_like(theta), states, weights, max_iter=3) is None


@pytest.mark.parametrize("layers", [1, 2, 3, 8])
def test_interpolation_is_exact_for_cubic_polynomials(layers: int) -> None:
    place = np.linspace(0, layers, 17)
    nodes, weights = interpolate(place, layers)
    for power in range(min(layers, 3) + 1):
        np.testing.assert_allclose(np.sum(weights * nodes**power, axis=1), place**power, atol=1e-12 * layers**3 + 1e-14)


@pytest.mark.parametrize("step", [0.07, 0.1, 0.25])
def test_windows_hold_every_value_once(step: float) -> None:
    members = series(0)
    windows = cut_windows(members, 4, step)
    assert windows.n_observed.tolist() == [sum((~np.isnan(one.values[:, c])).sum() for one in members) for c in (0, 1)]
    following = windows.next_window
    for i, after in enumerate(following):
        if after >= 0:
            assert windows.start[after] == pytest.approx(windows.start[i] + 4 * step)


def test_monomials_are_those_of_the_core() -> None:
    system = SYSTEMS["inputs"]
    exponents = monomial_exponents(3, 2)
    z, x = RNG.standard_normal((1, 2)), RNG.standard_normal((1, 1))
    for j in range(len(exponents)):
        theta = np.zeros(system.n_parameters)
        system.part(theta, "C")[0, j] = 1.0
        expected = np.prod(np.concatenate([z, x], axis=1) ** exponents[j])
        np.testing.assert_allclose(system.derivative(theta, z, x)[0], [expected, 0.0], rtol=1e-12, atol=1e-14)
