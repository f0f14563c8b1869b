"""What does it cost to read samples rather than to have them in memory, and does memory stay flat on 40 GB of them?"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import report

import ocdl

SHAPES = ((1_000_000, 2, 20), (50_000, 64, 20))  # samples, features, layers
FEATURES, LAYERS = 16, 2  # of the samples that are made as they are needed


class Made:
    """Samples that are stored nowhere: a table that is repeated, shifted a little each time."""

    def __init__(self, n_rows: int, period: int = 65536) -> None:
        self.n_rows, self._period = n_rows, period
        self._table = np.random.default_rng(0).normal(size=(2 * period, FEATURES))
        self._table[period:] = self._table[:period]

    def rows(self, i: int, j: int) -> tuple[Any, Any]:
        X = np.empty((j - i, FEATURES))
        for first in range(i, j, self._period):
            end, place = min(first + self._period, j), first % self._period
            np.add(self._table[place : place + end - first], 1e-9 * first, out=X[first - i : end - i])
        return X, (X[:, 0] > 0).astype(np.int64)


def seconds_of_a_gradient(net: ocdl.Network, u: ocdl.Controls, *data: Any) -> float:
    """Without the first evaluation, and without scores."""
    result = ocdl.train(net, u, *data, optimiser=ocdl.GradientDescent(1e-6), max_iter=2, tol=0)
    return float(np.diff(result.history.seconds).min())


def ratios(rows: int, features: int, layers: int, rounds: int) -> dict[str, Any]:
    """Time of a gradient by where the samples are, over that with samples in memory; interleaved."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features))
    y = (X[:, 0] > 0).astype(np.int64)
    net = ocdl.Network(features, layers)
    u = net.init(random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / f"{name}.npy") for name in "Xy"]
        for file, array in zip(files, (X, y), strict=True):
            np.save(file, array)
        ways = {
            "in memory": (X, y),
            "arrays as a source": (ocdl.RowSource.from_arrays(X, y),),
            "np.memmap": (ocdl.RowSource.from_npy(*(np.load(file, mmap_mode="r") for file in files)),),
            ".npy files": (ocdl.RowSource.from_npy(*files),),
        }
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, data in ways.items():
                taken[name].append(seconds_of_a_gradient(net, u, *data))
    base = taken["in memory"]
    return {
        name: statistics.median(a / b for a, b in zip(seconds, base, strict=True)) for name, seconds in taken.items()
    }


def one_gradient(gigabytes: float) -> dict[str, float]:
    """Time and memory of one gradient and one score over samples that are made as they are needed, in this process."""
    row_bytes = 8 * (FEATURES + 1)
    net = ocdl.Network(FEATURES, LAYERS)
    u = net.init(random_state=0)
    ocdl.train(net, u, Made(200_000), max_iter=0)  # threads and scratch memory
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    result = ocdl.train(net, u, Made(int(gigabytes * 1e9 / row_bytes)), max_iter=0)
    seconds = time.perf_counter() - begin
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert np.isfinite(result.history.gradient_norm).all()
    return {"gigabytes": gigabytes, "seconds": seconds, "peak_mb": (before + grown) / 1024, "grown_mb": grown / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--gigabytes", nargs="*", type=float, default=[0.4, 4, 40])
    parser.add_argument("--in-this-process", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_this_process is not None:
        print(json.dumps(one_gradient(options.in_this_process)))
        return
    compared = [{"shape": shape, "ratios": ratios(*shape, options.rounds)} for shape in SHAPES if options.rounds]
    for entry in compared:
        print("samples, features, layers:", *entry["shape"])
        report.print_table(("samples", "time"), [(name, f"{ratio:.2f}") for name, ratio in entry["ratios"].items()])
    flat = []
    for gigabytes in options.gigabytes:  # a fresh process each: a peak is that of a whole process
        command = [sys.executable, __file__, "--in-this-process", str(gigabytes)]
        flat.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    report.print_table(
        ("data", "a gradient and a score", "peak memory"),
        [(f"{e['gigabytes']:g} GB", f"{e['seconds']:.0f} s", f"{e['peak_mb']:.0f} MB") for e in flat],
    )
    report.save("streaming", {"ratios": compared, "flat": flat})


if __name__ == "__main__":
    main()
