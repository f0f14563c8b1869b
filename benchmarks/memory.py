"""How much memory does a gradient take beyond its data, and does that grow with the number of samples?"""

from __future__ import annotations

import argparse
from dataclasses import replace

import machine
import matplotlib.pyplot as plt
import report
from contender import ORIGINS, Assignment, Failed, Refused, installed
from jobs import JOBS
from worker import Worker

SAMPLES = (10_000, 100_000, 1_000_000)
# No process may reserve more than this, so that a contender which does not fit fails alone.
LIMIT = min(18 * 10**9, machine.total_memory() * 3 // 4)


def measure(name: str, m: int) -> dict:
    """Peak of a fresh process over what it held once data and controls were in place."""
    job = replace(JOBS["J5"], m=m)
    entry = {"contender": name, "m": m}
    try:
        with Worker(Assignment(name, "gradient", job, threads=2, memory_limit=LIMIT)) as worker:
            return {**entry, "bytes": worker.peak_bytes()}
    except (Refused, Failed) as reason:
        return {**entry, "left_out": str(reason)}


def measure_all(names: list[str], samples: list[int]) -> list[dict]:
    """From small to large; a contender that did not fit is not tried on more."""
    entries: list[dict] = []
    for name in names:
        for m in sorted(samples):
            entries.append(measure(name, m))
            if "left_out" in entries[-1]:
                break
    return entries


def plot(entries: list[dict]) -> None:
    with plt.rc_context(report.STYLE):
        figure, axes = plt.subplots(figsize=(6, 4))
        names = dict.fromkeys(entry["contender"] for entry in entries if "bytes" in entry)
        for name, colour, marker in zip(names, report.COLOURS, report.MARKERS, strict=False):
            points = [(e["m"], e["bytes"]) for e in entries if e["contender"] == name and "bytes" in e]
            axes.loglog(*zip(*points, strict=True), marker=marker, color=colour, label=name)
        low, high = axes.get_ylim()
        axes.set_ylim(min(low, 1e6), max(high, 1e9))  # decades, so that a flat curve looks flat
        axes.set_xlabel("samples m")
        axes.set_ylabel("peak memory over the data, bytes")
        axes.set_title("Gradient of J5", loc="left")
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
        report.save_figure("memory", figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", nargs="+", type=int, default=list(SAMPLES))
    parser.add_argument("--peers", nargs="+", default=list(ORIGINS), choices=list(ORIGINS), metavar="PEER")
    options = parser.parse_args()
    entries = measure_all([name for name in installed() if name in ["ocdl", *options.peers]], options.samples)
    rows = [
        (e["contender"], f"{e['m']:g}", f"{e['bytes'] / 1e6:.0f} MB" if "bytes" in e else e["left_out"])
        for e in entries
    ]
    report.print_table(("contender", "m", "peak over the data"), rows)
    report.save("memory", {"job": JOBS["J5"].summary, "limit_bytes": LIMIT, "entries": entries})
    plot(entries)


if __name__ == "__main__":
    main()
