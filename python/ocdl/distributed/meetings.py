"""Meetings of the ranks: what all of them attend, whatever has become of one.

Every exchange between ranks begins with a meeting, in which each says whether it goes on. So a rank that cannot,
because of an error, Ctrl-C or a request to stop, says so at the next meeting, whatever that is about, and all end
together.
"""

from __future__ import annotations

import atexit
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.distributed.communicator import Communicator
from ocdl.distributed.waiting import wait_for

__all__ = ["RankError"]

Bytes = NDArray[np.uint8]

HEADER = struct.Struct("=qqq")  # how a rank is, what it came for, and how many bytes it has to say
ALL_PACKETS, LARGEST_PACKET, SMALLEST_PACKET = 2**18, 2**14, 2**8  # bytes: what all bring along, and one
SUBJECTS = ("joining", "the arguments", "the rows", "a sum", "a decision", "the end")
NOTE = 31_415  # the tag of notes that somebody waits
MOST_LISTENERS = 64  # who are told of them: of more ranks the first two, because one may be missing
GRACE = 2.0  # seconds that the others wait longer, so that somebody ends who knows why


class Health(IntEnum):
    """How a rank is when it comes to a meeting."""

    GOES_ON, STOPS, INTERRUPTED, FAILED = range(4)


class RankError(RuntimeError):
    """An error on another rank, or between the ranks; the message says on which and what.

    Examples
    --------
    >>> try:
    ...     ocdl.train(net, u, X[mine], y[mine], communicator=MPI.COMM_WORLD)  # doctest: +SKIP
    ... except ocdl.distributed.RankError as error:
    ...     print(error)
    """


class Stopped(Exception):
    """Some rank was asked to stop, and all know it."""


