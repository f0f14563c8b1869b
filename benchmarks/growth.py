"""How does the time of a gradient grow with samples m, layers N, width d and stages s?"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import dataclass, replace

import matplotlib.pyplot as plt
import numpy as np
import report
from contender import Assignment, installed
from jobs import JOBS, Job
from matplotlib.ticker import NullFormatter
from timing import MINIMUM_ROUNDS, interleave
from worker import Worker

import ocdl

BASE = JOBS["J1"]
SAMPLES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
LAYERS = (10, 30, 100, 300, 1000)
WIDTHS = (2, 4, 8, 16, 32, 64, 128, 256)
METHODS = ("euler", "midpoint", "kutta3", "kutta4", "dormand_prince")


@dataclass(frozen=True)
class Sweep:
    """One quantity varied, everything else that of J1, for each of the contenders."""

    quantity: str
    values: tuple[int, ...]
    jobs: tuple[Job, ...]
    contenders: tuple[str, ...] = ("ocdl",)


def sweeps() -> tuple[Sweep, ...]:
    stages = tuple(ocdl.Tableau.named(method).stages for method in METHODS)
    return (
        Sweep("m", SAMPLES, tuple(replace(BASE, m=m) for m in SAMPLES), ("ocdl", strongest_peer())),
        Sweep("N", LAYERS, tuple(replace(BASE, N=N) for N in LAYERS)),
        Sweep("d", WIDTHS, tuple(replace(BASE, d=d) for d in WIDTHS)),
        Sweep("s", stages, tuple(replace(BASE, tableau=method) for method in METHODS)),
    )


def strongest_peer() -> str:
    return "jax" if "jax" in installed() else "numpy"


def measure(sweep: Sweep, rounds: int) -> dict:
    """One contender after the other, its values interleaved, on one thread: when threads pay is another question."""
    curves = {}
    for name in sweep.contenders:
        with ExitStack() as running:
            workers = [
                running.enter_context(Worker(Assignment(name, "gradient", job, threads=1, processors=1)))
                for job in sweep.jobs
            ]
            curves[name] = [timing.median for timing in interleave(workers, rounds)]
    return {
        "quantity": sweep.quantity,
        "values": sweep.values,
        "seconds": curves,
        "slopes": {name: slope(sweep.values, curve) for name, curve in curves.items()},
    }


def slope(values: tuple[int, ...], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(values), np.log(seconds), 1)[0])


def plot(rows: list[dict]) -> None:
    with plt.rc_context(report.STYLE):
        figure, panels = plt.subplots(1, len(rows), figsize=(3.2 * len(rows), 3), layout="constrained", squeeze=False)
        panels = panels[0]
        for axes, row in zip(panels, rows, strict=True):
            for (name, seconds), colour, marker in zip(
                row["seconds"].items(), report.COLOURS, report.MARKERS, strict=False
            ):
                label = f"{name}, slope {row['slopes'][name]:.2f}"
                axes.loglog(row["values"], seconds, marker=marker, color=colour, label=label)
            axes.legend(loc="upper left")
            axes.set_xlabel(row["quantity"])
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_minor_formatter(NullFormatter())
            if row["quantity"] == "s":
                axes.set_xticks(row["values"], row["values"])
        panels[0].set_ylabel("seconds per gradient, one thread")
        report.save_figure("growth", figure)


def print_growth(row: dict) -> None:
    names = list(row["seconds"])
    lines = [
        (f"{value:g}", *map(report.milliseconds, seconds))
        for value, *seconds in zip(row["values"], *row["seconds"].values(), strict=True)
    ]
    slopes = ("log-log slope", *(f"{row['slopes'][name]:.3f}" for name in names))
    report.print_table((row["quantity"], *names), [*lines, slopes])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=MINIMUM_ROUNDS)
    parser.add_argument("--quantities", nargs="+", default=list("mNds"), choices=list("mNds"))
    options = parser.parse_args()
    rows = []
    for sweep in sweeps():
        if sweep.quantity in options.quantities:
            rows.append(measure(sweep, options.rounds))
            print_growth(rows[-1])
            report.save("growth", {"base": BASE.summary, "sweeps": rows})
    plot(rows)


if __name__ == "__main__":
    main()
