"""Layers that share controls: the network is one with equal controls, and its gradient adds up over each set."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from problems import FIELDS, Problem, field_options, random_problem

import ocdl
from ocdl import Network, Objective
from ocdl.network.files import network_from_dict, network_to_dict

INTERVALS: list[Any] = [1, 2, 3, (0, 0, 0, 0, 1, 2), (0, 1, 1, 1, 1, 1)]
SETTINGS: list[dict[str, Any]] = [
    {"tableau": "kutta4", "time_steps": "free"},
    {"tableau": "midpoint", "stage_controls": True, "augment": 1},
    {"tableau": "implicit_midpoint", "time_steps": "simplex"},
    {"residual": False},
    *({**field_options(field), "augment": 6} for field in FIELDS),
]


def shared_problem(control_intervals: Any, layers: int = 6, samples: int = 7, **settings: Any) -> Problem:
    return random_problem(Network(2, layers, control_intervals=control_intervals, **settings), samples)


def unshared(net: Network, u: ocdl.Controls) -> tuple[Network, ocdl.Controls]:
    """Return the network whose layers have their own controls, equal where the given one shares them."""
    own, sets = replace(net, control_intervals=None), list(net.layer_sets)
    parts = u.parts() | {part.name: u.parts()[part.name][sets] for part in net.parts if part.role == "field"}
    return own, own.controls(**{name: part for name, part in parts.items() if net.residual or name != "h"})


def summed(net: Network, part: Any) -> Any:
    total = np.zeros((max(net.layer_sets) + 1, *part.shape[1:]))
    np.add.at(total, list(net.layer_sets), part)
    return total


@pytest.mark.parametrize("settings", SETTINGS, ids=repr)
@pytest.mark.parametrize("intervals", INTERVALS, ids=repr)
def test_shared_controls_are_equal_ones_and_gradients_add_up(intervals: Any, settings: dict[str, Any]) -> None:
    p = shared_problem(intervals, **settings)
    own, u = unshared(p.net, p.u)
    np.testing.assert_array_equal(p.net.forward(p.u, p.X).states, own.forward(u, p.X).states)
    objective = Objective("cross_entropy")
    J, g = p.net.value_and_grad(*p.data, objective, sample_weight=p.sample_weight, input_grad=True)
    expected, by_layer = own.value_and_grad(u, p.X, p.y, objective, sample_weight=p.sample_weight, input_grad=True)
    assert J == expected
    for part in (part.name for part in p.net.parts if part.role == "field"):
        expected_part = summed(p.net, getattr(by_layer, part))
        np.testing.assert_allclose(getattr(g, part), expected_part, rtol=1e-12, atol=1e-14)
    for part in ("h", "W", "mu", "X"):
        np.testing.assert_allclose(getattr(g, part), getattr(by_layer, part), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("settings", SETTINGS, ids=repr)
def test_the_gradient_is_that_of_differences(settings: dict[str, Any]) -> None:
    p = shared_problem(3, **settings)
    objective = Objective("cross_entropy", penalties=[ocdl.TimeSmoothness(0.1), ocdl.Tikhonov(0.1)])
    if p.net.time_steps != "free":
        p.du.h[...] = 0
    _, g = p.net.value_and_grad(*p.data, objective)
    e = 1e-5
    above, below = (p.net.value(p.u + step * p.du, p.X, p.y, objective) for step in (e, -e))
    assert (above - below) / (2 * e) == pytest.approx(g.dot(p.du), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("intervals", INTERVALS, ids=repr)
def test_second_derivatives_stability_and_bounds_use_the_control_sets(intervals: Any) -> None:
    p = shared_problem(intervals, tableau="kutta3")
    own, u = unshared(p.net, p.u)
    du = unshared(p.net, p.du)[1]
    objective = Objective("cross_entropy")
    product = p.net.hessian_product(p.u, p.X, p.y, objective, du=p.du)
    expected = own.hessian_product(u, p.X, p.y, objective, du=du)
    np.testing.assert_allclose(product.K, summed(p.net, expected.K), rtol=1e-11, atol=1e-13)
    assert p.net.lipschitz_bound(p.u) == own.lipschitz_bound(u)
    for layer in range(6):
        np.testing.assert_array_equal(
            p.net.hamiltonian_hessian(*p.data, objective, layer=layer),
            own.hamiltonian_hessian(u, p.X, p.y, objective, layer=layer),
        )
    for mine, other in zip(vars(p.net.stability(p.u, p.X)).values(), vars(own.stability(u, p.X)).values(), strict=True):
        np.testing.assert_array_equal(mine, other)
    assert p.net.certify(p.u, p.X, p.y).passed


def test_equal_maps_are_equal_networks() -> None:
    assert Network(2, 5, control_intervals=5) == Network(2, 5, control_intervals=(0, 1, 2, 3, 4)) == Network(2, 5)
    net = Network(2, 5, control_intervals=[0, 0, 0, 1, 1])
    assert net == Network(2, 5, control_intervals=2)
    assert hash(net) == hash(Network(2, 5, control_intervals=2))
    uneven = Network(2, 5, control_intervals=(0, 1, 1, 1, 1))
    assert net != uneven
    assert "control_intervals=(0, 1, 1, 1, 1)" in repr(uneven)
    assert pickle.loads(pickle.dumps(uneven)) == uneven
    assert (net.parts[0].axes, net.init(random_state=0).K.shape) == (("intervals", "dim", "dim"), (2, 2, 2))
    assert "2 control intervals" in net._repr_html_()


@pytest.mark.parametrize("intervals", INTERVALS, ids=repr)
def test_files_keep_the_control_sets(intervals: Any, tmp_path: Path) -> None:
    p = shared_problem(intervals)
    ocdl.save(tmp_path / "model.ocdl", p.net, p.u)
    net, u, _ = ocdl.load(tmp_path / "model.ocdl")
    assert (net, net.layer_sets) == (p.net, p.net.layer_sets)
    assert u.to_vector().tobytes() == p.u.to_vector().tobytes()


def test_a_file_stores_control_intervals_only_if_layers_share_controls() -> None:
    assert "control_intervals" not in network_to_dict(Network(2, 3))
    stored = json.loads(json.dumps(network_to_dict(Network(2, 3, control_intervals=1))))
    assert stored["control_intervals"] == [0, 0, 0]
    for wrong, message in ((1, "must be a list"), ([0], "got 1 entries"), ([0, 2, 2], r"\[1\] must be 0 or 1, got 2")):
        with pytest.raises(ValueError, match=message):
            network_from_dict(stored | {"control_intervals": wrong})


@pytest.mark.parametrize("interpolation", ["linear", "constant"])
@pytest.mark.parametrize("intervals", INTERVALS, ids=repr)
def test_refinement_keeps_the_sets(intervals: Any, interpolation: str) -> None:
    p = shared_problem(intervals, time_steps="free", tableau="kutta4")
    fine, v = p.net.refine(p.u, 3, interpolation=interpolation)
    assert fine.layer_sets == tuple(np.repeat(p.net.layer_sets, 3).tolist())
    np.testing.assert_array_equal(v.K, p.u.K)
    own, u = unshared(p.net, p.u)
    expected = own.refine(u, 3, interpolation="constant")
    np.testing.assert_array_equal(fine.predict(v, p.X), expected[0].predict(expected[1], p.X))
    many, w = p.net.resample(p.u, 13, interpolation=interpolation)
    expected = own.resample(u, 13, interpolation="constant")
    np.testing.assert_array_equal(many.predict(w, p.X), expected[0].predict(expected[1], p.X))


def test_unused_control_sets_are_removed() -> None:
    net = Network(2, 6, control_intervals=3, time_steps="free")
    u = random_problem(net, 1).u
    u.h[...] = [0.5, 0.0, 0.0, 0.0, 0.25, 0.25]
    small, v = net.prune(u)
    assert (small.n_layers, small.layer_sets) == (3, (0, 1, 1))
    np.testing.assert_array_equal(v.K, u.K[[0, 2]])
    X = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_array_equal(small.predict(v, X), net.predict(u, X))


def test_training_and_freezing() -> None:
    X, y = ocdl.datasets.make_donut1d(100, random_state=0)
    net = Network(2, 8, control_intervals=2)
    start = net.init(random_state=0)
    r = ocdl.train(net, start, X, y, max_iter=20, freeze=("K",))
    assert r.history.loss[-1] < r.history.loss[0]
    np.testing.assert_array_equal(r.controls.K, start.K)
    levels = ocdl.train_multilevel(net, None, X, y, levels=(4, 8), max_iter=5, random_state=0)
    assert levels.network == net
    with pytest.raises(ValueError, match="levels must begin with more layers than the 2 control intervals"):
        ocdl.train_multilevel(net, None, X, y, levels=3, max_iter=5)


def test_smoothness_counts_sets() -> None:
    net = Network(1, 6, control_intervals=2, horizon=2.0)
    u = net.controls(K=[[[1.0]], [[4.0]]])
    data = ([[0.0]], [1])
    smooth = Objective(penalties=ocdl.TimeSmoothness(0.1))
    assert net.value(u, *data, smooth) - net.value(u, *data) == pytest.approx(0.1 / 2 * 2 / 2.0 * 9)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (0, ValueError, "control_intervals must be at least 1, got 0"),
        (4, ValueError, "control_intervals must be at most n_layers = 3, got 4"),
        (1.5, TypeError, "control_intervals must be a whole number, got 1.5"),
        (True, TypeError, "control_intervals must be a whole number, got True"),
        ((0, 0), ValueError, "the set of each of n_layers = 3 layers, got 2 entries"),
        ((1, 1, 1), ValueError, r"control_intervals\[0\] must be 0, got 1"),
        ((0, 1, 0), ValueError, r"control_intervals\[2\] must be 1 or 2, got 0"),
        ((0, 0.5, 1), TypeError, r"control_intervals\[1\] must be a whole number, got 0.5"),
    ],
)
def test_refusals(given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Network(2, 3, control_intervals=given)


@pytest.mark.extras
@pytest.mark.parametrize("intervals", INTERVALS, ids=repr)
def test_onnx_uses_the_control_sets(intervals: Any, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    p = shared_problem(intervals, tableau="kutta3")
    ocdl.export_onnx(tmp_path / "model.onnx", p.net, p.u)
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    (outputs,) = session.run(None, {session.get_inputs()[0].name: p.X})
    np.testing.assert_allclose(outputs, p.net.predict(p.u, p.X), rtol=1e-12, atol=1e-13)
