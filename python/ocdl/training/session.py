"""A training in progress: the core's loop, stage by stage, and the records it leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ocdl import _core
from ocdl.base.validation import FloatArray
from ocdl.model import overflow
from ocdl.model.controls import Controls
from ocdl.model.losses import Loss
from ocdl.model.objective import Objective
from ocdl.network import Network
from ocdl.training.history import EVERY_ITERATION, History
from ocdl.training.optimisers import Optimiser

SLICE_SECONDS = 0.05  # after which the core comes back between two iterations, so that somebody can look
SLICE_ITERATIONS = 4096


@dataclass(frozen=True)
class Problem:
    """What is trained, on what: arguments of `train` that are checked already."""

    net: Network
    X: FloatArray
    y: Any
    sample_weight: FloatArray | None
    objective: Objective
    validation: tuple[FloatArray, Any] | None
    frozen: tuple[str, ...]
    tol: float
    rtol: float

    @cached_property
    def samples(self) -> _core.Evaluator:
        """The objective on the training data, as the core's optimisers see it."""
        return self._evaluator(self.X, self.y, self.sample_weight)

    @cached_property
    def validation_samples(self) -> _core.Evaluator | None:
        """The objective on the validation data, where there is some."""
        return None if self.validation is None else self._evaluator(*self.validation, None)

    def _evaluator(self, X: FloatArray, y: Any, weights: FloatArray | None) -> _core.Evaluator:
        core_network, core_objective = self.net._core_network, self.objective._core_objective
        if isinstance(self.objective.record, Loss):
            return _core.samples_evaluator(core_network, X, y, weights, core_objective)
        own = self.objective._on_samples(y, weights, len(X))
        return _core.outside_loss_evaluator(core_network, X, core_objective, own.evaluate, own.score)

    def start(
        self, vector: FloatArray, optimiser: Optimiser, seed: int, first_value: float = math.nan, seconds: float = 0.0
    ) -> _core.Training:
        """Return the core's loop, still without its first evaluation.

        After another optimiser, `first_value` is J at the very start and `seconds` the time since then.
        """
        return _core.make_training(
            self.net._core_network,
            self.samples,
            vector,
            optimiser._core_method(seed),
            list(self.frozen),
            self.net.time_steps == "simplex" and "h" not in self.frozen,
            self.tol,
            self.rtol,
            first_value,
            seconds,
        )


class Evaluated(NamedTuple):
    """What is computed at those iterations that are evaluated."""

    iteration: int
    score: float
    val_loss: float
    val_score: float
    time_steps: FloatArray


class Best(NamedTuple):
    """The controls with the lowest validation loss so far, and how many evaluations have not lowered it since."""

    val_loss: float
    controls: FloatArray
    stalled: int


class Before(NamedTuple):
    """What the earlier stages add up to."""

    iterations: int = 0
    evaluations: int = 0


class Stage(NamedTuple):
    """The optimiser at work: its number, what was before it, and its loop in the core."""

    number: int
    before: Before
    core: _core.Training


