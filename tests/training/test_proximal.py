"""L1 penalties: exact zeros by proximal and orthant-wise steps, checked against formulas and against scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from algorithm2 import onto_simplex
from sklearn.linear_model import LogisticRegression

import ocdl
from ocdl import L1, LBFGS, Adam, Armijo, Backtracking, Chain, GradientDescent, Network, NewtonCG, Objective, Tikhonov
from ocdl.data.row_source import RowSource

PROXIMAL = {
    "gradient descent": GradientDescent(0.1),
    "backtracking": Backtracking(),
    "armijo": Armijo(),
    "lbfgs": LBFGS(memory=5),
}
WEIGHT = 0.01


def problem(**overrides: Any) -> tuple[Network, ocdl.Controls, Any, Any]:
    X, y = ocdl.datasets.make_donut1d(200, random_state=0)
    net = Network(2, 8, **{"augment": 1, **overrides})
    return net, net.init(random_state=0), X, y


def objective(weight: float = WEIGHT, parts: Any = None) -> Objective:
    return Objective("cross_entropy", penalties=[L1(weight, parts), Tikhonov(1e-3)])


SMOOTH = Objective("cross_entropy", penalties=Tikhonov(1e-3))


def weights(net: Network, weight: float = WEIGHT, parts: Any = ("K", "b", "W", "mu")) -> Any:
    """The weight of |u_n| for every control."""
    u = net.from_vector(np.zeros(net.n_controls))
    for part in parts:
        getattr(u, part)[...] = weight
    return u.to_vector()


def soft_threshold(v: Any, threshold: Any) -> Any:
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0)


class Formulas:
    """J = F + R written out: what a proximal method evaluates."""

    def __init__(self, net: Network, X: Any, y: Any, lam: Any, frozen: Any = ()) -> None:
        self.net, self.X, self.y, self.lam = net, X, y, lam
        moves = net.from_vector(np.ones(net.n_controls))
        for part in frozen:
            getattr(moves, part)[...] = 0
        self.moves = moves.to_vector()

    def evaluate(self, v: Any) -> tuple[float, Any, float]:
        F, g = self.net.value_and_grad(self.net.from_vector(v), self.X, self.y, SMOOTH)
        return F, g.to_vector() * self.moves, float(self.lam @ np.abs(v))

    def step(self, v: Any, g: Any, t: float) -> Any:
        moved = np.where(self.moves, soft_threshold(v - t * g, t * self.lam), v)
        if self.net.time_steps == "simplex":
            u = self.net.from_vector(moved)
            u.h[...] = onto_simplex(self.net.from_vector(v - t * g).h)
            moved = u.to_vector()
        return moved

    def residual(self, v: Any) -> float:
        return float(np.linalg.norm(self.step(v, self.evaluate(v)[1], 1.0) - v))

    def backtracking(self, v: Any, iterations: int) -> list[float]:
        L, (F, g, R) = 0.1, self.evaluate(v)
        losses = [F + R]
        for _ in range(iterations):
            while True:
                trial = self.step(v, g, 1 / L)
                F_trial, g_trial, R_trial = self.evaluate(trial)
                if F_trial <= F + g @ (trial - v) + L / 2 * ((trial - v) ** 2).sum():
                    break
                L *= 1.5
            v, F, g, R, L = trial, F_trial, g_trial, R_trial, 0.99 * L
            losses.append(F + R)
        return losses

    def armijo(self, v: Any, iterations: int) -> list[float]:
        t, (F, g, R) = 0.1, self.evaluate(v)
        losses = [F + R]
        for _ in range(iterations):
            while True:
                trial = self.step(v, g, t)
                F_trial, g_trial, R_trial = self.evaluate(trial)
                if F_trial + R_trial <= F + R + 0.4 * (g @ (trial - v) + R_trial - R):
                    break
                t /= 2
            v, F, g, R, t = trial, F_trial, g_trial, R_trial, min(10.0, 2 * t)
            losses.append(F + R)
        return losses

    def gradient_descent(self, v: Any, iterations: int) -> list[float]:
        F, g, R = self.evaluate(v)
        losses = [F + R]
        for _ in range(iterations):
            v = self.step(v, g, 0.1)
            F, g, R = self.evaluate(v)
            losses.append(F + R)
        return losses


@pytest.mark.parametrize("method", ["gradient descent", "backtracking", "armijo"])
@pytest.mark.parametrize("time_steps", ["fixed", "free", "simplex"])
def test_proximal_methods_follow_the_formulas(time_steps: str, method: str) -> None:
    net, u, X, y = problem(time_steps=time_steps)
    frozen = ("h", "W") if time_steps == "fixed" else ()
    formulas = Formulas(net, X, y, weights(net), frozen)
    result = ocdl.train(
        net, u, X, y, objective=objective(), optimiser=PROXIMAL[method], max_iter=60, freeze=frozen, tol=0
    )
    expected = getattr(formulas, method.replace(" ", "_"))(u.to_vector(), 60)
    np.testing.assert_allclose(result.history.loss, expected, rtol=1e-9)
    v = result.controls.to_vector()
    assert result.history.gradient_norm[-1] == pytest.approx(formulas.residual(v), rel=1e-9)
    assert result.history.loss[-1] == pytest.approx(net.value(result.controls, X, y, objective()), rel=1e-14)
    assert np.array_equal(result.controls.W, u.W) == (time_steps == "fixed")


@pytest.mark.parametrize(("weight", "loss", "zeros"), [(0.01, 0.6442, 97), (0.001, 0.2, 50)])
@pytest.mark.parametrize("method", ["backtracking", "lbfgs"])
def test_controls_become_exactly_zero(method: str, weight: float, loss: float, zeros: int) -> None:
    """Subgradient methods end at 0.93 and 0.23 without one zero."""
    net, u, X, y = problem()
    penalised = Objective("cross_entropy", penalties=L1(weight))
    result = ocdl.train(net, u, X, y, objective=penalised, optimiser=PROXIMAL[method], max_iter=5000)
    assert result.history.loss[-1] < loss
    assert (result.controls.to_vector() == 0).sum() >= zeros


@pytest.mark.parametrize("method", ["backtracking", "armijo", "lbfgs"])
def test_a_stationary_point_has_0_as_a_subgradient(method: str) -> None:
    net, u, X, y = problem()
    result = ocdl.train(net, u, X, y, objective=objective(), optimiser=PROXIMAL[method], max_iter=20000, tol=1e-7)
    assert result.status is ocdl.Status.GRADIENT
    v = result.controls.to_vector()
    g, lam = Formulas(net, X, y, weights(net), ("h",)).evaluate(v)[1], weights(net)
    assert (v == 0).sum() > 90
    assert np.all(np.abs(g)[(v == 0)] <= lam[v == 0] + 1e-7)
    np.testing.assert_allclose((g + lam * np.sign(v))[v != 0], 0, atol=1e-7)


@pytest.mark.parametrize("method", ["backtracking", "armijo", "lbfgs"])
def test_logistic_regression_with_l1_is_that_of_scikit_learn(method: str) -> None:
    """With frozen layers the problem is convex: one minimum, the same zeros."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 12))
    y = (X[:, 0] - 2 * X[:, 3] + 0.5 * rng.standard_normal(300) > 0).astype(int)
    net = Network(12, 2)
    u = net.init(random_state=0)
    features = net.final_state(u, X)
    C = 0.1
    theirs = LogisticRegression(l1_ratio=1.0, C=C, solver="saga", tol=1e-12, max_iter=200_000).fit(features, y)
    penalised = Objective("cross_entropy", reduction="sum", penalties=L1(1 / C, parts=("W",)))
    result = ocdl.train(
        net, u, X, y, objective=penalised, optimiser=PROXIMAL[method], max_iter=50_000, tol=1e-6, freeze=("K", "b")
    )
    assert result.status is ocdl.Status.GRADIENT
    assert np.array_equal(result.controls.W == 0, theirs.coef_ == 0)
    assert 0 < (theirs.coef_ == 0).sum() < 12
    np.testing.assert_allclose(result.controls.W, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(result.controls.mu, theirs.intercept_, atol=1e-6)


@pytest.mark.parametrize("method", PROXIMAL)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_resumed_trainings_and_other_threads_have_the_same_bits(tmp_path: Path, method: str, dtype: str) -> None:
    net, u, X, y = problem(time_steps="simplex", dtype=dtype)
    more: dict[str, Any] = {"objective": objective(), "optimiser": PROXIMAL[method], "tol": 0}
    whole = ocdl.train(net, u, X, y, max_iter=60, **more)
    ocdl.train(net, u, X, y, max_iter=23, checkpoint=tmp_path / "state.ocdl", **more)
    ocdl.set_num_threads(1)
    resumed = ocdl.train(
        net, u, X, y, max_iter=60, checkpoint=ocdl.Checkpoint(tmp_path / "state.ocdl", resume=True), **more
    )
    ocdl.set_num_threads(2)
    assert resumed.controls.to_vector().tobytes() == whole.controls.to_vector().tobytes()
    assert resumed.history.loss.tobytes() == whole.history.loss.tobytes()
    assert (whole.controls.to_vector() == 0).sum() > 10


class Memory(RowSource):
    """Rows of arrays, as a source has them."""

    def __init__(self, X: Any, y: Any) -> None:
        self.X, self.y = X, y

    @property
    def n_rows(self) -> int:
        return len(self.X)

    def rows(self, i: int, j: int) -> tuple[Any, Any]:
        return self.X[i:j], self.y[i:j]


def test_a_source_has_the_bits_of_samples_in_memory() -> None:
    net, u, X, y = problem()
    more: dict[str, Any] = {"objective": objective(), "optimiser": Chain((Adam(), 5), (LBFGS(), None)), "max_iter": 40}
    in_memory = ocdl.train(net, u, X, y, **more)
    streamed = ocdl.train(net, u, Memory(X, y), **more)
    assert streamed.controls.to_vector().tobytes() == in_memory.controls.to_vector().tobytes()
    assert streamed.history.loss.tobytes() == in_memory.history.loss.tobytes()


def test_adam_takes_the_subgradient() -> None:
    net, u, X, y = problem()
    result = ocdl.train(net, u, X, y, objective=objective(), optimiser=Adam(), max_iter=30)
    v = result.controls.to_vector()
    J, g = net.value_and_grad(result.controls, X, y, objective())
    assert result.history.loss[-1] == pytest.approx(J, rel=1e-14)
    assert result.history.gradient_norm[-1] == pytest.approx(float(np.linalg.norm(g.to_vector())), rel=1e-10)
    assert (v[weights(net) > 0] == 0).sum() == 0


def test_steps_take_an_l1_penalty_where_they_are_learned() -> None:
    net, u, X, y = problem(time_steps="free")
    penalised = Objective("cross_entropy", penalties=L1(0.05, parts=("h",)))
    result = ocdl.train(net, u, X, y, objective=penalised, max_iter=500)
    assert (result.controls.h == 0).any()
    fixed = problem()[0]
    result = ocdl.train(fixed, fixed.init(0), X, y, objective=penalised, max_iter=5)
    assert np.array_equal(result.controls.h, fixed.init(0).h)
    assert result.history.loss[-1] == pytest.approx(fixed.value(result.controls, X, y, penalised), rel=1e-14)


def test_errors_give_advice() -> None:
    net, u, X, y = problem(time_steps="simplex")
    with pytest.raises(ValueError, match=r"NewtonCG .* L1\(0.01\) has none where a control is 0: choose LBFGS"):
        ocdl.train(net, u, X, y, objective=objective(), optimiser=Chain((LBFGS(), 5), (NewtonCG(), None)))
    on_steps = Objective(penalties=L1(0.5, parts=("h",)))
    with pytest.raises(ValueError, match=r"L1\(0.5, parts=\('h',\)\) has no effect: time_steps='simplex'"):
        ocdl.train(net, u, X, y, objective=on_steps)
    frozen = ocdl.train(net, u, X, y, objective=on_steps, freeze=("h",), max_iter=3)
    assert np.array_equal(frozen.controls.h, u.h)
