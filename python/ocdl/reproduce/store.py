"""Finished runs on disk: a file each, written whole or not at all, and used again; the others are trained."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import partial

import numpy as np

import ocdl
from ocdl.base.validation import FloatArray
from ocdl.model.controls import Controls
from ocdl.network import Network
from ocdl.reproduce.runs import SHOWN, Data, Run
from ocdl.storage.disk import replace_file
from ocdl.training.history import EVERY_ITERATION, SPARSE, History
from ocdl.training.result import Result, Status, Stop
from ocdl.training.side_by_side import side_by_side

COURSES = (*EVERY_ITERATION, "evaluated", *SPARSE)
MOST_CONTROLS = 10**6  # numbers; the controls of larger networks are not kept


@dataclass(frozen=True, eq=False)
class Outcome:
    """What figures and claims need of a finished run."""

    run: Run
    history: History
    steps: FloatArray  # of the trained network; empty for a feed-forward one
    shown: FloatArray  # the first test samples at time T
    controls: Controls | None  # None for networks too large to keep
    n_evals: int
    seconds: float

    @property
    def network(self) -> Network:
        return self.run.settings.network(self.run.network, self.shown.shape[1])

    @property
    def model(self) -> tuple[Network, Controls]:
        """Return network and controls, as `ocdl.plot` takes them."""
        assert self.controls is not None, f"{self.run} keeps no controls"
        return self.network, self.controls

    @classmethod
    def of(cls, run: Run, result: Result, data: Data) -> Outcome:
        """Return what is kept of a training."""
        net = run.settings.network(run.network, data.X.shape[1])
        u = result.controls
        shown = net.final_state(u, data.X_test[:SHOWN])
        kept = u if len(u.to_vector()) <= MOST_CONTROLS else None
        return cls(run, result.history, u.h.copy(), shown, kept, result.n_evals, float(result.history.seconds[-1]))


class Store:
    """A folder of finished runs."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def path(self, run: Run) -> str:
        return os.path.join(self.folder, f"{run.name}.npz")

    def save(self, outcome: Outcome) -> None:
        """Write a finished run."""
        arrays = {name: getattr(outcome.history, name) for name in COURSES}
        arrays |= {"steps": outcome.steps, "shown": outcome.shown}
        if outcome.controls is not None:
            arrays["controls"] = outcome.controls.to_vector()
        buffer = io.BytesIO()
        np.savez(
            buffer,
            description=np.array(_identity(outcome.run)),
            cost=np.array([outcome.n_evals, outcome.seconds]),
            **arrays,
        )
        replace_file(self.path(outcome.run), buffer.getbuffer())

    def load(self, run: Run) -> Outcome | None:
        """Return a finished run; None where there is no file, or one of other settings, another version or damaged."""
        try:
            with open(self.path(run), "rb") as stored, np.load(stored, allow_pickle=False) as file:
                if str(file["description"]) != _identity(run):
                    return None
                history = History(**{name: file[name] for name in COURSES})
                evals, seconds = file["cost"]
                steps, shown = file["steps"], file["shown"]
                vector = file.get("controls")
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None
        net = run.settings.network(run.network, shown.shape[1])
        controls = None if vector is None else net.from_vector(vector)
        return Outcome(run, history, steps, shown, controls, int(evals), float(seconds))


def outcomes(
    runs: Iterable[Run], store: Store, jobs: int, mnist: str | None = None, backend: str | None = None
) -> Iterator[Outcome]:
    """Yield the outcome of every run as soon as it is there: first those in the store, then the trained ones.

    So many are trained at once, by a backend of joblib where one is named. Whatever stops them, Ctrl-C above all,
    finished ones are in the store.
    """
    missing = []
    for run in runs:
        kept = store.load(run)
        if kept is None:
            missing.append(run)
        else:
            yield kept
    trainings = {run: partial(_trained, run, store, mnist) for run in missing}
    for _, outcome in side_by_side(trainings, jobs, backend):
        yield outcome


def _trained(run: Run, store: Store, mnist: str | None, stop: Stop) -> Outcome:
    data = run.data(mnist)
    result = run.train(data, stop)
    if result.status is Status.INTERRUPTED:
        raise CancelledError
    outcome = Outcome.of(run, result, data)
    store.save(outcome)
    return outcome


def _identity(run: Run) -> str:
    return json.dumps(run.description() | {"ocdl": ocdl.__version__}, sort_keys=True)
