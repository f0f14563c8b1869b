"""Samples in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from ocdl import _core
from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.data.data import Data, Samples
from ocdl.distributed.ranks import Ranks
from ocdl.distributed.row_distribution import RowDistribution
from ocdl.model.custom_loss import LossOnRows, select_rows
from ocdl.model.objective import Objective
from ocdl.model.observations import ObservedTargets, validate_targets
from ocdl.network import Network


class ArrayData(Data):
    """Arrays of samples, joined with their inputs.

    `min_rows` is the least number of rows, 0 if other ranks may have all of them. The steps h say which times of
    observations there are; None: those of the horizon.
    """

    def __init__(
        self,
        net: Network,
        objective: Objective,
        X: Any,
        y: Any,
        sample_weight: Any,
        inputs: Any,
        min_rows: int,
        h: FloatArray | None,
    ) -> None:
        super().__init__(net, objective)
        self.X = net._samples(net._joined(X, inputs, min_rows), min_rows)
        self.y = validate_targets(net, objective._loss, y, len(self.X), h)
        is_mean = objective.reduction == "mean"
        self.sample_weight = validation.weights(
            sample_weight, len(self.X), net.dtype, are_all=min_rows > 0, mean=is_mean
        )

    def __len__(self) -> int:
        return len(self.X)

    @property
    def first_row(self) -> int:
        return 0 if self.distribution is None else self.distribution.first_row

    @property
    def is_weighted(self) -> bool:
        return self.sample_weight is not None

    @property
    def all_rows(self) -> int:
        return len(self) if self.distribution is None else self.distribution.all_rows

    def evaluator(self, core_objective: _core.Objective) -> _core.Evaluator:
        core_network, loss = self.net._core_network, self.objective._loss
        X, y, weights, distribution = self.X, self.y, self.sample_weight, self.distribution
        if distribution is not None:
            rows = distribution.first_row, distribution.all_rows, distribution.allreduce_nodes
            custom = LossOnRows(self.objective._callback, y, weights) if loss.is_custom else None
            return _core.shards_evaluator(core_network, X, y, weights, core_objective, *rows, custom)
        if not loss.is_custom:
            return _core.samples_evaluator(core_network, X, y, weights, core_objective)
        on_samples = self.objective._on_samples(y, weights, len(X))
        return _core.callback_loss_evaluator(
            core_network, X, core_objective, on_samples.evaluate, on_samples.score, self.observed
        )

    @property
    def observed(self) -> ObservedTargets | None:
        return self.y if isinstance(self.y, ObservedTargets) else None

    def chunks(self) -> Iterator[tuple[int, FloatArray]]:
        yield self.first_row, self.X

    def labels(self) -> tuple[Any, FloatArray | None]:
        return self.y, self.sample_weight

    def spaced_rows(self, count: int) -> Samples:
        step = max(1, self.all_rows // count)
        rows = slice(-self.first_row % step, None, step)
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        return np.ascontiguousarray(self.X[rows]), np.ascontiguousarray(self.y[rows]), weights

    def digest(self, ranks: Ranks) -> str:
        """Return a digest of the shards, the same for any distribution; that of one shard is the digest of its rows."""
        size = _core.shard_size(self.all_rows)
        own = [self._shard_digest(slice(first, min(first + size, len(self)))) for first in range(0, len(self), size)]
        shards = [digest for digests in ranks.allgather(own) for digest in digests]
        return shards[0] if len(shards) == 1 else hashlib.sha256("".join(shards).encode()).hexdigest()

    def _shard_digest(self, rows: slice) -> str:
        digest = hashlib.sha256(str(self.X[rows].shape).encode())
        for array in (self.X, self.y, self.sample_weight):
            digest.update(_row_bytes(array, rows, len(self)))
        return digest.hexdigest()

    def _require_distribution(self, distribution: RowDistribution, name: str) -> None:
        if self.sample_weight is not None:
            total = distribution.allreduce_sum(self.sample_weight.astype(np.float64).reshape(-1, 1))
            is_mean = self.objective.reduction == "mean"
            validation.require_total_weight(float(total[0]), self.net.dtype, mean=is_mean)


def _row_bytes(array: Any, rows: slice, n_rows: int) -> Any:
    """Return the memory of some rows; other targets, those of a custom loss, are identified by their repr."""
    if array is None:
        return b"none"
    if isinstance(array, ObservedTargets):
        return array[rows].observed_rows.tobytes() + array.times_digest()
    if isinstance(array, np.ndarray) and array.dtype.kind in "biuf":
        return np.ascontiguousarray(array[rows]).data
    is_all = rows.start == 0 and rows.stop == n_rows
    selected = array if is_all else select_rows(array, np.arange(rows.start, rows.stop))
    return repr(selected).encode("utf-8", "backslashreplace")
