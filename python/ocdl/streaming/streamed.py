"""Rows of a source as data of a training: what `train` has in the place of X."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ocdl import _core
from ocdl.base import validation
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.model.losses import Loss
from ocdl.model.objective import Objective
from ocdl.model.own_loss import chosen_rows, losses_and_slopes
from ocdl.network import Network
from ocdl.streaming.ahead import ReadingAhead, Runs
from ocdl.streaming.checked import Checked, CheckedRows
from ocdl.streaming.source import Rows

PIECE_BYTES = 2**23  # that a pass reads at once
WINDOW_BYTES = 2**25  # that batches are drawn from
LOOKED_AT = 16, 64  # places, and rows at each, by which a checkpoint knows a source
MOST_ROWS = 2**53


class Streamed:
    """Some rows of a source that follow each other, for one network and objective.

    Parameters
    ----------
    name : str
        The argument that the source came as.
    part : slice, optional
        Which rows, whole shards; none: all.
    """

    def __init__(
        self, source: Rows, net: Network, objective: Objective, name: str = "X", part: slice | None = None
    ) -> None:
        self.all_rows = validation.integer_up_to(source.n_rows, f"n_rows of {name}", MOST_ROWS)
        if self.all_rows < 1:
            raise ValueError(f"{name} is empty: n_rows is {source.n_rows}, at least one sample is needed")
        whole = slice(0, self.all_rows) if part is None else part
        self.first_row: int = whole.start
        self._count: int = whole.stop - whole.start
        self._net, self._objective = net, objective
        self._rows = CheckedRows(source, net, objective, f"{name}, {source!r:.200}")
        self._reading = ReadingAhead(self._rows.read)
        self._at_hand: Checked | None = None
        self.some_rows(1, LOOKED_AT[1])  # what is wrong from the start is said at once

    def __len__(self) -> int:
        return self._count

    @property
    def are_weighted(self) -> bool:
        return bool(self._rows.are_weighted)

    def evaluator(
        self, core_objective: _core.Objective, allreduce: Callable[..., Any] | None = None
    ) -> _core.Evaluator:
        """Return an objective on these rows, as an optimiser sees it; `allreduce` sums over the ranks."""
        net, objective = self._net, self._objective
        row_bytes = (net.n_features + net.n_outputs + 1) * net.dtype.itemsize
        make = _core.source_evaluator if net.dtype == np.float64 else _core.source_evaluator_single
        return make(
            net._core_network,
            self._hand_out,
            len(self),
            self.are_weighted,
            max(PIECE_BYTES // row_bytes, 1),
            max(WINDOW_BYTES // row_bytes, 1),
            core_objective,
            self.first_row,
            self.all_rows,
            allreduce,
            None if isinstance(objective.record, Loss) else self._loss_of_rows,
        )

    def pieces(self) -> Iterator[tuple[int, FloatArray]]:
        """Yield the number of the first row, and the rows, piece by piece."""
        step = max(PIECE_BYTES // (self._net.n_features * self._net.dtype.itemsize), 1)
        end = self.first_row + len(self)
        for first in range(self.first_row, end, step):
            yield first, self._reading.now(((first, min(first + step, end)),))[0]

    def some_rows(self, places: int, rows: int) -> Checked:
        """Return rows at so many places, evenly spaced among all rows of the source."""
        last = max(self.all_rows - rows, 0)
        firsts = sorted({last * place // max(places - 1, 1) for place in range(places)})
        return self._reading.now(tuple((first, min(first + rows, self.all_rows)) for first in firsts))

    def digest(self) -> str:
        """Return what a checkpoint knows the source by: the number of rows, and rows at a few places."""
        digest = hashlib.sha256(f"a source of {self.all_rows} rows".encode())
        for array in self.some_rows(*LOOKED_AT):
            is_plain = isinstance(array, np.ndarray) and array.dtype.kind in "biuf"
            digest.update(np.ascontiguousarray(array).data if is_plain else repr(array).encode("utf-8", "replace"))
        return digest.hexdigest()

    def _hand_out(self, runs: Runs, following: Runs) -> Checked | None:
        """Return rows to the core, which counts them from the first of this part; None where they are not there yet."""
        self._at_hand = None  # its memory is needed for those to come
        self._at_hand = self._reading.piece(self._in_source(runs), self._in_source(following))
        return self._at_hand

    def _in_source(self, runs: Runs) -> Runs:
        return tuple((self.first_row + i, self.first_row + j) for i, j in runs)

    def _loss_of_rows(
        self, outputs: FloatArray, positions: LabelArray | None, scale: float, with_slopes: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return the losses of one's own of rows that were handed out last, at their outputs, and the slopes."""
        assert self._at_hand is not None
        assert not isinstance(self._objective.record, Loss)
        _, targets, weights = self._at_hand
        if positions is not None:
            targets = chosen_rows(targets, positions)
            weights = None if weights is None else weights[positions]
        return losses_and_slopes(self._objective.record, outputs, targets, weights, scale)
