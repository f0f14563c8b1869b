"""Tables: how files are read, what columns become, and models that know it."""

from __future__ import annotations

import ctypes
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soak import Soak
from subprocesses import run_python

import ocdl
from ocdl.cli._interrupts import reraise_swallowed_interrupts
from ocdl.data import parquet as parquet_files
from ocdl.tables import csv_file
from ocdl.tables.columns import DATES, MAX_VALUES, Feature, infer_feature
from ocdl.tables.encoding import Encoding, EncodingOptions, Target, fit_encoding, plain_encoding
from ocdl.tables.frame import TableError, TableFrame, TableWarning
from ocdl.tables.model import TableModel, read_table_model, to_frame
from ocdl.tables.parquet import ParquetTable
from ocdl.tables.reading import peek
from ocdl.tables.spec import from_spec, to_arrays, to_spec

Write = Callable[..., str]
Run = Callable[..., tuple[int, str, str]]
QUICK = ("--layers", "2", "--max-iter", "20", "--test-size", "0")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file; return its path."""

    def call(content: str | bytes, name: str = "table.csv") -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return call


def patients(n: int = 120) -> pd.DataFrame:
    """A table as people have them: texts, dates, booleans, missing cells, a name that says nothing."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "city": rng.choice(["Bern", "Genf", "Basel"], n),
            "since": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 1500, n), "D"),
            "member": rng.choice([True, False], n),
            "name": [f"person {i}" for i in range(n)],
            "income": rng.normal(5000, 900, n).round(2),
        }
    )
    frame["outcome"] = np.where((frame["age"] > 50) ^ (frame["city"] == "Bern"), "ill", "well")
    frame.loc[::11, "age"] = np.nan
    frame.loc[::13, "city"] = None
    frame.loc[::40, "outcome"] = None
    return frame


def learned(frame: pd.DataFrame, target: str | None = None, **options: Any) -> tuple[Encoding, np.ndarray]:
    names = [name for name in frame.columns if name != target]
    return fit_encoding(to_frame(frame), names, target, options=EncodingOptions(**options))


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
    shown = run("inspect", model)[1]
    for line in (
        "city    text: Basel, Bern, Genf",
        "since   date as ISO8601; days and positions in the year, week",
        "member  boolean",
        "if missing",
    ):
        assert line in shown
    assert "model       classification of outcome; classes: ill, well" in shown


def test_measurements_are_predicted(run: Run, tmp_path: Path) -> None:
    data, model = tmp_path / "d.csv", tmp_path / "m.ocdl"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "colour": rng.choice(["red", "blue"], 200)})
    frame["price"] = 100 + 10 * frame["x"] + 5 * (frame["colour"] == "red")
    frame.to_csv(data, index=False)
    code, out, _ = run("train", "--data", data, "--regression", "--out", model, "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["test_r2"] > 0.99
    assert facts["test_error"] < 1
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


# ---- how files are written ----


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("a,b\n1,x\n2,y\n", ["a", "b"], [[1, "x"], [2, "y"]]),
        ("a;b\n1,5;x\n2,25;y\n", ["a", "b"], [[1.5, "x"], [2.25, "y"]]),
        ("a\tb\n1.5\tx, y\n2\tz\n", ["a", "b"], [[1.5, "x, y"], [2.0, "z"]]),
        ("a|b\n1|x\n2|y\n", ["a", "b"], [[1, "x"], [2, "y"]]),
        ('a,b\n"1,5",x\n"2,5",y\n', ["a", "b"], [[1.5, "x"], [2.5, "y"]]),
        ('a,b\n"1,234",0.5\n"12,345,678",1.5\n', ["a", "b"], [["1,234", 0.5], ["12,345,678", 1.5]]),
        ("#,b\n1,x\n2,y\n", ["#", "b"], [[1, "x"], [2, "y"]]),
        ("a,b\n#ff0000,1\n#00ff00,2\n", ["a", "b"], [["#ff0000", 1], ["#00ff00", 2]]),
        ("\n\n a , b \n\n 1 , x \n   \n2,y\n\n", ["a", "b"], [[1, "x"], [2, "y"]]),
        ("a,b\r\n1,x\r\n2,y\r\n", ["a", "b"], [[1, "x"], [2, "y"]]),
        ("a,b\r1,x\r2,y\r", ["a", "b"], [[1, "x"], [2, "y"]]),
        ('a,b\n1,"x\n# no\ny"\n2,"""z"", please"\n', ["a", "b"], [[1, "x\n# no\ny"], [2, '"z", please']]),
        ('a,b\n1,5" pipe\n2,7" pipe\n3,8\n', ["a", "b"], [[1, '5" pipe'], [2, '7" pipe'], [3, "8"]]),
        (",b\n0,1\n1,2\n", ["column 1", "b"], [[0, 1], [1, 2]]),
        ("1,2020-01-01\n2,2020-01-02\n", ["column 1", "column 2"], [[1, "2020-01-01"], [2, "2020-01-02"]]),
        ("a,b\n1,2", ["a", "b"], [[1, 2]]),
    ],
)  # fmt: skip
def test_files_are_understood(text: str, names: list[str], rows: list[Any], write: Write) -> None:
    for path in (write(text), write(b"\xef\xbb\xbf" + text.encode()), write(gzip.compress(text.encode()), "t.csv.gz")):
        table = peek(path).read()
        assert list(table.data.columns) == names
        assert [[str(cell).strip() for cell in row] for row in table.data.to_numpy(object).tolist()] == [
            [str(cell) for cell in row] for row in rows
        ]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ('a,y\n"1,234",p\n"2,500",q\n999,p\n', [1234, 2500, 999]),
        ('a,y\n"1,234",p\n"2,5",q\n9,p\n', [1.234, 2.5, 9]),
        ("a;y\n1.234,5;p\n2,5;q\n1.000.000;p\n", [1234.5, 2.5, 1e6]),
    ],
)
def test_thousands_may_be_set_apart(text: str, numbers: list[float], write: Write) -> None:
    table = peek(write(text)).read()
    _, values = fit_encoding(table, ["a"], "y", options=EncodingOptions(scaling=False))
    assert values[:, 0].tolist() == numbers


