"""Functions that all commands share: options, messages, tables of text and output files."""

from __future__ import annotations

import argparse
import errno
import json
import math
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ocdl.base.names import NO_ALIASES, resolve_name, suggestion
from ocdl.cli._help import HelpFormatter
from ocdl.storage.disk import replace_file

PYTHON_SCALING = "scale them, for example with sklearn.preprocessing.StandardScaler in a pipeline"
WIDE = 60  # characters: a terminal that is narrower has no room for two columns of sentences


class UserError(Exception):
    """A mistake of the user; the message is one line that says what is wrong."""


class FailedError(Exception):
    """A check of the command has failed; the message is one line that says what failed."""


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
    parser.add_argument("--json", action="store_true", help="write JSON, for other programs")
    parser.set_defaults(command=name)
    return parser


def add_seed(parser: argparse._ActionsContainer) -> None:
    """Add the option ``--seed``."""
    seed = integer_parser(0, 2**32 - 1)
    parser.add_argument(
        "--seed", default=0, type=seed, metavar="N", help="the seed of all random numbers; default: %(default)s"
    )


def has_progress_bar(arguments: argparse.Namespace) -> bool:
    """Return whether to show progress: stderr is a terminal, and neither --quiet nor --json is given."""
    return not getattr(arguments, "quiet", False) and not arguments.json and sys.stderr.isatty()


def print_warnings(caught: Iterable[warnings.WarningMessage]) -> None:
    """Write each distinct warning as one line to stderr."""
    texts = (" ".join(str(warning.message).splitlines()) for warning in caught)
    for message in dict.fromkeys(text.replace(PYTHON_SCALING, "leave out --no-scaling") for text in texts):
        print(f"ocdl: warning: {escape_unprintable(message)}", file=sys.stderr)


def integer_parser(minimum: int, maximum: int) -> Callable[[str], int]:
    """Return the parser of an option that is a whole number in a range."""

    def read(text: str) -> int:
        if not text.isdecimal() or not minimum <= int(text) <= maximum:
            raise argparse.ArgumentTypeError(f"must be a whole number from {minimum} to {maximum}, got {text!r}")
        return int(text)

    return read


def parse_fraction(text: str) -> float:
    """Parse an option that is a share of the data."""
    value = parse_real(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 0 and below 1, got {text!r}")
    return value


def parse_positive(text: str) -> float:
    """Parse an option that is a positive number."""
    value = parse_real(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text!r}")
    return value


def parse_real(text: str) -> float:
    """Return the number that a text is, NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def name_parser(known: Iterable[str], aliases: Mapping[str, str] = NO_ALIASES) -> Callable[[str], str]:
    """Return the parser of an option that is one of these names, in any spelling that `validation.choice` accepts."""
    names = list(known)

    def read(text: str) -> str:
        name = resolve_name(text, names, aliases)
        if name is None:
            hint = suggestion(text, names, aliases)
            raise argparse.ArgumentTypeError(f"invalid choice: {text!r} (choose from {', '.join(names)}){hint}")
        return name

    return read


def json_text(value: object) -> str:
    """Return one line of JSON."""
    return json.dumps(value, allow_nan=False)


def align(lines: dict[str, object]) -> str:
    """Return lines of names and values, with the values in a column, or below their names in a narrow terminal."""
    width = max(map(len, lines)) + 2
    texts = {name: escape_unprintable(str(value)) for name, value in lines.items()}
    available = terminal_width()
    if available >= WIDE or all(width + len(value) <= available for value in texts.values()):
        return "\n".join(f"{name:<{width}}{value}" for name, value in texts.items())
    return "\n".join(f"{_wrap_name(name)}\n{wrap_text(value, '  ')}" for name, value in texts.items())


def _wrap_name(name: str) -> str:
    """Return a name, which may be indented, wrapped to the terminal."""
    text = name.lstrip()
    return wrap_text(text, name[: len(name) - len(text)])


def terminal_width() -> int:
    """Return the number of characters in a line: COLUMNS, or that of the terminal; without a terminal, no limit."""
    return shutil.get_terminal_size((sys.maxsize, 0)).columns


def wrap_text(text: str, indent: str) -> str:
    """Return a text, wrapped to the width of the terminal; words that are longer are not broken."""
    width = terminal_width()
    if len(indent) + len(text) <= width:
        return indent + text
    return textwrap.fill(
        text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def escape_unprintable(text: str) -> str:
    """Escape unprintable characters as Python does, so that a text cannot contain control sequences."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; all columns but the first are aligned right. If a line is too long, each row becomes a list."""
    lines = [header, *rows]
    widths = [max(len(line[j]) for line in lines) for j in range(len(header))]
    if sum(widths) + 2 * (len(header) - 1) > terminal_width():
        names = [f"  {name:<{max(map(len, header[1:]))}}" for name in header[1:]]
        blocks = [
            "\n".join(
                [wrap_text(row[0], ""), *(f"{name}  {cell}" for name, cell in zip(names, row[1:], strict=True) if cell)]
            )
            for row in rows
        ]
        return "\n".join([wrap_text(header[0], ""), *blocks] if header[0] else blocks)
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *(cell.rjust(widths[j]) for j, cell in enumerate(line[1:], 1))]).rstrip()
        for line in lines
    )


def require_place_for(path: str, *inputs: str) -> None:
    """Raise before a long computation if the file would replace an input or clearly cannot be written."""
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
    """Raise before a long computation if the folder, or files of these names in it, clearly cannot be created."""
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
def report_output_state(path: str | None) -> Iterator[None]:
    """Add to the message of Ctrl-C whether the output file was written; the file is never incomplete."""
    before = _stamp(path)
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if path is None:
            raise
        unchanged = "was not written" if before is None else "is unchanged"
        state = unchanged if _stamp(path) == before else "was written"
        raise KeyboardInterrupt(f"interrupted; {path!r} {state}") from interrupt


def _stamp(path: str | None) -> tuple[int, int] | None:
    if path is None or not os.path.exists(path):
        return None
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns


def write_text(path: str, text: str) -> None:
    """Write a text file atomically."""
    replace_file(path, text.encode())


def write_in_folder(folder: str, name: str, text: str) -> None:
    """Write a text file atomically into a folder, which is created if necessary."""
    is_new = not os.path.isdir(folder)
    if is_new:
        os.mkdir(folder)
    try:
        write_text(os.path.join(folder, name), text)
    except BaseException:
        if is_new:
            with suppress(OSError):
                os.rmdir(folder)
        raise


def _require_access(folder: str, path: str) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
