"""A table on the screen, a JSON file and a plot for every benchmark."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import machine
import matplotlib.pyplot as plt
from bounds import Peak, bounds
from contender import BEFORE
from matplotlib.ticker import NullFormatter
from timing import Comparison

RESULTS = Path(__file__).parent / "results"

# Okabe and Ito's palette, distinct for any kind of colour vision; markers repeat the distinction.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
}


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    for row in [header, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print(flush=True)


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def comparison_row(question: str, comparison: Comparison, peaks: dict[str, Peak]) -> dict[str, Any]:
    """Everything the table, the plot and the JSON file say about one job; ratios are best peer over ocdl."""
    job, timings = comparison.job, comparison.timings
    limits = bounds(question, job, peaks[job.dtype])
    row: dict[str, Any] = {
        "job": job.name,
        "summary": job.summary,
        "seconds": {label: timing.median for label, timing in timings.items()},
        "samples": {label: timing.samples for label, timing in timings.items()},
        "repetitions": {label: timing.repetitions for label, timing in timings.items()},
        "left_out": comparison.left_out,
        "bounds": limits,
        "bound": max(limits["tanh, measured speed"], limits["products, measured speed"]),
    }
    peers = {label: timing for label, timing in timings.items() if timing.contender not in ("ocdl", BEFORE)}
    if "ocdl" in timings and peers:
        ours = timings["ocdl"].median
        same_threads = {label: timing for label, timing in peers.items() if timing.threads == timings["ocdl"].threads}
        for key, field in (("best_peer", same_threads), ("best_peer_any_threads", peers)):
            best = min(field, key=lambda label: field[label].median, default=None)
            if best is not None:
                row[key] = {"name": best, "ratio": field[best].median / ours}
        row["over_bound"] = ours / row["bound"]
    return row


def print_comparison(row: dict[str, Any]) -> None:
    print(f"{row['job']}: {row['summary']}")
    ours = row["seconds"].get("ocdl")
    body = [
        (label, milliseconds(seconds), f"{seconds / ours:.2f}" if ours else "-")
        for label, seconds in sorted(row["seconds"].items(), key=lambda item: item[1])
    ]
    body += [(f"bound: {name}", milliseconds(seconds), "") for name, seconds in row["bounds"].items()]
    print_table(("contender", "median", "over ocdl"), body)
    for label, reason in row["left_out"].items():
        print(f"  {label}: {reason}", flush=True)


def save(script: str, content: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{script}.json"
    path.write_text(json.dumps({"machine": machine.describe(), **content}, indent=1) + "\n")


def load(script: str) -> dict[str, Any]:
    """Return what the last run has saved."""
    path = RESULTS / f"{script}.json"
    content: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return content


def save_figure(script: str, figure: plt.Figure) -> None:
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / f"{script}.png", dpi=150, bbox_inches="tight")
    plt.close(figure)


def plot_comparisons(script: str, title: str, rows: Sequence[dict[str, Any]]) -> None:
    """One line per job, one mark per contender, on a common logarithmic axis of seconds."""
    names = list(dict.fromkeys(label.removesuffix(" (1 thread)") for row in rows for label in row["seconds"]))
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(8, 1.5 + 0.55 * len(rows)))
        for line, row in enumerate(rows):
            axes.plot(row["bound"], line, "|", color="0.3", markersize=16, markeredgewidth=2)
            for label, seconds in row["seconds"].items():
                name = label.removesuffix(" (1 thread)")
                index = names.index(name)
                axes.plot(
                    seconds,
                    line,
                    MARKERS[index],
                    color=COLOURS[index],
                    markerfacecolor=COLOURS[index] if name == label else "none",
                    markersize=8,
                )
        for index, name in enumerate(names):
            axes.plot([], [], MARKERS[index], color=COLOURS[index], label=name)
        axes.plot([], [], "|", color="0.3", markersize=10, markeredgewidth=2, label="bound")
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.set_xlim(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_yticks(range(len(rows)), [f"{row['job']}\n{row['summary']}" for row in rows], fontsize=7)
        axes.invert_yaxis()
        axes.set_xlabel("seconds per evaluation (hollow: one thread)")
        axes.set_title(title, loc="left")
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
        save_figure(script, figure)
