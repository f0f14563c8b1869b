"""What a source returns, checked each time: rows of numbers as the core takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.model.objective import Objective
from ocdl.model.own_loss import joined_rows
from ocdl.network import Network
from ocdl.streaming.ahead import Runs
from ocdl.streaming.source import Rows

Checked = tuple[FloatArray, Any, FloatArray | None]  # X, targets and, where there are some, weights


class CheckedRows:
    """The rows of a source for one network and objective; `title` is what it is called in messages."""

    def __init__(self, source: Rows, net: Network, objective: Objective, title: str) -> None:
        self._source, self._net, self._objective, self._title = source, net, objective, title
        self.are_weighted: bool | None = None  # not known before the first rows

    def read(self, runs: Runs) -> Checked:
        """Return the rows of some runs, one run behind the other."""
        parts = [self._run(i, j) for i, j in runs]
        if len(parts) == 1:
            return parts[0]
        X, y, weights = zip(*parts, strict=True)
        return np.concatenate(X), joined_rows(y), np.concatenate(weights) if self.are_weighted else None

    def _run(self, i: int, j: int) -> Checked:
        where = f"rows {i} to {j - 1} of {self._title}"
        try:
            found = self._source.rows(i, j)
        except Exception as error:
            raise RuntimeError(f"{where} could not be read: {type(error).__name__}: {error}") from error
        if not isinstance(found, (tuple, list)) or len(found) not in (2, 3):
            raise TypeError(f"{where}: rows must return X, y or X, y, sample_weight, got {_described(found)}")
        try:
            return self._as_the_core_takes_them(j - i, *found)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{where} (X[0] is row {i}): {error}") from error

    def _as_the_core_takes_them(self, count: int, X: Any, y: Any, sample_weight: Any = None) -> Checked:
        net = self._net
        rows = validation.samples(X, net.n_features, net.dtype)
        if len(rows) != count:
            raise ValueError(f"X must have {count} rows, got {len(rows)}")
        targets = self._objective._checked_targets(y, count, net.n_outputs, net.dtype)
        weights = validation.weights(sample_weight, count, net.dtype, are_all=False)
        if self.are_weighted is None:
            self.are_weighted = weights is not None
        if self.are_weighted != (weights is not None):
            here, first = ("no weights", "some") if self.are_weighted else ("weights", "none")
            raise ValueError(f"there are {here}, where the first rows have {first}")
        return rows, targets, weights


def _described(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    return type(value).__name__
