"""The same bits, whatever the threads, the batch, the process and the caller."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import FIELDS, Problem, field_options, problems, random_problem
from subprocesses import run_python
from threadpoolctl import threadpool_info

import ocdl
from ocdl import Network, Objective, Tableau, _core

pytestmark = pytest.mark.usefixtures("all_threads")

SUM = Objective("cross_entropy", reduction="sum")  # so that a row's costate does not depend on the size of its batch
DTYPES = ("float64", "float32")

# (features, layers, samples): one block and many, padded and not, narrow states (a block per thread) and wide ones,
# which a team of threads shares (from 96 components on), with one block and several.
SIZES = [(1, 1, 1), (2, 5, 13), (2, 20, 5000), (3, 4, 4096), (17, 3, 2000), (96, 2, 700), (130, 2, 33)]


def problem_of(size: tuple[int, int, int], dtype: str) -> Problem:
    features, layers, samples = size
    net = Network(features, layers, n_outputs=3, tableau="kutta3", time_steps="free", dtype=dtype)
    return random_problem(net, samples)


def bits(problem: Problem) -> dict[str, bytes]:
    """Everything that the network computes."""
    net, u, X, weights = problem.net, problem.u, problem.X, problem.sample_weight
    J, g = net.value_and_grad(*problem.data, SUM, sample_weight=weights, input_grad=True)
    t = net.forward(u, X)
    results = {
        "value": net.value(*problem.data, SUM, sample_weight=weights),
        "value of value_and_grad": J,
        "gradient": g.to_vector(),
        "input gradient": g.X,
        "states": t.states,
        "outputs": t.outputs,
        "predict": net.predict(u, X),
        "adjoint": net.adjoint(*problem.data, SUM, sample_weight=weights),
        "tangent": net.tangent(u, X, problem.du, problem.dX),
    }
    return {name: np.asarray(result).tobytes() for name, result in results.items()}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_the_number_of_threads_changes_no_bit(size: tuple[int, int, int], dtype: str) -> None:
    problem = problem_of(size, dtype)
    ocdl.set_num_threads(1)
    serial = bits(problem)
    for threads in (2, 3, 7):
        ocdl.set_num_threads(threads)
        assert ocdl.get_num_threads() == threads
        parallel = bits(problem)
        assert [name for name in serial if serial[name] != parallel[name]] == []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("size", [(2, 6, 999), (4, 3, 300), (96, 2, 21)])
def test_neither_threads_nor_the_batch_change_a_bit_of_an_implicit_method(
    size: tuple[int, int, int], field: str, dtype: str
) -> None:
    """Lanes iterate on their own, each as often as it takes; the controls are such that this differs."""
    features, layers, samples = size
    net = Network(features, layers, tableau="trapezoidal", **field_options(field), time_steps="free", dtype=dtype)
    problem = random_problem(net, samples)
    problem.X[::3] *= 1e-3
    ocdl.set_num_threads(1)
    serial = bits(problem)
    ocdl.set_num_threads(3)
    parallel = bits(problem)
    assert [name for name in serial if serial[name] != parallel[name]] == []
    order = np.random.default_rng(0).permutation(samples)
    for chosen in (order[:1], order[:13], order[::-1][: samples // 2]):
        assert_rows_are_equal(problem, chosen)


@pytest.mark.parametrize("insisting", [True, False], ids=["all threads", "as many as pay"])
@pytest.mark.parametrize("size", [(2, 20, 2000), (96, 2, 300)])
def test_repetitions_change_no_bit(size: tuple[int, int, int], insisting: bool) -> None:
    """Where threads are taken as they pay, repetitions try both ways."""
    problem = problem_of(size, "float64")
    ocdl.set_num_threads(3)
    _core.insist_on_threads(insisting)
    first = bits(problem)
    assert all(bits(problem) == first for _ in range(8))


def rows(problem: Problem, chosen: np.ndarray) -> dict[str, np.ndarray]:
    """What belongs to single rows, for a choice of rows; samples first."""
    net, u, X, y = problem.net, problem.u, problem.X[chosen], problem.y[chosen]
    t = net.forward(u, X)
    _, g = net.value_and_grad(u, X, y, SUM, input_grad=True)
    assert g.X is not None
    return {
        "states": t.states.swapaxes(0, 1),
        "outputs": t.outputs,
        "predict": net.predict(u, X),
        "adjoint": net.adjoint(u, X, y, SUM).swapaxes(0, 1),
        "tangent": net.tangent(u, X, problem.du, problem.dX[chosen]).swapaxes(0, 1),
        "input gradient": g.X,
    }


def assert_rows_are_equal(problem: Problem, chosen: np.ndarray) -> None:
    whole, part = rows(problem, np.arange(len(problem.X))), rows(problem, chosen)
    for name in whole:
        np.testing.assert_array_equal(part[name], whole[name][chosen], err_msg=name)


@settings(max_examples=60)
@given(problem=problems(max_layers=6, max_samples=60), data=st.data())
def test_a_row_does_not_depend_on_its_batch(problem: Problem, data: st.DataObject) -> None:
    """Any subset, in any order, with repetitions."""
    chosen = data.draw(st.lists(st.integers(0, len(problem.X) - 1), min_size=1, max_size=80))
    assert_rows_are_equal(problem, np.array(chosen))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [size for size in SIZES if size[2] > 1])
def test_a_row_of_a_large_problem_does_not_depend_on_its_batch(size: tuple[int, int, int], dtype: str) -> None:
    problem = problem_of(size, dtype)
    order = np.random.default_rng(0).permutation(len(problem.X))
    for chosen in (order[:1], order[:9], order[: len(order) // 2 + 1], order, order[::-1][:-1]):
        assert_rows_are_equal(problem, chosen)


# ---- the rest of the process ----


def test_eight_python_threads_at_once_get_the_serial_bits() -> None:
    cases = [problem_of(size, dtype) for size in ((2, 5, 13), (2, 20, 3000), (96, 2, 300)) for dtype in DTYPES]
    ocdl.set_num_threads(1)
    serial = [bits(problem) for problem in cases]
    ocdl.set_num_threads(2)
    calls = [number for _ in range(4) for number in range(len(cases))]
    with ThreadPoolExecutor(8) as pool:
        for number, result in zip(calls, pool.map(lambda number: bits(cases[number]), calls), strict=True):
            assert result == serial[number]


# Many stages: much to compute for every state that forward, adjoint and tangent return.
MANY_STAGES = Tableau(np.tril(np.full((32, 32), 1 / 32), -1), np.full(32, 1 / 32))
LONG = random_problem(Network(2, 100, tableau=MANY_STAGES), samples=1000)


@pytest.mark.parametrize(
    "call",
    [
        lambda net, u, X, y: net.value(u, X, y),
        lambda net, u, X, y: net.value_and_grad(u, X, y),
        lambda net, u, X, y: net.predict(u, X),
        lambda net, u, X, y: net.forward(u, X),
        lambda net, u, X, y: net.adjoint(u, X, y),
        lambda net, u, X, y: net.tangent(u, X),
    ],
    ids=["value", "value_and_grad", "predict", "forward", "adjoint", "tangent"],
)
def test_the_gil_is_released(call: Callable[..., object]) -> None:
    """Another Python thread ticks in the middle half of a long call, as it could not if the call held the GIL."""
    ocdl.set_num_threads(1)
    X, y = LONG.X, LONG.y
    ticks: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.wait(0.001):
            ticks.append(time.perf_counter())

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        start = end = 0.0
        while end - start < 0.3:  # long enough to tell, on any machine
            X, y = np.tile(X, (2, 1)), np.tile(y, 2)
            start = time.perf_counter()
            call(LONG.net, LONG.u, X, y)
            end = time.perf_counter()
    finally:
        stop.set()
        ticker.join()
    quarter = (end - start) / 4
    assert any(start + quarter < moment < end - quarter for moment in ticks)


FORKING = """
import multiprocessing, os, signal, warnings
import numpy as np, ocdl
warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: that is what is tested
X = np.random.default_rng(0).normal(size=(3000, {features}))
y = np.arange(3000) % 2
net = ocdl.Network({features}, 10)
u = net.init(random_state=0)

