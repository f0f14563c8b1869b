"""The table of the long tests: what counts has a row, and what fails is seen."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import soak

TESTS = """
import os
import pytest
from soak import Soak

@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one", "other"])
def test_it_goes_well(kind, soak: Soak):
    soak.measured(f"{soak.times(50_000, least=10)} of kind {kind}")

@pytest.mark.slow
def test_it_goes_wrong(soak):
    assert soak.times(7) == 8

@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
def test_without_a_count(number):
    if number == 2:
        pytest.skip("no number is installed")

def test_that_is_quick():
    raise AssertionError
"""


def test_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    for name in ("conftest.py", "soak.py"):
        shutil.copy(soak.FOLDER / name, folder)
    shutil.copy(soak.FOLDER.parent / "pyproject.toml", tmp_path)
    (folder / "test_made_up.py").write_text(TESTS)
    (folder / "test_crash.py").write_text("import pytest, os\n@pytest.mark.slow\ndef test(): os._exit(3)\n")
    (folder / "test_words.py").write_text("# mark.slow\n")
    monkeypatch.setattr(soak, "FOLDER", folder)
    assert soak.main([]) == 1
    header, *rows, last = capsys.readouterr().out.splitlines()
    assert header.split() == ["what", "how", "often", "result", "seconds"]
    assert last == "something FAILED"
    crash, one, other, wrong, uncounted, skipped = [" ".join(row.split()[:-1]) for row in rows]
    assert crash == "test_crash FAILED with exit code 3"
    assert one == "it goes well[one] 50,000 50000 of kind one"
    assert other == "it goes well[other] 50,000 50000 of kind other"
    assert wrong.startswith("it goes wrong 7 FAILED: assert 7 == 8")
    assert uncounted == "test_made_up 2 tests passed"
    assert skipped == "test_made_up 1 tests skipped: no number is installed"
    assert soak.main(["--brief", "--only", "crash"]) == 0
    assert "left out: it has no count" in capsys.readouterr().out
