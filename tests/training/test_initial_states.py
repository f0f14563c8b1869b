"""Initial states learned beside the controls, against the reference's formulas and the complex step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from problems import random_problem

import ocdl
from ocdl import InitialStates, Network, Objective
from ocdl.base.randomness import draw_seed
from ocdl.distributed.ranks import join_ranks
from ocdl.training.problem import Problem

SQUARED = Objective("squared_error")
NET = Network(2, 4, n_outputs=2, field="mlp", width=3, control_intervals=1, augment=1, tableau="heun")
X = np.array([[1.0, np.nan], [0.5, -0.2], [np.nan, np.nan]])
Y = np.array([[0.3, 0.1], [0.2, -0.4], [0.0, 0.6]])


def objective_of(net: Network, vector: Any, data: dict[str, Any], options: InitialStates) -> Any:
    """J(u, S) by the formula."""
    u, S = vector[: net.n_controls], vector[net.n_controls :].reshape(-1, net.dim)
    states = reference_states(net, u, S)
    parts = reference.parts(net, u)
    residuals = states[-1] @ parts["W"].T + parts["mu"] - data["y"]
    w, m = data["sample_weight"], len(S)
    total = (w * (residuals**2).sum(axis=1)).sum() / 2 / w.sum()
    observed = np.nan_to_num(data["X"])
    distance = np.where(np.isnan(data["X"]), 0, S[:, : net.n_features] - observed)
    total += options.weight / (2 * m) * (w[:, None] * distance**2).sum()
    for i, n in enumerate([] if options.next_window is None else np.asarray(options.next_window)):
        if n >= 0:
            total += options.continuity_weight / (2 * m) * ((states[-1][i] - S[n]) ** 2).sum()
    return total


def reference_states(net: Network, u: Any, S: Any) -> Any:
    """The states from S on: a step at a time of the network, which takes all components."""
    trajectory, parts = [S], reference.parts(net, u)
    for layer in range(net.n_layers):
        _, k = reference.stages_of_layer(net, parts, layer, trajectory[-1])
        step = sum(b * k_i for b, k_i in zip(net.tableau.b, k, strict=True)) if net.residual else 0
        trajectory.append(trajectory[-1] + parts["h"][layer] * step if net.residual else k[0])
    return np.array(trajectory)


def value_and_gradient(net: Network, vector: Any, data: dict[str, Any], options: InitialStates) -> tuple[float, Any]:
    """Return J and the gradient of the first evaluation of a training."""
    with join_ranks(None) as ranks:
        arguments = ranks, net, data["X"], data["y"], SQUARED, data["sample_weight"]
        problem = Problem.from_arguments(*arguments, None, None, (), 0.0, 0.0, options)
    core = problem.start(vector, ocdl.Backtracking(), draw_seed(0))
    core.start()
    return core.record[0], core.state()["gradient"]


@given(
    field=st.sampled_from(["dense", "mlp", "polynomial", "hamiltonian"]),
    tableau=st.sampled_from(["euler", "kutta4", "gauss2"]),
    seed=st.integers(0, 2**20),
    follow=st.booleans(),
    samples=st.sampled_from([1, 3, 40]),
)
def test_value_and_gradient_are_those_of_the_formula(
    field: str, tableau: str, seed: int, follow: bool, samples: int
) -> None:
    options: dict[str, Any] = {"mlp": {"width": 3}, "polynomial": {"degree": 2}}.get(field, {})
    net = Network(3, 3, n_outputs=2, field=field, tableau=tableau, augment=1, time_steps="free", horizon=0.5, **options)
    problem, rng = random_problem(net, samples, seed), np.random.default_rng(seed)
    observed = np.where(rng.random(problem.X.shape) < 0.3, np.nan, problem.X)
    data = {"X": observed, "y": rng.normal(size=(samples, 2)), "sample_weight": problem.sample_weight + 0.1}
    windows = np.where(rng.random(samples) < 0.3, -1, (np.arange(samples) + 1) % samples)
    windows[windows == np.arange(samples)] = -1
    weights = {"continuity_weight": 0.7, "next_window": windows} if follow else {}
    states = InitialStates(0.4, **weights)
    vector = np.concatenate([problem.u._vector, rng.normal(size=samples * net.dim) * 0.5])
    value, gradient = value_and_gradient(net, vector, data, states)
    assert value == pytest.approx(objective_of(net, vector, data, states), rel=1e-12)
    direction = rng.normal(size=len(vector))
    expected = objective_of(net, vector + 1e-30j * direction, data, states).imag / 1e-30
    scale = np.linalg.norm(gradient) * np.linalg.norm(direction)
    assert abs(gradient @ direction - expected) < (1e-12 if net.tableau.is_explicit else 1e-11) * scale


def train(initial_states: InitialStates = InitialStates(0.1), **more: Any) -> ocdl.Result:  # noqa: B008
    settings: dict[str, Any] = {"objective": SQUARED, "optimiser": ocdl.LBFGS(), "max_iter": 20} | more
    return ocdl.train(NET, NET.init(0), X, Y, initial_states=initial_states, **settings)


def test_a_large_weight_keeps_what_was_observed_and_leaves_the_rest_free() -> None:
    states = train(InitialStates(1e8)).initial_states
    assert states is not None
    assert states.shape == (3, 3)
    is_observed = ~np.isnan(X)
    assert_allclose(states[:, :2][is_observed], X[is_observed], atol=1e-6)
    assert np.all(states[:, :2][~is_observed] != 0)
    assert np.all(states[:, 2] != 0)


def test_windows_become_one_trajectory() -> None:
    """The series of y' = A y in four windows, whose starts are observed with errors."""
    A, rng = np.array([[0.0, 1.0], [-1.0, 0.0]]), np.random.default_rng(0)
    angles = np.linspace(0, 2, 5)
    series = np.column_stack([np.cos(angles), -np.sin(angles)])
    starts, ends = series[:-1] + 0.1 * rng.normal(size=(4, 2)), series[1:]
    net = Network(2, 4, n_outputs=2, field="polynomial", degree=1, control_intervals=1, tableau="kutta4", horizon=0.5)
    u = net.init(0)
    u.W[...], u.mu[...] = np.eye(2), 0
    u.C[..., 1:] = A
    options = InitialStates(0.01, continuity_weight=100.0, next_window=[1, 2, 3, -1])
    settings: dict[str, Any] = {"objective": SQUARED, "optimiser": ocdl.LBFGS(), "max_iter": 300, "freeze": ("W", "mu")}
    r = ocdl.train(net, u, starts, ends, initial_states=options, **settings)
    assert r.initial_states is not None
    jumps = net.final_state(r.controls, r.initial_states)[:-1] - r.initial_states[1:]
    assert np.abs(jumps).max() < 1e-3
    assert np.abs(r.initial_states - series[:-1]).max() < np.abs(starts - series[:-1]).max() / 4


