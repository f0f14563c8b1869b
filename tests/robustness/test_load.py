"""Large problems: the cost is linear, and memory belongs to the data, the controls and little else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from problems import random_problem
from soak import Soak
from subprocesses import run_python

import ocdl
from ocdl import Network, Tableau

MANY_SAMPLES = """
import numpy as np, ocdl
from pathlib import Path

def kilobytes(field):
    return int(Path("/proc/self/status").read_text().partition(field + ":")[2].split()[0])

m = {m}
X = np.random.default_rng(0).standard_normal((m, 2))
y = np.zeros(m, np.int64)
y[::2] = 1
net = ocdl.Network(2, 20)
u = net.init(random_state=0)
net.value_and_grad(u, X[:1000], y[:1000])
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
before = kilobytes("VmRSS")
J, g = net.value_and_grad(u, X, y)
assert np.isfinite(J) and g.norm() > 0
print(kilobytes("VmHWM") - before)
"""


@pytest.mark.slow
def test_ten_million_samples_need_no_additional_memory(soak: Soak) -> None:
    m = soak.times(10_000_000)
    megabytes = int(run_python(MANY_SAMPLES.format(m=m))) / 1000
    soak.measured(f"d = 2, 20 layers: {megabytes:.0f} MB over the data")
    assert megabytes < 300


@pytest.mark.slow
@pytest.mark.alone
def test_two_thousand_features(soak: Soak) -> None:
    """Along its negative a gradient leads downhill, at the rate of its square."""
    d = soak.times(2000, least=100)
    net = Network(d, 3, activation="tanh")
    problem = random_problem(net, samples=1000)
    start = time.perf_counter()
    J, g = net.value_and_grad(*problem.data)
    soak.measured(f"m = 1,000, 3 layers: a gradient in {time.perf_counter() - start:.1f} s")
    length = 1e-4 / g.norm()
    rate = (J - net.value(problem.u - length * g, *problem.data[1:])) / (length * g.norm() ** 2)
    assert rate == pytest.approx(1, rel=1e-3)


@pytest.mark.slow
def test_ten_thousand_layers(soak: Soak) -> None:
    """<p, v> is the same at every layer, however many there are."""
    net = Network(2, soak.times(10_000, least=100), tableau="kutta4")
    problem = random_problem(net, samples=100)
    p = net.adjoint(*problem.data)
    v = net.tangent(problem.u, problem.X, dX=problem.dX)
    products = np.einsum("jmd,jmd->j", p, v)
    sizes = np.einsum("jmd,jmd->j", np.abs(p), np.abs(v))
    drift = float(np.max(np.abs(products - products[0]) / sizes))
    soak.measured(f"kutta4: <p, v> drifts by {drift:.1e}")
    assert drift < 1e-11
    _, g = net.value_and_grad(*problem.data, input_grad=True)
    np.testing.assert_array_equal(g.X, p[0])


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = ocdl.get_num_threads()
    ocdl.set_num_threads(1)
    yield
    ocdl.set_num_threads(before)


def seconds(net: Network, m: int) -> Callable[[], float]:
    problem = random_problem(net, m)

    def measure() -> float:
        start = time.thread_time()  # of this thread: what others do does not count
        net.value_and_grad(*problem.data)
        return time.thread_time() - start

    return measure


def exponent(sizes: list[int], measurements: list[Callable[[], float]]) -> float:
    """Return the slope of log(seconds) over log(size), of the fastest of many rounds."""
    fastest = [min(row) for row in zip(*([measure() for measure in measurements] for _ in range(15)), strict=True)]
    return float(np.polyfit(np.log(sizes), np.log(fastest), 1)[0])


def of_samples(scale: int) -> Any:
    sizes = [scale * k for k in (1, 3, 10, 30)]
    return sizes, [seconds(Network(2, 20), m) for m in sizes]


def of_layers(scale: int) -> Any:
    sizes = [20, 60, 200, 600]
    return sizes, [seconds(Network(2, N), scale) for N in sizes]


def of_stages(scale: int) -> Any:
    names = ["euler", "midpoint", "kutta3", "kutta4", "dormand_prince"]
    return [Tableau.named(name).stages for name in names], [
        seconds(Network(2, 20, tableau=name), 3 * scale) for name in names
    ]


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("of", [of_samples, of_layers, of_stages], ids=lambda of: of.__name__)
def test_the_cost_is_linear(of: Callable[[int], Any], soak: Soak) -> None:
    actual = exponent(*of(soak.times(30_000, least=10_000)))
    soak.measured(f"the time grows with the power {actual:.3f}")
    assert actual == pytest.approx(1, abs=0.1)
