"""``ocdl selftest``: it passes here, and each of its checks notices what it is there for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ocdl
from ocdl import Network, _load_core
from ocdl.cli import _checks

Run = Callable[..., tuple[int, str, str]]


def test_it_passes(run: Run) -> None:
    code, out, err = run("selftest", "--json")
    report = json.loads(out)
    assert (code, err) == (0, "")
    assert report["passed"]
    assert [check["check"] for check in report["checks"]] == list(_checks.CHECKS)
    assert report["core"] == ocdl.build_info()


def test_failures_are_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong() -> str:
        raise _checks.CheckError("2 + 2 is 5")

    monkeypatch.setattr(_checks, "CHECKS", None)  # the command has its own reference
    monkeypatch.setattr("ocdl.cli.selftest.CHECKS", {"fine": lambda: "as it should be", "sums": wrong})
    code, out, err = run("selftest")
    assert code == 1
    assert "fine        ok" in out
    assert "sums        FAILED" in out
    assert "CheckError: 2 + 2 is 5" in out
    assert err == "ocdl: 1 of 2 checks failed: sums\n"
    code, out, _ = run("selftest", "--json")
    assert (code, json.loads(out)["passed"]) == (1, False)


def test_its_lines_fit_a_narrow_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    finding = "the same bits with 1, 2, 3, 7 threads, and row by row"
    monkeypatch.setattr("ocdl.cli.selftest.CHECKS", {"determinism": lambda: finding})
    _, out, _ = run("selftest")
    assert max(map(len, out.splitlines())) <= 40
    assert finding in " ".join(out.split())


def test_a_core_that_differs_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_load_core, "built_variants", lambda: ("baseline",))
    right = _checks.gradients()
    right[1][5] += 1e-12 * max(map(abs, right[1]))
    monkeypatch.setattr(_checks, "gradients", lambda: right)
    with pytest.raises(_checks.CheckError, match=r"the core baseline differs by 1\.\de-12 of the largest entry"):
        _checks.variants()


def test_a_core_that_crashes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_load_core, "built_variants", lambda: ("missing",))
    monkeypatch.setattr("ocdl._cpu.supports", lambda name: True)
    with pytest.raises(
        _checks.CheckError, match=r"the core missing ends with exit code 1: (?s:.*)OCDL_CORE=missing is not"
    ):
        _checks.variants()


def test_a_wrong_gradient_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Network.value_and_grad

    def wrong(self: Network, *arguments: Any, **keywords: Any) -> Any:
        J, gradient = right(self, *arguments, **keywords)
        gradient.K[...] *= 1.001
        return J, gradient

    monkeypatch.setattr(Network, "value_and_grad", wrong)
    with pytest.raises(_checks.CheckError, match="checks fail"):
        _checks.exact_gradients()


def test_bits_that_depend_on_threads_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Network.value_and_grad

    def wrong(self: Network, *arguments: Any, **keywords: Any) -> Any:
        J, gradient = right(self, *arguments, **keywords)
        return np.nextafter(J, 2.0 * J) if ocdl.get_num_threads() == 3 else J, gradient

    before = ocdl.get_num_threads()
    monkeypatch.setattr(Network, "value_and_grad", wrong)
    with pytest.raises(_checks.CheckError, match="have 2 results"):
        _checks.determinism()
    assert ocdl.get_num_threads() == before


def test_a_file_that_is_not_checked_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    good = ocdl.load
    read: dict[str, Any] = {}

    def load_once(path: str, expected: Any = None) -> Any:
        return read.setdefault(path, good(path, expected) if path not in read else None)

    monkeypatch.setattr(ocdl, "load", load_once)
    with pytest.raises(_checks.CheckError, match="flipped bit was read without"):
        _checks.files()
