"""Sizes that cannot fit are refused before anything is made: what they would take, and what dominates."""

from __future__ import annotations

import re
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from subprocesses import run_python

import ocdl
from ocdl import ODEClassifier, ODERegressor, _core  # here, so that importing them is not measured
from ocdl.base import memory

HUGE = 10**7
X, Y = np.zeros((50, 2)) + np.linspace(0, 1, 50)[:, None], [0, 1] * 25


def network(layers: int = HUGE, **arguments: Any) -> ocdl.Network:
    return ocdl.Network(2, layers, **arguments)


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a gigabyte, whatever this one has."""
    monkeypatch.setattr(_core, "available_memory", lambda: 1e9)


TOO_LARGE: dict[str, tuple[Callable[[], Any], str]] = {
    "classifier": (
        lambda: ODEClassifier(n_layers=HUGE).fit(X, Y),
        r"the controls of 10000000 layers of dimension \d would take .* GB; 1 GB are free",
    ),
    "regressor": (
        lambda: ODERegressor(n_layers=HUGE, optimiser="adam").fit(X, Y),
        r"the controls of 10000000 layers of dimension \d would take .* GB; 1 GB are free",
    ),
    "init": (
        lambda: network(10**9).init(0),
        r"the controls of 1000000000 layers of dimension 2 would take 168 GB; 1 GB are free",
    ),
    "controls": (lambda: ocdl.Network(10_000, 1000).controls(), "the controls of 1000 layers of dimension 10000"),
    "forward": (
        lambda: (lambda net: net.forward(net.init(0), np.zeros((10_000, 2))))(network(10_000)),
        r"the states of 10000 samples after each of 10000 layers would take 1\.6 GB; 1 GB are free",
    ),
    "tangent": (
        lambda: (lambda net: net.tangent(net.init(0), np.zeros((10_000, 2))))(network(10_000)),
        "the states of 10000 samples",
    ),
    "adjoint": (
        lambda: (lambda net: net.adjoint(net.init(0), np.zeros((10_000, 2)), [0] * 10_000))(network(10_000)),
        "the states of 10000 samples",
    ),
}


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize("name", TOO_LARGE)
def test_objects_too_large_for_memory_are_refused_before_allocation(name: str) -> None:
    make, message = TOO_LARGE[name]
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(MemoryError, match=message):
            make()
        assert tracemalloc.get_traced_memory()[1] < 2e8  # the smallest would take 800 MB
    finally:
        tracemalloc.stop()
    assert time.process_time() - start < 2


def test_units() -> None:
    assert [memory.format_bytes(size) for size in (1e5, 2.5e8, 9.994e8, 9.996e8, 3e12, 1e21)] == [
        "0.1 MB",
        "250 MB",
        "999 MB",
        "1 GB",
        "3 TB",
        "1e+03 EB",
    ]


def test_the_free_memory_is_that_of_the_system_and_of_a_limit() -> None:
    free = _core.available_memory()
    assert 2**20 < free < 2**60
    code = """
import pathlib, resource
from ocdl import ODEClassifier, ODERegressor, _core  # here, so that importing them is not measured
used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 10**9, resource.RLIM_INFINITY))
print(_core.available_memory())
"""
    assert 0.5e9 < float(run_python(code)) <= min(1e9, 2 * free)


LIMITED = """
import pathlib, resource
import numpy as np
import ocdl
net = ocdl.Network(2, {layers})
u, X = net.init(0), np.zeros((64, 2))
ocdl.train(ocdl.Network(2, 2), ocdl.Network(2, 2).init(0), X, [0, 1] * 32, max_iter=1)
used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {left}, resource.RLIM_INFINITY))
try:
    {call}
except MemoryError as error:
    print(error)
"""


@pytest.mark.parametrize("left", [10**6, 10**7, 10**8])
@pytest.mark.parametrize(
    "call",
    ["net.value_and_grad(u, X, [0, 1] * 32)", "ocdl.train(net, u, X, [0, 1] * 32, max_iter=2)", "net.forward(u, X)"],
)
def test_a_memory_limit_gives_an_error_that_names_a_size(call: str, left: int) -> None:
    output = run_python(LIMITED.format(layers=400_000, left=left, call=call), OMP_NUM_THREADS="1")
    assert re.search(r"\d (MB|GB|MiB|GiB)", output), output


FLAT = """
import numpy as np, ocdl
from pathlib import Path

def kilobytes(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))

ocdl.set_num_threads(1)
net = ocdl.Network(2, 10, n_outputs=2, field="mlp", width=20, control_intervals=1, tableau="kutta4")
u, rng, objective = net.init(0), np.random.default_rng(0), ocdl.Objective("squared_error")
for samples in (5_000, 100_000):
    X, times = rng.normal(size=(samples, 2)), np.sort(rng.uniform(0, 1, (samples, 5)), axis=1)
    y = ocdl.Observations(times, rng.normal(size=(samples, 5, 2)))
    net.value_and_grad(u, X, y, objective)  # y keeps what the core takes of it
    Path("/proc/self/clear_refs").write_text("5")
    before = kilobytes("VmRSS")
    net.value_and_grad(u, X, y, objective)
    print(kilobytes("VmHWM") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")
def test_a_gradient_from_observations_takes_no_memory_per_sample() -> None:
    few, many = map(int, run_python(FLAT).split())
    assert many - few < 1000  # kilobytes, where the samples take 13 MB
