"""What tests/support/ranks.py starts on every rank: functions that are chosen by name, with arguments from JSON."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from checkpoints import resume_copy

import ocdl
from ocdl import L1, LBFGS, Adam, Backtracking, Network, NewtonCG, Objective, Tikhonov, _core
from ocdl.storage.container import read_container

SHARD = _core.shard_size(1)
SHARDS = 6
ROWS = 5 * SHARD + 77  # six shards, the last one short
OPTIMISERS: dict[str, Any] = {
    "backtracking": Backtracking(),
    "adam on batches": Adam(batch_size=100),
    "lbfgs": LBFGS(),
    "newton": NewtonCG(max_products=8),
}
DISTRIBUTIONS = ("equal", "on one", "uneven")
ITERATIONS = 50


def problem(dtype: str = "float64", weighted: bool = True, d: int = 2) -> dict[str, Any]:
    """All rows, and a network to train."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, d)).astype(dtype)
    return {
        "net": Network(d, 3, n_outputs=2, time_steps="free", dtype=dtype),
        "X": X,
        "y": (X[:, 0] > X[:, 1]).astype(np.int64),
        "sample_weight": rng.uniform(0.5, 1.5, ROWS).astype(dtype) if weighted else None,
    }


def cuts(distribution: str, ranks: int) -> list[int]:
    """The shards at which the ranks' parts begin and end."""
    if distribution == "equal":
        return [SHARDS * rank // ranks for rank in range(ranks + 1)]
    if distribution == "on one":
        return [0] * ranks + [SHARDS]
    rng = np.random.default_rng(ranks)
    return [0, *sorted(rng.integers(0, SHARDS + 1, ranks - 1).tolist()), SHARDS]


def train(
    given: dict[str, Any],
    optimiser: Any,
    distribution: str = "equal",
    comm: Any = None,
    seed: int = 3,
    **more: Any,
) -> ocdl.Result:
    """Train on this rank's rows, or without a communicator on all."""
    rows = slice(0, ROWS)
    if comm is not None:
        place = cuts(distribution, comm.size)
        rows = slice(*(min(shard * SHARD, ROWS) for shard in list(pairwise(place))[comm.rank]))
    net, weights, inputs = given["net"], given["sample_weight"], given.get("inputs")
    X, y, inputs = given["X"][rows], given["y"][rows], None if inputs is None else inputs[rows]
    validation = ocdl.Validation(X, y, inputs=inputs) if more.pop("validated", False) else None
    objective = more.pop("objective", Objective("cross_entropy", penalties=Tikhonov(1e-3)))
    return ocdl.train(
        net,
        net.init(random_state=1),
        X,
        y,
        sample_weight=None if weights is None else weights[rows],
        inputs=inputs,
        validation=validation,
        objective=objective,
        optimiser=optimiser,
        random_state=seed,
        communicator=comm,
        **{"max_iter": ITERATIONS, "tol": 0.0} | more,
    )


def digest_of(*arrays: Any) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()


def trained(given: dict[str, Any], optimiser: Any, distribution: str = "equal", comm: Any = None, **more: Any) -> Any:
    """The digest of loss, gradient and controls at the end, which a checkpoint holds, and of what `train` returns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint"
        result = train(given, optimiser, distribution, comm, checkpoint=path, **more)
        history = result.history
        returned = digest_of(
            result.controls.to_vector(),
            *(history.loss, history.gradient_norm, history.score, history.val_loss, history.val_score),
        )
        if comm is not None and comm.rank > 0:
            return returned
        _, arrays, _ = read_container(path, "checkpoint")
        state = digest_of(*(arrays[f"state.{name}"] for name in ("value", "gradient", "controls")))
        return {"state": state, "returned": returned}


def bits(
    comm: Any,
    optimisers: list[str],
    distributions: list[str],
    threads: list[int],
    max_iter: int = ITERATIONS,
    **given: Any,
) -> Any:
    """The digests of all trainings, and whether all ranks return the same."""
    actual = {}
    p = problem(**given)
    for name in optimisers:
        for distribution in distributions:
            for count in threads:
                ocdl.set_num_threads(count)
                _core.insist_on_threads(True)
                mine = trained(p, OPTIMISERS[name], distribution, comm, validated=True, max_iter=max_iter)
                gathered = comm.gather(mine if comm.rank else mine["returned"])
                if comm.rank == 0:
                    assert set(gathered) == {mine["returned"]}, "the ranks return different things"
                    actual[f"{name}, {distribution}, {count}"] = mine
    return actual


class AbsoluteError:
    """A custom loss."""

    name = "absolute error"

    def value_and_grad(self, outputs: Any, targets: Any) -> Any:
        residual = outputs - targets[:, None]
        return np.abs(residual).sum(axis=1), np.sign(residual)


CUSTOM_LOSS_OPTIMISERS: dict[str, Any] = {"lbfgs": LBFGS(), "adam on batches": Adam(batch_size=100)}


class ObservedError:
    """A custom loss of observations."""

    name = "observed"

    def value_and_grad(self, outputs: Any, targets: Any) -> Any:
        r = outputs - targets
        return np.nansum(r**2, axis=1), 2 * r


def with_custom_loss(comm: Any, optimiser: str, distribution: str) -> str:
    """The digest of a training with a custom loss."""
    p = problem()
    objective = Objective(AbsoluteError(), penalties=[Tikhonov(1e-3), L1(1e-3)])
    more = {"objective": objective, "max_iter": 10, "validated": True}
    result = train(p, CUSTOM_LOSS_OPTIMISERS[optimiser], distribution, comm, **more)
    return digest_of(result.controls.to_vector(), result.history.loss, result.history.val_loss)


def from_a_source(comm: Any, optimiser: str, custom_loss: bool = False) -> str:
    """The digest of a training that reads its rows: without a communicator all of them."""
    p = problem()
    source = ocdl.RowSource.from_arrays(p["X"], p["y"], p["sample_weight"])
    net = p["net"]
    result = ocdl.train(
        net,
        net.init(random_state=1),
        source,
        validation=source,
        objective=Objective(AbsoluteError() if custom_loss else "cross_entropy", penalties=Tikhonov(1e-3)),
        optimiser=OPTIMISERS[optimiser],
        max_iter=10,
        tol=0.0,
        random_state=3,
        communicator=comm,
    )
    history = result.history
    return digest_of(result.controls.to_vector(), history.loss, history.val_loss, history.score)


def with_observations(comm: Any, optimiser: str, distribution: str, loss: str, own: bool, scaled: int = -1) -> Any:
    """The digests of a training on observations with holes; `scaled`: the rank that has other times."""
    rng, p = np.random.default_rng(5), problem()
    times = np.sort(rng.uniform(0, 1, (ROWS, 3) if own else 3), axis=-1)
    if comm is not None and comm.rank == scaled:
        times = times / 2
    values = rng.normal(size=(ROWS, 3, 2))
    values[rng.random(values.shape) < 0.3] = np.nan
    values[:, 1, 1] = p["X"][:, 0]
    p |= {"net": Network(2, 4, n_outputs=2, tableau="kutta4"), "y": ocdl.Observations(times, values)}
    chosen: Any = ObservedError() if loss == "custom" else loss
    return trained(
        p, OPTIMISERS[optimiser], distribution, comm, objective=Objective(chosen), max_iter=5, validated=True
    )


def with_inputs(comm: Any, optimiser: str, distribution: str) -> str:
    """The digest of a training with inputs, of rows on ranks or of a source."""
    p = problem()
    net = Network(2, 3, n_outputs=2, field="mlp", width=4, n_inputs=1, control_intervals=1, tableau="kutta4")
    p |= {"net": net, "inputs": np.random.default_rng(6).normal(size=(ROWS, 4, 1))}
    if distribution == "source":
        source = ocdl.RowSource.from_arrays(p["X"], p["y"], p["sample_weight"], p["inputs"])
        more: dict[str, Any] = {"optimiser": OPTIMISERS[optimiser], "random_state": 3, "communicator": comm}
        objective = Objective("cross_entropy", penalties=Tikhonov(1e-3))
        result = ocdl.train(net, net.init(random_state=1), source, objective=objective, max_iter=5, tol=0.0, **more)
    else:
        result = train(p, OPTIMISERS[optimiser], distribution, comm, max_iter=5)
    return digest_of(result.controls.to_vector(), result.history.loss)


# ---- faults ----


def failing(comm: Any, how: str, rank: int, timeout: float = 60.0, checkpoint: str | None = None) -> Any:
    """A long training in which one rank fails; what it raised, and when, is written to stderr."""
    p, is_it = problem(weighted=False), comm.rank == rank
    more: dict[str, Any] = {"max_iter": 10**6}
    optimiser: Any = ocdl.GradientDescent(1e-3)
    if checkpoint is not None:
        more["checkpoint"] = ocdl.Checkpoint(checkpoint, every=1)
    if how == "full disk" and is_it:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
    elif how == "bad row" and is_it:
        p["X"] = p["X"].copy()
        p["X"][cuts("equal", comm.size)[rank] * SHARD + 5, 1] = np.nan
    elif how == "callback" and is_it:
        more["callback"] = _refuse
    elif how == "killed" and is_it:
        threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGKILL)).start()
    elif how == "interrupted" and is_it:
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    elif how == "ended" and is_it:
        more["callback"] = lambda state: state.seconds > 0.5
    elif how == "absent" and is_it:
        time.sleep(600)
    elif how == "hangs" and is_it:
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGSTOP)).start()
    elif how == "version" and is_it:
        import ocdl.distributed.ranks as module

        module.version = lambda name: "0.0.9"  # type: ignore[assignment]
    elif how == "core" and is_it:
        import ocdl.distributed.ranks as module

        module._core = _OtherCore()  # type: ignore[assignment]
    elif how == "optimiser" and is_it:
        optimiser = LBFGS()
    elif how == "controls" and is_it:
        p["net"] = Network(2, 4, n_outputs=2, time_steps="free")
    elif how == "validation" and is_it:
        more["validated"] = True
    elif how == "iterations" and is_it:
        more["max_iter"] = 5
    elif how == "rows" and comm.rank in (rank, rank - 1):
        p["y"], p["X"] = p["y"][:-1], p["X"][:-1]
    communicator = ocdl.distributed.Communicator(comm, timeout=timeout)
    started = time.monotonic()
    try:
        result = train(p, optimiser, comm=communicator, **more)
    except BaseException as error:
        # In one call, because the ranks write to one file. If a rank ends first, the launcher kills the rest.
        os.write(2, f"\nrank {comm.rank}: {type(error).__name__}: {error}\n".encode())
        if not isinstance(error, TimeoutError):
            comm.Barrier()
        raise SystemExit(3) from error
    return {"status": result.status.name, "seconds": time.monotonic() - started, "iterations": result.n_iter}


class _OtherCore:
    """A core that calls itself something else."""

    def build_info(self) -> dict[str, str]:
        return {"variant": "sse"}


def _refuse(state: ocdl.TrainingState) -> None:
    raise KeyError("not today")


def resumed(comm: Any, checkpoint: str, max_iter: int) -> Any:
    """Continue from a checkpoint, whose path only the first rank has."""
    p = problem(weighted=False)
    given = resume_copy(checkpoint) if comm.rank == 0 else None
    result = train(p, ocdl.GradientDescent(1e-3), comm=comm, max_iter=max_iter, checkpoint=given)
    return {"digest": digest_of(result.controls.to_vector(), result.history.loss), "iterations": result.n_iter}


def main() -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    actual = globals()[sys.argv[1]](comm, **json.loads(sys.argv[2]))
    if comm.rank == 0:
        print(json.dumps(actual), flush=True)


if __name__ == "__main__":
    main()
