"""The table of the long tests: what counts has a row, and what fails is seen."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import sanitize
import soak

TESTS = """
import os
import pytest
from soak import Soak

@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one", "other"])
def test_a_release_succeeds(kind, soak: Soak):
    soak.measured(f"{soak.times(50_000, least=10)} of kind {kind}")

@pytest.mark.slow
@pytest.mark.alone
def test_a_release_fails(soak):
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
    missing = "import pytest\npytest.skip('nothing is installed', allow_module_level=True)  # mark.slow\n"
    (folder / "test_missing.py").write_text(missing)
    (folder / "test_words.py").write_text("# mark.slow\n")
    monkeypatch.setattr(soak, "FOLDER", folder)
    assert soak.main([]) == 1
    header, *rows, minutes, last = capsys.readouterr().out.splitlines()
    assert header.split() == ["what", "how", "often", "result", "seconds"]
    assert minutes.endswith(" minutes")
    assert last == "something FAILED, or was left out"
    left_out, wrong, one, other, crash, uncounted, skipped = [" ".join(row.split()[:-1]) for row in rows]
    assert left_out == "test_missing left out: nothing is installed"
    assert crash == "test_crash FAILED with exit code 3"
    assert one == "a release succeeds[one] 50,000 50000 of kind one"
    assert other == "a release succeeds[other] 50,000 50000 of kind other"
    assert wrong.startswith("a release fails 7 FAILED: assert 7 == 8")
    assert uncounted == "test_made_up 2 tests passed"
    assert skipped == "test_made_up 1 tests skipped: no number is installed"
    assert soak.main(["--brief", "--only", "crash"]) == 0
    assert "left out: it has no count" in capsys.readouterr().out


def test_passed_units_are_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    for name in ("good", "bad"):
        (folder / f"test_{name}.py").write_text("# mark.slow\n")
    calls: list[str] = []

    def run(unit: soak.Unit, share: float) -> list[soak.Row]:
        calls.append(unit.file)
        return [soak.Row(unit.file, "1", "seen", 0.0, unit.file == "test_good")]

    def units(files: list[Path], share: float) -> tuple[list[soak.Unit], list[soak.Row]]:
        return [soak.Unit(file.stem, (f"{file}::test",), alone=False) for file in files], []

    monkeypatch.setattr(soak, "FOLDER", folder)
    monkeypatch.setattr(soak, "units", units)
    monkeypatch.setattr(soak, "run", run)
    assert soak.main(["--jobs", "1"]) == 1
    first = capsys.readouterr().out
    assert soak.main(["--jobs", "1"]) == 1
    assert capsys.readouterr().out == first  # the table is whole
    assert calls == ["test_bad", "test_good", "test_bad"]
    assert soak.main(["--minutes", "-1"]) == 1
    assert "test_bad" in (left_out := capsys.readouterr().out)
    assert "LEFT OUT: no time; a second call continues here" in left_out
    (folder / "test_good.py").write_text("# mark.slow, changed\n")
    soak.main(["--jobs", "1", "--only", "good"])
    soak.main(["--jobs", "1", "--only", "good"])
    soak.main(["--jobs", "1", "--only", "good", "--anew"])
    assert calls[3:] == ["test_good", "test_good"]


def test_a_step_of_the_sanitizers_that_has_passed_is_not_run_again(tmp_path: Path) -> None:
    reports, mark, calls = tmp_path / "reports", tmp_path / "step.passed", []
    reports.mkdir()

    def step(passes: bool, report: str = "") -> bool:
        def work() -> bool:
            calls.append(passes)
            (reports / f"report.{len(calls)}").write_text(report)
            return passes

        return sanitize.step_passes(mark, work, reports)

    ours = "Direct leak of 8 bytes\n #0 in ocdl/cpp/ocdl/types.hpp\n"
    assert [step(False), step(True, ours), step(True), step(True)] == [False, False, True, True]
    assert calls == [False, True, True]
    mark.write_text("another state")
    assert step(True)
    assert len(calls) == 4


def test_the_sanitizers_see_every_file_once() -> None:
    groups = sanitize.file_groups(["--deselect=x"])
    files = [word for group in groups for word in group if word.startswith("tests/")]
    assert files == sorted(path.relative_to(soak.FOLDER.parent).as_posix() for path in soak.FOLDER.rglob("test_*.py"))
    assert all(group[-1] == "--deselect=x" for group in groups)
    assert sanitize.file_groups(sanitize.WITH_THREADS) == [sanitize.WITH_THREADS]
