"""Interleaved timing: every round takes one sample of every contender, so that a slow minute hits all of them."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass
from typing import Any

from agreement import disagreement, reference
from contender import Assignment, Failed, Refused
from jobs import Job
from worker import Worker

SAMPLE_SECONDS = 0.1
SETTLING_SECONDS = 0.25  # in which the threads of the last contender stop spinning and its memory is given back
MINIMUM_ROUNDS = 7


@dataclass(frozen=True)
class Field:
    """Who takes part, by the interpreter that each runs in, and how many samples each gives."""

    pythons: dict[str, str]
    rounds: int = MINIMUM_ROUNDS


@dataclass(frozen=True)
class Timing:
    """Seconds per evaluation, one sample per round."""

    contender: str
    threads: int
    repetitions: int
    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)


@dataclass(frozen=True)
class Comparison:
    """All contenders on one job; `left_out` says why a contender has no timing."""

    job: Job
    timings: dict[str, Timing]
    left_out: dict[str, str]


def compare(question: str, job: Job, field: Field) -> Comparison:
    """Start, check and time the contenders at every thread count of the job."""
    workers, left_out = start_workers(question, job, field)
    try:
        timings = interleave(workers, field.rounds)
    finally:
        for worker in workers:
            worker.close()
    labels = (worker.assignment.label for worker in workers)
    return Comparison(job, dict(zip(labels, timings, strict=True)), left_out)


def start_workers(question: str, job: Job, field: Field) -> tuple[list[Worker], dict[str, str]]:
    """One checked worker per contender and thread count, and the reasons for those without."""
    expected = reference(question, job)
    workers: list[Worker] = []
    left_out: dict[str, str] = {}
    for name, python in field.pythons.items():
        for threads in job.thread_counts:
            assignment = Assignment(name, question, job, threads, processors=threads, python=python)
            try:
                workers.append(checked_worker(assignment, expected))
            except (Refused, Failed) as reason:
                left_out[assignment.label] = str(reason)
    return workers, left_out


def checked_worker(assignment: Assignment, expected: Any) -> Worker:
    worker = Worker(assignment)
    try:
        fault = disagreement(worker.result(), expected, assignment.job)
        if fault:
            raise Failed(f"not timed, its answer is wrong: {fault}")
    except Failed:
        worker.close()
        raise
    return worker


def interleave(workers: list[Worker], rounds: int, of_processor: bool = False) -> list[Timing]:
    """Rounds A B C A B C ...; short evaluations are repeated until a sample is long enough to trust the clock."""
    repetitions = [max(1, math.ceil(SAMPLE_SECONDS / worker.seconds(1, True, of_processor))) for worker in workers]
    samples: list[list[float]] = [[] for _ in workers]
    for _ in range(rounds):
        for worker, count, taken in zip(workers, repetitions, samples, strict=True):
            time.sleep(SETTLING_SECONDS)
            # An evaluation that fills a sample by itself has lost nothing since the last round that it would notice.
            taken.append(worker.seconds(count, count > 1, of_processor) / count)
    return [
        Timing(worker.assignment.name, worker.assignment.threads, count, tuple(taken))
        for worker, count, taken in zip(workers, repetitions, samples, strict=True)
    ]
