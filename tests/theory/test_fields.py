"""Vector fields: what their structure promises."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
from problems import ACTIVATIONS, FIELDS, TABLEAUX, field_options, random_problem
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import ocdl
from ocdl import Network, Objective
from ocdl.model.fields import FIELDS_WITHOUT_OPTION

DTYPES = ("float64", "float32")


@pytest.mark.parametrize("dim", [2, 4, 6, 50, 98])
@pytest.mark.parametrize("field", FIELDS)
def test_narrow_and_wide_states_follow_the_formula(field: str, dim: int) -> None:
    """Unrolled products, panels, transposes in place and packed, and a team of threads."""
    net = Network(dim, 2, **field_options(field), tableau="midpoint", time_steps="free", activation="sin")
    problem = random_problem(net, samples=5)
    expected = reference.states(net, problem.u.to_vector(), problem.X)
    np.testing.assert_allclose(net.forward(problem.u, problem.X).states, expected, rtol=0, atol=1e-13)
    w, objective = problem.du.to_vector(), Objective("cross_entropy", reduction="sum")
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
        Network(4, 3, **field_options(field), tableau=tableau, time_steps="free")
        for field in ("antisymmetric", "dense")
    )
    problem = random_problem(net, samples=9)
    u = dense.from_vector(problem.u.to_vector())
    u.K[...] -= u.K.swapaxes(1, 2).copy()
    np.testing.assert_array_equal(net.predict(problem.u, problem.X), dense.predict(u, problem.X))
    penalty = Objective(penalties=ocdl.Tikhonov(0.3))
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
    problem = random_problem(Network(2, 3, **field_options(field), tableau="gauss2", dtype=dtype), samples=4)
    ocdl.save(tmp_path / "model.ocdl", problem.net, problem.u)
    net, u, _ = ocdl.load(tmp_path / "model.ocdl")
    assert net == problem.net
    np.testing.assert_array_equal(net.predict(u, problem.X), problem.net.predict(problem.u, problem.X))


@pytest.mark.parametrize("field", FIELDS_WITHOUT_OPTION)
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
    net = Network(2, 4, **field_options(field), time_steps=time_steps, tableau="implicit_midpoint", stage_controls=True)
    result = ocdl.train(net, net.init(random_state=0), X, y, max_iter=30)
    assert result.history.loss[-1] < result.history.loss[0]


# ---- fields of any width and degree ----


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"field": "mlp"}, "field='mlp' needs width, as in width=32"),
        ({"field": "polynomial"}, "field='polynomial' needs degree, as in degree=2"),
        ({"width": 3}, "width needs field='hamiltonian' or field='mlp' or field='gradient', got width=3"),
        ({"field": "mlp", "width": 3, "degree": 2}, "degree needs field='polynomial', got degree=2"),
        ({"field": "mlp", "width": 0}, "width must be at least 1, got 0"),
        ({"field": "polynomial", "degree": 0}, "degree must be at least 1, got 0"),
        ({"field": "polynomial", "degree": 200}, "degree 200 in 2 components has more than 10000 monomials"),
        ({"field": "mlp", "width": 3, "residual": False}, "field='mlp' needs a residual network"),
    ],
)
def test_width_and_degree_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Network(2, 3, **options)


def test_an_mlp_without_hidden_units_that_count_is_linear() -> None:
    """V = 0 leaves y' = A y + c, whose flow by a method of order 4 is the exponential's Taylor polynomial."""
    net = Network(2, 1, field="mlp", width=5, tableau="kutta4", horizon=0.5, control_intervals=1)
    u = net.init(random_state=0)
    u.V[...] = 0
    u.A[0], u.c[0] = [[0.0, 1.0], [-1.0, 0.2]], [0.3, -0.1]
    X = np.random.default_rng(0).normal(size=(7, 2))
    M = 0.5 * u.A[0]
    series = [np.linalg.matrix_power(M, n) / math.factorial(n) for n in range(5)]
    offset = sum(np.linalg.matrix_power(M, n) / math.factorial(n + 1) for n in range(4)) @ u.c[0] * 0.5
    np.testing.assert_allclose(net.final_state(u, X), X @ sum(series).T + offset, rtol=0, atol=1e-15)


def test_monomials_stand_in_graded_lexicographic_order() -> None:
    net = Network(2, 1, field="polynomial", degree=3)
    y = np.array([[1.5, -0.5]])
    expected = [1, 1.5, -0.5, 1.5**2, 1.5 * -0.5, 0.25, 1.5**3, 1.5**2 * -0.5, 1.5 * 0.25, -0.125]
    for n, value in enumerate(expected):
        u = net.controls()
        u.C[0, 0, n] = 1
        np.testing.assert_allclose(net.final_state(u, y), y + np.array([value, 0]), rtol=1e-15)


def test_a_polynomial_of_degree_one_is_the_linear_part_of_an_mlp() -> None:
    polynomial = Network(3, 4, field="polynomial", degree=1, tableau="gauss2")
    mlp = Network(3, 4, field="mlp", width=1, tableau="gauss2")
    p = random_problem(polynomial, samples=6)
    u = mlp.controls(A=p.u.C[:, :, 1:], c=p.u.C[:, :, 0], h=p.u.h, W=p.u.W, mu=p.u.mu)
    np.testing.assert_allclose(mlp.predict(u, p.X), polynomial.predict(p.u, p.X), rtol=1e-14)


def test_the_start_of_each_part() -> None:
    u = Network(4, 200, field="mlp", width=50).init(random_state=0)
    assert u.K.std() == pytest.approx(0.5, rel=0.02)
    assert u.V.std() == pytest.approx(0.1 / math.sqrt(50), rel=0.02)
    assert -1 <= u.b.min() <= -0.99
    assert 0.99 <= u.b.max() <= 1
    assert not u.A.any()
    assert not u.c.any()
    assert not Network(2, 3, field="polynomial", degree=2).init(random_state=0).C.any()


@pytest.mark.parametrize("tableau", ["euler", "kutta4", "dormand_prince"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dim", [1, 2, 3, 5, 8])
def test_narrow_mlps_follow_the_formula(dim: int, activation: str, tableau: str) -> None:
    """Every number of samples beside whole tiles, widths beside whole chunks, shared controls, states alone stored."""
    for samples, width, intervals in ((1, 1, 1), (13, 70, None), (37, 5, 2)):
        net = Network(
            dim,
            4,
            field="mlp",
            width=width,
            tableau=tableau,
            activation=activation,
            time_steps="free",
            control_intervals=intervals,
        )
        p, objective = random_problem(net, samples), Objective("cross_entropy", reduction="sum")
        own = replace(net, control_intervals=None)
        parts = {name: part[list(net.layer_sets)] for name, part in p.u.parts().items() if name in "KbVAc"}
        unshared = own.controls(**(p.u.parts() | parts))
        expected = reference.states(own, unshared.to_vector(), p.X)
        np.testing.assert_allclose(net.forward(p.u, p.X).states, expected, rtol=1e-13, atol=1e-13)
        _, g = net.value_and_grad(*p.data, objective)
        direction = {name: part[list(net.layer_sets)] for name, part in p.du.parts().items() if name in "KbVAc"}
        w = own.controls(**(p.du.parts() | direction)).to_vector()
        slope = reference.slope(own, unshared.to_vector(), p.X, p.y, objective, direction=w)
        assert abs(g.dot(p.du) - slope) <= 1e-13 * np.abs(g.to_vector() * p.du.to_vector()).sum()
