"""The estimator keeps scikit-learn's contract and works with the rest of it."""

from __future__ import annotations

import os
import pickle
import threading
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification, make_moons
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from subprocesses import run_python

import ocdl
from ocdl import ODEClassifier, Status
from ocdl.estimator.prior import SHORT, reach
from ocdl.network.files import write

ARCHITECTURES = ("odenet", "resnet", "odenet+simplex", "net")
SAVED = ("predict", "predict_proba", "decision_function", "transform")


def moons(m: int = 200) -> tuple[Any, Any]:
    X, y = make_moons(m, noise=0.1, random_state=0)
    return StandardScaler().fit_transform(X), y


def iris() -> tuple[Any, Any]:
    data = load_iris()
    return StandardScaler().fit_transform(data.data), data.target_names[data.target]


def quick(**parameters: Any) -> ODEClassifier:
    """Few layers and a loose tolerance: for tests of the contract, not of the accuracy."""
    return ODEClassifier(**({"n_layers": 5, "tol": 3e-2, "max_iter": 300, "random_state": 0} | parameters))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_check_of_scikit_learn_passes(architecture: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(ODEClassifier(architecture=architecture), on_fail="raise", on_skip=None)
    assert not [r["check_name"] for r in results if r["status"] not in ("passed", "skipped")]
    assert len(results) > 40


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_has_sound_defaults(architecture: str) -> None:
    """On noisy tables it predicts better than the frequencies of the classes, and hardly less than logistic regression.

    With few rows for its columns, where logistic regression learns noise by heart, it learns much less of it.
    """
    ours, line, shares = mean_log_losses(architecture, rows=400, columns=12, classes=3)
    assert ours < shares - 0.3
    assert ours < line + 0.01
    ours, line, _ = mean_log_losses(architecture, rows=150, columns=60, classes=2)
    assert ours < line - 0.1


def mean_log_losses(architecture: str, rows: int, columns: int, classes: int) -> Any:
    """Those of ours, of logistic regression and of the classes' shares, over six tables."""
    losses = []
    for seed in range(6):
        X, y = make_classification(
            rows + 1000,
            columns,
            n_informative=5,
            n_classes=classes,
            flip_y=0.2,
            n_clusters_per_class=1,
            random_state=seed,
        )
        (X, new), (y, truth) = np.split(X, [rows]), np.split(y, [rows])
        models = (
            ODEClassifier(architecture=architecture, random_state=0),
            LogisticRegression(),
            DummyClassifier(strategy="prior"),
        )
        losses.append([log_loss(truth, model.fit(X, y).predict_proba(new)) for model in models])
    return np.mean(losses, axis=0)


@pytest.mark.parametrize("architecture", ["odenet", "resnet", "odenet+simplex"])
def test_a_flow_that_the_prior_holds_is_logistic_regression(architecture: str) -> None:
    X, y = make_classification(40, 400, n_informative=5, random_state=0)
    model = ODEClassifier(architecture=architecture, n_components=None, random_state=0).fit(X, y)
    assert reach(model.network_, len(X), 1.0, 1.0) < SHORT
    np.testing.assert_allclose(model.transform(X)[:, :400], X, rtol=0, atol=0.01)
    line = LogisticRegression(C=1 / 3, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), line.predict_proba(X), rtol=0, atol=0.01)
    again = clone(model).fit(np.repeat(X, 2, axis=0)[::-1], np.repeat(y, 2)[::-1], np.full(80, 0.5))
    assert np.array_equal(again.controls_.to_vector(), model.controls_.to_vector())


