"""Columns of Parquet files as rows of numbers, a row group at a time."""

from __future__ import annotations

import glob
import os
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ENDINGS = (".parquet", ".pq")


class _Group(NamedTuple):
    """A row group: where it is, and which of all rows are in it."""

    path: str
    number: int
    first: int
    end: int


class ParquetFiles:
    """The rows of all files that a path names: X, y and, where there is such a column, weights."""

    def __init__(
        self, path: str, target: str | Sequence[str], features: Sequence[str] | None, sample_weight: str | None
    ) -> None:
        self.path = path
        targets = [target] if isinstance(target, str) else list(target)
        self._groups: list[_Group] = []
        self._last: tuple[_Group, tuple[NDArray[Any], ...]] | None = None
        rows = 0
        columns: list[str] = []
        for file in _files(path):
            metadata, names = _opened(file)
            columns = columns or names
            aside = {*targets, *([] if sample_weight is None else [sample_weight])}
            chosen = [name for name in columns if name not in aside] if features is None else list(features)
            self._columns = chosen, targets, sample_weight
            self._flat = isinstance(target, str)
            missing = [name for name in (*chosen, *aside) if name not in names]
            if missing:
                raise ValueError(f"{file}: it has no column {missing[0]!r}; its columns are {', '.join(names)}")
            for number in range(metadata.num_row_groups):
                count = metadata.row_group(number).num_rows
                if count:
                    self._groups.append(_Group(file, number, rows, rows + count))
                    rows += count
        if not chosen:
            raise ValueError(f"{path}: beside the targets there is no column for X")
        self.n_rows = rows

    def read(self, i: int, j: int) -> tuple[NDArray[Any], ...]:
        """Return the rows i to j - 1."""
        first = bisect_right([group.end for group in self._groups], i)
        parts = []
        for group in self._groups[first:]:
            if group.first >= j:
                break
            rows = slice(max(i - group.first, 0), j - group.first)
            parts.append(tuple(part[rows] for part in self._decoded(group)))
        return parts[0] if len(parts) == 1 else tuple(map(np.concatenate, zip(*parts, strict=True)))

    def _decoded(self, group: _Group) -> tuple[NDArray[Any], ...]:
        if self._last is not None and self._last[0] == group:
            return self._last[1]
        self._last = None
        import pyarrow
        from pyarrow.parquet import ParquetFile

        features, targets, weight = self._columns
        wanted = [*features, *targets, *([] if weight is None else [weight])]
        try:
            with ParquetFile(group.path) as file:
                table = file.read_row_group(group.number, columns=wanted)
        except (OSError, ValueError, pyarrow.ArrowException) as error:
            raise ValueError(f"{group.path}: row group {group.number} cannot be read: {error!s:.300}") from error
        if table.num_rows != group.end - group.first:
            raise ValueError(
                f"{group.path}: row group {group.number} has {table.num_rows} rows where there were "
                f"{group.end - group.first}; the file has changed"
            )
        y = _matrix(table, targets, group)
        found = [_matrix(table, features, group), y[:, 0] if self._flat else y]
        if weight is not None:
            found.append(_matrix(table, [weight], group)[:, 0])
        self._last = group, tuple(found)
        return self._last[1]


def _files(path: str) -> list[str]:
    if os.path.isdir(path):
        found = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
        files = sorted(file for file in found if file.lower().endswith(ENDINGS))
        if not files:
            raise FileNotFoundError(f"{path}: the directory has no files that end in {' or '.join(ENDINGS)}")
        return files
    if os.path.exists(path):
        return [path]
    files = sorted(glob.glob(path, recursive=True))
    if not files:
        raise FileNotFoundError(f"{path}: there is no such file")
    return files


def _opened(path: str) -> tuple[Any, list[str]]:
    """Return what a file says of its row groups, and the names of its columns."""
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install 'ocdl[parquet]'") from error
    try:
        with ParquetFile(path) as file:
            return file.metadata, list(file.schema_arrow.names)
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(f"{path}: it is no Parquet file that can be read: {error!s:.300}") from error


def _matrix(table: Any, names: list[str], group: _Group) -> NDArray[Any]:
    """Return columns side by side, in the one type that holds their numbers; missing ones are NaN."""
    columns = [table.column(name).to_numpy(zero_copy_only=False) for name in names]
    for name, column in zip(names, columns, strict=True):
        if column.dtype.kind not in "biuf":
            raise TypeError(
                f"{group.path}: the column {name!r} has {table.column(name).type}; columns of numbers are needed"
            )
    matrix = np.empty((table.num_rows, len(names)), np.result_type(*columns))
    for j, column in enumerate(columns):
        matrix[:, j] = column
    return matrix
