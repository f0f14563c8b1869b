"""``ocdl train`` on a table in several files: one model for any number of ranks, and one line where it goes wrong."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ranks import Done, launch_command, needs_mpi

import ocdl

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'ocdl[parquet]'")
pytestmark = pytest.mark.extras

FILES, ROWS = 4, 20_000
TRAINING = ("--max-iter", "5", "--layers", "3", "--test-size", "0.2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 20,000 rows in four files, of different lengths and with row groups across the ends of shards."""
    path = tmp_path_factory.mktemp("table")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 2))
    frame = pd.DataFrame({"a": 10 + 3 * X[:, 0], "b": X[:, 1], "c": rng.choice(["red", "green", "blue"], ROWS)})
    frame.loc[::7, "b"] = np.nan
    frame["y"] = np.where(X[:, 0] + (frame["c"] == "red") > 0, "yes", "no")
    cuts = [0, 3000, 9000, 16_500, ROWS]
    for k in range(FILES):
        part = frame.iloc[cuts[k] : cuts[k + 1]]
        part.to_parquet(path / f"part-{k}.parquet", row_group_size=1300, index=False)
    return path


def command(folder: Path, out: Path, *more: str) -> list[str]:
    words = [sys.executable, "-m", "ocdl", "train", "--data", str(folder / "part-*.parquet"), "--out", str(out)]
    return [*words, *TRAINING, *more]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def alone(run: Callable[..., Any], folder: Path, out: Path, *more: str) -> dict[str, Any]:
    code, written, err = run(*command(folder, out, "--json", *more)[3:])
    assert code == 0, err
    report: dict[str, Any] = json.loads(written)
    return report


@needs_mpi
@pytest.mark.parametrize("more", [(), ("--regression", "--target", "a"), ("--batch-size", "500")])
def test_the_model_file_does_not_depend_on_the_ranks(
    more: tuple[str, ...], folder: Path, tmp_path: Path, run: Callable[..., Any]
) -> None:
    report = alone(run, folder, tmp_path / "alone.ocdl", *more)
    assert report["train_samples"] == 16_000
    for ranks in (2, 3):
        out = tmp_path / f"{ranks}.ocdl"
        done = launch_command(ranks, command(folder, out, "--json", *more))
        assert done.code == 0, done.err
        assert digest(out) == digest(tmp_path / "alone.ocdl")
        message = json.loads(done.out)  # one rank speaks
        assert message["loss"] == report["loss"]
        for name in ("train", "test"):
            for score in ("accuracy", "log_loss", "r2", "error"):
                if f"{name}_{score}" in report:
                    assert message[f"{name}_{score}"] == pytest.approx(report[f"{name}_{score}"], rel=1e-9)


def test_the_model_predicts(folder: Path, tmp_path: Path, run: Callable[..., Any]) -> None:
    report = alone(run, folder, tmp_path / "model.ocdl", "--max-iter", "60")
    assert report["test_accuracy"] > 0.9
    frame = pd.read_parquet(folder / "part-1.parquet")
    assert np.mean(ocdl.load(tmp_path / "model.ocdl").predict(frame) == frame["y"].to_numpy()) > 0.9


# ---- what is wrong ----


def refused(ranks: int, words: list[str]) -> Done:
    """A job that ends with one line."""
    done = launch_command(ranks, words, most_seconds=120)
    assert done.code != 0
    assert len([line for line in done.err.splitlines() if line.startswith("ocdl: ")]) == 1, done.err
    return done


@needs_mpi
def test_a_damaged_file_is_named_and_its_rank(tmp_path: Path) -> None:
    """Its end, which every rank reads, is whole, and so is the sample of its rows; one rank reads others."""
    from pyarrow.parquet import ParquetFile

    path = tmp_path / "part-0.parquet"
    x = np.random.default_rng(0).normal(size=80_000)
    pd.DataFrame({"x": x, "y": (x > 0).astype(int)}).to_parquet(path, row_group_size=500, index=False)
    with ParquetFile(path) as file:
        start = file.metadata.row_group(120).column(0).dictionary_page_offset
    content = bytearray(path.read_bytes())
    content[start : start + 100] = bytes(100)
    path.write_bytes(bytes(content))
    done = refused(3, command(tmp_path, tmp_path / "model.ocdl", "--test-size", "0"))
    assert "rank 2 has failed: TableError" in done.err
    assert "part-0.parquet: row group 120 cannot be read" in done.err
    assert not (tmp_path / "model.ocdl").exists()


@needs_mpi
def test_a_file_that_is_none_and_files_that_are_missing(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "part-0.parquet").write_bytes(b"nothing of the kind")
    assert "part-0.parquet: it is not a readable Parquet file" in refused(2, command(tmp_path, tmp_path / "m.ocdl")).err
    assert "there are no such files" in refused(2, command(tmp_path / "elsewhere", tmp_path / "m.ocdl")).err


@needs_mpi
@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (("--cv", "3", "--test-size", "0"), "--cv needs all rows in one file"),
        (("--patience", "3"), "--patience needs all rows in one file"),
        (("--alpha", "cv"), "--alpha cv needs all rows in one file"),
        (("--data", "spiral"), "on several ranks --data takes Parquet files"),
    ],
)
def test_options_that_need_all_rows_are_refused(
    more: tuple[str, ...], reason: str, folder: Path, tmp_path: Path
) -> None:
    assert reason in refused(2, command(folder, tmp_path / "m.ocdl", *more)).err


def test_a_missing_target_is_named(folder: Path, tmp_path: Path, run: Callable[..., Any]) -> None:
    frame = pd.read_parquet(folder / "part-0.parquet")
    frame.loc[17, "y"] = None
    frame.to_parquet(tmp_path / "part-0.parquet", index=False)
    code, _, err = run(*command(tmp_path, tmp_path / "m.ocdl")[3:])
    assert code == 2
    assert "row 18, column 4 ('y'): the target is missing" in err
