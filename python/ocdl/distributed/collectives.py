"""Collective operations of ranks that end together, also if one of them fails.

Every operation begins with an allgather of packets, in which each rank sends its state. A rank that cannot continue,
because of an error or Ctrl-C, sends this with its next packet, whichever operation the others are in, and all end
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

HEADER = struct.Struct("=qqq")  # state of the rank, subject of the operation, and length of the payload
ALL_PACKETS, LARGEST_PACKET, SMALLEST_PACKET = 2**18, 2**14, 2**8  # bytes: of all ranks, and of one
SUBJECTS = ("joining", "the arguments", "the rows", "a sum", "a decision", "the end")
NOTICE = 31_415  # the tag of messages that a rank waits
MAX_LISTENERS = 64  # ranks that receive notices; of more ranks the first two do, because one may be missing
GRACE = 2.0  # seconds that the other ranks wait longer, so that a listener, which can name the missing rank, ends first


class RankState(IntEnum):
    """The state of a rank at the beginning of an operation, from the best to the worst."""

    RUNNING, INTERRUPTED, FAILED = range(3)


class RankError(RuntimeError):
    """An error on another rank, or between the ranks; the message says on which and what.

    Examples
    --------
    >>> try:
    ...     ocdl.train(net, u, X[mine], y[mine], communicator=MPI.COMM_WORLD)  # doctest: +SKIP
    ... except ocdl.distributed.RankError as error:
    ...     print(error)
    """


class Collectives:
    """Collective operations on a communicator."""

    def __init__(self, communicator: Communicator) -> None:
        self.rank, self.size = communicator.rank, communicator.size
        self._listeners = range(self.size if self.size <= MAX_LISTENERS else 2)
        self.timeout = communicator.timeout
        self.packet_size = max(min(ALL_PACKETS // self.size, LARGEST_PACKET), SMALLEST_PACKET)
        self.ended = False  # on all ranks: no operation follows
        self._outer, self._number = communicator.mpi, 0
        self._mpi: Any = None
        self._is_lost = False  # a rank may be missing for ever
        self._sent: list[Any] = []
        self._own = np.zeros(HEADER.size + self.packet_size, np.uint8)
        self._all = np.zeros((self.size, len(self._own)), np.uint8)

    @contextmanager
    def session(self) -> Iterator[Collectives]:
        """Let an exception on this rank end all ranks, with its message."""
        if self.size > 1:
            self._mpi, request = self._outer.Idup()  # separates our messages from the caller's
            self.complete(request, "joining")
        try:
            yield self
            self.allgather_packets("the end")
            self.ended = True
        except BaseException as error:
            self._send_failure(error)
            raise
        finally:
            self._free()

    def allgather_packets(self, subject: str, payload: Any = b"") -> list[memoryview]:
        """Return the payloads of all ranks, each cut off at the size of a packet."""
        lengths, packets = self._exchange_packets(RankState.RUNNING, subject, payload)
        return [packet[:length] for packet, length in zip(packets, lengths, strict=True)]

    def allgather(self, subject: str, payload: Any) -> list[memoryview]:
        """Return the payloads of all ranks, of any length."""
        local = np.frombuffer(payload, np.uint8)
        lengths, packets = self._exchange_packets(RankState.RUNNING, subject, local)
        if max(lengths) <= self.packet_size:
            return [packet[:length] for packet, length in zip(packets, lengths, strict=True)]
        received = np.empty(sum(lengths), np.uint8)
        offsets = chunk_offsets(lengths)
        self.complete(self._mpi.Iallgatherv(local, [received, (lengths, offsets)]), subject)
        return [received.data[start : start + n] for start, n in zip(offsets, lengths, strict=True)]

    def alltoallv(self, subject: str, sent: Bytes, counts: list[int], expected: list[int]) -> Bytes:
        """Send each rank its chunk of the bytes, and return the chunks for this one; after an allgather of packets."""
        if self.size == 1:
            return sent
        received = np.empty(sum(expected), np.uint8)
        to, come = (counts, chunk_offsets(counts)), (expected, chunk_offsets(expected))
        self.complete(self._mpi.Ialltoallv([sent, to], [received, come]), subject)
        return received

    def allgatherv(self, subject: str, local: Bytes, lengths: list[int]) -> Bytes:
        """Return the bytes of all ranks, one after the other, of known lengths; after an allgather of packets."""
        if self.size == 1:
            return local
        received = np.empty(sum(lengths), np.uint8)
        self.complete(self._mpi.Iallgatherv(local, [received, (lengths, chunk_offsets(lengths))]), subject)
        return received

    # ---- packets ----

    def _exchange_packets(
        self, state: RankState, subject: str, payload: Any = b""
    ) -> tuple[list[int], list[memoryview]]:
        local = np.frombuffer(payload, np.uint8)
        if self.size == 1:
            return [len(local)], [local.data[: self.packet_size]]
        self._number += 1
        HEADER.pack_into(self._own.data, 0, state, SUBJECTS.index(subject), len(local))
        packet = local[: self.packet_size]
        self._own[HEADER.size : HEADER.size + len(packet)] = packet
        self.complete(self._mpi.Iallgather(self._own, self._all), subject)
        headers = [HEADER.unpack_from(packet.data) for packet in self._all]
        packets = [packet.data[HEADER.size :] for packet in self._all]
        self._check_states(headers, packets, state)
        return [length for _, _, length in headers], packets

    def _check_states(self, headers: list[Any], packets: list[memoryview], own_state: RankState) -> None:
        """Raise if a rank does not continue: for the worst state of all, and the first rank in it."""
        worst = RankState(max(state for state, _, _ in headers))
        if worst is RankState.RUNNING:
            subjects = [subject for _, subject, _ in headers]
            differing = next((rank for rank, subject in enumerate(subjects) if subject != subjects[0]), None)
            if differing is not None:
                self.ended = True
                raise RankError(
                    f"the ranks are out of step: rank {differing} exchanges {SUBJECTS[subjects[differing]]}, rank 0 "
                    f"{SUBJECTS[subjects[0]]}; all ranks must make the same calls with the same arguments"
                )
            return
        self.ended = True
        if own_state is worst:
            return
        rank = next(rank for rank, (state, _, _) in enumerate(headers) if state == worst)
        text = bytes(packets[rank][: headers[rank][2]]).decode("utf-8", "replace")
        if worst is RankState.INTERRUPTED:
            raise KeyboardInterrupt(f"rank {rank} was interrupted")
        raise RankError(f"rank {rank} has failed: {text}")

    def _send_failure(self, error: BaseException) -> None:
        """Send with the next packet that this rank has failed, unless all have ended already."""
        if self.ended or self.size == 1:
            return
        state = RankState.INTERRUPTED if isinstance(error, KeyboardInterrupt) else RankState.FAILED
        text = f"{type(error).__name__}: {error}".encode()[: self.packet_size]
        try:
            self._exchange_packets(state, "the end", text)
        except RankError as other:
            error.add_note(str(other))
        except KeyboardInterrupt:
            pass
        self.ended = True

    # ---- waiting ----

    def complete(self, request: Any, subject: str) -> None:
        """Wait until a request of MPI is complete; raise a TimeoutError that names the missing ranks."""
        listens = self.rank in self._listeners
        if wait_for(request, self.timeout + (0 if listens else GRACE), self._send_notices):
            return
        self.ended = self._is_lost = True
        atexit.register(self._outer.Abort, 1)  # after the message; MPI's own end would wait for the missing rank
        raise TimeoutError(
            f"{self._describe_missing()} within {self.timeout:g} s, while rank {self.rank} was exchanging {subject} "
            "with all ranks; ocdl.distributed.Communicator(comm, timeout=...) sets the time limit"
        )

    def _send_notices(self) -> None:
        """Notify the listeners on the caller's communicator, as ours does not exist while the ranks join."""
        notice = np.array([self._number], np.int64)
        self._sent = [
            (self._outer.Isend(notice, dest=rank, tag=NOTICE), notice) for rank in self._listeners if rank != self.rank
        ]

    def _describe_missing(self) -> str:
        """Return which ranks are missing, as far as this rank can see from the notices it has received."""
        if self.rank not in self._listeners:
            return "a rank did not join"
        missing = sorted({*range(self.size)} - self._waiting_ranks() - {self.rank})
        if not missing:
            return "all ranks joined, but a message did not arrive"
        numbers = ", ".join(map(str, missing[:10])) + (", ..." if len(missing) > 10 else "")
        return f"{'rank' if len(missing) == 1 else 'ranks'} {numbers} did not join"

    def _waiting_ranks(self) -> set[int]:
        """Return the ranks that have sent a notice that they wait in this operation; older notices are discarded."""
        waiting, notice = set(), np.zeros(1, np.int64)
        for source in range(self.size):
            while self._outer.Iprobe(source=source, tag=NOTICE):
                self._outer.Recv(notice, source=source, tag=NOTICE)
                if notice[0] == self._number:
                    waiting.add(source)
        return waiting

    def _free(self) -> None:
        """Free our communicator, unless a rank may still use it."""
        if self._mpi is not None and self.ended and not self._is_lost:
            self._waiting_ranks()
            self._mpi.Free()


def chunk_offsets(lengths: list[int]) -> list[int]:
    """Return the offsets of consecutive chunks of these lengths."""
    return np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(int).tolist() if lengths else []
