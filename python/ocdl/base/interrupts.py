"""Ctrl-C that gets lost on its way, and is then pressed once more."""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def heeding_interrupts(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let a function never end as if Ctrl-C had not been pressed: whoever loses it inside, it is pressed again.

    Python loses some itself. ``int("NA")`` writes the message of its ValueError twice, looks for signals each time, and
    writes the second over a KeyboardInterrupt of the first; pandas asks int about every mark of a missing cell, and
    expects that ValueError. NumPy clears whatever comes up while it compares a dtype with one of pandas. And some make
    an error of their own of it: pandas' parser, of one in what it reads from.

    In other threads than the main one, where Python raises none, and where nothing written in Python handles the
    signal, this does nothing.
    """

    @functools.wraps(function)
    def heeding(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(before):
            return function(*args, **kwargs)
        is_over = is_lost = False

        def note(number: int, frame: FrameType | None) -> None:
            nonlocal is_lost
            if is_over:
                is_lost = True
                return
            try:
                before(number, frame)
            except KeyboardInterrupt:
                is_lost = True
                raise

        try:
            signal.signal(signal.SIGINT, note)  # in here: Ctrl-C may come before the next line
            return function(*args, **kwargs)
        except KeyboardInterrupt:
            is_lost = False
            raise
        finally:
            is_over = True  # from here on Ctrl-C waits until its handler is back
            signal.signal(signal.SIGINT, before)
            if is_lost:
                signal.raise_signal(signal.SIGINT)

    return heeding
