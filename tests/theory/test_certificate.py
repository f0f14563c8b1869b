"""Certificates: every network that computes correctly has one, and no other."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from problems import field_options, random_problem

import ocdl
from ocdl import Controls, Network, Objective, Tableau
from ocdl.analysis.certificate import Certificate, Check
from ocdl.analysis.observed_order import convergence
from ocdl.analysis.taylor import taylor
from ocdl.model.architecture import FIELDS

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)


def certified(net: Network, **options: Any) -> Certificate:
    problem = random_problem(net, samples=40, seed=3)
    return net.certify(*problem.data, **options)


def check(report: Certificate, start: str) -> Check:
    (actual,) = [one for one in report.checks if one.name.startswith(start)]
    return actual


# ---- what is right holds ----


@pytest.mark.parametrize("tableau", ocdl.tableaux())
@pytest.mark.parametrize("field", FIELDS)
def test_every_tableau_and_field_has_a_certificate(tableau: str, field: str) -> None:
    net = Network(2, 8, tableau=tableau, **field_options(field), time_steps="free", n_outputs=2)
    report = certified(net)
    assert report.passed, str(report)
    symplectic = check(report, "symplecticity")
    if net.tableau.b.all():
        assert symplectic.passed
    else:
        assert symplectic.passed is None
        assert "general adjoint" in symplectic.expected


@pytest.mark.parametrize("time_steps", ["fixed", "free", "simplex"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_kind_of_steps_and_precision(time_steps: str, dtype: str) -> None:
    report = certified(Network(3, 8, tableau="kutta3", time_steps=time_steps, dtype=dtype, augment=1))
    assert report.passed, str(report)
    assert ("h" in report.residuals) == (time_steps != "fixed")
    assert check(report, "order").value == pytest.approx(3, abs=0.3)
    assert report.taylor.slope1 == pytest.approx(2, abs=0.05 if dtype == "float64" else 0.2)
    assert report.taylor.slope0 == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    "objective",
    [
        Objective("cross_entropy", reduction="sum"),
        Objective(penalties=[ocdl.Tikhonov(0.1), ocdl.TimeSmoothness(0.1)]),
        Objective(penalties=ocdl.L1(0.1)),
    ],
    ids=["cross_entropy", "smooth", "l1"],
)
def test_every_objective_with_and_without_weights(objective: Objective) -> None:
    net = Network(2, 5)
    problem = random_problem(net, samples=20)
    problem.u.b[...] = 0  # where |b| has its kink
    for weights in (None, problem.sample_weight):
        report = net.certify(*problem.data, objective, sample_weight=weights)
        assert report.passed, str(report)
    assert report.residuals["K"] == pytest.approx(
        np.linalg.norm(net.value_and_grad(*problem.data, objective, sample_weight=problem.sample_weight)[1].K)
    )


def test_checks_that_do_not_apply_are_reported() -> None:
    report = certified(Network.preset("net", 2, 5))
    assert report.passed
    assert "feed-forward" in check(report, "symplecticity").expected
    assert "no time" in check(report, "order").expected
    stages = certified(Network(2, 5, tableau="kutta4", stage_controls=True))
    assert stages.passed
    assert "no common ODE" in check(stages, "order").expected
    kinks = certified(Network(2, 5, activation="relu", tableau="kutta4"))
    assert kinks.passed
    assert check(kinks, "order").passed is None


def test_a_flow_that_is_exact_has_no_order() -> None:
    net = Network(2, 5, tableau="kutta4")
    u = net.controls(b=np.ones((5, 2)), W=[[1.0, 1.0]])
    actual = convergence(net, u, np.ones((3, 2)))
    assert math.isnan(actual.order)
    assert "exact to roundoff" in actual.reason
    assert net.certify(u, np.ones((3, 2)), [0, 1, 0]).passed


def test_a_flow_that_is_not_resolved_is_not_judged() -> None:
    net = Network(2, 4, activation="sin")
    u = net.controls(K=300 * np.ones((4, 2, 2)) * [[1, -2], [3, 1]], W=[[1.0, 1.0]])
    X = np.random.default_rng(0).normal(size=(20, 2))
    actual = convergence(net, u, X)
    assert math.isnan(actual.order)
    assert actual.reason == "it has not settled at 256 layers"
    assert len(actual.differences) == 7


@pytest.mark.parametrize("seed", range(5))
def test_a_chaotic_flow_is_not_judged(seed: int) -> None:
    """Flows that are as far from each other as the states are large may well fall slowly: that is no order."""
    net = Network(2, 10, field="hamiltonian", augment=6, horizon=10.0)
    X = np.random.default_rng(0).normal(size=(60, 2))
    report = net.certify(net.init(random_state=seed), X, np.arange(60) % 2)
    assert report.convergence.reason == "it has not settled at 640 layers"
    assert report.passed


def test_the_residual_of_a_minimiser_on_the_simplex_is_zero() -> None:
    """A gradient that pushes the steps out of the simplex is no residual."""
    net = Network.preset("odenet+simplex", 1, 2, activation="identity")
    u = net.controls(K=[[[1.0]], [[-1.0]]], h=[1.0, 0.0], W=[[1.0]])
    report = net.certify(u, [[1.0]], [1])
    assert report.residuals["h"] == 0
    assert np.linalg.norm(net.value_and_grad(u, [[1.0]], [1])[1].h) > 0


def test_sensitivities_are_those_of_single_samples() -> None:
    problem = random_problem(Network(2, 4), samples=10)
    report = problem.net.certify(*problem.data)
    np.testing.assert_array_equal(report.sensitivity, np.linalg.norm(problem.net.sensitivity(*problem.data), axis=1))
    assert check(report, "|dJ_i/dx_i|, largest").value == report.sensitivity.max()


# ---- what is wrong fails ----


class WrongGradient(Network):
    """A network whose gradient is off by a thousandth in one part."""

    part = "K"

    def value_and_grad(self, *arguments: Any, **options: Any) -> tuple[float, Controls]:
        J, g = super().value_and_grad(*arguments, **options)
        getattr(g, self.part)[...] *= 1.001
        return J, g


@pytest.mark.parametrize("part", ["K", "b", "h", "W", "mu", "X"])
def test_a_wrong_gradient_fails(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WrongGradient, "part", part)
    report = certified(WrongGradient(2, 5, tableau="kutta4", time_steps="free"))
    assert not report.passed
    assert check(report, "the same for").name.endswith(f"lowest for {part}")
    assert check(report, "the same for").value == pytest.approx(1, abs=0.2)
    if part in ("K", "b", "h", "W"):  # mu is one of 38 controls: only by itself it stands out
        assert check(report, "slope of |J(u + e w) - J(u) - e").passed is False
    assert (check(report, "<p[N], v[N]>").passed is False) == (part in ("K", "b", "h"))
    assert "FAILS" in str(report)
    assert "checks fail" in repr(report)


def test_a_wrong_gradient_fails_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    def off_by_a_tenth(self: Network, *arguments: Any, **options: Any) -> tuple[float, Controls]:
        J, g = Network.value_and_grad(self, *arguments, **options)
        g.K[...] *= 1.1
        return J, g

    monkeypatch.setattr(WrongGradient, "value_and_grad", off_by_a_tenth)
    assert not certified(WrongGradient(2, 5, dtype="float32")).passed


class WrongSweep(Network):
    """A network one of whose sweeps is wrong in one layer, by a billionth."""

    sweep = "adjoint"

    def adjoint(self, *arguments: Any, **options: Any) -> Any:
        return self._wrong("adjoint", super().adjoint(*arguments, **options))

    def tangent(self, *arguments: Any, **options: Any) -> Any:
        return self._wrong("tangent", super().tangent(*arguments, **options))

    def _wrong(self, name: str, actual: Any) -> Any:
        if name == self.sweep:
            actual[0] *= 1 + 1e-9
        return actual


@pytest.mark.parametrize("sweep", ["adjoint", "tangent"])
def test_wrong_costates_and_wrong_variations_fail(sweep: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WrongSweep, "sweep", sweep)
    report = certified(WrongSweep(2, 5))
    assert check(report, "drift").passed is False
    assert check(report, "<p[N], v[N]>").passed is False
    assert check(report, "slope of |J(u + e w) - J(u) - e").passed


class WrongOrder(Network):
    """A network that says it is kutta4, and takes Euler's steps."""

    def final_state(self, u: Controls, X: Any, **more: Any) -> Any:
        euler = Network(**(self._arguments() | {"tableau": Tableau.named("euler")}))
        return euler.final_state(u, X, **more)


