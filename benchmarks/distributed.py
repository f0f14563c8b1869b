"""What does a sum over ranks cost: on one rank, beside the work of a shard, on up to four ranks, and on a thousand?"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import report

import ocdl
from ocdl.distributed.collectives import ALL_PACKETS, Collectives
from ocdl.distributed.communicator import Communicator
from ocdl.distributed.row_distribution import RowDistribution

LAYERS = 20
ITERATIONS = 5
LENGTHS = (150, 5_000, 83_000, 1_000_000)  # of vectors that are added; the first and the third are gradients below
OVERHEAD = {"m = 100,000, d = 2": (100_000, 2, 30), "m = 20,000, d = 64": (20_000, 64, 3)}  # rows, width, iterations
STRONG, WEAK = 1_000_000, 250_000  # rows of all ranks, and of each
MOST_RANKS = 4
CALCULATED = (64, 1024)
SHARE = 0.05  # of the work that a sum may cost
METHOD = ocdl.GradientDescent(1e-6)


def problem(m: int, d: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, d))
    net = ocdl.Network(d, LAYERS)
    return net, net.init(random_state=0, scheme="scaled"), X, (X[:, 0] > 0).astype(np.int64)


def iteration_seconds(given: tuple[Any, ...], iterations: int, communicator: Any = None) -> float:
    """The median iteration of a training, by the core's clock: an evaluation, with the sum over the ranks in it."""
    net, u, X, y = given
    how = {"optimiser": METHOD, "max_iter": iterations, "tol": 0.0, "eval_every": 10**9, "communicator": communicator}
    return statistics.median(np.diff(ocdl.train(net, u, X, y, **how).history.seconds).tolist())


# ---- on the ranks ----


def overhead(rounds: int) -> dict[str, Any]:
    """One rank against no MPI at all, taken in turns, with all threads."""
    from mpi4py import MPI

    result = {}
    for name, (m, d, iterations) in OVERHEAD.items():
        given = problem(m, d)
        ratios, plain = [], []
        for _ in range(rounds):
            without, with_ranks = (iteration_seconds(given, iterations, comm) for comm in (None, MPI.COMM_SELF))
            plain.append(without)
            ratios.append(with_ranks / without)
        result[name] = {"seconds": statistics.median(plain), "ratio": statistics.median(ratios), "ratios": ratios}
    return result


def scaling(rounds: int) -> dict[str, Any]:
    """Seconds of an iteration on 1 to 4 ranks with one thread each, and of sums alone; rounds are taken in turns."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    ocdl.set_num_threads(1)
    sizes = range(1, world.size + 1)
    groups = {size: world.Split(int(world.rank >= size)) for size in sizes}
    whole = problem(STRONG, 2)
    result: dict[str, dict[int, list[float]]] = {"strong": {}, "weak": {}}
    for _ in range(rounds):
        for size, group in groups.items():
            for kind, m in (("strong", STRONG), ("weak", WEAK * size)):
                _wait_for_all(world)
                if world.rank < size:
                    net, u, X, y = whole
                    mine = ocdl.distributed.local_rows(m, group)
                    seconds = iteration_seconds((net, u, X[mine], y[mine]), ITERATIONS, group)
                    result[kind].setdefault(size, []).append(seconds)
    sums: dict[int, dict[int, float]] = {}
    for size in sizes[1:]:
        _wait_for_all(world)
        if world.rank < size:
            sums[size] = sum_seconds(groups[size])
    _wait_for_all(world)
    medians = {kind: {size: statistics.median(taken) for size, taken in by.items()} for kind, by in result.items()}
    return medians | {"sums": sums, "samples": result}


def sum_seconds(group: Any) -> dict[int, float]:
    """Seconds of one sum over the ranks, one node of each, by the length of the vector."""
    result = {}
    with Collectives(Communicator(group)).session() as collectives:
        distribution = RowDistribution.gather(collectives, 4096, "X")
        for length in LENGTHS:
            node = [(0, collectives.rank, np.ones(length), np.zeros(0, np.float32))]
            repeat = max(5, min(200, 2_000_000 // length))
            taken = []
            for _ in range(repeat):
                started = time.perf_counter()
                distribution.allreduce_nodes(node)
                taken.append(time.perf_counter() - started)
            result[length] = statistics.median(taken)
    return result


def _wait_for_all(world: Any) -> None:
    """A barrier in which ranks that have nothing to do sleep: MPI's own would take a processor."""
    request = world.Ibarrier()
    while not request.Test():
        time.sleep(0.001)


WORK: dict[str, Callable[[int], Any]] = {"overhead": overhead, "scaling": scaling}


def shrink() -> None:
    """Take a twentieth of the rows and few numbers."""
    global STRONG, WEAK, LENGTHS, OVERHEAD
    STRONG, WEAK, LENGTHS = STRONG // 20, WEAK // 20, LENGTHS[:2]
    OVERHEAD = {name: (m // 20, d, 2) for name, (m, d, _) in OVERHEAD.items()}


def on_ranks(ranks: int, work: str, arguments: argparse.Namespace) -> Any:
    beside = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None:
        raise SystemExit("mpiexec is missing: pip install 'ocdl[mpi]'")
    command = [mpiexec, "-n", str(ranks), sys.executable, __file__, "--work", work, "--rounds", str(arguments.rounds)]
    command += ["--quick"] * arguments.quick
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])


