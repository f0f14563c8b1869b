"""Run the slow tests at their full counts, each file in a process of its own, and print what each did how often.

python tests/soak.py                    # everything, as many files at a time as there are cores: 40 minutes on two
python tests/soak.py --brief            # the same with small counts, in a minute
python tests/soak.py --only resume leaks

What has passed is kept in build/soak, and a second call goes on behind it, as long as no source has changed; --anew
forgets it. With --minutes, what has not begun by then is left out, and the table says so.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
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
    """The rows of files that have passed, with the sources as they are and the same share of the counts."""

    def __init__(self, folder: Path, share: float) -> None:
        self._folder, self._share = folder, share
        self._sources = state_of_the_sources()

    def rows(self, file: Path) -> list[Row] | None:
        """Return the rows of a file that has passed, None where it has not."""
        path = self._path(file)
        if not path.exists():
            return None
        found = json.loads(path.read_text())
        return [Row(**row) for row in found["rows"]] if found["sources"] == self._sources else None

    def keep(self, file: Path, rows: list[Row]) -> None:
        """Keep the rows if all of them are fine."""
        if all(row.fine for row in rows):
            self._folder.mkdir(parents=True, exist_ok=True)
            record = {"sources": self._sources, "rows": [asdict(row) for row in rows]}
            temporary = self._path(file).with_suffix(".new")
            temporary.write_text(json.dumps(record))
            temporary.replace(self._path(file))

    def _path(self, file: Path) -> Path:
        return self._folder / f"{file.stem}-{self._share:g}.json"


def run_or_recall(file: Path, share: float, kept: Kept, deadline: float) -> list[Row]:
    """Return the rows of a file: those that are kept, or else new ones, as long as there is time."""
    rows = kept.rows(file)
    if rows is not None:
        return rows
    if time.monotonic() > deadline:
        return [Row(file.stem, "", "LEFT OUT: no time; a second call goes on here", 0.0, False)]
    rows = list(run(file, share))
    kept.keep(file, rows)
    return rows


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
    parser.add_argument("--anew", action="store_true", help="run what has passed as well")
    parser.add_argument("--minutes", type=float, default=float("inf"), metavar="N", help="begin nothing after so many")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="files at a time (cores)")
    arguments = parser.parse_args(argv)
    share, begun = BRIEF if arguments.brief else 1.0, time.monotonic()
    folder = FOLDER.parent / "build" / "soak"
    if arguments.anew:
        shutil.rmtree(folder, ignore_errors=True)
    kept, deadline = Kept(folder, share), begun + 60 * arguments.minutes
    print(f"{'what':{WIDTHS[0]}}  {'how often':>{WIDTHS[1]}}  {'result':{WIDTHS[2]}}  {'seconds':>8}")
    fine = True
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for rows in pool.map(lambda file: run_or_recall(file, share, kept, deadline), slow_files(arguments.only)):
            for row in rows:
                print(row, flush=True)
                fine &= row.fine
    print(f"{(time.monotonic() - begun) / 60:.0f} minutes")
    print("everything passed" if fine else "something FAILED, or was left out")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
