"""`ocdl dynamics` and `ocdl simulate`: from a table of series to a system, and to its trajectories."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import Run, assert_one_line_error
from oscillators import make_series, make_table, oscillate

import ocdl
from ocdl.cli import dynamics as command
from ocdl.cli import main
from ocdl.cli._series import SeriesTable

POLYNOMIAL = ("--field", "polynomial", "--degree", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table of six series, a model of them, and an ensemble."""
    path = tmp_path_factory.mktemp("dynamics")
    make_table(6).to_csv(path / "data.csv", index=False)
    options = ["dynamics", str(path / "data.csv"), "--time", "t", "--series", "name", *POLYNOMIAL, "--test-size", "0"]
    assert main([*options, "--quiet", "--out", str(path / "model.ocdl")]) == 0
    assert main([*options, "--quiet", "--ensemble", "3", "--out", str(path / "ensemble.ocdl")]) == 0
    t = np.linspace(0, 4, 41)
    x = np.sin(2 * t)
    y = (2 * np.exp(-t) - 2 * np.cos(2 * t) + np.sin(2 * t)) / 5  # y' = x - y
    pd.DataFrame({"time": t, "y": y, "x": x}).to_csv(path / "driven.csv", index=False)
    driven = ["dynamics", str(path / "driven.csv"), "--time", "time", "--inputs", "x", *POLYNOMIAL, "--test-size", "0"]
    assert main([*driven, "--quiet", "--out", str(path / "driven.ocdl")]) == 0
    return path


def read(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text), dtype={"series": str})


# ---- dynamics ----


def test_the_report_has_the_equations_and_the_score_of_series_held_out(run: Run, folder: Path, tmp_path: Path) -> None:
    argv = ("dynamics", folder / "data.csv", "--time", "t", "--series", "name", *POLYNOMIAL)
    code, out, err = run(*argv, "--out", tmp_path / "m.ocdl")
    assert (code, err) == (0, "")
    for line in ("6 series, 120 rows", "a, b", "test R^2", "1 series held out, 20 rows", "equations", "  a' = "):
        assert line in out
    code, out, err = run(*argv, "--json", "--out", tmp_path / "m.ocdl")
    assert (code, err) == (0, "")
    report = json.loads(out)
    model = ocdl.load(tmp_path / "m.ocdl", ocdl.Dynamics)
    assert report["states"] == model.state_names_ == ["a", "b"]
    assert report["equations"] == model.equations()
    assert report["noise"] == dict(zip("ab", model.noise_.tolist(), strict=True))
    assert (report["series"], report["rows"], report["test_series"], report["test_rows"]) == (6, 120, 1, 20)
    assert report["test_r2"] > 0.99


def test_the_saved_model_is_that_of_all_rows(folder: Path) -> None:
    """The same as Python fits, whose rows are sorted: the file of the command has them in a random order."""
    model = ocdl.load(folder / "model.ocdl", ocdl.Dynamics)
    table = pd.read_csv(folder / "data.csv")
    groups = [rows.sort_values("t") for _, rows in table.groupby("name", sort=False)]
    same = ocdl.Dynamics(field="polynomial", degree=1, random_state=0)
    same.fit([rows[["a", "b"]] for rows in groups], [rows["t"].to_numpy() for rows in groups])
    assert np.array_equal(model.coefficients_, same.coefficients_)


def test_of_few_series_the_ends_are_held_out(run: Run, tmp_path: Path) -> None:
    make_table(2, 30).to_csv(tmp_path / "few.csv", index=False)
    argv = ("dynamics", tmp_path / "few.csv", "--time", "t", "--series", "name", *POLYNOMIAL, "--json")
    code, out, _ = run(*argv, "--test-size", "0.3", "--out", tmp_path / "m.ocdl")
    report = json.loads(out)
    assert (code, report["test_series"], report["test_rows"]) == (0, 0, 18)
    assert report["test_r2"] > 0.95


def test_the_forecast_score_is_that_of_the_ends(folder: Path) -> None:
    model = ocdl.load(folder / "model.ocdl", ocdl.Dynamics)
    X, times = make_series(2)
    names = ["a", "b"]
    table = SeriesTable(["1", "2"], times, [pd.DataFrame(x, columns=names) for x in X], [])
    beginnings = table.cut([slice(8), slice(12)])
    ends = [model.simulate(model.initial_state(x[:n], t[:n]), t)[n:] for x, t, n in zip(X, times, (8, 12), strict=True)]
    forecast, actual = np.concatenate(ends), np.concatenate([X[0][8:], X[1][12:]])
    expected = np.mean(1 - ((actual - forecast) ** 2).sum(axis=0) / ((actual - actual.mean(axis=0)) ** 2).sum(axis=0))
    assert command.forecast_score(model, beginnings, table) == pytest.approx(expected, rel=1e-12)


