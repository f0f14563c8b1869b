"""Training with real targets: solutions that are known in closed form, and R^2."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from sklearn.metrics import r2_score
from test_resume import OPTIMISERS

import ocdl
from ocdl import LBFGS, Adam, Backtracking, Chain, Network, NewtonCG, Objective, Status, plot
from ocdl.losses import Huber, Quantile
from ocdl.model.losses import LOSSES, loss_names

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X @ RNG.normal(size=(3, 2)) + 1 + 0.3 * RNG.normal(size=(60, 2))
WEIGHTS = RNG.uniform(0, 2, 60)
COUNTS = RNG.poisson(3.0, size=(60, 2)).astype(float)

every_loss = pytest.mark.parametrize("loss", loss_names("numbers"))


def targets(loss: str, outputs: int = 2) -> np.ndarray:
    return (COUNTS if LOSSES[loss].minimum_target == 0 else Y)[:, :outputs]


def train(loss: Any = "squared_error", outputs: int = 2, max_iter: int = 30, **arguments: Any) -> ocdl.Result:
    """A small training on real targets, of a network whose outputs are tame."""
    net = arguments.pop("net", None) or Network(3, 4, n_outputs=outputs)
    name = loss if isinstance(loss, str) else loss.name
    settings = {"objective": Objective(loss), "random_state": 3, "eval_every": 7, "tol": 0.0} | arguments
    return ocdl.train(net, net.init(random_state=2), X, targets(name, outputs), max_iter=max_iter, **settings)


# ---- what is known in closed form ----


@pytest.mark.parametrize(
    ("optimiser", "accuracy"),
    [
        (NewtonCG(max_products=50), 1e-10),
        (NewtonCG(curvature="gauss_newton", max_products=50), 1e-10),
        (LBFGS(), 4e-8),  # it compares losses, of up to 6: half a last digit hides residuals up to its root, 3.7e-8
    ],
    ids=str,
)
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_linear_flows_reach_linear_regression(
    optimiser: Any, accuracy: float, outputs: int, weighted: bool, reduction: str
) -> None:
    """With sigma = identity outputs are affine functions of x, any of them: the least squares solution is reached."""
    weights = WEIGHTS if weighted else np.ones(60)
    design, y = np.column_stack([X, np.ones(60)]), Y[:, :outputs]
    root = np.sqrt(weights)[:, None]
    expected = design @ np.linalg.lstsq(root * design, root * y, rcond=None)[0]
    net = Network(3, 3, n_outputs=outputs, activation="identity")
    for seed in range(3):
        result = ocdl.train(
            net,
            net.init(random_state=seed),
            X,
            y,
            objective=Objective("squared_error", reduction=reduction),
            optimiser=optimiser,
            sample_weight=weights if weighted else None,
            max_iter=100,
            tol=1e-12,
        )
        assert np.abs(net.predict(result.controls, X) - expected).max() <= accuracy


def trained_constant(loss: Any, y: np.ndarray, optimiser: Any = None, **arguments: Any) -> np.ndarray:
    """The outputs of a network in which only mu is free."""
    net = Network(1, 1, n_outputs=y.shape[1])
    settings = {"optimiser": optimiser or LBFGS(), "max_iter": 300, "tol": 1e-13} | arguments
    start = net.controls(h=[0.0])
    return ocdl.train(
        net, start, np.zeros((len(y), 1)), y, objective=Objective(loss), freeze=("K", "b", "W"), **settings
    ).controls.mu


def weighted_quantiles(y: np.ndarray, level: float, weights: np.ndarray) -> np.ndarray:
    """The smallest number with at least this share of the weight up to it, of each column."""
    actual = []
    for column in y.T:
        order = np.argsort(column)
        share = np.cumsum(weights[order]) / weights.sum()
        actual.append(column[order][np.searchsorted(share, level)])
    return np.array(actual)


@pytest.mark.parametrize("weighted", [False, True])
def test_constants_are_the_mean_and_the_logarithm_of_the_mean(weighted: bool) -> None:
    weights = WEIGHTS if weighted else None
    mean = trained_constant("squared_error", Y, sample_weight=weights)
    np.testing.assert_allclose(mean, np.average(Y, axis=0, weights=weights), rtol=1e-12)
    rate = trained_constant("poisson", COUNTS, NewtonCG(), sample_weight=weights)
    np.testing.assert_allclose(rate, np.log(np.average(COUNTS, axis=0, weights=weights)), rtol=1e-10)


@pytest.mark.parametrize("level", [0.11, 0.52, 0.83])
@pytest.mark.parametrize("weighted", [False, True])
def test_constants_are_quantiles(level: float, weighted: bool) -> None:
    """Steps that get shorter close in on the kink, where the quantile is."""
    weights = WEIGHTS if weighted else None
    steps = Chain((Adam(lr=0.02), 500), (Adam(lr=1e-3), 500), (Adam(lr=2e-5), 1500))
    actual = trained_constant(Quantile(level), Y, steps, sample_weight=weights, max_iter=2500)
    expected = weighted_quantiles(Y, level, np.ones(60) if weights is None else weights)
    np.testing.assert_allclose(actual, expected, atol=2e-3)


@pytest.mark.parametrize("delta", [0.05, 0.5, 3.0])
def test_constants_of_huber_are_scipys(delta: float) -> None:
    actual = trained_constant(Huber(delta), Y)
    for column, mu in zip(Y.T, actual, strict=True):

        def slope(z: float, column: np.ndarray = column) -> float:
            return float(np.clip(z - column, -delta, delta).sum())

        expected = optimize.brentq(slope, column.min(), column.max(), xtol=1e-14)
        assert mu == pytest.approx(expected, abs=1e-9)


def test_huber_regression_is_scipys() -> None:
    y = Y[:, :1].copy()
    y[::7] += 20  # some that are far off
    net = Network(3, 2, activation="identity")
    result = ocdl.train(
        net, net.init(0), X, y, objective=Objective(Huber(0.2)), optimiser=LBFGS(), max_iter=2000, tol=1e-12
    )
    design = np.column_stack([X, np.ones(60)])

    def cost(w: np.ndarray) -> tuple[float, np.ndarray]:
        r = design @ w - y[:, 0]
        small = np.abs(r) <= 0.2
        value = np.where(small, r * r / 2, 0.2 * (np.abs(r) - 0.1)).mean()
        return float(value), design.T @ np.clip(r, -0.2, 0.2) / 60

    best = optimize.minimize(cost, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-11})
    np.testing.assert_allclose(net.predict(result.controls, X)[:, 0], design @ best.x, atol=1e-7)
    assert result.history.loss[-1] == pytest.approx(best.fun, rel=1e-10)


def test_poisson_regression_is_scipys() -> None:
    net = Network(3, 2, activation="identity")
    y = np.random.default_rng(5).poisson(np.exp(0.3 * X[:, 0] - 0.5 * X[:, 1] + 0.7)).astype(float)
    result = ocdl.train(
        net, net.init(0), X, y, objective=Objective("poisson"), optimiser=NewtonCG(), max_iter=300, tol=1e-11
    )
    design = np.column_stack([X, np.ones(60)])

    def cost(w: np.ndarray) -> tuple[float, np.ndarray]:
        z = design @ w
        return float((np.exp(z) - y * z).mean()), design.T @ (np.exp(z) - y) / 60

    best = optimize.minimize(cost, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-11})
    np.testing.assert_allclose(net.predict(result.controls, X)[:, 0], design @ best.x, atol=1e-7)


# ---- the score ----


@every_loss
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_score_is_r_squared(loss: str, outputs: int, weighted: bool, dtype: str) -> None:
    net = Network(3, 4, n_outputs=outputs, dtype=dtype)
    weights = WEIGHTS if weighted else None
    held_out = X[::3], targets(loss, outputs)[::3]
    result = train(loss, outputs, net=net, sample_weight=weights, validation=held_out, optimiser=Backtracking())

    def predicted(rows: np.ndarray) -> np.ndarray:
        z = net.predict(result.controls, rows).astype(np.float64)
        return np.exp(z) if loss == "poisson" else z

    rel = 1e-12 if dtype == "float64" else 1e-5
    expected = r2_score(targets(loss, outputs), predicted(X), sample_weight=weights)
    assert result.history.score[-1] == pytest.approx(expected, rel=rel, abs=rel)
    assert result.history.val_score[-1] == pytest.approx(r2_score(held_out[1], predicted(X[::3])), rel=rel, abs=rel)
    value = net.value(result.controls, *held_out, Objective(loss))
    assert result.history.val_loss[-1] == pytest.approx(value, rel=1e-14)
    assert result.history.score_name == "R^2"


@pytest.mark.parametrize(("offset", "score"), [(0.0, 1.0), (0.5, 0.0)])
def test_constant_targets_score_one_where_they_are_hit_and_else_zero(offset: float, score: float) -> None:
    """0.1 + 0.2 sixty times: their mean is another number, which is not to matter. With scikit-learn's convention."""
    y = np.full((60, 2), 0.1 + 0.2)
    y[:, 1] = Y[:, 1]
    net = Network(3, 1, n_outputs=2)
    start = net.controls(mu=[0.1 + 0.2 + offset, 0.0], h=[0.0])
    history = ocdl.train(net, start, X, y, objective=Objective("squared_error"), max_iter=0).history
    second = r2_score(y[:, 1], np.zeros(60))
    assert history.score.tolist() == [pytest.approx((score + second) / 2, rel=1e-12)]
    exact = np.where([True, False], 0.25, y)  # a mean without roundoff, for scikit-learn
    start.mu[0] = 0.25 + offset
    history = ocdl.train(net, start, X, exact, objective=Objective("squared_error"), max_iter=0).history
    assert history.score[0] == pytest.approx(r2_score(exact, net.predict(start, X)), rel=1e-12)


