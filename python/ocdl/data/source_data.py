"""Samples that a source reads, chunk by chunk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from ocdl import _core
from ocdl.base import validation
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.data.checked_rows import CheckedRows
from ocdl.data.data import Data, Samples
from ocdl.data.prefetcher import Prefetcher, RowRanges
from ocdl.data.row_source import Rows
from ocdl.distributed.ranks import Ranks
from ocdl.distributed.row_distribution import RowDistribution, row_range
from ocdl.model.custom_loss import select_rows
from ocdl.model.objective import Objective
from ocdl.model.observations import ObservedTargets
from ocdl.network import Network

CHUNK_BYTES = 2**23  # that a pass reads at once
WINDOW_BYTES = 2**25  # that batches are drawn from
PROBES, ROWS_PER_PROBE = 16, 64  # rows that identify a source
ROWS_PER_RANGE = 50  # of evenly spaced rows
MAX_ROWS = 2**53


class SourceData(Data):
    """The rows of a source, or whole shards of them for this rank; `name` is the argument that the source came as."""

    def __init__(
        self, net: Network, objective: Objective, source: Rows, ranks: Ranks, name: str, h: FloatArray | None
    ) -> None:
        super().__init__(net, objective)
        self.all_rows = validation.integer_up_to(source.n_rows, f"n_rows of {name}", MAX_ROWS)
        if self.all_rows < 1:
            raise ValueError(f"{name} is empty: n_rows is {source.n_rows}, at least one sample is needed")
        rows = row_range(ranks.rank, ranks.size, self.all_rows)
        self._start: int = rows.start
        self._end: int = rows.stop
        self._reader = CheckedRows(source, net, objective, f"{name}, {source!r:.200}", h)
        self._prefetcher = Prefetcher(self._reader.read)
        self._current: Samples | None = None
        self._probe(1, ROWS_PER_PROBE)  # raises now if the rows are not valid

    def __len__(self) -> int:
        return self._end - self._start

    @property
    def first_row(self) -> int:
        return self._start

    @property
    def is_weighted(self) -> bool:
        return bool(self._reader.is_weighted)

    def evaluator(self, core_objective: _core.Objective) -> _core.Evaluator:
        net, observed = self.net, self.observed
        width = net.n_outputs if observed is None else observed.observed_rows.shape[1]
        row_bytes = (net._core_network.row_size + width + 1) * net.dtype.itemsize
        make = _core.source_evaluator if net.dtype == np.float64 else _core.source_evaluator_single
        return make(
            net._core_network,
            self._poll,
            len(self),
            self.is_weighted,
            max(CHUNK_BYTES // row_bytes, 1),
            max(WINDOW_BYTES // row_bytes, 1),
            core_objective,
            self.first_row,
            self.all_rows,
            None if self.distribution is None else self.distribution.allreduce_nodes,
            self._evaluate_custom_loss if self.objective._loss.is_custom else None,
            None if observed is None else (observed.count, observed.shared_times),
        )

    @property
    def observed(self) -> ObservedTargets | None:
        return self._reader.observed

    def chunks(self) -> Iterator[tuple[int, FloatArray]]:
        step = max(CHUNK_BYTES // (self.net._core_network.row_size * self.net.dtype.itemsize), 1)
        for first in range(self._start, self._end, step):
            yield first, self._prefetcher.wait(((first, min(first + step, self._end)),))[0]

    def labels(self) -> tuple[Any, FloatArray | None]:
        _, y, weights = self.spaced_rows(20 * ROWS_PER_RANGE)
        return y, weights

    def spaced_rows(self, count: int) -> Samples:
        return self._probe(count // ROWS_PER_RANGE, ROWS_PER_RANGE)

    def digest(self, ranks: Ranks) -> str:
        """Return a digest of the number of rows and of some of them."""
        digest = hashlib.sha256(f"a source of {self.all_rows} rows".encode())
        for array in self._probe(PROBES, ROWS_PER_PROBE):
            if isinstance(array, ObservedTargets):
                digest.update(array.times_digest())
                array = array.observed_rows
            is_plain = isinstance(array, np.ndarray) and array.dtype.kind in "biuf"
            digest.update(np.ascontiguousarray(array).data if is_plain else repr(array).encode("utf-8", "replace"))
        return digest.hexdigest()

    def _probe(self, ranges: int, rows: int) -> Samples:
        """Return evenly spaced ranges of rows, among all rows of the source."""
        last = max(self.all_rows - rows, 0)
        firsts = sorted({last * i // max(ranges - 1, 1) for i in range(ranges)})
        return self._prefetcher.wait(tuple((first, min(first + rows, self.all_rows)) for first in firsts))

    def _poll(self, ranges: RowRanges, following: RowRanges) -> Samples | None:
        """Return rows to the core, which counts from the first row of this rank; None if they are not read yet."""
        self._current = None  # frees its memory for the next rows
        self._current = self._prefetcher.poll(self._global_ranges(ranges), self._global_ranges(following))
        return self._current

    def _global_ranges(self, ranges: RowRanges) -> RowRanges:
        return tuple((self.first_row + i, self.first_row + j) for i, j in ranges)

    def _evaluate_custom_loss(
        self, outputs: FloatArray, positions: LabelArray | None, scale: float, with_grad: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return custom losses and gradients of the current rows, at their outputs."""
        assert self._current is not None
        _, targets, weights = self._current
        if positions is not None:
            targets = select_rows(targets, positions)
            weights = None if weights is None else weights[positions]
        return self.objective._callback.weighted_values_and_grads(outputs, targets, weights, scale)

    def _require_distribution(self, distribution: RowDistribution, name: str) -> None:
        if self.all_rows != distribution.all_rows:
            raise ValueError(
                f"{name} has {self.all_rows} rows on this rank, but the sources of all ranks together give "
                f"{distribution.all_rows}; every rank must have the same source"
            )
