"""Ctrl-C on the command line: it ends a training, whose result is kept, and no library can swallow it."""

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
    """Ctrl-C after results were written; the message says which."""


class InterruptFlag:
    """Whether Ctrl-C was pressed; as the callback of a training it ends the training then."""

    def __init__(self) -> None:
        self.is_set = False

    def __call__(self, _: object) -> bool:
        return self.is_set


@contextmanager
def end_training_on_interrupt(*, is_root: bool = True) -> Iterator[InterruptFlag]:
    """Let the first Ctrl-C end a training after the current iteration; the second raises KeyboardInterrupt.

    With several ranks only the root handles the signal; the others ignore it.
    """
    interrupt_flag = InterruptFlag()

    def note(number: int, frame: Any) -> None:
        if interrupt_flag.is_set:
            raise KeyboardInterrupt
        interrupt_flag.is_set = True
        print("ocdl: ending the training; press Ctrl-C again to discard what has been learned", file=sys.stderr)

    if threading.current_thread() is not threading.main_thread():
        yield interrupt_flag
        return
    before: Callable[..., Any] | int | None = signal.signal(signal.SIGINT, note if is_root else signal.SIG_IGN)
    try:
        yield interrupt_flag
    finally:
        signal.signal(signal.SIGINT, before)


def reraise_swallowed_interrupts(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Wrap a function: if a KeyboardInterrupt is raised in it and swallowed, the wrapper raises it at the end.

    Python itself swallows some. ``int("NA")`` formats the message of its ValueError twice, handles signals each time,
    and the second message replaces a KeyboardInterrupt of the first; pandas calls int on every marker of a missing
    cell, and expects that ValueError. NumPy clears every exception while it compares a dtype with one of pandas. The
    parser of pandas turns a KeyboardInterrupt of the stream that it reads into an error of its own.

    The wrapper does nothing in threads other than the main one, in which Python raises no KeyboardInterrupt, and if
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