def test_a_method_of_a_lower_order_fails() -> None:
    report = certified(WrongOrder(2, 8, tableau="kutta4"))
    assert check(report, "order").passed is False
    assert check(report, "order").value == pytest.approx(1, abs=0.2)


def test_a_wrong_partner_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tableau, "adjoint", lambda self: self)
    assert check(certified(Network(2, 4, tableau="kutta4")), "symplecticity").passed is False


# ---- Taylor remainders by themselves ----


@pytest.mark.parametrize("dtype", [DOUBLE, SINGLE], ids=str)
def test_slopes_of_known_functions(dtype: np.dtype[Any]) -> None:
    right = taylor(lambda e: math.exp(2 * e), 2.0, dtype)
    assert (right.slope0, right.slope1) == pytest.approx((1, 2), abs=0.05)
    assert taylor(lambda e: math.exp(2 * e), 2.01, dtype).slope1 == pytest.approx(1, abs=0.4)
    assert taylor(lambda e: 1 + e**3, 0.0, DOUBLE).slope1 == pytest.approx(3, abs=0.05)
    assert math.isnan(taylor(lambda e: 1.0, 0.0, dtype).slope1)
    linear = taylor(lambda e: 1 + e, 1.0, DOUBLE)
    assert math.isnan(linear.slope1)
    assert linear.error < 1e-10
    crossing = taylor(lambda e: 1 + e + 4.0**10 * e * (e - 4.0**-10), 1.0, DOUBLE)  # right at one step, else wrong
    assert (crossing.order1 == 0).any()
    assert crossing.error > 0.1


