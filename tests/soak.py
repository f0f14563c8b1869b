"""Run the slow tests at their full counts, each file in a process of its own, and print what each did how often.

python tests/soak.py                    # everything: 40 minutes on two cores
python tests/soak.py --brief            # the same with small counts, in a minute
python tests/soak.py --only resume leaks
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).parent
BRIEF = 0.001  # of the full counts
WIDTHS = (58, 11, 60)


@dataclass(frozen=True)
class Soak:
    """What a slow test sees: the share of its full count that is wanted, and where to say what it measured."""

    share: float
    record: Callable[[str, object], None]

    def times(self, full: int, least: int = 1) -> int:
        """Return how often to do something that is done `full` times in a whole soak."""
        count = max(least, round(full * self.share))
        self.record("count", f"{count:,}")
        return count

    def measured(self, text: str) -> None:
        """Put a figure into the table."""
        self.record("measured", text)


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    what: str
    count: str
    result: str
    seconds: float
    fine: bool

    def __str__(self) -> str:
        what, count, result = WIDTHS
        return f"{self.what:{what}.{what}}  {self.count:>{count}}  {self.result:{result}}  {self.seconds:8.1f}"


def slow_files(only: list[str]) -> list[Path]:
    """Return the test files with slow tests, those of the names in `only`."""
    files = [file for file in sorted(FOLDER.glob("test_*.py")) if "mark.slow" in file.read_text()]
    return [file for file in files if not only or file.stem.removeprefix("test_") in only]


def run(file: Path, share: float) -> Iterator[Row]:
    """Run the slow tests of a file; yield a row for each that counts, and one for all the others."""
    if share < 1 and "Soak" not in file.read_text():
        yield Row(file.stem, "", "left out: it has no count", 0.0, True)
        return
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.xml")
        options = ["-m", "slow", f"--soak={share}", f"--junitxml={results}", "-o", "junit_family=legacy", "-q"]
        if share < 1:
            options.append("--soak-only")  # nothing else can be brief
        start = time.perf_counter()
        command = [sys.executable, "-m", "pytest", str(file), *options]
        done = subprocess.run(command, cwd=FOLDER.parent, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - start
        if done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED:  # it only speaks of slow tests
            return
        if done.returncode:
            print(done.stdout, done.stderr, file=sys.stderr)
        if not results.exists():
            yield Row(file.stem, "", f"FAILED with exit code {done.returncode}", seconds, False)
            return
        cases = list(ElementTree.parse(results).iter("testcase"))
    counted = [case for case in cases if case.find("properties") is not None]
    yield from map(counted_row, counted)
    others = [case for case in cases if case not in counted]
    for result, cases in by_result(others).items():
        seconds = sum(float(case.get("time", 0)) for case in cases)
        yield Row(file.stem, f"{len(cases):,} tests", result, seconds, not any(map(problem, cases)))


def by_result(cases: list[ElementTree.Element]) -> dict[str, list[ElementTree.Element]]:
    """Return those that passed, that were skipped for the same reason, and that failed in the same way."""
    found: dict[str, list[ElementTree.Element]] = {}
    for case in cases:
        found.setdefault(problem(case) or passed_or_skipped(case), []).append(case)
    return found


def counted_row(case: ElementTree.Element) -> Row:
    noted = {entry.get("name"): entry.get("value", "") for entry in case.iter("property")}
    what = case.get("name", "").removeprefix("test_").replace("_", " ")
    wrong = problem(case)
    result = wrong or noted.get("measured", passed_or_skipped(case))
    return Row(what, noted.get("count", ""), result, float(case.get("time", 0)), not wrong)


def passed_or_skipped(case: ElementTree.Element) -> str:
    skipped = case.find("skipped")
    return "passed" if skipped is None else f"skipped: {skipped.get('message', '')}"


def problem(case: ElementTree.Element) -> str:
    """Return what went wrong in a test, nothing if it passed or was skipped."""
    for kind in ("failure", "error"):
        found = case.find(kind)
        if found is not None:
            return f"FAILED: {found.get('message', '').splitlines()[0]}"
    return ""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brief", action="store_true", help="small counts; slow tests without a count are left out")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="files, as in: resume leaks")
    arguments = parser.parse_args(argv)
    print(f"{'what':{WIDTHS[0]}}  {'how often':>{WIDTHS[1]}}  {'result':{WIDTHS[2]}}  {'seconds':>8}")
    fine = True
    for file in slow_files(arguments.only):
        for row in run(file, BRIEF if arguments.brief else 1.0):
            print(row, flush=True)
            fine &= row.fine
    print("everything passed" if fine else "something FAILED")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
