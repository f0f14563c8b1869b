"""The command line, ``ocdl``: a module for each of its commands."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

import ocdl
from ocdl import _core
from ocdl.base.memory import format_bytes
from ocdl.base.names import suggestion
from ocdl.cli import (
    demo,
    dynamics,
    export,
    info,
    inspect,
    playground,
    predict,
    reproduce,
    score,
    selftest,
    simulate,
    train,
)
from ocdl.cli._help import HelpFormatter
from ocdl.cli._interrupts import reraise_swallowed_interrupts
from ocdl.cli._limit import require_room
from ocdl.cli._output import FailedError, UserError, escape_unprintable
from ocdl.storage.container import ModelFileError
from ocdl.tables.frame import TableError

__all__ = ["main"]

COMMANDS = (demo, playground, train, predict, score, dynamics, simulate, inspect, export, reproduce, info, selftest)
EXAMPLES = """\
examples:
  ocdl demo
  ocdl train --data spiral --out spiral.ocdl
  ocdl predict spiral.ocdl points.csv
  ocdl score iris.ocdl new.csv"""
FOREIGN_OPTIONS = {
    "output": "--out",
    "input": "--data",
    "label": "--target",
    "epochs": "--max-iter",
    "learning-rate": "--lr",
}
# Exit codes; the shell uses 128 + 2 after SIGINT and 128 + 13 after SIGPIPE.
FAILED, MISTAKE, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 1 (a check fails), 2 (a mistake of the user), 130 (Ctrl-C).

    A mistake of the user is reported in one line on stderr. An error in ocdl itself keeps its traceback.
    """
    _escape_unencodable_output()
    try:
        return _run(argv)
    except BrokenPipeError:
        code = BROKEN_PIPE
    except KeyboardInterrupt as interrupt:
        _print_error(str(interrupt) or "interrupted")
        code = INTERRUPTED
    except FailedError as error:
        _print_error(str(error))
        code = FAILED
    except (UserError, ModelFileError, TableError) as error:
        _print_error(f"error: {error}")
        code = MISTAKE
    except OSError as error:
        name = f": {os.fsdecode(error.filename)!r}" if isinstance(error.filename, (str, bytes)) else ""
        _print_error(f"error: {error.strerror or error}{name}")
        code = MISTAKE
    except MemoryError as error:
        _print_error(f"error: not enough memory: {str(error) or f'{format_bytes(_core.available_memory())} are left'}")
        code = MISTAKE
    _replace_broken_stdout()
    return code


def _run(argv: Sequence[str] | None) -> int:
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as done:  # after --help and --version
        sys.stdout.flush()
        return int(done.code or 0)
    require_room(arguments)
    reraise_swallowed_interrupts(arguments.run)(arguments)
    sys.stdout.flush()  # a full disk or a closed pipe raises here, and is reported
    return 0


class _Parser(argparse.ArgumentParser):
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse unknown options in the parser of the command, so that its own options can be suggested."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            option = unknown[0].partition("=")[0]
            hint = suggestion(option, self._option_string_actions, FOREIGN_OPTIONS)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="ocdl",
        description="Deep learning as optimal control: train a network, use it, inspect it.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"ocdl {ocdl.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    return parser


def _print_error(message: str) -> None:
    print("ocdl:", escape_unprintable(" ".join(message.splitlines())), file=sys.stderr)


def _escape_unencodable_output() -> None:
    r"""Write characters that stdout or stderr cannot encode as ``\xe9``, instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _replace_broken_stdout() -> None:
    """Replace a broken stdout, so that Python raises no second error when it flushes it on exit."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