@pytest.mark.parametrize("text", ["", "?", "NA", "n/a", "NaN", "null", "None", "#N/A"])
def test_missing_cells(text: str, write: Write) -> None:
    table = peek(write(f"a,b,c\n1,x,2\n{text},{text},3\n")).read()
    assert table.data.isna().to_numpy().tolist() == [[False] * 3, [True, True, False]]


def test_none_may_be_a_class(write: Write, run: Run, tmp_path: Path) -> None:
    data = write("a,stage\n1,None\n2,mild\n3,None\n4,mild\n5,\n")
    assert run("train", "--data", data, *QUICK, "--quiet", "--out", tmp_path / "m.ocdl")[0] == 0
    assert ocdl.load(tmp_path / "m.ocdl").classes_.tolist() == ["None", "mild"]


def test_a_column_is_of_one_kind_however_long_the_file_is(write: Write) -> None:
    """pandas decides for each block of a file by itself what a column is."""
    rows = [f"{i:02d},{'true' if i % 2 else ''},1" for i in range(300_000)]
    table = peek(write("\n".join(["a,b,c", *rows, "x1,false,2", ""]))).read()
    assert table.data["a"].iloc[[0, 5, -1]].tolist() == ["00", "05", "x1"]
    assert infer_feature(table, "b") == Feature("b", 1, "boolean")