def evaluate(_=None):
    signal.alarm(30)  # a child that hangs dies
    J, g = net.value_and_grad(u, X, y)
    return J, g.to_vector().tobytes(), net.forward(u, X).outputs.tobytes(), ocdl.get_num_threads()

ocdl.set_num_threads(2)
ocdl._core.insist_on_threads(True)
expected = evaluate()
assert expected[-1] == 2
with multiprocessing.get_context("fork").Pool(2) as pool:
    for result in pool.map(evaluate, range(4)):
        assert result[:-1] == expected[:-1]
        assert result[-1] == 1
child = os.fork()
if child == 0:
    ocdl.set_num_threads(2)  # no effect: OpenMP's threads did not survive the fork
    os._exit(0 if evaluate()[:-1] == expected[:-1] else 1)
assert os.waitpid(child, 0)[1] == 0
assert evaluate() == expected  # the parent continues with its threads
print("fine")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("features", [2, 100])
def test_a_forked_child_works(features: int) -> None:
    assert run_python(FORKING.format(features=features)) == "fine"


def test_threads_of_other_libraries_are_not_changed() -> None:
    def others() -> dict[str, int]:
        return {library["filepath"]: library["num_threads"] for library in threadpool_info()}

    before = others()
    assert before, "NumPy's BLAS and ocdl's OpenMP are there to be seen"
    for threads in (1, 3):
        ocdl.set_num_threads(threads)
        bits(problem_of((2, 20, 3000), "float64"))
        assert others() == before


def test_the_environment_sets_the_default_number_of_threads() -> None:
    code = "import ocdl; print(ocdl.get_num_threads())"
    assert run_python(code, OMP_NUM_THREADS="3") == "3"
    assert run_python(code, OMP_NUM_THREADS="1") == "1"


def test_the_environments_limit_of_threads_is_harmless() -> None:
    """OpenMP may give fewer threads than requested."""
    code = (
        "import numpy as np, ocdl; ocdl.set_num_threads(7); ocdl._core.insist_on_threads(True);"
        "net = ocdl.Network(100, 2); u = net.init(random_state=0); X = np.full((900, 100), 0.1);"
        "print(net.value(u, X, np.zeros(900, int)).hex())"
    )
    assert run_python(code, OMP_THREAD_LIMIT="2") == run_python(code)
