"""NumPy archives as tables: the array X, of shape (samples, features), and y if there is one."""

from __future__ import annotations

import zipfile
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.base.names import pluralise
from ocdl.base.validation import FloatArray
from ocdl.tables.frame import TableError, TableFrame, column_numbers, join_names

LABELS = "y"


@dataclass(frozen=True, eq=False)
class ArrayTable:
    """Samples and their labels as a table without names; the column of the labels is called y and is the last."""

    X: FloatArray
    y: NDArray[Any] | None
    name: str
    has_names = False

    def __post_init__(self) -> None:
        if self.y is not None and len(self.X) != len(self.y):
            counts = f"X has {pluralise(len(self.X), 'sample')}, but y has {pluralise(len(self.y), 'label')}"
            raise TableError(f"{self.source}{counts}")

    @classmethod
    def peek(cls, path: str, *, labelled: bool = True) -> ArrayTable:
        """Read an archive, with its labels or without."""
        arrays = _read_arrays(path, ("X", LABELS) if labelled else ("X",))
        if "X" not in arrays:
            raise TableError(f"{path}: there is no array X; the arrays are {join_names(list(arrays)) or 'none'}")
        labels = _check_labels(arrays[LABELS], path) if labelled and LABELS in arrays else None
        return cls(_check_samples(arrays["X"], path), labels, path)

    @property
    def source(self) -> str:
        """How messages begin."""
        return f"{self.name}: "

    @property
    def names(self) -> list[str]:
        """A name for every column."""
        return column_numbers(self.X.shape[1]) + [LABELS] * (self.y is not None)

    def read(
        self,
        columns: Collection[int] | None = None,
        *,
        labels: Collection[int] = (),
        texts: Collection[int] = (),
        progress: bool = False,
    ) -> TableFrame:
        """Return the columns at these positions, or all; they keep the types of the arrays."""
        import pandas as pd

        data = pd.DataFrame(self.X, columns=column_numbers(self.X.shape[1]), copy=False)
        if self.y is not None:
            data[LABELS] = self.y
        width = data.shape[1]
        positions = list(range(width)) if columns is None else sorted({*columns})
        return TableFrame(data.iloc[:, positions], positions, width, self.source, has_names=False, first_row=1)


def _read_arrays(path: str, selected: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """Return the arrays that are wanted, and the names of the others."""
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            raise TableError(f"{path}: it is not an NPZ file, or it is truncated")
    arrays: dict[str, NDArray[Any]] = {}
    name = "it"
    try:
        with np.load(path, allow_pickle=False) as archive:
            for name in archive.files:
                array = archive[name] if name in selected else np.empty(0)
                if not isinstance(array, np.ndarray):  # a member that is no .npy file comes as bytes
                    raise TableError(f"{path}: {name} is not an array")
                arrays[name] = array
    except (TableError, MemoryError):
        raise
    except Exception as error:  # of zlib, of zipfile, and of NumPy's headers, which are read as Python is
        reason = "arrays of Python objects are not read" if "allow_pickle" in str(error) else f"damaged: {error}"
        raise TableError(f"{path}: {name}: {reason}") from error
    return arrays


def _check_samples(X: NDArray[Any], path: str) -> FloatArray:
    if X.ndim != 2 or X.dtype.kind not in "biuf" or 0 in X.shape:
        raise TableError(
            f"{path}: X must have numbers of shape (samples, features), it has {X.dtype} of shape {X.shape}"
        )
    rows = X.astype(np.float64)
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        row, column = bad[0].tolist()
        raise TableError(f"{path}: X, row {row + 1}, column {column + 1}: {rows[row, column]} is not finite")
    return rows


def _check_labels(y: NDArray[Any], path: str) -> NDArray[Any]:
    if y.ndim != 1 or y.dtype.kind not in "biufU" or not len(y):
        raise TableError(
            f"{path}: y must have numbers or text of shape (samples,), it has {y.dtype} of shape {y.shape}"
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise TableError(f"{path}: y must have whole numbers or text as labels, or measurements, all of them finite")
    return y
