"""Ctrl-C on the command line: it ends a training and keeps its result, and it is never swallowed."""

from __future__ import annotations

import functools
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, after the results were written; the message says which."""


class Pressed:
    """Whether Ctrl-C was pressed; called by a training, which then ends."""

    def __init__(self) -> None:
        self.is_pressed = False

    def __call__(self, _: object) -> bool:
        return self.is_pressed


@contextmanager
def ending_the_training(*, is_root: bool = True) -> Iterator[Pressed]:
    """Let the first Ctrl-C end a training after its iteration; the second one is as always.

    Of several ranks only the root handles it; the others ignore the signal.
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
    before: Callable[..., Any] | int | None = signal.signal(signal.SIGINT, note if is_root else signal.SIG_IGN)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


def reraise_swallowed_interrupts(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Wrap a function: if a KeyboardInterrupt is raised in it and swallowed, the wrapper raises it at the end.

    Python itself swallows some. ``int("NA")`` formats the message of its ValueError twice, handles signals each time,
    and the second message replaces a KeyboardInterrupt of the first; pandas calls int on every marker of a missing
    cell, and expects that ValueError. NumPy clears every exception while it compares a dtype with one of pandas. The
    parser of pandas turns a KeyboardInterrupt of the stream that it reads into an error of its own.

    The wrapper does nothing in other threads than the main one, where Python raises no KeyboardInterrupt, and where
    the handler of the signal is not a Python function.
    """

    @functools.wraps(function)
    def wrapper(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(before):
            return function(*args, **kwargs)
        has_ended = is_swallowed = False

        def record(number: int, frame: FrameType | None) -> None:
            nonlocal is_swallowed
            if has_ended:
                is_swallowed = True
                return
            try:
                before(number, frame)
            except KeyboardInterrupt:
                is_swallowed = True
                raise

        try:
            signal.signal(signal.SIGINT, record)  # inside the try block, as Ctrl-C may come before the next line
            return function(*args, **kwargs)
        except KeyboardInterrupt:
            is_swallowed = False
            raise
        finally:
            has_ended = True  # from here on Ctrl-C is only recorded, until the previous handler is back
            signal.signal(signal.SIGINT, before)
            if is_swallowed:
                signal.raise_signal(signal.SIGINT)

    return wrapper
