"""How well does `ocdl.Dynamics` simulate ten systems from noisy series, beside PySINDy and a loop of torchdiffeq?

Settings of ocdl were chosen on other systems, which `dynamical_systems.CHOSEN_ON` lists, not on these ten.

    python benchmarks/dynamics_learning.py --pysindy env/bin/python --seeds 3 --minutes 60

PySINDy has an environment of its own (`peers/pysindy_peer.py`); torchdiffeq learns for the processor time that ocdl's
mlp took, and for ten times that with --long. Results of earlier runs with other systems, noises and seeds are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anybody starts threads: a fit takes one
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import matplotlib.pyplot as plt
import numpy as np
import report
from dynamical_systems import CHOSEN_ON, JUDGED_ON, Benchmark, Data, is_true_equation, make_data, simulation_errors

import ocdl

NOISES = (0.01, 0.05, 0.1)
PEER = Path(__file__).parent / "peers" / "pysindy_peer.py"
TIME_LIMIT = 300  # seconds of a peer
FAILED = {"inside": 10.0, "beyond": 10.0}


def run_ocdl(system: Benchmark, data: Data, field: str, seed: int) -> dict[str, Any]:
    begin = time.process_time()
    model = ocdl.Dynamics(field=field, random_state=seed).fit(data.X, data.times, inputs=data.inputs)
    seconds = time.process_time() - begin
    inside, beyond = simulation_errors(model.simulate(data.y0, data.new_times, inputs=data.new_inputs), data)
    result: dict[str, Any] = {"inside": inside, "beyond": beyond, "seconds": seconds}
    if field == "polynomial" and system.terms:
        exponents = model.models_[0].system.monomials()
        result["is_true"] = is_true_equation(system, exponents, model.coefficients_)
    return result


def run_pysindy(python: str, system: Benchmark, data: Data, kind: str) -> dict[str, Any]:
    problem = {
        "kind": kind,
        "X": [one.tolist() for one in data.X],
        "times": [one.tolist() for one in data.times],
        "inputs": data.inputs and [one.tolist() for one in data.inputs],
        "y0": data.y0.tolist(),
        "new_times": data.new_times.tolist(),
        "new_inputs": None if data.new_inputs is None else data.new_inputs.tolist(),
    }
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            [python, str(PEER)], input=json.dumps(problem), capture_output=True, text=True, timeout=TIME_LIMIT,
            env=environment, check=True,
        )  # fmt: skip
    except subprocess.SubprocessError as error:
        return {**FAILED, "failed": str(getattr(error, "stderr", "") or error)[-300:]}
    found = json.loads(done.stdout)
    inside, beyond = simulation_errors(np.array(found["simulated"]), data)
    result = {"inside": inside, "beyond": beyond, "seconds": found["seconds"], "version": found["version"]}
    if system.terms:
        result["is_true"] = is_true_equation(system, np.array(found["exponents"]), np.array(found["coefficients"]))
    return result


def run_torchdiffeq(data: Data, seconds: float, seed: int) -> dict[str, Any]:
    from peers.torchdiffeq_fit import fit_and_simulate

    simulated, iterations = fit_and_simulate(data, seconds, seed)
    inside, beyond = simulation_errors(simulated, data)
    return {"inside": inside, "beyond": beyond, "seconds": seconds, "iterations": iterations}


def compare(name: str, noise: float, seed: int, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    system = JUDGED_ON[name]
    data = make_data(system, noise, seed)
    row = {f"ocdl {field}": run_ocdl(system, data, field, seed) for field in options.fields}
    if options.pysindy:
        row["PySINDy"] = run_pysindy(options.pysindy, system, data, "default")
        row["PySINDy, smoothing and ensemble"] = run_pysindy(options.pysindy, system, data, "ensemble")
    if options.torchdiffeq and data.inputs is None and "mlp" in options.fields:
        seconds = row["ocdl mlp"]["seconds"]
        row["torchdiffeq, Adam"] = run_torchdiffeq(data, seconds, seed)
        if options.long:
            row["torchdiffeq, Adam, ten times as long"] = run_torchdiffeq(data, 10 * seconds, seed)
    return row


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return medians over systems and seeds for each contender and noise, and how many equations are true."""
    summary: dict[str, Any] = {}
    for noise in NOISES:
        some = [row for row in rows if row["noise"] == noise]
        for label in dict.fromkeys(label for row in some for label in row["results"]):
            results = [row["results"][label] for row in some if label in row["results"]]
            judged = [result["is_true"] for result in results if "is_true" in result]
            summary.setdefault(label, {})[str(noise)] = {
                "inside": median(result["inside"] for result in results),
                "beyond": median(result["beyond"] for result in results),
                "seconds": median(result.get("seconds", 0.0) for result in results),
                "runs": len(results),
                "true equations": f"{sum(judged)} of {len(judged)}" if judged else "",
            }
    return summary


