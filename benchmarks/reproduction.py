"""How long do the trainings of ``ocdl reproduce`` take, and how long in plain NumPy?

NumPy makes a share of the iterations of every network of one seed, ocdl ten times as many because they are so short;
where NumPy stops, the losses must agree.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any

import numpy as np
import numpy_training
import report

import ocdl
from ocdl.reproduce.runs import EXPERIMENTS, Run, evaluations, list_runs

LONGER = 10


def measure(run: Run, share: float) -> dict[str, Any]:
    """Train for a share of the iterations in both ways."""
    data, settings = run.data(), run.settings
    net, start = run.build(data.X.shape[1])
    iterations = max(10, round(share * run.iterations))  # the first ones search for the length of the step
    problem = numpy_training.Problem(net, data.X, data.y, settings.objective.reduction, settings.freeze)
    parts = {name: getattr(start, name).copy() for name in ("K", "b", "h", "W", "mu")}
    test = data.X_test, data.y_test[:, None].astype(float)

    begin = time.perf_counter()
    history = replace(run, iterations=LONGER * iterations).train(data).history
    middle = time.perf_counter()
    loss = numpy_training.train(problem, parts, settings.optimiser, iterations, test, set(evaluations(iterations)))
    end = time.perf_counter()
    if not abs(history.loss[iterations] - loss) < 1e-6 * loss:
        raise AssertionError(
            f"{run.name}: after {iterations} iterations ocdl has {history.loss[iterations]}, NumPy {loss}"
        )
    seconds = {"ocdl": (middle - begin) / (len(history) - 1), "NumPy": (end - middle) / iterations}
    return {
        "run": run.name,
        "experiment": run.experiment,
        "iterations of NumPy": iterations,
        "seconds": {name: each * run.iterations for name, each in seconds.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=0.005, help="of the iterations (%(default)s)")
    parser.add_argument("--experiments", nargs="+", choices=tuple(EXPERIMENTS), default=tuple(EXPERIMENTS))
    options = parser.parse_args()
    ocdl.set_num_threads(1)
    rows = []
    for name in options.experiments:
        for run in list_runs(name, tuple(EXPERIMENTS[name].iterations), 1, quick=False):
            rows.append(measure(run, options.share))
            print(rows[-1], flush=True)
    summarise(rows, options.share)


def summarise(rows: list[dict[str, Any]], share: float) -> None:
    table, totals = [], {}
    for name in (*dict.fromkeys(row["experiment"] for row in rows), "all"):
        chosen = [row for row in rows if name in ("all", row["experiment"])]
        spent = {way: float(np.sum([row["seconds"][way] for row in chosen])) for way in ("ocdl", "NumPy")}
        totals[name] = spent | {"ratio": spent["NumPy"] / spent["ocdl"]}
        table.append((name, f"{spent['ocdl']:.1f} s", f"{spent['NumPy']:.0f} s", f"{totals[name]['ratio']:.1f}"))
    report.print_table(("one seed, all iterations", "ocdl, one thread", "NumPy", "ratio"), table)
    report.save("reproduction", {"share": share, "totals": totals, "rows": rows})


if __name__ == "__main__":
    main()
