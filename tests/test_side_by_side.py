"""Trainings side by side: each on one thread, what is finished comes first, and nothing is left running."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import ocdl
from ocdl import Status, Stop
from ocdl.training.side_by_side import shared_bar, side_by_side

PATIENCE = 60.0  # seconds


def wait_for(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def endless(seen: list[Status]) -> Callable[[Stop], Status]:
    net = ocdl.Network.preset("net", 2, 20)
    u, data = net.init(random_state=0), ocdl.datasets.make_spiral(100, random_state=0)

    def training(stop: Stop) -> Status:
        seen.append(ocdl.train(net, u, *data, max_iter=10**9, stop=stop).status)
        return seen[-1]

    return training


def test_what_is_finished_first_comes_first() -> None:
    taken: list[str] = []

    def slow(stop: Stop) -> int:
        wait_for(lambda: taken == ["quick"])
        return 1

    for name, made in side_by_side({"slow": slow, "quick": lambda stop: 2}, 2):
        taken.append(name)
        assert made == {"slow": 1, "quick": 2}[name]
    assert taken == ["quick", "slow"]


def test_each_has_one_thread() -> None:
    ocdl.set_num_threads(3)
    found = dict(side_by_side({name: lambda stop: ocdl.get_num_threads() for name in "abcd"}, 2))
    assert found == dict.fromkeys("abcd", 1)
    assert ocdl.get_num_threads() == 3


@pytest.mark.parametrize("error", [KeyboardInterrupt, FloatingPointError])
def test_an_error_in_the_caller_stops_those_at_work_and_starts_no_other(error: type[BaseException]) -> None:
    seen: list[Status] = []
    late: list[str] = []
    trainings: dict[str, Callable[[Stop], Any]] = {"quick": lambda stop: None, "endless": endless(seen)}

    def in_use(stop: Stop) -> None:
        wait_for(lambda: stop.requested)

    trainings |= {"in use": in_use, "late": lambda stop: late.append("late")}

    def take() -> None:
        for _ in side_by_side(trainings, 2):
            raise error

    with pytest.raises(error):
        take()
    wait_for(lambda: seen == [Status.INTERRUPTED])
    assert late == []


def test_an_error_in_a_training_stops_the_others() -> None:
    seen: list[Status] = []

    def fail(stop: Stop) -> Status:
        raise FloatingPointError("here")

    with pytest.raises(FloatingPointError, match="here"):
        list(side_by_side({"endless": endless(seen), "failing": fail}, 2))
    assert seen == [Status.INTERRUPTED]


@pytest.mark.parametrize("shown", [True, False])
def test_the_bar_counts_the_iterations_of_all(shown: bool, capsys: pytest.CaptureFixture[str]) -> None:
    net = ocdl.Network(2, 3)
    u, data = net.init(random_state=0), ocdl.datasets.make_spiral(50, random_state=0)
    with shared_bar(90, shown=shown) as callback_for_one_more:
        for _ in range(3):
            ocdl.train(net, u, *data, max_iter=30, callback=callback_for_one_more())
    err = capsys.readouterr().err
    assert ("90/90" in err) == shown
    assert shown or err == ""