def test_a_single_sample_has_a_score() -> None:
    net = Network(3, 1)
    history = ocdl.train(net, net.init(0), X[:1], [2.0], objective=Objective("squared_error"), max_iter=0).history
    assert history.score.tolist() == [0.0]


def test_the_history_of_a_regression_has_no_accuracy() -> None:
    history = train(validation=(X, Y)).history
    for name in ("accuracy", "val_accuracy"):
        with pytest.raises(AttributeError, match=r"this history has no accuracy: its score, in history.score, is R\^2"):
            getattr(history, name)
    assert not hasattr(history, "accuracy")
    classes = ocdl.train(Network(3, 2), Network(3, 2).init(0), X, X[:, 0] > 0, max_iter=3).history
    assert classes.accuracy is classes.score
    assert classes.val_accuracy is classes.val_score


def test_histories_become_data_frames_and_pictures() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    history = train(validation=(X, Y)).history
    frame = history.to_pandas()
    assert {"loss", "score", "val_loss", "val_score"} <= set(frame.columns)
    assert "accuracy" not in frame.columns
    assert frame.loc[history.evaluated, "score"].tolist() == history.score.tolist()
    curves = plot.score({"regression": history})
    assert curves.ax.get_ylabel() == "$R^2$"
    assert curves.training[0].get_ydata()[-1] == history.score[-1]
    assert curves.validation[0].get_ydata()[-1] == history.val_score[-1]
    with pytest.raises(AttributeError, match="no accuracy"):
        plot.accuracy(history)
    assert plot.history(history).training
    matplotlib.pyplot.close("all")


