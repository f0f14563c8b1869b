"""The regressor keeps scikit-learn's contract, scales its targets inside, and has what the classifier has."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import ocdl
from ocdl import ODERegressor, Status

ARCHITECTURES = ("odenet", "resnet", "odenet+simplex", "net")


def friedman(m: int = 200) -> tuple[Any, Any]:
    X, y = make_friedman1(m, noise=0.5, random_state=0)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_check_of_scikit_learn_passes(architecture: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(ODERegressor(architecture=architecture), on_fail="raise", on_skip=None)
    assert not [r["check_name"] for r in results if r["status"] not in ("passed", "skipped")]
    assert len(results) > 40


def test_nonlinear_functions_are_learned() -> None:
    X, y = friedman()
    X_test, y_test = make_friedman1(500, noise=0.5, random_state=1)
    X_test = StandardScaler().fit(make_friedman1(200, noise=0.5, random_state=0)[0]).transform(X_test)
    assert ODERegressor(random_state=0).fit(X, y).score(X_test, y_test) > 0.9
    assert LinearRegression().fit(X, y).score(X_test, y_test) < 0.8


@pytest.mark.parametrize("shape", ["waves", "product"])
def test_nonlinear_functions_are_learned_from_few_rows(shape: str) -> None:
    """What a linear model leaves is no noise there, as rows that were left out say; of real noise they do not."""
    scores = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, new = rng.standard_normal((2, 100, 5))
        signal, truth = (
            np.sin(2 * x[:, 0]) + x[:, 1] ** 2 if shape == "waves" else x[:, 0] * x[:, 1] for x in (X, new)
        )
        noise = rng.standard_normal(100)
        scores.append(ODERegressor(random_state=seed).fit(X, signal + 0.1 * noise).score(new, truth))
        linear = ODERegressor(random_state=seed).fit(X, X[:, 0] + noise)
        assert np.corrcoef(linear.predict(new), new[:, 0])[0, 1] > 0.9
    assert np.mean(scores) > 0.75


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_scale_of_the_targets_does_not_matter(scale: float) -> None:
    X, y = friedman()
    plain, scaled = (ODERegressor(random_state=0, max_iter=50, tol=1e9).fit(X, t) for t in (y, scale * y + 3 * scale))
    np.testing.assert_allclose(scaled.predict(X), scale * plain.predict(X) + 3 * scale, rtol=1e-6)


def test_several_targets_are_predicted_at_once() -> None:
    X, y = friedman()
    targets = np.column_stack([y, -100 * y, X[:, 0]])
    model = ODERegressor(random_state=0).fit(X, targets)
    assert model.predict(X).shape == targets.shape
    assert model.score(X, targets) > 0.9
    assert ODERegressor(random_state=0).fit(X, y[:, None]).predict(X).shape == (200, 1)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_a_quantile_is_one(level: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1))
    y = X[:, 0] + rng.exponential(size=2000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = ODERegressor(loss=ocdl.losses.Quantile(level=level), random_state=0).fit(X, y)
    assert np.mean(y <= model.predict(X)) == pytest.approx(level, abs=0.03)


def test_counts_have_positive_means() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    y = rng.poisson(np.exp(1 + X[:, 0]))
    model = ODERegressor(loss="poisson", random_state=0).fit(X, y)
    assert model.predict(X).min() > 0
    assert np.mean(model.predict(X)) == pytest.approx(y.mean(), rel=0.02)
    with pytest.raises(ValueError, match="none below 0"):
        ODERegressor(loss="poisson").fit(X, y - 5)


def test_huber_does_not_follow_outliers() -> None:
    X, y = friedman()
    wrong = y.copy()
    wrong[::20] += 1000
    plain, robust = (ODERegressor(loss=loss, random_state=0).fit(X, wrong) for loss in ("squared_error", "huber"))
    assert np.median(np.abs(robust.predict(X) - y)) < np.median(np.abs(plain.predict(X) - y))


@pytest.mark.parametrize("loss", ["huber", "quantile"])
def test_other_losses_learn_nonlinear_functions(loss: str) -> None:
    X, y = friedman()
    assert LinearRegression().fit(X, y).score(X, y) < 0.8
    assert ODERegressor(loss=loss, alpha=0.3, random_state=0).fit(X, y).score(X, y) > 0.85


@pytest.mark.parametrize("loss", ["huber", "quantile"])
def test_one_gross_outlier_does_not_hide_the_other_targets(loss: str) -> None:
    """It would make the standard deviation, by which targets are scaled, as large as itself."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 8))
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.standard_normal(200)
    wrong = y.copy()
    wrong[0] = 1e4
    model = ODERegressor(loss=loss, random_state=0).fit(X, wrong)
    assert model.score(X[1:], y[1:]) > (0.8 if loss == "huber" else 0.4)
    assert model.target_scale_ < 2
    counts = np.where(np.arange(200) % 8, 0.0, y)  # both quartiles are 0
    assert ODERegressor(loss=loss, random_state=0).fit(X, counts).target_scale_ == pytest.approx(counts.std())


