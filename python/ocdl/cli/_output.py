"""What all commands share: how a mistake is reported and a result written."""

from __future__ import annotations

import argparse
import errno
import json
import os
from typing import Any

from ocdl.container import replace_file


class UserError(Exception):
    """A mistake of the user; the message is one line that says what is wrong."""


def add_command(
    commands: argparse._SubParsersAction[Any], name: str, summary: str, examples: str
) -> argparse.ArgumentParser:
    """Return the parser of a command, whose help ends with examples; it takes ``--json`` like all commands."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="write JSON, for machines")
    return parser


def json_text(value: object) -> str:
    """Return one line of JSON."""
    return json.dumps(value, allow_nan=False)


def aligned(lines: dict[str, object]) -> str:
    """Return lines of names and values, the values below each other."""
    width = max(map(len, lines)) + 2
    return "\n".join(f"{name:<{width}}{value}" for name, value in lines.items())


def require_place_for(path: str, *inputs: str) -> None:
    """Refuse to replace an input, and where a file can clearly not be written: before a long computation."""
    for name in inputs:
        if os.path.exists(path) and os.path.exists(name) and os.path.samefile(path, name):
            raise UserError(f"--out {path!r} would replace a file that is read")
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path) or not os.path.basename(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "There is no such folder", os.path.dirname(path))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def write_text(path: str, text: str) -> None:
    """Write a text file, whole or not at all."""
    replace_file(path, text.encode())
