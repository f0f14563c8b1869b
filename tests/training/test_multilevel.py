"""Multilevel training: the levels, the controls of the next level, and the cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ocdl
from ocdl import Network, Status, train_multilevel

X, Y = ocdl.datasets.make_donut2d(150, random_state=0)
CHAIN = ocdl.Chain((ocdl.Adam(lr=0.05), 20), (ocdl.LBFGS(), None))


def run(net: Network, u: Any = None, **options: Any) -> ocdl.MultilevelResult:
    return train_multilevel(net, u, X, Y, **({"max_iter": 30, "random_state": 0} | options))


@pytest.mark.parametrize("optimiser", [ocdl.Backtracking(), ocdl.Adam(lr=0.02, batch_size=50), CHAIN], ids=repr)
@pytest.mark.parametrize("architecture", ["resnet", "odenet", "odenet+simplex"])
def test_every_level_starts_from_the_refined_controls_of_the_last(architecture: str, optimiser: Any) -> None:
    net = Network.preset(architecture, 2, 8)
    r = run(net, levels=(2, 4, 8), optimiser=optimiser, max_iter=(10, 20, 30))
    assert [level.n_layers for level in r.networks] == [2, 4, 8]
    assert r.network == net
    u = r.networks[0].init(random_state=0)
    for level, (network, result, most) in enumerate(zip(r.networks, r.results, (10, 20, 30), strict=True)):
        if level > 0:
            _, u = r.networks[level - 1].refine(r.results[level - 1].controls, interpolation="constant")
        alone = ocdl.train(network, u, X, Y, optimiser=optimiser, max_iter=most, random_state=0)
        np.testing.assert_array_equal(result.controls.to_vector(), alone.controls.to_vector())
    assert r.controls is r.results[-1].controls
    assert r.n_iter == 60
    assert (r.status, r.message) == (r.results[-1].status, r.results[-1].message)
    if architecture == "odenet+simplex":
        assert r.controls.h.min() >= 0
        assert r.controls.h.sum() == pytest.approx(1, rel=1e-14)


def test_levels_can_have_different_optimisers() -> None:
    net = Network(2, 4)
    first, second = ocdl.GradientDescent(0.1), ocdl.LBFGS()
    r = run(net, levels=(2, 4), optimiser=(first, second), max_iter=5)
    coarse = ocdl.train(r.networks[0], r.networks[0].init(0), X, Y, optimiser=first, max_iter=5)
    _, u = r.networks[0].refine(coarse.controls, interpolation="constant")
    fine = ocdl.train(net, u, X, Y, optimiser=second, max_iter=5)
    np.testing.assert_array_equal(r.controls.to_vector(), fine.controls.to_vector())
    with pytest.raises(ValueError, match="optimiser has 1 entries but there are 2 levels"):
        run(net, levels=(2, 4), optimiser=[first])


def test_work_is_counted_in_evaluations_of_the_finest_network() -> None:
    r = run(Network(2, 20), levels=(5, 10, 20), max_iter=(40, 20, 10), optimiser=ocdl.GradientDescent(0.1))
    assert [result.n_evals for result in r.results] == [41, 21, 11]
    assert r.work == 41 / 4 + 21 / 2 + 11


def test_a_number_of_levels_halves_the_layers() -> None:
    r = run(Network(2, 21), levels=3, max_iter=2)
    assert [network.n_layers for network in r.networks] == [5, 10, 21]
    assert [len(result.controls.h) for result in r.results] == [5, 10, 21]
    single = run(Network(2, 6), levels=1)
    assert single.work == single.results[0].n_evals


def test_controls_of_the_finest_network_are_resampled_to_the_coarsest() -> None:
    net = Network(2, 8, tableau="improved_euler")
    u = net.init(random_state=3)
    r = run(net, u, levels=(2, 8), max_iter=0)
    expected = net.resample(u, 2, interpolation="constant")[1]
    np.testing.assert_array_equal(r.results[0].controls.to_vector(), expected.to_vector())


def test_constant_refinement_keeps_the_loss_up_to_the_error_of_the_method() -> None:
    r = run(Network(2, 16, tableau="kutta4"), levels=(4, 8, 16))
    for before, after in zip(r.results[:-1], r.results[1:], strict=True):
        assert after.history.loss[0] == pytest.approx(before.history.loss[-1], rel=1e-2)
        assert after.history.loss[-1] < before.history.loss[-1]


def test_frozen_parts_and_validation_hold_on_all_levels() -> None:
    net = Network(2, 8)
    u = net.controls(K=net.init(random_state=0).K, W=[[10.0, 10.0]])
    r = run(net, u, levels=(4, 8), freeze=("W", "mu"), validation=(X, Y))
    for result in r.results:
        np.testing.assert_array_equal(result.controls.W, u.W)
        np.testing.assert_array_equal(result.controls.mu, u.mu)
        assert np.isfinite(result.history.val_loss).all()


def test_a_stopped_level_is_the_last() -> None:
    r = run(Network(2, 8), levels=(2, 4, 8), max_iter=10**6, tol=0.0, callback=lambda state: True)
    assert len(r.results) == len(r.networks) == 1
    assert r.status is Status.INTERRUPTED


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"levels": (4, 2, 8)}, ValueError, "levels must increase and end with the 8 layers"),
        ({"levels": (2, 4)}, ValueError, "levels must increase and end with the 8 layers"),
        ({"levels": ()}, ValueError, "levels must increase and end with the 8 layers"),
        ({"levels": (0, 8)}, ValueError, r"levels\[0\] must be at least 1"),
        ({"levels": 5}, ValueError, "levels must be at most 4 for 8 layers"),
        ({"levels": 2.0}, TypeError, "levels must be a whole number"),
        ({"levels": 2, "max_iter": (1, 2, 3)}, ValueError, "max_iter has 3 entries but there are 2 levels"),
        ({"checkpoint": "file"}, ValueError, "checkpoint must be left out"),
        ({"interpolation": "cubic"}, ValueError, "interpolation must be one of"),
    ],
)
def test_refusals_name_the_argument(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        run(Network(2, 8), **options)


def test_only_networks_with_time_have_levels() -> None:
    with pytest.raises(ValueError, match="feed-forward"):
        run(Network.preset("net", 2, 8))
    with pytest.raises(TypeError, match="net must be a Network"):
        run("resnet")  # type: ignore[arg-type]
