"""Sources of rows: out-of-core data for a training."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ocdl.data.npy import NpyFile
from ocdl.data.parquet import ParquetColumns

__all__ = ["RowSource"]

FilePath = str | os.PathLike[str]


class Rows(Protocol):
    """The attributes of a source that `train` uses."""

    @property
    def n_rows(self) -> int: ...

    def rows(self, i: int, j: int, /) -> tuple[Any, ...]:
        """Return the rows i to j - 1."""


class RowSource:
    """Out-of-core data: ``ocdl.train(net, u, source)`` reads the samples in chunks.

    A pass over all samples reads the next chunk, a few megabytes, while the core computes with the current one; its
    memory does not grow with the samples. Every sum over the samples has the same bits as with the samples in memory.
    `from_npy`, `from_parquet` and `from_arrays` make sources of files and arrays. Any object works as a source that has

    - ``n_rows``, the number of all rows, and
    - ``rows(i, j)``, which returns X, of shape (j - i, features), and y, or X, y and the weights of these samples, of
      shape (j - i,), or X, y, weights (None: all are 1) and inputs, for a network that takes them; the same ones each
      time. With `Observations` as y, these are of so many times in all rows, and all at the same times or each sample
      at its own.

    `rows` is called from a separate thread, one call at a time. An exception in it ends the training with a
    RuntimeError that names the rows and has that exception as its cause. The rows are checked each time. Labels are
    0, 1, ... as for arrays; the number of classes follows from the outputs of the network, so that the first rows need
    not have all of them.

    Batches (`Adam`) are drawn from a window of 32 MB: an epoch puts row ranges, a sixteenth of a window each, into
    random order, reads sixteen of them and draws batches from these in random order. So rows that are sorted by their
    class are mixed well enough, and the rows of a file are still read in long ranges. If all rows fit into one window,
    the batches are those of arrays in memory.

    Attributes
    ----------
    n_rows : int
        The number of all rows.

    Examples
    --------
    A source that computes its rows as they are needed:

    >>> import numpy as np, ocdl
    >>> class Circles:
    ...     n_rows = 100_000
    ...
    ...     def rows(self, i, j):
    ...         t = np.arange(i, j)
    ...         X = np.column_stack([np.cos(t), np.sin(t)]) * (1 + t % 2)[:, None]
    ...         return X, t % 2
    >>> net = ocdl.Network.preset("odenet", 2, 5)
    >>> r = ocdl.train(net, net.init(random_state=0), Circles(), max_iter=3)
    >>> bool(r.history.loss[-1] < r.history.loss[0])
    True
    >>> ocdl.RowSource.from_arrays(np.zeros((10, 2)), np.zeros(10, int)).n_rows
    10
    """

    n_rows: int

    def rows(self, i: int, j: int) -> tuple[Any, ...]:
        """Return X and y of the rows i to j - 1, and their weights and inputs if they have some.

        Parameters
        ----------
        i, j : int
            From 0 to ``n_rows``.

        Returns
        -------
        tuple of array
            X of shape (j - i, features), y, and the weights if there are any; with inputs X, y, the weights or None,
            and the inputs.

        Raises
        ------
        NotImplementedError
            If a subclass does not define it.

        Examples
        --------
        >>> import numpy as np, ocdl
        >>> source = ocdl.RowSource.from_arrays(np.arange(20.0).reshape(10, 2), np.arange(10) % 2)
        >>> X, y = source.rows(2, 4)
        >>> X.tolist(), y.tolist()
        ([[4.0, 5.0], [6.0, 7.0]], [0, 1])
        """
        raise NotImplementedError(f"{type(self).__name__} must define rows(i, j)")

    @staticmethod
    def from_npy(X: Any, y: Any, sample_weight: Any = None, inputs: Any = None) -> RowSource:
        """Return the samples in .npy files.

        Parameters
        ----------
        X, y, sample_weight, inputs : path or np.memmap
            Files, of which rows are read as they are needed, memory maps, or arrays.

        Returns
        -------
        RowSource

        Raises
        ------
        TypeError, ValueError
            If a file holds no array, or the numbers of rows differ.
        OSError
            If a file cannot be read.

        Examples
        --------
        >>> import numpy as np, ocdl
        >>> np.save("X.npy", np.zeros((10, 2)))
        >>> np.save("y.npy", np.zeros(10, int))
        >>> ocdl.RowSource.from_npy("X.npy", "y.npy").n_rows
        10
        """
        files = (X, y, sample_weight, inputs)
        return _Arrays(*(NpyFile(file) if isinstance(file, (str, os.PathLike)) else file for file in files))

    @staticmethod
    def from_parquet(
        path: FilePath,
        target: str | Sequence[str],
        *,
        features: Sequence[str] | None = None,
        sample_weight: str | None = None,
    ) -> RowSource:
        """Return the samples in Parquet files; needs the extra ``ocdl[parquet]``.

        A row group is decoded as a whole, and the last one is kept: small row groups need little memory.

        Parameters
        ----------
        path : path
            A file, a directory, of which all files that end in .parquet or .pq are taken, or a pattern with ``*``; in
            the order of their names.
        target : str or sequence of str
            The column of the targets, or several, one for each output.
        features : sequence of str, optional
            The columns of X; none: all others, in the order of the first file.
        sample_weight : str, optional
            The column of the weights.

        Returns
        -------
        RowSource

        Raises
        ------
        ImportError
            If pyarrow is not installed.
        ValueError
            If a column is missing, or files do not have the same ones.
        OSError
            If there is no such file, or it cannot be read.

        Examples
        --------
        >>> import ocdl
        >>> source = ocdl.RowSource.from_parquet("table.parquet", "y")  # doctest: +SKIP
        """
        return _Parquet(ParquetColumns(os.fspath(path), target, features, sample_weight))

    @staticmethod
    def from_arrays(X: Any, y: Any, sample_weight: Any = None, inputs: Any = None) -> RowSource:
        """Return the samples of arrays that need not be in memory.

        Parameters
        ----------
        X, y, sample_weight, inputs
            Any object with a shape whose slices ``[i:j]`` convert to NumPy arrays, such as arrays of Zarr, HDF5 and
            Dask.

        Returns
        -------
        RowSource

        Raises
        ------
        TypeError, ValueError
            If an array has no rows, or the numbers of rows differ.

        Examples
        --------
        >>> import numpy as np, ocdl
        >>> ocdl.RowSource.from_arrays(np.zeros((10, 2)), np.zeros(10, int))
        RowSource(ndarray of shape (10, 2), ndarray of shape (10,))
        """
        return _Arrays(X, y, sample_weight, inputs)


class _Arrays(RowSource):
    """Rows of arrays with a shape."""

    def __init__(self, X: Any, y: Any, sample_weight: Any, inputs: Any) -> None:
        given = {"X": X, "y": y, "sample_weight": sample_weight, "inputs": inputs}
        self._arrays = {name: array for name, array in given.items() if name in ("X", "y") or array is not None}
        for name, array in self._arrays.items():
            shape = getattr(array, "shape", None)
            if not isinstance(shape, tuple) or not hasattr(array, "__getitem__"):
                raise TypeError(f"{name} must have a shape and take [i:j], got {type(array).__name__}")
            if not shape:
                raise ValueError(f"{name} must have rows, got shape ()")
        rows = {name: int(array.shape[0]) for name, array in self._arrays.items()}
        if len(set(rows.values())) > 1:
            raise ValueError(
                "all arrays must have the same number of rows, got " + ", ".join(f"{n} in {k}" for k, n in rows.items())
            )
        self.n_rows = rows["X"]

    def rows(self, i: int, j: int) -> tuple[Any, ...]:
        rows = {name: np.asarray(array[i:j]) for name, array in self._arrays.items()}
        if "inputs" in rows:
            return rows["X"], rows["y"], rows.get("sample_weight"), rows["inputs"]
        return tuple(rows.values())

    def __repr__(self) -> str:
        return f"RowSource({', '.join(_describe(array) for array in self._arrays.values())})"


class _Parquet(RowSource):
    """Rows of Parquet files."""

    def __init__(self, files: ParquetColumns) -> None:
        self._files, self.n_rows = files, files.n_rows

    def rows(self, i: int, j: int) -> tuple[NDArray[Any], ...]:
        return self._files.read(i, j)

    def __repr__(self) -> str:
        return f"RowSource({self._files.path!r})"


def _describe(array: Any) -> str:
    if isinstance(array, NpyFile):
        return repr(array.path)
    return f"{type(array).__name__} of shape {tuple(array.shape)}"


def is_source(value: object) -> TypeGuard[Rows]:
    """Whether the value is a source of rows, rather than an array."""
    return isinstance(value, RowSource) or (hasattr(value, "n_rows") and callable(getattr(value, "rows", None)))
