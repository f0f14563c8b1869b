"""Tables in text files: how they are written, and hostile ones."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from example_tables import QUICK, Run, Write, assert_error, patients
from hypothesis import given, settings
from hypothesis import strategies as st
from subprocesses import run_python

import ocdl
from ocdl.tables import csv_file
from ocdl.tables.columns import Feature, infer_feature
from ocdl.tables.encoding import EncodingOptions, fit_encoding
from ocdl.tables.frame import TableError, TableWarning
from ocdl.tables.reading import peek
from ocdl.tables.spec import from_spec, to_arrays, to_spec

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
