"""A table in several Parquet files, of which some rows at a time are read."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ocdl.tables.reading import PARQUET, not_parquet
from ocdl.tables.sheet import Sheet, TableError, listed

if TYPE_CHECKING:
    import pandas as pd

PLACES, ROWS_AT_EACH = 32, 1024  # by which the whole table is known: evenly spaced


def is_pattern(path: str) -> bool:
    """Whether it stands for several Parquet files."""
    return glob.has_magic(path) and path.lower().endswith(PARQUET)


@dataclass(frozen=True)
class RowGroup:
    """Rows that a file holds together, and which of all rows they are."""

    path: str
    number: int
    first: int
    end: int


@dataclass(frozen=True)
class Parts:
    """The rows of all files that a pattern names, in the order of their names; every file has the same columns."""

    pattern: str
    groups: tuple[RowGroup, ...]
    columns: tuple[str, ...]

    @classmethod
    def found(cls, pattern: str) -> Parts:
        """Look at the files, and read none of their rows."""
        paths = sorted(glob.glob(pattern)) if glob.has_magic(pattern) else [pattern]
        if not paths:
            raise TableError(f"{pattern}: there are no such files")
        groups: list[RowGroup] = []
        columns: tuple[str, ...] = ()
        for path in paths:
            with _opened(path) as file:
                names = tuple(map(str, _framed(file.schema_arrow.empty_table(), path).columns))
                columns = columns or names
                if names != columns:
                    raise TableError(
                        f"{path}: its columns are {listed(names)}, those of {paths[0]} are {listed(columns)}"
                    )
                for number in range(file.metadata.num_row_groups):
                    first = groups[-1].end if groups else 0
                    groups.append(RowGroup(path, number, first, first + file.metadata.row_group(number).num_rows))
        if not groups or not groups[-1].end:
            raise TableError(f"{pattern}: there are no rows")
        return cls(pattern, tuple(groups), columns)

    @property
    def n_rows(self) -> int:
        return self.groups[-1].end

    def looked_at(self) -> Sheet:
        """Return rows from everywhere, all of them where there are few; they stand for the whole table."""
        if self.n_rows <= PLACES * ROWS_AT_EACH:
            return self.read([(0, self.n_rows)])
        firsts = [(self.n_rows - ROWS_AT_EACH) * place // (PLACES - 1) for place in range(PLACES)]
        return self.read([(first, first + ROWS_AT_EACH) for first in firsts])

    def read(self, runs: Sequence[tuple[int, int]]) -> Sheet:
        """Return runs of rows, from the first of each up to the second; messages count from the first of all."""
        import pandas as pd

        frames = [frame for begin, end in runs for frame in self._frames(begin, end)]
        frame = pd.concat(frames, ignore_index=True) if frames else self._nothing()
        frame.columns = pd.Index(self.columns)
        width = len(self.columns)
        return Sheet(frame, list(range(width)), width, f"{self.pattern}: ", first_row=runs[0][0] + 1 if runs else 1)

    def _frames(self, begin: int, end: int) -> list[pd.DataFrame]:
        found = []
        for group in self.groups:
            if group.first < end and begin < group.end:
                first, last = max(begin, group.first), min(end, group.end)
                found.append(_framed(_table(group).slice(first - group.first, last - first), group.path))
        return found

    def _nothing(self) -> pd.DataFrame:
        first = self.groups[0]
        return _framed(_table(first).slice(0, 0), first.path)


def _framed(table: Any, path: str) -> pd.DataFrame:
    """Return the columns without those that are pandas' index, as of a table in one file."""
    try:
        frame: pd.DataFrame = table.to_pandas()
    except Exception as error:
        raise not_parquet(path, error) from error
    return frame


def _opened(path: str) -> Any:
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise TableError(f"{path}: a Parquet file needs pyarrow: pip install 'ocdl[parquet]'") from error
    try:
        return ParquetFile(path)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise TableError(f"{path}: it is no Parquet file that can be read: {error!s:.200}") from error


def _table(group: RowGroup) -> Any:
    from pyarrow import ArrowException

    try:
        with _opened(group.path) as file:
            table = file.read_row_group(group.number)
    except (OSError, ValueError, ArrowException) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{group.path}: row group {group.number} cannot be read: {error!s:.200}") from error
    if table.num_rows != group.end - group.first:
        raise TableError(f"{group.path}: it has changed while it was read")
    return table
