"""The least time a job can take: its tanh evaluations or its multiply-adds, whichever binds.

The speed of multiply-adds is measured where the benchmark runs; the speed of tanh is stated, as no library at hand
has a tanh that could serve as a bound.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np
from jobs import Job
from worker import thread_environment

TANH_NANOSECONDS = {"float64": 1.0, "float32": 0.35}
"""Stated, not measured: per element and core, for a branch-free AVX2 kernel of 4 ulp."""

STATED_GFLOPS = {"float64": 50.0, "float32": 100.0}
"""Stated: multiply-add peak per core of the machine on which the targets were set."""

GEMM_SIZE = 1536


@dataclass(frozen=True)
class Peak:
    """Measured GFLOP/s of a large matrix product."""

    dtype: str
    threads: int
    gflops: float


def measure_peak(dtype: str, threads: int) -> Peak:
    """In a process of its own, as the number of threads is read when the BLAS is loaded."""
    command = [sys.executable, __file__, dtype]
    answer = subprocess.run(command, env=thread_environment(threads), check=True, capture_output=True, text=True)
    return Peak(dtype, threads, float(answer.stdout))


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


def tanh_bound(job: Job, threads: int) -> float:
    """Seconds at the stated speed of tanh."""
    return _stages(job) * job.d * TANH_NANOSECONDS[job.dtype] * 1e-9 / threads


def product_bound(question: str, job: Job, gflops: float) -> float:
    """Seconds. A gradient takes three products per stage (K y, K^T g, g y^T), a prediction one."""
    products = {"gradient": 3, "prediction": 1}[question]
    return products * 2 * job.d**2 * _stages(job) / (gflops * 1e9)


def bounds(question: str, job: Job, peak: Peak) -> dict[str, float]:
    """Seconds, each named after what it rests on; the measured speed of products is that of `peak`."""
    return {
        "tanh, stated speed": tanh_bound(job, peak.threads),
        "products, measured speed": product_bound(question, job, peak.gflops),
        "products, stated speed": product_bound(question, job, STATED_GFLOPS[job.dtype] * peak.threads),
    }


def _stages(job: Job) -> int:
    return job.m * job.N * job.method.stages


if __name__ == "__main__":
    print(gemm_gflops(sys.argv[1]))
