"""A training on disk: enough to go on bit for bit as if nothing had happened."""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from typing import Any

import numpy as np

from ocdl import _core
from ocdl.base import validation
from ocdl.base.build import build_info
from ocdl.model.own_loss import chosen_rows
from ocdl.network.files import network_to_dict
from ocdl.storage.container import FilePath, Migration, read_container, refusal, write_container
from ocdl.streaming.streamed import Streamed
from ocdl.training import optimisers
from ocdl.training.history import EVERY_ITERATION
from ocdl.training.optimisers import Chain, Optimiser
from ocdl.training.session import Before, Best, Evaluated, Problem, Session, Stage

DEFAULT_PAUSE = 30.0  # seconds between two checkpoints, unless a number of iterations is given
# By version n: the function that changes a description and arrays of version n to those of version n + 1.
MIGRATIONS: dict[int, Migration] = {}


def fingerprint(problem: Problem, optimiser: Optimiser | Chain) -> dict[str, Any]:
    """Return what a checkpoint and the training that resumes it must have in common."""
    return {
        "network": network_to_dict(problem.net),
        "objective": problem.objective._to_dict(),
        "optimiser": optimisers.to_dict(optimiser),
        "freeze": list(problem.frozen),
        "data": _digest(problem),
    }


def _digest(problem: Problem) -> str:
    """Return a digest of the shards of all rows, whoever has them; one shard's is that of its rows."""
    if isinstance(problem.X, Streamed):
        return problem.X.digest()
    rows = len(problem.X)
    size = _core.shard_size(rows if problem.row_distribution is None else problem.row_distribution.all_rows)
    own = [_digest_of_rows(problem, slice(first, min(first + size, rows))) for first in range(0, rows, size)]
    shards = [digest for some in problem.ranks.allgather(own) for digest in some]
    return shards[0] if len(shards) == 1 else hashlib.sha256("".join(shards).encode()).hexdigest()


def _digest_of_rows(problem: Problem, rows: slice) -> str:
    assert not isinstance(problem.X, Streamed)
    digest = hashlib.sha256(str(problem.X[rows].shape).encode())
    for array in (problem.X, problem.y, problem.sample_weight):
        digest.update(_bytes_of(array, rows, len(problem.X)))
    return digest.hexdigest()


def _bytes_of(array: Any, rows: slice, n_rows: int) -> Any:
    """Return the memory of some rows; other targets, of a loss of one's own, are known by how they print."""
    if array is None:
        return b"none"
    if isinstance(array, np.ndarray) and array.dtype.kind in "biuf":
        return np.ascontiguousarray(array[rows]).data
    is_all = rows.start == 0 and rows.stop == n_rows
    chosen = array if is_all else chosen_rows(array, np.arange(rows.start, rows.stop))
    return repr(chosen).encode("utf-8", "backslashreplace")


class Saver:
    """Writes the state of a session to `path`, whenever `every` iterations have passed, or half a minute."""

    def __init__(self, path: FilePath, every: int | None, identity: dict[str, Any]) -> None:
        self._path, self.every, self._identity = path, every, identity
        self._saved_at = time.monotonic()

    def save_if_due(self, session: Session) -> None:
        if self.every is not None:
            due = session.iteration % self.every == 0
        else:
            due = time.monotonic() - self._saved_at > DEFAULT_PAUSE
        if due:
            self.save(session)

    def save(self, session: Session) -> None:
        description, arrays = _pack(session)
        write_container(self._path, "checkpoint", {"training": self._identity, **description}, arrays)
        self._saved_at = time.monotonic()


def _pack(session: Session) -> tuple[dict[str, Any], dict[str, Any]]:
    stage = session.stage
    description = {
        "core": build_info()["variant"],
        "stage": stage.number,
        "before": list(stage.before),
        "seed": session.seed,
        "started": session.is_started,
    }
    arrays = {f"state.{name}": np.asarray(value) for name, value in stage.core.state().items()}
    arrays["records"] = session.records()
    for name in Evaluated._fields:
        arrays[f"evaluated.{name}"] = np.array([getattr(row, name) for row in session.evaluated])
    if session.best is not None:
        arrays |= {f"best.{name}": np.asarray(value) for name, value in session.best._asdict().items()}
    return description, arrays


