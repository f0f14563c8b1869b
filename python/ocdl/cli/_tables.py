"""Tables of samples, read strictly from CSV and NPZ files: a cell that is no number is named, not guessed."""

from __future__ import annotations

import csv
import io
import math
import os
import re
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ocdl.base.validation import FloatArray
from ocdl.cli._output import UserError

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
QUOTED = re.compile(r'"[^"]*"')
MOST_NAMES = 8  # columns that a message lists


class Columns(Protocol):
    """Which columns a model needs, and which one held the labels."""

    @property
    def feature_names(self) -> list[str] | None: ...
    @property
    def target_name(self) -> str | None: ...
    @property
    def target_position(self) -> int | None: ...


@dataclass(frozen=True)
class Table:
    """Samples of shape (samples, features) and their labels, of which there are at least two different ones."""

    rows: FloatArray
    labels: NDArray[Any]
    feature_names: list[str] | None = None
    target_name: str | None = None
    target_position: int | None = None


@dataclass(frozen=True)
class _Sheet:
    """The cells of a CSV file without the header; `lines` has the number of each row in the file."""

    path: str
    names: list[str] | None
    cells: list[list[str]]
    lines: list[int]
    width: int

    def column(self, j: int) -> str:
        return f"column {j + 1}" if self.names is None else f"column {j + 1} ({self.names[j]!r})"

    def numbers(self, columns: list[int]) -> FloatArray:
        rows = np.empty((len(self.cells), len(columns)))
        for i, row in enumerate(self.cells):
            for k, j in enumerate(columns):
                rows[i, k] = self._number(i, j, row[j])
        return rows

    def labels(self, j: int) -> NDArray[Any]:
        """Return a column as whole numbers if all its cells are, written as usual; else as text."""
        texts = [row[j] for row in self.cells]
        if "" in texts:
            raise UserError(f"{self.path}: row {self.lines[texts.index('')]}, {self.column(j)}: the label is missing")
        if all(re.fullmatch("0|-?[1-9][0-9]{0,17}", text) for text in texts):
            return np.array([int(text) for text in texts])
        return np.array(texts)

    def _number(self, i: int, j: int, text: str) -> float:
        value = float(text) if NUMBER.fullmatch(text) else math.nan
        if math.isfinite(value):
            return value
        if text.lower() in MISSING:
            reason = "the value is missing" + (f": {text!r}" if text else "")
        else:
            reason = f"{text!r:.80} is " + ("no number" if math.isnan(value) else "too large")
        header = "; row 1 is no header, because not all of it is text" if self.lines[i] == 1 else ""
        raise UserError(f"{self.path}: row {self.lines[i]}, {self.column(j)}: {reason}{header}")


def read_table(path: str, target: str | None = None) -> Table:
    """Return samples and labels: of an NPZ file X and y, of a CSV file the column `target`, else the last one.

    The target is a name in the header, or a number from 1 on.
    """
    if _is_npz(path):
        if target is not None:
            raise UserError("--target is for CSV files; of an NPZ file the labels are the array y")
        rows, labels = _samples_of_npz(path), _labels_of_npz(path)
        if len(rows) != len(labels):
            raise UserError(f"{path}: X has {len(rows)} samples, but y has {len(labels)} labels")
        return Table(rows, _several(labels, f"{path}: y"))
    cells, lines = _read_cells(path)
    width = len(cells[0])
    if width < 2:
        raise UserError(f"{path}: row {lines[0]} has one column; needed are features and a label, "
                        "separated by commas, semicolons or tabs")  # fmt: skip
    number = target is None or (target.isdecimal() and len(target) < 10)
    j = width - 1 if target is None else int(target) - 1 if number else _place(cells[0], target, path)
    if not 0 <= j < width:
        raise UserError(f"{path}: --target {target} is none of the {width} columns")
    sheet = _sheet(path, cells, lines, j, None if number else [str(target)])
    columns = [k for k in range(width) if k != j]
    labels = _several(sheet.labels(j), f"{path}: {sheet.column(j)}")
    names = sheet.names
    return Table(
        sheet.numbers(columns),
        labels,
        None if names is None else [names[k] for k in columns],
        None if names is None else names[j],
        j,
    )


def read_samples(path: str, n_features: int, known: Columns) -> FloatArray:
    """Return the samples of a file for a model with these columns; labels may be there and are not looked at."""
    if _is_npz(path):
        rows = _samples_of_npz(path)
        if rows.shape[1] != n_features:
            raise UserError(f"{path}: X has {rows.shape[1]} features, but the model takes {n_features}")
        return rows
    cells, lines = _read_cells(path)
    width, names = len(cells[0]), known.feature_names
    labelled = known.target_position is not None and width == n_features + 1
    sheet = _sheet(path, cells, lines, known.target_position if labelled else None, names)
    if names is not None and sheet.names is not None:
        place = {name: k for k, name in enumerate(sheet.names)}
        accepted = {*names, known.target_name}
        foreign = [name for name in sheet.names if name not in accepted]
        missing = [name for name in names if name not in place]
        if missing or foreign:
            reason = f"lacks column {missing[0]!r}" if missing else f"has column {foreign[0]!r}"
            raise UserError(f"{path}: the header {reason}; the model was trained on {_listed(names)}")
        return sheet.numbers([place[name] for name in names])
    if width != n_features and not labelled:
        raise UserError(f"{path}: row {lines[0]} has {width} columns, but the model takes {n_features} features")
    return sheet.numbers([k for k in range(width) if not (labelled and k == known.target_position)])


