"""Checkpoints: the state of a training on disk, from which it resumes bit for bit."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np

from ocdl.base import validation
from ocdl.base.build import build_info
from ocdl.base.keywords import known_keywords
from ocdl.network.files import network_to_dict
from ocdl.storage.container import FilePath, Migration, file_error, read_container, write_container
from ocdl.training import optimisers
from ocdl.training.history import EVERY_ITERATION
from ocdl.training.optimisers import Chain, Optimiser
from ocdl.training.problem import Problem
from ocdl.training.session import Before, Best, Evaluated, Session, Stage

__all__ = ["Checkpoint"]

DEFAULT_INTERVAL = 30.0  # seconds between two checkpoints, unless `every` is given
# By version n: the function that changes a description and arrays of version n to those of version n + 1.
MIGRATIONS: dict[int, Migration] = {}


@known_keywords({"interval": "every", "frequency": "every", "overwrite": "resume"})
@dataclass(frozen=True)
class Checkpoint:
    """A file in which a training stores its state: at the start, regularly, and at the end.

    A resumed training has the bits of one that was never interrupted. It takes the controls `u` and `random_state`
    from the file. Network, objective, optimiser, `freeze` and data must be those of the checkpoint; of a source, the
    number of rows and 64 rows at 16 places are compared. A core for another instruction set computes other bits: a
    RuntimeWarning says so.

    Parameters
    ----------
    path : path
        The file; it is replaced as a whole, so that it is never damaged.
    every : int, optional
        Iterations between two checkpoints; None: half a minute.
    resume : bool or "if_exists"
        Whether to continue from the file. "if_exists": only if there is one, so that the same program starts and
        continues a training.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> import ocdl
    >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
    >>> net = ocdl.Network(2, 5)
    >>> first = ocdl.train(net, net.init(0), X, y, max_iter=10, checkpoint="state.ocdl")
    >>> checkpoint = ocdl.Checkpoint("state.ocdl", every=5, resume="if_exists")
    >>> ocdl.train(net, net.init(0), X, y, max_iter=30, checkpoint=checkpoint).n_iter
    30
    """

    path: FilePath
    _: KW_ONLY
    every: int | None = None
    resume: bool | Literal["if_exists"] = False

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, os.PathLike)):
            raise TypeError(
                f"checkpoint must be a path or an ocdl.Checkpoint, got {validation.format_with_type(self.path)}"
            )
        if self.every is not None:
            object.__setattr__(self, "every", validation.integer(self.every, "every", minimum=1))
        if self.resume != "if_exists" and not isinstance(self.resume, (bool, np.bool_)):
            raise TypeError(
                f"resume must be True, False or 'if_exists', got {validation.format_with_type(self.resume)}"
            )

    @property
    def _is_resumed(self) -> bool:
        return os.path.exists(self.path) if self.resume == "if_exists" else bool(self.resume)


def as_checkpoint(checkpoint: FilePath | Checkpoint | None) -> Checkpoint | None:
    """Return the argument `checkpoint` of `train` as a Checkpoint."""
    return checkpoint if checkpoint is None or isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)


def fingerprint(problem: Problem, optimiser: Optimiser | Chain) -> dict[str, Any]:
    """Return what a checkpoint and the training that resumes it must have in common."""
    return {
        "network": network_to_dict(problem.net),
        "objective": problem.objective._to_dict(),
        "optimiser": optimisers.to_dict(optimiser),
        "freeze": list(problem.frozen),
        "initial_states": None if problem.initial_states is None else problem.initial_states._to_dict(),
        "data": problem.data.digest(problem.ranks),
    }


class Saver:
    """Writes the state of a session to the file of a checkpoint."""

    def __init__(self, checkpoint: Checkpoint, identity: dict[str, Any]) -> None:
        self._path, self.every, self._identity = checkpoint.path, checkpoint.every, identity
        self._saved_at = time.monotonic()

    def save_if_due(self, session: Session) -> None:
        if self.every is not None:
            due = session.iteration % self.every == 0
        else:
            due = time.monotonic() - self._saved_at > DEFAULT_INTERVAL
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


def restore(checkpoint: Checkpoint | None, session: Session, identity: dict[str, Any]) -> None:
    """Put a new session into the state of a checkpoint, which the root reads.

    Raise a ValueError if it belongs to another training; warn if another core wrote it.
    """
    path, description, arrays = session.ranks.broadcast(lambda: _read(checkpoint, identity))
    try:
        core = validation.text(description["core"], "core")
        _unpack(session, description, arrays)
    except (LookupError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:
        raise file_error(path, f"is malformed: {error!s:.300}") from error
    if session.ranks.is_root:
        _warn_of_another_core(path, core)


def _read(checkpoint: Checkpoint | None, identity: dict[str, Any]) -> tuple[FilePath, dict[str, Any], dict[str, Any]]:
    assert checkpoint is not None
    path = checkpoint.path
    description, arrays, _ = read_container(path, "checkpoint", MIGRATIONS)
    stored = description.get("training")
    if not isinstance(stored, dict):
        raise file_error(path, "is malformed: it does not say what was trained")
    for name, current in identity.items():
        other = stored.get(name)
        if other != current:
            difference = "other data" if name == "data" else f"another {name}: {_describe_difference(other, current)}"
            raise ValueError(f"resume: the checkpoint {os.fspath(path)!r} belongs to a training with {difference}")
    return path, description, arrays


def _describe_difference(stored: object, current: object, name: str = "it") -> str:
    """Return which settings differ."""
    if isinstance(stored, dict) and isinstance(current, dict):
        different = [key for key in {**stored, **current} if stored.get(key) != current.get(key)]
        return ", ".join(_describe_difference(stored.get(key), current.get(key), str(key)) for key in different)
    if isinstance(stored, list) and isinstance(current, list) and len(stored) == len(current):
        different = [i for i in range(len(current)) if stored[i] != current[i]]
        if any(isinstance(current[i], dict) for i in different):
            return ", ".join(_describe_difference(stored[i], current[i], f"{name}[{i}]") for i in different)
    return f"{name} is {stored!r:.100} in the checkpoint and {current!r:.100} here"


def _warn_of_another_core(path: FilePath, stored: str) -> None:
    """Warn if another core wrote the checkpoint, because its bits differ."""
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
    problem, number = session.problem, validation.integer(description["stage"], "stage", minimum=0)
    iterations, evaluations = description["before"]
    before = Before(
        validation.integer(iterations, "before", minimum=0), validation.integer(evaluations, "before", minimum=0)
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
        raise ValueError("records have a number of trials that is negative or too large")
    session.slices = [(-1, rows)]
    columns = [arrays[f"evaluated.{name}"] for name in Evaluated._fields]
    session.evaluated = [
        Evaluated(int(i), float(a), float(vl), float(va), h) for i, a, vl, va, h in zip(*columns, strict=True)
    ]
    if "best.controls" in arrays:
        shape = state["controls"].shape
        controls = validation.array_of_shape(
            arrays["best.controls"], "best.controls", shape, "(n_controls,)", problem.net.dtype
        )
        session.best = Best(float(arrays["best.val_loss"]), controls, int(arrays["best.stalled"]))
