"""How a comma-separated file is written: its separator, its decimal mark, and whether it has a header."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ocdl.tables.sheet import counted_names
from ocdl.tables.source import (
    BYTE_ORDER_MARK,
    COMMENT,
    LONGEST_LINE,
    Layout,
    Source,
    read_bytes,
    require_utf8,
    without_single_returns,
)

SEPARATORS = "\t;,|"  # in this order: with a semicolon between cells a comma can be a decimal mark
FRONT = 2**18  # bytes that are looked at
MOST_COLUMNS = 20_000
EXPONENT = "([eE][+-]?[0-9]+)?"
NUMBER = {
    ".": re.compile(rf"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+){EXPONENT}"),
    ",": re.compile(rf"[+-]?([0-9]+,?[0-9]*|,[0-9]+){EXPONENT}"),
}
FRACTION = {mark: re.compile(rf"[+-]?[0-9]*{re.escape(mark)}[0-9]+{EXPONENT}") for mark in NUMBER}
OTHER_MARK = {".": ",", ",": "."}  # which may stand between thousands
GROUPED = {
    mark: re.compile(rf"[+-]?[1-9][0-9]{{0,2}}({re.escape(other)}[0-9]{{3}})+({re.escape(mark)}[0-9]*)?")
    for mark, other in OTHER_MARK.items()
}
DATE = re.compile(r"[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T][0-9:.]+.*)?")
MISSING = (
    *("", "?", "NA", "Na", "na", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "NAN", "-NaN", "-nan"),
    *("NULL", "Null", "null", "None", "none", "NONE"),
)
MISSING_LABELS = tuple(text for text in MISSING if text.lower() != "none")  # which may well be a class
SOMETHING = re.compile(rf'[^\s"{SEPARATORS}]')  # beside blanks, quotation marks and what stands between cells
WITHOUT_NAME = re.compile(r"(Unnamed: [0-9]+)?")  # pandas calls a column without a name so


@dataclass(frozen=True)
class Dialect:
    """How a file is written. The names are None without a header; columns without a name have the empty one."""

    layout: Layout
    decimal: str
    names: list[str] | None

    def column_names(self) -> list[str]:
        """Return a name for every column, every name once."""
        counted = counted_names(self.layout.width)
        return [given or name for given, name in zip(self.names or counted, counted, strict=True)]


@dataclass(frozen=True)
class _Row:
    line: int  # that it ends in
    cells: list[str]


def detect(source: Source, known: Collection[str] = (), label: int | None = None) -> Dialect:
    """Return how a file is written. Names that are known make a header of the row that has them all.

    The column of the labels, where that is known, tells whether names that look like numbers are names.
    """
    front, only_returns = _front(source)
    front = front.replace(b"\r", b"\n") if only_returns else without_single_returns(front)
    text = require_utf8(source, front, 0)
    lines = io.StringIO(text, newline="\n").readlines()
    skipped = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")), 0)
    separator = _separator(lines[skipped:], text)
    rows = _rows(lines[skipped:], separator)
    _require_closed_quotes(source, lines[skipped:], separator, skipped, is_all=len(front) < FRONT)
    if not rows:
        raise source.error("row 1 has a cell that is too long" if SOMETHING.search(text) else "it is empty")
    width = len(rows[0].cells)
    if width > MOST_COLUMNS:
        raise source.error(f"row {skipped + rows[0].line} has {width} columns; {MOST_COLUMNS} are read at most")
    decimal = _decimal_mark(separator, rows)
    names, lines_before = None, skipped
    if _has_header(rows, label, known, decimal):
        names, lines_before = rows[0].cells, skipped + rows[0].line
    elif skipped:
        names = _in_comment(lines[skipped - 1], separator, rows, decimal)
    if names is not None:
        names = ["" if WITHOUT_NAME.fullmatch(name) else name for name in names]
        _require_distinct(source, names, lines_before)
    start = len("".join(lines[:lines_before]).encode()) + len(BYTE_ORDER_MARK) * _has_mark(source)
    return Dialect(Layout(separator, width, start, lines_before, skipped + rows[0].line, only_returns), decimal, names)


def _front(source: Source) -> tuple[bytes, bool]:
    """Return the first lines, at least one, and whether they end with a carriage return alone."""
    source.file.seek(len(BYTE_ORDER_MARK) * _has_mark(source))
    front = read_bytes(source, FRONT)
    is_all = len(front) < FRONT
    end = b"\r" if b"\n" not in front and b"\r" in front else b"\n"
    while not is_all and end not in front:
        more = read_bytes(source, FRONT)
        front, is_all = front + more, not more
        if len(front) > LONGEST_LINE:
            raise source.error(f"row 1 is longer than {LONGEST_LINE} bytes")
    if b"\0" in front:
        line = front.count(b"\n", 0, front.index(b"\0")) + 1
        reason = "it is no text in UTF-8" if front.startswith((b"\xff\xfe", b"\xfe\xff")) else "it is no text"
        raise source.error(f"row {line} has a NUL byte; {reason}")
    return front if is_all else front[: front.rfind(end) + 1], end == b"\r"


def _has_mark(source: Source) -> bool:
    source.file.seek(0)
    return read_bytes(source, len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK


def _separator(lines: Sequence[str], text: str) -> str:
    """Return the first mark that cuts every row into the same number of cells, else the first in the first row."""
    marks = [mark for mark in SEPARATORS if mark in text]
    for mark in marks:
        widths = {len(row.cells) for row in _rows(lines, mark)}
        if len(widths) == 1 and widths != {1}:
            return mark
    first = re.sub(r'"[^"]*"', "", next((line for line in lines if line.strip()), ""))
    return next((mark for mark in marks if mark in first), ",")


def _rows(lines: Sequence[str], separator: str) -> list[_Row]:
    """Return the rows of the first lines; comments and blank ones are left out."""
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    rows = []
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append(_Row(reader.line_num, [cell.strip() for cell in cells]))
    except csv.Error:  # a cell that is too long for csv, which pandas may read
        pass
    widths = [len(row.cells) for row in rows if not row.cells[0].startswith("#")]
    return [row for row in rows if not (row.cells[0].startswith("#") and widths and len(row.cells) != widths[0])]


def _require_closed_quotes(source: Source, lines: Sequence[str], separator: str, skipped: int, is_all: bool) -> None:
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    line = 1
    try:
        for _ in reader:
            line = reader.line_num + 1
    except csv.Error as error:
        if is_all and "end of data" in str(error):
            raise source.error(f"row {skipped + line} has a quotation mark that is never closed") from error


def _decimal_mark(separator: str, rows: list[_Row]) -> str:
    cells = [cell for row in rows for cell in row.cells]
    commas, dots = ([cell for cell in cells if FRACTION[mark].fullmatch(cell)] for mark in ",.")
    if separator == "," and all(GROUPED["."].fullmatch(cell) for cell in commas):
        return "."  # the commas, if there are any, stand between thousands
    return "," if len(commas) > len(dots) or (separator == ";" and not dots) else "."


def _has_header(rows: list[_Row], label: int | None, known: Collection[str], decimal: str) -> bool:
    """Return whether the first row has names: known ones, or nothing but text; some columns may lack a name.

    Names that are numbers are a header if the name of the labels is text, unlike the labels.
    """
    first = rows[0].cells
    if known and set(known) <= set(first):
        return True
    values = [bool(_is_number(cell, decimal) or DATE.fullmatch(cell) or cell in MISSING[1:]) for cell in first]
    if not any(values):
        return any(first)
    if label is None or not -len(first) <= label < len(first) or len(rows) == 1:
        return False
    if values[label] or not first[label] or sum(values) < len(first) - 1:
        return False
    return all(len(row.cells) == len(first) and _is_number(row.cells[label], decimal) for row in rows[1:])


def _is_number(cell: str, decimal: str) -> bool:
    return bool(NUMBER[decimal].fullmatch(cell) or GROUPED[decimal].fullmatch(cell))


def _in_comment(line: str, separator: str, rows: list[_Row], decimal: str) -> list[str] | None:
    """Return the names in a comment right before the first row, if there is one for every column."""
    cells = [cell.strip() for cell in line.split(separator)]
    if len(cells) < 2 or len(cells) != len(rows[0].cells) or not line.startswith(COMMENT.decode()):
        return None
    cells[0] = cells[0].lstrip("# ") or cells[0]
    return cells if _has_header([_Row(1, cells), *rows], None, (), decimal) else None


def _require_distinct(source: Source, names: list[str], line: int) -> None:
    given = [name for name in names if name]
    if len(set(given)) < len(given):
        seen: set[str] = set()
        twice = next(name for name in given if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise source.error(f"row {line}: the header has {twice!r:.80} twice")
