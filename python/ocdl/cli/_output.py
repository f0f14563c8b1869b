"""What all commands share: how a mistake is reported and a result written."""

from __future__ import annotations

import argparse
import errno
import json
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ocdl.base.names import NO_ALIASES, did_you_mean, meant
from ocdl.cli._help import HelpFormatter
from ocdl.storage.disk import replace_file

WIDE = 60  # characters: a terminal that is narrower has no room for two columns of sentences


class UserError(Exception):
    """A mistake of the user; the message is one line that says what is wrong."""


class FailedError(Exception):
    """What was asked for was done, and the answer is no; the message is one line that says what failed."""


def add_command(
    commands: argparse._SubParsersAction[Any], name: str, summary: str, examples: str
) -> argparse.ArgumentParser:
    """Return the parser of a command, whose help ends with examples; it takes ``--json`` like all commands."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"examples:\n{examples}",
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="write JSON, for machines")
    parser.set_defaults(command=name)
    return parser


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--seed``."""
    seed = whole_number(0, 2**32 - 1)
    parser.add_argument("--seed", default=0, type=seed, metavar="N", help="of everything random (%(default)s)")


def shows_progress(arguments: argparse.Namespace) -> bool:
    """Return whether somebody looks on who wants to know how far a command is."""
    return not getattr(arguments, "quiet", False) and not arguments.json and sys.stderr.isatty()


def print_warnings(caught: Iterable[warnings.WarningMessage]) -> None:
    """Write each warning as one line to stderr, none of them twice."""
    for message in dict.fromkeys(" ".join(str(warning.message).splitlines()) for warning in caught):
        print(f"ocdl: warning: {printable(message)}", file=sys.stderr)


def whole_number(least: int, greatest: int) -> Callable[[str], int]:
    """Return what reads an option that is a whole number in a range."""

    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= greatest:
            raise argparse.ArgumentTypeError(f"must be a whole number from {least} to {greatest}, got {text!r}")
        return int(text)

    return read


def name_among(known: Iterable[str], aliases: Mapping[str, str] = NO_ALIASES) -> Callable[[str], str]:
    """Return what reads an option that is one of these names, spelled as `validation.choice` takes it."""
    names = list(known)

    def read(text: str) -> str:
        found = meant(text, names, aliases)
        if found is None:
            hint = did_you_mean(text, names, aliases)
            raise argparse.ArgumentTypeError(f"invalid choice: {text!r} (choose from {', '.join(names)}){hint}")
        return found

    return read


def json_text(value: object) -> str:
    """Return one line of JSON."""
    return json.dumps(value, allow_nan=False)


def aligned(lines: dict[str, object]) -> str:
    """Return lines of names and values, the values below each other; in a narrow terminal below their names."""
    width = max(map(len, lines)) + 2
    shown = {name: printable(str(value)) for name, value in lines.items()}
    room = terminal_width()
    if room >= WIDE or all(width + len(value) <= room for value in shown.values()):
        return "\n".join(f"{name:<{width}}{value}" for name, value in shown.items())
    return "\n".join(f"{_indented(name)}\n{wrapped(value, '  ')}" for name, value in shown.items())


def _indented(name: str) -> str:
    """Return a name that may have an indent, in as many lines as it takes."""
    text = name.lstrip()
    return wrapped(text, name[: len(name) - len(text)])


def terminal_width() -> int:
    """Return how many characters a line has room for: COLUMNS, or what the terminal says; elsewhere any number."""
    return shutil.get_terminal_size((sys.maxsize, 0)).columns


def wrapped(text: str, indent: str) -> str:
    """Return a text in lines that the terminal has room for, all but words that are longer than that."""
    room = terminal_width()
    if len(indent) + len(text) <= room:
        return indent + text
    return textwrap.fill(
        text, room, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def printable(text: str) -> str:
    """Return a text that a terminal shows and does not obey: what is not printable is written as in Python."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def in_columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; all columns but the first are flush right. Where a line is too long, each row is a list."""
    lines = [header, *rows]
    widths = [max(len(line[j]) for line in lines) for j in range(len(header))]
    if sum(widths) + 2 * (len(header) - 1) > terminal_width():
        names = [f"  {name:<{max(map(len, header[1:]))}}" for name in header[1:]]
        blocks = [
            "\n".join(
                [wrapped(row[0], ""), *(f"{name}  {cell}" for name, cell in zip(names, row[1:], strict=True) if cell)]
            )
            for row in rows
        ]
        return "\n".join([wrapped(header[0], ""), *blocks] if header[0] else blocks)
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *(cell.rjust(widths[j]) for j, cell in enumerate(line[1:], 1))]).rstrip()
        for line in lines
    )


def require_place_for(path: str, *inputs: str) -> None:
    """Refuse to replace an input, and where a file can clearly not be written: before a long computation."""
    for name in inputs:
        if os.path.exists(path) and os.path.exists(name) and os.path.samefile(path, name):
            raise UserError(f"{path!r} would replace a file that is read")
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path) or not os.path.basename(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "There is no such folder", os.path.dirname(path))
    _require_access(folder, path)


def require_folder_for(folder: str, *names: str) -> None:
    """Refuse a folder that can clearly not be made, or not hold files of these names: before a long computation."""
    if os.path.isdir(folder):
        for name in names:
            require_place_for(os.path.join(folder, name))
        return
    if os.path.lexists(folder) or not folder:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
    parent = os.path.dirname(os.path.abspath(folder))
    if not os.path.isdir(parent):
        raise FileNotFoundError(errno.ENOENT, "There is no such folder", os.path.dirname(folder))
    _require_access(parent, folder)


@contextmanager
def telling_what_became_of(path: str | None) -> Iterator[None]:
    """Let Ctrl-C say whether the file of a command was written; it is whole in any case."""
    before = _stamp(path)
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if path is None:
            raise
        as_it_was = "was not written" if before is None else "is as it was"
        state = as_it_was if _stamp(path) == before else "was written"
        raise KeyboardInterrupt(f"interrupted; {path!r} {state}") from interrupt


def _stamp(path: str | None) -> tuple[int, int] | None:
    if path is None or not os.path.exists(path):
        return None
    found = os.stat(path)
    return found.st_ino, found.st_mtime_ns


def write_text(path: str, text: str) -> None:
    """Write a text file, whole or not at all."""
    replace_file(path, text.encode())


def write_in_folder(folder: str, name: str, text: str) -> None:
    """Write a text file into a folder, which is made if need be; whole or not at all."""
    made = not os.path.isdir(folder)
    if made:
        os.mkdir(folder)
    try:
        write_text(os.path.join(folder, name), text)
    except BaseException:
        if made:
            with suppress(OSError):
                os.rmdir(folder)
        raise


def _require_access(folder: str, path: str) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
