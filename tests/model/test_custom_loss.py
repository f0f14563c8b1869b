"""Custom losses train as those of the core do, are called once per evaluation, and their errors stay theirs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas
import pytest
from custom_losses import METHODS, WEIGHTS, CrossEntropy, Quadratic, X, labels, train
from problems import REDUCTIONS, random_problem

import ocdl
from ocdl import Adam, Backtracking, GradientDescent, Network, Objective, Tikhonov

every_method = pytest.mark.parametrize("optimiser", METHODS)


# ---- the same path ----


@every_method
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_copy_of_a_built_in_loss_gives_the_same_training(
    optimiser: str, outputs: int, reduction: str, weighted: bool
) -> None:
    """Fifty iterations, to 1e-12 of the largest control; penalties are added to both.

    L-BFGS divides differences of gradients by each other, which multiplies what roundoff makes different.
    """
    iterations = 8 if optimiser == "lbfgs" else 50
    net, y = Network(2, 5, n_outputs=outputs, time_steps="free"), labels(outputs)
    method = GradientDescent(0.1 / 80) if (optimiser, reduction) == ("gradient descent", "sum") else METHODS[optimiser]
    arguments = {"optimiser": method, "sample_weight": WEIGHTS if weighted else None, "validation": (X[:20], y[:20])}
    arguments["max_iter"] = iterations
    for penalty in (None, (Tikhonov(1e-3), ocdl.L1(1e-4))):
        theirs, ours = (
            train(Objective(loss, reduction=reduction, penalties=penalty), y, net, **arguments)
            for loss in ("cross_entropy", CrossEntropy())
        )
        assert (ours.n_iter, ours.n_evals, ours.status) == (theirs.n_iter, theirs.n_evals, theirs.status)
        a, b = theirs.controls.to_vector(), ours.controls.to_vector()
        assert np.abs(a - b).max() <= 1e-12 * np.abs(a).max()
        for name in ("loss", "gradient_norm", "val_loss", "time_steps"):
            np.testing.assert_allclose(getattr(ours.history, name), getattr(theirs.history, name), rtol=1e-10)
        assert ours.history.val_score.tolist() == pytest.approx(theirs.history.val_score.tolist())
        if not weighted:
            assert ours.history.score.tolist() == pytest.approx(theirs.history.score.tolist())


@pytest.mark.parametrize("net", [Network.preset("odenet+simplex", 2, 5), Network(2, 5, dtype="float32")], ids=repr)
def test_on_the_simplex_and_in_single_precision(net: Network) -> None:
    y, tolerance = labels(1), 1e-12 if net.dtype == np.float64 else 1e-3
    theirs, ours = (train(loss, y, net, optimiser=Backtracking()) for loss in ("cross_entropy", CrossEntropy()))
    a, b = theirs.controls.to_vector(), ours.controls.to_vector()
    assert b.dtype == net.dtype
    assert np.abs(a - b).max() <= tolerance * np.abs(a).max()


def test_a_training_is_deterministic() -> None:
    for method in METHODS.values():
        first, second = (train(CrossEntropy(), labels(1), optimiser=method, max_iter=20) for _ in range(2))
        assert np.array_equal(first.controls.to_vector(), second.controls.to_vector())
        assert np.array_equal(first.history.loss, second.history.loss)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_values_gradients_and_costates_are_those_of_the_core(dtype: str, reduction: str, weighted: bool) -> None:
    net = Network(2, 4, n_outputs=3, tableau="kutta3", time_steps="free", augment=1, dtype=dtype)
    p = random_problem(net, samples=20)
    weights = p.sample_weight if weighted else None
    theirs, ours = (
        Objective(loss, reduction=reduction, penalties=Tikhonov(0.3)) for loss in ("cross_entropy", CrossEntropy())
    )
    rtol = 1e-12 if dtype == "float64" else 2e-4
    close: dict[str, Any] = {"rtol": rtol, "atol": rtol * 1e-2}
    (J, g), (J_own, g_own) = (
        net.value_and_grad(*p.data, o, sample_weight=weights, input_grad=True) for o in (theirs, ours)
    )
    assert J_own == pytest.approx(J, rel=rtol)
    assert net.value(*p.data, ours, sample_weight=weights) == J_own
    np.testing.assert_allclose(g_own.to_vector(), g.to_vector(), **close)
    np.testing.assert_allclose(g_own.X, g.X, **close)
    assert net.value_and_grad(*p.data, ours, sample_weight=weights)[1].X is None
    np.testing.assert_allclose(
        net.adjoint(*p.data, ours, sample_weight=weights), net.adjoint(*p.data, theirs, sample_weight=weights), **close
    )
    z = net.predict(p.u, p.X)
    np.testing.assert_allclose(ours.output_grad(z, p.y, weights), theirs.output_grad(z, p.y, weights), **close)
    assert ours.output_grad(z, p.y, weights).dtype == dtype
    if not weighted:
        np.testing.assert_allclose(net.sensitivity(*p.data, ours), net.sensitivity(*p.data, theirs), **close)


def test_certificates_hold() -> None:
    p = random_problem(Network(2, 4, tableau="midpoint"), samples=10)
    ours = p.net.certify(*p.data, Objective(CrossEntropy()))
    theirs = p.net.certify(*p.data, Objective("cross_entropy"))
    assert bool(ours) == bool(theirs)
    assert str(ours)


# ---- how it is called ----


@pytest.mark.parametrize("optimiser", [name for name in METHODS if "batches" not in name])
def test_a_loss_is_called_once_per_evaluation_with_all_rows(optimiser: str) -> None:
    loss, y = Quadratic(), list(range(80))
    result = train(loss, y, optimiser=METHODS[optimiser], max_iter=20)
    assert len(loss.calls) == result.n_evals
    assert all(rows == 80 and targets is y for rows, targets in loss.calls)


def test_single_evaluations_call_a_loss_once() -> None:
    net, y, loss = Network(2, 5), np.zeros(80), Quadratic()
    u = net.init(0)
    for compute in (net.value, net.value_and_grad, net.adjoint):
        loss.calls.clear()
        compute(u, X, y, Objective(loss))
        assert [(rows, targets is y) for rows, targets in loss.calls] == [(80, True)]


TARGETS: dict[str, Callable[[], Any]] = {
    "array": lambda: np.arange(80.0),
    "labels": lambda: np.arange(80),
    "texts": lambda: np.array([f"t{i}" for i in range(80)]),
    "list": lambda: list(range(80)),
    "tuple": lambda: tuple(range(80)),
    "series": lambda: pandas.Series(np.arange(80), index=np.arange(80)[::-1]),
    "frame": lambda: pandas.DataFrame({"a": np.arange(80), "b": [f"t{i}" for i in range(80)]}),
    "dict": lambda: {"a": np.arange(80), "b": {"c": list(range(80))}},
    "none": lambda: None,
}


def first_numbers(targets: Any) -> list[int] | None:
    """Which rows these targets belong to."""
    if targets is None:
        return None
    if isinstance(targets, dict):
        assert list(targets["a"]) == list(targets["b"]["c"])
        return list(targets["a"])
    if isinstance(targets, pandas.DataFrame):
        return targets["a"].tolist()
    return [int(str(entry).lstrip("t").split(".")[0]) for entry in targets]


@pytest.mark.parametrize("kind", TARGETS)
def test_a_custom_loss_receives_the_targets_unchanged(kind: str) -> None:
    y, loss = TARGETS[kind](), Quadratic()
    net = Network(2, 3)
    net.value(net.init(0), X, y, Objective(loss))
    train(loss, y, net, max_iter=3, validation=(X, y))
    assert all(targets is y for _, targets in loss.calls)


@pytest.mark.parametrize("kind", TARGETS)
def test_batches_see_their_rows(kind: str) -> None:
    """Outputs and targets belong together: with one output x, W = 1 and a vanishing learning rate."""
    seen: list[tuple[np.ndarray, Any]] = []
    y, loss = TARGETS[kind](), Quadratic(lambda outputs, targets: seen.append((outputs[:, 0].copy(), targets)))
    net, rows = Network(1, 1), np.arange(80.0)[:, None]
    start = net.controls(W=[[1.0]], h=[0.0])
    method = Adam(lr=1e-300, batch_size=16)
    ocdl.train(net, start, rows, y, objective=Objective(loss), optimiser=method, max_iter=5, random_state=0)
    batches = [(z, targets) for z, targets in seen if len(z) == 16]
    assert len(batches) >= 5
    for z, targets in batches:
        assert type(targets) is type(y)
        numbers = first_numbers(targets)
        assert numbers is None or numbers == z.tolist()
    epoch = np.concatenate([z for z, _ in batches[-5:]])
    assert len(np.unique(epoch)) >= 64  # without replacement


def test_a_loss_receives_its_own_outputs() -> None:
    def spoil(outputs: np.ndarray, targets: Any) -> None:
        kept.append(outputs.copy())

    class Spoiling(CrossEntropy):
        def value_and_grad(self, outputs: np.ndarray, targets: Any) -> tuple[np.ndarray, np.ndarray]:
            actual = super().value_and_grad(outputs, targets)
            outputs[...] = np.nan
            return actual

    kept: list[np.ndarray] = []
    y = labels(1)
    plain, spoilt = (train(loss, y, max_iter=20) for loss in (CrossEntropy(), Spoiling()))
    assert np.array_equal(plain.controls.to_vector(), spoilt.controls.to_vector())
    p = random_problem(Network(2, 3), samples=9)
    z = p.net.predict(p.u, p.X)
    Objective(Spoiling()).output_grad(z, p.y)
    assert np.isfinite(z).all()
    train(Quadratic(spoil), y, max_iter=3)
    assert not np.array_equal(kept[0], kept[-1])  # the stored outputs are not overwritten


def test_a_loss_can_compute_with_the_package() -> None:
    """Evaluations and trainings within an evaluation."""
    net = Network(2, 3)
    u, y = net.init(0), labels(1)
    expected = net.value_and_grad(u, X, y)

    def compute(outputs: np.ndarray, targets: Any) -> None:
        J, g = net.value_and_grad(u, X, y)
        assert J == expected[0]
        assert np.array_equal(g.to_vector(), expected[1].to_vector())
        ocdl.train(net, u, X[:10], y[:10], max_iter=2)

    loss = Quadratic(compute)
    nested, alone = (train(each, y, max_iter=5) for each in (loss, Quadratic()))
    assert np.array_equal(nested.controls.to_vector(), alone.controls.to_vector())
    assert loss.calls


def test_a_loss_can_be_called_from_several_threads() -> None:
    """One loss in eight trainings side by side: each has its own outputs, and the bits of a training alone."""
    y, loss = labels(1), CrossEntropy()
    alone = train(loss, y, max_iter=15).controls.to_vector()
    with ThreadPoolExecutor(8) as pool:
        actual = list(pool.map(lambda _: train(loss, y, max_iter=15).controls.to_vector(), range(8)))
    assert all(np.array_equal(vector, alone) for vector in actual)


def test_an_exception_in_one_thread_leaves_the_others_alone() -> None:
    y = labels(1)

    class Failing(CrossEntropy):
        def value_and_grad(self, outputs: np.ndarray, targets: Any) -> tuple[np.ndarray, np.ndarray]:
            raise ZeroDivisionError("in this thread")

    alone = train(CrossEntropy(), y, max_iter=15).controls.to_vector()
    with ThreadPoolExecutor(4) as pool:
        trainings = [pool.submit(train, (Failing if i % 2 else CrossEntropy)(), y, max_iter=15) for i in range(8)]
    for i, training in enumerate(trainings):
        if i % 2:
            with pytest.raises(ZeroDivisionError, match="in this thread"):
                training.result()
        else:
            assert np.array_equal(training.result().controls.to_vector(), alone)
