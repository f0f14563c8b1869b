"""Samples as the estimators train on them: equal rows merged, in an order of their own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocdl.base.validation import FloatArray, LabelArray


class Samples(NamedTuple):
    """Rows with their targets and weights; equal weights are None, and `total` is their sum."""

    X: FloatArray
    y: NDArray[Any]
    weights: FloatArray | None
    total: float

    @property
    def row_weights(self) -> FloatArray:
        """The weights, whether they are equal or not."""
        equal = np.full(len(self.X), self.total / len(self.X))
        return equal if self.weights is None else self.weights

    def chosen(self, rows: LabelArray) -> Samples:
        """Return some of the rows."""
        return weighted(self.X[rows], self.y[rows], self.row_weights[rows])


def canonical(X: FloatArray, y: NDArray[Any], weights: FloatArray) -> Samples:
    """Return the samples sorted, equal ones merged, none of weight 0: order and repetition of rows do not matter."""
    targets = y.reshape(len(y), -1)
    distinct, place = np.unique(np.column_stack([targets, X]), axis=0, return_inverse=True)
    total = np.bincount(place.ravel(), weights, len(distinct))
    if not total.any():
        raise ValueError("every sample to train on has weight 0, from sample_weight and class_weight")
    distinct, total = distinct[total > 0], total[total > 0]
    columns = targets.shape[1]
    merged = distinct[:, :columns].astype(y.dtype).reshape(len(distinct), *y.shape[1:])
    return weighted(np.ascontiguousarray(distinct[:, columns:]), merged, total)


def weighted(X: FloatArray, y: NDArray[Any], weights: FloatArray) -> Samples:
    """Return samples with these weights, all of which are positive."""
    same = bool(np.all(weights == weights[0]))
    total = float(weights[0] * len(weights)) if same else float(weights.sum())
    return Samples(X, np.ascontiguousarray(y), None if same else weights, total)
