"""The command line, and the loop that gradient.py and prediction.py share."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

import report
from bounds import measure_peak
from contender import BEFORE, ORIGINS, installed
from jobs import JOBS, Job
from timing import MINIMUM_ROUNDS, Field, compare

QUICK_ROUNDS = 3
SLOW_PEERS = ("torch.compile", "torchdiffeq")
"""Slow to compile or several times slower than torch alone: left out of a quick run unless named."""


def arguments(description: str, jobs: tuple[Job, ...]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    names = [job.name for job in jobs]
    parser.add_argument("--jobs", nargs="+", default=names, choices=names, metavar="JOB")
    parser.add_argument(
        "--peers", nargs="+", choices=[name for name in ORIGINS if name not in ("ocdl", BEFORE)], metavar="PEER"
    )
    parser.add_argument("--rounds", type=int, default=MINIMUM_ROUNDS)
    parser.add_argument("--before", metavar="PYTHON", help="interpreter of an environment with another ocdl, timed too")
    parser.add_argument("--quick", action="store_true", help="three rounds, main thread count, no slow peers")
    return parser.parse_args()


def selection(options: argparse.Namespace) -> tuple[Field, list[Job]]:
    """Who takes part, and in which jobs."""
    peers = options.peers or [name for name in ORIGINS if not (options.quick and name in SLOW_PEERS)]
    wanted = ["ocdl", *peers]
    pythons = {name: sys.executable for name in installed() if name in wanted and name != BEFORE}
    if options.before:
        pythons[BEFORE] = options.before
    selected = [JOBS[name] for name in options.jobs]
    if options.quick:
        selected = [replace(job, thread_counts=job.thread_counts[:1]) for job in selected]
    return Field(pythons, QUICK_ROUNDS if options.quick else options.rounds), selected


def run(script: str, question: str, description: str, jobs: tuple[Job, ...]) -> None:
    field, selected = selection(arguments(description, jobs))
    peaks = {dtype: measure_peak(dtype, threads=2) for dtype in {job.dtype for job in selected}}
    rows = []
    for job in selected:
        result = compare(question, job, field)
        row = report.comparison_row(question, result, peaks)
        report.print_comparison(row)
        rows.append(row)
        # After every job, so that an interrupted run keeps what it has.
        report.save(script, {"gflops": {dtype: peak.gflops for dtype, peak in peaks.items()}, "jobs": rows})
    report.plot_comparisons(script, description, rows)
