"""Checkpoints: a resumed training is the uninterrupted one, bit for bit, whatever happened to the process."""

from __future__ import annotations

import _thread
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoints import resume_copy
from soak import Soak
from subprocesses import Forks, run_python

import ocdl
from ocdl import (
    LBFGS,
    Adam,
    Armijo,
    Backtracking,
    Chain,
    GradientDescent,
    Network,
    NewtonCG,
    Status,
    _cpu,
    _load_core,
    datasets,
)
from ocdl.storage.container import read_container, write_container

OPTIMISERS = {
    "backtracking": Backtracking(),
    "gradient descent": GradientDescent(0.1),
    "armijo": Armijo(),
    "adam": Adam(),
    "adam on batches": Adam(batch_size=32),
    "lbfgs": LBFGS(memory=4),
    "newton": NewtonCG(max_products=5),
    "gauss-newton": NewtonCG(curvature="gauss_newton", max_products=5),
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


def resume_at(iteration: int, path: Path, *p: Any, max_iter: int, **arguments: Any) -> ocdl.Result:
    """Return a training on a problem (net, u, X, y) that is stored after so many iterations, and then resumed."""
    ocdl.train(*p, max_iter=iteration, checkpoint=path, **arguments)
    return ocdl.train(*p, max_iter=max_iter, checkpoint=ocdl.Checkpoint(path, resume=True), **arguments)


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
        assert_same(train(Backtracking(), ITERATIONS, checkpoint=ocdl.Checkpoint(path, resume=True)), whole)


@pytest.mark.usefixtures("all_threads")
@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_all_resume_at_random_iterations_with_other_threads(tmp_path: Path, optimiser: str) -> None:
    """A small problem: threads that share little work wait for each other, and longer on a busy machine."""
    path, method = tmp_path / "state.ocdl", OPTIMISERS[optimiser]
    whole = train(method, ITERATIONS)
    last = max(whole.n_iter, 1)
    for k in sorted(random.Random(4).sample(range(1, last + 1), min(6, last))):
        train(method, k, checkpoint=path)
        ocdl.set_num_threads(1 + k % 3)
        assert_same(train(method, ITERATIONS, checkpoint=ocdl.Checkpoint(path, resume=True)), whole)
    ocdl.set_num_threads(2)


RESUMED = """
import sys, warnings, ocdl
net = ocdl.Network(2, 3)
X, y = ocdl.datasets.make_donut2d(50, random_state=1)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    ocdl.train(net, net.init(0), X, y, max_iter=9, checkpoint=ocdl.Checkpoint({path!r}, resume=True))
print(*[(w.category.__name__, w.filename, str(w.message)) for w in caught])
"""


def test_another_core_warns_and_continues(tmp_path: Path) -> None:
    path, net = tmp_path / "state.ocdl", Network(2, 3)
    X, y = datasets.make_donut2d(50, random_state=1)
    ocdl.train(net, net.init(0), X, y, max_iter=4, checkpoint=path)
    core = ocdl.build_info()["variant"]
    code = RESUMED.format(path=str(path))
    assert run_python(code, OCDL_CORE=core) == ""
    others = [name for name in _load_core.built_variants() if name != core and _cpu.supports(name)]
    if not others:
        pytest.skip("one core is built")
    message = run_python(code, OCDL_CORE=others[0])
    assert message.startswith("('RuntimeWarning', '<string>'")
    assert f"with the core '{core}'" in message
    assert f"with the core '{others[0]}'" in message


def test_a_checkpoint_without_its_core_is_malformed(tmp_path: Path) -> None:
    path = tmp_path / "state.ocdl"
    train(Backtracking(), 5, checkpoint=path)
    description, arrays, _ = read_container(path, "checkpoint")
    write_container(path, "checkpoint", description | {"core": 7}, arrays)
    with pytest.raises(ocdl.ModelFileError, match="is malformed: core must be a string, got int"):
        train(Backtracking(), 9, checkpoint=ocdl.Checkpoint(path, resume=True))
    assert description.pop("core") == ocdl.build_info()["variant"]
    write_container(path, "checkpoint", description, arrays)
    with pytest.raises(ocdl.ModelFileError, match="is malformed: 'core'"):
        train(Backtracking(), 9, checkpoint=ocdl.Checkpoint(path, resume=True))


@pytest.mark.parametrize("patience", [None, 30])
def test_listed_evaluations_resume(tmp_path: Path, patience: int | None) -> None:
    net, u, X, y = problem()
    often: dict[str, Any] = {
        "eval_every": [0, 1, 2, 3, 5, 8, 13, 21, 34],
        "validation": ocdl.Validation(X, y, patience=patience),
    }
    whole = ocdl.train(net, u, X, y, optimiser=LBFGS(), max_iter=40, tol=0, **often)
    for k in (1, 4, 8, 20):
        again = resume_at(k, tmp_path / "c", net, u, X, y, optimiser=LBFGS(), max_iter=40, tol=0, **often)
        assert_same(again, whole)


@pytest.mark.parametrize("architecture", ["odenet", "odenet+simplex"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_writing_checkpoints_changes_nothing(tmp_path: Path, architecture: str, dtype: str) -> None:
    """With few pairs in memory, some are refused while the memory is full."""
    net, _, X, y = problem(architecture, dtype=dtype)
    for seed in range(15):
        u = net.init(random_state=seed)
        plain = ocdl.train(net, u, X, y, optimiser=LBFGS(memory=3), max_iter=60)
        stored = ocdl.train(
            net, u, X, y, optimiser=LBFGS(memory=3), max_iter=60, checkpoint=ocdl.Checkpoint(tmp_path / "c", every=3)
        )
        assert_same(stored, plain)
        assert_same(resume_at(31, tmp_path / "c", net, u, X, y, optimiser=LBFGS(memory=3), max_iter=60), plain)


def test_iterations_left_by_a_stage_are_not_used_by_the_next(tmp_path: Path) -> None:
    net, u, X, y = problem()
    chain = Chain((Backtracking(L0=1e-9, max_trials=1), 500), (Adam(), 20))
    whole = ocdl.train(net, u, X, y, optimiser=chain, max_iter=1000)
    assert (whole.n_iter, whole.n_evals) == (20, 1 + 1 + 1 + 20)  # start, trial in vain, start, steps
    assert_same(resume_at(7, tmp_path / "c", net, u, X, y, optimiser=chain, max_iter=1000), whole)


def test_single_precision_resumes(tmp_path: Path) -> None:
    net, u, X, y = problem(dtype="float32")
    for method in (LBFGS(), NewtonCG()):
        whole = ocdl.train(net, u, X, y, optimiser=method, max_iter=40)
        assert_same(resume_at(17, tmp_path / "c", net, u, X, y, optimiser=method, max_iter=40), whole)


def test_a_finished_training_resumes_to_the_same_end(tmp_path: Path) -> None:
    net, u, X, y = problem()
    arguments = {"optimiser": LBFGS(), "tol": 1e-3, "max_iter": 2000}
    whole = ocdl.train(net, u, X, y, checkpoint=tmp_path / "c", **arguments)
    assert whole.status is Status.GRADIENT
    assert_same(ocdl.train(net, u, X, y, checkpoint=ocdl.Checkpoint(tmp_path / "c", resume=True), **arguments), whole)


def test_checkpoint_and_resume_may_be_one_file(tmp_path: Path) -> None:
    path = tmp_path / "state.ocdl"
    train(Backtracking(), 30, checkpoint=path)
    both = train(Backtracking(), 60, checkpoint=ocdl.Checkpoint(path, resume=True))
    assert_same(both, train(Backtracking(), 60))
    assert_same(train(Backtracking(), 60, checkpoint=ocdl.Checkpoint(path, resume=True)), both)


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
        ocdl.train(net, u, X, y, max_iter=6, checkpoint=ocdl.Checkpoint(tmp_path / "c", resume=True), **change)
    other = Network.preset("odenet", 2, 5)
    with pytest.raises(ValueError, match="network"):
        ocdl.train(other, other.init(0), X, y, max_iter=6, checkpoint=ocdl.Checkpoint(tmp_path / "c", resume=True))
    with pytest.raises(ValueError, match="other data"):
        ocdl.train(net, u, X + 1, y, max_iter=6, checkpoint=ocdl.Checkpoint(tmp_path / "c", resume=True))


def test_models_and_checkpoints_are_told_apart(tmp_path: Path) -> None:
    net, u, X, y = problem()
    ocdl.save(tmp_path / "model", net, u)
    with pytest.raises(ocdl.ModelFileError):
        ocdl.train(net, u, X, y, checkpoint=ocdl.Checkpoint(tmp_path / "model", resume=True))
    ocdl.train(net, u, X, y, max_iter=1, checkpoint=tmp_path / "state")
    with pytest.raises(ocdl.ModelFileError):
        ocdl.load(tmp_path / "state")
    with pytest.raises(FileNotFoundError):
        ocdl.train(net, u, X, y, checkpoint=ocdl.Checkpoint(tmp_path / "nowhere", resume=True))


FORGERIES: list[tuple[str, Any]] = [
    ("state.pairs", np.array(-1)),
    ("state.iterations", np.array(-5)),
    ("state.iterations", np.array(3)),
    ("state.controls", np.ones(3)),
    ("state.gradient", np.full(37, np.nan)),
    ("records", np.zeros(5)),
    ("records", np.zeros((2, 5))),
    ("evaluated.score", np.zeros((0,))),
    ("best.controls", np.zeros(2)),
    ("stage", -1),
    ("stage", 7),
    ("before", [0]),
    ("before", [-1, 0]),
    ("before", [10**400, 0]),
    ("seed", -1),
    ("seed", 10**400),
    ("started", None),
]


@pytest.mark.parametrize(("name", "value"), FORGERIES, ids=str)
def test_forged_checkpoints_are_refused(tmp_path: Path, name: str, value: Any) -> None:
    """The digest is right, the contents are wrong: the error is a ModelFileError, never a crash."""
    net, u, X, y = problem()
    path = tmp_path / "c"
    ocdl.train(net, u, X, y, optimiser=LBFGS(), max_iter=10, checkpoint=path)
    description, arrays, _ = read_container(path, "checkpoint")
    (arrays if isinstance(value, np.ndarray) else description)[name] = value
    write_container(path, "checkpoint", description, arrays)
    with pytest.raises(ocdl.ModelFileError):
        ocdl.train(net, u, X, y, optimiser=LBFGS(), max_iter=20, checkpoint=ocdl.Checkpoint(path, resume=True))


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
    resumed = ocdl.train(net, u, X, y, max_iter=0, checkpoint=ocdl.Checkpoint(tmp_path / "c", resume=True))
    assert resumed.n_iter > 0


PROBLEM = """
import sys
import ocdl
net = ocdl.Network.preset("odenet+simplex", 2, 5)
X, y = ocdl.datasets.make_donut2d(100, random_state=1)
"""
TRAINING = """
ocdl.train(net, net.init(random_state=2), X, y, max_iter=10**9, tol=0, eval_every=10**6,
           checkpoint=ocdl.Checkpoint(sys.argv[1], every=1, resume="if_exists"))
"""


def state_of(path: Path) -> tuple[int, int] | None:
    """Return what is different after a file was replaced."""
    return (path.stat().st_ino, path.stat().st_mtime_ns) if path.exists() else None


def kill_while_checkpointing(path: Path, times: int, seed: int) -> int:
    """A child checkpoints every iteration and is killed; the file is whole, and what it holds is a true iterate.

    Return how far it came.
    """
    rng = random.Random(seed)
    net, u, X, y = problem()
    latest = 0
    with Forks(PROBLEM, TRAINING) as child:
        for _ in range(times):
            before, deadline = state_of(path), time.monotonic() + 60
            child.start(str(path))
            while state_of(path) == before:  # the first checkpoint of this child
                assert time.monotonic() < deadline
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.05))
            seen = ocdl.train(net, u, X, y, max_iter=0, checkpoint=resume_copy(path)).n_iter
            assert child.kill() == -signal.SIGKILL
            reached = ocdl.train(net, u, X, y, max_iter=0, checkpoint=resume_copy(path)).n_iter
            assert reached >= max(latest, seen)
            latest = reached
    assert latest > 0
    whole = ocdl.train(net, u, X, y, max_iter=latest, tol=0, eval_every=10**6)
    resumed = ocdl.train(
        net, u, X, y, max_iter=latest, tol=0, eval_every=10**6, checkpoint=ocdl.Checkpoint(path, resume=True)
    )
    assert_same(resumed, whole)
    assert list(path.parent.iterdir()) == [path]  # the last writer has removed what the killed ones left
    return latest


def test_ten_kills_lose_nothing(tmp_path: Path) -> None:
    kill_while_checkpointing(tmp_path / "state.ocdl", 10, seed=0)


@pytest.mark.slow
def test_a_thousand_kills_lose_nothing(tmp_path: Path, soak: Soak) -> None:
    reached = kill_while_checkpointing(tmp_path / "state.ocdl", soak.times(1000, least=3), seed=1)
    soak.measured(f"resumed to {reached} iterations, bit for bit")


def test_an_interrupt_stores_the_state(tmp_path: Path) -> None:
    """Between the start and the interrupt no checkpoint is due."""
    path = tmp_path / "state.ocdl"
    training = TRAINING.replace("every=1,", "every=10**8,")
    script = PROBLEM + 'print("ready", flush=True)' + training
    child = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert b"KeyboardInterrupt" in errors
    net, u, X, y = problem()
    arguments: dict[str, Any] = {"tol": 0, "eval_every": 10**6}
    reached = ocdl.train(net, u, X, y, max_iter=0, checkpoint=ocdl.Checkpoint(path, resume=True), **arguments)
    assert reached.n_iter > 0
    assert_same(reached, ocdl.train(net, u, X, y, max_iter=reached.n_iter, **arguments))


def test_an_interrupt_in_the_first_evaluation_leaves_a_checkpoint(tmp_path: Path) -> None:
    net, u, X, y = problem()
    big = np.tile(X, (40_000, 1)), np.tile(y, 40_000)

    def interrupt() -> None:
        while not (tmp_path / "c").exists():
            time.sleep(0.001)
        _thread.interrupt_main()

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        ocdl.train(net, u, *big, checkpoint=tmp_path / "c")
    checkpoint = resume_copy(tmp_path / "c")
    resumed = ocdl.train(net, u, *big, max_iter=2, checkpoint=checkpoint, eval_every=10)
    assert_same(resumed, ocdl.train(net, u, *big, max_iter=2, eval_every=10))


def test_resume_if_exists_starts_and_continues(tmp_path: Path) -> None:
    checkpoint = ocdl.Checkpoint(tmp_path / "c", resume="if_exists")
    assert train(Backtracking(), 5, checkpoint=checkpoint).n_iter == 5
    assert_same(train(Backtracking(), 12, checkpoint=checkpoint), train(Backtracking(), 12))
