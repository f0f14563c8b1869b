"""Comma-separated files, plain or packed by gzip: `csv` reads the header, pandas the rest.

pandas fills short rows with missing cells, and its errors name no line of the file. So the file is scanned again, to
name the line and the reason, if pandas fails or warns, or if a cell of the last column is missing. All columns are
parsed, because pandas does not count the cells of a row if it reads only some columns.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import sys
import warnings
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any

from ocdl.base.memory import format_bytes
from ocdl.base.names import pluralise
from ocdl.tables.dialect import MISSING, MISSING_LABELS, Dialect, detect_dialect
from ocdl.tables.frame import Cell, TableError, TableFrame, column_number

if TYPE_CHECKING:
    import pandas as pd

STDIN = "-"
BLOCK = 2**20
FRONT = 2**18  # bytes from which the dialect is detected
MAX_LINE = 2**22
LARGE = 20_000_000  # bytes from which on progress is shown
GZIP = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
END = "\0end"  # a line after the last one, which an open quotation mark swallows


@dataclass(frozen=True)
class CsvTable:
    """A comma-separated file whose header has been read; the contents of a pipe are kept in `content`."""

    path: str
    content: bytes | None
    dialect: Dialect
    start: int  # the byte at which the rows of data begin

    @classmethod
    def peek(cls, path: str, known: Collection[str] = (), label: int | None = None) -> CsvTable:
        """Read the first lines of a file, or of stdin for ``-``; `known` and `label` are those of `detect_dialect`."""
        content = sys.stdin.buffer.read() if path == STDIN else None
        if content is None:
            with open(path, "rb") as file:
                content = None if file.seekable() else file.read()
        try:
            with _open(path, content) as (stream, _):
                text, mark = _read_front(stream)
                dialect = detect_dialect(text, known, label)
                return cls(path, content, dialect, mark + dialect.start)
        except TableError as error:
            raise TableError(f"{_file_name(path)}: {error}") from error

    @property
    def source(self) -> str:
        """How messages begin."""
        return f"{_file_name(self.path)}: "

    @property
    def names(self) -> list[str]:
        """A name for every column."""
        return self.dialect.names

    @property
    def has_names(self) -> bool:
        """Whether the file has a header."""
        return self.dialect.header is not None

    @property
    def size(self) -> int:
        """The number of bytes, as they are stored."""
        return os.path.getsize(self.path) if self.content is None else len(self.content)

    def read(
        self,
        columns: Collection[int] | None = None,
        *,
        labels: Collection[int] = (),
        texts: Collection[int] = (),
        progress: bool = False,
    ) -> TableFrame:
        """Return the columns at these positions, or all.

        Labels and texts stay as they are written. Numbers are what Python reads, to the last bit; with pandas before
        3.1, those of a large file have 16 digits, which is more than twice as fast.
        """
        import pandas as pd

        names, width = self.names, self.dialect.width
        positions = list(range(width)) if columns is None else sorted({*columns})
        try:
            data = self._parse(labels, texts, progress)
        except TableError as error:
            raise TableError(f"{self.source}{error}") from error
        except (ValueError, pd.errors.ParserWarning) as error:
            if "out of memory" in str(error):
                name = _file_name(self.path)
                raise MemoryError(f"reading {name} takes several times its {format_bytes(self.size)}") from error
            reason = self._find_fault() or f"it cannot be read: {' '.join(str(error).split()):.200}"
            raise TableError(self.source + reason) from error
        if not len(data):
            raise TableError(self.source + ("it has a header, but no samples" if self.has_names else "it is empty"))
        if data[width - 1].isna().any():
            fault = self._find_fault()
            if fault is not None:
                raise TableError(self.source + fault)
        data = data[positions].set_axis([names[j] for j in positions], axis=1)
        unnamed = [name for name, title in zip(names, self.dialect.header or names, strict=True) if not title]
        return TableFrame(
            data,
            positions,
            width,
            self.source,
            has_names=self.has_names,
            unnamed=unnamed,
            decimal=self.dialect.decimal,
            first_row=self.dialect.lines_before + 1,
            locate=self.locate,
        )

    def _parse(self, labels: Collection[int], texts: Collection[int], progress: bool) -> pd.DataFrame:
        """Return all columns; their names are their positions."""
        import pandas as pd

        width = self.dialect.width
        missing: dict[Any, Any] = {j: MISSING_LABELS if j in labels else MISSING for j in range(width)}
        dtypes: dict[Any, Any] = dict.fromkeys((*labels, *texts), str)
        version = tuple(int(number) for number in pd.__version__.split(".")[:2])
        with _open(self.path, self.content) as (stream, raw_stream), warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            stream.seek(self.start)
            blocks: Any = _Blocks(stream, raw_stream, self if progress and self.size > LARGE else None)
            try:
                data: pd.DataFrame = pd.read_csv(
                    blocks,
                    sep=self.dialect.separator,
                    decimal=self.dialect.decimal,
                    header=None,
                    names=list(range(width)),
                    index_col=False,
                    dtype=dtypes,
                    keep_default_na=False,
                    na_values=missing,
                    skipinitialspace=True,
                    low_memory=False,  # the type of a column is inferred once, from all its cells
                    float_precision="round_trip" if version < (3, 1) and self.size <= LARGE else None,
                )
            finally:
                blocks.close()
        return data

    def _find_fault(self) -> str | None:
        """Return the first row that is wrong and why."""
        width = self.dialect.width
        try:
            for line, cells in self._rows():
                for reason, is_wrong in (("a NUL byte", _has_nul), ("bytes that are not UTF-8", _is_undecoded)):
                    if is_wrong("".join(cells)):
                        position = next((j for j, cell in enumerate(cells) if is_wrong(cell)), 0)
                        return f"row {line}, {column_number(position)} has {reason}{ADVICE[reason]}"
                if len(cells) != width:
                    columns = pluralise(len(cells), "column") if len(cells) > 1 else "one column"
                    return f"row {line} has {columns}, but row {self.dialect.first_line} has {width}"
        except TableError as error:
            return str(error)
        return None

    def locate(self, row: int, position: int) -> Cell:
        """Return a cell, given its row, counted from 0 without the header, and the position of its column."""
        first = self.dialect.lines_before + 1
        line, cells = next(islice(self._rows(), row, None), (first + row, []))
        return Cell(line, cells[position].strip() if position < len(cells) else "")

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows with the numbers of the lines that they end in, as `csv` reads them: slowly."""
        before = self.dialect.lines_before
        with _open(self.path, self.content) as (stream, _):
            stream.seek(self.start)
            text = io.TextIOWrapper(stream, "utf-8", errors="surrogateescape", newline="")
            reader = csv.reader(chain(text, [END]), delimiter=self.dialect.separator, skipinitialspace=True)
            last = 0
            try:
                for cells in reader:
                    if cells == [END]:
                        return
                    if cells and cells[-1].endswith(END):
                        raise TableError(f"row {before + last + 1} has a quotation mark that is never closed")
                    last = reader.line_num
                    if len(cells) > 1 or any(cell.strip() for cell in cells):
                        yield before + last, cells
            except csv.Error:  # a cell that is too long for csv, which pandas may read
                return
            finally:
                text.detach()