def test_times_may_be_dates_and_states_missing(run: Run, tmp_path: Path) -> None:
    times = np.arange(40) / 10
    values = oscillate(np.array([1.0, 0.0]), times)
    dates = pd.Timestamp("2026-01-01") + pd.to_timedelta(times, unit="D")
    table = pd.DataFrame({"when": dates.astype(str), "a": values[:, 0], "b": values[:, 1]})
    table.loc[[3, 7], "a"] = np.nan
    table.to_csv(tmp_path / "dates.csv", index=False)
    argv = ("dynamics", tmp_path / "dates.csv", "--time", "when", *POLYNOMIAL, "--test-size", "0")
    code, out, err = run(*argv, "--out", tmp_path / "m.ocdl")
    assert (code, err) == (0, "")
    assert "1 series, 40 rows, each over 3.9 days" in out
    np.testing.assert_allclose(
        ocdl.load(tmp_path / "m.ocdl", ocdl.Dynamics).derivative([1.0, 0.0]), [-0.1, -2.0], atol=1e-3
    )


def test_a_step_stands_for_times(run: Run, tmp_path: Path) -> None:
    values = oscillate(np.array([1.0, 0.0]), np.arange(30) / 10)
    pd.DataFrame(values, columns=["a", "b"]).to_csv(tmp_path / "steps.csv", index=False)
    argv = ("dynamics", tmp_path / "steps.csv", "--step", "0.1", *POLYNOMIAL, "--test-size", "0", "--quiet")
    assert run(*argv, "--out", tmp_path / "m.ocdl") == (0, "", "")
    np.testing.assert_allclose(
        ocdl.load(tmp_path / "m.ocdl", ocdl.Dynamics).derivative([0.0, 1.0]), [2.0, -0.1], atol=1e-3
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "--time COLUMN or --step DT is required"),
        (("--time", "t", "--step", "1"), "--time and --step cannot be combined"),
        (("--time", "t"), "is there twice; --series says which series a row belongs to"),
        (("--time", "time"), "no column is named 'time'"),
        (("--time", "name"), "has neither numbers nor dates"),
        (("--time", "t", "--series", "t"), "'t' is named twice"),
        (("--time", "t", "--series", "name", "--states", "a", "a"), "'a' is named twice"),
        (("--step", "1", "--states", "name"), "must have numbers, it has texts"),
        (("--step", "0"), "argument --step: must be a positive number, got '0'"),
        (("--time", "t", "--degree", "2"), "--degree is for --field polynomial"),
        (("--time", "t", "--field", "polynomial", "--width", "3"), "--width is for --field mlp"),
        (("--time", "t", "--sparsity", "-1"), "argument --sparsity"),
        (("--time", "t", "--test-size", "1"), "must be at least 0 and below 1"),
        (("--time", "t", "--field", "cubic"), "invalid choice: 'cubic' (choose from mlp, polynomial)"),
    ],
)
def test_mistakes_of_dynamics(options: tuple[str, ...], message: str, run: Run, folder: Path, tmp_path: Path) -> None:
    result = run("dynamics", folder / "data.csv", *options, "--out", tmp_path / "m.ocdl")
    assert_one_line_error(result, message)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("t,a\n0,1\n1,2\n", ("--time", "t"), "has 2 rows; a series needs 3 at least"),
        ("t,a\n0,1\n,2\n2,3\n3,3\n", ("--time", "t"), "row 3, column 1 ('t'): the time is missing"),
        ("t,a,x\n0,1,1\n1,2,\n2,3,1\n3,4,1\n", ("--time", "t", "--inputs", "x"), "row 3, column 3 ('x'): an input is"),
        ("t,a\n0,p\n1,q\n2,p\n", ("--time", "t"), "there is no column of numbers left to be a state"),
    ],
)
def test_tables_that_are_no_series(text: str, options: tuple[str, ...], message: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text(text)
    result = run("dynamics", tmp_path / "data.csv", *options, "--out", tmp_path / "m.ocdl")
    assert_one_line_error(result, message)


def test_the_model_does_not_replace_the_data(run: Run, folder: Path) -> None:
    data = folder / "data.csv"
    assert_one_line_error(run("dynamics", data, "--time", "t", "--out", data), "would replace a file that is read")


def test_ctrl_c_in_the_evaluation_keeps_the_model(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_evaluate", interrupt)
    argv = ("dynamics", folder / "data.csv", "--time", "t", "--series", "name", *POLYNOMIAL)
    code, out, err = run(*argv, "--out", tmp_path / "m.ocdl")
    assert code == 130
    assert "equations" in out
    assert f"interrupted during the evaluation; {str(tmp_path / 'm.ocdl')!r} has the model of all rows" in err
    assert ocdl.load(tmp_path / "m.ocdl", ocdl.Dynamics).state_names_ == ["a", "b"]


def test_ctrl_c_in_the_fit_writes_nothing(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "fit_series", interrupt)
    argv = ("dynamics", folder / "data.csv", "--time", "t", "--series", "name", "--out", tmp_path / "m.ocdl")
    code, out, err = run(*argv)
    assert (code, out) == (130, "")
    assert err == f"ocdl: interrupted; {str(tmp_path / 'm.ocdl')!r} was not written\n"


# ---- simulate ----


def test_from_a_start(run: Run, folder: Path, tmp_path: Path) -> None:
    code, out, err = run("simulate", folder / "model.ocdl", "--start", "-1e0", "0.5", "--times", "0:2:0.25")
    assert (code, err) == (0, "")
    table = read(out)
    assert list(table.columns) == ["series", "time", "a", "b"]
    times = np.linspace(0, 2, 9)
    states = ocdl.load(folder / "model.ocdl", ocdl.Dynamics).simulate([-1.0, 0.5], times)
    assert np.array_equal(table["time"], times)
    assert np.array_equal(table[["a", "b"]], states)
    path = tmp_path / "out.csv"
    assert run("simulate", folder / "model.ocdl", "--start", -1, 0.5, "--times", "0:2:0.25", "--out", path) == (
        *(0, "", ""),
    )
    assert path.read_text() == out
    columns = json.loads(run("simulate", folder / "model.ocdl", "--start", -1, 0.5, "--times", "0:2:1", "--json")[1])
    assert columns["time"] == [0.0, 1.0, 2.0]


def test_from_the_rows_of_a_table(run: Run, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "starts.csv").write_text("b,comment,a\n0.5,x,1\n-1,y,2\n")
    argv = ("simulate", folder / "model.ocdl", "--starts", tmp_path / "starts.csv", "--times", "0:1:0.5")
    table = read(run(*argv)[1])
    assert table["series"].tolist() == ["1"] * 3 + ["2"] * 3
    assert table[table["time"] == 0][["a", "b"]].to_numpy().tolist() == [[1.0, 0.5], [2.0, -1.0]]


def test_from_the_state_of_series(run: Run, folder: Path) -> None:
    argv = ("simulate", folder / "model.ocdl", "--data", folder / "data.csv", "--time", "t", "--series", "name")
    code, out, err = run(*argv)
    assert (code, err) == (0, "")
    table, data = read(out), pd.read_csv(folder / "data.csv")
    both = table.merge(data, left_on=["series", "time"], right_on=["name", "t"])
    assert len(both) == len(table) == len(data)
    assert np.abs(both[["a_x", "b_x"]].to_numpy() - both[["a_y", "b_y"]].to_numpy()).max() < 0.1  # ten times the noise
    later = read(run(*argv, "--times", "5:6:0.5")[1])
    assert later["time"].unique().tolist() == [5.0, 5.5, 6.0]
    model = ocdl.load(folder / "model.ocdl", ocdl.Dynamics)
    rows = data[data["name"] == later["series"][0]].sort_values("t")
    start = model.initial_state(rows[["a", "b"]], rows["t"].to_numpy())
    first = rows["t"].iloc[0]
    np.testing.assert_allclose(later[["a", "b"]].iloc[:3], model.simulate(start, [first, 5.0, 5.5, 6.0])[1:], atol=1e-5)


def test_inputs_come_from_the_table(run: Run, folder: Path) -> None:
    argv = ("simulate", folder / "driven.ocdl", "--data", folder / "driven.csv", "--time", "time")
    data = pd.read_csv(folder / "driven.csv")
    table = read(run(*argv)[1])
    np.testing.assert_allclose(table["y"], data["y"], atol=1e-3)
    started = read(run(*argv, "--start", "0", "--times", "0:4:0.5")[1])
    np.testing.assert_allclose(started["y"], data["y"][::5], atol=1e-3)  # the inputs are those of all rows


def test_quantiles_of_an_ensemble(run: Run, folder: Path) -> None:
    argv = ("simulate", folder / "ensemble.ocdl", "--start", "1", "0", "--times", "0:1:0.5")
    table = read(run(*argv, "--quantiles", "0.1", "0.9")[1])
    assert list(table.columns) == ["series", "time", "a", "a q0.1", "a q0.9", "b", "b q0.1", "b q0.9"]
    assert (table["a q0.1"] <= table["a"]).all()
    assert (table["a"] <= table["a q0.9"]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "--start, --starts or --data is required"),
        (("--start", "1", "0"), "--times is required, as FIRST:LAST:STEP"),
        (("--start", "1", "0", "--starts", "s.csv", "--times", "0:1:1"), "--start and --starts cannot be combined"),
        (("--starts", "s.csv", "--data", "d.csv"), "--starts and --data cannot be combined"),
        (("--start", "1", "0", "--times", "0:1:1", "--time", "t"), "--time says what a column of --data is"),
        (("--start", "1", "--times", "0:1:1"), "--start takes 2 numbers, one for each state, a, b; got 1"),
        (("--start", "1", "x", "--times", "0:1:1"), "must be numbers, got 'x'"),
        (("--start", "1", "0", "--times", "1:0:1"), "must be FIRST:LAST:STEP"),
        (("--start", "1", "0", "--times", "0:1"), "must be FIRST:LAST:STEP"),
        (("--start", "1", "0", "--times", "0:1e9:0.001"), "must be at most 10000000 times"),
        (("--start", "1", "0", "--times", "0:1:1", "--quantiles", "2"), "must be from 0 to 1, got '2'"),
        (("--start", "1", "0", "--times", "0:1:1", "--quantiles", "0.5"), "--quantiles need an ensemble"),
        (("--starts", "absent.csv", "--times", "0:1:1"), "No such file"),
    ],
)
def test_mistakes_of_simulate(options: tuple[str, ...], message: str, run: Run, folder: Path) -> None:
    assert_one_line_error(run("simulate", folder / "model.ocdl", *options), message)


