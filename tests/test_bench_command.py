"""``ocdl bench``: the same numbers from everyone, the table, and peers that are absent, wrong or broken."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ocdl
from ocdl.bench import benchmark, peers
from ocdl.bench.benchmark import JOBS, Job, installed_peers, measure
from ocdl.cli import bench, main

Run = Callable[..., tuple[int, str, str]]
SMALL = tuple(Job(job.name, 50, min(job.features, 7), job.tableau, job.gradient) for job in JOBS)
INSTALLED = list(installed_peers())


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command on small problems; return its exit code, and what it wrote to stdout and to stderr."""
    monkeypatch.setattr(bench, "JOBS", SMALL)
    monkeypatch.setattr(bench, "QUICK_SAMPLE_SECONDS", 0.001)
    monkeypatch.setattr(bench, "BUSY", float("inf"))
    monkeypatch.setenv("COLUMNS", "200")  # on a busy machine the numbers are wider

    def call(*argv: str) -> tuple[int, str, str]:
        code = main(["bench", *argv])
        written = capsys.readouterr()
        return code, written.out, written.err

    return call


def test_table(run: Run) -> None:
    code, out, err = run("--quick", "--peers", "numpy")
    assert (code, err) == (0, "")
    machine, *tables = out.strip().split("\n\n")
    for word in ("processor", "cores", "load", "threads", ocdl.build_info()["variant"], np.__version__):
        assert word in machine
    assert len(tables) == len(SMALL)
    for job, table in zip(SMALL, tables, strict=True):
        header, own, peer = table.splitlines()
        assert header.split("  ")[0] == job.name
        assert [name.strip() for name in header[len(job.name) :].split("  ") if name] == list(bench.HEADER)
        assert own.split()[0] == "ocdl"
        assert own.split()[2] == "1.0"
        assert peer.split()[0] == "numpy"
        assert float(peer.split()[2]) == pytest.approx(float(peer.split()[1]) / float(own.split()[1]), rel=0.2, abs=0.1)
        assert float(peer.split()[3]) <= benchmark.TOLERANCE


def test_json(run: Run) -> None:
    code, out, err = run("--quick", "--peers", "numpy", "--json")
    assert (code, err) == (0, "")
    facts = json.loads(out)
    assert facts["threads"] == ocdl.get_num_threads()
    assert facts["core"] == ocdl.build_info()["variant"]
    assert facts["versions"] == {"ocdl": ocdl.__version__, "numpy": np.__version__}
    assert [one["job"] for one in facts["jobs"]] == [job.name for job in SMALL]
    for one in facts["jobs"]:
        assert [timing["contender"] for timing in one["timings"]] == ["ocdl", "numpy"]
        assert all(timing["seconds"] > 0 and not timing["fault"] for timing in one["timings"])


def test_ocdl_alone(run: Run) -> None:
    code, out, _ = run("--quick", "--peers", "--json")
    assert code == 0
    assert {timing["contender"] for one in json.loads(out)["jobs"] for timing in one["timings"]} == {"ocdl"}


@pytest.mark.filterwarnings("default")  # of other libraries
@pytest.mark.parametrize("name", INSTALLED)
@pytest.mark.parametrize("tableau", ["euler", "kutta4", "midpoint"])
def test_peers_compute_the_same(name: str, tableau: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "LAYERS", 4)
    for job in (Job("narrow", 30, 2, tableau), Job("wide", 30, 7, tableau), Job("outputs", 30, 2, tableau, False)):
        own, problem, net = benchmark._prepared(job)
        got = peers.PEERS[name](net.tableau, problem, gradient=job.gradient)()
        for one, right in zip(got, own(), strict=True):
            np.testing.assert_allclose(np.asarray(one), right, rtol=1e-10, atol=1e-10 * np.max(np.abs(right)))


def wrong_peer(*args: Any, gradient: bool) -> peers.Evaluate:
    right = peers.numpy_peer(*args, gradient=gradient)
    return lambda: tuple(part * (1 + 1e-6) for part in right())


def broken_peer(*args: Any, gradient: bool) -> peers.Evaluate:
    raise OSError("its library\ndoes not load")


def nan_peer(*args: Any, gradient: bool) -> peers.Evaluate:
    right = peers.numpy_peer(*args, gradient=gradient)
    return lambda: tuple(part * np.nan for part in right())


def misshapen_peer(*args: Any, gradient: bool) -> peers.Evaluate:
    right = peers.numpy_peer(*args, gradient=gradient)
    return lambda: tuple(np.array([part]) for part in right())


@pytest.mark.parametrize("peer", [wrong_peer, nan_peer, misshapen_peer])
@pytest.mark.parametrize("job", SMALL, ids=lambda job: job.name)
def test_a_peer_that_differs_is_not_timed(peer: Any, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peers.PEERS, "torch", peer)
    own, right, wrong = measure(job, ["numpy", "torch"], rounds=1, seconds=0.001)
    assert own.seconds is not None
    assert right.seconds is not None
    assert wrong.seconds is None
    assert wrong.fault.startswith(
        "not timed: its numbers differ" if peer is wrong_peer else "not timed: its arrays have"
    )
    assert wrong.difference == (pytest.approx(1e-6, rel=1e-3) if peer is wrong_peer else None)


@pytest.mark.parametrize(
    ("peer", "message"),
    [
        (wrong_peer, "torch: not timed: its numbers differ from ocdl's by 1e-06"),
        (nan_peer, "torch: not timed: its arrays have other shapes, or numbers that are not finite\n"),
        (broken_peer, "torch: could not be used: its library does not load"),
    ],
)
def test_peers_without_a_time_are_reported(peer: Any, message: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peers.PEERS, "torch", peer)
    monkeypatch.setattr(bench, "installed_peers", lambda: {"numpy": "1", "torch": "2"})
    code, out, _ = run("--quick")
    assert code == 0
    assert out.count(message) == len(SMALL)
    code, out, _ = run("--quick", "--json")
    assert code == 0
    assert all(one["timings"][2]["seconds"] is None for one in json.loads(out)["jobs"])


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--peers", "abacus"), "'abacus'"),
        (("--peers", "jax"), "--peers jax is not installed"),
        (("--jobs",), "--jobs"),
    ],
)
def test_mistakes_are_one_line(argv: tuple[str, ...], message: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "installed_peers", lambda: {"numpy": "1"})
    code, out, err = run(*argv)
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("ocdl: error: ")
    assert err.count("\n") == 1


def test_a_busy_machine_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "BUSY", -1.0)
    code, _, err = run("--quick", "--peers", "numpy")
    assert code == 0
    assert err.startswith("ocdl: warning: the machine is busy")
    assert err.count("\n") == 1