def restore(path: FilePath | None, session: Session, identity: dict[str, Any]) -> None:
    """Put a new session into the state of a checkpoint, which the first rank reads.

    ValueError where it belongs to another training; a warning where it was written with another core.
    """
    found, description, arrays = session.ranks.broadcast(lambda: _read(path, identity))
    try:
        core = validation.text(description["core"], "core")
        _unpack(session, description, arrays)
    except (LookupError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:
        raise refusal(found, f"is malformed: {error!s:.300}") from error
    if session.ranks.is_root:
        _warn_of_another_core(found, core)


def _read(path: FilePath | None, identity: dict[str, Any]) -> tuple[FilePath, dict[str, Any], dict[str, Any]]:
    assert path is not None
    description, arrays, _ = read_container(path, "checkpoint", MIGRATIONS)
    stored = description.get("training")
    if not isinstance(stored, dict):
        raise refusal(path, "is malformed: it does not say what was trained")
    for name, own in identity.items():
        found = stored.get(name)
        if found != own:
            what = "other data" if name == "data" else f"another {name}: {found!r}, here it is {own!r}"
            raise ValueError(f"resume: the checkpoint {os.fspath(path)!r} belongs to a training with {what}")
    return path, description, arrays


def _warn_of_another_core(path: FilePath, stored: str) -> None:
    """Warn where the core that wrote a checkpoint is not the one of this process, so that bits will differ."""
    current = build_info()["variant"]
    if stored != current:
        warnings.warn(
            f"resume: the checkpoint {os.fspath(path)!r} was written with the core {stored!r:.40}, and this process "
            f"computes with the core {current!r}: the training continues, but its bits differ from those of a training "
            f"in one go; set the environment variable OCDL_CORE to the core of the checkpoint for the same bits",
            RuntimeWarning,
            stacklevel=6,  # the caller of `train`, whose keywords are checked by a function around it
        )


def _unpack(session: Session, description: dict[str, Any], arrays: dict[str, Any]) -> None:
    problem, number = session.problem, validation.integer(description["stage"], "stage", least=0)
    iterations, evaluations = description["before"]
    before = Before(
        validation.integer(iterations, "before", least=0), validation.integer(evaluations, "before", least=0)
    )
    state = {name.removeprefix("state."): array for name, array in arrays.items() if name.startswith("state.")}
    for name, value in state.items():
        if value.ndim:
            validation.real_array(value, name, problem.net.dtype)
    session.seed = validation.integer_up_to(description["seed"], "seed", 2**63)
    core = problem.start(state["controls"], session.optimisers[number][0], session.seed)
    core.restore({name: value if value.ndim else value.item() for name, value in state.items()})
    session.stage = Stage(number, before, core)
    if not validation.boolean(description["started"], "started"):
        return
    rows = arrays["records"]
    if rows.dtype != np.float64 or rows.shape != (session.iteration + 1, len(EVERY_ITERATION)):
        raise ValueError(f"records of shape {rows.shape} do not fit {session.iteration} iterations")
    trials = rows[:, EVERY_ITERATION.index("trials")]
    if not ((trials >= 0) & (trials <= validation.LARGEST_COUNT)).all():
        raise ValueError("records have numbers of trials that are none")
    session.slices = [(-1, rows)]
    columns = [arrays[f"evaluated.{name}"] for name in Evaluated._fields]
    session.evaluated = [
        Evaluated(int(i), float(a), float(vl), float(va), h) for i, a, vl, va, h in zip(*columns, strict=True)
    ]
    if "best.controls" in arrays:
        shape = (problem.net.n_controls,)
        controls = validation.shaped(
            arrays["best.controls"], "best.controls", shape, "(n_controls,)", problem.net.dtype
        )
        session.best = Best(float(arrays["best.val_loss"]), controls, int(arrays["best.stalled"]))
