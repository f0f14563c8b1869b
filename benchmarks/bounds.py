"""The least time a job can take: its tanh evaluations or its multiply-adds, whichever binds.

Where both take their time, no contender reaches the bound: tanh is made of multiply-adds as well, which the
same units compute, so that the two cannot overlap as a whole. Their sum stands beside the bound.

Both speeds are measured where the benchmark runs: that of multiply-adds on a large matrix product of the BLAS, that of
tanh on ocdl's own, numbers in the core's cache, as no library at hand has a faster one.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np
from jobs import Job
from worker import thread_environment

from ocdl import _core

STATED_GFLOPS = {"float64": 50.0, "float32": 100.0}
"""Stated: multiply-add peak per core of the machine on which the targets were set."""

TANH_BYTES = 32768
GEMM_SIZE = 1536


@dataclass(frozen=True)
class Peak:
    """Measured GFLOP/s of a large matrix product, and seconds of a tanh on one core."""

    dtype: str
    threads: int
    gflops: float
    tanh_seconds: float


def measure_peak(dtype: str, threads: int) -> Peak:
    """In a separate process, because the number of threads is read when the BLAS is loaded."""
    command = [sys.executable, __file__, dtype]
    answer = subprocess.run(command, env=thread_environment(threads), check=True, capture_output=True, text=True)
    gflops, tanh_seconds = map(float, answer.stdout.split())
    return Peak(dtype, threads, gflops, tanh_seconds)


def gemm_gflops(dtype: str) -> float:
    """Best of several products, as a peak is what no disturbance can raise."""
    left = np.random.default_rng(0).standard_normal((GEMM_SIZE, GEMM_SIZE)).astype(dtype)
    right, out = left.copy(), np.empty_like(left)
    np.matmul(left, right, out=out)
    seconds = []
    for _ in range(7):
        start = time.perf_counter()
        np.matmul(left, right, out=out)
        seconds.append(time.perf_counter() - start)
    return 2 * GEMM_SIZE**3 / min(seconds) / 1e9


def tanh_seconds(dtype: str) -> float:
    """Seconds per number, the best of many short samples."""
    numbers = np.random.default_rng(0).standard_normal(TANH_BYTES // np.dtype(dtype).itemsize).astype(dtype)
    seconds = []
    for _ in range(2000):
        start = time.perf_counter()
        _core.activate("tanh", numbers)
        seconds.append(time.perf_counter() - start)
    return min(seconds) / numbers.size


def tanh_bound(job: Job, peak: Peak) -> float:
    """Seconds on all threads."""
    return _stages(job) * job.d * peak.tanh_seconds / peak.threads


def product_bound(question: str, job: Job, gflops: float) -> float:
    """Seconds. A gradient takes three products per stage (K y, K^T g, g y^T), a prediction one."""
    products = {"gradient": 3, "prediction": 1}[question]
    return products * 2 * job.d**2 * _stages(job) / (gflops * 1e9)


def bounds(question: str, job: Job, peak: Peak) -> dict[str, float]:
    """Seconds, each named after what it rests on; the measured speed of products is that of `peak`."""
    tanh, products = tanh_bound(job, peak), product_bound(question, job, peak.gflops)
    return {
        "tanh, measured speed": tanh,
        "products, measured speed": products,
        "one after the other": tanh + products,
        "products, stated speed": product_bound(question, job, STATED_GFLOPS[job.dtype] * peak.threads),
    }


def _stages(job: Job) -> int:
    return job.m * job.N * job.method.stages


if __name__ == "__main__":
    print(gemm_gflops(sys.argv[1]), tanh_seconds(sys.argv[1]))
