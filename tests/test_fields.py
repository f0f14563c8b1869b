"""Vector fields: what their structure promises."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import reference
from problems import ACTIVATIONS, FIELDS, TABLEAUX, random_problem
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import ocdl
from ocdl import Network, Objective

DTYPES = ("float64", "float32")


@pytest.mark.parametrize("dim", [2, 4, 6, 50, 98])
@pytest.mark.parametrize("field", FIELDS)
def test_narrow_and_wide_states_follow_the_formula(field: str, dim: int) -> None:
    """Unrolled products, panels, transposes in place and packed, and a team of threads."""
    net = Network(dim, 2, field=field, tableau="midpoint", time_steps="free", activation="sin")
    problem = random_problem(net, samples=5)
    expected = reference.states(net, problem.u.to_vector(), problem.X)
    np.testing.assert_allclose(net.forward(problem.u, problem.X).states, expected, rtol=0, atol=1e-13)
    w, objective = problem.du.to_vector(), Objective("cross_entropy", "sum")
    _, g = net.value_and_grad(*problem.data, objective)
    slope = reference.slope(net, problem.u.to_vector(), problem.X, problem.y, objective, direction=w)
    assert abs(g.to_vector() @ w - slope) <= 1e-13 * np.abs(g.to_vector() * w).sum()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_symmetric_part_of_an_antisymmetric_field_does_not_matter(dtype: str) -> None:
    """Neither to the flow nor to the gradient, which is antisymmetric itself."""
    net = Network(3, 4, field="antisymmetric", tableau="kutta4", dtype=dtype)
    problem = random_problem(net, samples=6)
    _, g = net.value_and_grad(*problem.data)
    np.testing.assert_array_equal(g.K, -g.K.swapaxes(1, 2))
    halves = np.round(problem.u.K * 64) / 64  # sums of such numbers are exact
    u, shifted = problem.u.copy(), problem.u.copy()
    u.K[...] = halves
    shifted.K[...] = halves + np.eye(3, dtype=dtype) + np.ones((3, 3), dtype)
    np.testing.assert_array_equal(net.predict(shifted, problem.X), net.predict(u, problem.X))


@pytest.mark.parametrize("tableau", TABLEAUX)
def test_an_antisymmetric_field_is_a_dense_one_of_the_difference(tableau: str) -> None:
    net, dense = (
        Network(4, 3, field=field, tableau=tableau, time_steps="free") for field in ("antisymmetric", "dense")
    )
    problem = random_problem(net, samples=9)
    u = dense.from_vector(problem.u.to_vector())
    u.K[...] -= u.K.swapaxes(1, 2).copy()
    np.testing.assert_array_equal(net.predict(problem.u, problem.X), dense.predict(u, problem.X))
    penalty = Objective(regulariser=ocdl.Tikhonov(0.3))
    (_, g), (_, g_dense) = net.value_and_grad(*problem.data), dense.value_and_grad(u, problem.X, problem.y)
    np.testing.assert_array_equal(g.K, g_dense.K - g_dense.K.swapaxes(1, 2))
    np.testing.assert_array_equal(g.h, g_dense.h)
    _, penalised = net.value_and_grad(*problem.data, penalty)
    np.testing.assert_allclose(penalised.K, g.K + 0.3 * problem.u.K, rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_hamiltonian_flow_preserves_areas_and_energy(activation: str) -> None:
    """det dy(T)/dy(0) = 1 by a symplectic method; H is constant to the order of the method."""
    net = Network(2, 60, field="hamiltonian", tableau="gauss3", activation=activation)
    K, b = np.array([[0.8, 0.3], [-0.4, 0.9]]), np.array([0.3, -0.1])
    u = net.controls(K=np.tile(K, (60, 1, 1)), b=np.tile(b, (60, 1)))
    X = np.random.default_rng(0).normal(size=(20, 2))
    columns = [net.tangent(u, X, dX=np.tile(unit, (20, 1)))[-1] for unit in np.eye(2)]
    np.testing.assert_allclose(np.linalg.det(np.stack(columns, axis=-1)), 1, rtol=1e-13)
    integral = {
        "tanh": lambda z: np.log(np.cosh(z)),
        "sigmoid": lambda z: np.logaddexp(0, z),
        "sin": lambda z: -np.cos(z),
        "identity": lambda z: z**2 / 2,
        "relu": lambda z: np.maximum(z, 0) ** 2 / 2,
        "leaky_relu": lambda z: np.where(z > 0, 1, 0.01) * z**2 / 2,
    }.get(activation)
    if integral is None:
        return  # the integral of softplus is a dilogarithm
    energy = integral(net.forward(u, X).states @ K.T + b).sum(axis=-1)
    kinked = activation in ("relu", "leaky_relu")  # the method's order needs a smooth field
    np.testing.assert_allclose(energy, np.broadcast_to(energy[0], energy.shape), rtol=0, atol=1e-4 if kinked else 1e-11)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_files_keep_the_field(field: str, dtype: str, tmp_path: Path) -> None:
    problem = random_problem(Network(2, 3, field=field, tableau="gauss2", dtype=dtype), samples=4)
    ocdl.save(tmp_path / "model.ocdl", problem.net, problem.u)
    net, u, _ = ocdl.load(tmp_path / "model.ocdl")
    assert net == problem.net
    np.testing.assert_array_equal(net.predict(u, problem.X), problem.net.predict(problem.u, problem.X))


@pytest.mark.parametrize("field", FIELDS)
def test_the_estimator_takes_a_field(field: str) -> None:
    X, y = ocdl.datasets.make_donut2d(100, random_state=0)
    X = StandardScaler().fit_transform(X)
    model = ocdl.ODEClassifier(field=field, n_layers=10, max_iter=100, random_state=0, augment=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert model.network_.field == field
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("time_steps", ["fixed", "free", "simplex"])
@pytest.mark.parametrize("field", FIELDS)
def test_every_kind_of_steps_trains(field: str, time_steps: str) -> None:
    X, y = ocdl.datasets.make_squares(80, random_state=0)
    net = Network(2, 4, field=field, time_steps=time_steps, tableau="implicit_midpoint", stage_controls=True)
    result = ocdl.train(net, net.init(random_state=0), X, y, max_iter=30)
    assert result.history.loss[-1] < result.history.loss[0]
