"""The ranks of a training: one process, or the ranks of a communicator."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, TypeVar

from ocdl import _core
from ocdl.base.threads import limit_threads
from ocdl.distributed import processors
from ocdl.distributed.collectives import Collectives, RankError
from ocdl.distributed.communicator import as_communicator
from ocdl.distributed.row_distribution import RowDistribution

Value = TypeVar("Value")


class Ranks:
    """One process, without a communicator."""

    rank, size = 0, 1
    min_rows = 1  # on each rank

    @property
    def is_root(self) -> bool:
        """Whether this is rank 0, which writes files, shows progress and reads the clock."""
        return self.rank == 0

    def allreduce_any(self, flag: bool) -> bool:
        """Return whether the flag is set on any rank."""
        return flag

    def broadcast(self, make: Callable[[], Value]) -> Value:
        """Return the result of `make` on the root, which calls it alone."""
        return make()

    def allgather(self, value: Value) -> list[Value]:
        """Return the values of all ranks."""
        return [value]

    def row_distribution(self, rows: int, name: str) -> RowDistribution | None:
        """Return how the rows are distributed, `rows` of them on this rank; None: all are here."""
        return None

    def require_agreement(self, arguments: Callable[[], Mapping[str, Any]]) -> None:
        """Raise a RankError that names the rank and the argument if the arguments of the ranks differ."""


class MPIRanks(Ranks):
    """The ranks of a communicator."""

    min_rows = 0

    def __init__(self, collectives: Collectives) -> None:
        self.collectives, self.rank, self.size = collectives, collectives.rank, collectives.size

    def allreduce_any(self, flag: bool) -> bool:
        return any(packet[0] for packet in self.collectives.allgather_packets("a decision", bytes([flag])))

    def broadcast(self, make: Callable[[], Value]) -> Value:
        payload = pickle.dumps(make()) if self.is_root else b""
        value: Value = pickle.loads(self.collectives.allgather("a decision", payload)[0])
        return value

    def allgather(self, value: Value) -> list[Value]:
        return [pickle.loads(chunk) for chunk in self.collectives.allgather("a decision", pickle.dumps(value))]

    def row_distribution(self, rows: int, name: str) -> RowDistribution:
        return RowDistribution.gather(self.collectives, rows, name)

    def require_agreement(self, arguments: Callable[[], Mapping[str, Any]]) -> None:
        local = json.dumps(arguments()).encode()
        gathered = [json.loads(bytes(chunk)) for chunk in self.collectives.allgather("the arguments", local)]
        for name, first in gathered[0].items():
            for rank, other in enumerate(gathered):
                if other[name] != first:
                    raise RankError(
                        f"the ranks have different arguments: {name} is {_shorten(other[name])} on rank {rank} and "
                        f"{_shorten(first)} on rank 0"
                    )

    def agree_on_threads(self) -> int | None:
        """Return the number of threads of this rank; raise a RankError if versions or cores of the ranks differ."""
        local = {"ocdl": version("ocdl"), "core": _core.build_info()["variant"]} | processors.description()
        gathered = [
            json.loads(bytes(chunk)) for chunk in self.collectives.allgather("joining", json.dumps(local).encode())
        ]
        for rank, other in enumerate(gathered):
            if other["ocdl"] != gathered[0]["ocdl"]:
                raise RankError(
                    f"rank {rank} runs ocdl {other['ocdl']} and rank 0 ocdl {gathered[0]['ocdl']}; all need the same"
                )
            if other["core"] != gathered[0]["core"]:
                raise RankError(
                    f"rank {rank} computes with the core {other['core']!r} and rank 0 with {gathered[0]['core']!r}, "
                    "whose bits differ; set OCDL_CORE on all ranks to a core that all have, such as baseline"
                )
        return processors.count_threads(self.rank, gathered)


@contextmanager
def join_ranks(communicator: Any) -> Iterator[Ranks]:
    """Yield the ranks of a communicator, for the time of a training; None: one process.

    An exception on one rank ends all of them.
    """
    if communicator is None:
        yield Ranks()
        return
    with Collectives(as_communicator(communicator)).session() as collectives:
        ranks = MPIRanks(collectives)
        with limit_threads(ranks.agree_on_threads()):
            yield ranks


def _shorten(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
