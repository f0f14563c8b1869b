"""How fast is a flow inside PyTorch beside the same network written in PyTorch, and what do the bridges cost?

On one thread, in processor time: sums over 1000 samples of two features are too small for more.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np
import report
import torch
from jobs import JOBS, Job, Problem, make_problem
from peers import torch_peer
from timing import MINIMUM_ROUNDS, SAMPLE_SECONDS

import ocdl
import ocdl.jax
import ocdl.torch

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_cpu_enable_async_dispatch", False)

SMALL = Job("small", d=2, N=20, m=20, tableau="kutta4")  # where the way to the core and back counts
MEASURED = (*(JOBS[name] for name in ("J1", "J2", "J9")), SMALL)
ROUNDS = 15
NAMES = ("K", "b", "W", "mu")  # of what is differentiated by
AGREEMENT = 1e-10  # of the gradients, relative to the largest entry of each
LAYER, PLAIN, CORE = "OCDLayer", "written in torch", "predict and vjp"
LAYER_ALONE, FLOW = "OCDLayer without a loss", "flow of JAX without a loss"
MOST = {LAYER_ALONE: 4.0, FLOW: 5.5}  # times the two calls of the core, on the small job
Call = Callable[[], Any]


class Case:
    """A job's network and its controls, in ocdl and as others take them."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.problem: Problem = make_problem(job)
        problem = self.problem
        self.net = ocdl.Network(job.d, job.N, tableau=job.tableau, horizon=job.horizon, dtype=job.dtype)
        self.u = self.net.controls(K=problem.K, b=problem.b, h=problem.h, W=problem.W, mu=problem.mu)
        self.layer = ocdl.torch.OCDLayer(self.net, self.u)
        self.parameters = list(self.layer.parameters())
        self.x, self.y = torch.from_numpy(problem.X), torch.from_numpy(problem.y)
        self.cotangents = ocdl.Objective().output_grad(self.net.predict(self.u, problem.X), problem.y)
        self.cotangent = torch.from_numpy(self.cotangents)

    def calls(self) -> dict[str, Call]:
        """Outputs and the gradient by K, b, W, mu; the first two also compute the loss, the others take cotangents."""
        plain = torch_peer.gradient(self.job, self.problem, threads=1)
        require_agreement(self.with_loss(), plain())
        require_agreement(self.without_loss(), self.core())
        in_jax = self.in_jax()
        gradient = in_jax()[1]
        require_agreement([gradient[name] for name in NAMES], self.core())
        return {
            LAYER: self.with_loss,
            PLAIN: plain,
            CORE: self.core,
            LAYER_ALONE: self.without_loss,
            FLOW: in_jax,
        }

    def with_loss(self) -> tuple[torch.Tensor, ...]:
        loss = 0.5 * (torch.sigmoid(self.layer(self.x)[:, 0]) - self.y).square().mean()
        return torch.autograd.grad(loss, self.parameters)

    def core(self) -> ocdl.Controls:
        self.net.predict(self.u, self.problem.X)
        return self.net.vjp(self.u, self.problem.X, output_cotangents=self.cotangents)

    def without_loss(self) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(self.layer(self.x), self.parameters, self.cotangent)

    def in_jax(self) -> Call:
        """Return the compiled call with its arrays. Fixed steps are left out: passed in, they would get a gradient."""
        flow = ocdl.jax.flow(self.net)

        @jax.jit
        def compiled(controls: Any, x: jax.Array, cotangents: jax.Array) -> Any:
            outputs, vjp = jax.vjp(lambda controls: flow(controls, x), controls)
            return outputs, vjp(cotangents)[0]

        controls = {name: jax.numpy.asarray(getattr(self.u, name)) for name in NAMES}
        x, cotangents = jax.numpy.asarray(self.problem.X), jax.numpy.asarray(self.cotangents)
        return lambda: jax.block_until_ready(compiled(controls, x, cotangents))


def require_agreement(result: Any, expected: Any) -> None:
    for name, values in zip(NAMES, result, strict=True):
        ours, theirs = np.asarray(values), np.asarray(getattr(expected, name))
        error = float(abs(ours - theirs).max() / abs(theirs).max())
        if error > AGREEMENT:
            raise SystemExit(f"not timed: the gradients differ by {error:.1e}")


def measure(job: Job, rounds: int) -> dict[str, Any]:
    """Rounds A B C A B C ...; short evaluations are repeated until a sample is long enough to trust the clock."""
    ocdl.set_num_threads(1)
    calls = Case(job).calls()
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
        "bridge": middle[LAYER_ALONE] - middle[CORE],
        "times_the_core": {
            name: median(a / b for a, b in zip(samples[name], samples[CORE], strict=True))
            for name in (LAYER_ALONE, FLOW)
        },
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
        ("job", *names, "times as fast", "PyTorch", "JAX, times the core"),
        [
            (
                row["job"],
                *(report.milliseconds(row["seconds"][name]) for name in names),
                f"{row['times_as_fast']:.1f}",
                *(f"{ratio:.2f}" for ratio in row["times_the_core"].values()),
            )
            for row in rows
        ],
    )


def print_limits(row: dict[str, Any]) -> None:
    for name, most in MOST.items():
        ratio = row["times_the_core"][name]
        verdict = "within" if ratio <= most else "ABOVE"
        print(f"{name} on the small job: {ratio:.2f} times the core's two calls, {verdict} the limit of {most:g}")


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
        ticks = [tick for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if low <= tick <= high]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        labels = [f"{row['job']}\n{row['summary']}" for row in rows]
        axes.set_yticks(range(len(rows)), labels, fontsize=7)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel("milliseconds of processor time, forward and backward")
        axes.set_title("A flow in PyTorch and JAX, and the same network written in PyTorch", loc="left")
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
        report.save_figure("interop", figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    rounds = max(MINIMUM_ROUNDS, options.rounds)
    rows = [measure(job, rounds) for job in MEASURED]
    print_rows(rows)
    print_limits(rows[-1])
    report.save("interop", {"agreement": AGREEMENT, "most_times_the_core": MOST, "rows": rows})
    plot(rows)


if __name__ == "__main__":
    main()
