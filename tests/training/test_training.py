"""Training: the algorithms follow their formulas, keep their promises, and end for the right reason."""

from __future__ import annotations

import threading
import time
from typing import Any

import algorithm2
import matplotlib
import numpy as np
import pytest
from training_problems import OPTIMISERS, small_problem

import ocdl
from ocdl import (
    LBFGS,
    Adam,
    Armijo,
    Backtracking,
    Chain,
    GradientDescent,
    Network,
    Objective,
    Status,
    datasets,
)

matplotlib.use("Agg")

ARCHITECTURES = ("net", "resnet", "odenet", "odenet+simplex")
MONOTONE = ("backtracking", "armijo", "lbfgs", "newton", "gauss-newton")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("data", datasets.GENERATORS)
def test_algorithm_2_follows_the_formulas_for_100_iterations(data: str, architecture: str) -> None:
    """From this seed on all 16 paths are well conditioned; from others, an ulp at the start can grow to 1e-6."""
    X, y = datasets.GENERATORS[data](random_state=1)
    net = Network.preset(architecture, 2, 20)
    u = net.init(random_state=1)
    result = ocdl.train(net, u, X, y, max_iter=100)
    learn_steps = architecture.startswith("odenet")

    def evaluate(parts: algorithm2.Parts) -> tuple[float, algorithm2.Parts]:
        return algorithm2.loss_and_gradient(parts, X, y, residual=net.residual, learn_steps=learn_steps)

    parts = {name: getattr(u, name).copy() for name in ("K", "b", "h", "W", "mu")}
    losses, L = algorithm2.minimise(evaluate, parts, 100, simplex=architecture == "odenet+simplex")
    np.testing.assert_allclose(result.history.loss, losses, rtol=1e-9, atol=0)
    np.testing.assert_allclose(result.history.lipschitz[1:], L, rtol=1e-9)
    assert np.all(np.diff(result.history.loss) <= 0)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_method_lowers_the_loss(architecture: str, optimiser: str) -> None:
    net, u, X, y = small_problem(architecture)
    result = ocdl.train(net, u, X, y, optimiser=OPTIMISERS[optimiser], max_iter=80, random_state=0)
    assert net.value(result.controls, X, y) < 0.995 * net.value(u, X, y)
    if optimiser in MONOTONE:
        assert np.all(np.diff(result.history.loss) <= 0)
    if optimiser != "adam on batches":
        assert result.history.loss[-1] == net.value(result.controls, X, y)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_steps_stay_on_the_simplex_with_exact_zeros(optimiser: str) -> None:
    net, u, X, y = small_problem("odenet+simplex", 12)
    result = ocdl.train(net, u, X, y, optimiser=OPTIMISERS[optimiser], max_iter=300, eval_every=1, random_state=0)
    steps = result.history.time_steps
    assert steps.min() >= 0
    np.testing.assert_allclose(steps.sum(axis=1), net.horizon, rtol=0, atol=1e-14)
    if optimiser != "gradient descent":  # its steps are too short to get there
        assert np.count_nonzero(result.controls.h == 0) > 0


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("frozen", [("W", "mu"), ("K",), ("h", "b"), ("K", "b", "h", "W", "mu")])
def test_frozen_parts_stay_and_the_others_move(optimiser: str, frozen: tuple[str, ...]) -> None:
    net, u, X, y = small_problem("odenet+simplex")
    u.b[...] = 0.1
    result = ocdl.train(net, u, X, y, optimiser=OPTIMISERS[optimiser], max_iter=5, freeze=frozen, random_state=0)
    for part in ("K", "b", "h", "W", "mu"):
        same = np.array_equal(getattr(result.controls, part), getattr(u, part))
        assert same == (part in frozen), part


def test_the_start_is_not_changed() -> None:
    net, u, X, y = small_problem()
    before = u.to_vector()
    ocdl.train(net, u, X, y, max_iter=5)
    assert np.array_equal(u.to_vector(), before)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_regulariser_and_weights_enter(optimiser: str) -> None:
    net, u, X, y = small_problem()
    objective = Objective("cross_entropy", reduction="sum", penalties=(ocdl.Tikhonov(1e-2), ocdl.TimeSmoothness(1e-3)))
    weights = np.random.default_rng(0).uniform(0, 2, len(X))
    method = GradientDescent(1e-3) if optimiser == "gradient descent" else OPTIMISERS[optimiser]
    result = ocdl.train(net, u, X, y, objective=objective, optimiser=method, sample_weight=weights, max_iter=30)
    value = net.value(result.controls, X, y, objective, sample_weight=weights)
    assert value < net.value(u, X, y, objective, sample_weight=weights)
    if optimiser != "adam on batches":
        assert result.history.loss[-1] == value


