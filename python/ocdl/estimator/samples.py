"""The samples on which the estimators train: equal rows are merged, and the rows are sorted."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocdl.base.validation import FloatArray, LabelArray
from ocdl.estimator.subspace import project
from ocdl.training.validation import Validation

Hashes = NDArray[np.uint64]
MIX, FIRST, SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
ROWS_AT_ONCE = 1 << 14  # so that temporary arrays stay in a cache
LARGE = 20.0  # root mean square of a column that is not scaled
COLUMN_BLOCKS = 8  # in which columns are permuted, so that no copy of all is needed


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

    def project(self, components: FloatArray | None) -> Samples:
        """Return the samples in a subspace of the inputs."""
        return self._replace(X=project(self.X, components))

    def select(self, rows: LabelArray) -> Samples:
        """Return some of the rows."""
        return make_samples(self.X[rows], self.y[rows], self.row_weights[rows])

    def partition(self, first: LabelArray, second: LabelArray) -> tuple[Samples, Samples]:
        """Return two sets of rows that together are all. Both are views of `X`, whose rows are permuted in place."""
        rows, count = np.concatenate([first, second]), len(first)
        width = max(1, self.X.shape[1] // COLUMN_BLOCKS)
        for start in range(0, self.X.shape[1], width):
            columns = slice(start, start + width)
            self.X[:, columns] = self.X[rows, columns]
        y, weights = self.y[rows], self.row_weights[rows]
        return (
            make_samples(self.X[:count], y[:count], weights[:count]),
            make_samples(self.X[count:], y[count:], weights[count:]),
        )


def require_dense(X: Any) -> None:
    """Raise a TypeError if X is a sparse matrix."""
    from scipy.sparse import issparse

    if issparse(X):
        raise TypeError(
            f"X is sparse ({type(X).__name__}), but a flow moves dense rows; make it dense with X.toarray(), or "
            "reduce it with sklearn.decomposition.TruncatedSVD in a pipeline"
        )


def columns_without_numbers(X: Any) -> list[Any]:
    """Return the columns of a data frame that cannot be read as numbers; an empty list for anything else."""
    if not hasattr(X, "dtypes") or not hasattr(X, "columns"):
        return []
    columns = {name: np.asarray(X.iloc[:, j] if hasattr(X, "iloc") else X[name]) for j, name in enumerate(X.columns)}
    return [name for name, column in columns.items() if column.dtype.kind in "mM" or not _are_numbers(column)]


def _are_numbers(column: NDArray[Any]) -> bool:
    try:
        column.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def linear_residuals(samples: Samples) -> FloatArray:
    """Return the weighted mean of the squared residuals of a linear model, for each target.

    Least squares by a QR decomposition of some rows at a time, because memory may not hold a copy of X. Scaling a
    column does not change the residuals, but its squares may overflow, so each is divided by a power of two.
    """
    X, targets, weights = samples.X, samples.y.reshape(len(samples.y), -1), samples.row_weights
    columns = X.shape[1] + 1
    _, size = np.frexp(np.maximum(X.max(axis=0), -X.min(axis=0)))
    triangle = np.zeros((0, columns + targets.shape[1]))
    step = max(ROWS_AT_ONCE // columns, 2 * columns)
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        root = np.sqrt(weights[rows])[:, None]
        block = root * np.column_stack([np.ldexp(X[rows], -size), np.ones(len(root)), targets[rows]])
        triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, block]), mode="r"))
    design, right_side = triangle[:, :columns], triangle[:, columns:]
    residuals = right_side - design @ np.linalg.lstsq(design, right_side, rcond=None)[0]
    squares: FloatArray = np.sum(residuals**2, axis=0) / weights.sum()
    return squares


def quartiles(targets: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted quartiles of each target, (3, targets)."""
    result = np.empty((3, targets.shape[1]))
    for j, column in enumerate(targets.T):
        order = np.argsort(column, kind="stable")
        levels = (np.cumsum(weights[order]) - 0.5 * weights[order]) / weights.sum()
        result[:, j] = np.interp((0.25, 0.5, 0.75), levels, column[order])
    return result


def merge_samples(X: FloatArray, y: NDArray[Any], weights: FloatArray) -> Samples:
    """Return the samples sorted, without weight 0, and equal ones merged, so that order and repetition do not matter.

    They are sorted by a hash of row and target, and by their contents where hashes are equal: sorting numbers is many
    times faster than sorting rows. Besides X and the result only a few columns are in memory.
    """
    targets = y.reshape(len(y), -1)
    columns = [*targets.T, *X.T]
    hashes = _hashes(X, targets)
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    same_hash = hashes[1:] == hashes[:-1]
    same = _equal_to_next(columns, order, same_hash)
    if not np.array_equal(same, same_hash):
        _sort_by_content(columns, order, hashes)
        same = _equal_to_next(columns, order, same_hash)
    starts = np.concatenate([[True], ~same])
    if same.any():  # weights are added from the smallest on, so that the sum has the same bits in any order
        order = order[np.lexsort([weights[order], np.cumsum(starts)])]
    first = np.flatnonzero(starts)
    total = np.add.reduceat(weights[order], first)
    _require_some(total)
    rows = order[first][total > 0]
    del hashes, same_hash, same, starts, first, order
    merged = np.take(X, rows, axis=0)
    merged += 0.0  # of equal rows one may have had -0
    return make_samples(merged, y[rows] + y.dtype.type(0), _scale_free(total[total > 0]))


