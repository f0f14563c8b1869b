"""The stability report against what is known of the flow."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import reference
from problems import FIELDS, field_options, random_problem
from scipy.linalg import expm

import ocdl
from ocdl import Network
from ocdl.analysis import stability


def test_a_linear_field_has_the_eigenvalues_of_its_matrix() -> None:
    """One Euler layer is I + hK; the product of the layers is the flow."""
    net = Network(3, 4, activation="identity", time_steps="free")
    problem = random_problem(net, samples=5)
    report = net.stability(problem.u, problem.X)
    total = np.eye(3)
    for layer, (K, h) in enumerate(zip(problem.u.K, problem.u.h, strict=True)):
        total = (np.eye(3) + h * K) @ total
        assert report.growth[layer] == pytest.approx(np.linalg.norm(np.eye(3) + h * K, 2), rel=1e-13)
        assert report.total_growth[layer] == pytest.approx(np.linalg.norm(total, 2), rel=1e-13)
        assert report.abscissa[layer] == pytest.approx(np.linalg.eigvals(K).real.max(), rel=1e-12, abs=1e-13)
        assert report.log_norm[layer] == pytest.approx(np.linalg.eigvalsh((K + K.T) / 2).max(), rel=1e-12, abs=1e-13)
    np.testing.assert_array_equal(report.steps, problem.u.h)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("tableau", ["kutta4", "gauss2"])
def test_log_norm_and_abscissa_are_the_largest_over_samples_and_stages(field: str, tableau: str) -> None:
    net = Network(3, 2, augment=1, **field_options(field), tableau=tableau, stage_controls=True)
    problem = random_problem(net, samples=6)
    report = net.stability(problem.u, problem.X)
    sigma, jacobian = reference.ACTIVATIONS["tanh"], reference.FIELDS[field].jacobian
    u = reference.parts(net, problem.u.to_vector())
    for layer, states in enumerate(net.forward(problem.u, problem.X).states[:-1]):
        controls = [reference.at_stage(net, u, layer, i) for i in range(net.stages)]
        jacobians = np.array([jacobian(sigma, *at_stage, y) for at_stage in controls for y in states])
        symmetric = (jacobians + jacobians.swapaxes(1, 2)) / 2
        assert report.abscissa[layer] == pytest.approx(np.linalg.eigvals(jacobians).real.max(), abs=1e-13)
        assert report.log_norm[layer] == pytest.approx(np.linalg.eigvalsh(symmetric).max(), abs=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_the_log_norm_bounds_growth(seed: int) -> None:
    """|v(t)| <= exp(mu t) |v(0)| for y' = K y, and an implicit Euler step grows by at most 1 / (1 - h mu)."""
    K = np.random.default_rng(seed).normal(size=(3, 3))
    net = Network(3, 1, activation="identity", tableau="implicit_euler", horizon=0.1)
    report = net.stability(net.controls(K=K[None]), np.zeros((1, 3)))
    bound = report.log_norm[0]
    assert report.abscissa[0] <= bound + 1e-13
    assert report.growth[0] <= 1 / (1 - 0.1 * bound) * (1 + 1e-13)
    for t in (0.1, 1.0, 3.0):
        assert np.linalg.norm(expm(t * K), 2) <= np.exp(t * bound) * (1 + 1e-13)


def test_the_abscissa_bounds_no_growth() -> None:
    """Every layer has both eigenvalues at -0.1, and the product of all layers is large all the same."""
    shear = np.array([[-0.1, 4.0], [0.0, -0.1]])
    net = Network(2, 8, activation="identity", tableau="kutta4", horizon=8.0)
    report = net.stability(net.controls(K=[shear, shear.T] * 4), np.zeros((1, 2)))
    np.testing.assert_allclose(report.abscissa, -0.1, atol=1e-13)
    np.testing.assert_allclose(report.log_norm, 1.9, atol=1e-13)
    assert report.total_growth[-1] > 1e3
    assert (np.log(report.total_growth) <= np.cumsum(report.steps * report.log_norm)).all()


def test_the_number_of_created_networks_does_not_grow_with_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network takes longer to make than to sweep: one per layer and Jacobian made deep networks slow."""
    net = Network(2, 500)
    networks: list[object] = []
    check = Network.__post_init__
    monkeypatch.setattr(Network, "__post_init__", lambda self: (networks.append(self), check(self))[1])
    net.stability(net.init(random_state=0), [[0.0, 1.0], [1.0, 0.0]])
    assert len(networks) <= 4


def test_a_growth_beyond_the_numbers_is_infinite() -> None:
    net = Network(1, 400, activation="identity", horizon=4e3)
    report = net.stability(net.controls(K=np.ones((400, 1, 1))), [[0.0]])
    assert report.growth[0] == 11.0
    assert report.total_growth[-1] == np.inf


def test_no_direction_grows_more_than_reported() -> None:
    net = Network(2, 6, tableau="midpoint")
    problem = random_problem(net, samples=40)
    report = net.stability(problem.u, problem.X)
    v = np.linalg.norm(net.tangent(problem.u, problem.X, dX=problem.dX), axis=-1)
    assert (v[1:] / v[:-1] <= report.growth[:, None] * (1 + 1e-13)).all()
    assert (v[1:] / v[0] <= report.total_growth[:, None] * (1 + 1e-13)).all()


def test_many_samples_are_processed_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(Network(2, 3), samples=50)
    whole = problem.net.stability(problem.u, problem.X)
    monkeypatch.setattr(stability, "ENTRIES", 4 * 7)
    parts = problem.net.stability(problem.u, problem.X)
    for name in ("growth", "total_growth", "log_norm", "abscissa"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-14, atol=1e-15)


def test_a_stability_report_is_a_frozen_table() -> None:
    problem = random_problem(Network(2, 3), samples=5)
    report = problem.net.stability(problem.u, problem.X)
    lines = str(report).splitlines()
    assert lines[0].split("  ")[-1].strip() == "abscissa"
    assert [name for name in stability.COLUMNS if name in lines[0]] == list(stability.COLUMNS)
    assert "log norm" in report._repr_html_()
    assert [line.split()[0] for line in lines[1:]] == ["0", "1", "2"]
    assert len({len(line) for line in lines}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.growth = report.abscissa  # type: ignore[misc]


def test_a_feed_forward_network_has_no_flow() -> None:
    net = Network(2, 3, residual=False)
    with pytest.raises(ValueError, match="stability needs a network with residual=True"):
        net.stability(net.init(random_state=0), [[0.0, 1.0]])


def test_single_precision() -> None:
    problem = random_problem(Network(2, 3, dtype="float32"), samples=5)
    assert problem.net.stability(problem.u, problem.X).growth.dtype == np.float64
    assert isinstance(problem.net.stability(problem.u, problem.X), ocdl.Stability)
