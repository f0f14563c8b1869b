"""A contender in a separate process, which receives requests for samples over a pipe.

Thread pools, spinning waits and memory of one library thus never touch another, and each process can have its own
number of threads and its own memory limit.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

from contender import Assignment, Failed

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
SERVER = Path(__file__).with_name("server.py")


def thread_environment(threads: int) -> dict[str, str]:
    """This process's environment with the settings that libraries read while they are loaded."""
    return {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))}


class Worker:
    """Carries out one assignment; raises Refused or Failed where the contender cannot."""

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        # Two processes that compile the same code at the same time have read each other's unfinished files.
        self._compiled = tempfile.TemporaryDirectory(prefix="ocdl-benchmark-", ignore_cleanup_errors=True)
        self._connection, theirs = Pipe()
        self._process = subprocess.Popen(
            [assignment.python, SERVER, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**thread_environment(assignment.threads), "TORCHINDUCTOR_CACHE_DIR": self._compiled.name},
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        try:
            self._connection.send(assignment)
            self._receive()
        except Exception:
            self.close()
            raise

    def result(self) -> Any:
        """What the contender answers, as NumPy arrays."""
        return self._ask("result")

    def seconds(self, repetitions: int, warm_up: bool = True, of_processor: bool = False) -> float:
        """Time of that many evaluations, of the clock or of the processor, with a warm-up after one not timed."""
        return self._ask("seconds", repetitions, warm_up, of_processor)

    def peak_bytes(self) -> int:
        """Growth of the resident set during an evaluation."""
        return self._ask("peak_bytes")

    def close(self) -> None:
        self._connection.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._compiled.cleanup()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, *request: Any) -> Any:
        self._connection.send(request)
        return self._receive()

    def _receive(self) -> Any:
        try:
            answer = self._connection.recv()
        except (EOFError, ConnectionResetError):
            raise Failed(f"process ended with code {self._process.wait()}") from None
        if isinstance(answer, Exception):
            raise answer
        return answer
