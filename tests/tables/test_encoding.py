"""The encoding of columns as numbers, and its storage."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from example_tables import QUICK, Run, Write, assert_error, learned, patients

import ocdl
from ocdl.tables.columns import DATES, MAX_VALUES, Feature, infer_feature
from ocdl.tables.encoding import Encoding, EncodingOptions, Target, fit_encoding, plain_encoding
from ocdl.tables.frame import TableError, TableFrame, TableWarning
from ocdl.tables.model import TableModel, read_table_model, to_frame
from ocdl.tables.reading import peek
from ocdl.tables.spec import from_spec, to_arrays, to_spec

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
        actual = learned(frame, "outcome")[0]
    array = fit_encoding(to_frame(np.arange(12.0).reshape(4, 3)), ["column 1", "column 3"], "column 2")[0]
    return [actual, array, plain_encoding(3), plain_encoding(2, ["a", "b"])]


@pytest.mark.parametrize("number", range(4))
def test_records_are_json_and_come_back(number: int) -> None:
    encoding = encodings()[number]
    stored_spec = json.loads(json.dumps(to_spec(encoding), allow_nan=False))
    arrays = to_arrays(encoding)
    again = from_spec(stored_spec, arrays)
    assert to_spec(again) == stored_spec
    assert again.features == encoding.features
    for field in stored_spec:
        for wrong in ({key: stored_spec[key] for key in stored_spec if key != field}, stored_spec | {field: object()}):
            with pytest.raises(ValueError, match=r"table|target|kind|format"):
                from_spec(wrong, arrays)


@pytest.mark.parametrize("number", [10**900, -(10**900), True, "1", None, np.inf])
@pytest.mark.parametrize("name", ["mean", "scale"])
def test_records_hold_numbers_that_are_finite(number: Any, name: str) -> None:
    stored = json.dumps(to_spec(learned(patients()[["age"]])[0]))
    stored_spec = json.loads(stored)
    stored_spec[name] = [number]
    with pytest.raises(ValueError, match=f"the table's {name} must be finite numbers"):
        from_spec(stored_spec)


def test_the_target_and_positions_are_recorded() -> None:
    encoding = encodings()[1]
    assert (encoding.width, encoding.has_names, encoding.target) == (3, False, Target(None, 1))
    assert [feature.position for feature in encoding.features] == [0, 2]


def test_tables_without_names_are_taken_in_order() -> None:
    encoding = encodings()[1]  # of columns 1 and 3, the target between them
    whole = encoding.transform(to_frame(np.arange(6.0).reshape(2, 3)))
    np.testing.assert_array_equal(encoding.transform(to_frame(np.array([[0.0, 2], [3, 5]]))), whole)
    with pytest.raises(TableError, match="the table has 4 columns, but the model takes 2 features"):
        encoding.transform(to_frame(np.zeros((1, 4))))


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
