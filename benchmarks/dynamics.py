"""How long does the gradient take when a dynamical system is learned from time series (jobs D1 to D4)?"""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from statistics import median
from typing import Any

import matplotlib.pyplot as plt
import report
from contender import Assignment, Failed, Refused
from dynamics_jobs import DYNAMICS_JOBS, DynamicsGradient, DynamicsJob, error
from timing import MINIMUM_ROUNDS, interleave
from worker import Worker

MODULES = {
    "ocdl": "peers.dynamics_ocdl",
    "jax": "peers.dynamics_jax",
    "diffrax": "peers.dynamics_diffrax",
    "torchdiffeq": "peers.dynamics_torchdiffeq",
}
CONTENDERS = (
    "ocdl",
    "ocdl, 3/8 rule",
    "jax, written out",
    "jax, scan",
    "diffrax, Tsit5",
    "torchdiffeq, rk4",
    "torchdiffeq, dopri5",
)
SAME_METHOD = (
    ("ocdl", "jax, written out", "jax, scan"),
    ("ocdl, 3/8 rule", "torchdiffeq, rk4"),
)
AGREEMENT = 1e-10  # of those with the same tableau and step
TARGETS = {  # how many times as fast ocdl is to be
    "D1": {"jax, written out": 4.5, "diffrax, Tsit5": 13, "torchdiffeq, rk4": 55},
    "D2": {"best peer": 7},
    "D3": {"best peer": 3},
    "D4": {"best peer": 5},
}
# Compiled code is held to an instruction set by these, each for the library that reads it.
HELD = {
    "avx2": {
        "OCDL_CORE": "avx2",
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
    }
}


@contextmanager
def held_to(instruction_set: str) -> Iterator[None]:
    """The environment in which contenders start."""
    before = dict(os.environ)
    os.environ.update(HELD.get(instruction_set, {}))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def start(job: DynamicsJob, name: str) -> Worker:
    module = MODULES[name.split(",", maxsplit=1)[0]]
    return Worker(Assignment(name, "gradient", job, job.threads, processors=job.threads, module=module))


def answer(job: DynamicsJob, name: str) -> DynamicsGradient:
    with Worker(
        Assignment(name, "gradient", job, job.threads, processors=job.threads, module="peers.dynamics_diffrax")
    ) as worker:
        return worker.result()


class Field:
    """The contenders of a job that have started, their gradients, and why others are left out."""

    def __init__(self, job: DynamicsJob, running: ExitStack) -> None:
        self.job = job
        self.running = running
        self.workers: dict[str, Worker] = {}
        self.gradients: dict[str, DynamicsGradient] = {}
        self.left_out: dict[str, str] = {}

    def add(self, name: str, is_good: Callable[[DynamicsGradient], bool] = lambda _: True) -> bool:
        """Whether it has started and its gradient is good."""
        try:
            worker = start(self.job, name)
            gradient = worker.result()
        except (Refused, Failed) as reason:
            self.left_out[name] = str(reason)
            return False
        if not is_good(gradient):
            worker.close()
            return False
        self.workers[name] = self.running.enter_context(worker)
        self.gradients[name] = gradient
        return True

    def require_agreement(self) -> None:
        for first, *others in SAME_METHOD:
            for name in set(others) & self.gradients.keys():
                difference = error(self.gradients[name], self.gradients[first])
                if difference > AGREEMENT:
                    raise SystemExit(f"{self.job.name}: {name} and {first} differ by {difference:.1e}")


def enter_equally_good(field: Field, exact: DynamicsGradient) -> None:
    """Enter diffrax with the fewest steps and with the largest tolerance whose gradient is no worse than ocdl's."""
    from peers.dynamics_diffrax import STEPS, TOLERANCES, with_steps, with_tolerance

    limit = error(field.gradients["ocdl"], exact)

    def is_good(gradient: DynamicsGradient) -> bool:
        return error(gradient, exact) <= limit

    for names in ([with_steps(n) for n in STEPS], [with_tolerance(each) for each in TOLERANCES]):
        next((name for name in names if field.add(name, is_good)), None)


