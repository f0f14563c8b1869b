"""What do two threads gain on an idle machine, and what do they cost next to a busy neighbour?"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import matplotlib.pyplot as plt
import report
from contender import Assignment
from jobs import GRADIENT_JOBS, JOBS, Job
from timing import MINIMUM_ROUNDS, interleave
from worker import Worker

EVALUATIONS = 1000


def start(job: Job, threads: int, running: ExitStack) -> Worker:
    """Both thread counts may use both processors: the scheduler decides, as it would for a user."""
    return running.enter_context(Worker(Assignment("ocdl", "gradient", job, threads, processors=2)))


def scaling(job: Job, rounds: int) -> dict:
    with ExitStack() as running:
        serial, double = interleave([start(job, threads, running) for threads in (1, 2)], rounds)
    return {"job": job.name, "serial": serial.median, "two_threads": double.median}


@contextmanager
def neighbour() -> Iterator[subprocess.Popen]:
    """A process that computes without pause whenever it is not stopped."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    os.sched_setaffinity(process.pid, sorted(os.sched_getaffinity(0))[:2])
    process.send_signal(signal.SIGSTOP)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def next_to_neighbour(rounds: int) -> dict[str, float]:
    """Mean seconds of 1,000 successive evaluations of J1, the median over rounds with all four conditions in each."""
    samples: dict[str, list[float]] = {}
    with ExitStack() as running:
        workers = {"serial": start(JOBS["J1"], 1, running), "two_threads": start(JOBS["J1"], 2, running)}
        busy = running.enter_context(neighbour())
        for _ in range(rounds):
            for condition, command in (("alone", signal.SIGSTOP), ("with_neighbour", signal.SIGCONT)):
                busy.send_signal(command)
                for name, worker in workers.items():
                    samples.setdefault(f"{name}_{condition}", []).append(worker.seconds(EVALUATIONS) / EVALUATIONS)
    return {condition: statistics.median(taken) for condition, taken in samples.items()}


def plot(rows: list[dict], disturbed: dict[str, float]) -> None:
    with plt.rc_context(report.STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
        left.bar(
            [row["job"] for row in rows], [row["serial"] / row["two_threads"] for row in rows], color=report.COLOURS[0]
        )
        left.axhline(1, color="0.3", linewidth=1)
        left.set_ylabel("speed-up of two threads")
        right.barh(
            [condition.replace("_", " ") for condition in disturbed],
            [1e3 * seconds for seconds in disturbed.values()],
            color=report.COLOURS[1],
        )
        right.invert_yaxis()
        right.set_xlabel("ms per evaluation of J1")
        report.save_figure("threads", figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=MINIMUM_ROUNDS)
    names = [job.name for job in GRADIENT_JOBS]
    parser.add_argument("--jobs", nargs="+", default=names, choices=names, metavar="JOB", help="for the speed-up only")
    options = parser.parse_args()
    rows = [scaling(JOBS[name], options.rounds) for name in options.jobs]
    report.print_table(
        ("job", "one thread", "two threads", "speed-up"),
        [
            (
                row["job"],
                report.milliseconds(row["serial"]),
                report.milliseconds(row["two_threads"]),
                f"{row['serial'] / row['two_threads']:.2f}",
            )
            for row in rows
        ],
    )
    disturbed = next_to_neighbour(options.rounds)
    cost = disturbed["two_threads_with_neighbour"] / disturbed["serial_with_neighbour"]
    report.print_table(
        ("J1", f"mean of {EVALUATIONS} evaluations"),
        [(condition.replace("_", " "), report.milliseconds(seconds)) for condition, seconds in disturbed.items()],
    )
    print(f"next to a busy neighbour two threads take {cost:.2f} times the serial time")
    report.save("threads", {"scaling": rows, "neighbour": disturbed, "neighbour_cost": cost})
    plot(rows, disturbed)


if __name__ == "__main__":
    main()
