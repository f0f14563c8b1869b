"""Bytes of text files: opened so that they can be read twice, and cut into lines that are checked on their way.

A comma-separated file is looked at in blocks of whole lines before pandas sees them: it would fill a short row with
missing cells, stop at a NUL byte, and take a mark inside of a text for the start of a comment.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any

import numpy as np

from ocdl.base.validation import LabelArray
from ocdl.tables.sheet import Cell, TableError

STDIN = "-"
BLOCK = 2**20
LONGEST_LINE = 2**22
LARGE = 20_000_000  # bytes from which on reading is shown
GZIP = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
COMMENT = b"#"
SINGLE_RETURN = re.compile(rb"\r(?!\n)")
QUOTE = ord('"')


@dataclass(frozen=True)
class Source:
    """A file that can be read again from its start: `file` has what it says, `stored` the bytes on the disk."""

    name: str
    file: IO[bytes]
    stored: IO[bytes]
    path: str | None  # None: it came through a pipe

    @property
    def size(self) -> int:
        """The number of bytes on the disk."""
        return os.fstat(self.stored.fileno()).st_size

    def error(self, reason: str) -> TableError:
        """Return the error about this file."""
        return TableError(f"{self.name}: {reason}")


@contextmanager
def open_source(path: str) -> Iterator[Source]:
    """Open a file, or stdin for ``-``, unpacked where it is gzip's. What comes through a pipe is stored first."""
    with ExitStack() as stack:
        if path == STDIN:
            stored: IO[bytes] = sys.stdin.buffer
        else:
            stored = stack.enter_context(open(path, "rb"))
        is_pipe = path == STDIN or not stored.seekable()
        if is_pipe:
            spool = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(stored, spool)
            spool.seek(0)
            stored = spool
        packed = stored.read(len(GZIP)) == GZIP
        stored.seek(0)
        file: Any = stack.enter_context(gzip.GzipFile(fileobj=stored)) if packed else stored
        yield Source("stdin" if path == STDIN else path, file, stored, None if is_pipe else path)


def read_bytes(source: Source, size: int) -> bytes:
    """Return the next bytes of a file."""
    try:
        return source.file.read(size)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise source.error(f"it is damaged: {error}") from error


@dataclass(frozen=True)
class Layout:
    """How lines are cut into cells, and where the first row that is no header begins."""

    separator: str
    width: int
    start: int  # byte
    lines_before: int
    measured: int  # the row that the width was taken from
    only_returns: bool  # lines end as on an old Macintosh