def test_repetition_and_order_of_rows_do_not_matter() -> None:
    X, y = friedman(80)
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    order = np.random.default_rng(1).permutation(weights.sum())
    make_samples = ODERegressor(random_state=0).fit(X, y, sample_weight=weights)
    repeated = ODERegressor(random_state=0).fit(np.repeat(X, weights, axis=0)[order], np.repeat(y, weights)[order])
    np.testing.assert_allclose(make_samples.predict(X), repeated.predict(X), rtol=1e-9)


def test_copies_predict_the_same(tmp_path: Path) -> None:
    X, y = friedman()
    model = ODERegressor(loss=ocdl.losses.Huber(delta=0.5), random_state=0, optimiser="lbfgs").fit(X, y)
    model.save(tmp_path / "m")
    for copy in (pickle.loads(pickle.dumps(model)), ocdl.load(tmp_path / "m")):
        for method in ("predict", "transform", "trajectory"):
            assert np.array_equal(getattr(copy, method)(X), getattr(model, method)(X))
        assert copy.get_params() == model.get_params()
    with pytest.raises(ocdl.ModelFileError, match="holds ODERegressor, not ODEClassifier"):
        ocdl.load(tmp_path / "m", ocdl.ODEClassifier)
    assert not hasattr(clone(model), "controls_")


def test_predictions_that_overflow_are_refused() -> None:
    X, y = friedman()
    model = ODERegressor(random_state=0).fit(X, y)
    model.target_scale_ = np.array([1e308])
    with pytest.raises(FloatingPointError, match=r"targets .* spread by 1e\+308; scale them or the controls down"):
        model.predict(X)


def test_a_file_whose_loss_is_unknown_is_refused(tmp_path: Path) -> None:
    model = ODERegressor(random_state=0).fit(*friedman()).set_params(loss="")
    model.save(tmp_path / "model.ocdl")
    with pytest.raises(ocdl.ModelFileError, match="holds no estimator that this ocdl can load: loss must be one of"):
        ocdl.load(tmp_path / "model.ocdl")


def test_partial_fit_learns_portion_by_portion() -> None:
    X, y = friedman(400)
    model = ODERegressor(random_state=0, optimiser="adam", learning_rate=0.02, batch_size=50)
    for _ in range(30):
        for part in range(4):
            model.partial_fit(X[part::4], y[part::4])
    assert model.n_iter_ == 30 * 4
    assert model.score(X, y) > 0.8


def test_early_stopping_validation_data_and_callbacks() -> None:
    X, y = friedman(300)
    seen: list[float] = []
    model = ODERegressor(random_state=0, early_stopping=True, optimiser="adam", max_iter=3000, alpha=0.0)
    model.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:], callback=lambda state: seen.append(state.val_score))
    assert model.status_ is Status.EARLY_STOPPING
    assert seen
    assert model.history_.score_name == "R^2"
    stopped = ODERegressor(random_state=0, optimiser="adam", max_iter=10**6, tol=0)
    assert stopped.fit(X, y, callback=lambda state: True).status_ is Status.INTERRUPTED


