"""Estimators and table models as files in ONNX."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from onnx_files import TOLERANCE, checked, error, onnx, run, runtime
from problems import (
    random_problem,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ocdl
from ocdl import Network
from ocdl.cli import main
from ocdl.model.losses import LOSSES

pytestmark = pytest.mark.extras

# ---- estimators ----

CLASSES = {
    "two numbers": np.array([0, 1]),
    "three numbers": np.array([-3, 5, 7], np.int8),
    "two texts": np.array(["in", "out"]),
    "four texts": np.array(["ä", "b", "c c", "d"], dtype=object),
    "whole floats": np.array([1.0, 2.0, 4.0]),
    "booleans": np.array([False, True]),
}
ROWS = np.random.default_rng(0).normal(size=(150, 3))


def fitted(kind: Any, y: np.ndarray, X: Any = ROWS, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return kind(**({"max_iter": 30, "n_layers": 5, "random_state": 0} | options)).fit(X, y)


def labelled(classes: np.ndarray) -> np.ndarray:
    chosen: np.ndarray = classes[(2 * np.abs(ROWS[:, 0] * ROWS[:, 1])).astype(int) % len(classes)]
    return chosen


@pytest.mark.parametrize("loss", ["cross_entropy", "squared"])
@pytest.mark.parametrize("kind", CLASSES)
def test_classifiers(kind: str, loss: str, tmp_path: Path) -> None:
    model = fitted(ocdl.ODEClassifier, labelled(CLASSES[kind]), loss=loss)
    model.to_onnx(tmp_path / "model.onnx")
    described = checked(tmp_path / "model.onnx").graph
    assert [output.name for output in described.output] == ["label", "probabilities"]
    X = 3 * np.random.default_rng(1).normal(size=(500, 3))
    labels, probabilities = run(tmp_path / "model.onnx", X)
    assert np.array_equal(labels, model.predict(X))
    assert labels.shape == (500,)
    np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("loss", [name for name, loss_type in LOSSES.items() if loss_type.targets == "numbers"])
@pytest.mark.parametrize("targets", [1, 2])
def test_regressors(loss: str, targets: int, tmp_path: Path) -> None:
    y = np.exp(ROWS[:, 0]) if targets == 1 else np.exp(ROWS[:, :2])
    model = fitted(ocdl.ODERegressor, y, loss=loss)
    model.to_onnx(tmp_path / "model.onnx")
    described = checked(tmp_path / "model.onnx").graph
    assert [output.name for output in described.output] == ["variable"]
    (predicted,) = run(tmp_path / "model.onnx", ROWS)
    assert predicted.shape == (150, targets)
    assert error(predicted, model.predict(ROWS).reshape(150, targets)) <= 1e-12


def test_names_of_features_are_kept(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS, columns=["x", "y", "größe"])
    fitted(ocdl.ODEClassifier, labelled(CLASSES["two texts"]), frame).to_onnx(tmp_path / "model.onnx", opset=15)
    model = checked(tmp_path / "model.onnx")
    assert {entry.key: json.loads(entry.value) for entry in model.metadata_props} == {
        "feature_names": ["x", "y", "größe"]
    }
    assert model.opset_import[0].version == 15
    assert model.producer_name == "ocdl"


HOSTILE = [
    "",
    "X",
    "label",
    "probabilities",
    "a" * 100_000,
    "x\0y",
    "../../etc",
    "<script>",
    '"',
    "\\",
    "\U0001f600",
    "\n",
]


def test_hostile_names_of_features_and_classes_are_data(tmp_path: Path) -> None:
    """Names of columns that are names of nodes, or that end strings, appear unchanged and change no number."""
    X = np.random.default_rng(0).normal(size=(60, len(HOSTILE)))
    y = np.array(HOSTILE, dtype=object)[np.arange(60) % len(HOSTILE)]
    plain = fitted(ocdl.ODEClassifier, np.arange(60) % len(HOSTILE), X)
    model = fitted(ocdl.ODEClassifier, y, pd.DataFrame(X, columns=HOSTILE))
    model.to_onnx(tmp_path / "model.onnx")
    written = checked(tmp_path / "model.onnx")
    (names,) = (json.loads(entry.value) for entry in written.metadata_props if entry.key == "feature_names")
    assert names == HOSTILE
    _, shares = run(tmp_path / "model.onnx", X)
    assert error(shares, model.predict_proba(pd.DataFrame(X, columns=HOSTILE))) <= 1e-12
    assert plain.network_ == model.network_


def test_half_a_character_in_a_class_is_named(tmp_path: Path) -> None:
    model = fitted(ocdl.ODEClassifier, labelled(np.array(["a\ud800", "b"], dtype=object)))
    with pytest.raises(ValueError, match=r"'a\\ud800' has half a character"):
        model.to_onnx(tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


class CustomLoss:
    def value_and_grad(self, outputs: np.ndarray, targets: np.ndarray) -> Any:
        residual = outputs - targets.reshape(len(outputs), -1)
        return (residual**2).sum(axis=1) / 2, residual


def test_a_custom_loss(tmp_path: Path) -> None:
    model = fitted(ocdl.ODEClassifier, labelled(CLASSES["two numbers"]), loss=CustomLoss())
    with pytest.raises(ValueError, match=r"the custom loss CustomLoss.*ocdl.export_onnx\(path, model.network_"):
        model.to_onnx(tmp_path / "model.onnx")
    regressor = fitted(ocdl.ODERegressor, ROWS[:, 0], loss=CustomLoss())
    regressor.to_onnx(tmp_path / "model.onnx")
    assert error(run(tmp_path / "model.onnx", ROWS)[0][:, 0], regressor.predict(ROWS)) <= 1e-12


def test_unfitted_and_implicit_models_are_refused(tmp_path: Path) -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        ocdl.ODEClassifier().to_onnx(tmp_path / "model.onnx")
    model = fitted(ocdl.ODEClassifier, labelled(CLASSES["two numbers"]), tableau="gauss2")
    with pytest.raises(ValueError, match="explicit tableau"):
        model.to_onnx(tmp_path / "model.onnx")


def test_labels_that_onnx_has_no_type_for_are_refused(tmp_path: Path) -> None:
    model = fitted(ocdl.ODEClassifier, labelled(np.array([1, 2], np.longdouble)))
    if model.classes_.dtype.itemsize <= 8:
        pytest.skip("long doubles are doubles here")
    with pytest.raises(ValueError, match="ONNX has labels that are numbers of 64 bits or texts, got array"):
        model.to_onnx(tmp_path / "model.onnx")


# ---- pipelines ----


@pytest.fixture
def to_onnx() -> Callable[..., bytes]:
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed: pip install 'ocdl[onnx]'")

    def convert(model: Any, X: np.ndarray, **options: Any) -> bytes:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            converted = skl2onnx.to_onnx(model, None if "initial_types" in options else X[:1], **options)
        onnx.checker.check_model(converted, full_check=True)
        written: bytes = converted.SerializeToString()
        return written

    return convert


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("kind", CLASSES)
def test_pipelines_with_a_classifier(kind: str, dtype: str, to_onnx: Callable[..., bytes]) -> None:
    X, y = (10 * ROWS + 5), labelled(CLASSES[kind])
    estimator = ocdl.ODEClassifier(max_iter=30, n_layers=5, random_state=0, tol=1.0, tableau="kutta4")
    model = make_pipeline(StandardScaler(), estimator).fit(X, y)
    labels, probabilities = run(to_onnx(model, X.astype(dtype)), X.astype(dtype))
    assert np.array_equal(labels, model.predict(X.astype(dtype)))
    expected = model.predict_proba(X.astype(dtype))
    assert probabilities.dtype == dtype
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol={"float64": 1e-12, "float32": 1e-5}[dtype])


@pytest.mark.parametrize("targets", [1, 2])
def test_pipelines_with_a_regressor(targets: int, to_onnx: Callable[..., bytes]) -> None:
    X, y = 10 * ROWS + 5, np.exp(ROWS[:, 0]) if targets == 1 else np.exp(ROWS[:, :2])
    model = make_pipeline(StandardScaler(), ocdl.ODERegressor(max_iter=30, random_state=0, tol=1.0)).fit(X, y)
    (actual,) = run(to_onnx(model, X), X)
    assert error(actual, model.predict(X).reshape(150, targets)) <= 1e-12


def test_a_long_chain_converts_quickly(to_onnx: Callable[..., bytes]) -> None:
    """Several hundred layers of four stages; the axis of the samples gets a name, without which onnxruntime is slow."""
    model = fitted(ocdl.ODEClassifier, labelled(CLASSES["two numbers"]), n_layers=300, tableau="kutta4", max_iter=2)
    started = time.process_time()
    converted = onnx.load_from_string(to_onnx(model, ROWS, target_opset=15))
    assert time.process_time() - started < 30
    converted.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "samples"
    labels, _ = run(converted.SerializeToString(), ROWS)
    assert np.array_equal(labels, model.predict(ROWS))


def test_whole_numbers_and_old_operators(to_onnx: Callable[..., bytes]) -> None:
    from skl2onnx.common.data_types import Int64TensorType

    X = np.random.default_rng(0).integers(-3, 4, (50, 3))
    model = fitted(ocdl.ODEClassifier, (X[:, 0] > 0).astype(int), X)
    types = [("X", Int64TensorType([None, 3]))]
    labels, _ = run(to_onnx(model, X, initial_types=types), X)
    assert np.array_equal(labels, model.predict(X))
    with pytest.raises(ValueError, match="opset must be at least 13, got 11"):
        to_onnx(model, X, initial_types=types, target_opset=11)


@pytest.mark.parametrize("in_pipeline", [False, True])
def test_the_option_zipmap_may_be_false(in_pipeline: bool, to_onnx: Callable[..., bytes]) -> None:
    estimator = fitted(ocdl.ODEClassifier, labelled(CLASSES["two numbers"]))
    model = make_pipeline(StandardScaler(), estimator).fit(ROWS, labelled(CLASSES["two numbers"]))
    model = model if in_pipeline else estimator
    for options in ({}, {"options": {"zipmap": False}}, {"options": {id(estimator): {"zipmap": False}}}):
        labels, probabilities = run(to_onnx(model, ROWS, **options), ROWS)
        assert np.array_equal(labels, model.predict(ROWS))
        np.testing.assert_allclose(probabilities, model.predict_proba(ROWS), rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="for option 'zipmap'"):
        to_onnx(estimator, ROWS, options={"zipmap": True})


def test_a_pipeline_that_is_not_fitted_is_refused(to_onnx: Callable[..., bytes]) -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError, match="is not fitted yet"):
        to_onnx(ocdl.ODEClassifier(), ROWS)


# ---- the command line ----


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    text = capsys.readouterr()
    return code, text.out, text.err


def table(path: Path, **columns: Any) -> Path:
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """A table with a missing number, a column of yes and no, and classes that are texts."""
    a, b = ROWS[:, 0].copy(), 100 * ROWS[:, 1] + 3
    a[7] = np.nan
    return table(tmp_path / "data.csv", a=a, b=b, c=ROWS[:, 2] > 0, outcome=labelled(CLASSES["four texts"]))


def test_export_of_a_trained_model(measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, path = tmp_path / "model.ocdl", tmp_path / "model.onnx"
    quick = ("--max-iter", 30, "--quiet", "--out", model)
    assert command(capsys, "train", "--data", measured, "--target", "outcome", *quick)[0] == 0
    code, out, err = command(capsys, "export", model, path)
    assert (code, err) == (0, "")
    assert out == f"wrote {path}; its input X has 3 columns: a, b, c\n"
    checked(path)
    frame, known = pd.read_csv(measured), ocdl.load(model)
    labels, probabilities = run(path, frame[["a", "b", "c"]].to_numpy(np.float64))
    assert np.array_equal(labels, known.predict(frame))
    np.testing.assert_allclose(probabilities, known.predict_proba(frame), rtol=0, atol=1e-12)
    code, out, _ = command(capsys, "export", model, path, "--json", "--opset", 14)
    assert code == 0
    assert json.loads(out) == {"out": str(path), "n_features": 3, "feature_names": ["a", "b", "c"]}
    assert checked(path).opset_import[0].version == 14


@pytest.mark.parametrize("target", ["outcome", "amount"])
def test_texts_dates_and_categories_are_separate_inputs(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng, n = np.random.default_rng(0), 400
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "is_new": rng.random(n) < 0.5,
            "colour": rng.choice(["red", "green", ""], n),
            "city": [f"city {i}" for i in rng.integers(0, 80, n)],
            "zip": rng.integers(0, 12, n),
            "shop": rng.integers(0, 70, n).astype(float),
            "day": pd.date_range("2020-01-01", periods=n).astype(str),
            "outcome": rng.choice(["low", "middle", "high"], n),
            "amount": rng.normal(size=n),
        }
    )
    frame.loc[::17, "shop"] = np.nan
    frame.to_csv(tmp_path / "d.csv", index=False)
    model, path = tmp_path / "m.ocdl", tmp_path / "m.onnx"
    kind = ("--drop", "amount") if target == "outcome" else ("--drop", "outcome", "--regression")
    quick = ("--categorical", "zip", "shop", "--max-iter", 10, "--test-size", 0, "--quiet", "--out", model)
    assert command(capsys, "train", "--data", tmp_path / "d.csv", "--target", target, *kind, *quick)[0] == 0
    code, out, _ = command(capsys, "export", model, path)
    assert (code, out) == (
        0, f"wrote {path}; its inputs are columns: size, is_new, colour, city, zip, shop, day\n"
    )  # fmt: skip
    frame.loc[0, ["colour", "city"]] = ["mauve", "elsewhere"]
    frame.loc[1, ["zip", "shop"]] = [99, 99]
    days = (pd.to_datetime(frame["day"]) - pd.Timestamp(0)) / pd.Timedelta(days=1)
    session = runtime.InferenceSession(checked(path).SerializeToString())
    feed = {}
    for column in session.get_inputs():
        values = days if column.name == "day" else frame[column.name]
        feed[column.name] = values.to_numpy(object if column.type == "tensor(string)" else np.float64)[:, None]
    known = ocdl.load(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        actual = session.run(None, feed)
        assert known.encoding.means.keys() == {"city", "shop"}
        if target == "amount":
            np.testing.assert_allclose(actual[0][:, 0], known.predict(frame), rtol=0, atol=1e-11)
        else:
            assert np.array_equal(actual[0], known.predict(frame))
            np.testing.assert_allclose(actual[1], known.predict_proba(frame), rtol=0, atol=1e-12)


def test_names_that_a_terminal_would_obey_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = tmp_path / "d.csv", tmp_path / "m.ocdl"
    data.write_text("\x1b[2J,b,y\n" + "".join(f"{i * i},{i % 3},{i % 2}\n" for i in range(20)))
    assert main(["train", "--data", str(data), "--layers", "2", "--max-iter", "2", "--quiet", "--out", str(model)]) == 0
    assert main(["export", str(model), str(tmp_path / "m.onnx")]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert r"2 columns: \x1b[2J, b" in text


def test_export_of_other_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    p = random_problem(Network(2, 3, tableau="kutta4", dtype="float32"), samples=5)
    ocdl.save(tmp_path / "net.ocdl", p.net, p.u)
    assert command(capsys, "export", tmp_path / "net.ocdl", tmp_path / "net.onnx")[0] == 0
    assert error(run(tmp_path / "net.onnx", p.X)[0], p.net.predict(p.u, p.X)) <= 1e-5
    model = fitted(ocdl.ODERegressor, ROWS[:, 0])
    model.save(tmp_path / "model.ocdl")
    assert command(capsys, "export", tmp_path / "model.ocdl", tmp_path / "model.onnx")[0] == 0
    assert error(run(tmp_path / "model.onnx", ROWS)[0][:, 0], model.predict(ROWS)) <= 1e-12


def test_mistakes_at_the_command_line(measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, path = tmp_path / "model.ocdl", tmp_path / "model.onnx"

    def refused(message: str, *arguments: object) -> None:
        code, out, err = command(capsys, "export", *arguments)
        assert (code, out) == (2, "")
        assert message in err
        assert err.count("\n") == 1
        assert not path.exists()

    quick = ("--max-iter", 5, "--quiet", "--out", model)
    assert command(capsys, "train", "--data", measured, "--target", "outcome", *quick)[0] == 0
    refused("No such file or directory", tmp_path / "absent.ocdl", path)
    refused(f"ocdl: error: {str(model)!r} would replace a file that is read", model, model)
    refused("--opset", model, path, "--opset", "new")
    refused("opset must be at least 13, got 5", model, path, "--opset", 5)
    implicit = Network(2, 3, tableau="gauss2")
    ocdl.save(tmp_path / "implicit.ocdl", implicit, implicit.init())
    refused("explicit tableau", tmp_path / "implicit.ocdl", path)