class CheckedLines:
    """A file as pandas reads it: from its first row on, without comments, and every row of the same width."""

    def __init__(self, source: Source, layout: Layout, progress: bool) -> None:
        self._source, self._layout = source, layout
        self._rest, self._line, self._quotes = b"", layout.lines_before, 0
        self._is_at_end = self._is_verified = False
        self._bar: Any = None
        source.file.seek(layout.start)
        if progress and source.size > LARGE:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=source.size, unit="B", unit_scale=True, desc=f"reading {source.name}", leave=False)

    def close(self) -> None:
        """Take the progress line away."""
        if self._bar is not None:
            self._bar.close()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.read, b"")

    def read(self, size: int = -1) -> bytes:
        """Return the next lines, about a megabyte of them whatever the size; nothing at the end."""
        while not self._is_at_end:
            block = self._checked(self._whole_lines())
            if block:
                return block
        return b""

    def _whole_lines(self) -> bytes:
        block = read_bytes(self._source, BLOCK)
        if self._bar is not None:
            self._bar.update(self._source.stored.tell() - self._bar.n)
        if self._layout.only_returns:
            block = block.replace(b"\r", b"\n")
        self._is_at_end = not block
        block = self._rest + (block or b"\n" * bool(self._rest))
        end = block.rfind(b"\n") + 1
        self._rest = block[end:]
        if len(self._rest) > LONGEST_LINE:
            line = self._line + block.count(b"\n") + 1
            raise self._source.error(f"row {line} is longer than {LONGEST_LINE} bytes")
        return without_single_returns(block[:end])

    def _checked(self, block: bytes) -> bytes:
        if b"\0" in block:
            line = self._line + block.count(b"\n", 0, block.index(b"\0")) + 1
            raise self._source.error(f"row {line} has a NUL byte; it is no text")
        require_utf8(self._source, block, self._line)
        codes = np.frombuffer(block, np.uint8)
        ends, separators = np.flatnonzero(codes == 10), np.flatnonzero(codes == ord(self._layout.separator))
        line = self._line
        self._line += len(ends)
        lines = np.arange(line + 1, self._line + 1)
        if QUOTE in block:
            ends, separators, lines = self._outside_of_quotes(np.flatnonzero(codes == QUOTE), ends, separators, lines)
        elif self._quotes % 2:
            return block  # all of it is inside of one cell
        counts = np.diff(np.searchsorted(separators, ends), prepend=0) + 1
        wrong = np.flatnonzero(counts != self._layout.width)
        return self._without_comments(block, ends, lines, counts, wrong) if len(wrong) else block

    def _outside_of_quotes(
        self, quotes: LabelArray, ends: LabelArray, separators: LabelArray, lines: LabelArray
    ) -> tuple[LabelArray, LabelArray, LabelArray]:
        """Return those that an even number of quotation marks stands before."""
        before = self._quotes
        self._quotes += len(quotes)
        outside, between = ((_counted_before(places, quotes) + before) % 2 == 0 for places in (ends, separators))
        return ends[outside], separators[between], lines[outside]

    def _without_comments(
        self, block: bytes, ends: LabelArray, lines: LabelArray, counts: LabelArray, wrong: LabelArray
    ) -> bytes:
        """Return the block without those lines of another width that are comments or blank; the others are errors."""
        kept, start = [], 0
        for i in wrong.tolist():
            first, last = int(ends[i - 1]) + 1 if i else 0, int(ends[i]) + 1
            row = block[first:last].strip()
            if row and not row.startswith(COMMENT):
                self._require_width(int(lines[i]), int(counts[i]))
                continue
            kept.append(block[start:first])
            start = last
        return b"".join([*kept, block[start:]])

    def _require_width(self, line: int, count: int) -> None:
        """Complain about a row, unless it only seems wrong because of a quotation mark in the middle of a cell."""
        if self._is_verified:
            return
        if self._quotes:
            place = self._source.file.tell()
            rows = rows_of(self._source, self._layout)
            line, count = next(((n, len(cells)) for n, cells in rows if len(cells) != self._layout.width), (0, 0))
            self._source.file.seek(place)
            if not line:
                self._is_verified = True
                return
        columns = f"{count} columns" if count > 1 else "one column"
        raise self._source.error(f"row {line} has {columns}, but row {self._layout.measured} has {self._layout.width}")


def _counted_before(places: LabelArray, marks: LabelArray) -> LabelArray:
    """Return how many of the marks stand before each place; there are fewer marks to search for than places."""
    counts: LabelArray = np.bincount(np.searchsorted(places, marks), minlength=len(places) + 1)
    return np.cumsum(counts)[:-1]


def without_single_returns(lines: bytes) -> bytes:
    """Return lines with a blank for every carriage return inside of them, which pandas would take for their end."""
    if b"\r" not in lines or lines.count(b"\r") == lines.count(b"\r\n"):  # pairs are counted slowly
        return lines
    return SINGLE_RETURN.sub(b" ", lines)


def require_utf8(source: Source, block: bytes, lines_before: int) -> str:
    """Return lines as text, or say which one is none."""
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        line = lines_before + block.count(b"\n", 0, error.start) + 1
        raise source.error(
            f"row {line}: it is no text in UTF-8; iconv -f latin1 -t utf-8 converts what Windows wrote"
        ) from error


def rows_of(source: Source, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with the numbers of the lines that they end in: slowly, as Python reads them."""
    source.file.seek(layout.start)
    newline = None if layout.only_returns else ""
    text = io.TextIOWrapper(source.file, "utf-8", errors="replace", newline=newline)
    try:
        reader = csv.reader(text, delimiter=layout.separator, skipinitialspace=True)
        for cells in reader:
            is_comment = bool(cells) and cells[0].startswith("#") and len(cells) != layout.width
            if cells and not is_comment and (len(cells) > 1 or layout.width == 1 or cells[0].strip()):
                yield layout.lines_before + reader.line_num, cells
    except csv.Error as error:
        raise source.error(f"row {layout.lines_before + reader.line_num}: {error}") from error
    finally:
        text.detach()


def cell_of(path: str, layout: Layout, row: int, column: int) -> Cell:
    """Return a cell of a file, given its row, counted from 0 without the header, and its column."""
    with open_source(path) as source:
        line, cells = next(islice(rows_of(source, layout), row, None), (layout.lines_before + row + 1, []))
    return Cell(line, cells[column].strip() if column < len(cells) else "")