@pytest.mark.usefixtures("all_threads")
@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_results_do_not_depend_on_threads(optimiser: str) -> None:
    net, u, X, y = small_problem("odenet+simplex")
    vectors = []
    for threads in (1, 2, 3):
        ocdl.set_num_threads(threads)
        result = ocdl.train(net, u, X, y, optimiser=OPTIMISERS[optimiser], max_iter=40, random_state=0)
        vectors.append(result.controls.to_vector())
    ocdl.set_num_threads(2)
    assert np.array_equal(vectors[0], vectors[1])
    assert np.array_equal(vectors[0], vectors[2])


@pytest.mark.parametrize("optimiser", [o for o in OPTIMISERS if o != "gradient descent"])
def test_single_precision_and_several_classes(optimiser: str) -> None:
    net = Network(2, 5, n_outputs=3, tableau="kutta4", time_steps="free", dtype="float32")
    X, _ = datasets.make_squares(150, random_state=0)
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    u = net.init(random_state=0)
    result = ocdl.train(net, u, X, y, optimiser=OPTIMISERS[optimiser], max_iter=60, random_state=0)
    assert result.controls.K.dtype == np.float32
    assert result.history.accuracy[-1] > result.history.accuracy[0]


def test_batches_are_those_of_the_seed() -> None:
    net, u, X, y = small_problem()
    losses = [
        ocdl.train(net, u, X, y, optimiser=Adam(batch_size=16), max_iter=30, random_state=seed).history.loss
        for seed in (0, 0, 1, np.random.default_rng(0))
    ]
    assert np.array_equal(losses[0], losses[1])
    assert not np.array_equal(losses[0], losses[2])
    assert np.array_equal(losses[0], losses[3])


def test_adam_follows_its_formulas() -> None:
    net, u, X, y = small_problem()
    result = ocdl.train(net, u, X, y, optimiser=Adam(lr=0.01), max_iter=50)
    m = v = np.zeros(net.n_controls)
    w = u.to_vector()
    for t in range(1, 51):
        g = net.value_and_grad(net.from_vector(w), X, y)[1].to_vector()
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        w = w - 0.01 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    np.testing.assert_allclose(result.controls.to_vector(), w, rtol=0, atol=1e-10)


def test_armijo_follows_its_formulas() -> None:
    net, u, X, y = small_problem()
    result = ocdl.train(net, u, X, y, optimiser=Armijo(), objective=Objective(reduction="sum"), max_iter=60)
    w, t = u.to_vector(), 0.1
    for _ in range(60):
        phi, g = net.value_and_grad(net.from_vector(w), X, y, Objective(reduction="sum"))
        d = g.to_vector()
        while net.value(net.from_vector(w - t * d), X, y, Objective(reduction="sum")) > phi - 0.4 * t * (d @ d):
            t *= 0.5
        w, t = w - t * d, min(10, 2 * t)
    np.testing.assert_allclose(result.controls.to_vector(), w, rtol=0, atol=1e-9)


def test_lbfgs_minimises_a_quadratic_in_few_steps() -> None:
    """Only W and mu with Tikhonov: a convex problem, whose minimum every method must agree on."""
    net, u, X, y = small_problem("resnet")
    objective = Objective("cross_entropy", penalties=ocdl.Tikhonov(0.1))
    free = {"objective": objective, "freeze": ("K", "b", "h"), "tol": 1e-9}
    fast = ocdl.train(net, u, X, y, optimiser=LBFGS(), max_iter=50, **free)
    slow = ocdl.train(net, u, X, y, optimiser=Backtracking(), max_iter=2000, **free)
    assert fast.status is Status.GRADIENT
    assert fast.n_evals < 30
    np.testing.assert_allclose(fast.controls.to_vector(), slow.controls.to_vector(), atol=1e-7)


@pytest.mark.parametrize("memory", [1, 2, 3, 4, 5, 20])
def test_lbfgs_takes_the_steps_of_the_recursion(memory: int) -> None:
    """Where the first trial is taken, a step is the direction: that of Nocedal's recursion over the last pairs."""
    net, u, X, y = small_problem("resnet")
    runs = [ocdl.train(net, u, X, y, optimiser=LBFGS(memory=memory), max_iter=n, tol=0) for n in range(14)]
    at = [run.controls.to_vector().astype(np.longdouble) for run in runs]
    g = [net.value_and_grad(run.controls, X, y)[1].to_vector().astype(np.longdouble) for run in runs]
    s, c = np.diff(at, axis=0), np.diff(g, axis=0)
    compared = 0
    for n in range(1, 13):
        if runs[-1].history.trials[n + 1] != 1:
            continue
        d, factors = -g[n], {}
        for k in reversed(range(max(0, n - memory), n)):
            factors[k] = (s[k] @ d) / (s[k] @ c[k])
            d = d - factors[k] * c[k]
        d = d * (s[n - 1] @ c[n - 1]) / (c[n - 1] @ c[n - 1])
        for k in range(max(0, n - memory), n):
            d = d + (factors[k] - (c[k] @ d) / (s[k] @ c[k])) * s[k]
        np.testing.assert_allclose(s[n], d, rtol=0, atol=1e-9 * np.abs(d).max())
        compared += 1
    assert compared >= 6


