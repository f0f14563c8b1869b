"""Reading ahead: a thread reads what comes next while the core computes with what is there."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Piece = TypeVar("Piece")
Runs = tuple[tuple[int, int], ...]  # rows from ... to (not including) ..., one run behind the other

A_MOMENT = 0.02  # seconds, after which somebody looks whether to go on


class ReadingAhead(Generic[Piece]):
    """Pieces as they are asked for, each read by one and the same thread."""

    def __init__(self, read: Callable[[Runs], Piece]) -> None:
        self._read = read
        self._thread = ThreadPoolExecutor(1, "ocdl-source")  # ends when nobody refers to it any more
        self._asked: tuple[Runs, Future[Piece]] | None = None

    def piece(self, runs: Runs, following: Runs) -> Piece | None:
        """Return the rows of these runs, or None where they are not there after a moment; begin with the next ones."""
        if self._asked is None or self._asked[0] != runs:
            self._ask(runs)
        assert self._asked is not None
        future = self._asked[1]
        try:
            found = future.result(A_MOMENT)
        except TimeoutError:
            return None
        except BaseException:
            self._asked = None
            raise
        self._asked = None
        if following != runs:
            self._ask(following)
        return found

    def now(self, runs: Runs) -> Piece:
        """Return the rows of these runs, however long it takes."""
        while (found := self.piece(runs, runs)) is None:
            pass
        return found

    def _ask(self, runs: Runs) -> None:
        if self._asked is not None:
            self._asked[1].cancel()
        self._asked = runs, self._thread.submit(self._read, runs)
