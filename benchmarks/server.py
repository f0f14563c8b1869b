"""The side of a worker that loads a contender and answers: `python server.py FILE_DESCRIPTOR`, started by worker.py."""

from __future__ import annotations

import os
import resource
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import contender
import numpy as np
from contender import Assignment, Failed, Refused
from dynamics_jobs import DynamicsGradient
from jobs import Gradient, Training


class Answers:
    """One method for each request a worker can make."""

    def __init__(self, assignment: Assignment) -> None:
        competitor = contender.load(assignment)
        if refusal := competitor.refusal(assignment.question, assignment.job):
            raise Refused(refusal)
        build = getattr(competitor, assignment.question)
        self._evaluate = build(assignment.job, assignment.job.problem(), assignment.threads)

    def result(self) -> Any:
        answer = self._evaluate()
        if isinstance(answer, Gradient | Training | DynamicsGradient):
            return type(answer)(*(None if part is None else np.array(part) for part in answer))
        return np.array(answer)

    def seconds(self, repetitions: int, warm_up: bool, of_processor: bool) -> float:
        clock = time.process_time if of_processor else time.perf_counter
        if warm_up:
            self._evaluate()
        start = clock()
        for _ in range(repetitions):
            self._evaluate()
        return clock() - start

    def peak_bytes(self) -> int:
        forget_peak()
        before = memory_status("VmRSS")
        self._evaluate()
        return max(0, memory_status("VmHWM") - before)


def forget_peak() -> None:
    """Set the largest resident set on record back to the present one, so that a peak during set-up does not count."""
    Path("/proc/self/clear_refs").write_text("5")


def memory_status(field: str) -> int:
    """Bytes: VmRSS is resident now, VmHWM the most that was."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(line for line in lines if line.startswith(f"{field}:")).split()[1]
    return int(kilobytes) * 1024


def restrict(assignment: Assignment) -> None:
    """No more processors and memory than assigned; called before the contender is loaded, though after NumPy."""
    if assignment.memory_limit:
        resource.setrlimit(resource.RLIMIT_AS, (assignment.memory_limit, assignment.memory_limit))
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: assignment.processors])


def serve(connection: Connection) -> None:
    """Answer requests until the other end closes."""
    try:
        assignment = connection.recv()
        restrict(assignment)
        answers = Answers(assignment)
        connection.send(None)
        while True:
            request, *arguments = connection.recv()
            connection.send(getattr(answers, request)(*arguments))
    except EOFError:
        return
    except Refused as refusal:
        connection.send(refusal)
    except Exception as error:
        connection.send(Failed(f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"))


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
