"""Run the slow tests at their full counts, each in a process of its own, and print what each did how often.

python tests/soak.py                    # everything, as many at a time as there are cores: half an hour on two
python tests/soak.py --brief            # the same with small counts, in a minute
python tests/soak.py --only resume leaks

What has passed is kept in build/soak, and a second call continues after it, as long as no source has changed; --anew
forgets it. With --minutes, what has not begun by then is left out, and the table says so. Tests marked "alone", which
measure time, come first, one after the other; then those of files that take longest, so that no core waits at the end.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).parent
BRIEF = 0.001  # of the full counts
WIDTHS = (58, 11, 60)
# Files whose tests take longest, those first: what begins late ends late.
LONG = [
    f"test_{name}"
    for name in (
        "forged_files",
        "playground_command",
        "wheel",
        "numbers",
        "leaks",
        "killed_commands",
        "interrupts",
        "pull_back",
        "company",
        "resume",
    )
]
SKIPPED = re.compile(r"^SKIPPED \[\d+\] (\S+?):\d+: (.*)$", re.MULTILINE)


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
    files = [file for file in sorted(FOLDER.rglob("test_*.py")) if "mark.slow" in file.read_text()]
    return [file for file in files if not only or file.stem.removeprefix("test_") in only]


@dataclass(frozen=True)
class Unit:
    """What is run in one process, and passes or is run again: a test that counts, or all others of a file."""

    file: str
    tests: tuple[str, ...]
    alone: bool

    def __str__(self) -> str:
        return f"{self.file}-{hashlib.sha256(repr(self.tests).encode()).hexdigest()[:12]}"


def units(files: list[Path], share: float) -> tuple[list[Unit], list[Row]]:
    """Return what there is to run, in its order, and rows for what is not; only what counts can be brief."""
    if not files:
        return [], []
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder, "tests.json")
        options = ["--collect-only", "-q", "-rs", "-m", "slow", f"--soak-list={listed}"]
        command = [sys.executable, "-m", "pytest", *map(str, files), *options]
        done = subprocess.run(command, cwd=FOLDER.parent, capture_output=True, text=True, check=False)
        rows = [Row(Path(file).stem, "", f"left out: {why}", 0.0, True) for file, why in SKIPPED.findall(done.stdout)]
        if done.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            print(done.stdout, done.stderr, file=sys.stderr)
            return [], [*rows, Row("the tests", "", "FAILED to be collected", 0.0, False)]
        chosen = json.loads(listed.read_text())
    actual = [Unit(stem_of(test), (test["name"],), test["alone"]) for test in chosen if test["counts"]]
    others: dict[tuple[str, bool], list[str]] = {}
    for test in chosen:
        if not test["counts"]:
            others.setdefault((stem_of(test), test["alone"]), []).append(test["name"])
    if share < 1:
        rows += [Row(file, "", "left out: it has no count", 0.0, True) for file, _ in others]
    else:
        actual += [Unit(file, tuple(names), alone) for (file, alone), names in others.items()]
    return sorted(actual, key=lambda unit: (not unit.alone, place_of(unit))), rows


def place_of(unit: Unit) -> int:
    return LONG.index(unit.file) if unit.file in LONG else len(LONG)


def stem_of(test: dict[str, str]) -> str:
    return Path(test["name"].partition("::")[0]).stem


def run(unit: Unit, share: float) -> Iterator[Row]:
    """Run the tests of a unit; yield a row for each that counts, and one for all the others."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.xml")
        options = ["-m", "slow", f"--soak={share}", f"--junitxml={results}", "-o", "junit_family=legacy", "-q"]
        start = time.perf_counter()
        command = [sys.executable, "-m", "pytest", *unit.tests, *options]
        done = subprocess.run(command, cwd=FOLDER.parent, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - start
        if done.returncode:
            print(done.stdout, done.stderr, file=sys.stderr)
        if not results.exists():
            yield Row(unit.file, "", f"FAILED with exit code {done.returncode}", seconds, False)
            return
        cases = list(ElementTree.parse(results).iter("testcase"))
    counted = [case for case in cases if case.find("properties") is not None]
    yield from map(counted_row, counted)
    others = [case for case in cases if case not in counted]
    for result, cases in by_result(others).items():
        seconds = sum(float(case.get("time", 0)) for case in cases)
        yield Row(unit.file, f"{len(cases):,} tests", result, seconds, not any(map(problem, cases)))


def state_of_the_sources() -> str:
    """Return a digest of everything that a test depends on."""
    digest = hashlib.sha256()
    for place in ("python", "cpp", "tests"):
        for path in sorted((FOLDER.parent / place).rglob("*")):
            if path.suffix in (".py", ".pyi", ".cpp", ".hpp", ".ocdl"):
                digest.update(f"{path.relative_to(FOLDER.parent)} {path.stat().st_size}\n".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


class Kept:
    """The rows of what has passed, with the sources as they are and the same share of the counts."""

    def __init__(self, folder: Path, share: float) -> None:
        self._folder, self._share = folder, share
        self._sources = state_of_the_sources()

    def rows(self, unit: Unit) -> list[Row] | None:
        """Return the rows of what has passed, None where it has not."""
        path = self._path(unit)
        if not path.exists():
            return None
        actual = json.loads(path.read_text())
        return [Row(**row) for row in actual["rows"]] if actual["sources"] == self._sources else None

    def keep(self, unit: Unit, rows: list[Row]) -> None:
        """Keep the rows if all of them are fine."""
        if all(row.fine for row in rows):
            self._folder.mkdir(parents=True, exist_ok=True)
            record = {"sources": self._sources, "rows": [asdict(row) for row in rows]}
            temporary = self._path(unit).with_suffix(".new")
            temporary.write_text(json.dumps(record))
            temporary.replace(self._path(unit))

    def _path(self, unit: Unit) -> Path:
        return self._folder / f"{unit}-{self._share:g}.json"


def run_or_recall(unit: Unit, share: float, kept: Kept, deadline: float) -> list[Row]:
    """Return the rows of a unit: those that are kept, or else new ones, as long as there is time."""
    rows = kept.rows(unit)
    if rows is not None:
        return rows
    if time.monotonic() > deadline:
        left_out = "LEFT OUT: no time; a second call continues here"
        return [Row(unit.file, f"{len(unit.tests)} tests", left_out, 0.0, False)]
    rows = list(run(unit, share))
    kept.keep(unit, rows)
    return rows


def by_result(cases: list[ElementTree.Element]) -> dict[str, list[ElementTree.Element]]:
    """Return those that passed, that were skipped for the same reason, and that failed in the same way."""
    actual: dict[str, list[ElementTree.Element]] = {}
    for case in cases:
        actual.setdefault(problem(case) or passed_or_skipped(case), []).append(case)
    return actual


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
        actual = case.find(kind)
        if actual is not None:
            return f"FAILED: {actual.get('message', '').splitlines()[0]}"
    return ""


def output(rows: list[Row]) -> bool:
    """Print rows; return whether all are fine."""
    for row in rows:
        print(row, flush=True)
    return all(row.fine for row in rows)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brief", action="store_true", help="small counts; slow tests without a count are left out")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="files, as in: resume leaks")
    parser.add_argument("--anew", action="store_true", help="run what has passed as well")
    parser.add_argument("--minutes", type=float, default=float("inf"), metavar="N", help="begin nothing after so many")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="tests at a time (cores)")
    arguments = parser.parse_args(argv)
    share, begun = BRIEF if arguments.brief else 1.0, time.monotonic()
    folder = FOLDER.parent / "build" / "soak"
    if arguments.anew:
        shutil.rmtree(folder, ignore_errors=True)
    kept, deadline = Kept(folder, share), begun + 60 * arguments.minutes
    print(f"{'what':{WIDTHS[0]}}  {'how often':>{WIDTHS[1]}}  {'result':{WIDTHS[2]}}  {'seconds':>8}")
    actual, left_out = units(slow_files(arguments.only), share)
    alone = [unit for unit in actual if unit.alone]
    together = [unit for unit in actual if not unit.alone]
    with ThreadPoolExecutor(arguments.jobs) as pool:

        def rows_of(unit: Unit) -> list[Row]:
            return run_or_recall(unit, share, kept, deadline)

        fine = output(left_out)
        for unit in alone:
            fine &= output(rows_of(unit))
        for rows in pool.map(rows_of, together):
            fine &= output(rows)
    print(f"{(time.monotonic() - begun) / 60:.0f} minutes")
    print("everything passed" if fine else "something FAILED, or was left out")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