def test_callbacks_see_the_score() -> None:
    """That of the last evaluation: here of the start."""
    seen: list[ocdl.TrainingState] = []
    result = train(validation=(X[:30], Y[:30]), eval_every=100, callback=lambda state: seen.append(state))
    assert seen[-1].iteration == 30
    for name in ("score", "val_score", "val_loss"):
        assert getattr(seen[-1], name) == getattr(result.history, name)[0]
        assert not math.isnan(getattr(seen[-1], name))


# ---- the rest of a training does not mind what the targets are ----


@every_loss
def test_every_method_lowers_every_loss(loss: str) -> None:
    for name, method in OPTIMISERS.items():
        result = train(loss, optimiser=method, max_iter=40)
        net = Network(3, 4, n_outputs=2)
        values = [net.value(u, X, targets(loss), Objective(loss)) for u in (net.init(random_state=2), result.controls)]
        assert values[1] < values[0], name


@every_loss
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_resumed_training_is_the_whole_one(loss: str, dtype: str, tmp_path: Path) -> None:
    path = tmp_path / "c"
    net = Network(3, 4, n_outputs=2, dtype=dtype)
    for method in OPTIMISERS.values():
        arguments = {"net": net, "optimiser": method, "sample_weight": WEIGHTS, "validation": (X, targets(loss))}
        whole = train(loss, **arguments)
        train(loss, max_iter=11, checkpoint=path, **arguments)
        resumed = train(loss, checkpoint=ocdl.Checkpoint(path, resume=True), **arguments)
        assert_same(resumed, whole)