# ---- the report ----


def test_the_report_is_a_table() -> None:
    report = certified(Network(2, 5))
    lines = str(report).splitlines()
    assert lines[0].split() == ["check", "value", "expected", "verdict"]
    assert len(lines) == len(report.checks) + 2
    assert lines[-1] == "all 7 checks hold"
    assert repr(report) == "<Certificate: all 7 checks hold>"
    assert report._repr_html_().count("<tr>") == len(report.checks) + 1
    assert "&lt;p[j], v[j]&gt;" in report._repr_html_()


def test_a_certificate_is_frozen_and_depends_on_the_seed_only() -> None:
    net = Network(2, 5)
    first, again, other = (certified(net, random_state=seed) for seed in (0, 0, 1))
    assert str(first) == str(again)
    assert not np.array_equal(first.taylor.order1, other.taylor.order1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.drift_limit = 1.0  # type: ignore[misc]


def test_refusals_are_those_of_the_network() -> None:
    net = Network(2, 5)
    with pytest.raises(ValueError, match="X has 3 features"):
        net.certify(net.init(0), np.zeros((2, 3)), [0, 1])
    with pytest.raises(TypeError, match="objective must be an Objective"):
        net.certify(net.init(0), np.zeros((2, 2)), [0, 1], "squared")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="random_state"):
        net.certify(net.init(0), np.zeros((2, 2)), [0, 1], random_state=-1)
