"""The theorems of the adjoint sweep, for any tableau and field, to roundoff."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from problems import (
    ACTIVATIONS,
    FIELDS,
    LOSSES,
    REDUCTIONS,
    TABLEAUX,
    Problem,
    any_tableaux,
    field_options,
    objectives,
    problems,
    random_problem,
)

import ocdl
from ocdl import Network, Objective, Tableau

EPS = np.finfo(float).eps

named_tableaux = st.sampled_from([Tableau.named(name) for name in TABLEAUX])
any_tableau = named_tableaux | any_tableaux()


def norms(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.linalg.norm(vectors, axis=-1)


def products(p: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]:
    return (p * v).sum(axis=-1)


def relative_error(actual: NDArray[np.float64], expected: NDArray[np.float64]) -> float:
    return float(np.abs(actual - expected).max() / max(np.abs(expected).max(), np.finfo(float).tiny))


@settings(max_examples=300)
@given(problems(tableau=any_tableau), objectives)
def test_costates_and_tangents_have_a_constant_product(problem: Problem, objective: Objective) -> None:
    """<p[j], v[j]> is the same for all j, and for each sample, where the controls do not vary."""
    net = problem.net
    p = net.adjoint(*problem.data, objective)
    v = net.tangent(problem.u, problem.X, dX=problem.dX)
    drift = np.abs(products(p, v) - products(p, v)[0])
    assert (drift <= 50 * net.n_layers * EPS * norms(p).max(axis=0) * norms(v).max(axis=0)).all()


@settings(max_examples=300)
@given(problems(tableau=any_tableau), objectives)
def test_discrete_integration_by_parts(problem: Problem, objective: Objective) -> None:
    """<p[N], v[N]> - <p[0], v[0]> = sum_j <dJ/du[j], w[j]>, the steps' direction included."""
    net, w = problem.net, problem.du
    p = net.adjoint(*problem.data, objective)
    v = net.tangent(problem.u, problem.X, w, problem.dX)
    _, g = net.value_and_grad(*problem.data, objective)

    boundary = products(p[-1], v[-1]).sum() - products(p[0], v[0]).sum()
    pairs = [(getattr(g, part.name), getattr(w, part.name)) for part in net.parts if part.role != "readout"]
    interior = sum(np.vdot(gradient, direction) for gradient, direction in pairs)
    magnitude = (norms(p).max(axis=0) * norms(v).max(axis=0)).sum() + sum(np.abs(a * b).sum() for a, b in pairs)
    assert abs(boundary - interior) <= 1e-13 * magnitude


@settings(max_examples=60)
@given(problems(tableau=any_tableau, max_layers=5, max_dim=3, max_samples=3), objectives)
def test_the_gradient_is_that_of_the_transcribed_objective(problem: Problem, objective: Objective) -> None:
    net, vector, weights = problem.net, problem.u.to_vector(), problem.sample_weight
    value, g = net.value_and_grad(*problem.data, objective, sample_weight=weights, input_grad=True)
    expected = reference.value(net, vector, problem.X, problem.y, objective, weights)
    by_controls, by_data = reference.gradient(net, vector, problem.X, problem.y, objective, weights)
    assert value == pytest.approx(expected, rel=1e-13, abs=0)
    assert g.X is not None
    assert relative_error(g.to_vector(), by_controls) <= 1e-12
    assert relative_error(g.X, by_data) <= 1e-12


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("tableau", TABLEAUX)
def test_every_tableau_activation_and_loss(tableau: str, activation: str, loss: str) -> None:
    """States, outputs, value, gradient and tangents against the transcription, with all options on."""
    check_against_transcription(tableau, "dense", activation, loss)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("field", FIELDS)
def test_every_field(field: str, activation: str) -> None:
    for tableau in ("euler", "kutta3", "implicit_midpoint", "gauss2"):
        check_against_transcription(tableau, field, activation, "cross_entropy")


