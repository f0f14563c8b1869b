"""Rows that are read piece by piece: the bits of samples in memory, memory that does not grow, and what goes wrong."""

import _thread
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ocdl
from ocdl import LBFGS, Adam, Armijo, Backtracking, Chain, NewtonCG, Objective, RowSource, _core
from ocdl.data import source_data
from ocdl.model.losses import LOSSES

SHARD = _core.shard_size(1)
ROWS = 3 * SHARD + 77
OPTIMISERS: dict[str, Any] = {
    "Backtracking": Backtracking(),
    "Armijo": Armijo(),
    "Adam": Adam(lr=0.01),
    "Adam on batches": Adam(lr=0.01, batch_size=100),
    "LBFGS": LBFGS(),
    "NewtonCG": NewtonCG(),
    "Gauss-Newton": NewtonCG(curvature="gauss_newton"),
    "Chain": Chain((Adam(lr=0.01, batch_size=50), 3), (LBFGS(), None)),
}


class Counted(RowSource):
    """Arrays as a source that notes which rows were requested, and in which thread."""

    def __init__(self, *arrays: Any) -> None:
        self.arrays, self.n_rows = arrays, len(arrays[0])
        self.requested: list[tuple[int, int]] = []
        self.threads: set[int] = set()

    def rows(self, i: int, j: int) -> tuple[Any, ...]:
        self.requested.append((i, j))
        self.threads.add(threading.get_ident())
        return tuple(array[i:j] for array in self.arrays)


class AbsoluteError:
    """A custom loss."""

    name = "absolute error"

    def value_and_grad(self, outputs: Any, targets: Any) -> tuple[Any, Any]:
        residual = outputs - targets
        return np.abs(residual).sum(axis=1), np.sign(residual)


