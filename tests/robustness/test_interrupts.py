"""Ctrl-C at any moment: every long computation ends within a tenth of a second.

Another process presses it, when the computing one has had so much processor time, and how long the answer takes is
counted in the same time: other processes, which may take the processors away, do not count. With one thread that is the
time on an idle machine. Beside work that takes memory and caches away even processor time grows;
a slow answer is therefore measured again at the same moment: what is wrong there is slow five times.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from soak import Soak
from subprocesses import run_python

import ocdl
from ocdl.cli import info, predict
from ocdl.cli._interrupts import reraise_swallowed_interrupts

LONGEST = 0.1  # seconds
# Presses where the processor time of its parent has come to a number, and says where that was. It has no lock in common
# with its parent: what holds Python's own is pressed on, too.
PRESSER = """
import os, signal, sys, time
parent = os.getppid()
clock = (~parent << 3) | 2  # Linux's number for the processor time of a process
for line in sys.stdin:
    while time.clock_gettime(clock) < float(line):
        time.sleep(0.0005)
    os.kill(parent, signal.SIGINT)
    print(time.clock_gettime(clock), flush=True)
"""
PRESSES = """
import random, signal, subprocess, sys, time, warnings
import numpy as np
import ocdl
warnings.simplefilter("ignore")
signal.signal(signal.SIGINT, signal.default_int_handler)
ocdl.set_num_threads(1)
rng = np.random.default_rng(0)
{prepare}
def compute():
    {compute}

pipe = subprocess.PIPE
presser = subprocess.Popen([sys.executable, "-c", {presser!r}], stdin=pipe, stdout=pipe, text=True)

def delay(wait):
    try:
        print(time.process_time() + wait, file=presser.stdin, flush=True)
        while True:
            compute()
    except KeyboardInterrupt:
        ended = time.process_time()
        return ended - float(presser.stdout.readline())

def fastest_delay(wait):
    delays = [delay(wait)]
    while len(delays) < 5 and min(delays) >= {longest}:
        delays.append(delay(wait))
    return min(delays)

drawn = random.Random({seed})
print(max(fastest_delay(drawn.uniform(0.0, {longest_wait})) for _ in range({times})))
presser.stdin.close()
presser.wait()
presser.stdout.close()
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
IMAGES = """
net = ocdl.Network(784, 10, n_outputs=10)
X, y = rng.normal(size=(200, 784)), rng.integers(0, 10, 200)
u = net.init(random_state=0, scheme="scaled")
"""
TABLE = """
import contextlib, io, os, tempfile
from ocdl.cli import main
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
rows = rng.normal(size=(40_000, 5))
ocdl.ODEClassifier(n_layers=100, max_iter=1).fit(rows[:100], rows[:100, 0] > 0).save("model.ocdl")
np.savetxt("points.csv", rows, delimiter=",")
def command():
    with contextlib.redirect_stderr(io.StringIO()):
        if main(["predict", "model.ocdl", "points.csv", "--out", "predictions.csv"]) == 130:
            raise KeyboardInterrupt
"""
REPRODUCTION = """
import tempfile
from ocdl.reproduce import reproduce
"""
# Seconds of the moments that are pressed at: a whole call, or the beginning of one that is longer.
FIRST_ITERATIONS, SHORT_CALL, BEGINNING = 1.0, 0.08, 0.2
SHORT_CALLS = ("prediction", "evaluation", "pull-back", "ocdl predict")
COMPUTATIONS = {
    "training": (SPIRAL, "ocdl.train(net, u, X, y, max_iter=10**6)"),
    "training of a wide network": (DIGITS, "ocdl.train(net, u, X, y, max_iter=10**6, optimiser=ocdl.Adam())"),
    **{
        f"training of six million controls by {name}": (
            IMAGES,
            f"ocdl.train(net, u, X, y, max_iter=10**6, optimiser=ocdl.{name}())",
        )
        for name in ("Adam", "LBFGS", "Backtracking")
    },
    "training by Newton's method": (SPIRAL, "ocdl.train(net, u, X, y, max_iter=10**6, optimiser=ocdl.NewtonCG())"),
    "prediction": (SPIRAL, "net.predict(u, X)"),
    "evaluation": (SPIRAL, "net.value_and_grad(u, X, y)"),
    "vjp": (SPIRAL, "net.vjp(u, X, output_cotangents=np.ones((len(X), 1)))"),
    "Hessian product": (SPIRAL, "net.hessian_product(u, X, y, ocdl.Objective(), du=u)"),
    "implicit, 192 unknowns": (WIDE.format(tableau="radau_iia2"), "net.value_and_grad(u, X, y)"),
    "implicit, 288 unknowns": (WIDE.format(tableau="gauss3"), "net.value_and_grad(u, X, y)"),
    "implicit, tangents": (WIDE.format(tableau="gauss2"), "net.tangent(u, X, du=u)"),
    "certificate": (SPIRAL, "net.certify(u, X, y, ocdl.Objective())"),
    "ocdl predict": (TABLE, "command()"),
    "reproduction": (
        REPRODUCTION,
        "with tempfile.TemporaryDirectory() as folder: reproduce(['fig8'], folder, seeds=1, jobs=1)",
    ),
}