def measure(job: DynamicsJob, contenders: list[str], rounds: int, of_processor: bool) -> dict[str, Any]:
    with ExitStack() as running, held_to(job.instruction_set):
        exact = answer(job, "reference")
        field = Field(job, running)
        for name in contenders:
            if not (job.own_times and name.startswith("diffrax")):
                field.add(name)
        if job.own_times:
            enter_equally_good(field, exact)
        field.require_agreement()
        timings = interleave(list(field.workers.values()), rounds, of_processor)
    seconds = {name: timing.median for name, timing in zip(field.workers, timings, strict=True)}
    peers = {name: value for name, value in seconds.items() if not name.startswith("ocdl")}
    ratios = {name: value / seconds["ocdl"] for name, value in peers.items()}
    best = min(peers, key=peers.__getitem__, default=None)
    return {
        "job": job.name,
        "summary": job.summary,
        "clock": "processor" if of_processor else "wall",
        "seconds": seconds,
        "minima": {name: min(timing.samples) for name, timing in zip(field.workers, timings, strict=True)},
        "samples": {name: timing.samples for name, timing in zip(field.workers, timings, strict=True)},
        "ratios": ratios,
        "paired": {
            name: median(a / b for a, b in zip(timing.samples, timings[0].samples, strict=True))
            for name, timing in zip(field.workers, timings, strict=True)
        },
        "best_peer": best and {"name": best, "ratio": ratios[best]},
        "errors": {name: error(gradient, exact) for name, gradient in field.gradients.items()},
        "left_out": field.left_out,
    }


def print_row(row: dict[str, Any]) -> None:
    print(f"{row['job']}: {row['summary']}")
    ours = row["seconds"]["ocdl"]
    report.print_table(
        ("contender", "median", "least", "over ocdl", "error"),
        [
            (
                name,
                report.milliseconds(seconds),
                report.milliseconds(row["minima"][name]),
                f"{seconds / ours:.2f}",
                f"{row['errors'][name]:.1e}",
            )
            for name, seconds in sorted(row["seconds"].items(), key=lambda item: item[1])
        ],
    )
    for name, reason in row["left_out"].items():
        print(f"  {name}: {reason}")
    for name, target in TARGETS[row["job"]].items():
        ratio = (row["best_peer"] or {}).get("ratio") if name == "best peer" else row["ratios"].get(name)
        if ratio is not None:
            print(f"  {name}: {ratio:.1f} times, {'at least' if ratio >= target else 'BELOW'} {target:g}", flush=True)


def plot(rows: list[dict[str, Any]]) -> None:
    """One line per job, one mark per contender."""
    names = list(dict.fromkeys(name for row in rows for name in row["seconds"]))
    with plt.rc_context(report.STYLE):
        figure, axes = plt.subplots(figsize=(8, 1.5 + 0.7 * len(rows)))
        for number, name in enumerate(names):
            points = [(row["seconds"][name], line) for line, row in enumerate(rows) if name in row["seconds"]]
            marker, colour = (palette[number % len(palette)] for palette in (report.MARKERS, report.COLOURS))
            is_second = number >= len(report.COLOURS)
            style = {"color": colour, "markerfacecolor": "none" if is_second else colour, "linestyle": "none"}
            axes.plot(*zip(*points, strict=True), marker=marker, markersize=8, label=name, **style)
        axes.set_xscale("log")
        axes.set_yticks(range(len(rows)), [f"{row['job']}\n{row['summary']}" for row in rows], fontsize=7)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel("seconds per evaluation")
        axes.set_title("Loss and gradient of a system learned from time series", loc="left")
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
        report.save_figure("dynamics", figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [job.name for job in DYNAMICS_JOBS]
    parser.add_argument("--jobs", nargs="+", default=names, choices=names, metavar="JOB")
    parser.add_argument("--rounds", type=int, default=MINIMUM_ROUNDS)
    parser.add_argument("--peers", nargs="*", choices=list(MODULES)[1:], metavar="PEER", help="all that are installed")
    parser.add_argument(
        "--processor-time", action="store_true", help="all jobs on one thread, in processor time: for a busy machine"
    )
    options = parser.parse_args()
    wanted = ["ocdl", *(list(MODULES)[1:] if options.peers is None else options.peers)]
    installed = [name for name in wanted if importlib.util.find_spec(name) is not None]
    contenders = [name for name in CONTENDERS if name.split(",", maxsplit=1)[0] in installed]
    before = {row["job"]: row for row in report.load("dynamics").get("jobs", [])}
    for job in DYNAMICS_JOBS:
        if job.name in options.jobs:
            measured = replace(job, threads=1) if options.processor_time else job
            before[job.name] = measure(measured, contenders, options.rounds, options.processor_time)
            print_row(before[job.name])
            report.save("dynamics", {"agreement": AGREEMENT, "jobs": [before[n] for n in names if n in before]})
    plot([before[name] for name in names if name in before])


if __name__ == "__main__":
    main()
