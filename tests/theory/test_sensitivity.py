"""Sensitivities are derivatives, minimal perturbations change predictions, and no flow grows faster than its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
import reference
from hypothesis import assume, given, settings
from problems import ACTIVATIONS, LOSSES, Problem, field_options, objectives, problems, random_problem

import ocdl
from ocdl import Network, Objective, Tableau
from ocdl.analysis.lipschitz import FIELD_BOUNDS, step_bound
from ocdl.model.activations import ACTIVATIONS as FACTS
from ocdl.model.fields import FIELDS

SEEDS = range(5)
BOUNDED_FIELDS = [name for name in FIELDS if name != "polynomial"]


def classes(net: Network, u: ocdl.Controls, X: np.ndarray) -> np.ndarray:
    z = net.predict(u, X)
    return (z[:, 0] > 0).astype(int) if z.shape[1] == 1 else z.argmax(axis=1)


# ---- sensitivity ----


@settings(max_examples=12)
@given(problems(max_layers=3, max_dim=3, max_samples=3), objectives)
def test_the_sensitivity_is_the_derivative_of_each_loss(problem: Problem, objective: Objective) -> None:
    """By the complex step, and whatever the reduction and the penalties are."""
    net, loss = problem.net, Objective(objective.loss, reduction="sum")
    expected = reference.gradient(net, problem.u.to_vector(), problem.X, problem.y, loss)[1]
    regularised = Objective(objective.loss, reduction=objective.reduction, penalties=ocdl.Tikhonov(1.0))
    actual = net.sensitivity(*problem.data, regularised)
    assert np.abs(actual - expected).max() <= 1e-12 * np.abs(expected).max()


def test_the_mean_divides_it_by_the_number_of_samples() -> None:
    problem = random_problem(Network(3, 4, n_outputs=3), samples=8)
    _, g = problem.net.value_and_grad(*problem.data, input_grad=True)
    assert g.X is not None
    np.testing.assert_allclose(problem.net.sensitivity(*problem.data), 8 * g.X, rtol=1e-13)


# ---- minimal perturbations ----


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("outputs", [1, 2, 4])
def test_minimal_perturbations_change_the_prediction_and_a_hundredth_less_does_not(
    outputs: int, residual: bool, dtype: str
) -> None:
    net = Network(3, 5, n_outputs=outputs, residual=residual, dtype=dtype, augment=1)
    u = net.init(random_state=outputs, scheme="scaled")
    X = np.random.default_rng(0).normal(size=(200, 3)).astype(dtype)
    u.mu[...] -= np.median(net.predict(u, X), axis=0)
    before = classes(net, u, X)
    perturbation = net.minimal_perturbation(u, X, radius=1.0, steps=200)
    actual = np.isfinite(perturbation.distance)
    assert 50 < actual.sum() < 200
    assert (classes(net, u, perturbation.X[actual]) != before[actual]).all()
    moved = (X + np.where(actual, perturbation.distance, 0)[:, None] * perturbation.direction).astype(dtype)
    np.testing.assert_array_equal(perturbation.X[actual], moved[actual])
    less = (X + 0.99 * np.where(actual, perturbation.distance, 1)[:, None] * perturbation.direction).astype(dtype)
    np.testing.assert_array_equal(classes(net, u, less), before)
    assert np.isnan(perturbation.X[~actual]).all()
    np.testing.assert_allclose(np.linalg.norm(perturbation.direction, axis=1), 1, rtol=1e-6)


def test_the_direction_is_steepest_descent_of_the_margin() -> None:
    net = Network(2, 4, tableau="kutta3", n_outputs=2)
    u = net.init(random_state=0)
    x = np.array([[0.3, -0.2]])
    c = classes(net, u, x)[0]

    def margin(at: np.ndarray) -> float:
        z = net.predict(u, at)[0]
        return float(z[c] - z[1 - c])

    slope = np.array([(margin(x + e) - margin(x - e)) / 2e-5 for e in 1e-5 * np.eye(2)[:, None]])
    np.testing.assert_allclose(net.minimal_perturbation(u, x).direction[0], -slope / np.linalg.norm(slope), atol=1e-8)


def test_on_a_linear_classifier_it_is_the_distance_to_the_nearest_border() -> None:
    net = Network(2, 1, n_outputs=3)
    W, mu = np.random.default_rng(0).normal(size=(2, 3, 2)), np.array([0.1, -0.2, 0.3])
    u = net.controls(W=W[0], mu=mu, h=[0.0])
    X = np.random.default_rng(1).normal(size=(50, 2))
    z = X @ W[0].T + mu
    c = z.argmax(axis=1)
    distances = np.full((50, 3), math.inf)
    for k in range(3):
        normal = np.linalg.norm(W[0][c] - W[0][k], axis=1)
        distances[c != k, k] = ((z[np.arange(50), c] - z[:, k])[c != k]) / normal[c != k]
    perturbation = net.minimal_perturbation(u, X, radius=10.0, tol=1e-9)
    np.testing.assert_allclose(perturbation.distance, distances.min(axis=1), atol=2e-8)


def test_a_prediction_that_nothing_changes_has_an_infinite_distance() -> None:
    net = Network(2, 1)
    perturbation = net.minimal_perturbation(net.controls(mu=[1.0]), np.zeros((3, 2)))
    assert np.isinf(perturbation.distance).all()
    assert not perturbation.direction.any()


@pytest.mark.parametrize(("option", "value"), [("radius", 0.0), ("steps", 0), ("tol", -1.0)])
def test_refusals_name_the_option(option: str, value: float) -> None:
    net = Network(2, 1)
    with pytest.raises(ValueError, match=option):
        net.minimal_perturbation(net.init(0), np.zeros((1, 2)), **{option: value})


# ---- the Lipschitz bound ----


def observed_growth(net: Network, u: ocdl.Controls, seed: int) -> float:
    """Return the largest growth of small and large differences of states, and of tangents."""
    rng = np.random.default_rng(seed)
    X, dX = rng.normal(size=(2, 400, net.n_features))
    dX *= rng.choice([0.1, 1.0, 10.0], (400, 1)) / np.linalg.norm(dX, axis=1, keepdims=True)
    ends = net.forward(u, X + dX).states[-1] - net.forward(u, X).states[-1]
    v = net.tangent(u, X, dX=dX)[-1]
    return float(np.max(np.linalg.norm([ends, v], axis=-1) / np.linalg.norm(dX, axis=-1)))


@settings(max_examples=60)
@given(problems(max_layers=8, max_dim=4, max_samples=2))
def test_no_flow_grows_faster_than_its_bound(problem: Problem) -> None:
    assume(problem.net.field in BOUNDED_FIELDS)
    assert observed_growth(problem.net, problem.u, 0) <= problem.net.lipschitz_bound(problem.u) * (1 + 1e-12)


@pytest.mark.parametrize("field", BOUNDED_FIELDS)
@pytest.mark.parametrize("tableau", ocdl.tableaux())
def test_every_tableau_and_field_has_a_bound(tableau: str, field: str) -> None:
    net = Network(2, 4, tableau=tableau, **field_options(field), horizon=0.2)
    for seed in SEEDS:
        u = random_problem(net, samples=1, seed=seed).u
        bound = net.lipschitz_bound(u)
        assert math.isfinite(bound)
        assert observed_growth(net, u, seed) <= bound * (1 + 1e-12)


def test_the_bound_is_sharp_for_a_linear_flow() -> None:
    """y' = y, whose step is the stability function: of kutta4 the exponential series up to the fourth power."""
    net = Network(2, 3, activation="identity", tableau="kutta4", time_steps="free")
    u = net.controls(K=[np.eye(2)] * 3, h=[0.5, 0.0, 0.25])
    expected = math.prod(sum(h**k / math.factorial(k) for k in range(5)) for h in (0.5, 0.25))
    assert net.lipschitz_bound(u) == pytest.approx(expected, rel=1e-14)
    plain = Network.preset("net", 2, 3, activation="identity")
    assert plain.lipschitz_bound(plain.controls(K=[2 * np.eye(2)] * 3)) == pytest.approx(8, rel=1e-14)


