"""A training in progress: the core's loop, stage by stage, and the records it leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ocdl import _core, overflow
from ocdl._validation import FloatArray, LabelArray
from ocdl.controls import Controls
from ocdl.history import EVERY_ITERATION, History
from ocdl.network import Network
from ocdl.objective import Objective
from ocdl.optimisers import Optimiser

SLICE_SECONDS = 0.05  # after which the core comes back between two iterations, so that somebody can look
SLICE_ITERATIONS = 4096
PASSED_ON = ("step", "no_progress")  # ends of a stage after which the next optimiser may still get further


@dataclass(frozen=True)
class Problem:
    """What is trained, on what: arguments of `train` that are checked already."""

    net: Network
    X: FloatArray
    y: LabelArray
    sample_weight: FloatArray | None
    objective: Objective
    validation: tuple[FloatArray, LabelArray] | None
    frozen: tuple[str, ...]
    tol: float

    def start(self, vector: FloatArray, optimiser: Optimiser, seed: int) -> _core.Training:
        """Return the core's loop, still without its first evaluation."""
        return _core.make_training(
            self.net._core_network,
            vector,
            self.X,
            self.y,
            self.sample_weight,
            self.objective._core_objective,
            optimiser._core_method(seed),
            list(self.frozen),
            self.net.time_steps == "simplex" and "h" not in self.frozen,
            self.tol,
        )


class Evaluated(NamedTuple):
    """What is computed every `eval_every` iterations."""

    iteration: int
    accuracy: float
    val_loss: float
    val_accuracy: float
    time_steps: FloatArray


class Before(NamedTuple):
    """What the earlier stages add up to."""

    iterations: int = 0
    evaluations: int = 0
    seconds: float = 0.0


class Session:
    """A training in progress. `stages`: optimisers, each with the iteration at which it ends."""

    def __init__(
        self, problem: Problem, vector: FloatArray, stages: list[tuple[Optimiser, int]], seed: int, stop: _core.StopFlag
    ) -> None:
        self.problem, self.stages, self.seed, self.stop = problem, stages, seed, stop
        self.stage = 0
        self.before = Before()
        self.core = problem.start(vector, stages[0][0], seed)
        self.records: list[FloatArray] = []
        self.evaluated: list[Evaluated] = []
        self._slice: FloatArray = np.empty((0, len(EVERY_ITERATION)))
        self._absorbed = 0  # iterations of this stage that are in `records`

    @property
    def iteration(self) -> int:
        return self.before.iterations + self.core.iterations

    @property
    def n_evals(self) -> int:
        return self.before.evaluations + self.core.evaluations

    @property
    def last_iteration(self) -> int:
        """The iteration at which the last stage ends."""
        return self.stages[-1][1]

    @property
    def stage_is_over(self) -> bool:
        return self.iteration >= self.stages[self.stage][1]

    @property
    def is_evaluated(self) -> bool:
        """Whether accuracies of the current iterate are known."""
        return bool(self.evaluated) and self.evaluated[-1].iteration == self.iteration

    def start(self) -> bool:
        """Evaluate the objective for the first time; raise if it is not finite. False if it was stopped."""
        complete = self.core.start(self.stop)
        self.records.append(np.array([self.core.record]))
        if complete and not np.isfinite(self.core.record[:2]).all():
            overflow.report(self.problem.net._core_network, self.core.controls(), self.problem.X)
        return complete

    def advance(self, until: int) -> str:
        """Iterate up to an iteration of the current stage, for a moment at most; return the core's status."""
        end = min(until, self.stages[self.stage][1])
        most = min(max(end - self.iteration, 0), SLICE_ITERATIONS)
        self._slice = np.empty((most, len(EVERY_ITERATION)))
        self.core.run(self._slice, SLICE_SECONDS, self.stop)
        self.absorb()
        return self.core.status

    def absorb(self) -> None:
        """Keep the records of the iterations since the last time; needed after an interruption."""
        new = self._slice[: self.core.iterations - self._absorbed].copy()
        new[:, EVERY_ITERATION.index("seconds")] += self.before.seconds
        if len(new):
            self.records.append(new)
        self._absorbed = self.core.iterations

    def restore(
        self,
        stage: int,
        before: Before,
        seed: int,
        state: dict[str, Any],
        records: FloatArray,
        evaluated: list[Evaluated],
    ) -> None:
        """Go back to a state that was stored."""
        self.stage, self.before, self.seed = stage, before, seed
        self.core = self.problem.start(state["controls"], self.stages[stage][0], seed)
        self.core.restore(state)
        self.records, self.evaluated = [records], evaluated
        self._absorbed = self.core.iterations

    def next_stage(self) -> bool:
        """Hand over to the next optimiser that has iterations left; False if there is none."""
        for number in range(self.stage + 1, len(self.stages)):
            optimiser, end = self.stages[number]
            if end > self.iteration:
                core = self.problem.start(self.core.controls(), optimiser, self.seed)
                if core.start(self.stop):
                    self.before = Before(self.iteration, self.n_evals, self.seconds)
                    self.stage, self.core, self._absorbed = number, core, 0
                return True
        return False

    @property
    def seconds(self) -> float:
        return self.before.seconds + float(self.core.record[EVERY_ITERATION.index("seconds")])

    @property
    def controls(self) -> Controls:
        return Controls(self.problem.net._layout, self.core.controls())

    def evaluate(self) -> Evaluated:
        """Return accuracies and validation at the current controls."""
        problem, u = self.problem, self.controls
        val_loss = val_accuracy = np.nan
        if problem.validation is not None:
            X, y = problem.validation
            val_loss = problem.net._core_network.value(u._vector, X, y, None, problem.objective._core_objective)
            val_accuracy = self._accuracy(u, X, y, None)
        accuracy = self._accuracy(u, problem.X, problem.y, problem.sample_weight)
        return Evaluated(self.iteration, accuracy, val_loss, val_accuracy, u.h.copy())

    def _accuracy(self, u: Controls, X: FloatArray, y: LabelArray, weights: FloatArray | None) -> float:
        _, outputs = self.problem.net._core_network.forward(u._vector, X, False)
        decided = outputs[:, 0] > 0 if outputs.shape[1] == 1 else outputs.argmax(axis=1)
        return float(np.average(decided == y, weights=weights))

    def history(self, *, complete: bool) -> History:
        """Return everything so far; to be complete, with an evaluation of the last iterate, however long it takes."""
        evaluated = [*self.evaluated, self.evaluate()] if complete and not self.is_evaluated else self.evaluated
        columns: dict[str, Any] = dict(zip(EVERY_ITERATION, np.concatenate(self.records).T.copy(), strict=True))
        columns["trials"] = columns["trials"].astype(np.int64)
        steps = np.array([row.time_steps for row in evaluated], self.problem.net.dtype)
        return History(
            **columns,
            evaluated=np.array([row.iteration for row in evaluated], np.int64),
            accuracy=np.array([row.accuracy for row in evaluated]),
            val_loss=np.array([row.val_loss for row in evaluated]),
            val_accuracy=np.array([row.val_accuracy for row in evaluated]),
            time_steps=steps.reshape(len(evaluated), -1),
        )
