"""NumPy's archives as tables: the array X, of shape (samples, features), and y where it is."""

from __future__ import annotations

import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.base.names import counted
from ocdl.base.validation import FloatArray
from ocdl.tables.sheet import Sheet, TableError, counted_names, listed

LABELS = "y"


def read_npz(path: str, *, labelled: bool = True) -> Sheet:
    """Return the table of an archive; the column of the labels, if there is one, is called y and is the last."""
    arrays = _arrays(path, ("X", LABELS) if labelled else ("X",))
    if "X" not in arrays:
        raise TableError(f"{path}: it has no array X; it has {listed(list(arrays)) or 'none'}")
    labels = _labels(arrays[LABELS], path) if labelled and LABELS in arrays else None
    return sheet_of(_samples(arrays["X"], path), labels, path)


def sheet_of(rows: FloatArray, labels: NDArray[Any] | None, source: str) -> Sheet:
    """Return samples and their labels as a table without names."""
    import pandas as pd

    if labels is not None and len(rows) != len(labels):
        raise TableError(f"{source}: X has {counted(len(rows), 'sample')}, but y has {counted(len(labels), 'label')}")
    frame = pd.DataFrame(rows, columns=counted_names(rows.shape[1]), copy=False)
    if labels is not None:
        frame[LABELS] = labels
    width = frame.shape[1]
    return Sheet(frame, list(range(width)), width, f"{source}: ", named=False, first_row=1)


def _arrays(path: str, wanted: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """Return the arrays that are wanted, and the names of the others."""
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            raise TableError(f"{path}: it is no NPZ file, or it is truncated")
    found: dict[str, NDArray[Any]] = {}
    name = "it"
    try:
        with np.load(path, allow_pickle=False) as archive:
            for name in archive.files:
                array = archive[name] if name in wanted else np.empty(0)
                if not isinstance(array, np.ndarray):  # a member that is no .npy file comes as bytes
                    raise TableError(f"{path}: {name} is no array")
                found[name] = array
    except (TableError, MemoryError):
        raise
    except Exception as error:  # of zlib, of zipfile, and of NumPy's headers, which are read as Python is
        reason = "arrays of Python objects are not read" if "allow_pickle" in str(error) else f"damaged: {error}"
        raise TableError(f"{path}: {name}: {reason}") from error
    return found


def _samples(X: NDArray[Any], path: str) -> FloatArray:
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


def _labels(y: NDArray[Any], path: str) -> NDArray[Any]:
    if y.ndim != 1 or y.dtype.kind not in "biufU" or not len(y):
        raise TableError(
            f"{path}: y must have numbers or text of shape (samples,), it has {y.dtype} of shape {y.shape}"
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise TableError(f"{path}: y must have whole numbers or text as labels, or measurements, all of them finite")
    return y
