"""How fast is a flow inside PyTorch beside the same network written in PyTorch, and what does the bridge cost?

On one thread, in processor time: sums over 1000 samples of two features are too small for more.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import matplotlib.pyplot as plt
import report
import torch
from jobs import JOBS, Job, make_problem
from peers import torch_peer
from timing import MINIMUM_ROUNDS, SAMPLE_SECONDS

import ocdl
import ocdl.torch

NAMES = ("J1", "J2")
ROUNDS = 15
AGREEMENT = 1e-10  # of the gradients, relative to the largest entry of each
LAYER, PLAIN, CORE = "OCDLayer", "written in torch", "predict and pull_back"
Call = Callable[[], Any]


def contenders(job: Job) -> dict[str, Call]:
    """Each computes outputs, the loss and the gradient by K, b, W and mu; the last one the layer's part of that."""
    problem = make_problem(job)
    net = ocdl.Network(job.d, job.N, tableau=job.tableau, horizon=job.horizon, dtype=job.dtype)
    u = net.controls(K=problem.K, b=problem.b, h=problem.h, W=problem.W, mu=problem.mu)
    layer = ocdl.torch.OCDLayer(net, u)
    x, y = torch.from_numpy(problem.X), torch.from_numpy(problem.y)
    parameters = [layer.K, layer.b, layer.W, layer.mu]
    slopes = ocdl.Objective().slopes(net.predict(u, problem.X), problem.y)

    def inside() -> tuple[torch.Tensor, ...]:
        loss = 0.5 * (torch.sigmoid(layer(x)[:, 0]) - y).square().mean()
        return torch.autograd.grad(loss, parameters)

    def core() -> ocdl.Controls:
        net.predict(u, problem.X)
        return net.pull_back(u, problem.X, slopes)

    plain = torch_peer.gradient(job, problem, threads=1)
    require_agreement(inside(), plain())
    return {LAYER: inside, PLAIN: plain, CORE: core}


def layer_alone(job: Job) -> Call:
    """The layer forward and backward, with slopes that are given: what the bridge adds to CORE."""
    problem = make_problem(job)
    net = ocdl.Network(job.d, job.N, tableau=job.tableau, horizon=job.horizon, dtype=job.dtype)
    layer = ocdl.torch.OCDLayer(net, net.controls(K=problem.K, b=problem.b, h=problem.h, W=problem.W, mu=problem.mu))
    x, parameters = torch.from_numpy(problem.X), list(layer.parameters())
    slopes = torch.full((job.m, 1), 1 / job.m, dtype=x.dtype)
    return lambda: torch.autograd.grad(layer(x), parameters, slopes)


def require_agreement(found: tuple[torch.Tensor, ...], expected: Any) -> None:
    for ours, theirs in zip(found, (expected.K, expected.b, expected.W, expected.mu), strict=True):
        error = float((ours - theirs).abs().max() / theirs.abs().max())
        if error > AGREEMENT:
            raise SystemExit(f"not timed: the gradients differ by {error:.1e}")


def measure(job: Job, rounds: int) -> dict[str, Any]:
    """Rounds A B C D A B C D ...; short evaluations are repeated until a sample is long enough to trust the clock."""
    ocdl.set_num_threads(1)
    calls = {**contenders(job), "OCDLayer without a loss": layer_alone(job)}
    repetitions = {name: max(1, math.ceil(SAMPLE_SECONDS / seconds(call, 3))) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            samples[name].append(seconds(call, repetitions[name]))
    middle = {name: median(taken) for name, taken in samples.items()}
    return {
        "job": job.name,
        "summary": job.summary,
        "seconds": middle,
        "samples": samples,
        "times_as_fast": middle[PLAIN] / middle[LAYER],
        "bridge": middle["OCDLayer without a loss"] - middle[CORE],
    }


def seconds(call: Call, repetitions: int) -> float:
    call()
    start = time.process_time()
    for _ in range(repetitions):
        call()
    return (time.process_time() - start) / repetitions


def print_rows(rows: list[dict[str, Any]]) -> None:
    names = list(rows[0]["seconds"])
    report.print_table(
        ("job", *names, "times as fast", "the bridge"),
        [
            (
                row["job"],
                *(report.milliseconds(row["seconds"][name]) for name in names),
                f"{row['times_as_fast']:.1f}",
                report.milliseconds(row["bridge"]),
            )
            for row in rows
        ],
    )


def plot(rows: list[dict[str, Any]]) -> None:
    """One line per job, one mark per contender, on a common logarithmic axis."""
    with plt.rc_context(report.STYLE):
        figure, axes = plt.subplots(figsize=(8, 1.5 + 0.55 * len(rows)))
        for number, name in enumerate(rows[0]["seconds"]):
            mark = {"marker": report.MARKERS[number], "color": report.COLOURS[number], "linestyle": "none"}
            taken = [1e3 * row["seconds"][name] for row in rows]
            axes.plot(taken, range(len(rows)), markersize=8, label=name, **mark)
        for line, row in enumerate(rows):
            slowest = 1e3 * max(row["seconds"].values())
            axes.annotate(
                f"  {row['times_as_fast']:.1f} times",
                (slowest, line),
                va="center",
                xytext=(6, 0),
                textcoords="offset points",
            )
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.set_xlim(low, 2 * high)
        ticks = [tick for tick in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if low <= tick <= high]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        labels = [f"{row['job']}\n{row['summary']}" for row in rows]
        axes.set_yticks(range(len(rows)), labels, fontsize=7)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel("milliseconds of processor time, forward and backward")
        axes.set_title("A flow in PyTorch, and the same network written in PyTorch", loc="left")
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
        report.save_figure("interop", figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    rounds = max(MINIMUM_ROUNDS, options.rounds)
    rows = [measure(JOBS[name], rounds) for name in NAMES]
    print_rows(rows)
    report.save("interop", {"agreement": AGREEMENT, "rows": rows})
    plot(rows)


if __name__ == "__main__":
    main()
