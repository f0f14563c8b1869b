"""Waiting for a message without blocking, so that signals, other processes and a time limit take effect."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

SPIN = 2e-4  # seconds of testing without sleeping: most messages are there by then
SLEEP_FRACTION = 0.05  # of the time waited so far, so that other processes on a full machine find a processor
LONGEST_SLEEP = 2e-5  # a long message progresses by a chunk with every test
LONG = 1.0


def wait_for(request: Any, timeout: float, when_long: Callable[[], None]) -> bool:
    """Wait until a request of MPI is complete; return False after the timeout.

    `when_long` is called once if the wait is long. Ctrl-C takes effect when the request is complete, so that the ranks
    stay synchronised; if it is pressed twice, at once.
    """
    started = time.monotonic()
    is_notified = False
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            if request.Test():
                break
            waited = time.monotonic() - started
            if waited > timeout:
                return False
            if waited > SPIN:
                time.sleep(min(SLEEP_FRACTION * waited, LONGEST_SLEEP))
            if waited > min(LONG, timeout / 2) and not is_notified:
                is_notified = True
                when_long()
        except KeyboardInterrupt as pressed:
            if interrupt is not None:
                raise
            interrupt = pressed
    if interrupt is not None:
        raise interrupt
    return True
