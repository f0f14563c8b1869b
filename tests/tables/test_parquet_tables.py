"""Tables in Parquet files, changed files, and Ctrl-C while files are read."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from example_tables import QUICK, Run, Write, assert_error, patients
from soak import Soak

from ocdl.cli._interrupts import reraise_swallowed_interrupts
from ocdl.data import parquet as parquet_files
from ocdl.tables import csv_file
from ocdl.tables.encoding import fit_encoding
from ocdl.tables.frame import TableError
from ocdl.tables.parquet import ParquetTable
from ocdl.tables.reading import peek

# ---- Parquet ----


@pytest.mark.extras
def test_parquet(run: Run, tmp_path: Path) -> None:
    data, model = tmp_path / "patients.parquet", tmp_path / "model.ocdl"
    frame = patients()
    frame["city"] = frame["city"].astype("category")
    frame.to_parquet(data)
    code, out, err = run("train", "--data", data, *QUICK, "--out", model)
    assert code == 0
    assert "3 rows without a target" in out
    assert "column 5 ('name') is left out" in err
    code, out, err = run("predict", model, data, "--id", "name", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["id"] == frame["name"].tolist()
    csv = tmp_path / "patients.csv"
    patients().to_csv(csv, index=False)
    other = tmp_path / "other.ocdl"
    assert run("train", "--data", csv, *QUICK, "--out", other)[0] == 0
    assert json.loads(run("predict", other, data, "--json")[1]) == {
        key: value for key, value in json.loads(out).items() if key != "id"
    }


@pytest.mark.extras
def test_bad_parquet(run: Run, write: Write, tmp_path: Path) -> None:
    for content in (b"", b"PAR1", b"PAR1" + os.urandom(1000) + b"PAR1", b"a,b\n1,2\n"):
        data = write(content, "d.parquet")
        assert_error(run("train", "--data", data, "--out", tmp_path / "m.ocdl"), "it is not a readable Parquet file")
    patients(0).to_parquet(data)
    assert_error(run("train", "--data", data, "--out", tmp_path / "m.ocdl"), "there are no rows")


@pytest.mark.extras
@pytest.mark.parametrize("target", ["place", "y"])
def test_parquet_whose_text_is_no_utf_8(target: str, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"place": ["Bern", "Genf"] * 20, "x": range(40), "y": ["red", "blue"] * 20})
    frame.to_parquet(path, compression=None)
    path.write_bytes(path.read_bytes().replace(b"Genf", b"Gen\xff"))
    result = run("train", "--data", path, "--target", target, "--out", tmp_path / "m.ocdl")
    assert_error(result, "has neither numbers nor texts nor dates")


@pytest.mark.extras
@pytest.mark.parametrize(
    "message",
    [
        "{",
        "[]",
        '{"index_columns": ["gone"], "columns": [], "column_indexes": []}',
        '{"index_columns": ["a"], "columns": [{"name": "a", "field_name": "a", "pandas_type": "object", '
        '"numpy_type": "evil", "metadata": null}], "column_indexes": []}',
    ],
)
@pytest.mark.parametrize("name", ["d.parquet", "d*.parquet"])
def test_parquet_with_wrong_metadata_of_pandas(message: str, name: str, run: Run, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow.parquet import write_table

    table = pa.table({"a": [1.0, 2.0] * 10, "y": ["p", "q"] * 10})
    write_table(table.replace_schema_metadata({"pandas": message}), tmp_path / "d.parquet")
    result = run("train", "--data", tmp_path / name, "--out", tmp_path / "m.ocdl")
    assert_error(result, "d.parquet: it is not a readable Parquet file")


@pytest.mark.extras
def test_the_index_of_pandas_is_no_column_in_one_file_or_several(run: Run, tmp_path: Path) -> None:
    frame = patients().dropna().set_index("age")
    for k, part in enumerate((frame[:50], frame[50:])):
        part.to_parquet(tmp_path / f"part-{k}.parquet")
    for name in ("part-0.parquet", "part-*.parquet"):
        assert run("train", "--data", tmp_path / name, *QUICK, "--quiet", "--out", tmp_path / "m")[0] == 0
        assert "age" not in run("inspect", tmp_path / "m")[1]


@pytest.mark.extras
def test_a_target_of_lists_is_refused(run: Run, tmp_path: Path) -> None:
    pd.DataFrame({"a": np.arange(9.0), "y": [[i] for i in range(9)]}).to_parquet(tmp_path / "d.parquet")
    result = run("train", "--data", tmp_path / "d.parquet", "--out", tmp_path / "m.ocdl")
    assert_error(result, "column 2 ('y') has neither numbers nor texts nor dates")


def survive_changed_tables(original: bytes, path: Path, count: int, seed: int) -> str:
    """Read so many tables with changed, cut and repeated bytes: each is a table, or one sentence says what is wrong."""
    rng = np.random.default_rng(seed)
    tables, sentences = 0, []
    for _ in range(count):
        changed = bytearray(original)
        for _ in range(rng.integers(1, 5)):
            kind, position = rng.integers(3), int(rng.integers(max(len(changed), 1)))
            if kind == 0 and changed:
                changed[position] = rng.integers(256)
            elif kind == 1:
                del changed[position : position + int(rng.integers(1, 50))]
            else:
                changed[position:position] = changed[position : position + int(rng.integers(1, 50))]
        path.write_bytes(changed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                table = peek(str(path)).read()
                fit_encoding(table, list(table.data.columns), None)
                tables += 1
            except TableError as error:
                sentences.append(str(error))
    assert [sentence for sentence in sentences if "\n" in sentence] == []
    return f"{tables:,} were tables, {count - tables:,} were refused"


@pytest.mark.parametrize("kind", ["csv", pytest.param("parquet", marks=pytest.mark.extras)])
def test_changed_tables(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{kind}"
    getattr(patients(), f"to_{kind}")(path)
    survive_changed_tables(path.read_bytes(), path, 60, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", pytest.param("parquet", marks=pytest.mark.extras)])
def test_ten_thousand_changed_tables(kind: str, tmp_path: Path, soak: Soak) -> None:
    path = tmp_path / f"t.{kind}"
    getattr(patients(), f"to_{kind}")(path)
    soak.measured(survive_changed_tables(path.read_bytes(), path, soak.times(10_000, least=50), seed=1))


def test_a_table_too_large_for_pandas(run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_csv(*args: object, **options: object) -> None:
        raise pd.errors.ParserError("Error tokenizing data. C error: out of memory")

    monkeypatch.setattr(pd, "read_csv", read_csv)
    result = run("train", "--data", write(b"a,y\n1,0\n2,1\n"), "--out", tmp_path / "m.ocdl")
    assert_error(result, "table.csv takes several times its 1.2e-05 MB")


def test_parquet_without_pyarrow(run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    data = write(b"PAR1", "d.parquet")
    result = run("train", "--data", data, "--out", tmp_path / "m.ocdl")
    assert_error(result, "Parquet files need pyarrow: pip install 'ocdl[parquet]'")
    assert_error(
        run("train", "--data", tmp_path / "no.parquet", "--out", tmp_path / "m.ocdl"), "is neither a file nor one of"
    )


def test_ctrl_c_while_a_table_is_read_is_no_damaged_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pandas turns an interrupt in the stream that it reads into an error of its own."""
    path = tmp_path / "data.csv"
    path.write_text("a,b\n" + "1,2\n" * 100)

    def pressed(blocks: csv_file._Blocks, size: int = -1) -> bytes:
        signal.raise_signal(signal.SIGINT)
        return b""

    monkeypatch.setattr(csv_file._Blocks, "read", pressed)
    with pytest.raises(KeyboardInterrupt):
        reraise_swallowed_interrupts(peek(str(path)).read)()


