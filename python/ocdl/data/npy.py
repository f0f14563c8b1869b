"""Arrays in .npy files, whose rows are read as they are needed."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray


class NpyFile:
    """An array on disk with a shape and a dtype; ``[i:j]`` reads its rows i to j - 1.

    The file is read, not mapped into memory, so that rows that were read before take no memory.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with open(self.path, "rb") as file:
            self.shape, is_fortran_ordered, self.dtype = self._header(file)
            self._offset = file.tell()
        if self.dtype.hasobject:
            raise ValueError(f"{self.path}: arrays of Python objects are not supported")
        if not self.shape:
            raise ValueError(f"{self.path}: it holds a single number, not rows")
        expected = self._offset + self.dtype.itemsize * int(np.prod(self.shape, dtype=object))
        if os.path.getsize(self.path) < expected:
            raise ValueError(f"{self.path}: it is truncated: {os.path.getsize(self.path)} bytes of {expected}")
        self._columns = None
        if is_fortran_ordered and len(self.shape) > 1:  # a row is spread over the file
            self._columns = np.memmap(self.path, self.dtype, "r", self._offset, self.shape, "F")

    def _header(self, file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
        readers = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
        try:
            version = npy_format.read_magic(file)
            if version not in readers:
                raise ValueError(f"version {version[0]}.{version[1]} of the format is not supported")
            header = readers[version](file)
            if min(header[0], default=0) < 0:
                raise ValueError(f"its shape is {header[0]}")
            return header
        except Exception as error:  # a header is parsed as a Python literal, which raises many kinds of errors
            raise ValueError(f"{self.path}: it cannot be read as an .npy file: {error!s:.200}") from error

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        first, end, _ = rows.indices(self.shape[0])
        if self._columns is not None:
            return np.ascontiguousarray(self._columns[first:end])
        width = int(np.prod(self.shape[1:]))
        count, start = (end - first) * width, first * width * self.dtype.itemsize
        numbers = np.fromfile(self.path, self.dtype, count, offset=self._offset + start)
        if len(numbers) < count:
            raise ValueError(f"{self.path}: the file has become shorter: {len(numbers)} of {count} numbers were read")
        return numbers.reshape(end - first, *self.shape[1:])

    def __repr__(self) -> str:
        return f"NpyFile({self.path!r})"
