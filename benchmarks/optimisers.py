"""How many evaluations does a chain of Adam and L-BFGS need for what Algorithm 2 reaches at its very end?"""

from __future__ import annotations

import argparse
from statistics import median
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import report

import ocdl

# The paper's numbers of iterations.
ITERATIONS = {"donut1d": 5000, "donut2d": 8000, "squares": 8000, "spiral": 20000}
CHAIN_ITERATIONS = 1000


def problem(name: str, seed: int) -> tuple[Any, ...]:
    X, y = getattr(ocdl.datasets, f"make_{name}")(random_state=seed)
    net = ocdl.Network.preset("resnet", 2, 20)
    return net, net.init(random_state=seed), X, y


def evaluations(result: ocdl.Result, restarts: tuple[int, ...] = ()) -> np.ndarray:
    """Evaluations made up to each iteration; an optimiser that takes over evaluates its start again."""
    count = 1 + np.cumsum(result.history.trials)
    for restart in restarts:
        count[restart + 1 :] += 1
    return count


def compare(name: str, seed: int, chain: ocdl.Chain) -> dict[str, Any]:
    arguments = {"tol": 0.0, "eval_every": 10**6}
    slow = ocdl.train(*problem(name, seed), max_iter=ITERATIONS[name], **arguments)
    fast = ocdl.train(*problem(name, seed), optimiser=chain, max_iter=CHAIN_ITERATIONS, **arguments)
    target = slow.history.loss[-1]
    adam_steps = chain.stages[0][1] or 0
    spent = evaluations(fast, (adam_steps,))
    reached = np.flatnonzero(fast.history.loss <= target)
    return {
        "data": name,
        "seed": seed,
        "target": target,
        "algorithm 2": slow.n_evals,
        "chain": int(spent[reached[0]]) if len(reached) else None,
        "loss of the chain": fast.history.loss[-1],
        "curves": {
            "algorithm 2": thinned(evaluations(slow), slow.history.loss),
            "chain": thinned(spent, fast.history.loss),
        },
    }


def thinned(count: np.ndarray, loss: np.ndarray) -> list[list[float]]:
    """About 200 points, equally far apart on a logarithmic axis."""
    places = np.unique(np.geomspace(1, len(loss), 200).astype(int)) - 1
    return [count[places].tolist(), loss[places].tolist()]


def factor(row: dict[str, Any]) -> float:
    return row["algorithm 2"] / row["chain"] if row["chain"] else 0.0


def print_rows(rows: list[dict[str, Any]]) -> None:
    report.print_table(
        ("data", "seed", "loss of algorithm 2", "its evaluations", "chain's evaluations", "factor", "chain's loss"),
        [
            (
                row["data"],
                str(row["seed"]),
                f"{row['target']:.3e}",
                str(row["algorithm 2"]),
                str(row["chain"] or "not reached"),
                f"{factor(row):.0f}" if row["chain"] else "-",
                f"{row['loss of the chain']:.3e}",
            )
            for row in rows
        ],
    )
    medians = [(name, median(factor(row) for row in rows if row["data"] == name)) for name in ITERATIONS]
    report.print_table(("data", "median factor"), [(name, f"{value:.1f}") for name, value in medians])


def plot(rows: list[dict[str, Any]]) -> None:
    with plt.rc_context(report.STYLE):
        figure, panels = plt.subplots(1, 4, figsize=(13, 3.2), layout="constrained")
        for axes, name in zip(panels, ITERATIONS, strict=True):
            for colour, method in zip(report.COLOURS, ("algorithm 2", "chain"), strict=False):
                for number, row in enumerate(row for row in rows if row["data"] == name):
                    label = method if number == 0 else None
                    axes.loglog(*row["curves"][method], color=colour, label=label, linewidth=1)
            axes.set_title(name)
            axes.set_xlabel("evaluations of loss and gradient")
        panels[0].set_ylabel("loss")
        panels[0].legend(loc="lower left")
        report.save_figure("optimisers", figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--adam-steps", type=int, default=150)
    parser.add_argument("--lr", type=float, default=ocdl.Adam().lr)
    parser.add_argument("--memory", type=int, default=ocdl.LBFGS().memory)
    options = parser.parse_args()
    chain = ocdl.Chain((ocdl.Adam(lr=options.lr), options.adam_steps), (ocdl.LBFGS(memory=options.memory), None))
    rows = [compare(name, seed, chain) for name in ITERATIONS for seed in range(options.seeds)]
    print_rows(rows)
    report.save("optimisers", {"chain": repr(chain), "rows": rows})
    plot(rows)


if __name__ == "__main__":
    main()