def test_numbers_are_read_to_the_last_bit(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.random.default_rng(0).normal(size=500) / 100
    path = write("\n".join(["x", *map(repr, numbers.tolist())]))
    np.testing.assert_array_equal(peek(path).read().data["x"], numbers)
    monkeypatch.setattr(csv_file, "LARGE", 1000)
    np.testing.assert_allclose(peek(path).read().data["x"], numbers, rtol=0, atol=2e-16)


def test_only_the_requested_columns_are_read(write: Write) -> None:
    path = write("a,b,c\n01,2,x\n03,4,y\n")
    table = peek(path).read([2, 0], texts=[0])
    assert table.data.to_dict("list") == {"a": ["01", "03"], "c": ["x", "y"]}
    assert (table.positions, table.width) == ([0, 2], 3)


def test_stdin(write: Write, tmp_path: Path) -> None:
    model, text = tmp_path / "m.ocdl", patients().to_csv(index=False)
    command = [sys.executable, "-m", "ocdl", "train", "--data", "-", *QUICK, "--quiet", "--out", str(model)]
    for packed in (text.encode(), gzip.compress(text.encode())):
        done = subprocess.run(command, input=packed, capture_output=True, timeout=120, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    command = [sys.executable, "-m", "ocdl", "predict", str(model), "-"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.count(b"\n"), done.stderr) == (0, 121, b"")
    broken = text.replace(",Genf,", ",Genf,,", 1)
    done = subprocess.run(command, input=broken.encode(), capture_output=True, timeout=120, check=False)
    assert done.stderr.startswith(b"ocdl: error: stdin: row ")


def test_reading_a_large_file_shows_progress(
    write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write("a,b\n" + "1,2\n" * 1000)
    peek(path).read(progress=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(csv_file, "LARGE", 1000)
    peek(path).read(progress=True)
    assert "reading " in capsys.readouterr().err
    peek(path).read()
    assert capsys.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.alone
def test_reading_costs_little_more_than_pandas(tmp_path: Path) -> None:
    """100 MB in at most three times pandas' work and twice its memory, also where commas stand in quotation marks.

    Work is processor time: pandas 3.1 reads on two threads.
    """
    path = tmp_path / "large.csv"
    numbers = np.random.default_rng(0).normal(size=(50_000, 10))
    numbers[::7, 3] = np.nan
    block = pd.DataFrame(numbers).assign(place=["Bern, BE", "Genf"] * 25_000, label=["red", "blue"] * 25_000)
    for i in range(10):
        block.to_csv(path, mode="a", header=i == 0, index=False)
    assert path.stat().st_size > 90e6
    code = """
import resource, time, pandas as pd
from ocdl.tables.reading import peek
start = time.process_time()
{}
print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    ours = code.format(f"peek({str(path)!r}).read(labels=[11])")
    theirs = code.format(f"pd.read_csv({str(path)!r})")
    (time_ours, memory_ours), (time_theirs, memory_theirs) = (
        np.min([[float(word) for word in run_python(program).split()] for _ in range(3)], axis=0)
        for program in (ours, theirs)
    )
    assert time_ours < 3 * time_theirs
    assert memory_ours < 2 * memory_theirs


# ---- hostile files ----


def assert_error(result: tuple[int, str, str], message: str) -> None:
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.startswith("ocdl: error: ")
    assert err.count("\n") == 1
    assert message in err


GOOD = b"a,b,y\n" + b"1,2,p\n3,4,q\n" * 6
HOSTILE = {
    "NUL far away": (GOOD + b"1,2,p\n" * 100_000 + b"1,\0,p\n", "row 100014, column 2 has a NUL byte"),
    "Latin-1": (GOOD + b"1,\xe9,p\n", "row 14 has bytes that are not UTF-8; iconv"),
    "Latin-1 far away": (
        GOOD + b"1,2,p\n" * 100_000 + b"1,\xe9,p\n",
        "row 100014, column 2 has bytes that are not",
    ),
    "UTF-16": (GOOD.decode().encode("utf-16"), "it is not text in UTF-8"),
    "a line of 10 MB": (GOOD + b"1," + b"9" * 10**7 + b",p\n", "row 14, column 2 ('b')"),
    "a first line of 10 MB": (b"a" * 10**7 + b",b\n1,2\n", "row 1 is longer than 4194304 bytes"),
    "a million columns": (b",".join(b"%x" % i for i in range(10**6)) + b"\n", "row 1 is longer than"),
    "a million short columns": (b"0," * 10**6 + b"1\n" + b"1," * 10**6 + b"1\n", "has 1000001 columns; at most 20000"),
    "a short row": (GOOD + b"1,p\n", "row 14 has 2 columns, but row 1 has 3"),
    "a short row far away": (GOOD + b"1,2,p\n" * 100_000 + b"1,p\n", "row 100014 has 2 columns, but row 1 has 3"),
    "a long row": (GOOD + b"1,2,3,p\n", "row 14 has 4 columns, but row 1 has 3"),
    "a short row with quotes": (GOOD + b'"1","p, q"\n', "row 14 has 2 columns, but row 1 has 3"),
    "an open quote": (GOOD + b'1,"2,p\n1,2,p\n', "row 14 has a quotation mark that is never closed"),
    "an open quote far away": (GOOD + b"1,2,p\n" * 100_000 + b'1,"2,p\n', "quotation mark that is never closed"),
    "a name twice": (b"a,a,y\n1,2,p\n", "row 1: the header has 'a' twice"),
    "an empty file": (b"", "it is empty"),
    "a header only": (b"a,b,y\n", "it has a header, but no samples"),
    "a mark only": (b"\xef\xbb\xbf", "it is empty"),
    "separators only": (b",,,\n" * 50, "it is empty"),
    "one column": (b"a\nb\n", "row 1 has one column"),
    "1e400": (GOOD + b"1,1e400,p\n", "row 14, column 2 ('b'): '1e400' is not a finite number"),
    "inf": (GOOD + b"1,-inf,p\n", "row 14, column 2 ('b'): '-inf' is not a finite number"),
    "one class": (b"a,b,y\n" + b"1,2,p\n" * 9, "column 3 ('y') has one class, 'p'"),
    "no target": (b"a,b,y\n" + b"1,2,\n" * 9, "column 3 ('y') is the target, but it has no values"),
    "half of a gzip file": (gzip.compress(os.urandom(10**5))[:5000], "it is damaged"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "NUL byte"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(name: str, write: Write, run: Run, tmp_path: Path) -> None:
    content, message = HOSTILE[name]
    data = write(content)
    start = time.process_time()
    result = run("train", "--data", data, "--layers", 2, "--max-iter", 3, "--out", tmp_path / "m.ocdl")
    assert time.process_time() - start < 5
    assert_error(result, message)
    assert os.listdir(tmp_path) == ["table.csv"]


MARKS = (b",", b";", b"\t", b"|", b"\n", b"\n", b"\r", b'"', b"#", b" ", b"\xef\xbb\xbf", b"\xe9", b"\0")
CELLS = (b"1", b"2.5", b"1,5", b"-3e5", b"x y", b"", b"NA", b"2020-01-01", b"31.12.2020", b"true", b"inf", b"1e999")


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(MARKS + 2 * CELLS), max_size=40).map(b"".join))
def test_any_bytes_give_a_table_or_one_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """And what a table becomes when it is learned is what it becomes later."""
    path = tmp_path_factory.getbasetemp() / "fuzz.csv"
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        try:
            table = peek(str(path)).read()
            encoding, values = fit_encoding(table, list(table.data.columns), None)
        except TableError:
            return
        np.testing.assert_array_equal(encoding.transform(table), values)
        assert to_spec(from_spec(to_spec(encoding), to_arrays(encoding))) == to_spec(encoding)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,c,d,m\n1,red,2020-01-01,true\nx,red,2020-01-01,true\n", "row 3, column 1 ('a'): 'x' is not a number"),
        ("a,c,d,m\n1,red,soon,true\n", "row 2, column 3 ('d'): 'soon' is not a date"),
        ("a,c,d,m\n1,red,2020-01-01,maybe\n", "row 2, column 4 ('m'): 'maybe' is neither true nor false"),
        ("a,c,d,m\n\n\n1e400,red,2020-01-01,true\n", "row 4, column 1 ('a'): '1e400' is not a finite number"),
        ("a,c\n1,red\n", "the header lacks columns d, m; the model was trained on a, c, d, m"),
        ("1,red\n", "row 1 has 2 columns, but the model takes 4 features"),
    ],
)
def test_new_tables_that_do_not_fit(text: str, message: str, write: Write, run: Run, tmp_path: Path) -> None:
    rows = [f"{i},{'red' if i % 3 else 'blue'},2020-01-{i + 10},{i % 2 == 0},{'pq'[i % 2]}" for i in range(1, 20)]
    model = tmp_path / "m.ocdl"
    data = write("\n".join(["a,c,d,m,y", *rows]))
    assert run("train", "--data", data, *QUICK, "--quiet", "--out", model) == (0, "", "")
    assert_error(run("predict", model, write(text)), message)


def test_measurements_as_labels_are_refused_with_a_way_out(write: Write, run: Run, tmp_path: Path) -> None:
    prices = write("a,price\n" + "".join(f"{i},{10 + i % 4}.5\n" for i in range(20)))
    assert_error(
        run("train", "--data", prices, "--out", tmp_path / "m"),
        "column 2 ('price') must have whole numbers or text as labels, it has 10.5; "
        "use --regression to learn measurements",
    )
    whole = write("a,price\n" + "".join(f"{i},{i}.0\n" for i in range(20)))
    assert_error(run("train", "--data", whole, "--out", tmp_path / "m"), "are they measurements?")
    versions = write("a,version\n" + "".join(f"{i},{'1.5' if i % 2 else 'beta'}\n" for i in range(20)))
    assert run("train", "--data", versions, *QUICK, "--quiet", "--out", tmp_path / "m")[0] == 0


def test_a_table_without_usable_columns_is_an_error_with_reasons(write: Write, run: Run, tmp_path: Path) -> None:
    data = write("id,b,y\n" + "".join(f"u{i},,{'pq'[i % 2]}\n" for i in range(80)))
    assert_error(
        run("train", "--data", data, "--out", tmp_path / "m"),
        "no column to learn from; column 1 ('id') is left out: nearly every row has a different text; "
        "column 2 ('b') is left out: no values",
    )


def test_unseen_texts_give_one_warning(write: Write, run: Run, tmp_path: Path) -> None:
    model = tmp_path / "m.ocdl"
    data = write("c,d,y\n" + "red,01,p\nblue,2A,q\n" * 5)
    assert run("train", "--data", data, *QUICK, "--quiet", "--out", model) == (0, "", "")
    code, out, err = run("predict", model, write("c,d\nmauve,01\nred,02\nteal,01\n,\n"))
    assert (code, out.count("\n")) == (0, 5)
    assert err.count("\n") == 1
    assert "was not trained with 'mauve', 'teal' in column 1 ('c'), '02' in column 2 ('d')" in err
    known = ocdl.load(model)
    with pytest.warns(TableWarning, match="was not trained with 'mauve' in column 'c'"):
        strange = known.inputs(pd.DataFrame({"c": ["mauve", None], "d": ["01", None]}))
    assert strange.tolist() == [[0, 0, 1, 0], [0, 0, 0, 0]]
    assert run("predict", model, write("d,c\n01,red\n"))[2] == ""  # 01 is no number here: it was learned as text


# ---- what columns become ----

SEVERAL = [f"text {i:02d}" for i in range(MAX_VALUES)]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([1, 2, 3], Feature("c", 0)),
        ([1.5, None, 3], Feature("c", 0)),
        ([True, False, True], Feature("c", 0, "boolean")),
        ([True, None, False], Feature("c", 0, "boolean")),
        (["true", "FALSE", None], Feature("c", 0, "boolean")),
        (["x", "y", None, "x "], Feature("c", 0, "text", values=("x", "y"))),
        (["2020-01-01", "2021-12-31 12:00"], Feature("c", 0, "date", format="ISO8601")),
        (["1.2.2020", "31.12.2021"], Feature("c", 0, "date", format="%d.%m.%Y")),
        (["12/31/2021", "1/2/2020"], Feature("c", 0, "date", format="%m/%d/%Y")),
        (["31/12/2021", "1/2/2020"], Feature("c", 0, "date", format="%d/%m/%Y")),
        (["31/12/2021 14:30", "1/2/2020 9:05"], Feature("c", 0, "date", format="%d/%m/%Y %H:%M")),
        (["12/31/2021 2:30 PM", "1/2/2020 9:05 AM"], Feature("c", 0, "date", format="%m/%d/%Y %I:%M %p")),
        (["1,234", "-12,345,678.5", "999", None], Feature("c", 0)),
        (pd.to_datetime(["2020-01-01", None]), Feature("c", 0, "date", format="ISO8601")),
        (pd.Categorical(["b", "a", None]), Feature("c", 0, "text", values=("a", "b"))),
        (pd.Categorical([3, 1]), Feature("c", 0)),
        (pd.array([1, None], dtype="Int64"), Feature("c", 0)),
        (["1", "unknown", *map(str, range(20))], Feature("c", 0, missing=("unknown",))),
        (["1", "two"], Feature("c", 0, "text", values=("1", "two"))),
        ([None, None], "no values"),
        (["", "NA"], "no values"),
        ([1j, 2j], "neither numbers nor texts nor dates"),
        ([[1], [2]], "neither numbers nor texts nor dates"),
        (SEVERAL, Feature("c", 0, "text", values=tuple(SEVERAL))),
        ([*SEVERAL, "one more"], "nearly every row has a different text"),
        (2 * [*SEVERAL, "one more"], Feature("c", 0, "text")),
    ],
)  # fmt: skip
def test_the_kinds_of_columns_are_inferred(cells: Any, expected: Feature | str) -> None:
    assert infer_feature(to_frame(pd.DataFrame({"c": cells})), "c") == expected


def test_numbers_are_standardised_as_scikit_learn_does_it() -> None:
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = np.random.default_rng(0).normal(3, 5, size=(50, 4))
    rows[::7, 1] = np.nan
    rows[:, 3] = 7  # constant
    encoding, values = learned(pd.DataFrame(rows, columns=list("abcd")))
    expected = make_pipeline(SimpleImputer(strategy="median"), StandardScaler()).fit_transform(rows)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(encoding.transform(to_frame(pd.DataFrame(rows, columns=list("abcd")))), expected)
    unscaled, values = learned(pd.DataFrame(rows[:, [0]], columns=["a"]), scaling=False)
    np.testing.assert_array_equal(values, rows[:, [0]])
    assert unscaled.scaler is None


def test_dates_become_days_and_texts_zeros_and_ones() -> None:
    frame = pd.DataFrame({"d": ["1970-01-01", "1970-01-03", None], "t": ["b", None, "a"], "b": [True, True, None]})
    encoding, values = learned(frame, scaling=False)
    assert values.tolist() == [[0, 1, 0, 1], [2, 1, 0, 0], [1, 1, 1, 0]]
    assert encoding.n_inputs == 4
    with_zone = pd.DataFrame({"d": pd.to_datetime(["1970-01-02"], utc=True), "t": ["a"], "b": [0]})
    assert encoding.transform(to_frame(with_zone)).tolist() == [[1, 0, 1, 0]]


def test_only_training_rows_are_measured() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 1000.0]})
    encoding, _ = fit_encoding(to_frame(frame).take(np.arange(3)), ["x"], None)
    assert (encoding.scaler.mean_, encoding.imputer.statistics_) == (2, 2)


def test_an_index_without_a_name_is_left_out(write: Write) -> None:
    for text in (",a\n7,5\n9,2\n", "Unnamed: 0,a\n0,5\n1,2\n", '"",a\nx,5\ny,2\n'):
        table = peek(write(text)).read()
        with pytest.warns(TableWarning, match="column 1 is left out: an index without a name"):
            encoding, _ = fit_encoding(table, list(table.data.columns), None)
        assert encoding.feature_names == ["a"]
    table = peek(write("".join(f"{i},{i % 3}\n" for i in range(20)))).read()  # which has no names at all
    with pytest.warns(TableWarning, match="index without a name"):
        encoding, _ = fit_encoding(table, list(table.data.columns), None)
    assert [feature.position for feature in encoding.features] == [1]
    table = peek(write("id,a\n1,4\n2,9\n3,5\n")).read()
    with pytest.warns(TableWarning, match=r"column 1 \('id'\) counts the rows; leave it out if that means nothing"):
        fit_encoding(table, ["id", "a"], None)


def test_texts_among_numbers_are_missing_cells_later_too(write: Write, run: Run, tmp_path: Path) -> None:
    rows = [f"{i},{'pq'[i % 2]}" for i in (*range(30), *range(7))]
    data, model = write("\n".join(["a,y", *rows, "unknown,p", "unknown,q"])), tmp_path / "m.ocdl"
    code, _, err = run("train", "--data", data, *QUICK, "--out", model)
    assert code == 0
    assert "column 1 ('a') has numbers, and texts that count as missing: 'unknown'" in err
    assert run("predict", model, write("a\nunknown\n3\n"))[0] == 0
    assert_error(run("predict", model, write("a\nunheard of\n")), "row 2, column 1 ('a'): 'unheard of' is not a number")


@pytest.mark.parametrize("decimal", [".", ","])
def test_decimal_marks_of_numbers_among_texts(decimal: str, write: Write) -> None:
    numbers = [f"{i}{decimal}5" for i in range(20)]
    table = peek(write("\n".join(["a;b", *(f"{number};x" for number in numbers), "none at all;y"]))).read()
    with pytest.warns(TableWarning, match="'none at all'"):
        _, values = fit_encoding(table, ["a"], None, options=EncodingOptions(scaling=False))
    assert values[:20, 0].tolist() == [i + 0.5 for i in range(20)]


# ---- records and models ----


def encodings() -> list[Encoding]:
    frame = patients().drop(columns="name")
    frame["since"] = frame["since"].dt.strftime("%d.%m.%Y")
    frame["odd"] = [*map(str, range(119)), "unknown"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = learned(frame, "outcome")[0]
    array = fit_encoding(to_frame(np.arange(12.0).reshape(4, 3)), ["column 1", "column 3"], "column 2")[0]
    return [found, array, plain_encoding(3), plain_encoding(2, ["a", "b"])]


@pytest.mark.parametrize("number", range(4))
def test_records_are_json_and_come_back(number: int) -> None:
    encoding = encodings()[number]
    record = json.loads(json.dumps(to_spec(encoding), allow_nan=False))
    arrays = to_arrays(encoding)
    again = from_spec(record, arrays)
    assert to_spec(again) == record
    assert again.features == encoding.features
    for field in record:
        for wrong in ({key: record[key] for key in record if key != field}, record | {field: object()}):
            with pytest.raises(ValueError, match=r"table|target|kind|format"):
                from_spec(wrong, arrays)


@pytest.mark.parametrize("number", [10**900, -(10**900), True, "1", None, np.inf])
@pytest.mark.parametrize("name", ["mean", "scale"])
def test_records_hold_numbers_that_are_finite(number: Any, name: str) -> None:
    stored = json.dumps(to_spec(learned(patients()[["age"]])[0]))
    record = json.loads(stored)
    record[name] = [number]
    with pytest.raises(ValueError, match=f"the table's {name} must be finite numbers"):
        from_spec(record)


def test_the_target_and_positions_are_recorded() -> None:
    encoding = encodings()[1]
    assert (encoding.width, encoding.named, encoding.target) == (3, False, Target(None, 1))
    assert [feature.position for feature in encoding.features] == [0, 2]


def test_tables_without_names_are_taken_in_order() -> None:
    encoding = encodings()[1]  # of columns 1 and 3, the target between them
    whole = encoding.transform(to_frame(np.arange(6.0).reshape(2, 3)))
    np.testing.assert_array_equal(encoding.transform(to_frame(np.array([[0.0, 2], [3, 5]]))), whole)
    with pytest.raises(TableError, match="the table has 4 columns, but the model takes 2 features"):
        encoding.transform(to_frame(np.zeros((1, 4))))


@pytest.fixture(scope="module")
def model() -> TableModel:
    frame = patients().dropna(subset="outcome")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoding, values = learned(frame, "outcome")
        return TableModel(ocdl.ODEClassifier(n_layers=2, random_state=0).fit(values, frame["outcome"]), encoding)


def test_models_take_data_frames(model: TableModel, tmp_path: Path) -> None:
    frame = patients().drop(columns="outcome")
    expected = model.predict_proba(frame)
    model.save(tmp_path / "m.ocdl")
    again = ocdl.load(tmp_path / "m.ocdl")
    assert to_spec(again.encoding) == to_spec(model.encoding)
    assert repr(again) == "<ODEClassifier for age, city, since, member, income>"
    cells = {name: [None if pd.isna(cell) else cell for cell in frame[name].tolist()] for name in frame.columns}
    for other in (frame[frame.columns[::-1]].assign(more=1), frame.set_index("name"), pl.DataFrame(cells)):
        np.testing.assert_array_equal(again.predict_proba(other), expected)
    assert again.predict(frame).tolist() == again.classes_[expected.argmax(axis=1)].tolist()
    with pytest.raises(TableError, match="the header lacks column 'age'; the model was trained on age, city, since"):
        again.predict(frame.drop(columns="age"))
    with pytest.raises(TableError, match="row 1, column 'age': 'old' is not a number"):
        again.predict(frame.astype({"age": object}).assign(age=["3", "old"] * 60))
    with pytest.raises(TableError, match="several columns 'age'"):
        again.predict(pd.concat([frame, frame[["age"]]], axis=1))
    with pytest.raises(ValueError, match="rows and columns"):
        again.predict([1.0, 2.0])
    with pytest.raises(ocdl.ModelFileError, match="holds TableModel, not ODEClassifier"):
        ocdl.load(tmp_path / "m.ocdl", ocdl.ODEClassifier)


@pytest.mark.parametrize("kind", [ocdl.ODEClassifier, ocdl.ODERegressor])
def test_files_of_estimators_are_the_same_kind(kind: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    y = (frame["a"] > 0).astype(int)
    for X in (frame, frame.to_numpy()):
        estimator = kind(n_layers=2, random_state=0).fit(X, y)
        estimator.save(tmp_path / "m.ocdl")
        assert type(ocdl.load(tmp_path / "m.ocdl")) is kind
        loaded = read_table_model(tmp_path / "m.ocdl")
        assert type(loaded.estimator) is kind
        assert loaded.is_classifier == (kind is ocdl.ODEClassifier)
        np.testing.assert_array_equal(loaded.predict(X), estimator.predict(X))
        np.testing.assert_array_equal(loaded.predict(frame.to_numpy()), estimator.predict(X))
        if X is frame:
            np.testing.assert_array_equal(loaded.predict(frame[["b", "a"]]), estimator.predict(X))
        with pytest.raises(TableError, match=r"row 0, column '(a|column 1)': the value is missing"):
            loaded.predict(np.array([[np.nan, 1.0]]))


def test_files_without_an_estimator(tmp_path: Path) -> None:
    net = ocdl.Network(2, 2)
    ocdl.save(tmp_path / "m.ocdl", net, net.init(0))
    with pytest.raises(ocdl.ModelFileError, match="holds a network without classes or targets"):
        read_table_model(tmp_path / "m.ocdl")


def test_errors_name_the_line_of_a_cell(write: Write) -> None:
    path = write('\n\na,b\n\n1,x\n2," y\nz"\n3,w\n')
    table = peek(path).read()
    assert str(table.error(1, "b", "{} is odd")) == f"{path}: row 7, column 2 ('b'): 'y\\nz' is odd"
    assert str(TableFrame(table.data, [0, 1], 2).error(2, "a", "{} is odd")) == "row 2, column 'a': 3 is odd"


def test_every_format_of_dates_is_read() -> None:
    moment = pd.Timestamp("2021-03-14")
    for written in DATES[1:]:
        cells = [moment.strftime(written), (moment + pd.Timedelta(days=10)).strftime(written)]
        feature = infer_feature(to_frame(pd.DataFrame({"c": cells})), "c")
        assert isinstance(feature, Feature)
        assert feature.kind == "date"


DAYS = {"0001-01-01": -719162, "1970-01-02": 1, "9999-12-31": 2932896}  # which stands for "never" in many tables
reads_every_year = pytest.mark.skipif(pd.__version__ < "3", reason="to pandas 2, no text is a date after 2262")


@pytest.mark.parametrize("dtype", ["M8[s]", "M8[ms]", pytest.param("str", marks=reads_every_year)])
def test_dates_of_every_year_are_days(dtype: str) -> None:
    cells = pd.DataFrame({"c": pd.Series(np.array(list(DAYS), dtype))})
    encoding, values = fit_encoding(to_frame(cells), ["c"], None)
    feature = encoding.features[0]
    assert feature.kind == "date"
    np.testing.assert_allclose(encoding.scaler.inverse_transform(values)[:, 0], list(DAYS.values()), atol=1e-6)


@pytest.mark.parametrize("kind", ["text", "number", "date"])
def test_cells_that_hold_several_things_are_refused(kind: str) -> None:
    cells = {"text": ["u", "v", "u"], "number": [1.0, 2.0, 3.0], "date": ["2020-01-01", "2021-01-01", "2022-01-01"]}
    encoding, _ = fit_encoding(to_frame(pd.DataFrame({"c": cells[kind]})), ["c"], None)
    with pytest.raises(TableError, match="column 'c' has neither numbers nor texts nor dates"):
        encoding.transform(to_frame(pd.DataFrame({"c": [[1], [2, 3], {}]})))


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
    "said",
    [
        "{",
        "[]",
        '{"index_columns": ["gone"], "columns": [], "column_indexes": []}',
        '{"index_columns": ["a"], "columns": [{"name": "a", "field_name": "a", "pandas_type": "object", '
        '"numpy_type": "evil", "metadata": null}], "column_indexes": []}',
    ],
)
@pytest.mark.parametrize("name", ["d.parquet", "d*.parquet"])
def test_parquet_with_wrong_metadata_of_pandas(said: str, name: str, run: Run, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow.parquet import write_table

    table = pa.table({"a": [1.0, 2.0] * 10, "y": ["p", "q"] * 10})
    write_table(table.replace_schema_metadata({"pandas": said}), tmp_path / "d.parquet")
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
            kind, place = rng.integers(3), int(rng.integers(max(len(changed), 1)))
            if kind == 0 and changed:
                changed[place] = rng.integers(256)
            elif kind == 1:
                del changed[place : place + int(rng.integers(1, 50))]
            else:
                changed[place:place] = changed[place : place + int(rng.integers(1, 50))]
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
    """Pandas makes an error of its own of an interrupt inside of what it reads from."""
    path = tmp_path / "data.csv"
    path.write_text("a,b\n" + "1,2\n" * 100)

    def pressed(blocks: csv_file._Blocks, size: int = -1) -> bytes:
        signal.raise_signal(signal.SIGINT)
        return b""

    monkeypatch.setattr(csv_file._Blocks, "read", pressed)
    with pytest.raises(KeyboardInterrupt):
        reraise_swallowed_interrupts(peek(str(path)).read)()


class PressedMark(str):
    """A mark of a missing cell: Ctrl-C is pressed while pandas asks whether it is a whole number."""

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
