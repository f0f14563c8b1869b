"""Mistakes on the command line: each is one line on stderr."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import QUICK, Run, assert_one_line_error, run_process

import ocdl
from ocdl.network import files

# ---- mistakes ----


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n\n", "it is empty"),
        ("1,2,a\n3,b\n", "row 2 has 2 columns, but row 1 has 3"),
        ("x,y,z\n" + ",?,a\nNA,,b\n" * 4, "there is no column to learn from"),
        ("1,2,a\n\n3,inf,b\n" + "1,2,a\n3,4,b\n" * 5, "row 3, column 2: 'inf' is not a finite number"),
        ("1,2,a\n3,4,\n", "column 3 has one class, 'a'"),
        ('1,"a\n2,b\n', "row 1 has a quotation mark that is never closed"),
        ("1,a\n2,b\n3,b\n", "class 'a' has one sample"),
        ("1,a\n2,b\n3,b\n4,a\n", "both need one of each of the 2 classes"),
        ("1e308,a\n-1e308,a\n1e308,b\n-1e308,b\n" * 4, "column 1: the numbers are too large to be standardised"),
    ],
)
def test_bad_csv_files(text: str | bytes, message: str, run: Run, tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_bytes(text if isinstance(text, bytes) else text.encode())
    result = run("train", "--data", data, *QUICK, "--out", tmp_path / "m.ocdl")
    assert_one_line_error(result, message)
    assert list(tmp_path.iterdir()) == [data]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": [0, 1]}, "there is no array X; the arrays are y"),
        ({"X": [[1.0], [2.0]]}, "has no array y"),
        ({"X": [1.0, 2.0], "y": [0, 1]}, "X must have numbers of shape (samples, features)"),
        ({"X": [["a"], ["b"]], "y": [0, 1]}, "X must have numbers"),
        ({"X": np.empty((0, 2)), "y": [0, 1]}, "X must have numbers"),
        ({"X": [[1.0, 2.0], [3.0, np.nan]], "y": [0, 1]}, "X, row 2, column 2: nan is not finite"),
        ({"X": [[1.0], [2.0]], "y": [0, 1, 2]}, "X has 2 samples, but y has 3 labels"),
        ({"X": [[1.0], [2.0]], "y": [0.5, 1]}, "y must have whole numbers or text"),
        ({"X": [[1.0], [2.0]], "y": [np.nan, 1]}, "y must have whole numbers or text"),
        ({"X": [[1.0], [2.0]], "y": [3, 3]}, "y has one class, 3"),
        ({"X": [[1.0], [2.0]], "y": np.array([0, 1], dtype=object)}, "arrays of Python objects are not read"),
    ],
)
def test_bad_npz_files(arrays: dict[str, Any], message: str, run: Run, tmp_path: Path) -> None:
    data = tmp_path / "data.npz"
    np.savez(data, **arrays)
    assert_one_line_error(run("train", "--data", data, *QUICK, "--out", tmp_path / "m.ocdl"), message)
    assert list(tmp_path.iterdir()) == [data]


@pytest.mark.parametrize("shape", [f"({10**30}, 2)", "(4, 2", "(-4, 2)"])
def test_npz_files_with_a_strange_header(shape: str, run: Run, tmp_path: Path) -> None:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    data = tmp_path / "data.npz"
    with zipfile.ZipFile(data, "w") as archive:
        content = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode() + bytes(64)
        archive.writestr("X.npy", content)
    assert_one_line_error(run("train", "--data", data, "--out", tmp_path / "m.ocdl"), "data.npz: X: damaged: ")


@pytest.mark.parametrize("content", [b"", b"1,2\n", b"PK\x03\x04 not really", "npy"])
def test_files_that_are_no_npz(content: bytes | str, run: Run, tmp_path: Path) -> None:
    data = tmp_path / "data.npz"
    with open(data, "wb") as file:
        if isinstance(content, str):
            np.save(file, np.eye(2))
        else:
            file.write(content)
    assert_one_line_error(run("train", "--data", data, "--out", tmp_path / "m.ocdl"), "it is not an NPZ file")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "required: COMMAND"),
        (("fly",), "invalid choice: 'fly'"),
        (("train", "--out", "m"), "required: --data"),
        (("train", "--data", "spiral"), "--out is required"),
        (("train", "--data", "spiralll", "--out", "m"), "'spiralll' is neither a file nor one of donut1d"),
        (("train", "--data", ".", "--out", "m"), "Is a directory: '.'"),
        (("train", "--data", "spiral", "--target", "a", "--out", "m"), "--target is for tables with columns"),
        (("train", "--data", "spiral", "--out", "m", "--layers", "0"), "--layers: must be a whole number from 1"),
        (("train", "--data", "spiral", "--out", "m", "--seed", "-1"), "--seed: must be a whole number from 0"),
        (("train", "--data", "spiral", "--out", "m", "--test-size", "1"), "--test-size: must be at least 0"),
        (("train", "--data", "spiral", "--out", "m", "--test-size", "nan"), "--test-size: must be at least 0"),
        (("train", "--data", "spiral", "--out", "m", "--tableau", "rk99"), "invalid choice: 'rk99'"),
        (("train", "--data", "spiral", "--out", "m", "--loss", "hinge"), "invalid choice: 'hinge'"),
        (("train", "--data", "spiral", "--out", "m", "--optimiser", "sgd"), "invalid choice: 'sgd'"),
        (("train", "--data", "spiral", "--out", "m", "--architecture", "x"), "invalid choice: 'x'"),
        (("train", "--data", "spiral", "--out", "absent/m"), "There is no such folder: 'absent'"),
        (("train", "--data", "spiral", "--out", "."), "Is a directory: '.'"),
        (("train", "--dat", "spiral", "--out", "m"), "required: --data"),
        (("train", "--data", "spiral", "--output", "m"), "--output m; did you mean '--out'?"),
        (("train", "--data", "spiral", "--optimizer=adam"), "--optimizer=adam; did you mean '--optimiser'?"),
        (("predict", "m", "a.csv", "b.csv"), "unrecognized arguments: b.csv; see ocdl predict --help"),
        (("inspect", "absent.ocdl"), "No such file or directory: 'absent.ocdl'"),
    ],
)
def test_bad_options(
    options: tuple[str, ...], message: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_one_line_error(run(*options), message)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("target", "message"), [("colour", "no column is named 'colour'; there are a, b"), ("6", "counted from 1 to 5")]
)
def test_a_target_that_is_not_there(target: str, message: str, iris: Path, run: Run, tmp_path: Path) -> None:
    assert_one_line_error(run("train", "--data", iris, "--target", target, "--out", tmp_path / "m"), message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,c\n1,2,3\n", "the header lacks column 'd'"),
        ("a,e\n1,2\n", "the header lacks columns b, c, d; the model was trained on a, b, c, d"),
        ("1,2,3\n", "row 1 has 3 columns, but the model takes 4 features"),
        ("a,b,c,d\n1,2,3,x\n", "row 2, column 4 ('d'): 'x' is not a number"),
        ("", "it is empty"),
    ],
)
def test_samples_that_do_not_fit_the_model(text: str, message: str, model: Path, run: Run, tmp_path: Path) -> None:
    data = tmp_path / "new.csv"
    data.write_text(text)
    before = sorted(tmp_path.iterdir())
    assert_one_line_error(run("predict", model, data, "--out", tmp_path / "p.csv"), message)
    assert sorted(tmp_path.iterdir()) == before


def test_files_that_hold_no_classifier(model: Path, iris: Path, run: Run, tmp_path: Path) -> None:
    for command in (("predict", iris, iris), ("inspect", iris)):
        assert_one_line_error(run(*command), "not an ocdl file")
    net, u, metadata = files.read(model).model
    ocdl.save(model, net, u)
    assert_one_line_error(run("predict", model, iris), "holds a network without classes")
    table = metadata["table"]
    for part, value in [
        ("width", -1),
        ("names", ["a"]),
        ("names", [1, 2, 3, 4]),
        ("names", ["a", "a", "b", "c"]),
        ("positions", [0, 1, 2, 9]),
        ("positions", [0, 0, 1, 2]),
        ("positions", []),
        ("fill", "much"),
        ("fill", [True] * 4),
        ("mean", [0.0]),
        ("mean", [None] * 4),
        ("scale", [0.0] * 4),
        ("kinds", {"a": "picture"}),
        ("kinds", {"z": "text"}),
        ("kinds", {"a": "text"}),
        ("kinds", {"a": "date"}),
        ("values", {"a": ["x"]}),
        ("formats", {"a": "ISO8601"}),
        ("missing", {"a": [1]}),
        ("missing", {"a": ["x"] * 2}),
        ("target", {"name": "species"}),
        ("target", {"name": 3, "position": 4}),
        ("target", {"name": "species", "position": 0}),
        ("surprise", 1),
    ]:
        files.write(model, net, u, metadata | {"table": table | {part: value}}, {})
        for command in (("predict", model, iris), ("inspect", model)):
            assert_one_line_error(run(*command), "holds no estimator that this ocdl can load")
    for changed in ({"kinds": {"a": "text"}, "values": {"a": ["x", "y"]}}, {"kinds": []}, {"width": 3}):
        files.write(model, net, u, metadata | {"table": table | changed}, {})
        assert_one_line_error(run("predict", model, iris), "holds no estimator that this ocdl can load")


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_full_disk_leaves_nothing_behind(
    function: str, model: Path, iris: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = sorted(tmp_path.iterdir())
    old = model.read_bytes()
    monkeypatch.setattr(os, function, fail)
    result = run("train", "--data", iris, *QUICK, "--quiet", "--out", model)
    assert_one_line_error(result, f"No space left on device: {str(model)!r}")
    result = run("predict", model, iris, "--out", tmp_path / "p.csv")
    assert_one_line_error(result, "No space left on device")
    assert sorted(tmp_path.iterdir()) == before
    assert model.read_bytes() == old


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_protected_folder(model: Path, iris: Path, run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "protected"
    folder.mkdir(mode=0o500)
    assert_one_line_error(run("train", "--data", "spiral", "--out", folder / "m.ocdl"), "Permission denied")
    assert_one_line_error(run("predict", model, iris, "--out", folder / "p.csv"), "Permission denied")
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_none_or_cannot_be_written_to(
    model: Path, iris: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(tmp_path.iterdir())
    assert_one_line_error(run("predict", model, iris, "--out", iris / "p.csv"), "There is no such folder")
    monkeypatch.setattr(os, "access", lambda *args: False)
    assert_one_line_error(run("train", "--data", iris, "--out", tmp_path / "m"), "Permission denied")
    assert_one_line_error(run("predict", model, iris, "--out", tmp_path / "p.csv"), "Permission denied")
    assert sorted(tmp_path.iterdir()) == before


def test_inputs_are_not_replaced(model: Path, iris: Path, run: Run) -> None:
    text, old = iris.read_text(), model.read_bytes()
    for command in (
        ("train", "--data", iris, "--out", iris),
        ("predict", model, iris, "--out", iris),
        ("predict", model, iris, "--out", model),
    ):
        assert_one_line_error(run(*command), "would replace a file that is read")
    assert (iris.read_text(), model.read_bytes()) == (text, old)


def test_samples_from_a_pipe(model: Path, iris: Path, run: Run) -> None:
    done = run_process("predict", model, "/dev/stdin", input=iris.read_text())
    assert (done.returncode, done.stdout, done.stderr) == run("predict", model, iris)


def test_a_closed_stdout_ends_the_command(model: Path, iris: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "ocdl", "predict", str(model), str(iris)]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_stdout_on_a_full_disk() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "ocdl", "info"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (2, "ocdl: error: No space left on device\n")


def test_not_enough_memory_is_one_line(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise MemoryError

    monkeypatch.setattr(ocdl.Network, "init", fail)
    assert_one_line_error(run("train", "--data", "spiral", "--out", tmp_path / "m"), "B are left")


def test_errors_in_ocdl_keep_their_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr("ocdl.cli.info.align", fail)
    with pytest.raises(ValueError, match="a bug"):
        run("info")
