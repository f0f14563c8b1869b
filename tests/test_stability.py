"""The stability report against what is known of the flow."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import reference
from problems import FIELDS, random_problem

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
    np.testing.assert_array_equal(report.steps, problem.u.h)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("tableau", ["kutta4", "gauss2"])
def test_the_abscissa_is_the_largest_over_samples_and_stages(field: str, tableau: str) -> None:
    net = Network(3, 2, augment=1, field=field, tableau=tableau, stage_controls=True)
    problem = random_problem(net, samples=6)
    report = net.stability(problem.u, problem.X)
    sigma, jacobian = reference.ACTIVATIONS["tanh"], reference.FIELDS[field].jacobian
    u = reference.parts(net, problem.u.to_vector())
    for layer, states in enumerate(net.forward(problem.u, problem.X).states[:-1]):
        controls = [reference.at_stage(net, u, layer, i) for i in range(net.stages)]
        jacobians = [jacobian(sigma, *at_stage, y) for at_stage in controls for y in states]
        assert report.abscissa[layer] == pytest.approx(np.linalg.eigvals(jacobians).real.max(), abs=1e-13)


def test_no_direction_grows_more_than_reported() -> None:
    net = Network(2, 6, tableau="midpoint")
    problem = random_problem(net, samples=40)
    report = net.stability(problem.u, problem.X)
    v = np.linalg.norm(net.tangent(problem.u, problem.X, dX=problem.dX), axis=-1)
    assert (v[1:] / v[:-1] <= report.growth[:, None] * (1 + 1e-13)).all()
    assert (v[1:] / v[0] <= report.total_growth[:, None] * (1 + 1e-13)).all()


def test_many_samples_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(Network(2, 3), samples=50)
    whole = problem.net.stability(problem.u, problem.X)
    monkeypatch.setattr(stability, "ENTRIES", 4 * 7)
    parts = problem.net.stability(problem.u, problem.X)
    for name in ("growth", "total_growth", "abscissa"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-14, atol=1e-15)


def test_it_prints_as_a_table_and_does_not_change() -> None:
    problem = random_problem(Network(2, 3), samples=5)
    report = problem.net.stability(problem.u, problem.X)
    lines = str(report).splitlines()
    assert lines[0].split() == ["layer", "step", "growth", "total", "abscissa"]
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
