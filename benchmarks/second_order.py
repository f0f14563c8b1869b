"""What do second order and few layers first gain, in evaluations, and what does a product with the Hessian cost?"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import report
from optimisers import ITERATIONS, problem, thinned

import ocdl

LOSSES = (5e-2, 3e-2, 2e-2, 1e-2, 1e-3, 1e-6)  # for each: how many evaluations does it take?
BUDGET = 10_000  # evaluations, of the gradient or what takes as long
NEW_WAYS = ("newton", "newton, l-bfgs", "multilevel")

Course = tuple[np.ndarray, np.ndarray]  # evaluations and losses
Summary = Callable[[Iterable[float]], float]


def run(optimiser: Any, iterations: int) -> Callable[..., Course]:
    """A contender: evaluations and losses of a training with this optimiser."""

    def course(net: ocdl.Network, u: ocdl.Controls, X: np.ndarray, y: np.ndarray) -> Course:
        history = ocdl.train(net, u, X, y, optimiser=optimiser, max_iter=iterations, tol=0.0, eval_every=10**6).history
        count = 1 + np.cumsum(history.trials)
        if isinstance(optimiser, ocdl.Chain):  # an optimiser that takes over evaluates its start again
            count[1 + (optimiser.stages[0][1] or 0) :] += 1
        return count, history.loss

    return course


def multilevel(net: ocdl.Network, u: ocdl.Controls, X: np.ndarray, y: np.ndarray) -> Course:
    """A contender: a quarter of the layers first; an evaluation there counts a quarter, and only the end has a loss."""
    chain = ocdl.Chain((ocdl.Adam(), 150), (ocdl.LBFGS(), None))
    result = ocdl.train_multilevel(
        net,
        u,
        X,
        y,
        levels=(net.n_layers // 4, net.n_layers),
        optimiser=(chain, ocdl.LBFGS()),
        max_iter=(200, BUDGET),
        tol=0.0,
        eval_every=10**6,
    )
    before, history = result.results[0].n_evals / 4, result.results[1].history
    return np.ceil(before + 1 + np.cumsum(history.trials)).astype(int), history.loss


# Each takes (net, u, X, y) and returns evaluations and losses, point by point.
CONTENDERS: dict[str, Callable[..., Course]] = {
    "algorithm 2": run(ocdl.Backtracking(), BUDGET),
    "adam": run(ocdl.Adam(), BUDGET),
    "adam, l-bfgs": run(ocdl.Chain((ocdl.Adam(), 150), (ocdl.LBFGS(), None)), BUDGET),
    "newton": run(ocdl.NewtonCG(), 400),
    "newton, l-bfgs": run(ocdl.Chain((ocdl.NewtonCG(), 20), (ocdl.LBFGS(), None)), BUDGET),
    "multilevel": multilevel,
}


def measure(name: str, seed: int) -> dict[str, Any]:
    curves, reached = {}, {}
    for contender, course in CONTENDERS.items():
        count, loss = course(*problem(name, seed))
        within = count <= BUDGET
        count, loss = count[within], np.minimum.accumulate(loss[within])
        curves[contender] = thinned(count, loss)
        places = np.searchsorted(-loss, [-target for target in LOSSES])
        reached[contender] = [int(count[place]) if place < len(count) else None for place in places]
    return {"data": name, "seed": seed, "reached": reached, "curves": curves}


def over_seeds(rows: list[dict[str, Any]], name: str, target: int, summary: Summary) -> dict[str, float]:
    """The median or the largest number of evaluations; infinite where too few seeds get there."""
    seeds = [row["reached"] for row in rows if row["data"] == name]
    return {contender: summary(row[contender][target] or math.inf for row in seeds) for contender in CONTENDERS}


def gain(evaluations: dict[str, float]) -> float:
    """The fewest evaluations of the other ways over those of the new ones."""
    ours = min(evaluations[name] for name in NEW_WAYS)
    others = min(value for name, value in evaluations.items() if name not in NEW_WAYS)
    return others / ours if math.isfinite(ours) else 0.0


def print_rows(rows: list[dict[str, Any]], title: str, summary: Summary) -> None:
    print(title)
    body = []
    for name in ITERATIONS:
        for target, loss in enumerate(LOSSES):
            evaluations = over_seeds(rows, name, target, summary)
            if any(math.isfinite(value) for value in evaluations.values()):
                numbers = [*evaluations.values(), gain(evaluations)]
                cells = [f"{value:.3g}" if value < 10 else f"{value:.0f}" for value in numbers]
                body.append((name, f"{loss:.0e}", *(cell.replace("inf", "-") for cell in cells[:-1]), cells[-1]))
    report.print_table(("data", "loss", *CONTENDERS, "gain"), body)


def cost_of_products() -> list[dict[str, Any]]:
    """Seconds of a product over those of a value with its gradient; the least of many, on one thread."""
    before = ocdl.get_num_threads()
    ocdl.set_num_threads(1)
    rows = []
    for dim, tableau in ((2, "euler"), (2, "kutta4"), (8, "euler"), (64, "euler")):
        net = ocdl.Network(dim, 20, tableau=tableau, time_steps="free")
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(1000, dim)), rng.integers(0, 2, 1000)
        u, du = net.init(random_state=0), net.init(random_state=1)
        objective = ocdl.Objective()
        data = (u, X, y, objective)
        gradient = least_seconds(lambda data=data, net=net: net.value_and_grad(*data))
        product = least_seconds(lambda data=data, net=net, du=du: net.hessian_product(*data, du=du))
        rows.append({"dim": dim, "tableau": tableau, "gradient": gradient, "product": product})
    ocdl.set_num_threads(before)
    return rows


def least_seconds(call: Callable[[], Any], rounds: int = 50) -> float:
    call()
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def print_costs(rows: list[dict[str, Any]]) -> None:
    report.print_table(
        ("d", "tableau", "gradient", "product", "ratio"),
        [
            (
                str(row["dim"]),
                row["tableau"],
                report.milliseconds(row["gradient"]),
                report.milliseconds(row["product"]),
                f"{row['product'] / row['gradient']:.2f}",
            )
            for row in rows
        ],
    )


def plot(rows: list[dict[str, Any]]) -> None:
    with plt.rc_context(report.STYLE):
        figure, panels = plt.subplots(1, 4, figsize=(13, 3.2), layout="constrained")
        for axes, name in zip(panels, ITERATIONS, strict=True):
            for colour, contender in zip(report.COLOURS, CONTENDERS, strict=False):
                for number, row in enumerate(row for row in rows if row["data"] == name):
                    label = contender if number == 0 else None
                    axes.loglog(*row["curves"][contender], color=colour, label=label, linewidth=1)
            axes.set_title(name)
            axes.set_ylim(bottom=1e-8 if name == "spiral" else None)
            axes.set_xlabel("evaluations, or what takes as long")
        panels[0].set_ylabel("loss")
        panels[0].legend(loc="lower left", fontsize=8)
        report.save_figure("second_order", figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    costs = cost_of_products()
    print_costs(costs)
    rows = [measure(name, seed) for name in ITERATIONS for seed in range(options.seeds)]
    print_rows(rows, "Evaluations, median of the seeds", median)
    print_rows(rows, "Evaluations of the seed that takes most", max)
    reached = [{key: value for key, value in row.items() if key != "curves"} for row in rows]
    report.save("second_order", {"losses": LOSSES, "costs": costs, "rows": reached})
    plot(rows)


if __name__ == "__main__":
    main()