class TestHistory:
    def test_entries(self) -> None:
        net, u, X, y = small_problem()
        X_val, y_val = datasets.make_donut2d(50, random_state=9)
        r = ocdl.train(net, u, X, y, max_iter=25, eval_every=10, validation=(X_val, y_val))
        h = r.history
        assert len(h) == 26
        assert h.evaluated.tolist() == [0, 10, 20, 25]
        assert h.loss[0] == net.value(u, X, y)
        assert h.gradient_norm[0] == pytest.approx(net.value_and_grad(u, X, y)[1].norm(), rel=1e-14)
        assert h.val_loss[-1] == net.value(r.controls, X_val, y_val)
        assert h.val_accuracy[-1] == np.mean((net.predict(r.controls, X_val)[:, 0] > 0) == y_val)
        assert h.accuracy[-1] == np.mean((net.predict(r.controls, X)[:, 0] > 0) == y)
        assert np.array_equal(h.time_steps[0], u.h)
        assert np.array_equal(h.time_steps[-1], r.controls.h)
        assert h.trials[0] == 0
        assert r.n_evals == 1 + h.trials.sum()
        assert np.all(np.diff(h.seconds) > 0)

    @pytest.mark.parametrize(
        ("eval_every", "evaluated"),
        [
            ([0, 1, 2, 5, 12], [0, 1, 2, 5, 12, 25]),
            ((3, 1, 3, 99), [0, 1, 3, 25]),
            (range(20, 30), [0, 20, 21, 22, 23, 24, 25]),
            (np.array([4], np.uint8), [0, 4, 25]),
            ([], [0, 25]),
        ],
        ids=str,
    )
    def test_listed_evaluations(self, eval_every: Any, evaluated: list[int]) -> None:
        net, u, X, y = small_problem()
        X_val, y_val = datasets.make_donut2d(50, random_state=9)
        r = ocdl.train(net, u, X, y, max_iter=25, eval_every=eval_every, validation=(X_val, y_val))
        plain = ocdl.train(net, u, X, y, max_iter=25, eval_every=1, validation=(X_val, y_val))
        assert r.history.evaluated.tolist() == evaluated
        assert np.array_equal(r.history.loss, plain.history.loss)
        assert np.array_equal(r.history.val_loss, plain.history.val_loss[evaluated])

    def test_data_frame(self) -> None:
        net, u, X, y = small_problem()
        frame = ocdl.train(net, u, X, y, max_iter=25, eval_every=10).history.to_pandas()
        assert len(frame) == 26
        assert frame.index.name == "iteration"
        assert frame["accuracy"].notna().sum() == 4
        assert {"loss", "gradient_norm", "lipschitz", "trials", "seconds", "val_loss", "h0", "h5"} <= set(frame)

    def test_plot(self) -> None:
        net, u, X, y = small_problem()
        history = ocdl.train(net, u, X, y, max_iter=25, eval_every=5, validation=(X, y)).history
        ax = history.plot()
        assert len(ax.lines) == 2
        assert ax.get_xscale() == ax.get_yscale() == "log"
        assert history.plot(ax=ax) is ax


class TestWatching:
    def test_callback_sees_the_state_and_can_stop(self) -> None:
        net, u, X, y = small_problem()
        seen: list[ocdl.TrainingState] = []

        def callback(state: ocdl.TrainingState) -> bool:
            seen.append(state)
            return len(seen) == 2

        result = ocdl.train(net, u, X, y, max_iter=10**8, tol=0, callback=callback)
        assert result.status is Status.INTERRUPTED
        assert seen[1].iteration > seen[0].iteration > 0
        assert seen[1].loss == net.value(seen[1].controls, X, y)
        assert result.n_iter == seen[-1].iteration

    def test_callback_and_progress_change_nothing_and_are_held_back(self, capsys: pytest.CaptureFixture[str]) -> None:
        net, u, X, y = small_problem()
        calls: list[float] = []

        def slow_callback(state: ocdl.TrainingState) -> None:
            calls.append(time.perf_counter())
            time.sleep(0.002)

        plain = ocdl.train(net, u, X, y, max_iter=20000)
        watched = ocdl.train(net, u, X, y, max_iter=20000, callback=slow_callback, progress=True)
        assert np.array_equal(plain.controls.to_vector(), watched.controls.to_vector())
        # two milliseconds per call may only come along with a hundred times as much training
        assert len(calls) <= 2 + watched.history.seconds[-1] / 0.2
        assert "20000/20000" in capsys.readouterr().err

    def test_a_callback_that_returns_true_ends_the_training(self) -> None:
        net, u, X, y = small_problem()
        stop = threading.Event()
        threading.Timer(0.2, stop.set).start()
        result = ocdl.train(net, u, X, y, max_iter=10**9, tol=0, callback=lambda state: stop.is_set())
        assert result.status is Status.INTERRUPTED
        assert result.n_iter == len(result.history) - 1 > 0


