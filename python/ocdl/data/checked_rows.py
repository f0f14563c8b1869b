"""Rows of a source, validated whenever they are read."""

from __future__ import annotations

from typing import Any

import numpy as np

from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.data.data import Samples
from ocdl.data.prefetcher import RowRanges
from ocdl.data.row_source import Rows
from ocdl.model.custom_loss import concatenate_rows
from ocdl.model.objective import Objective
from ocdl.model.observations import ObservedTargets, validate_targets
from ocdl.network import Network


class CheckedRows:
    """The rows of a source for one network and objective; messages call it `title`."""

    def __init__(self, source: Rows, net: Network, objective: Objective, title: str, h: FloatArray | None) -> None:
        self._source, self._net, self._objective, self._title = source, net, objective, title
        self._h = h
        self.is_weighted: bool | None = None  # None before the first rows
        self.observed: ObservedTargets | None = None  # the times of observations, without rows
        self._has_read = False

    def read(self, ranges: RowRanges) -> Samples:
        """Return ranges of rows, one after the other."""
        parts = [self._read_range(i, j) for i, j in ranges]
        if len(parts) == 1:
            return parts[0]
        X, y, weights = zip(*parts, strict=True)
        return np.concatenate(X), concatenate_rows(y), np.concatenate(weights) if self.is_weighted else None

    def _read_range(self, i: int, j: int) -> Samples:
        where = f"rows {i} to {j - 1} of {self._title}"
        try:
            rows = self._source.rows(i, j)
        except Exception as error:
            raise RuntimeError(f"{where} could not be read: {type(error).__name__}: {error}") from error
        if not isinstance(rows, (tuple, list)) or len(rows) not in (2, 3, 4):
            raise TypeError(f"{where}: rows must return X, y[, sample_weight[, inputs]], got {_describe(rows)}")
        try:
            return self._validate(j - i, *rows)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{where} (X[0] is row {i}): {error}") from error

    def _validate(self, count: int, X: Any, y: Any, sample_weight: Any = None, inputs: Any = None) -> Samples:
        net = self._net
        rows = net._samples(net._joined(X, inputs))
        if len(rows) != count:
            raise ValueError(f"X must have {count} rows, got {len(rows)}")
        targets = validate_targets(net, self._objective._loss, y, count, self._h)
        self._require_same_times(targets)
        weights = validation.weights(sample_weight, count, net.dtype, are_all=False)
        if self.is_weighted is None:
            self.is_weighted = weights is not None
        if self.is_weighted != (weights is not None):
            here, first = ("no weights", "weights") if self.is_weighted else ("weights", "no weights")
            raise ValueError(f"these rows have {here}, but the first rows have {first}")
        return rows, targets, weights

    def _require_same_times(self, targets: Any) -> None:
        """Raise unless all rows are observed at the same times, at as many own times, or not at all."""
        observed = targets if isinstance(targets, ObservedTargets) else None
        if not self._has_read:
            self._has_read, self.observed = True, None if observed is None else observed[:0]
        if (observed is None) != (self.observed is None) or (
            observed is not None and self.observed is not None and not observed.same_times(self.observed)
        ):
            raise ValueError(
                "all rows must have observations at the times of the first rows, or at as many times of their own"
            )


def _describe(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    return type(value).__name__