class Session:
    """A training in progress.

    Interruptions may come between any two statements, so whatever belongs together is replaced at once.
    """

    def __init__(
        self,
        problem: Problem,
        vector: FloatArray,
        optimisers: tuple[tuple[Optimiser, int | None], ...],
        max_iter: int,
        seed: int,
        stop: _core.StopFlag,
    ) -> None:
        self.problem, self.optimisers, self.max_iter, self.seed, self.stop = problem, optimisers, max_iter, seed, stop
        self.stage = Stage(0, Before(), problem.start(vector, optimisers[0][0], seed))
        self.slices: list[tuple[int, FloatArray]] = []  # the iteration before the first row, and the rows
        self.evaluated: list[Evaluated] = []
        self.best: Best | None = None

    @property
    def core(self) -> _core.Training:
        return self.stage.core

    @property
    def iteration(self) -> int:
        stage = self.stage
        return stage.before.iterations + stage.core.iterations

    @property
    def n_evals(self) -> int:
        return self.stage.before.evaluations + self.core.evaluations

    @property
    def seconds(self) -> float:
        return self.core.record[EVERY_ITERATION.index("seconds")]

    @property
    def controls(self) -> Controls:
        return Controls(self.problem.net._layout, self.core.controls())

    @property
    def stage_end(self) -> int:
        """The iteration at which the current optimiser ends."""
        share = self.optimisers[self.stage.number][1]
        return self.max_iter if share is None else min(self.stage.before.iterations + share, self.max_iter)

    @property
    def is_started(self) -> bool:
        return bool(self.slices)

    @property
    def is_evaluated(self) -> bool:
        """Whether the score of the current iterate are known."""
        return bool(self.evaluated) and self.evaluated[-1].iteration == self.iteration

    def start(self) -> bool:
        """Evaluate the objective for the first time; raise if it is not finite. False if it was stopped."""
        if not self.core.start(self.stop):
            return False
        if not np.isfinite(self.core.record[:2]).all():
            overflow.report(self.problem.net._core_network, self.core.controls(), self.problem.X)
        self.slices.append((-1, np.array([self.core.record])))
        return True

    def advance(self, until: int) -> str:
        """Iterate up to an iteration of the current stage, for a moment at most; return the core's status."""
        self.trim()
        most = min(max(min(until, self.stage_end) - self.iteration, 0), SLICE_ITERATIONS)
        rows = np.empty((most, len(EVERY_ITERATION)))
        self.slices.append((self.iteration, rows))
        self.core.run(rows, SLICE_SECONDS, self.stop)
        return self.core.status

    def trim(self) -> None:
        """Leave only those rows of the last slice that were written."""
        if self.slices:
            first, rows = self.slices[-1]
            self.slices[-1] = first, rows[: self.iteration - first]

    def next_stage(self) -> bool:
        """Hand over to the next optimiser; False if there is none, or no iteration left."""
        number = self.stage.number + 1
        if number == len(self.optimisers) or self.iteration >= self.max_iter:
            return False
        self.trim()
        optimiser, first_value = self.optimisers[number][0], float(self.slices[0][1][0, 0])
        core = self.problem.start(self.core.controls(), optimiser, self.seed, first_value, self.seconds)
        if core.start(self.stop):
            self.stage = Stage(number, Before(self.iteration, self.n_evals), core)
        return True

    def evaluate(self) -> Evaluated | None:
        """Return score and validation at the current controls; None if that was stopped."""
        problem, core = self.problem, self.core
        training = core.assess(problem.samples, False, self.stop)
        validation: tuple[float, float] | None = (math.nan, math.nan)
        if problem.validation_samples is not None:
            validation = core.assess(problem.validation_samples, True, self.stop)
        if training is None or validation is None:
            return None
        if problem.validation is not None and self.iteration == 0 and not math.isfinite(validation[0]):
            try:
                overflow.report(problem.net._core_network, core.controls(), problem.validation[0])
            except FloatingPointError as error:
                raise FloatingPointError(f"validation: {error}") from error
        return Evaluated(self.iteration, training[1], *validation, self.controls.h.copy())

    def last_evaluation(self) -> Evaluated | None:
        """Return score and validation at the current controls, computed once."""
        return self.evaluated[-1] if self.is_evaluated else self.evaluate()

    def note_evaluation(self, *, keep_best: bool) -> None:
        """Evaluate, and with `keep_best` keep the controls where the validation loss has become lower."""
        found = self.evaluate()
        if found is None:
            return
        if keep_best:
            best = self.best
            if best is None or is_lower(found.val_loss, best.val_loss):
                self.best = Best(found.val_loss, self.core.controls(), 0)
            else:
                self.best = best._replace(stalled=best.stalled + 1)
        self.evaluated.append(found)

    def records(self) -> FloatArray:
        """Return the rows of all iterations, that of the start first."""
        self.trim()
        rows = [rows for _, rows in self.slices]
        return np.concatenate(rows) if rows else np.array([self.core.record])

    def history(self, last: Evaluated | None) -> History:
        """Return everything so far, with an evaluation of the last iterate where there is one."""
        evaluated = self.evaluated if last is None or self.is_evaluated else [*self.evaluated, last]
        columns: dict[str, Any] = dict(zip(EVERY_ITERATION, self.records().T.copy(), strict=True))
        columns["trials"] = columns["trials"].astype(np.int64)
        steps = np.array([row.time_steps for row in evaluated], self.problem.net.dtype)
        return History(
            **columns,
            evaluated=np.array([row.iteration for row in evaluated], np.int64),
            score=np.array([row.score for row in evaluated]),
            val_loss=np.array([row.val_loss for row in evaluated]),
            val_score=np.array([row.val_score for row in evaluated]),
            time_steps=steps.reshape(len(evaluated), len(self.controls.h)),
            score_name=self.problem.objective.score_name,
        )


def is_lower(loss: float, best: float) -> bool:
    """Whether a loss is lower than the best one so far; any is lower than NaN."""
    return loss < best or (math.isnan(best) and not math.isnan(loss))
