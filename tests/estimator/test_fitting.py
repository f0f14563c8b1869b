"""A fit is a function of its plan; alpha is chosen by left-out rows; epochs and the unit of weights."""

from __future__ import annotations

import warnings
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import ocdl
from ocdl import ODEClassifier, ODERegressor
from ocdl.estimator.alpha import resolve_by_folds
from ocdl.estimator.fitting import fit_network
from ocdl.estimator.plan import FitPlan, FittedNetwork

KINDS = [ODEClassifier, ODERegressor]
X, Y = ocdl.datasets.make_donut2d(200, random_state=0)


def friedman(m: int, noise: float = 0.1) -> tuple[Any, Any]:
    rows, targets = make_friedman1(m, noise=noise, random_state=0)
    return StandardScaler().fit_transform(rows), targets


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_is_a_function_of_its_plan(kind: Any) -> None:
    model = kind(random_state=0, max_iter=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = kind(random_state=0, max_iter=20).fit(X, Y)
    plan = model._plan(X, Y)
    vectors = [fit_network(plan).controls.to_vector() for _ in range(2)]
    assert set(vars(model)) - set(model.get_params()) == {"n_features_in_"}
    assert np.array_equal(vectors[0], vectors[1])
    assert np.array_equal(vectors[0], fitted.controls_.to_vector())
    with pytest.raises(FrozenInstanceError):
        plan.alpha = 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(kind: Any) -> None:
    model = kind(random_state=0, max_iter=5, tol=1e9).fit(X, Y)
    before = dict(vars(model))
    with pytest.raises((ValueError, FloatingPointError)):
        model.set_params(alpha=1.7e308).fit(X, 1 - Y)
    assert {name for name, value in vars(model).items() if before[name] is not value} == {"alpha"}


def test_auto_takes_a_weaker_prior_where_there_is_much_to_learn() -> None:
    assert ODERegressor(random_state=0).fit(*friedman(300)).alpha_ < 1.0
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 5))
    assert ODERegressor(random_state=0).fit(rows, rows[:, 0] + 2 * rng.standard_normal(300)).alpha_ == 1.0
    rows, labels = make_classification(300, 8, flip_y=0.4, random_state=0)
    assert ODEClassifier(random_state=0).fit(rows, labels).alpha_ == 1.0


def counted_fits(kind: Any, rows: Any, targets: Any) -> list[FitPlan]:
    """The plans by which a search makes its fits."""
    plans: list[FitPlan] = []

    def fit(plan: FitPlan) -> FittedNetwork:
        plans.append(plan)
        return fit_network(replace(plan, max_iter=2))

    resolve_by_folds(kind(random_state=0)._plan(rows, targets), fit)
    return plans


def cost(plans: list[FitPlan]) -> float:
    """Multiplications by matrices of the layers, in all iterations."""
    return float(sum(len(plan.samples.X) * plan.max_iter * plan.network.dim**2 for plan in plans))


@pytest.mark.parametrize(("m", "columns"), [(9000, 10), (6000, 85)])
def test_the_search_of_auto_costs_no_more_than_a_fit(m: int, columns: int) -> None:
    """On tables of some thousand rows, with few columns or many."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((m, columns))
    plan = ODERegressor(random_state=0)._plan(rows, np.sin(2 * rows[:, 0]) + rows[:, 1] * rows[:, 2])
    assert cost(counted_fits(ODERegressor, rows, plan.targets.encode(plan.samples.y))) < cost([plan])


def test_where_the_prior_leaves_nothing_to_choose_there_is_no_search() -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((200, 180)), rng.integers(0, 2, 200)
    assert counted_fits(ODEClassifier, rows[:, :8], labels)
    assert not counted_fits(ODEClassifier, rows[:19, :8], labels[:19])
    wide = ODEClassifier(n_components=None)._plan(rows[:40].repeat(10, axis=1), labels[:40])
    assert resolve_by_folds(wide, fit_network).alpha == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_the_unit_of_sample_weights_does_not_matter(kind: Any) -> None:
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    settings = {"random_state": 0, "max_iter": 30, "tol": 1e9, "n_layers": 3}
    plain, large, small = (kind(**settings).fit(X, Y, w).predict(X) for w in (None, np.full(200, 100.0), None))
    assert np.array_equal(plain, large)
    one, hundredth = (kind(**settings).fit(X, Y, unit * weights).transform(X) for unit in (1.0, 0.01))
    np.testing.assert_allclose(one, hundredth, rtol=1e-6)
    assert np.array_equal(plain, small)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_with_mini_batches_iterations_are_epochs(alpha: float) -> None:
    seen: list[int] = []
    model = ODEClassifier(optimiser=ocdl.Adam(0.01, batch_size=30), max_iter=12, random_state=0, alpha=alpha)
    model.fit(X, Y, X_val=X, y_val=Y, callback=lambda state: seen.append(state.iteration))
    assert model.n_iter_ == 12
    assert len(model.history_) == 13
    assert model.history_.evaluated.tolist() == list(range(13))
    assert (np.diff(model.history_.seconds) >= 0).all()
    assert model.history_.trials.sum() >= 12 * 7
    assert max(seen) == 12


def test_the_warning_counts_both_phases_and_names_parameters_of_the_optimiser() -> None:
    with pytest.warns(ConvergenceWarning, match=r"after 12 iterations; .*; increase max_iter, scale"):
        ODEClassifier(max_iter=12, random_state=0, alpha=1.0).fit(*ocdl.datasets.make_spiral(random_state=0))
    adam = ODEClassifier(optimiser=ocdl.Adam(0.01, batch_size=50), max_iter=8, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"after 8 epochs; .*increase max_iter or the learning rate"):
        adam.fit(X, Y)


@pytest.mark.parametrize("source", [np.random.default_rng, np.random.RandomState])
def test_random_states_are_those_of_train(source: Any) -> None:
    one, same = (ODEClassifier(random_state=source(3), max_iter=3, tol=1e9).fit(X, Y) for _ in range(2))
    assert np.array_equal(one.controls_.to_vector(), same.controls_.to_vector())


@pytest.mark.parametrize("kind", KINDS)
def test_validation_data_come_in_pairs_and_parameters_by_name(kind: Any) -> None:
    with pytest.raises(ValueError, match="X_val and y_val must be given together"):
        kind().fit(X, Y, X_val=X)
    with pytest.raises(TypeError):
        kind("odenet")
    with pytest.raises(ValueError, match="early_stopping=True, but validation_fraction=0 "):
        kind(early_stopping=True, validation_fraction=0.0).fit(X, Y)
