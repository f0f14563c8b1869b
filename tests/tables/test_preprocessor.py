"""`TablePreprocessor`: what columns of numbers, categories, texts and dates become in front of any estimator."""

from __future__ import annotations

import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

import ocdl
from ocdl.tables.categories import TargetMeans, looks_like_codes
from ocdl.tables.dialect import parse_number
from ocdl.tables.encoding import fit_encoding
from ocdl.tables.frame import TableWarning
from ocdl.tables.model import TableModel, to_frame
from ocdl.tables.spec import from_spec, to_arrays, to_spec

N = 600


def messy(seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Prices, percentages, codes, a text of 90 values, dates with times, and missing numbers; y depends on two."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "price": [f"${x:,.2f}" for x in rng.uniform(1, 9999, N)],
            "discount": [f"{x}%" for x in rng.integers(0, 100, N)],
            "zip": 1000 + 37 * rng.integers(0, 20, N),
            "city": [f"city {i}" for i in rng.integers(0, 90, N)],
            "when": pd.date_range("2020-01-01", periods=N, freq="7h").strftime("%d.%m.%Y %H:%M"),
            "size": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)),
            "colour": rng.choice(["red", "green", None], N),
        }
    )
    by_city, by_zip = np.random.default_rng(7).normal(size=90), np.random.default_rng(8).normal(size=20)
    y = by_city[frame["city"].str[5:].astype(int)] + by_zip[(frame["zip"] - 1000) // 37] + 0.1 * rng.normal(size=N)
    return frame, y


@pytest.mark.filterwarnings("ignore:column 'zip'")
def test_columns_become_numbers_with_names() -> None:
    frame, y = messy()
    preprocessor = ocdl.TablePreprocessor(scaling=False, random_state=0)
    values = preprocessor.fit_transform(frame, y)
    names = preprocessor.get_feature_names_out().tolist()
    assert names == [
        *("price", "discount", "zip", "city_mean"),
        *("when", "when_week_cos", "when_week_sin", "when_day_cos", "when_day_sin"),
        *("size", "size_missing", "colour_green", "colour_red"),
    ]
    columns = dict(zip(names, values.T, strict=True))
    np.testing.assert_array_equal(columns["price"], frame["price"].str.strip("$").str.replace(",", "").astype(float))
    np.testing.assert_allclose(columns["discount"], frame["discount"].str[:-1].astype(float) / 100, rtol=1e-15)
    np.testing.assert_array_equal(columns["size_missing"], frame["size"].isna())
    np.testing.assert_array_equal(columns["colour_red"], frame["colour"] == "red")
    days = (pd.to_datetime(frame["when"], format="%d.%m.%Y %H:%M") - pd.Timestamp(0)) / pd.Timedelta(days=1)
    np.testing.assert_allclose(columns["when"], days)
    np.testing.assert_allclose(columns["when_day_sin"], np.sin(2 * np.pi * days), atol=1e-9)
    assert preprocessor.suggested_categorical_ == ["zip"]
    assert preprocessor.n_features_in_ == 7


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_target_means_are_those_of_scikit_learn_and_cross_fitted(classes: int) -> None:
    frame, y = messy()
    kind = {0: "continuous", 2: "binary", 3: "multiclass"}[classes]
    if classes:
        y = np.digitize(y, np.quantile(y, np.linspace(0, 1, classes + 1)[1:-1]))
    cells = frame[["city"]].to_numpy(object)
    codes, texts = pd.factorize(frame["city"])
    means, rows = TargetMeans.fit(codes, texts, y, kind, 0)
    expected = TargetEncoder(target_type=kind).fit(cells, y).transform(cells)
    np.testing.assert_allclose(means.transform(codes, list(texts)), expected, rtol=1e-12)
    assert rows.shape == expected.shape
    np.testing.assert_allclose(means.transform(np.zeros(1, int), ["nowhere"])[0], means.means[-1])
    shuffled = np.random.default_rng(1).permutation(y)
    leaky, honest = TargetMeans.fit(codes, texts, shuffled, kind, 0)
    target = (shuffled == shuffled.max()) if classes else shuffled
    assert np.corrcoef(leaky.transform(codes, list(texts))[:, -1], target)[0, 1] > 0.25
    assert np.corrcoef(honest[:, -1], target)[0, 1] < 0.1


def test_a_text_of_many_values_predicts_instead_of_being_dropped() -> None:
    frame, y = messy()
    score = cross_val_score(make_pipeline(ocdl.TablePreprocessor(random_state=0), Ridge()), frame[["city"]], y).mean()
    assert score > 0.2  # the city explains half of the variance, at about 5 rows for each
    with pytest.warns(TableWarning, match="'city' is left out: more than 50 different texts, which need a target"):
        assert ocdl.TablePreprocessor().fit(frame[["city", "size"]]).transform(frame).shape == (N, 2)


def test_codes_can_be_declared_by_name_or_number() -> None:
    frame, y = messy()
    for X, categorical in ((frame[["zip"]], ["zip"]), (frame[["zip"]].to_numpy(), [0])):
        preprocessor = ocdl.TablePreprocessor(categorical=categorical).fit(X, y)
        assert preprocessor.transform(X).shape == (N, 20)
        assert preprocessor.suggested_categorical_ == []
    declared = ocdl.TablePreprocessor(categorical=["zip"]).fit(frame[["zip"]], y)
    texts = frame[["zip"]].astype(float).astype(str)  # "1037.0" is the same code
    np.testing.assert_array_equal(declared.transform(texts), declared.transform(frame[["zip"]]))
    with pytest.raises(ValueError, match="no column is named 'zap'; there are zip"):
        ocdl.TablePreprocessor(categorical=["zap"]).fit(frame[["zip"]], y)
    with pytest.raises(ValueError, match="categorical has column 3, but X has columns 0 to 0"):
        ocdl.TablePreprocessor(categorical=[3]).fit(frame[["zip"]], y)


def test_amounts_do_not_look_like_codes() -> None:
    rng = np.random.default_rng(0)
    false_alarms = 0
    for _ in range(50):
        x = rng.integers(0, 30, 2000).astype(float)
        for mean in (0 * x, x, (x - 10) ** 2 / 30, 10 * np.tanh((x - 15) / 10)):
            false_alarms += looks_like_codes(x, mean + rng.normal(size=2000), "continuous")
    assert false_alarms == 0
    effects = rng.normal(size=30)
    assert looks_like_codes(x, effects[x.astype(int)] + rng.normal(size=2000), "continuous")
    assert looks_like_codes(x, effects[x.astype(int)] > 0, "binary")
    assert not looks_like_codes(x + 0.5, effects[x.astype(int)], "continuous")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("$3,366.33", 3366.33), ("-$5", -5), ("$-5", -5), ("€ 5", 5), ("5 €", 5), ("32%", 0.32), ("-1.5 %", -0.015),
        ("1e3", 1000), ("-inf", np.inf), ("$", np.nan), ("%", np.nan), ("+-5", np.nan), ("$x", np.nan), ("5 5", np.nan),
    ],
)  # fmt: skip
def test_money_and_percentages_are_numbers(text: str, number: float) -> None:
    np.testing.assert_allclose(parse_number(text, "."), number)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_categories": 0}, "max_categories must be at least 1, got 0"),
        ({"target_type": "classes"}, "target_type"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ocdl.TablePreprocessor(**options).fit(pd.DataFrame({"x": [1.0, 2.0]}), [0, 1])


def test_rows_and_targets_must_fit() -> None:
    with pytest.raises(ValueError, match="X has 2 rows, but y has 3 entries"):
        ocdl.TablePreprocessor().fit(pd.DataFrame({"x": [1.0, 2.0]}), [0, 1, 1])


@pytest.mark.filterwarnings("ignore:column 'zip'")
def test_the_preprocessor_works_in_pipelines_and_can_be_cloned() -> None:
    frame, y = messy()
    model = make_pipeline(
        ocdl.TablePreprocessor(categorical=["zip"], max_categories=5, random_state=0),
        ocdl.ODEClassifier(n_layers=3, random_state=0),
    )
    assert clone(model).get_params()["tablepreprocessor__max_categories"] == 5
    assert cross_val_score(model, frame, y > 0, cv=StratifiedKFold(3)).mean() > 0.6
    output = ocdl.TablePreprocessor(random_state=0).set_output(transform="pandas").fit(frame, y).transform(frame)
    assert "city_mean" in output.columns


def encoded(frame: pd.DataFrame, y: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_encoding(to_frame(frame), list(frame.columns), None, y, target_type="continuous")[0]


def test_categories_are_stored_as_arrays(tmp_path: Path) -> None:
    frame, y = messy()
    frame["city"] = frame["city"].str.replace("city", "Żółć", regex=False)
    encoding = encoded(frame, y)
    values = encoding.transform(to_frame(frame))
    model = TableModel(ocdl.ODERegressor(max_iter=5, tol=10, random_state=0).fit(values, y), encoding)
    model.save(tmp_path / "m.ocdl")
    again = ocdl.load(tmp_path / "m.ocdl")
    np.testing.assert_array_equal(again.inputs(frame), values)
    assert "Ż" not in (tmp_path / "m.ocdl").read_bytes()[:20_000].decode("latin1")


@pytest.mark.parametrize("name", ["letters", "lengths", "means"])
def test_arrays_that_do_not_fit_are_refused(name: str) -> None:
    encoding = encoded(*messy())
    spec, arrays = to_spec(encoding), to_arrays(encoding)
    for wrong in (arrays[name][:-1], np.append(arrays[name], arrays[name][:2]), arrays[name].astype(np.float32), -7):
        with pytest.raises(ValueError, match="the table"):
            from_spec(spec, arrays | {name: np.asarray(wrong)})
    with pytest.raises(ValueError, match="lacks"):
        from_spec(spec, {key: array for key, array in arrays.items() if key != name})


def test_many_categories_cost_no_more_memory_than_the_file() -> None:
    n = 50_000
    codes = np.repeat(np.arange(n), 2)
    means, _ = TargetMeans.fit(codes, [str(i) for i in range(n)], np.arange(2.0 * n), "continuous", 0)
    encoding = encoded(*messy())
    index = [feature.name for feature in encoding.features].index("city")
    assert encoding.features[index].n_means == 1
    encoding.means["city"] = means  # type: ignore[index]
    spec, arrays = to_spec(encoding), to_arrays(encoding)
    size = sum(array.nbytes for array in arrays.values())
    tracemalloc.start()
    try:
        again = from_spec(spec, arrays)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert again.means["city"].texts[0] in ("", "0")
    assert peak < size + 1e6