def _scale_free(weights: FloatArray) -> FloatArray:
    """Return weights whose sum is a number of samples, for given weights in any unit.

    Whole numbers are frequencies, divided by their greatest common divisor. Others are scaled to the sum
    (sum w)^2 / sum w^2, the number of equal weights with which a mean is as exact.
    """
    if (weights < 2.0**53).all() and np.array_equal(weights, np.floor(weights)):
        frequencies: FloatArray = weights / np.gcd.reduce(weights.astype(np.int64))
        return frequencies
    ratios: FloatArray = weights / weights.max()
    scaled: FloatArray = ratios * (ratios.sum() / np.square(ratios).sum())
    return scaled


def reweight(samples: Samples, factors: FloatArray) -> Samples:
    """Return the samples with their weights times these factors, without those of weight 0; their sum stays."""
    with np.errstate(over="ignore"):
        weights = samples.row_weights * factors
        weights = weights * (samples.total / weights.sum()) if weights.any() else weights
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError("sample_weight and class_weight must give weights that are finite and not negative")
    _require_some(weights)
    rows = weights > 0
    return make_samples(samples.X if rows.all() else samples.X[rows], samples.y[rows], weights[rows])


def _require_some(weights: FloatArray) -> None:
    if not weights.any():
        raise ValueError("every sample to train on has weight 0, from sample_weight and class_weight")


def _hashes(X: FloatArray, targets: NDArray[Any]) -> Hashes:
    """Return a hash of 64 bits of each row and its targets; 0 and -0 have the same hash."""
    hashes = np.empty(len(X), np.uint64)
    for start in range(0, len(X), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        row_hashes = np.zeros(len(X[rows]), np.uint64)
        for numbers in _columns(targets[rows], X[rows]):
            row_hashes ^= (numbers + 0.0).view(np.uint64)  # 0 + -0 is 0
            row_hashes += MIX
            row_hashes ^= row_hashes >> np.uint64(30)
            row_hashes *= FIRST
            row_hashes ^= row_hashes >> np.uint64(27)
            row_hashes *= SECOND
        hashes[rows] = row_hashes ^ (row_hashes >> np.uint64(31))
    return hashes


def _columns(*tables: NDArray[Any]) -> Iterator[NDArray[np.float64]]:
    for table in tables:
        for column in table.T:
            yield column.astype(np.float64)


def _equal_to_next(columns: list[NDArray[Any]], order: LabelArray, candidates: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which of these candidates, positions in the order, hold the same row as the next position."""
    equal = candidates.copy()
    positions = np.flatnonzero(candidates)
    if len(positions):
        for column in columns:
            equal[positions] &= column[order[positions]] == column[order[positions + 1]]
    return equal


def _sort_by_content(columns: list[NDArray[Any]], order: LabelArray, hashes: Hashes) -> None:
    """Sort, in place, the rows of an order by hashes whose hash is not unique."""
    repeated = np.zeros(len(order), bool)
    same = hashes[1:] == hashes[:-1]
    repeated[1:] |= same
    repeated[:-1] |= same
    positions = np.flatnonzero(repeated)
    rows = order[positions]
    order[positions] = rows[np.lexsort([*(column[rows] for column in reversed(columns)), hashes[positions]])]


def make_samples(X: FloatArray, y: NDArray[Any], weights: FloatArray) -> Samples:
    """Return samples with these weights, all of which are positive."""
    same = bool(np.all(weights == weights[0]))
    with np.errstate(over="ignore"):
        total = float(weights[0]) * len(weights) if same else float(weights.sum())
    if total == np.inf:
        raise ValueError("sample_weight has a sum beyond the range of float64; scale it down")
    return Samples(X, np.ascontiguousarray(y), None if same else weights, total)


def split(samples: Samples, fraction: float, random: np.random.RandomState) -> tuple[Samples, Validation]:
    """Return the samples to train on and those for early stopping, drawn from merged rows."""
    from sklearn.model_selection import train_test_split

    labels = samples.y if samples.y.dtype.kind == "i" else None
    count = math.ceil(fraction * len(samples.X))
    classes = 0 if labels is None else len(np.unique(labels))
    if labels is not None and (np.bincount(labels)[np.unique(labels)].min() < 2 or count < classes):
        labels = None  # a class has too few samples for stratified splitting
    if not 0 < count < len(samples.X):
        raise ValueError(
            f"early_stopping=True, but validation_fraction={fraction:g} of {len(samples.X)} distinct samples is "
            f"{'none' if count == 0 else 'all of them'}"
        )
    kept, held_out = train_test_split(np.arange(len(samples.X)), test_size=count, stratify=labels, random_state=random)
    training, evaluated = samples.partition(np.sort(kept), np.sort(held_out))
    return training, Validation(evaluated.X, evaluated.y, sample_weight=evaluated.weights)


def warn_of_scale(X: FloatArray) -> None:
    """Warn if a column is so large, or all are so small, that the prior and the scale of the flow do not suit them."""
    with np.errstate(over="ignore", under="ignore"):
        sizes = np.sqrt(np.einsum("ij,ij->j", X, X) / len(X))
    column = int(sizes.argmax())
    size = f"X[:, {column}] has a root mean square of {sizes[column]:.3g}"
    scale = "scale the inputs, for example with sklearn.preprocessing.StandardScaler in a pipeline"
    if sizes[column] > LARGE and np.ptp(X[:, column]) == 0:
        message = f"{size} and the same value in every row; leave it out"
    elif sizes[column] > LARGE:
        message = f"{size}; {scale}"
    elif 0 < sizes[column] < 1 / LARGE:
        message = f"{size}, and no column has a larger one; {scale}"
    else:
        return
    warnings.warn(message, UserWarning, stacklevel=4)
