"""A hundred forks of a process whose threads have worked, or work just now: every child computes the same bits."""

from __future__ import annotations

import os

import pytest
from subprocesses import run_python

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

PARENT = """
import hashlib, multiprocessing, os, signal, threading, warnings
import numpy as np, ocdl
warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: that is what is tested

rng = np.random.default_rng(0)
y = np.arange(300) % 2
problems = []
for features in (2, 100):  # a block per thread; a block that a team of threads shares
    net = ocdl.Network(features, 2)
    problems.append((net, net.init(random_state=0), rng.normal(size=(300, features))))
large = ocdl.Network(750, 1)  # its gradient takes memory from the pool of results, behind a lock
u_large, X_large = large.init(random_state=0), rng.normal(size=(1, 750))

def everything(_=None):
    signal.alarm(60)  # a child that hangs dies, and its parent fails
    bits = hashlib.sha256()
    for net, u, X in problems:
        bits.update(net.value_and_grad(u, X, y)[1].to_vector())
        bits.update(net.predict(u, X))
        bits.update(ocdl.train(net, u, X, y, max_iter=1).controls.to_vector())
    bits.update(large.value_and_grad(u_large, X_large, y[:1])[1].to_vector())
    return bits.hexdigest()

def child_succeeds(work):
    child = os.fork()
    if child == 0:
        os._exit(0 if work() else 1)
    return os.waitpid(child, 0)[1] == 0

ocdl.set_num_threads(2)
ocdl._core.insist_on_threads(True)
expected = everything()
"""

AFTER_USE = """
assert all(child_succeeds(lambda: everything() == expected) for _ in range(100))
assert child_succeeds(lambda: everything() == expected and child_succeeds(lambda: everything() == expected))
"""

DURING_USE = """
done = threading.Event()
def compute():
    while not done.is_set():
        assert everything() == expected
threads = [threading.Thread(target=compute) for _ in range(2)]
for thread in threads:
    thread.start()
try:
    assert all(child_succeeds(lambda: everything() == expected) for _ in range(100))
finally:
    done.set()
    for thread in threads:
        thread.join()
"""

POOLS = """
for _ in range(25):
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert pool.map(everything, range(4), chunksize=1) == [expected] * 4
"""

END = """
assert ocdl.get_num_threads() == 2 and everything() == expected  # the parent continues with its threads
print("fine")
"""


@pytest.mark.parametrize(
    "forks",
    [
        pytest.param(AFTER_USE, id="after use"),
        pytest.param(DURING_USE, id="during use", marks=pytest.mark.slow),
        pytest.param(POOLS, id="pools", marks=pytest.mark.slow),
    ],
)
def test_a_hundred_forked_children_work(forks: str) -> None:
    assert run_python(PARENT + forks + END) == "fine"
