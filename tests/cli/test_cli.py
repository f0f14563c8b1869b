"""The command line: every command end to end, and one line for every mistake of the user."""

from __future__ import annotations

import csv
import io
import json
import resource
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import QUICK, SPECIES, Run, assert_one_line_error, run_process
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from subprocesses import interrupted, run_python

import ocdl
from ocdl.cli import COMMANDS, train
from ocdl.model.fields import FIELDS_WITHOUT_OPTION
from ocdl.network import files
from ocdl.storage.container import FORMAT_VERSION
from ocdl.training.optimisers import SINGLE_OPTIMISERS

# ---- info ----


def test_info(run: Run) -> None:
    code, out, err = run("info", "--json")
    assert (code, err) == (0, "")
    report = json.loads(out)
    assert report["version"] == ocdl.__version__
    assert report["core"] == ocdl.build_info()
    assert report["threads"] == ocdl.get_num_threads()
    assert report["numpy"] == np.__version__
    assert ocdl.__version__ in run("info")[1]


def test_python_m_ocdl_is_the_command_line() -> None:
    done = run_process("info", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["python"]
    done = run_process("predict", "absent.ocdl", "absent.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "ocdl: error: No such file or directory: 'absent.ocdl'\n"


@pytest.mark.parametrize("command", [module.__name__.rpartition(".")[2] for module in COMMANDS])
def test_help_has_examples(command: str, run: Run) -> None:
    code, out, err = run(command, "--help")
    assert (code, err) == (0, "")
    assert f"examples:\n  ocdl {command}" in out
    assert command in run("--help")[1]


def test_version(run: Run) -> None:
    assert run("--version") == (0, f"ocdl {ocdl.__version__}\n", "")


# ---- train and predict ----


def test_defaults_are_those_of_the_estimator() -> None:
    from ocdl.cli import _parser

    chosen = _parser().parse_args(["train", "--data", "spiral", "--out", "m"])
    ours = (chosen.architecture, chosen.tableau, chosen.layers, chosen.max_iter, chosen.field)
    for theirs in (ocdl.ODEClassifier(), ocdl.ODERegressor()):
        assert ours == (theirs.architecture, theirs.tableau, theirs.n_layers, theirs.max_iter, theirs.field)
    assert {chosen.loss, chosen.optimiser, chosen.lr, chosen.batch_size, chosen.alpha, chosen.patience} == {None}


def test_optimisers_are_all_there_are(run: Run, tmp_path: Path) -> None:
    kinds = {kind.__name__.lower() for kind in SINGLE_OPTIMISERS}
    assert {name.replace("-", "") for name in train.OPTIMISERS} == kinds
    for name, used in (("Newton_CG", "newton-cg"), ("Algorithm 2", "backtracking"), ("L-BFGS", "lbfgs")):
        path = tmp_path / "m.ocdl"
        argv = (
            "train",
            "--data",
            "donut1d",
            *QUICK,
            "--optimiser",
            name,
            "--tableau",
            "RK4",
            "--architecture",
            "ResNet",
        )
        assert run(*argv, "--quiet", "--out", path) == (0, "", "")
        model = ocdl.load(path)
        assert (model.estimator.optimiser, model.network.tableau.name) == (used, "kutta4")


def test_arguments_are_parsed_without_heavy_imports() -> None:
    actual = "{'sklearn', 'matplotlib', 'pandas'} & {*sys.modules}"
    assert run_python(f"import sys; from ocdl.cli import _parser; _parser(); print({actual})") == "set()"


@pytest.mark.parametrize("data", train.GENERATORS)
def test_the_papers_data(data: str, run: Run, tmp_path: Path) -> None:
    code, out, _ = run("train", "--data", data, *QUICK, "--seed", 3, "--out", tmp_path / "m.ocdl", "--json")
    assert code == 0
    report = json.loads(out)
    assert report["iterations"] <= 40  # 20 under a weak prior, 20 under the whole one
    assert report["test_samples"] == pytest.approx(report["train_samples"] / 4, abs=1)
    assert 0.4 < report["test_accuracy"] <= 1


def test_the_report(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("train", "--data", "spiral", *QUICK, "--test-size", 0, "--out", tmp_path / "m.ocdl")
    assert code == 0
    assert [line.split("  ")[0] for line in out.splitlines()] == [
        "train accuracy", "train log loss", "train AUC", "test", "loss", "iterations", "alpha", "seconds", "model file"
    ]  # fmt: skip
    assert "no rows held out" in out


def test_warnings_are_one_line(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "data.npz"
    np.savez(data, X=1e6 + np.arange(24.0).reshape(12, 2), y=np.repeat([0, 1], 6))
    options = ("train", "--data", data, *QUICK, "--no-scaling", "--out", tmp_path / "m.ocdl")
    code, out, err = run(*options, "--json")
    assert code == 0
    assert json.loads(out)
    assert err.startswith("ocdl: warning: X[:, 1] has a root mean square of 1e+06; scale the inputs")
    assert all(line.startswith("ocdl: warning: ") for line in err.splitlines())
    code, out, err = run(*options, "--json", "--quiet")
    assert (code, err) == (0, "")
    assert json.loads(out)


def test_a_constant_column_that_saturates_is_named(run: Run, tmp_path: Path) -> None:
    """A column may be scaled already: the mean of equal numbers of 1e19 is rounded, and the residual is large."""
    rows = np.random.default_rng(0).normal(size=(40, 3))
    rows[:, 1] = -28_672
    np.savez(tmp_path / "data.npz", X=rows, y=rows[:, 0] > 0)
    _, _, err = run("train", "--data", tmp_path / "data.npz", *QUICK, "--no-scaling", "--out", tmp_path / "m.ocdl")
    assert "X[:, 1] has a root mean square of 2.87e+04 and the same value in every row; leave it out" in err
    assert "StandardScaler" not in err


@pytest.mark.parametrize(
    ("loss", "optimiser"), [("cross_entropy", "adam"), ("squared", "lbfgs"), ("cross_entropy", "newton-cg")]
)
def test_predictions_are_those_of_the_pipeline(loss: str, optimiser: str, iris: Path, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "m.ocdl"
    options = ("--loss", loss, "--optimiser", optimiser, "--seed", 5, "--json")
    code, out, _ = run("train", "--data", iris, *QUICK, *options, "--out", path)
    assert code == 0
    X, y = load_iris(return_X_y=True)
    y = SPECIES[y]
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=38, stratify=y, random_state=5)
    estimator = ocdl.ODEClassifier(n_layers=3, max_iter=20, loss=loss, optimiser=optimiser, random_state=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged
        pipeline = make_pipeline(StandardScaler(), estimator).fit(X_train, y_train)
        assert json.loads(out)["test_accuracy"] == pipeline.score(X_test, y_test)
        pipeline.fit(X, y)  # the saved model is one of all rows
    _, out, _ = run("predict", path, iris, "--json", "--proba")
    report = json.loads(out)
    assert report["predictions"] == pipeline.predict(X).tolist()
    assert report["probabilities"] == pipeline.predict_proba(X).tolist()
    assert report["classes"] == pipeline.classes_.tolist()


def test_predictions_as_csv(model: Path, iris: Path, run: Run, tmp_path: Path) -> None:
    _, out, err = run("predict", model, iris, "--proba")
    rows = list(csv.reader(io.StringIO(out)))
    assert err == ""
    assert rows[0] == ["prediction", *(f"probability of {name}" for name in SPECIES)]
    assert len(rows) == 151
    for row in rows[1:]:
        assert row[0] == SPECIES[np.argmax([float(text) for text in row[1:]])]
    target = tmp_path / "predictions.csv"
    assert run("predict", model, iris, "--proba", "--out", target) == (0, "", "")
    assert target.read_text() == out


def test_columns_are_found_by_their_names(model: Path, iris: Path, run: Run, tmp_path: Path) -> None:
    expected = run("predict", model, iris)
    rows = [line.split(",") for line in iris.read_text().splitlines()]
    other = tmp_path / "other.csv"
    for order in ([3, 0, 2, 1], [4, 1, 0, 3, 2]):
        other.write_text("\n".join(";".join(row[j] for j in order) for row in rows))
        assert run("predict", model, other) == expected
    for width in (4, 5):  # without a header they are taken in order, with the labels or without
        other.write_text("\r\n".join("\t".join(row[:width]) for row in rows[1:]))
        assert run("predict", model, other) == expected


@pytest.mark.parametrize(
    ("text", "target", "classes", "names"),
    [
        ("1,2,a\n3,4,b\n", None, ["a", "b"], None),
        ("p,q,r\n1,2,a\n3,4,b\n", None, ["a", "b"], ["p", "q"]),
        ("p;q;r\n1;2;10\n3;4;9\n", None, [9, 10], ["p", "q"]),
        ("p\tq\tr\n1\t2\t-1\n3\t4\t0\n", "p", [1, 3], ["q", "r"]),
        ("\ufeffp,q\n\n 1e3 , 01\n-.5,1.\n\n", None, ["01", "1."], ["p"]),
        ('"p, of x; y",q\n1,"a\nb"\n2,c\n', None, ["a\nb", "c"], ["p, of x; y"]),
        ("0,1,label\n5,6,1\n7,8,2\n", None, [1, 2], ["0", "1"]),
        ("label,0,1\n1,5,6\n2,7,8\n", "label", [1, 2], ["0", "1"]),
        ("1,2,3\n4,5,6\n", "1", [1, 4], None),
    ],
)
def test_csv_files_are_understood(
    text: str, target: str | None, classes: list[Any], names: list[str] | None, run: Run, tmp_path: Path
) -> None:
    data, path = tmp_path / "data.csv", tmp_path / "m.ocdl"
    data.write_text(text, encoding="utf-8")
    chosen = () if target is None else ("--target", target)
    result = run("train", "--data", data, *chosen, *QUICK, "--test-size", 0, "--quiet", "--out", path)
    assert result == (0, "", "")
    report = json.loads(run("inspect", path, "--json")[1])
    assert (report["classes"], report["feature_names"]) == (classes, names)
    code, out, _ = run("predict", path, data, "--json")
    assert code == 0
    assert len(json.loads(out)["predictions"]) == 2


@pytest.mark.parametrize("labels", [[0, 1], [True, False], [1.0, 2.0], ["in", "out"]], ids=repr)
def test_npz_files(labels: list[Any], run: Run, tmp_path: Path) -> None:
    data, path = tmp_path / "data.npz", tmp_path / "m.ocdl"
    np.savez(data, X=np.arange(24, dtype=np.float32).reshape(12, 2), y=np.repeat(labels, 6))
    assert run("train", "--data", data, *QUICK, "--no-scaling", "--quiet", "--out", path) == (0, "", "")
    code, out, _ = run("predict", path, data, "--json")
    assert code == 0
    assert json.loads(out)["classes"] == sorted(labels)


def test_files_of_the_estimator_are_read(run: Run, tmp_path: Path, iris: Path) -> None:
    X, y = load_iris(return_X_y=True)
    estimator = ocdl.ODEClassifier(n_layers=3, tol=10, random_state=0).fit(X, y)
    estimator.save(tmp_path / "e.ocdl")
    np.savez(tmp_path / "X.npz", X=X)
    _, out, _ = run("predict", tmp_path / "e.ocdl", tmp_path / "X.npz", "--json", "--proba")
    assert json.loads(out)["predictions"] == estimator.predict(X).tolist()
    assert json.loads(out)["probabilities"] == estimator.predict_proba(X).tolist()
    assert json.loads(run("inspect", tmp_path / "e.ocdl", "--json")[1])["classes"] == [0, 1, 2]
    assert_one_line_error(run("predict", tmp_path / "e.ocdl", iris), "has 5 columns, but the model takes 4")


# ---- inspect ----


def test_inspect(model: Path, run: Run) -> None:
    code, out, err = run("inspect", model)
    assert (code, err) == (0, "")
    assert "setosa, versicolor, virginica" in out
    assert "classification of species; classes: setosa" in out
    assert "4 columns; 4 numbers after encoding" in out
    assert [line.split()[0] for line in out.splitlines()[-4:]] == ["a", "b", "c", "d"]
    report = json.loads(run("inspect", model, "--json")[1])
    assert report["format_version"] == FORMAT_VERSION
    assert report["ocdl"] == ocdl.__version__
    assert report["time_steps"]["count"] == report["network"]["n_layers"] == 3
    assert report["table"] == report["metadata"]["table"]
    assert report["table"]["target"] == {"name": "species", "position": 4}


def test_control_sequences_in_files_are_escaped(run: Run, tmp_path: Path) -> None:
    path, rows = tmp_path / "m.ocdl", tmp_path / "rows.csv"
    text = "\x1b]0;title\x07\x1b[2J\ud800"
    frame = pd.DataFrame({text[:-1]: [0.0, 1.0, 2.0, 3.0]})
    ocdl.ODEClassifier(n_layers=1, tol=10, random_state=0).fit(frame, [text, text, "b", "b"]).save(path)
    rows.write_text("0\n")
    code, out, err = run("inspect", path)
    assert (code, err) == (0, "")
    assert "\\x1b]0;title\\x07\\x1b[2J\\ud800" in out
    assert all(line.isprintable() for line in out.splitlines())
    code, out, _ = run("predict", path, rows)
    assert code == 0
    assert out.startswith("prediction\n\x1b]0;title\x07\x1b[2J\\ud800")  # data, not a message
    rows.write_text("\x1b[2J\n0\n")
    assert_one_line_error(run("predict", path, rows), "\\x1b[2J")


def test_inspect_counts_steps_and_describes_networks_without_classes(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "m.ocdl"
    net = ocdl.Network.preset("odenet", 2, 4)
    u = net.init(0)
    u.h[...] = [0, 0.5, -0.25, 0]
    ocdl.save(path, net, u, note="by hand")
    report = json.loads(run("inspect", path, "--json")[1])
    assert report["time_steps"] == {
        "count": 4, "zero": 2, "negative": 1, "minimum": -0.25, "maximum": 0.5, "sum": 0.25
    }  # fmt: skip
    assert report["metadata"] == {"note": "by hand"}
    assert "2 zero" in run("inspect", path)[1]
    assert report["pruning"]["kept"] == net.prune(u)[0].n_layers == 2
    assert "2 of 4 layers can be left out: 2 times fewer to compute" in run("inspect", path)[1]
    net = ocdl.Network.preset("net", 2, 4)
    ocdl.save(path, net, net.init(0))
    assert "feed-forward" in run("inspect", path)[1]
    assert "none of the 4 layers can be left out" in run("inspect", path)[1]


# ---- Ctrl-C ----


def test_ctrl_c(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ocdl.cli.info.align", interrupt)
    assert run("info") == (130, "", "ocdl: interrupted\n")


def test_ctrl_c_ends_a_training_and_keeps_what_was_learned(tmp_path: Path) -> None:
    path = tmp_path / "m.ocdl"
    endless = "-m ocdl train --data spiral --layers 2000 --max-iter 1000000 --optimiser backtracking --alpha 0 --out"
    code, out, err = interrupted(*endless.split(), str(path))
    assert code == 130
    assert "a callback or Ctrl-C ended the training" in out
    assert err.splitlines()[0] == "ocdl: ending the training; press Ctrl-C again to discard what has been learned"
    assert err.splitlines()[-1].startswith("ocdl: interrupted after ")
    assert f"what has been learned is in {str(path)!r}" in err
    assert list(tmp_path.iterdir()) == [path]
    assert len(ocdl.load(path).predict(np.zeros((3, 2)))) == 3


@pytest.mark.parametrize("state", ["was not written", "is unchanged", "was written"])
def test_an_interrupted_prediction_reports_the_state_of_its_file(
    state: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, model, out = tmp_path / "d.csv", tmp_path / "m.ocdl", tmp_path / "p.csv"
    np.savetxt(data, np.random.default_rng(0).normal(size=(30, 3)), delimiter=",")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ocdl.ODEClassifier(max_iter=1).fit(np.eye(3), [0, 1, 0]).save(model)
    if state == "is unchanged":
        out.write_text("the old one")

    def interrupt(path: str, text: str) -> None:
        if state == "was written":
            Path(path).write_text(text)
        raise KeyboardInterrupt

    monkeypatch.setattr("ocdl.cli.predict.write_text", interrupt)
    assert run("predict", model, data, "--out", out) == (130, "", f"ocdl: interrupted; {str(out)!r} {state}\n")


ENDING = """
import time
import ocdl
from ocdl import __main__
def main():
    ocdl.ODEClassifier  # takes scikit-learn along, as training and prediction do
    print(time.process_time(), flush=True)
    return 130
__main__.main = main
__main__.run()
"""


def test_the_process_ends_soon_after_its_command() -> None:
    """In processor time, which other processes do not take away."""

    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 130, done.stderr
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime - float(done.stdout)

    assert min(seconds() for _ in range(5)) < 0.1


# ---- fields ----


@pytest.mark.parametrize("field", FIELDS_WITHOUT_OPTION)
def test_train_takes_a_field(field: str, run: Run, tmp_path: Path) -> None:
    """A Hamiltonian one gets a state of even dimension, whatever the data."""
    path = tmp_path / "model.ocdl"
    settings = ("--field", field, "--tableau", "implicit_midpoint", "--layers", 3, "--max-iter", 5, "--quiet")
    code, _, error = run("train", "--data", "donut2d", *settings, "--out", path)
    assert (code, error) == (0, "")
    network = files.read(path).model.network
    assert (network.field, network.tableau.name) == (field, "implicit_midpoint")
    assert f"{field} field" in run("inspect", path)[1]


def test_a_feed_forward_network_takes_no_other_field(run: Run, tmp_path: Path) -> None:
    argv = (
        "train",
        "--data",
        "squares",
        "--architecture",
        "net",
        "--field",
        "hamiltonian",
        "--out",
        tmp_path / "m.ocdl",
    )
    assert_one_line_error(run(*argv), "field='hamiltonian' needs an --architecture other than net")


# ---- checkpoints ----


@pytest.mark.parametrize("regression", [False, True])
def test_a_training_continues_from_its_checkpoint(regression: bool, tmp_path: Path, run: Run) -> None:
    """As if it had not stopped: the model has the same bits."""
    rows = np.random.default_rng(0).normal(size=(80, 3))
    target = rows[:, 0] * rows[:, 1] if regression else (rows[:, 0] > 0).astype(int)
    table = tmp_path / "t.csv"
    lines = [
        ",".join(map(repr, map(float, row))) + f",{value!r}" for row, value in zip(rows, target.tolist(), strict=True)
    ]
    table.write_text("\n".join(["a,b,c,target", *lines]) + "\n")
    options = ["--data", table, "--quiet", *(["--regression"] if regression else [])]
    checkpoint, out = tmp_path / "c", tmp_path / "m.ocdl"
    assert run("train", *options, "--max-iter", 160, "--out", out, "--checkpoint", checkpoint)[0] == 0
    assert run("train", *options, "--max-iter", 200, "--out", tmp_path / "resumed.ocdl", "--resume", checkpoint)[0] == 0
    assert run("train", *options, "--max-iter", 200, "--out", tmp_path / "whole.ocdl")[0] == 0
    resumed, whole = (files.read(tmp_path / f"{name}.ocdl").model.controls.to_vector() for name in ("resumed", "whole"))
    assert np.array_equal(resumed, whole)
    code, _, err = run("train", *options, "--layers", 3, "--out", out, "--resume", checkpoint)
    assert code == 2
    assert "another network" in err
    code, _, err = run("train", *options, "--cv", 2, "--checkpoint", checkpoint)
    assert code == 2
    assert "--out" in err
