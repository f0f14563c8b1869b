"""Checkpoints: a resumed training is the uninterrupted one, bit for bit, whatever happened to the process."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ocdl
from ocdl import LBFGS, Adam, Armijo, Backtracking, Chain, GradientDescent, Network, Status, datasets

OPTIMISERS = {
    "gradient descent": GradientDescent(0.1),
    "armijo": Armijo(),
    "adam": Adam(),
    "adam on batches": Adam(batch_size=32),
    "lbfgs": LBFGS(memory=4),
    "chain": Chain((Adam(batch_size=50), 40), (LBFGS(), 80), (Backtracking(), None)),
}
ITERATIONS = 200


def problem(architecture: str = "odenet+simplex", **overrides: Any) -> tuple[Any, ...]:
    net = Network.preset(architecture, 2, 5, **overrides)
    X, y = datasets.make_donut2d(100, random_state=1)
    return net, net.init(random_state=2), X, y


def train(optimiser: Any, max_iter: int, **arguments: Any) -> ocdl.Result:
    net, u, X, y = problem()
    return ocdl.train(net, u, X, y, optimiser=optimiser, max_iter=max_iter, eval_every=7, random_state=3, **arguments)


def assert_same(resumed: ocdl.Result, whole: ocdl.Result) -> None:
    assert np.array_equal(resumed.controls.to_vector(), whole.controls.to_vector())
    assert (resumed.n_iter, resumed.n_evals, resumed.status) == (whole.n_iter, whole.n_evals, whole.status)
    for name in ("loss", "gradient_norm", "lipschitz", "trials", "evaluated", "accuracy", "val_loss", "time_steps"):
        ours, theirs = getattr(resumed.history, name), getattr(whole.history, name)
        assert np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"), name


def test_backtracking_resumes_at_every_iteration(tmp_path: Path) -> None:
    path = tmp_path / "state.ocdl"
    whole = train(Backtracking(), ITERATIONS)
    for k in range(1, ITERATIONS + 1):
        train(Backtracking(), k, checkpoint=path)
        ocdl.set_num_threads(1 + k % 3)
        assert_same(train(Backtracking(), ITERATIONS, resume=path), whole)
    ocdl.set_num_threads(2)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_the_others_resume_at_random_iterations(tmp_path: Path, optimiser: str) -> None:
    path, method = tmp_path / "state.ocdl", OPTIMISERS[optimiser]
    whole = train(method, ITERATIONS)
    last = max(whole.n_iter, 1)
    for k in sorted(random.Random(4).sample(range(1, last + 1), min(20, last))):
        train(method, k, checkpoint=path)
        ocdl.set_num_threads(1 + k % 3)
        assert_same(train(method, ITERATIONS, resume=path), whole)
    ocdl.set_num_threads(2)


def test_single_precision_resumes(tmp_path: Path) -> None:
    net, u, X, y = problem(dtype="float32")
    whole = ocdl.train(net, u, X, y, optimiser=LBFGS(), max_iter=40)
    ocdl.train(net, u, X, y, optimiser=LBFGS(), max_iter=17, checkpoint=tmp_path / "c")
    assert_same(ocdl.train(net, u, X, y, optimiser=LBFGS(), max_iter=40, resume=tmp_path / "c"), whole)


def test_a_finished_training_resumes_to_the_same_end(tmp_path: Path) -> None:
    net, u, X, y = problem()
    arguments = {"optimiser": LBFGS(), "tol": 1e-3, "max_iter": 2000}
    whole = ocdl.train(net, u, X, y, checkpoint=tmp_path / "c", **arguments)
    assert whole.status is Status.GRADIENT
    assert_same(ocdl.train(net, u, X, y, resume=tmp_path / "c", **arguments), whole)


def test_checkpoint_and_resume_may_be_one_file(tmp_path: Path) -> None:
    path = tmp_path / "state.ocdl"
    train(Backtracking(), 30, checkpoint=path)
    both = train(Backtracking(), 60, checkpoint=path, resume=path)
    assert_same(both, train(Backtracking(), 60))
    assert_same(train(Backtracking(), 60, resume=path), both)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"optimiser": Backtracking(L0=0.2)}, "optimiser"),
        ({"objective": ocdl.Objective("cross_entropy")}, "objective"),
        ({"freeze": ("W",)}, "freeze"),
        ({"sample_weight": np.ones(100)}, "other data"),
    ],
    ids=str,
)
def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    net, u, X, y = problem()
    ocdl.train(net, u, X, y, max_iter=3, checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match=named):
        ocdl.train(net, u, X, y, max_iter=6, resume=tmp_path / "c", **change)
    other = Network.preset("odenet", 2, 5)
    with pytest.raises(ValueError, match="network"):
        ocdl.train(other, other.init(0), X, y, max_iter=6, resume=tmp_path / "c")
    with pytest.raises(ValueError, match="other data"):
        ocdl.train(net, u, X + 1, y, max_iter=6, resume=tmp_path / "c")


def test_models_and_checkpoints_are_told_apart(tmp_path: Path) -> None:
    net, u, X, y = problem()
    ocdl.save(tmp_path / "model", net, u)
    with pytest.raises(ocdl.ModelFileError):
        ocdl.train(net, u, X, y, resume=tmp_path / "model")
    ocdl.train(net, u, X, y, max_iter=1, checkpoint=tmp_path / "state")
    with pytest.raises(ocdl.ModelFileError):
        ocdl.load(tmp_path / "state")
    with pytest.raises(FileNotFoundError):
        ocdl.train(net, u, X, y, resume=tmp_path / "nowhere")


def test_an_unwritable_checkpoint_is_noticed_at_once(tmp_path: Path) -> None:
    net, u, X, y = problem()
    with pytest.raises(OSError, match="missing"):
        ocdl.train(net, u, X, y, max_iter=10**9, checkpoint=tmp_path / "missing" / "state")


def test_an_error_in_the_callback_loses_nothing(tmp_path: Path) -> None:
    net, u, X, y = problem()

    def fail(state: ocdl.TrainingState) -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        ocdl.train(net, u, X, y, max_iter=10**8, tol=0, callback=fail, checkpoint=tmp_path / "c")
    resumed = ocdl.train(net, u, X, y, max_iter=0, resume=tmp_path / "c")
    assert resumed.n_iter > 0


SCRIPT = textwrap.dedent("""
    import sys
    import numpy as np
    import ocdl
    net = ocdl.Network.preset("odenet+simplex", 2, 5)
    X, y = ocdl.datasets.make_donut2d(100, random_state=1)
    print("ready", flush=True)
    ocdl.train(net, net.init(random_state=2), X, y, max_iter=10**9, tol=0, eval_every=10**6,
               checkpoint=sys.argv[1], checkpoint_every=1, **eval(sys.argv[2]))
