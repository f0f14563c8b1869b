"""Waiting for a message without blocking: signals, other processes and the clock count meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

SPIN = 2e-4  # seconds in which it asks again at once: most messages are there by then
SHARE = 0.05  # of the time waited so far that it sleeps, so that neighbours on a full machine find a processor
LONGEST_SLEEP = 2e-5  # a long message moves on by a piece whenever somebody asks
LONG = 1.0


def wait_for(request: Any, timeout: float, when_long: Callable[[], None]) -> bool:
    """Wait until a request of MPI is complete; False when the time is over.

    `when_long` is called once, when it takes longer than it should. Ctrl-C is put off until the request is complete, so
    that the ranks stay in step; pressed twice, it is not.
    """
    started = time.monotonic()
    said = False
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            if request.Test():
                break
            waited = time.monotonic() - started
            if waited > timeout:
                return False
            if waited > SPIN:
                time.sleep(min(SHARE * waited, LONGEST_SLEEP))
            if waited > min(LONG, timeout / 2) and not said:
                said = True
                when_long()
        except KeyboardInterrupt as pressed:
            if interrupt is not None:
                raise
            interrupt = pressed
    if interrupt is not None:
        raise interrupt
    return True
