"""Finished runs on disk, one file each, and the training of missing ones."""

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
from ocdl.training.parallel import ShouldStop, run_parallel
from ocdl.training.result import Result, Status

COURSES = (*EVERY_ITERATION, "evaluated", *SPARSE)
MAX_CONTROLS = 10**6  # numbers; controls of larger networks are not stored


@dataclass(frozen=True, eq=False)
class Outcome:
    """The data of a finished run that figures and claims need."""

    run: Run
    history: History
    steps: FloatArray  # of the trained network; empty for a feed-forward one
    shown: FloatArray  # the first test samples at time T
    controls: Controls | None  # None if the network is too large to store
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
    def from_result(cls, run: Run, result: Result, data: Data) -> Outcome:
        """Return the outcome of a training."""
        net = run.settings.network(run.network, data.X.shape[1])
        u = result.controls
        shown = net.final_state(u, data.X_test[:SHOWN])
        kept = u if len(u.to_vector()) <= MAX_CONTROLS else None
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
        """Return a finished run; None if its file is missing, damaged, or of other settings or another version."""
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


def compute_outcomes(
    runs: Iterable[Run], store: Store, jobs: int, mnist: str | None = None, backend: str | None = None
) -> Iterator[Outcome]:
    """Yield the outcome of every run as soon as it is available: first stored runs, then trained ones.

    `jobs` runs are trained in parallel, by a backend of joblib if one is named. Finished runs are stored even if the
    others are interrupted.
    """
    missing = []
    for run in runs:
        kept = store.load(run)
        if kept is None:
            missing.append(run)
        else:
            yield kept
    trainings = {run: partial(_train, run, store, mnist) for run in missing}
    for _, outcome in run_parallel(trainings, jobs, backend):
        yield outcome


def _train(run: Run, store: Store, mnist: str | None, should_stop: ShouldStop) -> Outcome:
    data = run.data(mnist)
    result = run.train(data, lambda state: should_stop())
    if result.status is Status.INTERRUPTED:
        raise CancelledError
    outcome = Outcome.from_result(run, result, data)
    store.save(outcome)
    return outcome


def _identity(run: Run) -> str:
    return json.dumps(run.description() | {"ocdl": ocdl.__version__}, sort_keys=True)