class Meetings:
    """The ranks of a communicator, in step."""

    def __init__(self, communicator: Communicator) -> None:
        self.rank, self.size = communicator.rank, communicator.size
        self._listeners = range(self.size if self.size <= MOST_LISTENERS else 2)
        self.timeout = communicator.timeout
        self.packet_size = max(min(ALL_PACKETS // self.size, LARGEST_PACKET), SMALLEST_PACKET)
        self.ended = False  # together: nobody comes to a meeting any more
        self._outer, self._number = communicator.mpi, 0
        self._mpi: Any = None
        self._is_lost = False  # some rank may never come
        self._sent: list[Any] = []
        self._own = np.zeros(HEADER.size + self.packet_size, np.uint8)
        self._all = np.zeros((self.size, len(self._own)), np.uint8)

    @contextmanager
    def held(self) -> Iterator[Meetings]:
        """Let an exception on this rank end all of them, with its message."""
        if self.size > 1:
            self._mpi, request = self._outer.Idup()  # messages of ours meet none of the caller's
            self.complete(request, "joining")
        try:
            yield self
            self.meet("the end")
            self.ended = True
        except BaseException as error:
            self._tell(error)
            raise
        finally:
            self._leave()

    def meet(self, subject: str, payload: Any = b"") -> list[memoryview]:
        """Hand in some bytes, and return those of all ranks; where they are too many for a packet, the first ones."""
        lengths, packets = self._attend(Health.GOES_ON, subject, payload)
        return [packet[:length] for packet, length in zip(packets, lengths, strict=True)]

    def gather(self, subject: str, payload: Any) -> list[memoryview]:
        """Hand in any number of bytes, and return those of all ranks."""
        own = np.frombuffer(payload, np.uint8)
        lengths, packets = self._attend(Health.GOES_ON, subject, own)
        if max(lengths) <= self.packet_size:
            return [packet[:length] for packet, length in zip(packets, lengths, strict=True)]
        received = np.empty(sum(lengths), np.uint8)
        places = starts_of(lengths)
        self.complete(self._mpi.Iallgatherv(own, [received, (lengths, places)]), subject)
        return [received.data[start : start + n] for start, n in zip(places, lengths, strict=True)]

    def exchange(self, subject: str, sent: Bytes, counts: list[int], expected: list[int]) -> Bytes:
        """Hand every rank its piece of the bytes, and return the pieces for this one; after a meeting."""
        if self.size == 1:
            return sent
        received = np.empty(sum(expected), np.uint8)
        to, come = (counts, starts_of(counts)), (expected, starts_of(expected))
        self.complete(self._mpi.Ialltoallv([sent, to], [received, come]), subject)
        return received

    def join_pieces(self, subject: str, own: Bytes, lengths: list[int]) -> Bytes:
        """Return the bytes of all ranks, one after the other, whose lengths all know; after a meeting."""
        if self.size == 1:
            return own
        received = np.empty(sum(lengths), np.uint8)
        self.complete(self._mpi.Iallgatherv(own, [received, (lengths, starts_of(lengths))]), subject)
        return received

    def stop(self) -> None:
        """Say at the meeting that the others are at or come to that all stop: it raises Stopped here and there."""
        self._attend(Health.STOPS, "a decision")

    # ---- a meeting ----

    def _attend(self, health: Health, subject: str, payload: Any = b"") -> tuple[list[int], list[memoryview]]:
        own = np.frombuffer(payload, np.uint8)
        if self.size == 1:
            if health is Health.STOPS:
                raise Stopped
            return [len(own)], [own.data[: self.packet_size]]
        self._number += 1
        HEADER.pack_into(self._own.data, 0, health, SUBJECTS.index(subject), len(own))
        said = own[: self.packet_size]
        self._own[HEADER.size : HEADER.size + len(said)] = said
        self.complete(self._mpi.Iallgather(self._own, self._all), subject)
        headers = [HEADER.unpack_from(packet.data) for packet in self._all]
        packets = [packet.data[HEADER.size :] for packet in self._all]
        self._react(headers, packets, health)
        return [length for _, _, length in headers], packets

    def _react(self, headers: list[Any], packets: list[memoryview], own_health: Health) -> None:
        """Raise where some rank does not go on; the gravest reason counts, and of these the first rank."""
        worst = Health(max(health for health, _, _ in headers))
        if worst is Health.GOES_ON:
            subjects = [subject for _, subject, _ in headers]
            odd = next((rank for rank, subject in enumerate(subjects) if subject != subjects[0]), None)
            if odd is not None:
                self.ended = True
                raise RankError(
                    f"the ranks are out of step: rank {odd} came for {SUBJECTS[subjects[odd]]}, rank 0 for "
                    f"{SUBJECTS[subjects[0]]}; were they called alike?"
                )
            return
        if worst is Health.STOPS:
            raise Stopped
        self.ended = True
        if own_health is worst:
            return
        rank = next(rank for rank, (health, _, _) in enumerate(headers) if health == worst)
        text = bytes(packets[rank][: headers[rank][2]]).decode("utf-8", "replace")
        if worst is Health.INTERRUPTED:
            raise KeyboardInterrupt(f"rank {rank} was interrupted")
        raise RankError(f"rank {rank} has failed: {text}")

    def _tell(self, error: BaseException) -> None:
        """Say at the next meeting that this rank has failed, unless all know why."""
        if self.ended or self.size == 1:
            return
        health = Health.INTERRUPTED if isinstance(error, KeyboardInterrupt) else Health.FAILED
        text = f"{type(error).__name__}: {error}".encode()[: self.packet_size]
        try:
            self._attend(health, "the end", text)
        except RankError as other:
            error.add_note(str(other))
        except (Stopped, KeyboardInterrupt):
            pass
        self.ended = True

    # ---- waiting ----

    def complete(self, request: Any, subject: str) -> None:
        """Wait for a message of all ranks."""
        listens = self.rank in self._listeners
        if wait_for(request, self.timeout + (0 if listens else GRACE), self._note_that_i_wait):
            return
        self.ended = self._is_lost = True
        atexit.register(self._outer.Abort, 1)  # after the message; MPI's own end would wait for the missing rank
        raise TimeoutError(
            f"{self._missing()} within {self.timeout:g} s, where rank {self.rank} waits for all of them about "
            f"{subject}; ocdl.distributed.Communicator(comm, timeout=...) sets how long"
        )

    def _note_that_i_wait(self) -> None:
        """Tell it by the caller's communicator, because ours is not there when the ranks still join."""
        note = np.array([self._number], np.int64)
        self._sent = [
            (self._outer.Isend(note, dest=rank, tag=NOTE), note) for rank in self._listeners if rank != self.rank
        ]

    def _missing(self) -> str:
        """Say who has not come, as far as it is known here."""
        if self.rank not in self._listeners:
            return "some rank has not come"
        missing = sorted({*range(self.size)} - self._waiting() - {self.rank})
        if not missing:
            return "the ranks are here, but a message is not"
        listed = ", ".join(map(str, missing[:10])) + (", ..." if len(missing) > 10 else "")
        return f"rank {listed} has not come" if len(missing) == 1 else f"ranks {listed} have not come"

    def _waiting(self) -> set[int]:
        """Return the ranks that have said that they wait for this meeting; older notes are thrown away."""
        found, note = set(), np.zeros(1, np.int64)
        for source in range(self.size):
            while self._outer.Iprobe(source=source, tag=NOTE):
                self._outer.Recv(note, source=source, tag=NOTE)
                if note[0] == self._number:
                    found.add(source)
        return found

    def _leave(self) -> None:
        """Give the communicator back, unless somebody may still come to it."""
        if self._mpi is not None and self.ended and not self._is_lost:
            self._waiting()
            self._mpi.Free()


def starts_of(lengths: list[int]) -> list[int]:
    """Return where pieces of these lengths begin, one after the other."""
    return np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(int).tolist() if lengths else []
