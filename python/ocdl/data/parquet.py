"""Rows of Parquet files, of which any range can be read; files are decoded a row group at a time."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ENDINGS = (".parquet", ".pq")


class RowGroup(NamedTuple):
    """A row group of a file, and the range of all rows that it holds."""

    path: str
    number: int
    first: int
    end: int


class ParquetFiles:
    """The row groups of several files, in their order; `schemas` are those of the files."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.groups: list[RowGroup] = []
        self.schemas: dict[str, Any] = {}
        self.n_rows = 0
        for path in paths:
            fragment = _open(path)
            self.schemas[path] = fragment.physical_schema
            for group in fragment.row_groups:
                self.groups.append(RowGroup(path, group.id, self.n_rows, self.n_rows + group.num_rows))
                self.n_rows += group.num_rows

    def find_groups(self, i: int, j: int) -> Iterator[tuple[RowGroup, slice]]:
        """Yield the row groups that hold rows i to j - 1, and where these are in the group."""
        for group in self.groups:
            if group.first < j and i < group.end:
                yield group, slice(max(i - group.first, 0), min(j, group.end) - group.first)


def read_row_group(group: RowGroup, columns: list[str] | None = None) -> Any:
    """Return a row group as a table of pyarrow, with these columns or all."""
    from pyarrow import ArrowException

    fragment = _open(group.path)
    try:
        table = fragment.subset(row_group_ids=[group.number]).to_table(columns=columns, use_threads=False)
    except (OSError, ValueError, IndexError, ArrowException) as error:
        raise ValueError(f"{group.path}: row group {group.number} cannot be read: {_reason(error)}") from error
    if table.num_rows != group.end - group.first:
        raise ValueError(
            f"{group.path}: the file has changed: row group {group.number} has {table.num_rows} rows instead of "
            f"{group.end - group.first}"
        )
    return table


class ParquetColumns:
    """X, y and, if there is such a column, weights in the columns of Parquet files."""

    def __init__(
        self, path: str, target: str | Sequence[str], features: Sequence[str] | None, sample_weight: str | None
    ) -> None:
        self.path, self._files = path, ParquetFiles(_paths(path))
        self.n_rows = self._files.n_rows
        first = next(iter(self._files.schemas.values())).names
        self._is_flat = isinstance(target, str)
        self._targets = [target] if isinstance(target, str) else list(target)
        self._weights = [] if sample_weight is None else [sample_weight]
        others = {*self._targets, *self._weights}
        self._features = [name for name in first if name not in others] if features is None else list(features)
        for file, schema in self._files.schemas.items():
            missing = [name for name in (*self._features, *others) if name not in schema.names]
            if missing:
                raise ValueError(f"{file}: it has no column {missing[0]!r}; its columns are {', '.join(schema.names)}")
        if not self._features:
            raise ValueError(f"{path}: there is no column for X besides the targets")
        self._last: tuple[RowGroup, tuple[NDArray[Any], ...]] | None = None

    def read(self, i: int, j: int) -> tuple[NDArray[Any], ...]:
        """Return the rows i to j - 1."""
        parts = [tuple(array[rows] for array in self._decode(group)) for group, rows in self._files.find_groups(i, j)]
        return parts[0] if len(parts) == 1 else tuple(map(np.concatenate, zip(*parts, strict=True)))

    def _decode(self, group: RowGroup) -> tuple[NDArray[Any], ...]:
        if self._last is None or self._last[0] != group:
            self._last = None  # frees its memory first
            table = read_row_group(group, [*self._features, *self._targets, *self._weights])
            y = _matrix(table, self._targets, group)
            arrays = [_matrix(table, self._features, group), y[:, 0] if self._is_flat else y]
            self._last = group, (*arrays, *(_matrix(table, [name], group)[:, 0] for name in self._weights))
        return self._last[1]


def _paths(path: str) -> list[str]:
    """Return the files of a path, a directory or a pattern, in the order of their names."""
    if os.path.isdir(path):
        files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
        files = [file for file in files if file.lower().endswith(ENDINGS)]
        if not files:
            raise FileNotFoundError(f"{path}: the directory has no files that end in {' or '.join(ENDINGS)}")
        return files
    files = [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
    if not files:
        raise FileNotFoundError(f"{path}: there is no such file")
    return files


def _open(path: str) -> Any:
    """Return a file as a fragment of a dataset of pyarrow."""
    with open(path, "rb"):  # raises an OSError that names the file
        pass
    try:
        from pyarrow import ArrowException
        from pyarrow.dataset import ParquetFileFormat
        from pyarrow.fs import LocalFileSystem
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install 'ocdl[parquet]'") from error
    try:
        fragment = ParquetFileFormat().make_fragment(os.path.abspath(path), LocalFileSystem())
        fragment.ensure_complete_metadata()
    except (OSError, ValueError, ArrowException) as error:
        raise ValueError(f"{path}: it is not a readable Parquet file: {_reason(error)}") from error
    return fragment


def _reason(error: Exception) -> str:
    return f"{' '.join(str(error).split()):.200}"


def _matrix(table: Any, names: list[str], group: RowGroup) -> NDArray[Any]:
    """Return columns side by side, in the one type that holds their numbers; missing ones are NaN."""
    columns = [table.column(name).to_numpy(zero_copy_only=False) for name in names]
    for name, column in zip(names, columns, strict=True):
        if column.dtype.kind not in "biuf":
            raise TypeError(
                f"{group.path}: the column {name!r} has type {table.column(name).type}, but must hold numbers"
            )
    matrix = np.empty((table.num_rows, len(names)), np.result_type(*columns))
    for j, column in enumerate(columns):
        matrix[:, j] = column
    return matrix
