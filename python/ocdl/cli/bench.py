"""``ocdl bench``: how fast this machine computes, with ocdl and with the peers that are installed."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import ocdl
from ocdl.bench import benchmark
from ocdl.bench.benchmark import JOBS, Timing, installed_peers, measure
from ocdl.bench.peers import PEERS
from ocdl.cli._output import UserError, add_command, aligned, in_columns, json_text, name_among

ROUNDS, SAMPLE_SECONDS = 5, 0.1
QUICK_ROUNDS, QUICK_SAMPLE_SECONDS = 3, 0.01
BUSY = 0.5  # processes at work per core
HEADER = ("milliseconds", "times ocdl", "difference")
EXAMPLES = """\
  ocdl bench
  ocdl bench --peers numpy --quick
  ocdl bench --json

Loss and gradient, and the outputs, of a network of 20 layers. Peers are compared with ocdl
before they are timed: the difference is the largest one, relative. All run in one process,
in turn; the median of several samples is shown. benchmarks/ has longer ones, in processes
of their own, with the peers written for speed."""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    parser = add_command(commands, "bench", "measure this machine, against the peers that are installed", EXAMPLES)
    parser.add_argument(
        "--peers", nargs="*", type=name_among(PEERS), metavar="PEER", help=f"of {', '.join(PEERS)} (those installed)"
    )
    parser.add_argument("--quick", action="store_true", help="take fewer and shorter samples")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Measure job after job, and print each as soon as it is done."""
    from tqdm.auto import tqdm

    peers = _chosen(arguments.peers)
    facts = _machine() | {"versions": {"ocdl": ocdl.__version__} | peers}
    rounds, seconds = (QUICK_ROUNDS, QUICK_SAMPLE_SECONDS) if arguments.quick else (ROUNDS, SAMPLE_SECONDS)
    if not arguments.json:
        versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
        print(aligned(facts | {"versions": versions}), flush=True)
        if facts["load"] > BUSY * (facts["cores"] or 1):
            print(
                "ocdl: warning: the machine is busy; times are longer, those of spinning threads much", file=sys.stderr
            )
    measured = {}
    with tqdm(JOBS, unit="job", leave=False, disable=arguments.json or not sys.stderr.isatty()) as bar:
        for job in bar:
            measured[job.name] = measure(job, list(peers), rounds=rounds, seconds=seconds)
            if not arguments.json:
                bar.write(f"\n{_report(job.name, measured[job.name])}", file=sys.stdout)
    if arguments.json:
        jobs = [{"job": name, "timings": [asdict(one) for one in timings]} for name, timings in measured.items()]
        print(json_text(facts | {"layers": benchmark.LAYERS, "jobs": jobs}))


def _chosen(named: list[str] | None) -> dict[str, str]:
    """Return the peers to measure and their versions."""
    installed = installed_peers()
    if named is None:
        return installed
    absent = [name for name in named if name not in installed]
    if absent:
        raise UserError(f"--peers {absent[0]} is not installed; installed are {', '.join(installed)}")
    return {name: installed[name] for name in named}


def _machine() -> dict[str, Any]:
    build = ocdl.build_info()
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "threads": ocdl.get_num_threads(),
        "core": build["variant"],
        "compiler": build["compiler"],
    }


def _processor() -> str:
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _report(name: str, timings: list[Timing]) -> str:
    """Return the table of a job, and a line for each contender that has no time."""
    own = timings[0].seconds
    rows = []
    for one in timings:
        if one.seconds is not None and own is not None:
            difference = "" if one.difference is None else f"{one.difference:.0e}"
            rows.append((one.contender, f"{1e3 * one.seconds:.3f}", f"{one.seconds / own:.1f}", difference))
    faults = [
        f"{one.contender}: {one.fault}" + ("" if one.difference is None else f" by {one.difference:.0e}")
        for one in timings
        if one.fault
    ]
    return "\n".join([in_columns((name, *HEADER), rows), *faults])