def samples(loss: Any = "cross_entropy", dtype: str = "float64", rows: int = ROWS) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 2)).astype(dtype)
    y: Any = (X[:, 0] > X[:, 1]).astype(np.int64)
    if not isinstance(loss, str) or LOSSES[loss].targets == "numbers":
        y = np.abs(rng.normal(size=(rows, 2))).astype(dtype)
    return X, y, rng.uniform(0.5, 1.5, rows).astype(dtype)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a pass read half a shard at a time."""
    monkeypatch.setattr(source_data, "CHUNK_BYTES", SHARD // 2 * 40)


def bits(result: ocdl.Result) -> tuple[bytes, ...]:
    history = result.history
    columns = (history.loss, history.gradient_norm, history.score, history.val_loss, history.val_score)
    return result.controls.to_vector().tobytes(), *(column.tobytes() for column in columns)


def net_of(dtype: str = "float64", **options: Any) -> tuple[ocdl.Network, ocdl.Controls]:
    net = ocdl.Network(2, 3, n_outputs=2, dtype=dtype, **options)
    return net, net.init(random_state=1)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.usefixtures("small_chunks")
def test_a_source_has_the_bits_of_samples_in_memory(optimiser: str, dtype: str) -> None:
    net, u = net_of(dtype, time_steps="simplex")
    X, y, weights = samples(dtype=dtype)
    how: dict[str, Any] = {
        "objective": Objective("cross_entropy", penalties=ocdl.Tikhonov(1e-3)),
        "optimiser": OPTIMISERS[optimiser],
        "max_iter": 7,
        "random_state": 3,
        "eval_every": 3,
    }
    in_memory = ocdl.train(net, u, X, y, sample_weight=weights, validation=(X[:5000], y[:5000]), **how)
    source = Counted(X, y, weights)
    read = ocdl.train(net, u, source, validation=Counted(X[:5000], y[:5000]), **how)
    assert bits(read) == bits(in_memory)
    if "batch" not in optimiser and optimiser != "Chain":  # which read a window, here all rows
        assert max(j - i for i, j in source.requested) == SHARD // 2 * 8 // net.dtype.itemsize
    assert len(source.threads) == 1
    assert threading.get_ident() not in source.threads


@pytest.mark.parametrize("loss", [*LOSSES, AbsoluteError()], ids=lambda loss: getattr(loss, "name", loss))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.usefixtures("small_chunks")
def test_every_loss_is_read(loss: Any, weighted: bool, threads: int) -> None:
    net, u = net_of()
    X, y, weights = samples(loss)
    objective = Objective(loss)
    in_memory = ocdl.train(net, u, X, y, sample_weight=weights if weighted else None, objective=objective, max_iter=4)
    source = Counted(X, y, weights) if weighted else Counted(X, y)
    before = ocdl.get_num_threads()
    ocdl.set_num_threads(threads)
    _core.insist_on_threads(True)
    try:
        read = ocdl.train(net, u, source, objective=objective, max_iter=4)
    finally:
        _core.insist_on_threads(False)
        ocdl.set_num_threads(before)
    assert bits(read) == bits(in_memory)


@pytest.mark.parametrize("optimiser", ["Backtracking", "Adam on batches"])
@pytest.mark.parametrize("kind", ["array", "list", "dict", "frame", "none"])
@pytest.mark.usefixtures("small_chunks")
def test_a_custom_loss_takes_targets_of_any_kind(optimiser: str, kind: str) -> None:
    import pandas as pd

    class Own:
        name = "own"

        def value_and_grad(self, outputs: Any, targets: Any) -> tuple[Any, Any]:
            if kind == "frame":
                assert isinstance(targets, pd.DataFrame)
            numbers = {
                "array": lambda: targets,
                "list": lambda: np.array(targets),
                "dict": lambda: np.column_stack([targets["a"], targets["b"]]),
                "frame": lambda: targets.to_numpy(),
                "none": lambda: 1.0,
            }[kind]()
            return ((outputs - numbers) ** 2).sum(axis=1), 2 * (outputs - numbers)

    X, y, _ = samples("squared_error")
    given: Any = {
        "array": y,
        "list": y.tolist(),
        "dict": {"a": y[:, 0], "b": y[:, 1]},
        "frame": pd.DataFrame(y),
        "none": None,
    }[kind]

    class Rows:
        n_rows = ROWS

        def rows(self, i: int, j: int) -> Any:
            if kind == "none":
                return X[i:j], None
            if kind == "dict":
                return X[i:j], {key: value[i:j] for key, value in given.items()}
            return X[i:j], given[i:j]

    net, u = net_of()
    how: dict[str, Any] = {"objective": Objective(Own()), "optimiser": OPTIMISERS[optimiser], "max_iter": 4}
    read = ocdl.train(net, u, Rows(), random_state=0, **how)
    in_memory = ocdl.train(net, u, X, given, random_state=0, **how)
    assert bits(read)[:3] == bits(in_memory)[:3]


@pytest.mark.usefixtures("small_chunks")
def test_batches_come_from_a_window_and_cover_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    window = 1600
    monkeypatch.setattr(source_data, "WINDOW_BYTES", window * 40)
    X, y, _ = samples()
    seen: list[Any] = []

    class Noted:
        name = "noted"

        def value_and_grad(self, outputs: Any, targets: Any) -> tuple[Any, Any]:
            seen.append(targets)
            return np.zeros(len(outputs)), np.zeros_like(outputs)

    source = Counted(X, np.arange(ROWS))
    net, u = net_of()
    how: dict[str, Any] = {"objective": Objective(Noted()), "optimiser": Adam(lr=0.1, batch_size=100), "tol": 0}
    epoch = sum(-(-min(window, ROWS - first) // 100) for first in range(0, ROWS, window))
    ocdl.train(net, u, source, max_iter=2 * epoch, random_state=0, **how)
    batches = [rows for rows in seen if len(rows) <= 100]
    first, second = np.concatenate(batches[:epoch]), np.concatenate(batches[epoch : 2 * epoch])
    assert np.array_equal(np.sort(first), np.arange(ROWS))
    assert np.array_equal(np.sort(second), np.arange(ROWS))
    assert not np.array_equal(first, second)
    assert max(np.ptp(rows) for rows in batches) > ROWS / 2  # from places far apart
    for begin in range(0, ROWS - window, window):
        runs = np.unique(first[begin : begin + window] // (window // 16))
        assert len(runs) <= 16  # of a window, each in one piece
    # another source with these rows, and one in memory, give the same
    again = ocdl.train(
        net, u, RowSource.from_arrays(X, y), optimiser=Adam(lr=0.1, batch_size=100), max_iter=9, random_state=0
    )
    other = ocdl.train(net, u, Counted(X, y), optimiser=Adam(lr=0.1, batch_size=100), max_iter=9, random_state=0)
    assert bits(again) == bits(other)


# ---- interruptions, checkpoints ----


class Stuck(Counted):
    """Returns nothing from its third request on, until it is let go; says when it has got there."""

    def __init__(self, *arrays: Any) -> None:
        super().__init__(*arrays)
        self.reached, self.let_go = threading.Event(), threading.Event()

    def rows(self, i: int, j: int) -> tuple[Any, ...]:
        if len(self.requested) >= 2:
            self.reached.set()
            self.let_go.wait()
        return super().rows(i, j)


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    source = Stuck(*samples()[:2])
    yield source
    source.let_go.set()


def once_stuck(source: Stuck, action: Callable[[], None]) -> None:
    """Do something as soon as a training waits for rows that never come."""

    def wait_and_act() -> None:
        source.reached.wait()
        time.sleep(0.1)
        action()

    threading.Thread(target=wait_and_act).start()


@pytest.mark.usefixtures("small_chunks")
def test_ctrl_c_does_not_wait_for_rows(stuck: Stuck) -> None:
    net, u = net_of()
    once_stuck(stuck, _thread.interrupt_main)
    with pytest.raises(KeyboardInterrupt):
        ocdl.train(net, u, stuck, max_iter=1000)
    assert len(stuck.requested) == 2


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("optimiser", ["LBFGS", "Adam on batches"])
def test_a_training_on_a_source_resumes_bit_for_bit(tmp_path: Path, optimiser: str) -> None:
    X, y, weights = samples()
    net, u = net_of()
    path, how = tmp_path / "half.ocdl", {"optimiser": OPTIMISERS[optimiser], "random_state": 5}
    whole = ocdl.train(net, u, Counted(X, y, weights), max_iter=8, **how)
    ocdl.train(net, u, Counted(X, y, weights), max_iter=5, checkpoint=path, **how)
    rest = ocdl.train(net, u, Counted(X, y, weights), max_iter=8, checkpoint=ocdl.Checkpoint(path, resume=True), **how)
    assert rest.controls.to_vector().tobytes() == whole.controls.to_vector().tobytes()
    for other in (Counted(X[:-1], y[:-1], weights[:-1]), Counted(X, 1 - y, weights), Counted(X, y)):
        with pytest.raises(ValueError, match="other data"):
            ocdl.train(net, u, other, max_iter=8, checkpoint=ocdl.Checkpoint(path, resume=True), **how)


# ---- what a source can do wrong ----


def broken(change: Any, at: int = SHARD) -> Counted:
    """A source whose rows are changed where they hold row `at`."""

    class Broken(Counted):
        def rows(self, i: int, j: int) -> Any:
            actual = super().rows(i, j)
            return change(*actual) if i <= at < j and j - i > 1 else actual

        def __repr__(self) -> str:
            return "Broken()"

    X, y, weights = samples()
    return Broken(X, y, weights)


def with_entry(array: Any, value: Any) -> Any:
    changed = array.copy()
    changed[-1] = value
    return changed


WRONG: dict[str, tuple[Any, str]] = {
    "too few rows": (lambda X, y, w: (X[:-1], y, w), r"X must have 2048 rows, got 2047"),
    "too few labels": (lambda X, y, w: (X, y[:-1], w), r"y has 2047 labels but X has 2048 samples"),
    "too few weights": (lambda X, y, w: (X, y, w[:-1]), r"sample_weight must have shape \(2048,\)"),
    "no weights": (lambda X, y, w: (X, y), r"these rows have no weights, but the first rows have weights"),
    "more columns": (lambda X, y, w: (np.hstack([X, X]), y, w), r"X has 4 features but the network takes 2"),
    "one dimension": (lambda X, y, w: (X.ravel(), y, w), r"X must have two dimensions"),
    "NaN": (lambda X, y, w: (with_entry(X, np.nan), y, w), r"X\[2047, 0\] is nan"),
    "a new label": (lambda X, y, w: (X, with_entry(y, 2), w), r"y\[2047\] is 2; a network with 2 outputs takes labels"),
    "half a label": (lambda X, y, w: (X, y + 0.5, w), r"labels are the whole numbers"),
    "a negative weight": (lambda X, y, w: (X, y, with_entry(w, -1)), r"sample_weight\[2047\] is -1"),
    "text": (lambda X, y, w: (X.astype(str), y, w), r"X must hold real numbers, got dtype <U32"),
    "nothing": (lambda X, y, w: None, r"rows must return X, y\[, sample_weight\[, inputs\]\], got NoneType"),
    "X alone": (lambda X, y, w: (X,), r"got a tuple of 1"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.usefixtures("small_chunks")
def test_rows_that_do_not_fit_are_named(wrong: str) -> None:
    change, message = WRONG[wrong]
    net, u = net_of()
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        ocdl.train(net, u, broken(change), max_iter=3)
    assert str(caught.value).startswith(f"rows {SHARD} to {SHARD + SHARD // 2 - 1} of X, Broken()")


@pytest.mark.usefixtures("small_chunks")
def test_an_exception_in_rows_is_the_cause_of_an_error_that_names_the_rows() -> None:
    def fail(*_: Any) -> Any:
        raise OSError("the disk is gone")

    net, u = net_of()
    with pytest.raises(
        RuntimeError, match=r"rows 4096 to 6143 of X, Broken\(\) could not be read: OSError: the disk"
    ) as caught:
        ocdl.train(net, u, broken(fail), max_iter=3)
    assert isinstance(caught.value.__cause__, OSError)


def test_weights_that_are_all_zero_are_refused() -> None:
    X, y, weights = samples()
    net, u = net_of()
    with pytest.raises(ValueError, match=r"sample_weight adds up to 0\.0+ over all samples"):
        ocdl.train(net, u, Counted(X, y, 0 * weights), max_iter=3)


def test_wrong_arguments_are_named() -> None:
    X, y, weights = samples()
    net, u = net_of()
    source = Counted(X, y)
    with pytest.raises(TypeError, match="y must be left out with a source"):
        ocdl.train(net, u, source, y)
    with pytest.raises(TypeError, match="sample_weight must be left out with a source"):
        ocdl.train(net, u, source, sample_weight=weights)
    source.n_rows = 0
    with pytest.raises(ValueError, match="X is empty: n_rows is 0"):
        ocdl.train(net, u, source)
    source.n_rows = "many"  # type: ignore[assignment]
    with pytest.raises(ValueError, match=r"n_rows of X must be a whole number from 0 to .*, got 'many'"):
        ocdl.train(net, u, source)
    with pytest.raises(TypeError, match="validation must be a pair"):
        ocdl.train(net, u, X, y, validation=X)  # type: ignore[arg-type]


def test_an_overflow_names_the_row() -> None:
    X, y, _ = samples()
    X = X.copy()
    X[9000] = 1e300
    net, u = net_of(activation="relu")
    with pytest.raises(FloatingPointError, match="sample 9000"):
        ocdl.train(net, 1e20 * u, Counted(X, y), max_iter=1)


def test_several_levels_read_a_source() -> None:
    X, y, _ = samples()
    net, u = net_of()
    levels = ocdl.train_multilevel(net, u, Counted(X, y), levels=[1, 3], max_iter=2)
    same = ocdl.train_multilevel(net, u, X, y, levels=[1, 3], max_iter=2)
    assert bits(levels.results[-1]) == bits(same.results[-1])


# ---- memory ----


def limited(limit: str, data_bytes: int, body: str, *arguments: str) -> str:
    """Run a program in a process whose memory is limited, from when everything is imported, to a tenth of its data."""
    program = f"""
        import resource, sys
        import numpy as np
        import ocdl
        def used():
            words = open("/proc/self/statm").read().split()
            return resource.getpagesize() * int(words[{0 if limit == "RLIMIT_AS" else 5}])
        data_bytes = {data_bytes}
        net = ocdl.Network(8, 2, n_outputs=2)
        u = net.init(random_state=0)
        ocdl.set_num_threads(2)
        X = np.ones((50000, 8))
        ocdl.train(net, u, ocdl.RowSource.from_arrays(X, np.zeros(50000, int)), max_iter=1)  # allocates scratch
        del X
        resource.setrlimit(resource.{limit}, (used() + data_bytes // 10,) * 2)
    """
    text = textwrap.dedent(program) + textwrap.dedent(body)
    # Each thread that allocates reserves 64 MB of addresses, most of what is left: not memory, but the limit counts it.
    environment = os.environ | {"MALLOC_ARENA_MAX": "1"}
    command = [sys.executable, "-c", text, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


ROW_BYTES = 72  # eight numbers and a label
PASSES = {"a gradient": "max_iter=0", "batches": "max_iter=20, optimiser=ocdl.Adam(batch_size=1000), eval_every=20"}


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
@pytest.mark.parametrize("what", PASSES)
def test_data_of_ten_times_the_memory_go_through(limit: str, what: str) -> None:
    rows = 12_000_000  # 860 MB
    body = f"""
        class Made:
            n_rows = {rows}

            def rows(self, i, j):
                X = np.ones((j - i, 8))
                X[:, 0] = np.arange(i, j) % 5 - 2
                return X, (X[:, 0] > 0).astype(int)

        try:
            np.ones(data_bytes // 8 // 8)
        except MemoryError:
            print("limited")
        r = ocdl.train(net, u, Made(), {PASSES[what]}, random_state=0)
        print(r.n_iter, np.isfinite(r.history.gradient_norm).all())
    """
    assert limited(limit, rows * ROW_BYTES, body).split() == ["limited", "0" if what == "a gradient" else "20", "True"]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_files_of_ten_times_the_memory_go_through(tmp_path: Path) -> None:
    rows = 12_000_000
    for name, shape, dtype in (("X", (rows, 8), np.float64), ("y", (rows,), np.int64)):
        np.lib.format.open_memmap(tmp_path / f"{name}.npy", "w+", dtype, shape).flush()  # a sparse file, all zeros
    body = """
        from pathlib import Path
        folder = Path(sys.argv[1])
        r = ocdl.train(net, u, ocdl.RowSource.from_npy(folder / "X.npy", folder / "y.npy"), max_iter=0)
        print(np.isfinite(r.history.gradient_norm).all())
    """
    assert limited("RLIMIT_AS", rows * ROW_BYTES, body, str(tmp_path)).split() == ["True"]