def test_systems_with_inputs_need_them(run: Run, folder: Path) -> None:
    model, data = folder / "driven.ocdl", folder / "driven.csv"
    assert_one_line_error(
        run("simulate", model, "--start", "1", "--times", "0:1:1"), "the system takes 1 input; --data"
    )
    late = run("simulate", model, "--data", data, "--time", "time", "--times", "0:9:1")
    assert_one_line_error(late, "must lie within those of series '1', 0 to 4")
    early = run("simulate", folder / "model.ocdl", "--data", data, "--time", "time", "--states", "y", "x")
    assert early[0] == 0
    early = run(
        "simulate", folder / "model.ocdl", "--data", data, "--time", "time", "--states", "y", "x", "--times=-1:1:1"
    )
    assert_one_line_error(early, "before series '1' does")


def test_starts_must_fit(run: Run, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "starts.csv"
    for text, message in (("p,q,r\n1,2,3\n", "the system has 2 states, a, b"), ("a,b\n1,\n", "an initial state is")):
        path.write_text(text)
        result = run("simulate", folder / "model.ocdl", "--starts", path, "--times", "0:1:1")
        assert_one_line_error(result, message)


def test_other_models_are_refused(run: Run, tmp_path: Path) -> None:
    net = ocdl.Network(2, 2)
    ocdl.save(tmp_path / "net.ocdl", net, net.init(random_state=0))
    result = run("simulate", tmp_path / "net.ocdl", "--start", "1", "0", "--times", "0:1:1")
    assert_one_line_error(result, "holds SavedNetwork, not Dynamics")


def test_other_commands_refuse_a_system(run: Run, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "copy.ocdl"
    shutil.copy(folder / "model.ocdl", path)
    for argv in (("predict", path, folder / "data.csv"), ("score", path, folder / "data.csv"), ("export", path)):
        assert_one_line_error(run(*argv))


def test_inspect_describes_a_system(run: Run, folder: Path) -> None:
    code, out, err = run("inspect", folder / "driven.ocdl")
    assert (code, err) == (0, "")
    for text in ("dynamical system", "y; inputs: x", "y' = ", "polynomial field"):
        assert text in out
    assert "metadata" not in out
    system = json.loads(run("inspect", folder / "ensemble.ocdl", "--json")[1])["dynamics"]
    model = ocdl.load(folder / "ensemble.ocdl", ocdl.Dynamics)
    assert (system["states"], system["inputs"], system["models"]) == (["a", "b"], [], 3)
    assert (system["equations"], system["noise"]) == (model.equations(), model.noise_.tolist())
