"""How trainings end: the reasons, and the patience of validation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from training_problems import OPTIMISERS, small_problem

import ocdl
from ocdl import (
    LBFGS,
    Adam,
    Backtracking,
    GradientDescent,
    Network,
    Objective,
    Status,
)


class TestEnds:
    """The reason for stopping is the right one."""

    def test_gradient(self) -> None:
        net, u, X, y = small_problem()
        result = ocdl.train(net, u, X, y, tol=1e3)
        assert result.status is Status.GRADIENT
        assert result.n_iter == 0
        assert result.n_evals == 1
        assert result.message.startswith(Status.GRADIENT.value)

    @pytest.mark.parametrize("optimiser", OPTIMISERS)
    def test_zero_gradient_at_the_start(self, optimiser: str) -> None:
        """Symmetric data and W = 0, mu = 0: nothing moves."""
        net = Network(1, 3)
        result = ocdl.train(net, net.controls(), [[1.0], [1.0]], [0, 1], optimiser=OPTIMISERS[optimiser], tol=0)
        assert result.status is Status.GRADIENT
        assert result.n_iter == 0

    def test_iteration_limit(self) -> None:
        net, u, X, y = small_problem()
        result = ocdl.train(net, u, X, y, max_iter=7)
        assert result.status is Status.ITERATION_LIMIT
        assert result.n_iter == 7
        assert ocdl.train(net, u, X, y, max_iter=0).n_iter == 0
        assert ocdl.train(net, u, X, y, max_iter=0, tol=1e3).status is Status.GRADIENT

    @pytest.mark.parametrize("X", [[[0.5, 0.5]], [[0.5, 0.5]] * 20])
    def test_one_sample_or_equal_samples_end_with_a_vanishing_loss(self, X: list[list[float]]) -> None:
        net = Network.preset("odenet", 2, 4)
        y = [1] * len(X)
        result = ocdl.train(net, net.init(0), X, y, optimiser=LBFGS(), max_iter=5000, tol=0)
        assert result.history.loss[-1] <= 1e-30

    def test_separable_data_drive_the_loss_to_zero(self) -> None:
        net = Network.preset("resnet", 1, 4)
        X, y = [[-1.0], [-0.9], [0.9], [1.0]], [0, 0, 1, 1]
        result = ocdl.train(net, net.init(1), X, y, optimiser=LBFGS(), max_iter=5000, tol=0)
        assert result.history.loss[-1] <= 1e-30
        slow = ocdl.train(net, net.init(1), X, y, max_iter=20000, tol=1e-4)
        assert slow.status is Status.GRADIENT

    @pytest.mark.parametrize("L0", [1e-300, 1e-20, 1e20, 1e300])
    def test_absurd_first_guesses_of_L_end_well(self, L0: float) -> None:
        net, u, X, y = small_problem()
        result = ocdl.train(net, u, X, y, optimiser=Backtracking(L0=L0), max_iter=300)
        assert np.all(np.diff(result.history.loss) <= 0)
        if L0 < 1:
            assert result.status is Status.ITERATION_LIMIT
            assert result.history.loss[-1] < 0.9 * result.history.loss[0]
        else:  # steps that do not show in the loss
            assert result.status in (Status.LINE_SEARCH_FAILED, Status.STEP_TOLERANCE)

    def test_too_few_trials_make_no_progress(self) -> None:
        net, u, X, y = small_problem()
        result = ocdl.train(net, u, X, y, optimiser=Backtracking(L0=1e-6, max_trials=3))
        assert result.status is Status.LINE_SEARCH_FAILED
        assert (result.n_iter, result.n_evals) == (0, 1 + 3)

    def test_a_diverging_descent_keeps_the_last_finite_iterate(self) -> None:
        net = Network(1, 3, activation="identity")
        X, y = [[1.0], [-1.0]], [1, 0]
        objective = Objective(penalties=ocdl.Tikhonov(1.0))
        result = ocdl.train(net, net.init(0), X, y, optimiser=GradientDescent(1e3), objective=objective)
        assert result.status is Status.NOT_FINITE
        assert np.isfinite(result.controls.to_vector()).all()

    @pytest.mark.parametrize("optimiser", [GradientDescent(1e200), Adam(lr=1e200), Backtracking(L0=1e-15)])
    def test_a_gradient_that_is_not_finite_is_never_accepted(self, optimiser: Any) -> None:
        """With infinite states the squared loss can be exactly 0."""
        net = Network(1, 3, activation="relu")
        u = net.controls(K=np.ones((3, 1, 1)), W=[[1.0]])
        result = ocdl.train(net, u, [[1.0], [2.0]], [1, 1], optimiser=optimiser, max_iter=50)
        assert np.isfinite(result.history.gradient_norm).all()
        assert np.isfinite(net.value_and_grad(result.controls, [[1.0], [2.0]], [1, 1])[1].norm())

    def test_steps_below_roundoff(self) -> None:
        net, _, X, y = small_problem()
        u = net.from_vector(np.random.default_rng(0).normal(size=net.n_controls))
        result = ocdl.train(net, u, X, y, optimiser=GradientDescent(1e-30))
        assert result.status is Status.STEP_TOLERANCE

    def test_a_start_that_is_not_finite_names_the_sample(self) -> None:
        net = Network(1, 2, activation="identity")
        u = net.controls(K=[[[1e200]], [[1e200]]], W=[[1.0]])
        with pytest.raises(FloatingPointError, match="sample 1"):
            ocdl.train(net, u, [[0.0], [1.0]], [0, 1])
        with pytest.raises(FloatingPointError, match=r"validation: .* sample 0 is not finite after layer 1 of 2"):
            ocdl.train(net, u, [[0.0], [0.0]], [0, 1], validation=([[1.0], [0.0]], [0, 1]))

    def test_trials_that_overflow_are_rejected(self) -> None:
        net = Network(1, 10, activation="identity")
        u = net.controls(K=np.full((10, 1, 1), 0.5), W=[[1.0]])
        result = ocdl.train(net, u, [[1.0], [-1.0]], [0, 1], optimiser=Backtracking(L0=1e-15), max_iter=20)
        assert result.n_iter == 20
        assert result.history.trials[1] > 10
        assert np.all(np.isfinite(result.history.loss))


def test_infinite_controls_are_no_result_though_saturated_units_hide_them() -> None:
    X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([0, 1, 1, 0])
    net = Network(1, 1, dtype="float32")
    result = ocdl.train(
        net,
        net.controls(W=np.ones((1, 1))),
        X,
        y,
        optimiser=Adam(lr=1.5e38, batch_size=2),
        freeze=("b", "W", "mu"),
        max_iter=20,
        random_state=0,
    )
    assert result.status is Status.NOT_FINITE
    assert result.controls.K[0, 0, 0] < -1e38
    assert np.isfinite(result.controls.to_vector()).all()


class TestPatience:
    def overfitting(self, **arguments: Any) -> tuple[Network, Any, Any, ocdl.Result]:
        """Random labels for the validation: whatever is learned makes them worse."""
        net, u, X, y = small_problem()
        rng = np.random.default_rng(0)
        validation = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
        result = ocdl.train(
            net,
            u,
            X,
            y,
            optimiser=LBFGS(),
            max_iter=5000,
            validation=ocdl.Validation(*validation, patience=5),
            eval_every=2,
            **arguments,
        )
        return net, u, validation, result

    def test_the_best_controls_are_returned(self) -> None:
        net, _, validation, result = self.overfitting()
        history = result.history
        assert result.status is Status.EARLY_STOPPING
        assert net.value(result.controls, *validation) == history.val_loss.min()
        assert history.val_loss.argmin() == len(history.val_loss) - 6
        assert result.n_iter == history.evaluated[-1]

    def test_it_resumes(self, tmp_path: Any) -> None:
        _, _, _, whole = self.overfitting()
        net, u, X, y = small_problem()
        rng = np.random.default_rng(0)
        validation = ocdl.Validation(rng.normal(size=(40, 2)), rng.integers(0, 2, 40), patience=5)
        arguments: dict[str, Any] = {"optimiser": LBFGS(), "validation": validation, "eval_every": 2}
        for k in (1, whole.n_iter - 3):
            ocdl.train(net, u, X, y, max_iter=k, checkpoint=tmp_path / "c", **arguments)
            resumed = ocdl.train(
                net, u, X, y, max_iter=5000, checkpoint=ocdl.Checkpoint(tmp_path / "c", resume=True), **arguments
            )
            assert np.array_equal(resumed.controls.to_vector(), whole.controls.to_vector())
            assert (resumed.n_iter, resumed.status) == (whole.n_iter, whole.status)

    def test_weights_of_the_validation_data_count(self) -> None:
        net, u, X, y = small_problem()
        weights = np.linspace(0.1, 2, len(X))
        history = ocdl.train(net, u, X, y, max_iter=5, validation=ocdl.Validation(X, y, sample_weight=weights)).history
        assert history.val_loss[0] == net.value(u, X, y, sample_weight=weights) != history.loss[0]