def slowest(name: str, times: int, seed: int) -> float:
    prepare, compute = COMPUTATIONS[name]
    wait = FIRST_ITERATIONS if prepare == IMAGES else SHORT_CALL if name in SHORT_CALLS else BEGINNING
    script = PRESSES.format(
        prepare=prepare, compute=compute, times=times, seed=seed, longest_wait=wait, longest=LONGEST, presser=PRESSER
    )
    return float(run_python(script, OMP_NUM_THREADS="1", timeout=60 + 10 * times))


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_an_interrupt_ends_a_computation(name: str) -> None:
    assert slowest(name, 3, seed=0) < LONGEST


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_three_hundred_interrupts(name: str, soak: Soak) -> None:
    """The methods share them on six million controls, whose first iterations take long."""
    share = 3 if COMPUTATIONS[name][0] == IMAGES else 1
    longest = slowest(name, soak.times(300 // share, least=2), seed=1)
    soak.measured(f"answered after at most {longest:.3f} s")
    assert longest < LONGEST


# ---- swallowed interrupts ----


def swallowed() -> str:
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    return "done"


def made_into_an_error_of_its_own() -> str:
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt as interrupt:
        raise ValueError("it cannot be read") from interrupt
    return "done"


def taken_away_by_int() -> str:
    """The signal is there when int is called: map calls its iterators first, and none of them handles signals."""
    with suppress(ValueError):
        next(map(int, ["NA"], map(ctypes.CDLL(None)["raise"], [signal.SIGINT])))
    return "done"


def raised() -> str:
    signal.raise_signal(signal.SIGINT)
    return "done"


LOSSES = [swallowed, made_into_an_error_of_its_own, taken_away_by_int, raised]


@pytest.fixture
def handled_by() -> Iterator[Callable[[Any], None]]:
    """Set a handler of SIGINT; the previous one is restored after the test."""
    before = signal.getsignal(signal.SIGINT)
    yield lambda handler: signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("function", LOSSES)
def test_a_swallowed_interrupt_is_raised_at_the_end(function: Callable[[], str], depth: int) -> None:
    before, wrapped = signal.getsignal(signal.SIGINT), function
    for _ in range(depth):
        wrapped = reraise_swallowed_interrupts(wrapped)
    with pytest.raises(KeyboardInterrupt):
        wrapped()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_swallowed_between_two_wrappers_is_raised_by_the_outer_one() -> None:
    after_the_inner_call = []

    @reraise_swallowed_interrupts
    def outer() -> None:
        with suppress(KeyboardInterrupt):
            reraise_swallowed_interrupts(swallowed)()
        after_the_inner_call.append(True)

    with pytest.raises(KeyboardInterrupt):
        outer()
    assert after_the_inner_call


def test_numpy_clears_an_interrupt_while_it_compares_dtypes() -> None:
    class Pressed:
        def __repr__(self) -> str:
            return raised()

    with pytest.raises(KeyboardInterrupt):
        reraise_swallowed_interrupts(lambda: np.dtype(object) == Pressed())()


def test_a_command_reports_what_it_wrote_after_a_swallowed_interrupt(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, points, out = (str(tmp_path / name) for name in ("model.ocdl", "points.csv", "out.csv"))
    X = np.random.default_rng(0).normal(size=(20, 2))
    ocdl.ODEClassifier(tol=10).fit(X, X[:, 0] > 0).save(model)
    np.savetxt(points, X, delimiter=",")
    write_text = predict.write_text
    monkeypatch.setattr(predict, "write_text", lambda *args: (swallowed(), write_text(*args)))
    assert run("predict", model, points, "--out", out) == (130, "", f"ocdl: interrupted; {out!r} was written\n")
    monkeypatch.setattr(info, "json_text", lambda facts: swallowed())
    assert run("info", "--json") == (130, "done\n", "ocdl: interrupted\n")


def test_a_reproduction_ends_after_the_figure_that_swallowed_an_interrupt(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ocdl.reproduce

    drawn = []
    monkeypatch.setattr(ocdl.reproduce, "draw_figure", swallowed)
    monkeypatch.setattr(ocdl.reproduce, "reproduce", lambda *_, draw, **__: drawn.extend(draw() for _ in range(2)))
    code, _, err = run("reproduce", "fig1", "--out", str(tmp_path / "paper"))
    assert (code, err, drawn) == (130, "ocdl: interrupted\n", [])


def test_results_and_exceptions_pass_through_the_wrapper() -> None:
    before = signal.getsignal(signal.SIGINT)
    assert reraise_swallowed_interrupts(divmod)(7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        reraise_swallowed_interrupts(divmod)(7, 0)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_that_raises_nothing_is_obeyed(handled_by: Callable[[Any], None]) -> None:
    pressed = []
    handled_by(lambda *_: pressed.append(True))
    assert reraise_swallowed_interrupts(raised)() == "done"
    assert len(pressed) == 1


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_handlers_that_are_not_python_functions_are_left_alone(handler: Any, handled_by: Callable[[Any], None]) -> None:
    handled_by(handler)
    assert reraise_swallowed_interrupts(signal.getsignal)(signal.SIGINT) is handler


def test_other_threads_leave_the_handler_alone() -> None:
    before, actual = signal.getsignal(signal.SIGINT), []
    wrapped = reraise_swallowed_interrupts(lambda: actual.append(signal.getsignal(signal.SIGINT)))
    thread = threading.Thread(target=wrapped)
    thread.start()
    thread.join()
    assert actual == [before]


@pytest.mark.parametrize("moment", ["set", "about to be put back", "put back"])
def test_an_interrupt_while_the_handler_changes(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, change = signal.getsignal(signal.SIGINT), signal.signal

    def pressed(number: int, handler: Any) -> Any:
        back = handler is before
        if back and moment == "about to be put back":
            signal.raise_signal(signal.SIGINT)
        changed = change(number, handler)
        if moment == ("put back" if back else "set"):
            signal.raise_signal(signal.SIGINT)
        return changed

    monkeypatch.setattr(signal, "signal", pressed)
    with pytest.raises(KeyboardInterrupt):
        reraise_swallowed_interrupts(lambda: "done")()
    assert signal.getsignal(signal.SIGINT) is before
