"""Which rows are whose: every rank has whole shards, in the order of the ranks."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ocdl import _core
from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.distributed.communicator import as_communicator
from ocdl.distributed.meetings import Meetings

__all__ = ["my_rows"]

MOST_ROWS = 2**53
COUNT = struct.Struct("=q")


def my_rows(n_rows: int, comm: Any) -> slice:
    """Return the rows of this rank when there are `n_rows` in all: whole shards, as equal as they can be.

    Sums over rows are made shard by shard, and shards are added in one order that follows from `n_rows` alone; so bits
    do not depend on who has which. A shard is 4096 rows, more from four million rows on. Where there are fewer shards
    than ranks, some ranks have no rows.

    Parameters
    ----------
    n_rows : int
        The number of rows on all ranks together.
    comm : mpi4py.MPI.Intracomm or Communicator

    Returns
    -------
    slice
        Empty where there are more ranks than shards.

    Raises
    ------
    TypeError, ValueError
        If `n_rows` is no whole number, negative or too large, or `comm` is no communicator.

    Examples
    --------
    >>> from mpi4py import MPI  # doctest: +SKIP
    >>> X = np.load("X.npy", mmap_mode="r")  # doctest: +SKIP
    >>> mine = ocdl.distributed.my_rows(len(X), MPI.COMM_WORLD)  # doctest: +SKIP
    >>> ocdl.train(net, u, X[mine], y[mine], communicator=MPI.COMM_WORLD)  # doctest: +SKIP
    """
    communicator = as_communicator(comm)
    return rows_of(communicator.rank, communicator.size, validation.integer_up_to(n_rows, "n_rows", MOST_ROWS))


def rows_of(rank: int, ranks: int, n_rows: int) -> slice:
    """Return the rows of a rank, as equal as whole shards can be."""
    size = _core.shard_size(n_rows)
    shards = -(-n_rows // size)
    first, end = (shards * (rank + k) // ranks * size for k in (0, 1))
    return slice(min(first, n_rows), min(end, n_rows))


@dataclass(frozen=True)
class Share:
    """The rows of this rank among those of all."""

    meetings: Meetings
    counts: tuple[int, ...]  # of rows, of every rank

    @classmethod
    def agreed(cls, meetings: Meetings, rows: int, name: str) -> Share:
        """Return the share of this rank, when every rank has said how many rows it has; they have to be whole shards.

        `name` is what the rows are called in a message.
        """
        said = meetings.meet("the rows", COUNT.pack(rows))
        share = cls(meetings, tuple(COUNT.unpack(count)[0] for count in said))
        share._require_whole_shards(name)
        return share

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The number of each rank's first row, and of all rows."""
        return tuple(accumulate(self.counts, initial=0))

    @property
    def all_rows(self) -> int:
        return self.starts[-1]

    @property
    def first_row(self) -> int:
        return self.starts[self.meetings.rank]

    @property
    def rows(self) -> int:
        return self.counts[self.meetings.rank]

    @property
    def shards(self) -> int:
        """The number of shards on all ranks."""
        return -(-self.all_rows // _core.shard_size(self.all_rows))

    def _require_whole_shards(self, name: str) -> None:
        if self.all_rows == 0:
            raise ValueError(f"{name} is empty on every rank: at least one sample is needed")
        size = _core.shard_size(self.all_rows)
        for rank, count in enumerate(self.counts):
            end = self.starts[rank + 1]
            if count and end % size and end != self.all_rows:
                raise ValueError(
                    f"{name} has {count} rows on rank {rank}, where those up to rank {rank} are {end}; of "
                    f"{self.all_rows} rows on all ranks every rank takes whole shards of {size}, in the order of the "
                    f"ranks: ocdl.distributed.my_rows({self.all_rows}, comm) says which"
                )

    # ---- sums by the tree ----

    @cached_property
    def places(self) -> list[Any]:
        """Level and index of the nodes that each rank has when it has added up its own shards."""
        nothing = [np.zeros((count, 0)) for count in self.counts]
        return [
            np.array([node[:2] for node in _core.sum_nodes(rows, first, self.all_rows)], np.int64).reshape(-1, 2)
            for rows, first in zip(nothing, self.starts, strict=False)
        ]

    def sum(self, table: FloatArray) -> FloatArray:
        """Return the sum over all rows of all ranks, in which `table`, (rows, numbers), has those of this one."""
        wide, _ = self.add_up(_core.sum_nodes(table, self.first_row, self.all_rows))
        return wide

    def add_up(self, nodes: list[Any]) -> tuple[FloatArray, FloatArray]:
        """Return the sum over the nodes of all ranks; where they are long, each rank adds up a segment of them."""
        if self.meetings.size == 1:
            return _core.root_of(nodes, self.shards)
        sizes = (len(nodes[0][2]), len(nodes[0][3])) if nodes else (0, 0)
        wide, single = (_stacked(nodes, part, kind) for part, kind in ((2, np.float64), (3, np.float32)))
        payload = [LENGTHS.pack(*sizes)]
        if self._fits(sizes):
            payload += [wide.tobytes(), single.tobytes()]
        said = self.meetings.meet("a sum", b"".join(payload))
        sizes = next((found for found in map(_lengths_of, said) if any(found)), (0, 0))  # of those who have nodes
        if self._fits(sizes):
            return self._root([piece[LENGTHS.size :] for piece in said], sizes)
        return self._add_up_by_segments(wide, single, sizes)

    def _fits(self, sizes: tuple[int, int]) -> bool:
        """Whether every rank can bring its nodes along to a meeting."""
        most = max(map(len, self.places))
        return LENGTHS.size + most * (8 * sizes[0] + 4 * sizes[1]) <= self.meetings.packet_size

    def _root(self, pieces: list[Any], sizes: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
        """Return the sum, of pieces that hold the nodes of each rank."""
        tables = []
        for piece, places in zip(pieces, self.places, strict=True):
            n = len(places)
            wide = np.frombuffer(piece, np.float64, n * sizes[0]).reshape(n, sizes[0])
            single = np.frombuffer(piece, np.float32, n * sizes[1], offset=wide.nbytes).reshape(n, sizes[1])
            tables.append((wide, single))
        wide, single = (np.concatenate(parts) for parts in zip(*tables, strict=True))
        return _core.root_of_table(np.concatenate(self.places), wide, single, self.shards)

    def _add_up_by_segments(
        self, wide: FloatArray, single: FloatArray, sizes: tuple[int, int]
    ) -> tuple[FloatArray, FloatArray]:
        """Each rank receives its segment of all nodes, adds it up and hands it to all: no rank holds them whole."""
        meetings, ranks = self.meetings, range(self.meetings.size)
        wide, single = (part.reshape(len(part), size) for part, size in zip((wide, single), sizes, strict=True))
        cuts = [[size * rank // meetings.size for rank in (*ranks, meetings.size)] for size in sizes]
        pieces = [
            b"".join(
                np.ascontiguousarray(part[:, cut[rank] : cut[rank + 1]]).tobytes()
                for part, cut in zip((wide, single), cuts, strict=True)
            )
            for rank in ranks
        ]
        segments = [8 * (cuts[0][r + 1] - cuts[0][r]) + 4 * (cuts[1][r + 1] - cuts[1][r]) for r in ranks]
        expected = [segments[meetings.rank] * len(places) for places in self.places]
        sent = np.frombuffer(b"".join(pieces), np.uint8)
        received = meetings.exchange("a sum", sent, [len(piece) for piece in pieces], expected)
        starts = list(accumulate(expected, initial=0))
        own_sizes = tuple(cut[meetings.rank + 1] - cut[meetings.rank] for cut in cuts)
        mine = self._root([received[a:b] for a, b in pairwise(starts)], own_sizes)
        own = np.frombuffer(b"".join(part.tobytes() for part in mine), np.uint8)
        joined = meetings.join_pieces("a sum", own, segments)
        return _separated(joined, cuts, segments)


LENGTHS = struct.Struct("=qq")  # of a node: numbers in double and in single precision


def _lengths_of(piece: Any) -> tuple[int, int]:
    wide, single = LENGTHS.unpack_from(piece)
    return wide, single


def _stacked(nodes: list[Any], part: int, kind: Any) -> FloatArray:
    return np.stack([node[part] for node in nodes]) if nodes else np.zeros((0, 0), kind)


def _separated(joined: Any, cuts: list[list[int]], segments: list[int]) -> tuple[FloatArray, FloatArray]:
    """Return the two vectors whose segments stand one rank after the other."""
    wide, single = np.empty(cuts[0][-1]), np.empty(cuts[1][-1], np.float32)
    start = 0
    for rank, length in enumerate(segments):
        (a, b), (c, d) = ((cut[rank], cut[rank + 1]) for cut in cuts)
        wide[a:b] = np.frombuffer(joined, np.float64, b - a, offset=start)
        single[c:d] = np.frombuffer(joined, np.float32, d - c, offset=start + 8 * (b - a))
        start += length
    return wide, single
