"""Rows as the estimators train on them: merged and sorted, quickly and in little memory."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ocdl import ODEClassifier, ODERegressor
from ocdl.estimator import samples
from ocdl.estimator.samples import Samples, merge_samples


def by_content(actual: Samples) -> list[tuple[float, ...]]:
    weights = actual.row_weights
    return sorted((*x, *np.atleast_1d(y), w) for x, y, w in zip(actual.X, actual.y, weights, strict=True))


def merged_slowly(X: Any, y: Any, weights: Any) -> list[tuple[float, ...]]:
    sums: dict[tuple[float, ...], list[float]] = {}
    for x, target, weight in zip(X, y, weights, strict=True):
        sums.setdefault((*(x + 0.0), *np.atleast_1d(target)), []).append(float(weight))
    merged = {row: sum(sorted(actual)) for row, actual in sums.items() if sum(actual) > 0}
    total, squares = sum(merged.values()), sum(weight**2 for weight in merged.values())
    return sorted((*row, weight * total / squares) for row, weight in merged.items())


def few_values(seed: int, rows: int = 400) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 2, (rows, 3)) * rng.choice([1.0, -1.0], (rows, 3))  # zeros of both signs
    return X, rng.integers(0, 3, rows), rng.choice([0.0, 0.25, 0.5, 3.0], rows)


@pytest.mark.parametrize("hashes", ["as they are", "of two bits", "all equal"])
@pytest.mark.parametrize("seed", range(5))
def test_equal_rows_are_merged_whatever_the_hashes(seed: int, hashes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain: Callable[..., Any] = samples._hashes
    if hashes != "as they are":
        bits = np.uint64(3 if hashes == "of two bits" else 0)
        monkeypatch.setattr(samples, "_hashes", lambda X, targets: plain(X, targets) & bits)
    X, y, weights = few_values(seed)
    actual = merge_samples(X, y, weights)
    np.testing.assert_allclose(by_content(actual), merged_slowly(X, y, weights), rtol=1e-12)
    numbers = np.column_stack([y, y % 2]).astype(float)
    np.testing.assert_allclose(
        by_content(merge_samples(X, numbers, weights)), merged_slowly(X, numbers, weights), rtol=1e-12
    )


@pytest.mark.parametrize("unit", [1.0, 100.0, 1e-3, 1e300])
def test_the_unit_of_the_weights_does_not_matter(unit: float) -> None:
    X, y, _ = few_values(0, 40)
    whole, rest = np.random.default_rng(0).integers(1, 4, 40), np.random.default_rng(0).uniform(1, 4, 40)
    if unit >= 1:
        assert merge_samples(X, y, min(unit, 100.0) * whole).total == merge_samples(X, y, whole.astype(float)).total
    assert merge_samples(X, y, unit * rest).total == pytest.approx(merge_samples(X, y, rest).total, rel=1e-12)
    assert merge_samples(X, y, np.full(40, unit / 3)).total <= 40
    assert merge_samples(X + np.arange(40.0)[:, None], y, rest).total == pytest.approx(
        rest.sum() ** 2 / (rest**2).sum()
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_the_rows_does_not_matter(seed: int) -> None:
    X, y, weights = few_values(seed)
    weights = weights / 7  # whose sums depend on their order
    shuffled = np.random.default_rng(seed + 1).permutation(len(X))
    one, other = (
        merge_samples(X, y, weights),
        merge_samples(np.asfortranarray(X[shuffled]), y[shuffled], weights[shuffled]),
    )
    for mine, theirs in zip(one, other, strict=True):
        assert np.asarray(mine).tobytes() == np.asarray(theirs).tobytes()
    assert one.X.flags.c_contiguous


@pytest.mark.parametrize("estimator", [ODEClassifier, ODERegressor])
def test_order_and_repetition_do_not_matter_for_the_validation_split(estimator: Any) -> None:
    X, y, _ = few_values(0, 60)
    shuffled = np.random.default_rng(1).permutation(np.repeat(np.arange(60), 2))
    settings = {"random_state": 0, "early_stopping": True, "validation_fraction": 0.3, "max_iter": 20, "n_layers": 3}
    once = estimator(**settings).fit(X, y, sample_weight=np.full(60, 2.0))
    twice = estimator(**settings).fit(X[shuffled], y[shuffled])
    assert np.array_equal(once.controls_.to_vector(), twice.controls_.to_vector())
    assert np.array_equal(once.history_.val_loss, twice.history_.val_loss, equal_nan=True)


def test_both_parts_of_a_split_are_the_rows_that_were_chosen() -> None:
    rng = np.random.default_rng(0)
    actual = merge_samples(rng.normal(size=(50, 40)), rng.integers(0, 2, 50), rng.uniform(1, 2, 50))
    rows = rng.permutation(50)
    expected = [actual.select(rows[:30]), actual.select(rows[30:])]
    for part, select in zip(actual.partition(rows[:30], rows[30:]), expected, strict=True):
        for mine, theirs in zip(part, select, strict=True):
            assert np.array_equal(np.asarray(mine), np.asarray(theirs))


@pytest.mark.parametrize("rows", [5, 30, 3000])
def test_linear_residuals_are_those_of_least_squares(rows: int) -> None:
    rng = np.random.default_rng(rows)
    actual = merge_samples(rng.normal(size=(rows, 4)), rng.normal(size=(rows, 2)), rng.uniform(0.5, 2, rows))
    root, design = np.sqrt(actual.row_weights)[:, None], np.column_stack([actual.X, np.ones(rows)])
    left = root * (actual.y - design @ np.linalg.lstsq(root * design, root * actual.y, rcond=None)[0])
    expected = np.sum(left**2, axis=0) / actual.total
    assert samples.linear_residuals(actual) == pytest.approx(expected, rel=1e-10, abs=1e-25)


def test_linear_residuals_do_not_depend_on_the_size_of_a_column() -> None:
    rng = np.random.default_rng(0)
    actual = merge_samples(rng.uniform(-1, 1, (50, 4)), rng.normal(size=(50, 1)), np.ones(50))
    scaled = actual._replace(X=actual.X * np.array([1e-300, 1.0, 1e200, 1.7e308]))
    assert samples.linear_residuals(scaled) == pytest.approx(samples.linear_residuals(actual), rel=1e-10)


def peak(function: Callable[..., Any], *arguments: Any) -> int:
    tracemalloc.start()
    try:
        function(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def fit(estimator: Any, X: Any, y: Any, share: float) -> None:
    early = {"early_stopping": True, "validation_fraction": share} if share else {}
    estimator(n_layers=2, max_iter=5, random_state=0, **early).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("share", "most"), [(0.0, 1.4), (0.2, 1.6)])
@pytest.mark.parametrize("estimator", [ODEClassifier, ODERegressor])
def test_a_fit_takes_one_more_X_beside_X(estimator: Any, share: float, most: float) -> None:
    """Beside the merged X there are single columns, of which X has 20: targets, weights, and numbers of rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 20))
    y = (X[:, 0] > 0).astype(int) if estimator is ODEClassifier else X[:, 0]
    fit(estimator, X[:100], y[:100], share)
    assert peak(fit, estimator, X, y, share) < most * X.nbytes


def test_sorting_rows_is_several_times_faster_than_sorting_them_by_content() -> None:
    """Ten times on most machines; the limit leaves room for those that compare rows faster."""
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(200_000, 20)), rng.integers(0, 2, 200_000), np.ones(200_000)

    def sorted_by_content() -> None:
        np.unique(np.column_stack([y, X]), axis=0, return_inverse=True)

    def seconds(function: Callable[[], Any]) -> float:
        start = time.process_time()
        function()
        return time.process_time() - start

    merge_samples(X, y, weights)
    ratios = (seconds(lambda: merge_samples(X, y, weights)) / seconds(sorted_by_content) for _ in range(5))
    assert any(ratio < 0.25 for ratio in ratios)
