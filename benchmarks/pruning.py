"""How much faster does ODENet+Simplex predict without the layers whose step has become 0?"""

from __future__ import annotations

import argparse
import math
import time
from statistics import median
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import report
from timing import MINIMUM_ROUNDS, SAMPLE_SECONDS

import ocdl

ITERATIONS = 20_000  # the paper's, on the spiral
SAMPLES = (1_000, 1_000_000)


def trained(seed: int) -> tuple[ocdl.Network, ocdl.Controls, float]:
    """The paper's ODENet+Simplex after Algorithm 2, and its accuracy."""
    X, y = ocdl.datasets.make_spiral(random_state=seed)
    net = ocdl.Network.preset("odenet+simplex", 2, 20)
    r = ocdl.train(net, net.init(random_state=seed), X, y, max_iter=ITERATIONS, eval_every=ITERATIONS)
    return net, r.controls, float(r.history.accuracy[-1])


def seconds(net: ocdl.Network, u: ocdl.Controls, X: np.ndarray, repetitions: int) -> float:
    start = time.perf_counter()
    for _ in range(repetitions):
        net.predict(u, X)
    return (time.perf_counter() - start) / repetitions


def measure(seed: int, rounds: int) -> list[dict[str, Any]]:
    """Rounds of before and after in turn, on the spiral and on many points of it."""
    net, u, accuracy = trained(seed)
    small, v = net.prune(u)
    rows = []
    for m in SAMPLES:
        X, _ = ocdl.datasets.make_spiral(m, random_state=seed + 1000)
        if not np.array_equal(net.predict(u, X), small.predict(v, X)):
            raise AssertionError(f"seed {seed}: the pruned network predicts differently")
        contenders = {"before": (net, u), "after": (small, v)}
        counts = {k: max(1, math.ceil(SAMPLE_SECONDS / seconds(*c, X, 3))) for k, c in contenders.items()}
        times: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(rounds):
            for name, contender in contenders.items():
                times[name].append(seconds(*contender, X, counts[name]))
        before, after = median(times["before"]), median(times["after"])
        rows.append(
            {
                "seed": seed,
                "samples": m,
                "layers": net.n_layers,
                "kept": small.n_layers,
                "accuracy": accuracy,
                "before": before,
                "after": after,
                "ratio": before / after,
                "times": times,
            }
        )
    return rows


def print_rows(rows: list[dict[str, Any]]) -> None:
    report.print_table(
        ("seed", "points", "layers", "accuracy", "before", "after", "times faster"),
        [
            (
                str(row["seed"]),
                f"{row['samples']:,}",
                f"{row['layers']} to {row['kept']}",
                f"{row['accuracy']:.3f}",
                report.milliseconds(row["before"]),
                report.milliseconds(row["after"]),
                f"{row['ratio']:.2f}",
            )
            for row in rows
        ],
    )


def plot(rows: list[dict[str, Any]]) -> None:
    with plt.rc_context(report.STYLE):
        figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
        for m, colour, marker in zip(SAMPLES, report.COLOURS, report.MARKERS, strict=False):
            chosen = [row for row in rows if row["samples"] == m]
            axes.plot(
                [row["kept"] for row in chosen],
                [row["ratio"] for row in chosen],
                marker,
                color=colour,
                label=f"{m:,} points",
            )
        layers = np.arange(1, max(row["kept"] for row in rows) + 1)
        axes.plot(layers, rows[0]["layers"] / layers, "--", color="0.5", label="20 / layers kept")
        axes.set(xlabel="layers kept of 20", ylabel="times faster", ylim=0)
        axes.set_xticks(layers)
        axes.legend()
        report.save_figure("pruning", figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=MINIMUM_ROUNDS)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    ocdl.set_num_threads(options.threads)
    rows = [row for seed in range(options.seeds) for row in measure(seed, options.rounds)]
    print_rows(rows)
    report.save("pruning", {"iterations": ITERATIONS, "threads": options.threads, "rows": rows})
    plot(rows)


if __name__ == "__main__":
    main()
