"""Trainings in signal handlers and in daemon threads."""

from __future__ import annotations

from subprocesses import run_python


def test_a_signal_handler_may_compute() -> None:
    """What it computes in the middle of an evaluation disturbs neither."""
    code = """
import signal
import numpy as np
import ocdl
net = ocdl.Network(2, 50)
X, y = ocdl.datasets.make_spiral(200_000, random_state=0)
small = X[:50], y[:50]
u = net.init(random_state=0)
expected, expected_small = net.value_and_grad(u, X, y), net.value(u, *small)
calls = []
def handler(number, frame):
    calls.append(net.value(u, *small) == expected_small and net.value_and_grad(u, *small)[0] == expected_small)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
for _ in range(10):
    J, g = net.value_and_grad(u, X, y)
    assert J == expected[0] and np.array_equal(g.to_vector(), expected[1].to_vector())
signal.setitimer(signal.ITIMER_REAL, 0)
assert calls and all(calls)
print("fine")
"""
    assert run_python(code) == "fine"


def test_a_daemon_thread_in_training_does_not_end_the_process_badly() -> None:
    code = """
import threading, time
import ocdl
net = ocdl.Network.preset("odenet", 2, 20)
X, y = ocdl.datasets.make_donut2d(2000, random_state=1)
def work():
    try:
        ocdl.train(net, net.init(0), X, y, max_iter=10**9, tol=0, eval_every=10**6)
    except RuntimeError:
        pass
threading.Thread(target=work, daemon=True).start()
time.sleep(0.15)
print("fine")
"""
    assert run_python(code) == "fine"
