"""Ctrl-C at any moment: every long computation ends within a tenth of a second.

Presses come by a timer that counts the processor time of the process, and how long the answer takes is counted in the
same time: other processes, which may take the processors away, do not count. With one thread that is the time on a
clock where nobody else is at work.
"""

from __future__ import annotations

import pytest
from soak import Soak
from subprocesses import run_python

LONGEST = 0.1  # seconds
PRESSES = """
import random, signal, sys, time, warnings
import numpy as np
import ocdl
warnings.simplefilter("ignore")
ocdl.set_num_threads(1)
rng = np.random.default_rng(0)
{prepare}
def compute():
    {compute}

def press(number, frame):
    raise KeyboardInterrupt
signal.signal(signal.SIGPROF, press)

def delay(wait):
    start = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, wait)
    try:
        while True:
            compute()
    except KeyboardInterrupt:
        return time.process_time() - start - wait

drawn = random.Random({seed})
print(max(delay(drawn.uniform(0.02, {longest_wait})) for _ in range({times})))
"""
SPIRAL = """
net = ocdl.Network(2, 100)
X, y = ocdl.datasets.make_spiral(200_000, random_state=0)
u = net.init(random_state=0)
"""
WIDE = """
net = ocdl.Network(96, 3, tableau="{tableau}")
X, y = rng.normal(size=(512, 96)), rng.integers(0, 2, 512)
u = net.init(random_state=0, scheme="scaled")
"""
DIGITS = """
net = ocdl.Network(256, 10, n_outputs=10)
X, y = rng.normal(size=(2000, 256)), rng.integers(0, 10, 2000)
u = net.init(random_state=0, scheme="scaled")
"""
REPRODUCTION = """
import tempfile
from ocdl.reproduce import reproduce
"""
COMPUTATIONS = {
    "training": (SPIRAL, "ocdl.train(net, u, X, y, max_iter=10**6)"),
    "training of a wide network": (DIGITS, "ocdl.train(net, u, X, y, max_iter=10**6, optimiser=ocdl.Adam())"),
    "training by Newton's method": (SPIRAL, "ocdl.train(net, u, X, y, max_iter=10**6, optimiser=ocdl.NewtonCG())"),
    "prediction": (SPIRAL, "net.predict(u, X)"),
    "evaluation": (SPIRAL, "net.value_and_grad(u, X, y)"),
    "pull-back": (SPIRAL, "net.pull_back(u, X, np.ones((len(X), 1)))"),
    "Hessian product": (SPIRAL, "net.hessian_product(u, X, y, ocdl.Objective(), u)"),
    "implicit, 192 unknowns": (WIDE.format(tableau="radau_iia2"), "net.value_and_grad(u, X, y)"),
    "implicit, 288 unknowns": (WIDE.format(tableau="gauss3"), "net.value_and_grad(u, X, y)"),
    "implicit, tangents": (WIDE.format(tableau="gauss2"), "net.tangent(u, X, du=u)"),
    "certificate": (SPIRAL, "net.certify(u, X, y, ocdl.Objective())"),
    "reproduction": (
        REPRODUCTION,
        "with tempfile.TemporaryDirectory() as folder: reproduce(['fig8'], folder, seeds=1, jobs=1)",
    ),
}


def slowest(name: str, times: int, seed: int) -> float:
    prepare, compute = COMPUTATIONS[name]
    script = PRESSES.format(prepare=prepare, compute=compute, times=times, seed=seed, longest_wait=0.2)
    return float(run_python(script, OMP_NUM_THREADS="1", timeout=60 + 10 * times))


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_an_interrupt_ends_a_computation(name: str) -> None:
    assert slowest(name, 3, seed=0) < LONGEST


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_three_hundred_interrupts(name: str, soak: Soak) -> None:
    longest = slowest(name, soak.times(300, least=2), seed=1)
    soak.measured(f"answered after at most {longest:.3f} s")
    assert longest < LONGEST