def check_against_transcription(tableau: str, field: str, activation: str, loss: str) -> None:
    net = Network(
        2,
        3,
        n_outputs=2,
        tableau=tableau,
        **field_options(field),
        activation=activation,
        time_steps="free",
        augment=2 if ocdl._core.fields()[field][1] else 1,
        stage_controls=True,
    )
    problem = random_problem(net, samples=3, seed=hash_of(tableau, activation, loss))
    vector, X = problem.u.to_vector(), problem.X
    objective = Objective(loss, penalties=[ocdl.Tikhonov(0.1), ocdl.L1(0.2), ocdl.TimeSmoothness(0.3)])

    t = net.forward(problem.u, X)
    assert relative_error(t.states, reference.states(net, vector, X)) <= 1e-13
    assert relative_error(t.outputs, reference.outputs(net, vector, X)) <= 1e-13
    value, g = net.value_and_grad(*problem.data, objective)
    assert value == pytest.approx(reference.value(net, vector, X, problem.y, objective), rel=1e-13, abs=0)
    if net.tableau.is_explicit:
        assert relative_error(g.to_vector(), reference.gradient(net, vector, X, problem.y, objective)[0]) <= 1e-13
    w = problem.du.to_vector()
    slope = reference.slope(net, vector, X, problem.y, objective, direction=w)
    assert abs(g.to_vector() @ w - slope) <= 1e-13 * np.abs(g.to_vector() * w).sum()
    expected = reference.tangents(net, vector, X, problem.du.to_vector(), problem.dX)
    assert relative_error(net.tangent(problem.u, X, problem.du, problem.dX), expected) <= 1e-13


def hash_of(*names: str) -> int:
    return sum(sum(map(ord, name)) * 31**position for position, name in enumerate(names))


@settings(max_examples=60)
@given(
    problems(
        tableau=any_tableaux(zero_weights=False) | named_tableaux.filter(lambda tableau: np.all(tableau.b != 0)),
        residual=True,
        max_layers=8,
        max_dim=4,
        max_samples=3,
    ),
    objectives,
)
def test_the_adjoint_is_the_symplectic_partner(problem: Problem, objective: Objective) -> None:
    """Where no weight is 0, the costates are those of the paper's symplectic partitioned Runge-Kutta pair."""
    net, vector, X = problem.net, problem.u.to_vector(), problem.X
    final = reference.final_costate(net, vector, X, problem.y, objective)
    expected = reference.partitioned_costates(net, vector, X, final)
    p = net.adjoint(*problem.data, objective)
    assert relative_error(p[-1], final) <= 1e-13
    assert relative_error(p, expected) <= 1e-12


@pytest.mark.parametrize("reduction", REDUCTIONS)
@given(problem=problems())
@settings(max_examples=25)
def test_the_first_costate_is_the_gradient_of_the_data(problem: Problem, reduction: str) -> None:
    objective = Objective(reduction=reduction)
    _, g = problem.net.value_and_grad(*problem.data, objective, input_grad=True)
    p = problem.net.adjoint(*problem.data, objective)
    np.testing.assert_array_equal(g.X, p[0][:, : problem.net.n_features])


@pytest.mark.parametrize("tableau", TABLEAUX)
def test_fixed_steps_have_no_gradient_and_the_rest_is_that_of_free_steps(tableau: str) -> None:
    free, fixed = (Network(2, 4, tableau=tableau, time_steps=steps) for steps in ("free", "fixed"))
    problem = random_problem(free, samples=5)
    _, g_free = free.value_and_grad(*problem.data)
    u = fixed.from_vector(problem.u.to_vector())
    _, g_fixed = fixed.value_and_grad(u, problem.X, problem.y)
    assert not g_fixed.h.any()
    assert g_free.h.any()
    for part in ("K", "b", "W", "mu"):
        np.testing.assert_array_equal(getattr(g_fixed, part), getattr(g_free, part))