def test_training_releases_the_interpreter() -> None:
    """Another Python thread runs while the core iterates."""
    net, u, X, y = small_problem()
    ticks = 0
    done = threading.Event()

    def count() -> None:
        nonlocal ticks
        while not done.wait(0.001):
            ticks += 1

    counter = threading.Thread(target=count)
    counter.start()
    ocdl.train(net, u, X, y, max_iter=5000, tol=0, eval_every=10**6)
    done.set()
    counter.join()
    assert ticks > 10


def test_a_chain_runs_each_optimiser_for_its_iterations() -> None:
    net, u, X, y = small_problem()
    chain = ocdl.train(net, u, X, y, optimiser=Chain((Adam(), 12), (LBFGS(), 5), (Backtracking(), None)), max_iter=30)
    assert chain.n_iter == 30
    assert len(chain.history) == 31
    adam = ocdl.train(net, u, X, y, optimiser=Adam(), max_iter=12)
    lbfgs = ocdl.train(net, adam.controls, X, y, optimiser=LBFGS(), max_iter=5)
    rest = ocdl.train(net, lbfgs.controls, X, y, optimiser=Backtracking(), max_iter=13)
    assert np.array_equal(chain.controls.to_vector(), rest.controls.to_vector())
    assert chain.n_evals == adam.n_evals + lbfgs.n_evals + rest.n_evals


class Shifted:
    """The squared error less a number: a loss may be negative."""

    def __init__(self, shift: float) -> None:
        self.shift = shift

    def value_and_grad(self, outputs: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        residual = outputs - targets[:, None]
        return (residual**2).sum(axis=1) / 2 - self.shift, residual


class GaussianLikelihood:
    """The negative log-likelihood of N(z_0, exp(z_1)^2), without its constant: below 0 where the spread is small."""

    def value_and_grad(self, outputs: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, log_spread = outputs.T
        scaled = (mean - targets) * np.exp(-log_spread)
        return scaled**2 / 2 + log_spread, np.stack([scaled * np.exp(-log_spread), 1 - scaled**2], axis=1)


class TestLossesOfAnySignAndSize:
    """No loss ends a training by being small: 0 is the least value of some losses only."""

    X = np.linspace(-1, 1, 50).reshape(-1, 1)
    y = np.sin(3 * X[:, 0])

    def test_a_shift_of_the_loss_changes_no_step(self) -> None:
        net = Network(1, 4)
        u = net.init(random_state=0)
        plain, shifted = (
            ocdl.train(net, u, self.X, self.y, objective=Objective(Shifted(shift)), optimiser=LBFGS(), max_iter=30)
            for shift in (0.0, 10.0)
        )
        assert shifted.n_iter == 30
        np.testing.assert_allclose(shifted.history.loss + 10, plain.history.loss, rtol=1e-6)

    def test_a_likelihood_may_cross_zero(self) -> None:
        net = Network(1, 4, n_outputs=2)
        objective = Objective(GaussianLikelihood())
        result = ocdl.train(net, net.init(0), self.X, self.y, objective=objective, optimiser=LBFGS(), max_iter=200)
        assert result.history.loss[-1] < -0.5

    def test_a_bad_start_of_poisson_is_left(self) -> None:
        net = Network(1, 4)
        u = net.init(random_state=0)
        u.mu[...] = 40.0
        counts = np.round(np.exp(self.y + 1))
        objective = Objective("poisson")
        result = ocdl.train(net, u, self.X, counts, objective=objective, optimiser=LBFGS(), max_iter=2000)
        assert result.history.loss[0] > 1e16
        assert result.history.loss[-1] < 1.0

    def test_single_precision_trains_below_the_roundoff_of_the_first_loss(self) -> None:
        net = Network(1, 6, augment=1, dtype="float32")
        u = net.init(random_state=0)
        targets = 1000 + net.predict(u, self.X.astype("float32"))[:, 0]
        objective = Objective("squared_error")
        more: dict[str, Any] = {"objective": objective, "optimiser": LBFGS(), "tol": 0}
        first = ocdl.train(net, u, self.X, targets, max_iter=3000, **more)
        again = ocdl.train(net, first.controls, self.X, targets, max_iter=3000, **more)
        assert first.history.loss[-1] <= 2 * again.history.loss[-1]