# ---- the calculation ----


def calculated(measured: dict[str, Any], overheads: dict[str, Any]) -> list[dict[str, Any]]:
    """From which number of samples per rank on a sum costs less than 5 % of the work, if messages are as fast as here.

    A collective of P ranks takes log2(P) rounds of what one of two ranks takes, and its bytes at the speed measured
    with two ranks. Of a thousand ranks none has more than a shard or two, of 64 as many subtrees as there can be.
    """
    two = {int(length): seconds for length, seconds in measured["sums"]["2"].items()}
    latency, longest = two[LENGTHS[0]], LENGTHS[-1]
    seconds_per_byte = (two[longest] - 3 * latency) / (3 * 8 * longest)  # half is sent, half comes, and the sum comes
    rows = []
    for name, (m, d, _) in OVERHEAD.items():
        length = ocdl.Network(d, LAYERS).n_controls + 1
        per_sample = measured["strong"]["1"] / STRONG if d == 2 else overheads[name]["seconds"] / m
        for ranks in CALCULATED:
            nodes = 1 if ranks >= 1024 else 2 * math.ceil(math.log2(1024 / ranks))
            packet = min(ALL_PACKETS // ranks, 2**14)
            fits = 8 * nodes * length <= packet
            steps = math.log2(ranks) * (1 if fits else 3)
            volume = 8 * nodes * length * ranks if fits else 8 * (nodes + 1) * length + ALL_PACKETS
            seconds = steps * latency + volume * seconds_per_byte
            rows.append(
                {"d": d, "ranks": ranks, "seconds": seconds, "samples_per_rank": seconds / (SHARE * per_sample)}
            )
    return rows


def tables(overheads: dict[str, Any], measured: dict[str, Any], calculation: list[dict[str, Any]]) -> None:
    print("One rank against no MPI, an iteration of gradient descent:")
    report.print_table(
        ("", "without", "one rank takes"),
        [
            (name, report.milliseconds(o["seconds"]), f"{100 * (o['ratio'] - 1):+.1f} %")
            for name, o in overheads.items()
        ],
    )
    print(f"Ranks with one thread each, d = 2; strong: {STRONG:,} rows in all, weak: {WEAK:,} on each:")
    one = {kind: measured[kind]["1"] for kind in ("strong", "weak")}
    report.print_table(
        ("ranks", "strong", "faster", "weak", "efficiency"),
        [
            (
                size,
                report.milliseconds(measured["strong"][size]),
                f"{one['strong'] / measured['strong'][size]:.2f} times",
                report.milliseconds(measured["weak"][size]),
                f"{100 * one['weak'] / measured['weak'][size]:.0f} %",
            )
            for size in measured["strong"]
        ],
    )
    print("One sum over the ranks, by the numbers that are added:")
    report.print_table(
        ("ranks", *(f"{length:,}" for length in LENGTHS)),
        [(size, *(report.milliseconds(by[str(n)]) for n in LENGTHS)) for size, by in measured["sums"].items()],
    )
    print("Calculated from these, not measured: samples per rank from which on a sum costs less than 5 % of the work:")
    report.print_table(
        ("d", "ranks", "a sum", "samples per rank"),
        [
            (str(r["d"]), f"{r['ranks']:,}", report.milliseconds(r["seconds"]), f"{r['samples_per_rank']:,.0f}")
            for r in calculation
        ],
    )


def plot(measured: dict[str, Any]) -> Any:
    with plt.rc_context(report.STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
        sizes = [int(size) for size in measured["strong"]]
        for (kind, label), colour, marker in zip(
            (("strong", f"{STRONG:,} rows in all"), ("weak", f"{WEAK:,} rows each")),
            report.COLOURS,
            report.MARKERS,
            strict=False,
        ):
            left.plot(sizes, [1e3 * s for s in measured[kind].values()], color=colour, marker=marker, label=label)
        left.set(xlabel="ranks with one thread each, on two cores", ylabel="ms per iteration", xticks=sizes, ylim=0)
        left.legend()
        for (size, by), colour, marker in zip(measured["sums"].items(), report.COLOURS, report.MARKERS, strict=False):
            right.loglog(
                LENGTHS, [1e3 * by[str(n)] for n in LENGTHS], color=colour, marker=marker, label=f"{size} ranks"
            )
        right.set(xlabel="numbers that are added", ylabel="ms per sum")
        right.legend()
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="one round, to see that it runs; stores nothing")
    parser.add_argument("--work", choices=WORK, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.quick:
        shrink()
        arguments.rounds = 1
    if arguments.work is not None:
        result = WORK[arguments.work](arguments.rounds)
        from mpi4py import MPI

        if MPI.COMM_WORLD.rank == 0:
            print(json.dumps(result), flush=True)
        return
    overheads = on_ranks(1, "overhead", arguments)
    measured = on_ranks(MOST_RANKS, "scaling", arguments)
    calculation = calculated(measured, overheads)
    tables(overheads, measured, calculation)
    if arguments.quick:
        return
    rows = {"overhead": overheads, "scaling": measured, "calculation": calculation}
    report.save("distributed", rows)
    report.save_figure("distributed", plot(measured))


if __name__ == "__main__":
    main()
