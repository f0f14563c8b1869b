"""The flow moves a subspace of the columns: principal components of few rows, or the columns that count."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_wine,
    make_classification,
    make_friedman1,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score
from sklearn.preprocessing import StandardScaler

import ocdl
from ocdl import ODEClassifier, ODERegressor
from ocdl.estimator.subspace import principal_components

KINDS = [ODEClassifier, ODERegressor]


def wide(rows: int = 40, columns: int = 400) -> tuple[Any, Any]:
    X, y = make_classification(rows, columns, n_informative=5, random_state=0)
    return StandardScaler().fit_transform(X), y


def friedman(m: int, noise_columns: int) -> tuple[Any, Any]:
    """Ten columns, of which five count, and others of noise."""
    X, y = make_friedman1(m, noise=1.0, random_state=0)
    return np.hstack([np.sqrt(12) * (X - 0.5), np.random.default_rng(1).standard_normal((m, noise_columns))]), y


@pytest.mark.parametrize("shape", [(30, 100), (100, 30)])
def test_principal_components_are_orthonormal_and_hold_the_rows(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((shape[0], 7)) @ rng.standard_normal((7, shape[1]))
    components = principal_components(rows, min(shape))
    assert components.shape == (7, shape[1])
    np.testing.assert_allclose(components @ components.T, np.eye(7), atol=1e-12)
    np.testing.assert_allclose(rows @ components.T @ components, rows, atol=1e-10)
    two = principal_components(rows, 2)
    np.testing.assert_allclose(two, components[:2], atol=1e-9)
    assert np.linalg.norm(rows @ two.T) == pytest.approx(np.linalg.norm(np.linalg.svd(rows)[1][:2]), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_few_rows_with_many_columns_lie_in_the_span_of_the_rows(kind: Any) -> None:
    X, y = wide()
    model = kind(random_state=0, max_iter=60, tol=1e-2).fit(X, y)
    assert model.components_.shape == (39, 400)
    assert (model.network_.n_features, model.n_features_in_) == (39, 400)
    assert model.transform(X).shape == (40, 40)
    assert kind(n_components=None, random_state=0, max_iter=3, tol=1e9, alpha=1.0).fit(X, y).components_ is None
    assert kind(n_components=5, random_state=0, max_iter=3, tol=1e9).fit(X, y).network_.n_features == 5


def test_a_linear_model_in_the_span_of_the_rows_is_that_of_all_columns() -> None:
    X, y = wide()
    new = np.random.default_rng(1).standard_normal((200, 400))
    model = ODEClassifier(alpha=100.0, random_state=0).fit(X, y)
    line = LogisticRegression(C=1 / 300, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(new), line.predict_proba(new), rtol=0, atol=0.01)


def test_columns_of_noise_are_left_out_and_cost_little() -> None:
    scores = {}
    for noise_columns in (0, 20):
        X, y = friedman(3000, noise_columns)
        model = ODERegressor(random_state=0).fit(X[:1000], y[:1000])
        scores[noise_columns] = model.score(X[1000:], y[1000:])
    assert scores[20] > scores[0] - 0.02
    counting = np.flatnonzero(np.any(model.components_, axis=0))
    assert set(range(5)) <= set(counting)
    assert len(counting) <= 8
    assert model.feature_importances_[counting].sum() == 1.0
    assert set(np.argsort(model.feature_importances_)[-5:]) == set(range(5))
    alone = ODERegressor(random_state=0, alpha=model.alpha_, n_components=None).fit(X[:1000, counting], y[:1000])
    assert model.score(X[1000:], y[1000:]) == pytest.approx(alone.score(X[1000:, counting], y[1000:]), abs=0.01)


@pytest.mark.parametrize("data", [load_breast_cancer, load_wine, load_iris, load_diabetes])
def test_with_ten_to_thirty_rows_a_fit_is_as_good_as_a_linear_model(data: Any) -> None:
    """The mean over subsamples is not worse by more than the standard error of the difference, twice."""
    X, y = data(return_X_y=True)
    is_number = data is load_diabetes
    differences = []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        order, n = rng.permutation(len(y)), (10, 15, 20, 30)[seed % 4]
        kept, new = order[:n], order[n:]
        scaler = StandardScaler().fit(X[kept])
        ours, line = (
            (ODERegressor(random_state=0), Ridge())
            if is_number
            else (ODEClassifier(random_state=0), LogisticRegression())
        )
        score = r2_score if is_number else accuracy_score
        ours_score, line_score = (
            score(y[new], model.fit(scaler.transform(X[kept]), y[kept]).predict(scaler.transform(X[new])))
            for model in (ours, line)
        )
        differences.append(ours_score - line_score)
    assert np.mean(differences) > -2 * np.std(differences, ddof=1) / np.sqrt(len(differences)) - 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_importances_name_the_columns_that_count(kind: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4))
    y = X[:, 1] + 2 * X[:, 3]
    model = kind(alpha=1.0, random_state=0, tol=1e-2).fit(X, y > 0 if kind is ODEClassifier else y)
    order = np.argsort(model.feature_importances_)
    assert order[2:].tolist() == [1, 3]
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_[order[:2]].max() < 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_files_hold_components_and_importances(kind: Any, tmp_path: Path) -> None:
    X, y = wide()
    model = kind(random_state=0, max_iter=20, tol=1.0).fit(X, y)
    model.save(tmp_path / "model.ocdl")
    loaded = ocdl.load(tmp_path / "model.ocdl")
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert np.array_equal(loaded.components_, model.components_)
    assert np.array_equal(loaded.feature_importances_, model.feature_importances_)
    assert loaded.n_features_in_ == 400


def test_validation_data_and_warm_starts_stay_in_the_subspace() -> None:
    X, y = wide()
    model = ODEClassifier(random_state=0, tol=1e-2, warm_start=True).fit(X, y, X_val=X, y_val=y)
    assert model.history_.val_loss[-1] == pytest.approx(model.history_.loss[-1])
    components = model.components_
    assert model.fit(X, y).components_ is components


@pytest.mark.extras
def test_onnx_holds_the_components(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    X, y = wide()
    model = ODEClassifier(random_state=0, max_iter=20, tol=1.0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.to_onnx(tmp_path / "model.onnx")
        session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    labels, probabilities = session.run(None, {"X": X})
    assert np.array_equal(labels, model.predict(X))
    np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("n_components", "message"),
    [
        ("some", "n_components must be a whole number, 'auto' or None, got 'some'"),
        (0, "n_components must be at least 1"),
        (401, "n_components=401, but X has 400 features"),
    ],
)
def test_wrong_numbers_of_components_are_named(n_components: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ODEClassifier(n_components=n_components).fit(*wide())


def test_partial_fit_takes_all_columns() -> None:
    X, y = wide()
    with pytest.raises(ValueError, match="partial_fit takes all columns: n_components must be 'auto' or None, got 3"):
        ODEClassifier(n_components=3).partial_fit(X, y, classes=[0, 1])
    assert ODEClassifier(random_state=0).partial_fit(X, y, classes=[0, 1]).components_ is None


def test_a_field_of_pairs_takes_all_columns() -> None:
    X, y = wide()
    model = ODEClassifier(field="hamiltonian", augment=2, max_iter=3, tol=1e9, random_state=0).fit(X, y)
    assert model.components_ is None
