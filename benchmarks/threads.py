"""What do two threads gain, what do they cost next to a busy neighbour, and are they chosen where they pay?"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import report
from contender import Assignment
from jobs import GRADIENT_JOBS, JOBS, Job
from neighbour import neighbour
from timing import MINIMUM_ROUNDS, interleave
from worker import Worker

EVALUATIONS = 1000
SITUATIONS = ("fresh", "numpy", "jax")  # what else the process has done just before


def start(job: Job, threads: int, running: ExitStack) -> Worker:
    """Both thread counts may use both processors: the scheduler decides, as it would for a user."""
    return running.enter_context(Worker(Assignment("ocdl", "gradient", job, threads, processors=2)))


def scaling(job: Job, rounds: int) -> dict:
    with ExitStack() as running:
        serial, double = interleave([start(job, threads, running) for threads in (1, 2)], rounds)
    return {"job": job.name, "serial": serial.median, "two_threads": double.median}


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


def choice(situation: str, rounds: int) -> Any:
    """What `thread_choice.py` measures in a process of its own."""
    script = Path(__file__).with_name("thread_choice.py")
    command = [sys.executable, str(script), situation, "--rounds", str(rounds)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def print_choice(by_size: dict[str, list[dict]], beside: dict[str, float]) -> None:
    ways = ("serial", "insisted", "chosen")
    report.print_table(
        ("before", "m", "one thread", "two, insisted", "chosen", "over the better"),
        [
            (situation, str(row["m"]), *(report.milliseconds(row[way]) for way in ways), f"{row['ratio']:.3f}")
            for situation, rows in by_size.items()
            for row in rows
        ],
    )
    print(f"next to a busy neighbour the choice takes {beside['ratio']:.2f} times the serial time,")
    print(f"and it is back {beside['return']:.3f} s after the neighbour has stopped")


def plot(rows: list[dict], disturbed: dict[str, float], by_size: dict[str, list[dict]]) -> None:
    with plt.rc_context(report.STYLE):
        figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.2), layout="constrained")
        left.bar(
            [row["job"] for row in rows], [row["serial"] / row["two_threads"] for row in rows], color=report.COLOURS[0]
        )
        left.axhline(1, color="0.3", linewidth=1)
        left.set_ylabel("speed-up of two threads")
        middle.barh(
            [condition.replace("_", " ") for condition in disturbed],
            [1e3 * seconds for seconds in disturbed.values()],
            color=report.COLOURS[1],
        )
        middle.invert_yaxis()
        middle.set_xlabel("ms per evaluation of J1")
        for number, (situation, sizes) in enumerate(by_size.items()):
            m, ratios = [row["m"] for row in sizes], [row["ratio"] for row in sizes]
            right.plot(m, ratios, report.MARKERS[number] + "-", color=report.COLOURS[number], label=situation)
        right.axhline(1, color="0.3", linewidth=1)
        right.set_xscale("log", base=2)
        right.set_xlabel("m")
        right.set_ylabel("chosen over the better way")
        right.legend()
        report.save_figure("threads", figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=MINIMUM_ROUNDS)
    names = [job.name for job in GRADIENT_JOBS]
    parser.add_argument("--jobs", nargs="+", default=names, choices=names, metavar="JOB", help="for the speed-up only")
    parser.add_argument("--choice-only", action="store_true", help="leave the rest of the results as they are")
    options = parser.parse_args()
    if options.choice_only:
        results = {key: part for key, part in report.load("threads").items() if key != "machine"}
    else:
        results = measure_scaling(options.jobs, options.rounds)
    results["choice"] = {situation: choice(situation, options.rounds) for situation in SITUATIONS}
    results["choice_beside_neighbour"] = choice("neighbour", options.rounds)
    print_choice(results["choice"], results["choice_beside_neighbour"])
    report.save("threads", results)
    plot(results["scaling"], results["neighbour"], results["choice"])


def measure_scaling(jobs: list[str], rounds: int) -> dict[str, Any]:
    rows = [scaling(JOBS[name], rounds) for name in jobs]
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
    disturbed = next_to_neighbour(rounds)
    cost = disturbed["two_threads_with_neighbour"] / disturbed["serial_with_neighbour"]
    report.print_table(
        ("J1", f"mean of {EVALUATIONS} evaluations"),
        [(condition.replace("_", " "), report.milliseconds(seconds)) for condition, seconds in disturbed.items()],
    )
    print(f"next to a busy neighbour two threads take {cost:.2f} times the serial time")
    return {"scaling": rows, "neighbour": disturbed, "neighbour_cost": cost}


if __name__ == "__main__":
    main()
