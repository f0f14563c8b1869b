"""A busy process next to what is measured."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def neighbour() -> Iterator[subprocess.Popen]:
    """A process that computes without pause whenever it is not stopped; it shares two processors."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    os.sched_setaffinity(process.pid, sorted(os.sched_getaffinity(0))[:2])
    process.send_signal(signal.SIGSTOP)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