class PressedMark(str):
    """A mark of a missing cell: Ctrl-C is pressed while pandas tests whether it is a whole number."""

    def __int__(self) -> int:
        return next(map(int, ["NA"], map(ctypes.CDLL(None)["raise"], [signal.SIGINT])))


def test_ctrl_c_that_int_swallows_ends_the_reading(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where int("NA") finds a signal, it is a ValueError all the same, and that is what pandas expects."""
    path = write("a,b\n" + "1,2\n" * 100)
    monkeypatch.setattr(csv_file, "MISSING", [PressedMark("NA")])
    with pytest.raises(KeyboardInterrupt):
        reraise_swallowed_interrupts(peek(path).read)()


@pytest.mark.extras
def test_a_swallowed_ctrl_c_ends_the_reading_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = str(tmp_path / "d*.parquet")
    patients().to_parquet(tmp_path / "d0.parquet")
    table, opened = ParquetTable.peek(pattern), parquet_files._open

    def lose_ctrl_c(path: str) -> Any:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return opened(path)

    monkeypatch.setattr(parquet_files, "_open", lose_ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        reraise_swallowed_interrupts(table.read_sample)()
    with pytest.raises(KeyboardInterrupt):
        reraise_swallowed_interrupts(ParquetTable.peek)(pattern)