def test_interpolation_is_not_taken_for_absence_of_noise() -> None:
    """With more columns than rows a linear model has no residuals, which says nothing about the noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 80))
    y = X[:, 0] + rng.normal(size=300)
    line = LinearRegression().fit(X[:60], y[:60])
    model = ODERegressor(random_state=0).fit(X[:60], y[:60])
    assert line.score(X[:60], y[:60]) > 0.999
    assert model.score(X[60:], y[60:]) > line.score(X[60:], y[60:])


def test_constant_targets() -> None:
    X, _ = friedman()
    model = ODERegressor(random_state=0).fit(X, np.full(len(X), 7.0))
    np.testing.assert_allclose(model.predict(X), 7.0, atol=1e-3)


@pytest.mark.parametrize("kind", [ocdl.ODEClassifier, ODERegressor])
def test_a_grid_search_reaches_the_settings(kind: Any) -> None:
    X, y = load_diabetes(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[:120], y[:120] if kind is ODERegressor else (y > 140)[:120]
    grid = [
        {"alpha": [0.1, 1.0, 10.0], "n_layers": [2, 3]},
        {"optimiser": ["adam", "lbfgs", "backtracking"]},
        {"optimiser": ["adam"], "learning_rate": [0.001, 0.01], "batch_size": [None, 32]},
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search = GridSearchCV(kind(max_iter=40, random_state=0), grid, cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("kind", [ocdl.ODEClassifier, ODERegressor])
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"learning_rate": 0.1, "optimiser": ocdl.Adam()}, "learning_rate beside optimiser=Adam"),
        ({"batch_size": 10, "optimiser": ocdl.LBFGS()}, "batch_size beside optimiser=LBFGS"),
        ({"learning_rate": 0.1, "optimiser": "lbfgs"}, "learning_rate beside optimiser='lbfgs'"),
        ({"learning_rate": 0.1}, "learning_rate beside optimiser=None, which is L-BFGS"),
        ({"batch_size": 10}, "batch_size beside optimiser=None, which is L-BFGS"),
        ({"alpha": 2.0, "penalties": ocdl.Tikhonov(1.0)}, "leave one of them out"),
        ({"alpha": np.ones(2), "penalties": ocdl.Tikhonov(1.0)}, "leave one of them out"),
        ({"n_jobs": 0}, "n_jobs must be None, a number of threads, or below 0, where -1 is all processors; got 0"),
        ({"alpha": 1.7e308}, "alpha=1.7e\\+308 is so large"),
        ({"alpha": "best"}, "alpha must be a number that is not negative, 'auto' or 'cv'"),
        ({"optimiser": "addam"}, "did you mean 'Adam'"),
        ({"optimiser": "gradient descent"}, "learning_rate"),
    ],
)
def test_settings_that_contradict_each_other_are_named(kind: Any, parameters: dict[str, Any], message: str) -> None:
    X, y = friedman(30)
    with pytest.raises(ValueError, match=message):
        kind(**parameters).fit(X, (y > 14).astype(int))


def test_the_factor_of_the_prior_is_chosen_by_folds() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    model = ODERegressor(alpha="cv", random_state=0).fit(X, X[:, 0] + 3 * rng.normal(size=200))
    assert model.alpha_ >= 1
    moons, labels = ocdl.datasets.make_spiral(200, random_state=0)
    classifier = make_pipeline(StandardScaler(), ocdl.ODEClassifier(alpha="cv", random_state=0)).fit(moons, labels)
    assert classifier[-1].alpha_ < 1


def test_unknown_keywords_suggest_known_ones() -> None:
    with pytest.raises(TypeError, match="did you mean 'optimiser'"):
        ODERegressor(optimizer="adam")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="did you mean 'learning_rate'"):
        ODERegressor(lr=0.1)  # type: ignore[call-arg]


class SeenTargets:
    """Half of the squared error, in any shape; it notes the targets that it is called with."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def value_and_grad(self, outputs: Any, targets: Any) -> tuple[Any, Any]:
        self.seen.append(targets)
        residual = outputs - np.reshape(targets, outputs.shape)
        return (residual**2).sum(axis=1) / 2, residual


@pytest.mark.parametrize("columns", [(), (1,), (2,)])
def test_a_custom_loss_receives_scaled_targets_in_the_shape_of_y(columns: tuple[int, ...]) -> None:
    X, _ = friedman(60)
    y = 100 + 7 * X[:, : max(columns, default=1)].reshape(60, *columns)
    loss = SeenTargets()
    model = ODERegressor(loss=loss, random_state=0, early_stopping=True, max_iter=30, tol=1.0)
    model.fit(X, y, X_val=X, y_val=y)
    assert {targets.shape[1:] for targets in loss.seen} == {columns}
    scaled = (y - y.mean(axis=0)) / y.std(axis=0)
    whole = [targets for targets in loss.seen if len(targets) == 60]
    assert all(np.allclose(np.sort(targets, axis=0), np.sort(scaled, axis=0), atol=1e-12) for targets in whole)
    assert model.predict(X).shape == y.shape
    loss.seen.clear()
    model.partial_fit(X, y)
    assert {targets.shape[1:] for targets in loss.seen} == {columns}
