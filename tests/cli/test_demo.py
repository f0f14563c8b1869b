"""``ocdl demo``: the table, the page, and nothing half-written."""

from __future__ import annotations

import errno
import json
import os
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from subprocesses import interrupted
from test_page import Reader

import ocdl
from ocdl.cli import demo, main
from ocdl.cli.demo import train_all

Run = Callable[..., tuple[int, str, str]]
NAMES = ["net", "resnet", "odenet", "odenet+simplex"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command; return its exit code, and what it wrote to stdout and to stderr."""

    def call(*argv: object) -> tuple[int, str, str]:
        code = main(["demo", *map(str, argv)])
        written = capsys.readouterr()
        return code, written.out, written.err

    return call


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command make few iterations and the page have no pictures."""
    monkeypatch.setattr(demo, "QUICK_ITERATIONS", 2)
    monkeypatch.setattr("ocdl.cli._demo_page.demo_page", lambda *args: "x" * 5000)


def assert_refused(result: tuple[int, str, str], *fragments: str) -> None:
    code, out, err = result
    assert code == 2
    assert "page:" not in out
    assert err.startswith("ocdl: error: ")
    assert err.count("\n") == 1
    for fragment in fragments:
        assert fragment in err


def test_table_and_page(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "spirals"
    code, out, err = run("--quick", "--seed", 1, "--out", folder)
    assert (code, err) == (0, "")
    header, *rows, empty, place = out.splitlines()
    assert [name.strip() for name in header.split("  ") if name] == list(demo.HEADER)
    assert [row.split()[0] for row in rows] == NAMES
    assert [" 20 of 20 " in row for row in rows] == [False, True, True, False]
    assert (empty, place) == ("", f"page: {folder}/index.html")
    assert os.listdir(folder) == ["index.html"]

    html = (folder / "index.html").read_text(encoding="utf-8")
    reader = Reader(html)  # refuses what is not well formed
    text = " ".join(reader.text)
    for word in (*NAMES, *demo.HEADER):
        assert word in text
    kinds = [(image["src"] or "").partition(";")[0] for image in reader.all("img")]
    assert kinds == ["data:image/png"] * (2 + 2 * len(NAMES) + 3)
    (film,) = (image for image in reader.all("img") if "steps(" in (image.get("style") or ""))
    assert all(len(image["src"] or "") > 5000 and image["alt"] for image in reader.all("img"))
    assert len(html) < 4_000_000
    assert len(film["src"] or "") < 2_000_000
    assert "http:" not in html
    assert "https:" not in html


def test_json_holds_the_results_of_the_trainings(run: Run, tmp_path: Path, brief: None) -> None:
    code, out, err = run("--quick", "--seed", 3, "--json", "--out", tmp_path)
    assert (code, err) == (0, "")
    report = json.loads(out)
    assert (report["seed"], report["iterations"]) == (3, 2)
    assert report["out"] == str(tmp_path / "index.html")
    assert [one["architecture"] for one in report["networks"]] == NAMES
    assert [one["steps_used"] for one in report["networks"]][:3] == [None, 20, 20]
    rng = np.random.default_rng(3)
    data, test = (ocdl.datasets.make_spiral(random_state=rng) for _ in range(2))
    for one in report["networks"]:
        net = ocdl.Network.preset(one["architecture"], 2, 20)
        result = ocdl.train(net, net.init(random_state=3), *data, validation=test, max_iter=2)
        assert one["loss"] == result.history.loss[-1]
        assert one["train_accuracy"] == result.history.accuracy[-1]
        assert one["test_accuracy"] == result.history.val_accuracy[-1]


def test_the_training_is_the_papers() -> None:
    assert ocdl.Backtracking() == ocdl.Backtracking(L0=0.1, rho_up=1.5, rho_down=0.99, max_trials=200)
    assert ocdl.Objective() == ocdl.Objective(loss="squared", reduction="mean")
    assert demo.LAYERS == 20
    assert ocdl.Network.preset("resnet", 2, 20).horizon == 1
    u = ocdl.Network.preset("net", 2, 20).init(random_state=0)
    assert u.norm() == ocdl.Network.preset("net", 2, 20).init(random_state=0, scheme="paper").norm()


# ---- where it cannot be written ----


def test_a_folder_is_looked_at_before_the_computation(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise AssertionError("it computes")

    monkeypatch.setattr(demo, "train_all", fail)
    (tmp_path / "file").write_text("precious")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "taken" / "index.html").mkdir(parents=True)
    assert_refused(run("--out", tmp_path / "file"), "Not a directory", "file'")
    assert_refused(run("--out", tmp_path / "file" / "below"), "There is no such folder")
    assert_refused(run("--out", tmp_path / "absent" / "below"), "There is no such folder", "absent'")
    assert_refused(run("--out", tmp_path / "dangling"), "Not a directory")
    assert_refused(run("--out", tmp_path / "taken"), "Is a directory", "index.html'")
    assert_refused(run("--out", ""), "Not a directory")
    monkeypatch.setattr(os, "access", lambda *args: False)
    assert_refused(run("--out", tmp_path), "Permission denied")
    assert_refused(run("--out", tmp_path / "new"), "Permission denied")
    assert (tmp_path / "file").read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["dangling", "file", "taken"]


@pytest.mark.parametrize("option", [("--seed", "-1"), ("--seed", "1.5"), ("--seed", 2**32), ("--iterations", 3)])
def test_bad_options(option: tuple[object, ...], run: Run, tmp_path: Path) -> None:
    assert_refused(run("--out", tmp_path / "new", *option), str(option[1]))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("function", ["fsync", "replace", "mkdir"])
def test_a_full_disk_leaves_nothing_behind(
    function: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brief: None
) -> None:
    def fail(*args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "index.html").write_text("old")
    monkeypatch.setattr(os, function, fail)
    assert_refused(run("--quick", "--out", tmp_path / "new"), "No space left on device")
    if function != "mkdir":
        assert_refused(run("--quick", "--out", tmp_path / "old"), "No space left on device", "index.html'")
    assert os.listdir(tmp_path) == ["old"]
    assert os.listdir(tmp_path / "old") == ["index.html"]
    assert (tmp_path / "old" / "index.html").read_text() == "old"


def test_a_file_that_may_not_grow(run: Run, tmp_path: Path, brief: None) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        result = run("--quick", "--out", tmp_path / "new")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_refused(result, "File too large")
    assert os.listdir(tmp_path) == []


# ---- trainings side by side ----


ENDLESS = """
import sys
from ocdl.cli import demo, main

demo.ITERATIONS = 10**9
sys.exit(main(["demo", "--out", sys.argv[1]]))
"""


def test_ctrl_c_ends_all_trainings(tmp_path: Path) -> None:
    assert interrupted("-c", ENDLESS, str(tmp_path / "new")) == (130, "", "ocdl: interrupted\n")
    assert os.listdir(tmp_path) == []


def test_an_error_in_one_training_ends_the_others() -> None:
    ocdl.set_num_threads(2)  # with one thread, the second training would begin after the endless one
    endless, bad = ocdl.Network.preset("net", 2, 20), ocdl.Network(2, 3, activation="relu")
    data = ocdl.datasets.make_spiral(random_state=0)
    starts = {
        "endless": (endless, endless.init(random_state=0)),
        "bad": (bad, bad.controls(K=np.full((3, 2, 2), 1e300))),
    }
    with pytest.raises(FloatingPointError, match="layer"):
        train_all(starts, data, data, max_iter=10**9, progress=False)
