"""The dialect of a comma-separated file: its separator, its decimal mark, and whether it has a header."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ocdl.tables.frame import TableError, column_numbers

SEPARATORS = "\t;,|"  # in this order: with a semicolon between cells a comma can be a decimal mark
MAX_COLUMNS = 20_000
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
AMOUNT = re.compile(r"([+-]?) ?[$€£¥₹]? ?([^$€£¥₹% ]+) ?([$€£¥₹%]?)")  # a sign, a currency, a number, a unit
INFINITE = ("inf", "infinity")
DATE = re.compile(r"[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T][0-9:.]+.*)?")
MISSING = (
    *("", "?", "NA", "Na", "na", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "NAN", "-NaN", "-nan"),
    *("NULL", "Null", "null", "None", "none", "NONE"),
)
MISSING_LABELS = tuple(text for text in MISSING if text.lower() != "none")  # which may be a class
WITHOUT_NAME = re.compile(r"(Unnamed: [0-9]+)?")  # what pandas writes for a column without a name


@dataclass(frozen=True)
class Dialect:
    """How a file is written.

    Attributes
    ----------
    separator, decimal : str
    width : int
        The number of columns.
    header : list of str or None
        The names; None without a header, and the empty text for a column without a name.
    first_line : int
        The line that the first row ends in: the header, or the first row of data.
    start, lines_before : int
        The byte at which the rows of data begin, not counting a byte order mark, and the lines before it.
    """

    separator: str
    decimal: str
    width: int
    header: list[str] | None
    first_line: int
    start: int
    lines_before: int

    @property
    def names(self) -> list[str]:
        """A name for every column; those without one are numbered."""
        numbers = column_numbers(self.width)
        return [name or number for name, number in zip(self.header or numbers, numbers, strict=True)]


def detect_dialect(text: str, known: Collection[str] = (), label: int | None = None) -> Dialect:
    """Return the dialect of a file whose first lines are `text`.

    A row with all `known` names is a header. The position of the labels, if given, helps to
    recognise names that look like numbers.
    """
    lines = list(io.StringIO(text, newline=""))
    separator = _detect_separator(lines, text)
    rows = _parse_rows(lines, separator)
    if not rows:
        raise TableError("row 1 has a cell that is too long" if text.strip(f'"\r\n {SEPARATORS}') else "it is empty")
    line, first = rows[0]
    if len(first) > MAX_COLUMNS:
        raise TableError(f"row {line} has {len(first)} columns; at most {MAX_COLUMNS} are read")
    cells = [cells for _, cells in rows]
    decimal = _detect_decimal_mark(separator, cells)
    header, lines_before = None, 0
    if _has_header(cells, label, known, decimal):
        header, lines_before = ["" if WITHOUT_NAME.fullmatch(name) else name for name in first], line
        duplicate = next((name for i, name in enumerate(header) if name and name in header[:i]), None)
        if duplicate is not None:
            raise TableError(f"row {line}: the header has {duplicate!r:.80} twice")
    start = len("".join(lines[:lines_before]).encode())
    return Dialect(separator, decimal, len(first), header, line, start, lines_before)


def _detect_separator(lines: Sequence[str], text: str) -> str:
    """Return the first mark that cuts every row into the same number of cells, else the first in the first row."""
    marks = [mark for mark in SEPARATORS if mark in text]
    for mark in marks:
        widths = {len(cells) for _, cells in _parse_rows(lines, mark)}
        if len(widths) == 1 and widths != {1}:
            return mark
    first = re.sub(r'"[^"]*"', "", next((line for line in lines if line.strip()), ""))
    return next((mark for mark in marks if mark in first), ",")


def _parse_rows(lines: Sequence[str], separator: str) -> list[tuple[int, list[str]]]:
    """Return the rows that are not blank, each with the line that it ends in."""
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    rows = []
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append((reader.line_num, [cell.strip() for cell in cells]))
    except csv.Error:  # a cell that is too long for csv, which pandas may read
        pass
    return rows


def _detect_decimal_mark(separator: str, rows: list[list[str]]) -> str:
    cells = [cell for row in rows for cell in row]
    commas, dots = ([cell for cell in cells if FRACTION[mark].fullmatch(cell)] for mark in ",.")
    if separator == "," and all(GROUPED["."].fullmatch(cell) for cell in commas):
        return "."  # the commas, if there are any, stand between thousands
    return "," if len(commas) > len(dots) or (separator == ";" and not dots) else "."


def _has_header(rows: list[list[str]], label: int | None, known: Collection[str], decimal: str) -> bool:
    """Whether the first row has names: known ones, or nothing but text; some columns may lack a name.

    Names that are numbers are a header if the name of the labels is text, unlike the labels.
    """
    first = rows[0]
    if known and set(known) <= set(first):
        return True
    values = [bool(_is_number(cell, decimal) or DATE.fullmatch(cell) or cell in MISSING[1:]) for cell in first]
    if not any(values):
        return any(first)
    if label is None or not -len(first) <= label < len(first) or len(rows) == 1:
        return False
    if values[label] or not first[label] or sum(values) < len(first) - 1:
        return False
    return all(len(row) == len(first) and _is_number(row[label], decimal) for row in rows[1:])


def _is_number(cell: str, decimal: str) -> bool:
    return math.isfinite(parse_number(cell, decimal))


def parse_number(text: str, decimal: str) -> float:
    """Return the number that a text is, NaN where it is none: ``$3,366.33`` is 3366.33, and ``32%`` is 0.32."""
    if GROUPED[decimal].fullmatch(text):
        text = text.replace(OTHER_MARK[decimal], "")
    if NUMBER[decimal].fullmatch(text):
        return float(text.replace(",", "."))
    amount = AMOUNT.fullmatch(text)
    if amount is not None and (bare := amount[1] + amount[2]) != text and not bare.startswith(("++", "+-", "--", "-+")):
        number = parse_number(bare, decimal)
        return number / 100 if amount[3] == "%" else number
    return math.inf if text.lower().lstrip("+-") in INFINITE else math.nan
