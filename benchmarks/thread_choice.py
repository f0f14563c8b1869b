"""The choice of threads against one thread and two insisted ones, in one process; prints JSON for `threads.py`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from neighbour import neighbour

import ocdl
from ocdl import _core

SIZES = (256, 512, 1000, 2048, 4096)
WAYS = {"serial": (1, False), "insisted": (2, True), "chosen": (2, False)}
SPAN = 0.05  # seconds of successive evaluations in a sample
BATCH = 10  # evaluations between two readings of the clock
WINDOW = 0.005  # seconds over which the speed is judged after the neighbour has gone

Evaluation = Callable[[], Any]


def evaluation(m: int) -> Evaluation:
    X, y = ocdl.datasets.make_spiral(m, random_state=0)
    net = ocdl.Network(2, 20)
    u = net.init(random_state=0)
    return lambda: net.value_and_grad(u, X, y)


def other_work(library: str) -> Callable[[], Any]:
    """A product of matrices by a library whose threads may spin for a while after it."""
    matrix = np.random.default_rng(0).normal(size=(600, 600))
    if library == "numpy":
        return lambda: matrix @ matrix
    if library == "jax":
        import jax

        product = jax.jit(lambda a: a @ a)
        return lambda: product(matrix).block_until_ready()
    return lambda: None


def take(way: str) -> None:
    threads, insists = WAYS[way]
    ocdl.set_num_threads(threads)
    _core.insist_on_threads(insists)


def mean_seconds(evaluate: Evaluation, span: float = SPAN) -> float:
    count, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < span or not count:
        for _ in range(BATCH):
            evaluate()
        count += BATCH
    return passed / count


def medians(evaluate: Evaluation, rounds: int, before: Callable[[], Any]) -> dict[str, float]:
    """Mean seconds of an evaluation for each way, the median over rounds; other work comes before each sample."""
    samples: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(rounds + 1):
        for way, taken in samples.items():
            take(way)
            before()
            seconds = mean_seconds(evaluate)
            if number:  # the first round warms up
                taken.append(seconds)
    return {way: statistics.median(taken) for way, taken in samples.items()}


def sizes(rounds: int, library: str) -> list[dict[str, float]]:
    rows = []
    for m in SIZES:
        row = medians(evaluation(m), rounds, other_work(library))
        rows.append({"m": m, **row, "ratio": row["chosen"] / min(row["serial"], row["insisted"])})
    return rows


def seconds_until_fast(evaluate: Evaluation, limit: float) -> float:
    """Seconds until a window of evaluations has a mean below the limit."""
    start = time.perf_counter()
    while True:
        begin = time.perf_counter() - start
        if mean_seconds(evaluate, WINDOW) < limit or begin > 5:
            return begin


def beside_neighbour(rounds: int) -> dict[str, float]:
    """J1 next to a busy process, and the seconds until it is fast again after that process has stopped."""
    evaluate = evaluation(1000)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    alone = medians(evaluate, rounds, lambda: None)
    if alone["insisted"] >= alone["serial"]:
        raise SystemExit("two threads gain nothing here, so their return cannot be timed: is the machine idle?")
    halfway = (alone["serial"] + alone["insisted"]) / 2
    samples: dict[str, list[float]] = {"serial": [], "chosen": [], "return": []}
    with neighbour() as busy:
        for _ in range(rounds):
            for way in ("serial", "chosen"):
                take(way)
                busy.send_signal(signal.SIGCONT)
                samples[way].append(mean_seconds(evaluate, 0.3))
                busy.send_signal(signal.SIGSTOP)
                if way == "chosen":
                    samples["return"].append(seconds_until_fast(evaluate, halfway))
    busy_medians = {name: statistics.median(taken) for name, taken in samples.items()}
    return {**busy_medians, "ratio": busy_medians["chosen"] / busy_medians["serial"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("situation", choices=("fresh", "numpy", "jax", "neighbour"))
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if options.situation == "neighbour":
        print(json.dumps(beside_neighbour(options.rounds)))
    else:
        print(json.dumps(sizes(options.rounds, options.situation)))


if __name__ == "__main__":
    main()
