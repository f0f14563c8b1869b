"""First use of the package: hints, plurals, and a command line that fits the terminal."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ocdl
from ocdl import Network
from ocdl.base.names import pluralise
from ocdl.cli import COMMANDS
from ocdl.cli._output import align, format_table

Run = Callable[..., tuple[int, str, str]]
NET = Network(2, 3)
U = NET.init(random_state=0)
X, Y = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1])
COMMAND_NAMES = [command.__name__.rpartition(".")[2] for command in COMMANDS]
RESULT = ocdl.train(NET, U, X, Y, max_iter=1)


def test_hints_for_missing_attributes_do_not_disturb_copies() -> None:
    for thing in (NET, RESULT):
        assert repr(pickle.loads(pickle.dumps(thing))) == repr(copy.deepcopy(thing)) == repr(thing)
        assert not hasattr(thing, "__array__")


def test_singular_and_plural() -> None:
    assert [pluralise(n, "output") for n in (0, 1, 2)] == ["0 outputs", "1 output", "2 outputs"]
    assert [pluralise(n, "class", "classes") for n in (1, 2)] == ["1 class", "2 classes"]
    assert "after 1 iteration and" in RESULT.message
    assert repr(RESULT.history).startswith("<History of 1 iteration,")
    assert str(Network(2, 1).saving(Network(2, 1).init(0))) == "the only layer cannot be left out"


def test_inspect_uses_the_singular(run: Run, tmp_path: Path) -> None:
    ocdl.save(tmp_path / "m", Network(1, 1), Network(1, 1).init(0))
    out = run("inspect", tmp_path / "m")[1]
    assert "1 layer, residual, tableau euler, dense field" in out
    assert "1 input, 1 output, 5 controls" in out


# ---- the command line ----


def error(result: tuple[int, str, str]) -> str:
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    return err


def test_a_table_is_refused_as_a_model(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b,y\n1,2,0\n")
    for command in (("inspect", path), ("predict", path, path)):
        assert error(run(*command)).endswith(
            "is not an ocdl file: it looks like text with commas, as tables have them\n"
        )


def test_options(run: Run, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "m")
    assert "see ocdl train --help" in error(run("train", "--data", "spiral", *out, "--nonsense"))
    assert "tableau='kutta4' needs" in error(
        run("train", "--data", "spiral", *out, "--architecture", "net", "--tableau", "kutta4")
    )
    assert "number, counted from 1" in " ".join(run("train", "--help")[1].split())
    path = tmp_path / "data.csv"
    path.write_text("a,b,y\n1,2,0\n")
    assert "--target 4 is not a column; columns are counted from 1 to 3" in error(
        run("train", "--data", path, "--target", "4", *out)
    )


@pytest.mark.parametrize(("labels", "is_asked"), [("xyzz", False), ("1233", True)])
def test_only_numbers_might_be_measurements(labels: str, is_asked: bool, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels)))
    output = error(run("train", "--data", path, "--out", tmp_path / "m"))
    assert "has one sample" in output
    assert ("are they measurements?" in output) == is_asked


def python(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ocdl", *map(str, arguments)]
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_characters_that_stdout_cannot_encode(tmp_path: Path) -> None:
    path = tmp_path / "größe.csv"
    path.write_text("a,b,y\n" + "".join(f"{i},{i % 3},{'ßé'[i % 2]}\n" for i in range(20)), encoding="utf-8")
    model, ascii_only = tmp_path / "größe.ocdl", {"PYTHONIOENCODING": "ascii"}
    done = python("train", "--data", path, "--layers", "2", "--max-iter", "3", "--out", model, **ascii_only)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert r"gr\xf6\xdfe.ocdl" in done.stdout
    done = python("inspect", model, **ascii_only)
    assert done.returncode == 0, done.stderr
    done = python("inspect", path, **ascii_only)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    done = python("predict", model, path, **ascii_only)  # data: no letter of it is changed
    assert done.returncode == 2
    assert "stdout is in ascii" in done.stderr
    assert "--out writes UTF-8" in done.stderr
    assert python("predict", model, path, "--json", **ascii_only).returncode == 0


@pytest.mark.parametrize("constant", [0.0, 7.0, 1e19, 1e100, -1.7e200])
def test_a_constant_column_of_any_size_does_no_harm(constant: float, run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 2))
    path = tmp_path / "data.csv"
    lines = [f"{a!r},{constant!r},{b!r},{int(a + b > 0)}" for a, b in rows.tolist()]
    path.write_text("\n".join(["a,c,b,y", *lines]) + "\n")
    code, out, err = run("train", "--data", path, "--layers", "5", "--json", "--out", tmp_path / "m")
    assert (code, err) == (0, "")
    assert json.loads(out)["test_accuracy"] > 0.9


def test_tables_fit_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    header = ("network", "train", "test", "loss", "steps used")
    rows = [("odenet+simplex", "1", "0.99", "1e-3", "9 of 20")]
    values: dict[str, object] = {"network": "20 layers, dense field, tanh, float64, tableau euler", "file": "m"}
    monkeypatch.setenv("COLUMNS", "40")
    narrow = [format_table(header, rows), align(values)]
    assert all(len(line) <= 40 for text in narrow for line in text.splitlines())
    assert narrow[0].splitlines() == [
        "network",
        "odenet+simplex",
        "  train       1",
        "  test        0.99",
        "  loss        1e-3",
        "  steps used  9 of 20",
    ]
    long_names = [format_table(header, [("a name of many words " * 4, *"1234")]), align({"  a name " * 9: 1})]
    assert all(len(line) <= 40 for text in long_names for line in text.splitlines())
    monkeypatch.setenv("COLUMNS", "200")
    assert format_table(header, rows).count("\n") == 1
    assert align(values).count("\n") == 1


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMAND_NAMES)], ids=" ".join)
def test_help_fits_a_narrow_terminal(command: tuple[str, ...], run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the usage, whose lines are argparse's; and no word of an example is lost."""
    narrow, wide = (shown_help(columns, command, run, monkeypatch) for columns in ("40", "200"))
    assert all(len(line) <= 40 for line in narrow.splitlines())
    assert all(line.startswith("  ") for line in wide.partition("examples:\n")[2].partition("\n\n")[0].splitlines())
    assert narrow.partition("examples:")[2].replace("\\\n", "").split() == wide.partition("examples:")[2].split()


def shown_help(columns: str, command: tuple[str, ...], run: Run, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", columns)
    return run(*command, "--help")[1].partition("\n\n")[2]


def test_the_output_of_commands_fits_a_narrow_terminal(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, model = tmp_path / "data.csv", "m.ocdl"
    path.write_text(
        "a,a name that takes most of a line already,y\n" + "".join(f"{i},{i % 3},{i % 2}\n" for i in range(20))
    )
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.chdir(tmp_path)
    for command in (
        ("train", "--data", path, "--layers", "2", "--max-iter", "3", "--out", model),
        ("inspect", model),
        ("reproduce", "fig8", "--quick", "--seeds", "1", "--out", "r"),
    ):
        code, out, _ = run(*command)
        assert code == 0
        long = [line for line in out.splitlines() if len(line) > 40 and not line.startswith("page: ")]
        assert long == []
        assert [line for line in out.splitlines() if line != line.rstrip()] == []