""")


def kill_while_checkpointing(path: Path, times: int, seed: int) -> None:
    """A child checkpoints every iteration and is killed; the file is whole, and what it holds is a true iterate."""
    rng = random.Random(seed)
    net, u, X, y = problem()
    latest = 0
    for _ in range(times):
        resume = f"{{'resume': {str(path)!r}}}" if path.exists() else "{}"
        child = subprocess.Popen([sys.executable, "-c", SCRIPT, str(path), resume], stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        time.sleep(rng.uniform(0, 0.05))
        seen = ocdl.train(net, u, X, y, max_iter=0, resume=path).n_iter if path.exists() else -1
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        if path.exists():
            reached = ocdl.train(net, u, X, y, max_iter=0, resume=path).n_iter
            assert reached >= max(latest, seen)
            latest = reached
    assert latest > 0
    whole = ocdl.train(net, u, X, y, max_iter=latest, tol=0, eval_every=10**6)
    resumed = ocdl.train(net, u, X, y, max_iter=latest, tol=0, eval_every=10**6, resume=path)
    assert_same(resumed, whole)


def test_ten_kills_lose_nothing(tmp_path: Path) -> None:
    kill_while_checkpointing(tmp_path / "state.ocdl", 10, seed=0)


@pytest.mark.slow
def test_three_hundred_kills_lose_nothing(tmp_path: Path) -> None:
    kill_while_checkpointing(tmp_path / "state.ocdl", 300, seed=1)


LONG_EVALUATION = textwrap.dedent("""
    import sys, time
    import ocdl
    net = ocdl.Network(2, 100)
    X, y = ocdl.datasets.make_spiral(1_000_000, random_state=0)
    u = net.init(random_state=0)
    print("ready", flush=True)
    try:
        ocdl.train(net, u, X, y, checkpoint=sys.argv[1], eval_every=10**6, max_iter=10**6)
    except KeyboardInterrupt:
        print(time.time(), flush=True)
""")


def interrupt_delay(path: Path, wait: float) -> float:
    """Seconds from SIGINT to KeyboardInterrupt in a training whose evaluations are long."""
    child = subprocess.Popen([sys.executable, "-c", LONG_EVALUATION, str(path)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    while not path.exists() and child.poll() is None:  # the first evaluation, and the first checkpoint
        time.sleep(0.05)
    time.sleep(wait)
    sent = time.time()
    child.send_signal(signal.SIGINT)
    answer = child.stdout.read().split()
    assert child.wait() == 0
    child.stdout.close()
    return float(answer[0]) - sent


def test_an_interrupt_stops_long_evaluations_and_stores_the_state(tmp_path: Path) -> None:
    """The fastest of five: other processes may take the processors away for a while."""
    delays = []
    for attempt in range(5):
        delays.append(interrupt_delay(tmp_path / f"state{attempt}.ocdl", 0.3 + 0.1 * attempt))
        if delays[-1] < 0.1:
            break
    assert min(delays) < 0.1
    net = Network(2, 100)
    X, y = datasets.make_spiral(1_000_000, random_state=0)
    resumed = ocdl.train(net, net.init(random_state=0), X, y, max_iter=0, resume=tmp_path / "state0.ocdl", eval_every=1)
    assert resumed.n_iter >= 0


def test_interrupt_stops_a_plain_evaluation() -> None:
    script = LONG_EVALUATION.replace("ocdl.train(", "net.value_and_grad(u, X, y); ocdl.train(").replace(
        'print("ready", flush=True)', 'X, y = np.tile(X, (20, 1)), np.tile(y, 20); print("ready", flush=True)'
    )
    child = subprocess.Popen([sys.executable, "-c", "import numpy as np\n" + script, "x"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    assert child.stdout.read()
    assert child.wait() == 0
    child.stdout.close()
