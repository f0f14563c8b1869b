"""From a table to predictions, on the command line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from example_tables import QUICK, Run, Write, assert_error, patients

import ocdl

# ---- from a table to predictions ----


def test_two_commands_from_a_table_to_predictions(run: Run, tmp_path: Path) -> None:
    data, new, model = tmp_path / "patients.csv", tmp_path / "new.csv", tmp_path / "model.ocdl"
    frame = patients(400)
    frame.to_csv(data)  # with an index column that has no name
    frame.drop(columns="outcome").iloc[::-1].to_csv(new, index=False)
    code, out, err = run("train", "--data", data, "--out", model)
    assert code == 0
    assert "left out        10 rows without a target" in out
    assert "the model file has a model of all 390 rows" in out
    assert err.splitlines() == [
        f"ocdl: warning: {data}: column 1 is left out: an index without a name",
        f"ocdl: warning: {data}: column 6 ('name') is left out: nearly every row has a different text",
    ]
    code, out, err = run("predict", model, new, "--id", "name", "--proba")
    assert (code, err) == (0, "")
    predicted = pd.read_csv(io.StringIO(out), dtype=str)
    assert list(predicted.columns) == ["name", "prediction", "probability of ill", "probability of well"]
    assert predicted["name"].tolist() == frame["name"].tolist()[::-1]
    assert np.mean(predicted["prediction"].to_numpy()[::-1] == frame["outcome"]) > 0.8
    again = ocdl.load(model)
    assert again.predict(frame).tolist() == predicted["prediction"].tolist()[::-1]
    np.testing.assert_array_equal(again.predict_proba(frame)[::-1], predicted.iloc[:, 2:].astype(float))
    output = run("inspect", model)[1]
    for line in (
        "city    text: Basel, Bern, Genf",
        "since   date as ISO8601; days and positions in the year, week",
        "member  boolean",
        "if missing",
    ):
        assert line in output
    assert "model       classification of outcome; classes: ill, well" in output


def test_measurements_are_predicted(run: Run, tmp_path: Path) -> None:
    data, model = tmp_path / "d.csv", tmp_path / "m.ocdl"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "colour": rng.choice(["red", "blue"], 200)})
    frame["price"] = 100 + 10 * frame["x"] + 5 * (frame["colour"] == "red")
    frame.to_csv(data, index=False)
    code, out, _ = run("train", "--data", data, "--regression", "--out", model, "--json")
    report = json.loads(out)
    assert code == 0
    assert report["test_r2"] > 0.99
    assert report["test_error"] < 1
    assert "test R^2" in run("train", "--data", data, "--regression", "--out", model)[1]
    code, out, _ = run("predict", model, data, "--json")
    assert code == 0
    np.testing.assert_allclose(json.loads(out)["predictions"], frame["price"], atol=3)
    np.testing.assert_array_equal(ocdl.load(model).predict(frame), json.loads(out)["predictions"])
    assert json.loads(run("inspect", model, "--json")[1])["classes"] is None
    assert_error(run("predict", model, data, "--proba"), "predicts measurements, which have no probabilities")


def test_cross_validation(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    patients().to_csv(data, index=False)
    code, out, _ = run("train", "--data", data, "--cv", 3, *QUICK[:4], "--json")
    assert code == 0
    folds = json.loads(out)["cv"]
    assert folds["folds"] == 3
    assert len(folds["accuracy"]) == len(folds["log_loss"]) == 3
    out = run("train", "--data", data, "--target", "income", "--regression", "--cv", 3, *QUICK[:4])[1]
    assert "R^2 in 3 folds" in out
    assert "error in 3 folds" in out
    out = run("train", "--data", data, "--cv", 3, *QUICK[:4], "--out", tmp_path / "m.ocdl")[1]
    assert "accuracy in 3 folds" in out
    assert "no rows held out" in out
    assert ocdl.load(tmp_path / "m.ocdl").predict(patients()).shape == (120,)
    assert_error(run("train", "--data", data, "--cv", 100), "--cv 100 needs 100 samples in every class")
    assert_error(run("train", "--data", data, "--cv", 3, "--test-size", "0.5"), "leave one of them out")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--lr", "0.05"), {"learning_rate": 0.05}),
        (("--optimiser", "adam", "--batch-size", "16"), {"optimiser": "adam", "batch_size": 16}),
        (("--alpha", "0.5"), {"alpha": 0.5}),
        (("--alpha", "cv"), {"alpha": "cv"}),
        (("--patience", "4"), {"patience": 4, "early_stopping": True}),
        (("--loss", "squared"), {"loss": "squared"}),
        ((), {"alpha": "auto", "early_stopping": False, "optimiser": None}),
    ],
)
def test_options_reach_the_estimator(
    options: tuple[str, ...], expected: dict[str, Any], run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "m.ocdl"
    code, _, _ = run("train", "--data", "donut2d", *QUICK, *options, "--quiet", "--out", path)
    assert code == 0
    assert ocdl.load(path).estimator.get_params().items() >= expected.items()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--lr", "0.1", "--optimiser", "lbfgs"), "learning_rate beside optimiser='lbfgs'"),
        (("--lr", "-1"), "--lr: must be a positive number"),
        (("--alpha", "many"), "--alpha: must be a number that is not negative, auto or cv"),
        (("--batch-size", "0"), "--batch-size: must be a whole number"),
        (
            ("--loss", "huber"),
            "--loss huber must be one of squared, cross_entropy; choose one",
        ),
        (("--features", "z"), "no column is named 'z'"),
        (("--target", "Outcome"), "did you mean 'outcome'"),
        (("--features", "outcome"), "--features has 'outcome', which is the target"),
        (("--drop", "9"), "--drop 9 is not a column; columns are counted from 1 to 7"),
        (("--drop", "1,2,3", "4", "5", "6"), "there is no column to learn from except the target"),
    ],
)
def test_options_that_do_not_fit(options: tuple[str, ...], message: str, run: Run, tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    patients().to_csv(data, index=False)
    assert_error(run("train", "--data", data, *QUICK, *options, "--out", tmp_path / "m.ocdl"), message)
    assert list(tmp_path.iterdir()) == [data]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("--features", "age", "city"), ["age", "city"]),
        (("--features", "city,age"), ["city", "age"]),
        (("--features", "1", "6"), ["age", "income"]),
        (("--drop", "name", "since,member"), ["age", "city", "income"]),
        (("--features", "age,city", "--drop", "city"), ["age"]),
    ],
)
def test_columns_are_chosen(options: tuple[str, ...], names: list[str], run: Run, tmp_path: Path) -> None:
    data, model = tmp_path / "d.csv", tmp_path / "m.ocdl"
    patients().to_csv(data, index=False)
    assert run("train", "--data", data, *QUICK, *options, "--quiet", "--out", model)[0] == 0
    assert ocdl.load(model).feature_names == names
    patients()[names].to_csv(data, index=False)
    assert run("predict", model, data)[0] == 0


def test_an_index_that_was_chosen_is_kept(write: Write, run: Run, tmp_path: Path) -> None:
    data = write("".join([",a,y\n", *(f"{i},{i % 3},{'pq'[i % 2]}\n" for i in range(20))]))
    assert run("train", "--data", data, "--features", "1", *QUICK, "--quiet", "--out", tmp_path / "m.ocdl")[0] == 0
    assert len(ocdl.load(tmp_path / "m.ocdl").encoding.features) == 1
