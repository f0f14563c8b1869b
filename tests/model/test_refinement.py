"""Depth as time: refined and resampled networks have the flow of the original."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from problems import EXPLICIT, random_problem

import ocdl
from ocdl import Network
from ocdl.depth.pruning import prune
from ocdl.depth.refinement import refine, resample
from ocdl.model.flow import Flow

FREE = Network(2, 6, time_steps="free", n_outputs=2, augment=1)


def flow(net: Network, u: ocdl.Controls, X: NDArray[np.float64]) -> NDArray[np.float64]:
    return net.forward(u, X).states[-1]


def differences(net: Network, u: ocdl.Controls, X: NDArray[np.float64], factors: list[int]) -> list[float]:
    """Return how far the flow of the network is from that of much finer ones, for refined networks."""
    finest = flow(*net.refine(u, 4 * factors[-1], interpolation="constant"), X)
    return [float(np.abs(flow(*net.refine(u, k, interpolation="constant"), X) - finest).max()) for k in factors]


@pytest.mark.parametrize("tableau", EXPLICIT)
def test_the_error_of_constant_refinement_falls_with_the_order(tableau: str) -> None:
    net = Network(2, 4, tableau=tableau, time_steps="free", horizon=2.0)
    problem = random_problem(net, samples=5, seed=1)
    coarse, fine = differences(net, problem.u, problem.X, [4, 8])
    assert math.log2(coarse / fine) == pytest.approx(net.tableau.order, abs=0.35)


def test_linear_refinement_follows_smooth_controls() -> None:
    """With K(t) sampled at N midpoints the flow of the refined network is that of K(t) up to O(1/N^2)."""

    def sampled(layers: int) -> tuple[Network, ocdl.Controls]:
        net = Network(2, layers, tableau="kutta4")
        t = (np.arange(layers) + 0.5) / layers
        K = np.stack([np.cos(3 * t), -2 * np.sin(t), 2 * t, np.exp(-t)], axis=1).reshape(layers, 2, 2)
        return net, net.controls(K=K, b=np.stack([t, 1 - t**2], axis=1))

    X = np.random.default_rng(0).normal(size=(5, 2))
    exact = flow(*sampled(4096), X)
    errors = []
    for layers in (16, 32):
        net, u = sampled(layers)
        errors.append(np.abs(flow(*net.refine(u, 8), X) - exact).max())
    assert math.log2(errors[0] / errors[1]) > 1.7


@pytest.mark.parametrize("interpolation", ["linear", "constant"])
@given(st.integers(0, 2**32), st.integers(1, 5))
@settings(max_examples=30)
def test_refinement_splits_the_steps_and_stays_between_the_controls(interpolation: str, seed: int, factor: int) -> None:
    u = random_problem(FREE, samples=1, seed=seed).u
    net, v = FREE.refine(u, factor, interpolation=interpolation)
    assert net == Network(2, 6 * factor, time_steps="free", n_outputs=2, augment=1)
    np.testing.assert_array_equal(v.h, np.repeat(u.h / factor, factor))
    np.testing.assert_array_equal(v.W, u.W)
    np.testing.assert_array_equal(v.mu, u.mu)
    assert v.K.min() >= u.K.min()
    assert v.K.max() <= u.K.max()
    if interpolation == "constant" or factor == 1:
        np.testing.assert_array_equal(v.K, np.repeat(u.K, factor, axis=0))


def test_nothing_is_interpolated_across_a_change_of_sign_and_zero_steps_do_not_count() -> None:
    net = Network(1, 6, time_steps="free")
    u = net.controls(K=np.reshape([1.0, 99.0, 3.0, 10.0, 50.0, 20.0], (6, 1, 1)), h=[1, 0, 1, -1, -1, 2])
    _, v = net.refine(u, 2)
    expected = [[1, 1.5], [99, 99], [2.5, 3], [10, 20], [40, 50], [20, 20]]
    np.testing.assert_allclose(v.K.ravel(), np.ravel(expected), rtol=1e-15)


def test_the_interpolation_is_linear_in_time_not_in_layers() -> None:
    net = Network(1, 2, time_steps="free")
    u = net.controls(K=[[[0.0]], [[1.0]]], h=[3.0, 1.0])  # midpoints 1.5 and 3.5
    np.testing.assert_allclose(net.refine(u, 2)[1].K.ravel(), [0, (2.25 - 1.5) / 2, (3.25 - 1.5) / 2, 1], rtol=1e-15)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("factor", [2, 3, 7])
def test_steps_stay_on_the_simplex(factor: int, dtype: str) -> None:
    net = Network.preset("odenet+simplex", 2, 20, horizon=0.7, dtype=dtype)
    u = random_problem(net, samples=1).u
    u.h[:] = ocdl.project_simplex(u.h * np.arange(-3, 17), 0.7)
    assert (u.h == 0).any()
    for fine, v in (net.refine(u, factor), net.resample(u, 13)):
        assert v.h.min() >= 0
        assert float(v.h.sum(dtype=np.float64)) == pytest.approx(0.7, rel=20 * float(np.finfo(dtype).eps))
        assert fine.dtype == net.dtype


def test_stages_are_refined_one_by_one() -> None:
    stages = Network(2, 3, tableau="kutta4", stage_controls=True)
    single = Network(2, 3)
    u = random_problem(stages, samples=1).u
    _, v = stages.refine(u)
    for i in range(4):
        _, expected = single.refine(single.controls(K=u.K[:, i], b=u.b[:, i], h=u.h))
        np.testing.assert_array_equal(v.K[:, i], expected.K)
        np.testing.assert_array_equal(v.b[:, i], expected.b)


@pytest.mark.parametrize("interpolation", ["linear", "constant"])
def test_resampling_equal_steps_to_their_number_changes_nothing(interpolation: str) -> None:
    net = Network(2, 8, tableau="kutta3")
    u = net.init(random_state=0)
    same, v = net.resample(u, 8, interpolation=interpolation)
    assert same == net
    np.testing.assert_allclose(v.to_vector(), u.to_vector(), rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(
        net.resample(u, 24, interpolation=interpolation)[1].to_vector(),
        net.refine(u, 3, interpolation=interpolation)[1].to_vector(),
        rtol=1e-13,
        atol=1e-13,
    )


@given(st.integers(0, 2**32), st.integers(6, 40))
@settings(max_examples=30)
def test_resampling_keeps_the_controls_in_time(seed: int, layers: int) -> None:
    """Time forward and backward stay what they were, and a step is never longer than needed."""
    u = random_problem(FREE, samples=1, seed=seed).u
    _, v = FREE.resample(u, layers)
    assert len(v.h) == layers
    assert v.h.all()
    for part in (np.maximum, np.minimum):
        assert part(v.h, 0).sum() == pytest.approx(part(u.h, 0).sum(), rel=1e-13)


def test_many_equal_layers_have_the_flow_of_uneven_ones() -> None:
    net = Network(2, 4, tableau="kutta4", time_steps="free")
    X = np.random.default_rng(0).normal(size=(5, 2))
    u = net.controls(K=net.init(random_state=1).K, h=[0.5, 0.0, -0.2, 0.3])
    exact = flow(*net.refine(u, 64, interpolation="constant"), X)
    _, resampled = net.resample(u, 100, interpolation="constant")
    np.testing.assert_array_equal(np.unique(np.sign(resampled.h), return_counts=True), [[-1, 1], [20, 80]])
    np.testing.assert_allclose(flow(*net.resample(u, 100, interpolation="constant"), X), exact, rtol=1e-8)


def test_refusals_name_the_argument() -> None:
    net, plain = Network(2, 3, time_steps="free"), Network.preset("net", 2, 3)
    u = net.init(random_state=0)
    for refused, message in (
        (lambda: plain.refine(plain.init(0)), "feed-forward"),
        (lambda: plain.resample(plain.init(0), 5), "feed-forward"),
        (lambda: net.refine(u, 0), "factor must be at least 1"),
        (lambda: net.refine(u, interpolation="cubic"), "interpolation must be one of 'linear', 'constant'"),
        (lambda: net.resample(u, 0), "n_layers must be at least 1"),
        (lambda: net.resample(net.controls(h=[1, -1, 1]), 2), "n_layers must be at least 3, one for each run"),
        (lambda: net.resample(net.controls(h=np.zeros(3)), 2), "u.h is 0 in every layer"),
        (lambda: net.refine(plain.init(0)), "u does not fit the network"),
    ):
        with pytest.raises(ValueError, match=message):
            refused()
    with pytest.raises(TypeError, match="u must be Controls"):
        net.refine(np.zeros(3))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Flow, Network])
def test_derived_flows_have_the_same_class(kind: type[Flow]) -> None:
    net = kind(2, 4, time_steps="free")
    u = net.controls(K=np.ones((4, 2, 2)), h=[0.5, 0.0, 0.25, 0.25])
    networks = [refine(net, u), resample(net, u, 6), prune(net, u)]
    assert [(type(new), new.n_layers) for new, _ in networks] == [(kind, 8), (kind, 6), (kind, 3)]
    assert all(new.predict(v, [[1.0, 2.0]]).shape == (1, 1) for new, v in networks)
    assert (net == Network(2, 4, time_steps="free")) == (kind is Network)
