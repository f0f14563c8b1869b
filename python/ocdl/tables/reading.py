"""Tables in files: `peek` finds their columns, `read` of what it returns gives the rows."""

from __future__ import annotations

import os
from collections.abc import Collection

from ocdl.tables.archives import ArrayTable
from ocdl.tables.csv_file import CsvTable
from ocdl.tables.parquet import PARQUET, ParquetTable

Table = CsvTable | ParquetTable | ArrayTable


def peek(path: str, known: Collection[str] = (), label: int | None = None, *, labelled: bool = True) -> Table:
    """Return a table whose columns are known and whose rows are still to be read.

    Parameters
    ----------
    path : str
        A CSV, Parquet or NPZ file; ``-`` is comma-separated text from stdin.
    known : collection of str
        Names by which a header is recognised.
    label : int, optional
        The position of the labels, which helps to recognise a header too; negative: from the end.
    labelled : bool
        Whether the labels of an NPZ file, the array y, are a column of the table.
    """
    ending = os.path.splitext(path)[1].lower()
    if ending == ".npz":
        return ArrayTable.peek(path, labelled=labelled)
    if ending in PARQUET:
        return ParquetTable.peek(path)
    return CsvTable.peek(path, known, label)