def add_row(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the stored rows with this one, which replaces what an earlier run found."""
    rows: list[dict[str, Any]] = report.load("dynamics_learning").get("rows", [])
    key = [row[name] for name in ("system", "noise", "seed")]
    for i, other in enumerate(rows):
        if [other[name] for name in ("system", "noise", "seed")] == key:
            rows[i] = {**row, "results": other["results"] | row["results"]}
            return rows
    return [*rows, row]


def plot(rows: list[dict[str, Any]]) -> None:
    labels = list(dict.fromkeys(label for row in rows for label in row["results"]))
    with plt.rc_context(report.STYLE):
        figure, axes = plt.subplots(1, len(NOISES), figsize=(12, 4.5), sharey=True)
        for ax, noise in zip(axes, NOISES, strict=True):
            for i, label in enumerate(labels):
                points = [
                    (median(values), j + 0.1 * (i - len(labels) / 2))
                    for j, name in enumerate(JUDGED_ON)
                    if (
                        values := [
                            row["results"][label]["inside"]
                            for row in rows
                            if row["noise"] == noise and row["system"] == name and label in row["results"]
                        ]
                    )
                ]
                if points:
                    ax.plot(*zip(*points, strict=True), report.MARKERS[i], color=report.COLOURS[i], label=label, ms=4)
            ax.set(xscale="log", title=f"noise {noise:.0%}", xlabel="error of simulation over the spread")
        axes[0].set_yticks(range(len(JUDGED_ON)), list(JUDGED_ON))
        axes[0].legend(fontsize=7)
        figure.tight_layout()
        report.save_figure("dynamics_learning", figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pysindy", help="the Python of an environment with pysindy")
    parser.add_argument("--fields", nargs="+", default=["mlp", "polynomial"], choices=["mlp", "polynomial"])
    parser.add_argument("--torchdiffeq", action="store_true", help="run torchdiffeq, too")
    parser.add_argument("--long", action="store_true", help="and for ten times as long")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--systems", nargs="+", default=list(JUDGED_ON), choices=list(JUDGED_ON))
    parser.add_argument("--noises", type=float, nargs="+", default=list(NOISES))
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    end = time.monotonic() + 60 * options.minutes
    rows: list[dict[str, Any]] = report.load("dynamics_learning").get("rows", [])
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for noise in options.noises:
            for name in options.systems:
                if time.monotonic() > end:
                    break
                results = compare(name, noise, seed, options)
                rows = add_row({"system": name, "noise": noise, "seed": seed, "results": results})
                lines = [
                    (label, f"{one['inside']:.4f}", f"{one['beyond']:.4f}", f"{one.get('seconds', 0):.1f} s",
                     str(one.get("is_true", "")))
                    for label, one in results.items()
                ]  # fmt: skip
                report.print_table(
                    (f"{name}, noise {noise:.0%}, seed {seed}", "inside", "beyond", "CPU", "true"), lines
                )
                summary = summarise(rows)
                report.save("dynamics_learning", {"chosen on": CHOSEN_ON, "summary": summary, "rows": rows})
    for label, by_noise in summarise(rows).items():
        lines = [(noise, *(str(value) for value in facts.values())) for noise, facts in by_noise.items()]
        report.print_table((label, "inside", "beyond", "CPU s", "runs", "true equations"), lines)
    plot(rows)


if __name__ == "__main__":
    main()
