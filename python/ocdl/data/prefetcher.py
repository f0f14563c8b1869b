"""Prefetching: a thread reads the next rows while the core computes with the current ones."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Chunk = TypeVar("Chunk")
RowRanges = tuple[tuple[int, int], ...]  # each from its first row up to its end

POLL_SECONDS = 0.02  # after which the core can handle signals


class Prefetcher(Generic[Chunk]):
    """Reads chunks of rows, all in one thread."""

    def __init__(self, read: Callable[[RowRanges], Chunk]) -> None:
        self._read = read
        self._thread = ThreadPoolExecutor(1, "ocdl-source")  # ends with the last reference to it
        self._pending: tuple[RowRanges, Future[Chunk]] | None = None

    def poll(self, ranges: RowRanges, following: RowRanges) -> Chunk | None:
        """Return these rows and begin to read the following ones; None if they are not read within POLL_SECONDS."""
        if self._pending is None or self._pending[0] != ranges:
            self._submit(ranges)
        assert self._pending is not None
        future = self._pending[1]
        try:
            chunk = future.result(POLL_SECONDS)
        except TimeoutError:
            return None
        except BaseException:
            self._pending = None
            raise
        self._pending = None
        if following != ranges:
            self._submit(following)
        return chunk

    def wait(self, ranges: RowRanges) -> Chunk:
        """Return these rows, however long it takes."""
        while (chunk := self.poll(ranges, ranges)) is None:
            pass
        return chunk

    def _submit(self, ranges: RowRanges) -> None:
        if self._pending is not None:
            self._pending[1].cancel()
        self._pending = ranges, self._thread.submit(self._read, ranges)
