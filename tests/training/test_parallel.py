"""Trainings in parallel: each on one thread, results in the order in which they end, and nothing left running."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import ocdl
from ocdl import Status
from ocdl.training.parallel import ShouldStop, run_parallel, shared_progress

PATIENCE = 60.0  # seconds


def wait_for(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def endless(seen: list[Status]) -> Callable[[ShouldStop], Status]:
    net = ocdl.Network.preset("net", 2, 20)
    u, data = net.init(random_state=0), ocdl.datasets.make_spiral(100, random_state=0)

    def training(should_stop: ShouldStop) -> Status:
        seen.append(ocdl.train(net, u, *data, max_iter=10**9, callback=lambda state: should_stop()).status)
        return seen[-1]

    return training


def test_results_come_in_the_order_of_completion() -> None:
    names: list[str] = []

    def slow(should_stop: ShouldStop) -> int:
        wait_for(lambda: names == ["quick"])
        return 1

    for name, result in run_parallel({"slow": slow, "quick": lambda should_stop: 2}, 2):
        names.append(name)
        assert result == {"slow": 1, "quick": 2}[name]
    assert names == ["quick", "slow"]


def test_each_has_one_thread() -> None:
    ocdl.set_num_threads(3)
    actual = dict(run_parallel({name: lambda should_stop: ocdl.get_num_threads() for name in "abcd"}, 2))
    assert actual == dict.fromkeys("abcd", 1)
    assert ocdl.get_num_threads() == 3


@pytest.mark.parametrize("error", [KeyboardInterrupt, FloatingPointError])
def test_an_error_in_the_caller_stops_those_at_work_and_starts_no_other(error: type[BaseException]) -> None:
    seen: list[Status] = []
    late: list[str] = []
    trainings: dict[str, Callable[[ShouldStop], Any]] = {"quick": lambda should_stop: None, "endless": endless(seen)}

    def in_use(should_stop: ShouldStop) -> None:
        wait_for(should_stop)

    trainings |= {"in use": in_use, "late": lambda should_stop: late.append("late")}

    def take() -> None:
        for _ in run_parallel(trainings, 2):
            raise error

    with pytest.raises(error):
        take()
    wait_for(lambda: seen == [Status.INTERRUPTED])
    assert late == []


def test_an_error_in_a_training_stops_the_others() -> None:
    seen: list[Status] = []

    def fail(should_stop: ShouldStop) -> Status:
        raise FloatingPointError("here")

    with pytest.raises(FloatingPointError, match="here"):
        list(run_parallel({"endless": endless(seen), "failing": fail}, 2))
    assert seen == [Status.INTERRUPTED]


@pytest.mark.parametrize("output", [True, False])
def test_the_bar_counts_the_iterations_of_all(output: bool, capsys: pytest.CaptureFixture[str]) -> None:
    net = ocdl.Network(2, 3)
    u, data = net.init(random_state=0), ocdl.datasets.make_spiral(50, random_state=0)
    with shared_progress(90, shown=output) as make_callback:
        for _ in range(3):
            ocdl.train(net, u, *data, max_iter=30, callback=make_callback(lambda: False))
    err = capsys.readouterr().err
    assert ("90/90" in err) == output
    assert output or err == ""
