"""The ranks of a training, as one of them sees them; without a communicator it is alone."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, TypeVar

from ocdl import _core
from ocdl.base.threads import limited_threads
from ocdl.distributed import processors
from ocdl.distributed.communicator import as_communicator
from ocdl.distributed.meetings import Meetings, RankError, Stopped
from ocdl.distributed.shares import Share

Made = TypeVar("Made")


class Ranks:
    """One process alone: what it says is what all say."""

    rank, size = 0, 1
    least_rows = 1  # that a rank needs

    @property
    def leads(self) -> bool:
        """Whether this rank writes files, shows progress and looks at the clock."""
        return self.rank == 0

    def any(self, flag: bool) -> bool:
        """Whether it is so on some rank."""
        return flag

    def led(self, make: Callable[[], Made]) -> Made:
        """Return what the leading rank makes."""
        return make()

    def said(self, value: Made) -> list[Made]:
        """Return what every rank says."""
        return [value]

    def share(self, rows: int, name: str) -> Share | None:
        """Return which of all rows these are; None: all of them."""
        return None

    def in_step(self, compute: Callable[[], Made]) -> Made | None:
        """Return what a computation returns, in which the ranks meet; nothing if it was stopped on any of them."""
        return compute()

    def require_agreement(self, arguments: Callable[[], Mapping[str, Any]]) -> None:
        """Raise where a rank was called with something else, and say which."""


class RanksTogether(Ranks):
    """Several processes that meet."""

    least_rows = 0

    def __init__(self, meetings: Meetings) -> None:
        self.meetings, self.rank, self.size = meetings, meetings.rank, meetings.size

    def any(self, flag: bool) -> bool:
        return any(said[0] for said in self.meetings.meet("a decision", bytes([flag])))

    def led(self, make: Callable[[], Made]) -> Made:
        payload = pickle.dumps(make()) if self.leads else b""
        made: Made = pickle.loads(self.meetings.gather("a decision", payload)[0])
        return made

    def said(self, value: Made) -> list[Made]:
        return [pickle.loads(piece) for piece in self.meetings.gather("a decision", pickle.dumps(value))]

    def share(self, rows: int, name: str) -> Share:
        return Share.agreed(self.meetings, rows, name)

    def in_step(self, compute: Callable[[], Made]) -> Made | None:
        try:
            made = compute()
            if not made:
                self.meetings.stop()
        except Stopped:
            return None
        return made

    def require_agreement(self, arguments: Callable[[], Mapping[str, Any]]) -> None:
        own = json.dumps(arguments()).encode()
        said = [json.loads(bytes(piece)) for piece in self.meetings.gather("the arguments", own)]
        for name, first in said[0].items():
            for rank, other in enumerate(said):
                if other[name] != first:
                    raise RankError(
                        f"the ranks were not called alike: {name} is {_short(other[name])} on rank {rank} and "
                        f"{_short(first)} on rank 0"
                    )

    def threads(self) -> int | None:
        """Return how many threads this rank takes, when all have said who they are and fit together."""
        own = {"ocdl": version("ocdl"), "core": _core.build_info()["variant"]} | processors.description()
        said = [json.loads(bytes(piece)) for piece in self.meetings.gather("joining", json.dumps(own).encode())]
        for rank, other in enumerate(said):
            if other["ocdl"] != said[0]["ocdl"]:
                raise RankError(
                    f"rank {rank} runs ocdl {other['ocdl']} and rank 0 ocdl {said[0]['ocdl']}; all need the same"
                )
            if other["core"] != said[0]["core"]:
                raise RankError(
                    f"rank {rank} computes with the core {other['core']!r} and rank 0 with {said[0]['core']!r}, whose "
                    "bits differ; set OCDL_CORE on all ranks to one that all have, as baseline"
                )
        return processors.threads_of(self.rank, said)


@contextmanager
def joined(communicator: Any) -> Iterator[Ranks]:
    """Bring the ranks of a communicator together, for as long as they train; none: alone.

    Whatever ends on one of them ends on all.
    """
    if communicator is None:
        yield Ranks()
        return
    with Meetings(as_communicator(communicator)).held() as meetings:
        ranks = RanksTogether(meetings)
        with limited_threads(ranks.threads()):
            yield ranks


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