@pytest.mark.parametrize("architecture", ["odenet", "odenet+simplex"])
def test_a_flow_at_rest_finds_its_readout_in_one_layer(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All layers are equal there; callbacks and the history have all of them nevertheless."""
    layers, seen = [], []

    def watched(network: Any, *arguments: Any, **options: Any) -> Any:
        layers.append(network.n_layers)
        return ocdl.train(network, *arguments, **options)

    monkeypatch.setattr("ocdl.estimator.fitting.train", watched)
    X, y = make_classification(40, 400, n_informative=5, random_state=0)
    model = ODEClassifier(architecture=architecture, n_components=None, random_state=0)
    model.fit(X, y, callback=lambda state: seen.append(state.controls))
    assert layers == [1, 5]
    assert {u.K.shape for u in seen} == {(5, 401, 401)}
    np.testing.assert_allclose(seen[0].h, model.history_.time_steps[0])
    np.testing.assert_allclose(model.history_.time_steps.sum(axis=1), 3.0, rtol=0.01)


class TestLabels:
    @pytest.mark.parametrize(
        "classes",
        [
            ["no", "yes"],
            [3, 7],
            [-1, 1],
            [False, True],
            [0.0, 1.0],
            np.array(["a", "b"], dtype=object),
            ["x", "y", "z"],
        ],
        ids=str,
    )
    def test_any_kind(self, classes: Any, tmp_path: Path) -> None:
        X, _ = moons()
        which = np.digitize(X[:, 0], [-0.5, 0.5] if len(classes) == 3 else [0.0])
        y = np.asarray(classes)[which]
        model = quick().fit(X, y)
        assert np.array_equal(model.classes_, np.unique(y))
        assert model.predict(X).dtype == y.dtype
        assert model.score(X, y) > 0.9
        model.save(tmp_path / "model")
        loaded = ocdl.load(tmp_path / "model")
        assert np.array_equal(loaded.predict(X), model.predict(X))
        assert loaded.classes_.dtype == model.classes_.dtype

    def test_one_class_is_refused(self) -> None:
        with pytest.raises(ValueError, match="class"):
            quick().fit([[0.0], [1.0]], ["a", "a"])

    def test_continuous_labels_are_refused(self) -> None:
        with pytest.raises(ValueError, match="continuous"):
            quick().fit([[0.0], [1.0]], [0.3, 0.7])


@pytest.mark.parametrize("loss", ["cross_entropy", "squared"])
@pytest.mark.parametrize("data", [moons, iris])
def test_probabilities_and_decisions_agree(data: Any, loss: str) -> None:
    X, y = data()
    model = quick(loss=loss).fit(X, y)
    probabilities, scores = model.predict_proba(X), model.decision_function(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-14)
    assert np.array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    if scores.ndim == 1:
        np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-scores)), rtol=1e-12)
    extreme = model.predict_proba(np.clip(1e3 * X, -1e3, 1e3))
    assert np.isfinite(extreme).all()


def test_transform_is_the_last_state_and_feeds_a_pipeline() -> None:
    X, y = moons()
    model = quick(augment=1).fit(X, y)
    assert np.array_equal(model.transform(X), model.trajectory(X)[-1])
    assert np.array_equal(model.trajectory(X)[0][:, :2], X)
    assert model.get_feature_names_out().tolist() == ["odeclassifier0", "odeclassifier1", "odeclassifier2"]
    straight = make_pipeline(quick(), LogisticRegression()).fit(X, y)
    assert straight.score(X, y) > LogisticRegression().fit(X, y).score(X, y)


class TestWeights:
    @pytest.mark.parametrize("class_weight", [None, "balanced", {"setosa": 0.3, "virginica": 0.7}])
    def test_a_weight_is_a_repetition(self, class_weight: Any) -> None:
        X, y = iris()
        weights = np.random.default_rng(0).integers(0, 4, len(X))
        order = np.random.default_rng(1).permutation(weights.sum())
        model = quick(class_weight=class_weight)
        make_samples = clone(model).fit(X, y, sample_weight=weights)
        repeated = clone(model).fit(np.repeat(X, weights, axis=0)[order], np.repeat(y, weights)[order])
        assert np.array_equal(make_samples.controls_.to_vector(), repeated.controls_.to_vector())

    def test_weights_of_zero_alone_are_refused(self) -> None:
        X, y = moons()
        with pytest.raises(ValueError, match="weight 0"):
            quick(class_weight={0: 0.0, 1: 0.0}).fit(X, y)

    @pytest.mark.parametrize("weight", ["much", 1j, None, -1.0, np.nan, 10**400])
    def test_a_weight_of_a_class_that_is_no_weight_is_named(self, weight: Any) -> None:
        X, y = moons()
        with pytest.raises((TypeError, ValueError), match=r"^class_weight\[1\] must "):
            quick(class_weight={0: 1.0, 1: weight}).fit(X, y)

    @pytest.mark.parametrize("weight", [1j, np.nan, "much"])
    def test_a_weight_that_stands_for_all_is_a_real_number(self, weight: Any) -> None:
        X, y = moons()
        with pytest.raises((TypeError, ValueError), match=r"sample_weight must be|could not convert"):
            quick().fit(X, y, sample_weight=weight)

    def test_class_weight(self) -> None:
        X, y = make_classification(300, weights=[0.9], class_sep=0.5, random_state=0)
        short = {"tol": 0.2, "n_layers": 2}
        plain, balanced = (quick(class_weight=w, **short).fit(X, y) for w in (None, "balanced"))
        assert (balanced.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()
        by_hand = quick(class_weight={0: 1.0, 1: 9.0}, **short).fit(X, y)
        again = quick(class_weight={0: 100.0, 1: 900.0}, **short).fit(X, y)
        np.testing.assert_allclose(by_hand.predict_proba(X), again.predict_proba(X), rtol=1e-6)


class TestTraining:
    def test_same_seed_same_bits_for_any_number_of_threads(self) -> None:
        X, y = moons()
        vectors = [quick(random_state=3, n_jobs=n).fit(X, y).controls_.to_vector() for n in (None, 1, 2, 3, -1)]
        for vector in vectors[1:]:
            assert np.array_equal(vector, vectors[0])
        assert not np.array_equal(vectors[0], quick(random_state=4).fit(X, y).controls_.to_vector())

    def test_n_jobs_does_not_change_the_threads_of_others(self) -> None:
        before = ocdl.get_num_threads()
        X, y = moons()
        quick(n_jobs=1).fit(X, y)
        assert ocdl.get_num_threads() == before

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # it is still falling
    def test_warm_start_continues(self) -> None:
        X, y = moons()
        model = quick(max_iter=5, warm_start=True, optimiser=ocdl.Backtracking(), tol=0)
        first = model.fit(X, y).history_.loss[-1]
        model.fit(X, y)
        assert model.history_.loss[0] == first
        with pytest.raises(ValueError, match="network"):
            model.set_params(n_layers=6).fit(X, y)

    def test_early_stopping_keeps_the_best(self) -> None:
        X, y = make_classification(120, n_features=10, flip_y=0.3, random_state=0)
        model = quick(early_stopping=True, validation_fraction=0.3, max_iter=2000, tol=0, optimiser="adam").fit(X, y)
        assert model.status_ is Status.EARLY_STOPPING
        assert model.n_iter_ < 2000
        alone = quick(early_stopping=True, max_iter=2000, tol=0).fit(X, y)
        assert alone.history_.val_loss[-1] > 0
        with pytest.raises(ValueError, match="validation_fraction"):
            quick(validation_fraction=1.5).fit(X, y)

    def test_convergence_warning_has_numbers_and_advice(self) -> None:
        X, y = moons()
        with pytest.warns(ConvergenceWarning, match=r"gradient norm .* 60 iterations; .* fell from .* max_iter"):
            quick(max_iter=60, tol=1e-9, optimiser=ocdl.Adam(lr=0.02), alpha=0.0, horizon=1.0).fit(X, y)

    def test_unscaled_data_give_finite_repeatable_results_and_a_hint(self) -> None:
        X, y = moons()
        X = 1e6 * (1 + X**2)
        with pytest.warns(UserWarning, match="StandardScaler"):
            first = quick(tol=1e9).fit(X, y)
        with pytest.warns(UserWarning, match=r"X\[:, \d\] has a root mean square of"):
            second = quick(tol=1e9).fit(X, y)
        assert np.isfinite(first.predict_proba(X)).all()
        assert np.array_equal(first.predict_proba(X), second.predict_proba(X))

    def test_verbose_shows_progress(self, capsys: pytest.CaptureFixture[str]) -> None:
        X, y = moons()
        quick(verbose=1).fit(X, y)
        assert "training" in capsys.readouterr().err

    @pytest.mark.parametrize("tableau", ["kutta4", ocdl.Tableau([[0, 0], [0.7, 0]], [0.3, 0.7])])
    @pytest.mark.parametrize("optimiser", [ocdl.Backtracking(), ocdl.Adam(lr=0.02, batch_size=50)])
    @pytest.mark.parametrize("penalties", [ocdl.Tikhonov(1e-4), (ocdl.Tikhonov(1e-4),)])
    def test_any_tableau_and_optimiser(self, tableau: Any, optimiser: Any, penalties: Any, tmp_path: Path) -> None:
        X, y = moons()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = quick(tableau=tableau, optimiser=optimiser, penalties=penalties).fit(X, y)
        assert model.score(X, y) > 0.8
        model.save(tmp_path / "m")
        assert ocdl.load(tmp_path / "m").get_params() == model.get_params()

    def test_wrong_parameters_are_named(self) -> None:
        X, y = moons()
        for parameters, named in (
            ({"architecture": "cnn"}, "architecture"),
            ({"n_layers": 0}, "n_layers"),
            ({"loss": "hinge"}, "loss"),
            ({"activation": "gelu"}, "activation"),
            ({"max_iter": -1}, "max_iter"),
        ):
            with pytest.raises(ValueError, match=named):
                quick(**parameters).fit(X, y)


class TestStorage:
    @pytest.mark.parametrize("architecture", ARCHITECTURES)
    def test_copies_predict_the_same(self, architecture: str, tmp_path: Path) -> None:
        X, y = iris()
        model = quick(architecture=architecture, class_weight="balanced").fit(pd.DataFrame(X, columns=list("abcd")), y)
        joblib.dump(model, tmp_path / "joblib")
        model.save(tmp_path / "ocdl")
        frame = pd.DataFrame(X, columns=list("abcd"))
        for copy in (
            pickle.loads(pickle.dumps(model)),
            joblib.load(tmp_path / "joblib"),
            ocdl.load(tmp_path / "ocdl"),
        ):
            for method in SAVED:
                assert np.array_equal(getattr(copy, method)(frame), getattr(model, method)(frame)), method
            assert copy.feature_names_in_.tolist() == list("abcd")
            assert copy.get_params() == model.get_params()

    def test_clone_is_not_fitted(self) -> None:
        X, y = moons()
        model = clone(quick().fit(X, y))
        with pytest.raises(NotFittedError):
            model.predict(X)
        with pytest.raises(NotFittedError):
            model.save("nowhere")

    def test_other_files_are_refused(self, tmp_path: Path) -> None:
        net = ocdl.Network(2, 2)
        ocdl.save(tmp_path / "plain", net, net.init(0))
        with pytest.raises(ocdl.ModelFileError, match="holds SavedNetwork, not ODEClassifier"):
            ocdl.load(tmp_path / "plain", ODEClassifier)
        write(tmp_path / "wrong", net, net.init(0), {"estimator": {"parameters": 3}}, {})
        with pytest.raises(ocdl.ModelFileError):
            ocdl.load(tmp_path / "wrong")

    def test_prune_changes_no_prediction(self, capsys: pytest.CaptureFixture[str]) -> None:
        X, y = moons()
        model = quick(architecture="odenet+simplex", n_layers=20, max_iter=2000).fit(X, y)
        before = model.decision_function(X)
        kept = int(np.count_nonzero(model.controls_.h))
        assert kept < 20
        saved = str(model.network_.saving(model.controls_))
        assert saved.startswith(f"{20 - kept} of 20 layers can be left out")
        assert model.set_params(verbose=1).prune().network_.n_layers == kept
        assert capsys.readouterr().out == f"{saved}\n"
        assert np.array_equal(model.decision_function(X), before)


class TestCompany:
    def test_grid_search(self) -> None:
        X, y = moons()
        search = GridSearchCV(quick(), {"n_layers": [2, 4], "loss": ["squared", "cross_entropy"]}, cv=3).fit(X, y)
        assert search.best_score_ > 0.8

    def test_cross_validation_in_processes(self) -> None:
        X, y = moons()
        model = make_pipeline(StandardScaler(), quick())
        parallel = cross_val_score(model, X, y, cv=4, n_jobs=2)
        assert np.array_equal(parallel, cross_val_score(model, X, y, cv=4))

    def test_workers_divide_the_processors(self) -> None:
        threads = joblib.Parallel(n_jobs=2)(joblib.delayed(threads_here)() for _ in range(2))
        assert max(threads) <= max(1, (os.cpu_count() or 1) // 2)

    def test_calibration(self) -> None:
        X, y = moons()
        assert CalibratedClassifierCV(quick(), cv=3).fit(X, y).score(X, y) > 0.9

    def test_voting(self) -> None:
        X, y = iris()
        members = [("ode", quick()), ("line", LogisticRegression())]
        assert VotingClassifier(members, voting="soft").fit(X, y).score(X, y) > 0.9

    def test_pandas(self) -> None:
        X, y = iris()
        frame = pd.DataFrame(X, columns=list("abcd"))
        model = quick().fit(frame, pd.Series(y)).set_output(transform="pandas")
        assert model.feature_names_in_.tolist() == list("abcd")
        assert list(model.transform(frame).columns) == [f"odeclassifier{i}" for i in range(5)]

    def test_polars(self) -> None:
        X, y = iris()
        frame = pl.DataFrame(dict(zip("abcd", X.T, strict=True)))
        model = quick().fit(frame, pl.Series(y)).set_output(transform="polars")
        assert isinstance(model.transform(frame), pl.DataFrame)
        assert model.score(frame, y) > 0.9

    def test_html(self) -> None:
        assert "odenet+simplex" in ODEClassifier(architecture="odenet+simplex")._repr_html_()


def threads_here() -> int:
    return ocdl.get_num_threads()


def test_environment_and_threadpoolctl_are_honoured() -> None:
    assert run_python("import ocdl; print(ocdl.get_num_threads())", OMP_NUM_THREADS="1") == "1"
    code = """
import ocdl
from threadpoolctl import threadpool_limits
with threadpool_limits(1):
    print(ocdl.get_num_threads())
"""
    assert run_python(code) == "1"


def test_eight_threads_at_once_get_the_serial_results() -> None:
    X, y = moons()
    seeds = range(8)
    serial = [quick(random_state=seed).fit(X, y) for seed in seeds]
    expected = [model.decision_function(X) for model in serial]
    results: dict[int, Any] = {}

    def work(seed: int) -> None:
        model = quick(random_state=seed, n_jobs=1 + seed % 3).fit(X, y)
        results[seed] = [model.decision_function(X), serial[seed].decision_function(X)]

    threads = [threading.Thread(target=work, args=(seed,)) for seed in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in seeds:
        for result in results[seed]:
            assert np.array_equal(result, expected[seed])
