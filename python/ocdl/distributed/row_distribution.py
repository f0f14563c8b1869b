"""How rows are distributed over the ranks: every rank has whole shards, in the order of the ranks."""

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
from ocdl.distributed.collectives import Collectives
from ocdl.distributed.communicator import as_communicator

__all__ = ["local_rows"]

MAX_ROWS = 2**53
COUNT = struct.Struct("=q")


def local_rows(n_rows: int, comm: Any) -> slice:
    """Return the rows of this rank when there are `n_rows` in all: whole shards, as equal as they can be.

    Sums over rows are computed shard by shard, and shards are added in one order that depends on `n_rows` alone; so the
    bits do not depend on which rank has which rows. A shard is 4096 rows, more from four million rows on. If there are
    fewer shards than ranks, some ranks have no rows.

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
    >>> mine = ocdl.distributed.local_rows(len(X), MPI.COMM_WORLD)  # doctest: +SKIP
    >>> ocdl.train(net, u, X[mine], y[mine], communicator=MPI.COMM_WORLD)  # doctest: +SKIP
    """
    communicator = as_communicator(comm)
    return row_range(communicator.rank, communicator.size, validation.integer_up_to(n_rows, "n_rows", MAX_ROWS))


def row_range(rank: int, ranks: int, n_rows: int) -> slice:
    """Return the rows of a rank, as equal as whole shards can be."""
    size = _core.shard_size(n_rows)
    shards = -(-n_rows // size)
    first, end = (shards * (rank + k) // ranks * size for k in (0, 1))
    return slice(min(first, n_rows), min(end, n_rows))


@dataclass(frozen=True)
class RowDistribution:
    """How many rows each rank has, and sums over the rows of all ranks."""

    collectives: Collectives
    counts: tuple[int, ...]  # rows of each rank

    @classmethod
    def gather(cls, collectives: Collectives, rows: int, name: str) -> RowDistribution:
        """Gather the number of rows of every rank; raise a ValueError unless they are whole shards.

        `name` is the name of the rows in messages.
        """
        gathered = collectives.allgather_packets("the rows", COUNT.pack(rows))
        distribution = cls(collectives, tuple(COUNT.unpack(count)[0] for count in gathered))
        distribution._require_whole_shards(name)
        return distribution

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The index of the first row of each rank, and the number of all rows."""
        return tuple(accumulate(self.counts, initial=0))

    @property
    def all_rows(self) -> int:
        return self.starts[-1]

    @property
    def first_row(self) -> int:
        return self.starts[self.collectives.rank]

    @property
    def rows(self) -> int:
        return self.counts[self.collectives.rank]

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
                    f"ranks: ocdl.distributed.local_rows({self.all_rows}, comm) returns them"
                )

    # ---- sums by the tree ----

    @cached_property
    def node_indices(self) -> list[Any]:
        """Level and index of the nodes of the tree that each rank computes from its own shards."""
        nothing = [np.zeros((count, 0)) for count in self.counts]
        return [
            np.array([node[:2] for node in _core.sum_nodes(rows, first, self.all_rows)], np.int64).reshape(-1, 2)
            for rows, first in zip(nothing, self.starts, strict=False)
        ]

    def allreduce_sum(self, table: FloatArray) -> FloatArray:
        """Return the sum over the rows of all ranks; `table`, (rows, numbers), has those of this rank."""
        wide, _ = self.allreduce_nodes(_core.sum_nodes(table, self.first_row, self.all_rows))
        return wide

    def allreduce_nodes(self, nodes: list[Any]) -> tuple[FloatArray, FloatArray]:
        """Return the sum over the nodes of all ranks; if they are long, each rank adds up a segment of them."""
        if self.collectives.size == 1:
            return _core.root_of(nodes, self.shards)
        sizes = (len(nodes[0][2]), len(nodes[0][3])) if nodes else (0, 0)
        wide, single = (_stack_nodes(nodes, part, kind) for part, kind in ((2, np.float64), (3, np.float32)))
        payload = [NODE_LENGTHS.pack(*sizes)]
        if self._fits(sizes):
            payload += [wide.tobytes(), single.tobytes()]
        packets = self.collectives.allgather_packets("a sum", b"".join(payload))
        sizes = next((pair for pair in map(_node_lengths, packets) if any(pair)), (0, 0))  # of a rank with nodes
        if self._fits(sizes):
            return self._tree_root([chunk[NODE_LENGTHS.size :] for chunk in packets], sizes)
        return self._allreduce_by_segments(wide, single, sizes)

    def _fits(self, sizes: tuple[int, int]) -> bool:
        """Whether the nodes of every rank fit into a packet."""
        longest = max(map(len, self.node_indices))
        return NODE_LENGTHS.size + longest * (8 * sizes[0] + 4 * sizes[1]) <= self.collectives.packet_size

    def _tree_root(self, chunks: list[Any], sizes: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
        """Return the sum; the chunks hold the nodes of each rank."""
        tables = []
        for chunk, node_indices in zip(chunks, self.node_indices, strict=True):
            n = len(node_indices)
            wide = np.frombuffer(chunk, np.float64, n * sizes[0]).reshape(n, sizes[0])
            single = np.frombuffer(chunk, np.float32, n * sizes[1], offset=wide.nbytes).reshape(n, sizes[1])
            tables.append((wide, single))
        wide, single = (np.concatenate(parts) for parts in zip(*tables, strict=True))
        return _core.root_of_table(np.concatenate(self.node_indices), wide, single, self.shards)

    def _allreduce_by_segments(
        self, wide: FloatArray, single: FloatArray, sizes: tuple[int, int]
    ) -> tuple[FloatArray, FloatArray]:
        """Let each rank receive, add up and send to all its segment of the nodes: no rank holds them whole."""
        collectives, ranks = self.collectives, range(self.collectives.size)
        wide, single = (part.reshape(len(part), size) for part, size in zip((wide, single), sizes, strict=True))
        cuts = [[size * rank // collectives.size for rank in (*ranks, collectives.size)] for size in sizes]
        chunks = [
            b"".join(
                np.ascontiguousarray(part[:, cut[rank] : cut[rank + 1]]).tobytes()
                for part, cut in zip((wide, single), cuts, strict=True)
            )
            for rank in ranks
        ]
        segments = [8 * (cuts[0][r + 1] - cuts[0][r]) + 4 * (cuts[1][r + 1] - cuts[1][r]) for r in ranks]
        expected = [segments[collectives.rank] * len(node_indices) for node_indices in self.node_indices]
        sent = np.frombuffer(b"".join(chunks), np.uint8)
        received = collectives.alltoallv("a sum", sent, [len(chunk) for chunk in chunks], expected)
        starts = list(accumulate(expected, initial=0))
        own_sizes = tuple(cut[collectives.rank + 1] - cut[collectives.rank] for cut in cuts)
        local_sum = self._tree_root([received[a:b] for a, b in pairwise(starts)], own_sizes)
        local_bytes = np.frombuffer(b"".join(part.tobytes() for part in local_sum), np.uint8)
        joined = collectives.allgatherv("a sum", local_bytes, segments)
        return _split_segments(joined, cuts, segments)


NODE_LENGTHS = struct.Struct("=qq")  # of a node: numbers in double and in single precision


def _node_lengths(chunk: Any) -> tuple[int, int]:
    wide, single = NODE_LENGTHS.unpack_from(chunk)
    return wide, single


def _stack_nodes(nodes: list[Any], part: int, kind: Any) -> FloatArray:
    return np.stack([node[part] for node in nodes]) if nodes else np.zeros((0, 0), kind)


def _split_segments(joined: Any, cuts: list[list[int]], segments: list[int]) -> tuple[FloatArray, FloatArray]:
    """Return the two vectors from the segments of the ranks, which follow each other."""
    wide, single = np.empty(cuts[0][-1]), np.empty(cuts[1][-1], np.float32)
    start = 0
    for rank, length in enumerate(segments):
        (a, b), (c, d) = ((cut[rank], cut[rank + 1]) for cut in cuts)
        wide[a:b] = np.frombuffer(joined, np.float64, b - a, offset=start)
        single[c:d] = np.frombuffer(joined, np.float32, d - c, offset=start + 8 * (b - a))
        start += length
    return wide, single
