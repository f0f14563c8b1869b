"""GroupL1: groups of controls that become exactly 0, against its formula and its conditions of optimality."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import ocdl
from ocdl import LBFGS, Armijo, Backtracking, GroupL1, Network, Objective, Tikhonov

METHODS = {"backtracking": Backtracking(), "armijo": Armijo(), "lbfgs": LBFGS()}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)
NET = Network(5, 3, tableau="heun")
COLUMNS = GroupL1(0.005, ("K", "W"), "dim")
SMOOTH = Tikhonov(1e-3)


def groups_of_columns(u: ocdl.Controls) -> Any:
    """The columns of K in all layers and of W, (groups, entries)."""
    return np.column_stack([np.moveaxis(u.K, 2, 0).reshape(5, -1), u.W.T])


def train(method: Any, penalties: Any = (COLUMNS, SMOOTH), **more: Any) -> ocdl.Result:
    settings: dict[str, Any] = {"max_iter": 20_000, "tol": 1e-7} | more
    objective = Objective("cross_entropy", penalties=penalties)
    return ocdl.train(NET, NET.init(0), X, Y, objective=objective, optimiser=method, **settings)


def test_the_value_is_the_sum_of_the_norms_and_the_gradient_is_its() -> None:
    u = NET.from_vector(RNG.normal(size=NET.n_controls))
    u.K[:, :, 2], u.W[:, 2] = 0, 0
    value, gradient = NET.value_and_grad(u, X, Y, Objective(penalties=GroupL1(0.7, ("K", "W"), "dim")))
    without, other = NET.value_and_grad(u, X, Y, Objective())
    norms = np.linalg.norm(groups_of_columns(u), axis=1)
    assert value - without == pytest.approx(0.7 * norms.sum(), rel=1e-13)
    expected = 0.7 * groups_of_columns(u) / np.where(norms > 0, norms, 1)[:, None]
    assert_allclose(groups_of_columns(gradient - other), expected, atol=1e-13)


@pytest.mark.parametrize("method", METHODS)
def test_a_minimum_satisfies_the_conditions_of_optimality(method: str) -> None:
    r = train(METHODS[method])
    assert r.status is ocdl.Status.GRADIENT
    assert r.n_evals < 2000
    gradient = NET.value_and_grad(r.controls, X, Y, Objective("cross_entropy", penalties=SMOOTH))[1]
    u, g = groups_of_columns(r.controls), groups_of_columns(gradient)
    norms = np.linalg.norm(u, axis=1)
    assert_array_equal(norms == 0, [False, False, True, True, True])
    assert np.all(np.linalg.norm(g[2:], axis=1) <= 0.005 + 1e-7)
    assert_allclose(g[:2] + 0.005 * u[:2] / norms[:2, None], 0, atol=2e-7)


@pytest.mark.parametrize("method", ["backtracking", "lbfgs"])
def test_single_numbers_and_groups_are_penalised_together(method: str) -> None:
    r = train(METHODS[method], (COLUMNS, ocdl.L1(0.001), SMOOTH))
    assert r.status is ocdl.Status.GRADIENT
    assert r.n_evals < 2000
    gradient = NET.value_and_grad(r.controls, X, Y, Objective("cross_entropy", penalties=SMOOTH))[1]
    u, g = groups_of_columns(r.controls), groups_of_columns(gradient)
    norms = np.linalg.norm(u, axis=1)
    assert 0 < (u[norms > 0] == 0).sum() < u[norms > 0].size
    inside = np.sign(g) * np.maximum(np.abs(g) - 0.001, 0)
    assert np.all(np.linalg.norm(inside[norms == 0], axis=1) <= 0.005 + 1e-7)
    rest = g + 0.005 * u / np.where(norms > 0, norms, 1)[:, None] + 0.001 * np.sign(u)
    assert_allclose(rest[(u != 0) & (norms > 0)[:, None]], 0, atol=2e-7)


def test_hidden_units_go_and_pruning_removes_them() -> None:
    data = np.linspace(-2, 2, 60)[:, None]
    net = Network(1, 5, n_outputs=1, field="mlp", width=12, control_intervals=1, tableau="kutta4")
    penalty = GroupL1(0.0003, ("K", "b", "V"), "width")
    objective = Objective("squared_error", penalties=penalty)
    r = ocdl.train(
        net, net.init(0), data, np.tanh(3 * data)[:, 0], objective=objective, optimiser=LBFGS(), max_iter=3000
    )
    is_zero = ~r.controls.parts()["V"].any(axis=(0, 1))
    assert 0 < is_zero.sum() < 12
    assert not r.controls.K[:, is_zero].any()
    small, u = net.prune(r.controls)
    assert small.width == 12 - is_zero.sum()
    assert_allclose(small.predict(u, data), net.predict(r.controls, data), atol=1e-12)


def test_resumed_trainings_have_the_same_bits(tmp_path: Path) -> None:
    whole = train(LBFGS(), max_iter=30)
    train(LBFGS(), max_iter=12, checkpoint=tmp_path / "c")
    resumed = train(LBFGS(), max_iter=30, checkpoint=ocdl.Checkpoint(tmp_path / "c", resume=True))
    assert_array_equal(resumed.controls.to_vector(), whole.controls.to_vector())


def test_an_estimator_is_stored_with_it(tmp_path: Path) -> None:
    model = ocdl.ODEClassifier(penalties=COLUMNS, max_iter=500, random_state=0).fit(X, Y)
    ocdl.save(tmp_path / "m", model)
    assert ocdl.load(tmp_path / "m").penalties == COLUMNS


@pytest.mark.parametrize(
    ("penalties", "more", "message"),
    [
        (GroupL1(1, ("K",), "width"), {}, "groups by the axis 'width'"),
        ((COLUMNS, GroupL1(1, ("W",), "dim")), {}, "two GroupL1"),
        (COLUMNS, {"freeze": ("W",)}, "frozen"),
    ],
)
def test_what_does_not_fit_says_so(penalties: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train(LBFGS(), penalties, max_iter=3, **more)


def test_wrong_settings_name_the_argument() -> None:
    with pytest.raises(TypeError, match="axis"):
        GroupL1(1.0, ("K",), 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="weight"):
        GroupL1(-1.0, ("K",), "dim")
