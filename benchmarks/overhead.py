"""What does ocdl spend beside its evaluations: on a call from Python, and on the methods of a training?"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import report
from jobs import JOBS, Job, make_problem
from ocdl_contender import network_and_controls

import ocdl

CALLS = 200
ITERATIONS = 120
SETTLED = 20  # from this iteration on, L-BFGS's memory is full
LEAN = ocdl.GradientDescent(1e-3)  # an evaluation and hardly anything else
METHODS = {
    "Adam": ocdl.Adam(0.01),
    "L-BFGS": ocdl.LBFGS(),
    "Backtracking": ocdl.Backtracking(),
}
BATCH = 100
# As many controls as J1 has, within three, in one layer: a method does the same, an evaluation as little as it can.
ONE_LAYER = Job("one layer", d=11, N=1, m=64)


class Samples:
    """The network and the controls of a job, with its first m rows."""

    def __init__(self, job: Job, m: int) -> None:
        problem = make_problem(job)
        self.net, self.u = network_and_controls(job, problem)
        self.X, self.y = problem.X[:m].copy(), problem.y[:m].astype(np.int64)

    def iteration_seconds(self, method: Any) -> float:
        """The shortest iteration of a training with one evaluation: by the core's own clock, without Python."""
        history = ocdl.train(
            self.net, self.u, self.X, self.y, optimiser=method, max_iter=ITERATIONS, tol=0, eval_every=10**9
        ).history
        settled = np.diff(history.seconds)[SETTLED:]
        return float(settled[history.trials[1 + SETTLED :] == 1].min())

    def calls(self) -> dict[str, Callable[[], Any]]:
        """What is called with these samples, in the usual way: nothing has to be converted."""
        net, u, X, y, objective = self.net, self.u, self.X, self.y, ocdl.Objective()
        cotangents = objective.output_grad(net.predict(u, X), y)

        def with_parts() -> tuple[Any, ...]:
            J, g = net.value_and_grad(u, X, y, objective)
            return J, g.K, g.b, g.W, g.mu

        return {
            "value_and_grad": lambda: net.value_and_grad(u, X, y, objective),
            "value_and_grad, its parts": with_parts,
            "value": lambda: net.value(u, X, y, objective),
            "predict": lambda: net.predict(u, X),
            "final_state": lambda: net.final_state(u, X),
            "vjp": lambda: net.vjp(u, X, output_cotangents=cotangents),
        }


def call_seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - started) / CALLS


def least(measures: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The least of many short measurements, taken in turns: what a busy machine adds is not ocdl's."""
    samples = [{name: measure() for name, measure in measures.items()} for _ in range(rounds)]
    return {name: min(sample[name] for sample in samples) for name in measures}


def measure_calls(job: Job, rounds: int) -> dict[str, Any]:
    """Seconds of calls from Python; those of the core alone are an iteration of gradient descent."""
    ocdl.set_num_threads(1)
    samples = Samples(job, job.m)
    measures = {name: lambda call=call: call_seconds(call) for name, call in samples.calls().items()}
    result = least(measures | {"core": lambda: samples.iteration_seconds(LEAN)}, rounds)
    core = result.pop("core")
    return {"job": job.name, "core": core, "calls": result, "beside": result["value_and_grad"] - core}


def measure_methods(job: Job, rounds: int, threads: int) -> dict[str, Any]:
    """Seconds of an iteration, how much of it does not grow with the samples, and how much of that is the method's.

    What does not grow is found with one layer on 32 and 64 samples, one block each: the line through both ends, at no
    samples. An evaluation has its share in it, as threads are called and sums begin: what gradient descent takes there,
    which only adds the gradient to the controls, is not the method's. A batch is compared with as many samples that
    need no gathering.
    """
    ocdl.set_num_threads(threads)
    whole, few, more = Samples(job, job.m), Samples(ONE_LAYER, 32), Samples(ONE_LAYER, 64)
    batch, gathered = Samples(job, BATCH), ocdl.Adam(0.01, batch_size=BATCH)
    measures = {}
    for name, method in {"lean": LEAN, **METHODS}.items():
        for size, samples in (("whole", whole), ("few", few), ("more", more)):
            measures[f"{name} {size}"] = lambda samples=samples, method=method: samples.iteration_seconds(method)
    measures["batch"] = lambda: whole.iteration_seconds(gathered)
    measures["as many"] = lambda: batch.iteration_seconds(METHODS["Adam"])
    result = least(measures, rounds)
    once = {name: 2 * result[f"{name} few"] - result[f"{name} more"] for name in ("lean", *METHODS)}
    rows = {}
    for name in METHODS:
        seconds, outside = result[f"{name} whole"], once[name] - once["lean"]
        rows[name] = {"seconds": seconds, "once": once[name], "outside": outside, "share": outside / seconds}
    gathering = {"batch": result["batch"], "as_many": result["as many"]}
    return {"job": job.name, "threads": threads, "methods": rows, "gathering": gathering}


def microseconds(seconds: float) -> str:
    return f"{1e6 * seconds:.2f} us"


def plot(calls: dict[str, Any], methods: dict[str, Any]) -> None:
    with plt.rc_context(report.STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.8), layout="constrained")
        left.plot([1e6 * seconds for seconds in calls["calls"].values()], list(calls["calls"]), "o")
        left.axvline(1e6 * calls["core"], color="0.3", linewidth=1, linestyle="--", label="the core alone, gradient")
        left.set_xlabel(f"us per call, {calls['job']}")
        right.plot([100 * row["share"] for row in methods["methods"].values()], list(methods["methods"]), "o")
        right.set_xlabel(f"% outside the evaluations, {methods['job']}, {methods['threads']} threads")
        for axes in (left, right):
            axes.set_xlim(left=0)
            axes.invert_yaxis()
        left.legend()
        report.save_figure("overhead", figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--threads", type=int, default=2, help="of the trainings")
    options = parser.parse_args()
    calls = measure_calls(JOBS["J9"], options.rounds)
    report.print_table(
        (f"{calls['job']} through Python", "a call", "beside the core's gradient"),
        [
            (name, microseconds(seconds), microseconds(seconds - calls["core"]) if "grad" in name else "")
            for name, seconds in calls["calls"].items()
        ]
        + [("the core alone, gradient", microseconds(calls["core"]), "")],
    )
    methods = measure_methods(JOBS["J1"], options.rounds, options.threads)
    report.print_table(
        (f"{methods['job']}, {options.threads} threads", "an iteration", "at no samples", "the method's", "share"),
        [
            (
                name,
                *(microseconds(row[part]) for part in ("seconds", "once", "outside")),
                f"{100 * row['share']:.1f} %",
            )
            for name, row in methods["methods"].items()
        ],
    )
    batch, as_many = methods["gathering"]["batch"], methods["gathering"]["as_many"]
    print(f"Adam on {BATCH} samples: a batch {microseconds(batch)}, all there are {microseconds(as_many)}")
    report.save("overhead", {"calls": calls, "trainings": methods})
    plot(calls, methods)


if __name__ == "__main__":
    main()