def assert_same(resumed: ocdl.Result, whole: ocdl.Result) -> None:
    for name in ("score", "val_score", "val_loss", "loss", "gradient_norm", "trials", "evaluated"):
        assert np.array_equal(getattr(resumed.history, name), getattr(whole.history, name), equal_nan=True), name
    assert np.array_equal(resumed.controls.to_vector(), whole.controls.to_vector())
    assert (resumed.n_iter, resumed.n_evals, resumed.status) == (whole.n_iter, whole.n_evals, whole.status)


@pytest.mark.parametrize("change", ["targets", "loss", "parameter"])
def test_a_checkpoint_identifies_targets_and_loss(change: str, tmp_path: Path) -> None:
    net, path = Network(3, 4, n_outputs=2), tmp_path / "c"
    start = net.init(0)
    ocdl.train(net, start, X, Y, objective=Objective(Huber(0.5)), max_iter=3, checkpoint=path)
    other = {
        "targets": (Y + 1e-15, Objective(Huber(0.5))),
        "loss": (Y, Objective("squared_error")),
        "parameter": (Y, Objective(Huber(0.6))),
    }[change]
    with pytest.raises(ValueError, match="other data" if change == "targets" else "another objective"):
        ocdl.train(
            net, start, X, other[0], objective=other[1], max_iter=6, checkpoint=ocdl.Checkpoint(path, resume=True)
        )
    again = ocdl.train(
        net,
        start,
        X,
        Y.tolist(),
        objective=Objective(Huber(0.5)),
        max_iter=6,
        checkpoint=ocdl.Checkpoint(path, resume=True),
    )
    assert again.n_iter == 6


def test_patience_returns_the_best_on_held_out_targets() -> None:
    rng = np.random.default_rng(1)
    net = Network(3, 8, n_outputs=2, augment=3)
    noise = X[:15], Y[:15] + 2 * rng.normal(size=(15, 2))
    held_out = X[15:], Y[15:]
    result = ocdl.train(
        net,
        net.init(random_state=0),
        *noise,
        objective=Objective("squared_error"),
        optimiser=Adam(),
        max_iter=3000,
        validation=ocdl.Validation(*held_out, patience=5),
        eval_every=10,
    )
    assert result.status is Status.EARLY_STOPPING
    value = net.value(result.controls, *held_out, Objective("squared_error"))
    assert value == result.history.val_loss.min() < result.history.val_loss[-1]


def test_batches_draw_real_targets_with_their_rows() -> None:
    """One epoch of single samples at a vanishing learning rate: the losses of the batches are those of the samples."""
    net = Network(3, 4, n_outputs=2)
    u, objective = net.init(0), Objective("squared_error", reduction="sum")
    for seed in range(3):
        method = Adam(lr=1e-300, batch_size=1)
        result = ocdl.train(net, u, X, Y, objective=objective, optimiser=method, max_iter=59, random_state=seed)
        alone = [net.value(u, X[i : i + 1], Y[i : i + 1], objective) for i in range(60)]
        np.testing.assert_allclose(np.sort(result.history.loss / 60), np.sort(alone), rtol=1e-12)


def test_flat_targets_give_the_same_training() -> None:
    net = Network(3, 4)
    runs = [
        ocdl.train(net, net.init(0), X, y, objective=Objective("huber"), optimiser=LBFGS(), max_iter=20)
        for y in (Y[:, 0], Y[:, :1], Y[:, 0].tolist())
    ]
    assert all(np.array_equal(run.controls.to_vector(), runs[0].controls.to_vector()) for run in runs)


def test_penalties_shrink_a_regression() -> None:
    small, large = (
        train(optimiser=LBFGS(), max_iter=200, objective=Objective("squared_error", penalties=ocdl.Tikhonov(weight)))
        for weight in (1e-6, 1.0)
    )
    assert large.controls.norm() < 0.5 * small.controls.norm()


def test_overflowing_targets_are_an_error_at_the_start() -> None:
    net = Network(3, 4)
    with pytest.raises(FloatingPointError, match="the objective or its derivatives overflow float64"):
        ocdl.train(net, net.init(0), X, np.full(60, 1e200), objective=Objective("squared_error"))