ADVICE = {
    "a NUL byte": "; it is not text in UTF-8",
    "bytes that are not UTF-8": "; iconv -f latin1 -t utf-8 converts the file",
}


class _Blocks:
    """What pandas reads from: blocks of valid UTF-8, with a progress bar for a large file."""

    def __init__(self, stream: IO[bytes], raw_stream: IO[bytes], shown: CsvTable | None) -> None:
        self._stream, self._stored, self._bar = stream, raw_stream, None
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        if shown is not None:
            from tqdm.auto import tqdm

            name = f"reading {_file_name(shown.path)}"
            self._bar = tqdm(total=shown.size, unit="B", unit_scale=True, desc=name, leave=False)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.read, b"")

    def read(self, size: int = -1) -> bytes:
        """Return the next block, whatever the size."""
        block = self._stream.read(BLOCK)
        self._decoder.decode(block, final=not block)
        if b"\0" in block:
            raise ValueError("it has a NUL byte")
        if self._bar is not None:
            self._bar.update(self._stored.tell() - self._bar.n)
        return block

    def close(self) -> None:
        """Remove the progress bar."""
        if self._bar is not None:
            self._bar.close()


@contextmanager
def _open(path: str, content: bytes | None) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open a file; give its text, unpacked if it is packed by gzip, and the file as it is stored."""
    with open(path, "rb") if content is None else io.BytesIO(content) as raw_stream:
        is_packed = raw_stream.read(len(GZIP)) == GZIP
        raw_stream.seek(0)
        stream: Any = gzip.GzipFile(fileobj=raw_stream) if is_packed else raw_stream
        try:
            yield stream, raw_stream
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise TableError(f"it is damaged: {error}") from error


def _read_front(stream: IO[bytes]) -> tuple[str, int]:
    """Return the first lines, at least one, and the length of the byte order mark before them."""
    mark = len(BYTE_ORDER_MARK) * (stream.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK)
    stream.seek(mark)
    front = stream.read(FRONT)
    is_whole = len(front) < FRONT
    while not is_whole and b"\n" not in front and b"\r" not in front:
        more = stream.read(FRONT)
        front, is_whole = front + more, not more
        if len(front) > MAX_LINE:
            raise TableError(f"row 1 is longer than {MAX_LINE} bytes")
    if not is_whole:
        front = front[: max(front.rfind(b"\n"), front.rfind(b"\r")) + 1]
    wrong, reason = front.find(b"\0"), "a NUL byte"
    if wrong < 0:
        try:
            return front.decode(), mark
        except UnicodeDecodeError as error:
            wrong, reason = error.start, "bytes that are not UTF-8"
    line = front.count(b"\n", 0, wrong) + 1
    raise TableError(f"row {line} has {reason}{ADVICE[reason]}")


def _file_name(path: str) -> str:
    return "stdin" if path == STDIN else path


def _has_nul(text: str) -> bool:
    return "\0" in text


def _is_undecoded(text: str) -> bool:
    return not text.isascii() and any("\udc80" <= letter <= "\udcff" for letter in text)
