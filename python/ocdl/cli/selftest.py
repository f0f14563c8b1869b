"""``ocdl selftest``: checks of this installation."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import ocdl
from ocdl.cli._checks import CHECKS
from ocdl.cli._output import (
    WIDE,
    FailedError,
    add_command,
    align,
    escape_unprintable,
    json_text,
    terminal_width,
    wrap_text,
)

EXAMPLES = """\
  ocdl selftest
  python -m ocdl selftest --json

Needs only the installed package and takes less than a minute. The exit code is 1 if a check fails.
Please include the output when you report a problem."""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    summary = "check this installation: instruction sets, gradients, determinism, training, files"
    add_command(commands, "selftest", summary, EXAMPLES).set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Run the checks, print each result at once, and raise if one fails."""
    build = ocdl.build_info()
    if not arguments.json:
        core = ", ".join(f"{name} {value}" for name, value in build.items())
        print(align({"ocdl": ocdl.__version__, "python": sys.version.split()[0], "core": core}), flush=True)
    results = []
    for name, check in CHECKS.items():
        passed, finding, seconds = _run_check(check)
        results.append({"check": name, "passed": passed, "finding": finding, "seconds": round(seconds, 2)})
        if not arguments.json:
            print(
                _format_result(name, "ok" if passed else "FAILED", f"{seconds:.1f} s", escape_unprintable(finding)),
                flush=True,
            )
    failed = [result["check"] for result in results if not result["passed"]]
    if arguments.json:
        report = {"version": ocdl.__version__, "python": sys.version.split()[0], "core": build}
        print(json_text(report | {"passed": not failed, "checks": results}))
    if failed:
        raise FailedError(f"{len(failed)} of {len(results)} checks failed: {', '.join(map(str, failed))}")


def _format_result(name: str, word: str, seconds: str, finding: str) -> str:
    if terminal_width() < WIDE:
        return f"{name} {word}, {seconds}\n{wrap_text(finding, '  ')}"
    return f"{name:<12}{word:<8}{seconds:>7}  {finding}"


def _run_check(check: Callable[[], str]) -> tuple[bool, str, float]:
    """Return whether a check passes, what it reports (or the exception), and its time."""
    started = time.perf_counter()
    try:
        passed, finding = True, check()
    except Exception as error:
        passed, finding = False, f"{type(error).__name__}: {error}"
    return passed, finding, time.perf_counter() - started