def test_a_resumed_training_has_the_same_bits(tmp_path: Path) -> None:
    whole = train(max_iter=12)
    train(max_iter=5, checkpoint=tmp_path / "c")
    resumed = train(max_iter=12, checkpoint=ocdl.Checkpoint(tmp_path / "c", resume=True))
    assert_array_equal(resumed.controls._vector, whole.controls._vector)
    assert whole.initial_states is not None
    assert resumed.initial_states is not None
    assert_array_equal(resumed.initial_states, whole.initial_states)
    with pytest.raises(ValueError, match=r"initial_states: weight is 0\.1"):
        train(InitialStates(0.2), checkpoint=ocdl.Checkpoint(tmp_path / "c", resume=True))


def test_early_stopping_returns_the_states_of_the_best_iterate() -> None:
    held_out = ocdl.Validation(np.nan_to_num(X), Y + 1, patience=1)
    r = train(validation=held_out, eval_every=1, max_iter=50)
    assert r.status is ocdl.Status.EARLY_STOPPING
    best = int(np.nanargmin(r.history.val_loss))
    assert r.initial_states is not None
    assert_array_equal(r.initial_states, train(max_iter=int(r.history.evaluated[best])).initial_states)


@pytest.mark.parametrize("optimiser", [ocdl.Adam(lr=0.01), ocdl.Armijo(), ocdl.Backtracking()])
def test_other_methods_learn_them_too(optimiser: Any) -> None:
    assert np.all(np.isfinite(train(optimiser=optimiser).initial_states))  # type: ignore[arg-type]


class Custom:
    def value_and_grad(self, outputs: NDArray[Any], targets: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        return 0.5 * ((outputs - targets) ** 2).sum(axis=1), outputs - targets


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"optimiser": ocdl.NewtonCG()}, "cannot be learned with NewtonCG"),
        ({"optimiser": ocdl.Adam(batch_size=2)}, "without batch_size"),
        ({"objective": Objective(Custom())}, "custom loss"),
        ({"initial_states": 0.1}, "must be an ocdl.InitialStates"),
        ({"initial_states": InitialStates(1, continuity_weight=1, next_window=[1, -1])}, "2 windows but X has 3"),
    ],
)
def test_what_cannot_be_combined_says_so(more: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        train(**more)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weight": -1}, "weight"),
        ({"weight": 1, "continuity_weight": 1}, "belong together"),
        ({"weight": 1, "continuity_weight": 0, "next_window": [-1]}, "continuity_weight"),
        ({"weight": 1, "continuity_weight": 1, "next_window": [0.5]}, "whole numbers"),
        ({"weight": 1, "continuity_weight": 1, "next_window": [1, 2]}, r"next_window\[1\] is 2"),
        ({"weight": 1, "continuity_weight": 1, "next_window": [0, -1]}, "the window itself"),
        ({"weight": 1, "continuity_weight": 1, "next_window": [2, 2, -1]}, "has 2 twice"),
    ],
)
def test_wrong_settings_name_the_argument(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        InitialStates(**arguments)


def test_infinite_entries_of_X_are_refused() -> None:
    with pytest.raises(ValueError, match=r"X\[0, 0\] is inf"):
        ocdl.train(NET, NET.init(0), [[np.inf, 0]], Y[:1], objective=SQUARED, initial_states=InitialStates(1))
