"""``ocdl info``: what is installed."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import version
from typing import Any

import ocdl
from ocdl.cli._output import add_command, align, json_text

EXAMPLES = """\
  ocdl info
  ocdl info --json"""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    add_command(commands, "info", "show versions, the compiled core and the threads", EXAMPLES).set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print versions, how the core was built, and how many threads it may use."""
    report = {
        "version": ocdl.__version__,
        "core": ocdl.build_info(),
        "threads": ocdl.get_num_threads(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scikit-learn": version("scikit-learn"),
    }
    if arguments.json:
        print(json_text(report))
        return
    core = ", ".join(f"{name} {value}" for name, value in ocdl.build_info().items())
    print(align(report | {"core": core}))
