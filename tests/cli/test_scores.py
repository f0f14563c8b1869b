"""How well a model predicts: ``ocdl score``, and what ``ocdl train`` measures beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss, r2_score, roc_auc_score

import ocdl

Run = Callable[..., tuple[int, str, str]]
QUICK = ("--layers", "2", "--max-iter", "30")


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path, pd.DataFrame]:
    """A table to learn from, one to measure with, and the latter in memory."""
    rng = np.random.default_rng(0)
    x, colour = rng.normal(size=(300, 2)), rng.choice(["red", "blue", "green"], 300)
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "colour": colour, "visits": rng.integers(1, 5, 300)})
    frame["amount"] = x[:, 0] + 2 * (colour == "red") + 0.3 * rng.normal(size=300)
    frame["outcome"] = np.digitize(frame["amount"], [-0.5, 1.0])
    frame["outcome"] = frame["outcome"].map({0: "low", 1: "middle", 2: "high"})
    train, new = tmp_path / "train.csv", tmp_path / "new.csv"
    frame[:200].to_csv(train, index=False)
    frame[200:].to_csv(new, index=False)
    return train, new, frame[200:]


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_classes_are_those_of_scikit_learn(weighted: bool, tables: Any, run: Run, tmp_path: Path) -> None:
    train, new, frame = tables
    model = tmp_path / "m.ocdl"
    options = ("--target", "outcome", "--drop", "amount", "visits", *QUICK, "--quiet", "--out", model)
    assert run("train", "--data", train, *options)[0] == 0
    weights = frame["visits"].to_numpy() if weighted else None
    code, out, err = run("score", model, new, *(("--weights", "visits") if weighted else ()), "--json")
    assert (code, err) == (0, "")
    report, known = json.loads(out), ocdl.load(model)
    predicted, probabilities, y = known.predict(frame), known.predict_proba(frame), frame["outcome"]
    how = {"sample_weight": weights}
    assert report["rows"] == 100
    assert report["accuracy"] == pytest.approx(accuracy_score(y, predicted, **how))
    assert report["log_loss"] == pytest.approx(log_loss(y, probabilities, **how))
    areas = [roc_auc_score(y == label, probabilities[:, k], **how) for k, label in enumerate(known.classes_)]
    assert report["auc"] == pytest.approx(np.mean(areas))
    assert report["confusion"] == confusion_matrix(y, predicted).tolist()
    shares = np.array([np.average(y == label, weights=weights) for label in known.classes_])
    assert report["baseline_accuracy"] == pytest.approx(shares.max())
    assert report["baseline_log_loss"] == pytest.approx(log_loss(y, np.tile(shares, (100, 1)), **how))
    output = run("score", model, new)[1]
    assert [line.split()[0] for line in output.splitlines()] == [
        "accuracy", "log", "AUC", "confusion", "high", "high", "low", "middle"
    ]  # fmt: skip


def test_scores_of_measurements(tables: Any, run: Run, tmp_path: Path) -> None:
    train, new, frame = tables
    model = tmp_path / "m.ocdl"
    options = ("--target", "amount", "--drop", "outcome", "--regression", *QUICK, "--json", "--out", model)
    trained = json.loads(run("train", "--data", train, *options, "--test", new)[1])
    report = json.loads(run("score", model, new, "--json")[1])
    predicted = ocdl.load(model).predict(frame)
    assert report["r2"] == pytest.approx(r2_score(frame["amount"], predicted))
    assert report["baseline_error"] == pytest.approx(frame["amount"].std(ddof=0))
    assert {name: trained[f"test_{name}"] for name in ("r2", "error", "baseline_error")} == {
        name: report[name] for name in ("r2", "error", "baseline_error")
    }
    assert (trained["train_samples"], trained["test_samples"]) == (200, 100)


def test_the_saved_model_is_one_of_all_rows(tables: Any, run: Run, tmp_path: Path) -> None:
    train, _, _ = tables
    first, second = tmp_path / "1.ocdl", tmp_path / "2.ocdl"
    options = ("--target", "outcome", "--drop", "amount", *QUICK)
    out = run("train", "--data", train, *options, "--out", first)[1]
    assert "the model file has a model of all 200 rows" in out
    assert "of 50 rows; baseline" in out
    assert "confusion matrix: actual classes in rows" in out
    assert run("train", "--data", train, *options, "--test-size", 0, "--out", second)[0] == 0
    assert first.read_bytes() == second.read_bytes()


def test_weights_reach_the_training(tables: Any, run: Run, tmp_path: Path) -> None:
    train, _, _ = tables
    options = ("--data", train, "--target", "outcome", "--drop", "amount", "--test-size", 0, "--quiet", *QUICK)
    files = []
    for number, extra in enumerate(
        [
            ("--weights", "visits"),
            ("--drop", "amount", "visits"),
            ("--drop", "amount", "visits", "--class-weight", "high=2", "low=2", "middle=0.1"),
            ("--drop", "amount", "visits", "--class-weight", "balanced"),
        ]
    ):
        files.append(tmp_path / f"{number}.ocdl")
        assert run("train", *options, *extra, "--out", files[-1]) == (0, "", "")
        assert ocdl.load(files[-1]).feature_names == ["a", "b", "colour"]
    assert len({file.read_bytes() for file in files}) == 4
    assert ocdl.load(files[2]).estimator.class_weight == {"high": 2.0, "low": 2.0, "middle": 0.1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--test", "absent.csv"), "'absent.csv' is not a file"),
        (("--test", "new.csv", "--test-size", "0.2"), "--test and --test-size cannot be combined"),
        (("--weights", "outcome"), "--weights names 'outcome', which is the target"),
        (("--weights", "a"), "is not a weight; weights are numbers of 0 or more"),
        (("--class-weight", "high"), "--class-weight must be balanced or LABEL=W with W at least 0"),
        (("--class-weight", "huge=2"), "--class-weight: 'huge' is not one of the classes high, low, middle"),
        (("--categorical", "zip"), "no column is named 'zip'"),
        (("--max-categories", "0"), "--max-categories: must be a whole number from 1 to 1000"),
        (("--field", "hamiltonian", "--architecture", "net"), "needs an --architecture other than net"),
    ],
)
def test_wrong_options(
    options: tuple[str, ...], message: str, tables: Any, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run("train", "--data", "train.csv", "--target", "outcome", "--out", "m.ocdl", *QUICK, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_tables_that_cannot_be_scored(tables: Any, run: Run, tmp_path: Path) -> None:
    train, _, frame = tables
    model, new = tmp_path / "m.ocdl", tmp_path / "wrong.csv"
    options = ("--target", "outcome", "--drop", "amount", *QUICK, "--quiet", "--out", model)
    assert run("train", "--data", train, *options)[0] == 0
    for table, message in (
        (frame.drop(columns="outcome"), "--target is required"),
        (
            frame.assign(outcome="other"),
            "row 2, column 6 ('outcome'): 'other' is not one of the classes high, low, middle",
        ),
        (frame.assign(outcome=""), "is the target, but it has no values"),
        (frame.drop(columns="a"), "the header lacks column 'a'"),
    ):
        table.to_csv(new, index=False)
        code, out, err = run("score", model, new)
        assert (code, out) == (2, "")
        assert message in err


def test_help_is_in_groups_with_defaults(run: Run) -> None:
    out = run("train", "--help")[1]
    groups = [line for line in out.splitlines() if line in ("data:", "evaluation:", "model:", "training:")]
    assert groups == ["data:", "evaluation:", "model:", "training:"]
    assert "iterations; default: " in out


def test_resuming_another_training_names_the_difference(tables: Any, run: Run, tmp_path: Path) -> None:
    train, _, _ = tables
    saved = tmp_path / "checkpoint"
    options = ("--data", train, "--target", "outcome", "--test-size", 0, "--quiet", "--out", tmp_path / "m.ocdl")
    assert run("train", *options, "--layers", 2, "--max-iter", 5, "--checkpoint", saved)[0] == 0
    code, _, err = run("train", *options, "--layers", 3, "--max-iter", 5, "--resume", saved)
    assert code == 2
    assert "another network: n_layers is 2 in the checkpoint and 3 here" in err
