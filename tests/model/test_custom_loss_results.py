"""What a custom loss may return, and what follows from errors in it."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from custom_losses import METHODS, WEIGHTS, CrossEntropy, Failing, Quadratic, X, labels, train

import ocdl
from ocdl import LBFGS, Adam, Backtracking, Chain, Network, NewtonCG, Objective
from ocdl.model.losses import CustomLoss


class Returning:
    """Returns the given result."""

    def __init__(self, actual: Any) -> None:
        self.actual = actual

    def value_and_grad(self, outputs: np.ndarray, targets: Any) -> Any:
        return self.actual


# ---- what it may return ----


@pytest.mark.parametrize(
    ("actual", "error", "message"),
    [
        (None, TypeError, r"must return a pair \(values, gradients\), got NoneType"),
        (np.zeros(5), TypeError, r"must return a pair \(values, gradients\), got ndarray"),
        ((np.zeros(5),), TypeError, r"must return a pair \(values, gradients\), got tuple"),
        ((np.zeros(5), np.zeros((5, 2)), 1), TypeError, "must return a pair"),
        ((0.0, np.zeros((5, 2))), ValueError, r"the values of .* must have shape \(5,\), \(samples,\), got \(\)"),
        ((np.zeros((5, 1)), np.zeros((5, 2))), ValueError, r"the values of .* must have shape \(5,\)"),
        ((np.zeros(4), np.zeros((5, 2))), ValueError, r"the values of .* must have shape \(5,\)"),
        (
            (np.zeros(5), np.zeros((5, 1))),
            ValueError,
            r"the gradients of .* must have shape \(5, 2\), \(samples, outputs\)",
        ),
        ((np.zeros(5), np.zeros(5)), ValueError, r"the gradients of .* must have shape \(5, 2\)"),
        ((np.full(5, np.nan), np.zeros((5, 2))), FloatingPointError, "the values of .* are NaN for sample 0"),
        (
            (np.zeros(5), np.where(np.arange(10).reshape(5, 2) == 7, np.nan, 0)),
            FloatingPointError,
            "the gradients of .* are NaN for sample 3",
        ),
        (
            (np.zeros(5, complex), np.zeros((5, 2))),
            TypeError,
            "the values of .* must be real numbers, got dtype complex",
        ),
        ((np.zeros(5), [["a"] * 2] * 5), TypeError, "the gradients of .* must be real numbers, got dtype <U1"),
        (("abcde", np.zeros((5, 2))), TypeError, "the values of .* must be real numbers"),
        (([None] * 5, np.zeros((5, 2))), TypeError, "the values of .* must be real numbers, got dtype object"),
        (
            ([0.0, [1.0]], np.zeros((5, 2))),
            ValueError,
            "the values of .* must be an array of real numbers, got a ragged sequence",
        ),
    ],
    ids=str,
)
def test_wrong_results_name_the_loss(actual: Any, error: type[Exception], message: str) -> None:
    net = Network(2, 3, n_outputs=2)
    u, rows, y = net.init(0), X[:5], np.zeros(5)
    nameless, named = Returning(actual), Returning(actual)
    named.name = "pudding"  # type: ignore[attr-defined]
    for loss, name in ((nameless, "Returning"), (named, "pudding")):
        objective = Objective(loss)
        for call in (
            lambda o=objective: net.value(u, rows, y, o),
            lambda o=objective: net.value_and_grad(u, rows, y, o),
            lambda o=objective: net.adjoint(u, rows, y, o),
            lambda o=objective: o.output_grad(net.predict(u, rows), y),
            lambda o=objective: ocdl.train(net, u, rows, y, objective=o, max_iter=3),
        ):
            with pytest.raises(error, match=message) as caught:
                call()
            assert f"{name}.value_and_grad" in str(caught.value)


def test_masked_results_are_refused() -> None:
    net = Network(2, 3, n_outputs=2)
    hidden = np.ma.masked_array(np.zeros(5), [True, *[False] * 4])
    with pytest.raises(ValueError, match=r"the values of Returning.value_and_grad has masked values"):
        net.value(net.init(0), X[:5], None, Objective(Returning((hidden, np.zeros((5, 2))))))


@pytest.mark.parametrize("score", ["high", None, 1j, np.ones(3), 10**400])
def test_a_score_that_is_no_number_names_the_loss(score: Any) -> None:
    loss = Quadratic()
    loss.score = lambda outputs, targets: score  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=r"^quadratic.score must return a real number, got "):
        train(loss, None, max_iter=2)


@pytest.mark.parametrize("member", ["value_and_grad", "score"])
def test_members_that_are_not_callable_are_refused(member: str) -> None:
    loss = Quadratic()
    setattr(loss, member, 5)
    with pytest.raises(TypeError, match=rf"{member}\(outputs, targets\)"):
        Objective(loss)


@pytest.mark.parametrize("y", [set(range(80)), range(80), "a" * 80, 5, {"a": {"b": 5}}], ids=str)
def test_targets_without_rows_are_refused_with_batches(y: Any) -> None:
    train(Quadratic(), y, max_iter=2)
    with pytest.raises(TypeError, match=r"^y must be an array, a table, .* cannot be indexed by row numbers"):
        train(Quadratic(), y, max_iter=2, optimiser=Adam(batch_size=16))


def test_a_single_number_in_an_array_is_no_targets() -> None:
    with pytest.raises(ValueError, match=r"y has shape \(\) but X has 80 samples"):
        train(Quadratic(), np.array(3.0))


@pytest.mark.parametrize("actual", [(np.ones(5), np.ones((5, 2), int)), ([True] * 5, [[1, 2]] * 5)])
def test_whole_numbers_and_lists_are_numbers(actual: Any) -> None:
    net = Network(2, 3, n_outputs=2)
    u = net.init(0)
    assert net.value(u, X[:5], None, Objective(Returning(actual), reduction="sum")) == 5
    assert net.value_and_grad(u, X[:5], None, Objective(Returning(list(actual)), reduction="sum"))[1].mu.any()


def test_gradients_have_any_memory_order() -> None:
    net, slopes = Network(2, 3, n_outputs=2), np.arange(10.0).reshape(5, 2)
    u = net.init(0)
    by_rows, by_columns = (Objective(Returning((np.ones(5), order(slopes)))) for order in (np.copy, np.asfortranarray))
    actual, expected = (net.value_and_grad(u, X[:5], None, objective)[1] for objective in (by_columns, by_rows))
    np.testing.assert_array_equal(actual.to_vector(), expected.to_vector())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_infinite_values_and_gradients_overflow(dtype: str) -> None:
    net = Network(2, 3, dtype=dtype)
    u = net.init(0)
    too_large = np.full(5, np.inf), np.zeros((5, 1))
    too_steep = np.zeros(5), np.full((5, 1), np.inf if dtype == "float64" else 1e200)
    for actual, calls in ((too_large, ("value", "value_and_grad")), (too_steep, ("value_and_grad", "adjoint"))):
        objective = Objective(Returning(actual))
        for call in calls:
            with pytest.raises(FloatingPointError):
                getattr(net, call)(u, X[:5], None, objective)
        with pytest.raises(FloatingPointError):
            ocdl.train(net, u, X[:5], None, objective=objective, max_iter=3)
    with pytest.raises(FloatingPointError, match="the gradient of the loss overflows"):
        Objective(Returning(too_steep)).output_grad(np.zeros((5, 1), dtype), None)


def test_a_trial_step_that_overflows_is_rejected_and_the_training_continues() -> None:
    """Values above 1 are infinite: a search takes shorter steps."""

    class Walled(Quadratic):
        def value_and_grad(self, outputs: np.ndarray, targets: Any) -> Any:
            values, slopes = super().value_and_grad(outputs - 3, targets)
            return np.where(values > 40, np.inf, values), slopes

    result = train(Walled(), None, optimiser=Backtracking(L0=1e-3), max_iter=20)
    assert np.isfinite(result.history.loss).all()
    assert result.history.loss[-1] < result.history.loss[0]


def test_lengths_that_do_not_fit_are_named() -> None:
    net = Network(2, 3)
    with pytest.raises(ValueError, match="y has 79 targets but X has 80 samples"):
        net.value(net.init(0), X, list(range(79)), Objective(Quadratic()))


@pytest.mark.parametrize("error", [ZeroDivisionError("mine"), KeyboardInterrupt("mine"), SystemExit(3), MemoryError()])
@pytest.mark.parametrize("method", [Backtracking(L0=10.0), Adam(batch_size=16), LBFGS()], ids=repr)
def test_an_exception_arrives_unchanged_and_the_last_iterate_is_on_disk(
    error: BaseException, method: Any, tmp_path: Path
) -> None:
    path, y = tmp_path / "c", np.zeros(80)
    with pytest.raises(type(error)) as caught:
        train(Failing(error, 9), y, optimiser=method, checkpoint=path, max_iter=1000, eval_every=1000)
    assert caught.value is error
    reached = train(
        Quadratic(), y, optimiser=method, checkpoint=ocdl.Checkpoint(path, resume=True), max_iter=0, eval_every=1000
    )
    assert 0 < reached.n_iter <= 9
    whole = train(Quadratic(), y, optimiser=method, max_iter=reached.n_iter, eval_every=1000)
    assert np.array_equal(reached.controls.to_vector(), whole.controls.to_vector())
    resumed = train(
        Quadratic(), y, optimiser=method, checkpoint=ocdl.Checkpoint(path, resume=True), max_iter=60, eval_every=1000
    )
    assert_same(resumed, train(Quadratic(), y, optimiser=method, max_iter=60, eval_every=1000))


def test_an_exception_in_the_first_evaluation_or_the_score_is_raised_unchanged(tmp_path: Path) -> None:
    error = LookupError("mine")
    with pytest.raises(LookupError) as caught:
        train(Failing(error, 0), None, checkpoint=tmp_path / "c")
    assert caught.value is error
    assert train(Quadratic(), None, checkpoint=ocdl.Checkpoint(tmp_path / "c", resume=True), max_iter=5).n_iter == 5

    class BadScore(Quadratic):
        def score(self, outputs: np.ndarray, targets: Any) -> float:
            raise error

    with pytest.raises(LookupError) as caught:
        train(BadScore(), None)
    assert caught.value is error
    net = Network(2, 3)
    with pytest.raises(LookupError) as caught:
        net.value(net.init(0), X, None, Objective(Failing(error, 0)))
    assert caught.value is error


def assert_same(resumed: ocdl.Result, whole: ocdl.Result) -> None:
    for name in ("score", "val_score", "val_loss", "loss", "gradient_norm", "trials", "evaluated"):
        assert np.array_equal(getattr(resumed.history, name), getattr(whole.history, name), equal_nan=True), name
    assert np.array_equal(resumed.controls.to_vector(), whole.controls.to_vector())
    assert (resumed.n_iter, resumed.n_evals, resumed.status) == (whole.n_iter, whole.n_evals, whole.status)


# ---- scores ----


def test_scores_are_those_of_the_loss() -> None:
    class Scored(Quadratic):
        def score(self, outputs: np.ndarray, targets: Any) -> float:
            assert targets is y
            return float(outputs.max())

    y, net = {"any": np.zeros(80)}, Network(2, 5, time_steps="free")
    history = train(Scored(), y, net, validation=(X, y)).history
    assert history.score_name == "score"
    assert history.score[0] == net.predict(net.init(random_state=2), X).max()
    assert np.array_equal(history.val_score, history.score)
    assert "score" in history.to_pandas().columns
    with pytest.raises(AttributeError, match=r"no accuracy: its score, in history\.score, is score"):
        history.accuracy  # noqa: B018


def test_without_a_score_it_is_nan_and_the_rest_works() -> None:
    history = train(Quadratic(), None, validation=ocdl.Validation(X, patience=1000)).history
    assert np.isnan(history.score).all()
    assert np.isnan(history.val_score).all()
    assert np.isfinite(history.val_loss).all()
    assert len(history.score) == len(history.evaluated)


# ---- files ----


@pytest.mark.parametrize("optimiser", [*METHODS, "chain"])
def test_a_resumed_training_is_the_whole_one(optimiser: str, tmp_path: Path) -> None:
    method = METHODS.get(optimiser) or Chain((Adam(batch_size=20), 10), (LBFGS(), None))
    for k, y in enumerate((labels(1), labels(1).tolist(), pandas.Series(labels(1)))):
        arguments = {"optimiser": method, "sample_weight": WEIGHTS, "validation": (X, y)}
        whole = train(CrossEntropy(), y, **arguments)
        train(CrossEntropy(), y, max_iter=13 + k, checkpoint=tmp_path / "c", **arguments)
        assert_same(
            train(CrossEntropy(), y, checkpoint=ocdl.Checkpoint(tmp_path / "c", resume=True), **arguments), whole
        )


def test_a_checkpoint_stores_the_name_of_a_loss(tmp_path: Path) -> None:
    class Renamed(CrossEntropy):
        name = "another"

    y, path = labels(1), tmp_path / "c"
    train(CrossEntropy(), y, max_iter=3, checkpoint=path)
    with pytest.raises(ValueError, match=r"belongs to a training with another objective: .*my cross entropy.*another"):
        train(Renamed(), y, checkpoint=ocdl.Checkpoint(path, resume=True))
    with pytest.raises(ValueError, match="another objective"):
        train("cross_entropy", y, checkpoint=ocdl.Checkpoint(path, resume=True))
    with pytest.raises(ValueError, match="other data"):
        train(CrossEntropy(), 1 - y, checkpoint=ocdl.Checkpoint(path, resume=True))


@pytest.mark.parametrize("name", [None, 3, b"bytes"])
def test_without_a_name_a_checkpoint_is_refused_at_once(name: Any, tmp_path: Path) -> None:
    class Nameless(Quadratic):
        pass

    loss = Nameless()
    loss.name = name
    with pytest.raises(
        ValueError, match="a checkpoint identifies a custom loss by its name: give Nameless an attribute"
    ):
        train(loss, None, checkpoint=tmp_path / "c")
    assert not loss.calls
    assert not (tmp_path / "c").exists()
    assert train(loss, None, max_iter=3).n_iter == 3


# ---- what needs second derivatives ----


@pytest.mark.parametrize(
    "compute",
    [
        lambda net, u, o: net.hessian_product(u, X, None, o, du=u),
        lambda net, u, o: net.gauss_newton_product(u, X, None, o, du=u),
        lambda net, u, o: ocdl.train(net, u, X, None, objective=o, optimiser=NewtonCG()),
        lambda net, u, o: ocdl.train(net, u, X, None, objective=o, optimiser=NewtonCG(curvature="gauss_newton")),
        lambda net, u, o: ocdl.train(net, u, X, None, objective=o, optimiser=Chain((Adam(), 3), (NewtonCG(), None))),
    ],
    ids=["hessian", "gauss-newton", "newton", "newton with gauss-newton", "chain"],
)
def test_second_derivatives_are_refused(compute: Callable[..., Any]) -> None:
    net, loss = Network(2, 3), Quadratic()
    with pytest.raises(ValueError, match="the custom loss quadratic has no second derivative"):
        compute(net, net.init(0), Objective(loss))
    assert not loss.calls


# ---- it is a value of an objective ----


def test_objectives_with_custom_losses_are_values() -> None:
    loss = CrossEntropy()
    assert isinstance(loss, CustomLoss)
    assert Objective(loss) == Objective(loss) != Objective(CrossEntropy())
    assert Objective(loss).loss_name == "my cross entropy"
    assert Objective(loss).score_name == "score"
    assert pickle.loads(pickle.dumps(Objective(loss))).loss_name == "my cross entropy"
    with pytest.raises(TypeError, match="an object with a method value_and_grad"):
        Objective(CrossEntropy)


def test_steep_losses_at_rest() -> None:
    """Zero slopes end a training at once."""
    result = train(Returning((np.ones(80), np.zeros((80, 1)))), None, tol=1e-10)
    assert result.n_iter == 0
    assert result.history.loss.tolist() == [1.0]
    assert math.isnan(result.history.score[0])
