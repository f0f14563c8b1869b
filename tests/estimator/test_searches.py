"""Searches and reproductions by joblib's backends: the scores of one process, and no more threads than cores."""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV, cross_validate

import ocdl
from ocdl.reproduce import reproduce

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@pytest.fixture
def dask_client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
            yield client


def searches() -> tuple[Any, Any]:
    """The scores of a grid search and of a cross validation."""
    X, y = make_moons(120, noise=0.2, random_state=0)
    model = ocdl.ODEClassifier(n_layers=4, max_iter=20, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations
        search = GridSearchCV(model, {"n_layers": [2, 4], "alpha": [0.0, 0.01]}, cv=3).fit(X, y)
        actual = cross_validate(model, X, y, cv=3, return_train_score=True, return_estimator=True)
    controls = [estimator.controls_.to_vector() for estimator in actual["estimator"]]
    scores = [search.cv_results_[f"split{k}_test_score"] for k in range(3)]
    return np.array(scores), np.concatenate([actual["test_score"], actual["train_score"], *controls])


def threads_in_workers() -> int:
    """The most threads that ocdl takes in any worker."""
    return max(joblib.Parallel()(joblib.delayed(threads_here)() for _ in range(4)))


def threads_here() -> int:
    import ocdl

    return ocdl.get_num_threads()


def check_searches(**config: Any) -> None:
    expected = searches()
    with joblib.parallel_config(**config):
        actual = searches()
    for a, b in zip(actual, expected, strict=True):
        assert np.array_equal(a, b)


def check_reproduction(folder: Path, backend: str) -> None:
    """Every number of every run but the times, and the numbers of the figure."""
    for name, select in (("here", None), ("there", backend)):
        reproduce(["fig8"], str(folder / name), seeds=1, jobs=2, quick=True, backend=select)
    runs = sorted(path.name for path in (folder / "here" / "runs").iterdir())
    assert len(runs) > 1
    for name in runs:
        here, there = (np.load(folder / place / "runs" / name) for place in ("here", "there"))
        for key in set(here.files) - {"seconds", "cost"}:
            assert here[key].tobytes() == there[key].tobytes(), (name, key)
    tables = [(folder / place / "data" / "fig8.csv").read_bytes() for place in ("here", "there")]
    assert tables[0] == tables[1]


def test_loky_finds_the_scores_of_one_process() -> None:
    check_searches(backend="loky", n_jobs=2)


def test_loky_limits_the_threads_of_its_workers() -> None:
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert threads_in_workers() <= max(1, CORES // 2)
    with joblib.parallel_config(backend="loky", n_jobs=2, inner_max_num_threads=1):
        assert threads_in_workers() == 1


def test_a_reproduction_by_loky_is_that_of_one_process(tmp_path: Path) -> None:
    check_reproduction(tmp_path, "loky")


@pytest.mark.extras
@pytest.mark.usefixtures("dask_client")
def test_dask_finds_the_scores_of_one_process() -> None:
    check_searches(backend="dask")


@pytest.mark.extras
@pytest.mark.usefixtures("dask_client")
def test_dask_limits_the_threads_of_its_workers() -> None:
    with joblib.parallel_config(backend="dask"):
        assert threads_in_workers() == 1


@pytest.mark.extras
@pytest.mark.usefixtures("dask_client")
def test_a_reproduction_by_dask_is_that_of_one_process(tmp_path: Path) -> None:
    check_reproduction(tmp_path, "dask")
