"""Tables in Parquet files: in one, or in several that a pattern names, of which any range of rows can be read."""

from __future__ import annotations

import glob
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ocdl.data.parquet import ParquetFiles, read_row_group
from ocdl.tables.frame import TableError, TableFrame, join_names

if TYPE_CHECKING:
    import pandas as pd

Argument = TypeVar("Argument")
Read = TypeVar("Read")

PARQUET = (".parquet", ".pq")
SAMPLED_RANGES, ROWS_PER_RANGE = 32, 1024  # evenly spaced rows that stand for the whole table


def is_pattern(path: str) -> bool:
    """Whether a path stands for several Parquet files."""
    return glob.has_magic(path) and path.lower().endswith(PARQUET)


@dataclass(frozen=True)
class ParquetTable:
    """The rows of all files that a pattern names, in the order of their names; every file has the same columns."""

    pattern: str
    files: ParquetFiles
    names: list[str]
    has_names = True

    @classmethod
    def peek(cls, pattern: str) -> ParquetTable:
        """Read the columns of the files and how many rows they have."""
        paths = sorted(glob.glob(pattern)) if is_pattern(pattern) else [pattern]
        if not paths:
            raise TableError(f"{pattern}: there are no such files")
        files = _with_table_errors(ParquetFiles, paths)
        names: list[str] = []
        for path, schema in files.schemas.items():
            columns = [str(name) for name in _to_pandas(schema.empty_table(), path).columns]
            names = names or columns
            if columns != names:
                raise TableError(
                    f"{path}: its columns are {join_names(columns)}, those of {paths[0]} are {join_names(names)}"
                )
            if len(set(names)) < len(names):
                raise TableError(f"{path}: it has two columns of the same name")
        if not files.n_rows:
            raise TableError(f"{pattern}: there are no rows")
        return cls(pattern, files, names)

    @property
    def source(self) -> str:
        """How messages begin."""
        return f"{self.pattern}: "

    @property
    def n_rows(self) -> int:
        """The number of rows of all files."""
        return self.files.n_rows

    def read(
        self,
        columns: Collection[int] | None = None,
        *,
        labels: Collection[int] = (),
        texts: Collection[int] = (),
        progress: bool = False,
    ) -> TableFrame:
        """Return the columns at these positions, or all; they keep the types that they have in the file."""
        return self.read_rows([(0, self.n_rows)], columns)

    def read_sample(self) -> TableFrame:
        """Return evenly spaced rows that stand for the whole table, all of them if there are few."""
        if self.n_rows <= SAMPLED_RANGES * ROWS_PER_RANGE:
            return self.read()
        firsts = [(self.n_rows - ROWS_PER_RANGE) * i // (SAMPLED_RANGES - 1) for i in range(SAMPLED_RANGES)]
        return self.read_rows([(first, first + ROWS_PER_RANGE) for first in firsts])

    def read_rows(self, ranges: Sequence[tuple[int, int]], columns: Collection[int] | None = None) -> TableFrame:
        """Return ranges of rows, each from its first up to its end; messages count from the first of all."""
        import pandas as pd

        frames = [
            _to_pandas(_with_table_errors(read_row_group, group)[rows], group.path)
            for first, end in ranges
            for group, rows in self.files.find_groups(first, end)
        ]
        data = pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0].reset_index(drop=True)
        data.columns = pd.Index(self.names)
        positions = list(range(len(self.names))) if columns is None else sorted({*columns})
        first_row = ranges[0][0] + 1
        return TableFrame(data.iloc[:, positions], positions, len(self.names), self.source, first_row=first_row)


def _to_pandas(table: Any, path: str) -> pd.DataFrame:
    """Return the columns without those that are pandas' index.

    What a file says of itself to pandas can fail in any way. Where memory is short, that error is raised as it is,
    unless the file asks for more memory than any machine has.
    """
    from pyarrow import ArrowException

    try:
        data: pd.DataFrame = table.to_pandas()
    except Exception as error:
        if isinstance(error, MemoryError) and not isinstance(error, ArrowException):
            raise
        reason = " ".join(str(error).split())
        raise TableError(f"{path}: it is not a readable Parquet file: {reason:.200}") from error
    return data


def _with_table_errors(function: Callable[[Argument], Read], argument: Argument) -> Read:
    try:
        return function(argument)
    except (ImportError, ValueError) as error:
        raise TableError(str(error)) from error