def _is_npz(path: str) -> bool:
    return os.path.splitext(path)[1].lower() == ".npz"


def _read_cells(path: str) -> tuple[list[list[str]], list[int]]:
    """Return the rows that are not blank, all of the same length, and their numbers in the file."""
    cells, lines = [], []
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read()
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: it is no text in UTF-8") from error
    first = QUOTED.sub("", text.lstrip("\r\n")).partition("\n")[0]
    delimiter = next((mark for mark in "\t;" if mark in first), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        for row in reader:
            stripped = [cell.strip() for cell in row]
            if stripped not in ([], [""]):
                cells.append(stripped)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise UserError(f"{path}: row {reader.line_num}: {error}") from error
    if not cells:
        raise UserError(f"{path}: it is empty")
    for row, line in zip(cells, lines, strict=True):
        if len(row) != len(cells[0]):
            raise UserError(f"{path}: row {line} has {len(row)} columns, but row {lines[0]} has {len(cells[0])}")
    return cells, lines


def _sheet(path: str, cells: list[list[str]], lines: list[int], label: int | None, known: list[str] | None) -> _Sheet:
    width = len(cells[0])
    if not _has_header(cells, label, known):
        return _Sheet(path, None, cells, lines, width)
    names = cells[0]
    twice = [name for name in names if names.count(name) > 1] if len(set(names)) < width else []
    if twice:
        raise UserError(f"{path}: row {lines[0]}: the header has {twice[0]!r} twice")
    if len(cells) == 1:
        raise UserError(f"{path}: it has a header, but no samples")
    return _Sheet(path, names, cells[1:], lines[1:], width)


def _has_header(cells: list[list[str]], label: int | None, known: list[str] | None) -> bool:
    """Return whether the first row has names: known ones, or nothing but text.

    Names that are numbers are a header if the name of the labels is text, unlike the labels.
    """
    first = cells[0]
    if known and set(known) <= set(first):
        return True
    texts = [not NUMBER.fullmatch(cell) and cell.lower() not in MISSING for cell in first]
    if all(texts):
        return True
    if label is None or sum(texts) != 1 or not texts[label] or len(cells) == 1:
        return False
    return all(NUMBER.fullmatch(row[label]) for row in cells[1:])


def _place(header: list[str], name: str, path: str) -> int:
    if name not in header:
        raise UserError(f"{path}: no column is named {name!r}; row 1 has {_listed(header)}")
    return header.index(name)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")


def _several(labels: NDArray[Any], name: str) -> NDArray[Any]:
    if np.all(labels == labels[0]):
        raise UserError(f"{name} has one class, {labels[0].item()!r}; a classifier needs at least 2")
    return labels


def _array_of_npz(path: str, name: str) -> NDArray[Any]:
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            raise UserError(f"{path}: it is no NPZ file, or it is truncated")
    try:
        with np.load(path, allow_pickle=False) as archive:
            if name not in archive:
                raise UserError(f"{path}: it has no array {name}; it has {_listed(archive.files) or 'none'}")
            array = archive[name]
            if not isinstance(array, np.ndarray):  # a member that is no .npy file comes as bytes
                raise UserError(f"{path}: {name} is no array")
            return array
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
        reason = "arrays of Python objects are not read" if "allow_pickle" in str(error) else f"damaged: {error}"
        raise UserError(f"{path}: {name}: {reason}") from error


def _samples_of_npz(path: str) -> FloatArray:
    X = _array_of_npz(path, "X")
    if X.ndim != 2 or X.dtype.kind not in "biuf" or 0 in X.shape:
        raise UserError(
            f"{path}: X must have numbers of shape (samples, features), it has {X.dtype} of shape {X.shape}"
        )
    rows = X.astype(np.float64)
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        raise UserError(f"{path}: X, row {bad[0][0] + 1}, column {bad[0][1] + 1}: {rows[tuple(bad[0])]} is not finite")
    return rows


def _labels_of_npz(path: str) -> NDArray[Any]:
    y = _array_of_npz(path, "y")
    if y.ndim != 1 or y.dtype.kind not in "biufU" or not len(y):
        raise UserError(f"{path}: y must have numbers or text of shape (samples,), it has {y.dtype} of shape {y.shape}")
    if y.dtype.kind == "U":
        return y
    whole = y.astype(np.int64) if y.dtype.kind != "f" or np.all(np.abs(y) < 2**53) else None
    if whole is None or not np.array_equal(whole, y):
        raise UserError(f"{path}: y must have whole numbers or text as labels")
    return whole
