"""Ctrl-C during a training: it ends, and what has been learned is kept."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, after everything was written; the message says what."""


class Pressed:
    """Whether Ctrl-C was pressed; called by a training, which then ends."""

    def __init__(self) -> None:
        self.is_pressed = False

    def __call__(self, _: object) -> bool:
        return self.is_pressed


@contextmanager
def ending_the_training(*, leads: bool = True) -> Iterator[Pressed]:
    """Let the first Ctrl-C end a training after its iteration; the second one is as always.

    Of several ranks the first one leads; the others leave it to that.
    """
    pressed = Pressed()

    def note(number: int, frame: Any) -> None:
        if pressed.is_pressed:
            raise KeyboardInterrupt
        pressed.is_pressed = True
        print("ocdl: ending the training; Ctrl-C once more gives up what has been learned", file=sys.stderr)

    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return
    before: Callable[..., Any] | int | None = signal.signal(signal.SIGINT, note if leads else signal.SIG_IGN)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