def test_negative_steps_and_stage_controls_count_with_their_sizes() -> None:
    method = Tableau([[0, 0], [-0.5, 0]], [2, -1])
    net = Network(1, 1, tableau=method, stage_controls=True, activation="sigmoid", time_steps="free")
    u = net.controls(K=[[[[4.0]], [[8.0]]]], h=[-0.1])  # L = 1 and 2
    assert net.lipschitz_bound(u) == pytest.approx(1 + 0.1 * (2 * 1 + 1 * 2 * (1 + 0.1 * 0.5 * 1)), rel=1e-14)


def test_an_implicit_step_has_a_bound_while_its_equation_has_one_solution() -> None:
    implicit_euler = Tableau([[1]], [1])
    assert step_bound(implicit_euler, 0.5, np.array([1.5])) == pytest.approx(1 / (1 - 0.75), rel=1e-14)
    assert step_bound(implicit_euler, 0.5, np.array([2.0])) == math.inf


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_steepest_slopes_are_smallest_upper_bounds(activation: str) -> None:
    net = Network.preset("net", 1, 1, activation=activation)
    x = np.linspace(-40, 40, 80_001)[:, None]
    slopes = net.tangent(net.controls(K=[[[1.0]]]), x, dX=np.ones_like(x))[-1]
    assert np.abs(slopes).max() == pytest.approx(FACTS[activation].steepest, rel=1e-12)


def test_every_field_has_a_bound_and_every_loss_a_sensitivity() -> None:
    assert {FIELDS[name].swept_as for name in BOUNDED_FIELDS} == set(FIELD_BOUNDS)
    net = Network(2, 3, field="polynomial", degree=2)
    with pytest.raises(
        ValueError, match=r"field='polynomial' has no Lipschitz constant, dense, .*, mlp, gradient have"
    ):
        net.lipschitz_bound(net.init())
    for loss in LOSSES:
        problem = random_problem(Network(2, 2), samples=2)
        assert problem.net.sensitivity(*problem.data, Objective(loss)).shape == (2, 2)
