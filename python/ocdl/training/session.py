"""A training in progress: the loop of the core, one optimiser after the other, and its records."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ocdl import _core
from ocdl.base.validation import FloatArray
from ocdl.data.data import Data
from ocdl.data.window_data import WindowData
from ocdl.model import overflow
from ocdl.model.controls import Controls
from ocdl.training.history import EVERY_ITERATION, History
from ocdl.training.optimisers import Optimiser
from ocdl.training.problem import Problem

SLICE_SECONDS = 0.05  # after which the core returns between two iterations, for callback, progress and checkpoints
SLICE_ITERATIONS = 4096
MAX_SLICE_GROWTH = 4  # iterations of a slice, in those of the last one


class Evaluated(NamedTuple):
    """Scores, validation loss and time steps of an evaluated iteration."""

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
    """The iterations and evaluations of the earlier stages."""

    iterations: int = 0
    evaluations: int = 0


class Stage(NamedTuple):
    """The current optimiser: its number, the work before it, and its loop in the core."""

    number: int
    before: Before
    core: _core.Training


class Session:
    """A training in progress.

    A KeyboardInterrupt may come between any two statements, so values that belong together are replaced at once.
    """

    def __init__(
        self,
        problem: Problem,
        vector: FloatArray,
        optimisers: tuple[tuple[Optimiser, int | None], ...],
        max_iter: int,
        seed: int,
    ) -> None:
        self.problem, self.optimisers, self.max_iter, self.seed = problem, optimisers, max_iter, seed
        self.ranks, self.pace = problem.ranks, 1
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
        return self.split(self.core.controls())[0]

    def split(self, vector: FloatArray) -> tuple[Controls, FloatArray | None]:
        """Return the controls of a vector of the core, and the initial states where they are learned."""
        net = self.problem.net
        states = None if self.problem.initial_states is None else vector[net.n_controls :].reshape(-1, net.dim)
        return Controls(net._layout, vector[: net.n_controls]), states

    @property
    def stage_end(self) -> int:
        """The iteration at which the current optimiser ends."""
        count = self.optimisers[self.stage.number][1]
        return self.max_iter if count is None else min(self.stage.before.iterations + count, self.max_iter)

    @property
    def is_started(self) -> bool:
        return bool(self.slices)

    @property
    def is_evaluated(self) -> bool:
        """Whether the current iterate is evaluated."""
        return bool(self.evaluated) and self.evaluated[-1].iteration == self.iteration

    def start(self) -> None:
        """Evaluate the objective for the first time; raise a FloatingPointError if it is not finite."""
        self.core.start()
        if not np.isfinite(self.core.record[:2]).all():
            self._raise_overflow(self.problem.data)
        self.slices.append((-1, np.array([self.core.record])))

    def advance(self, until: int) -> str:
        """Iterate up to an iteration of the current stage, but not longer than a slice; return the core's status.

        Ranks must make equally many iterations: the root estimates how many a slice has.
        """
        self.trim()
        count = min(max(min(until, self.stage_end) - self.iteration, 0), SLICE_ITERATIONS)
        seconds = SLICE_SECONDS
        if self.ranks.size > 1:
            count, seconds = self.ranks.broadcast(lambda: min(count, self.pace)), math.inf
        rows, before, started = np.empty((count, len(EVERY_ITERATION))), self.iteration, time.perf_counter()
        self.slices.append((before, rows))
        self.core.run(rows, seconds)
        iterations, elapsed = max(self.iteration - before, 1), time.perf_counter() - started
        self.pace = max(1, min(MAX_SLICE_GROWTH * iterations, int(SLICE_SECONDS / elapsed * iterations)))
        return self.core.status

    def trim(self) -> None:
        """Leave only those rows of the last slice that were written."""
        if self.slices:
            first, rows = self.slices[-1]
            self.slices[-1] = first, rows[: self.iteration - first]

    def next_stage(self) -> bool:
        """Begin with the next optimiser; return False if there is none, or no iteration left."""
        number = self.stage.number + 1
        if number == len(self.optimisers) or self.iteration >= self.max_iter:
            return False
        self.trim()
        core = self.problem.start(self.core.controls(), self.optimisers[number][0], self.seed, self.seconds)
        core.start()
        self.stage = Stage(number, Before(self.iteration, self.n_evals), core)
        return True

    def evaluate(self) -> Evaluated:
        """Return score, validation loss and validation score at the current controls."""
        problem, core = self.problem, self.core
        _, score = core.assess(problem.samples, False)
        val_loss, val_score = math.nan, math.nan
        if problem.validation is not None and problem.validation_samples is not None:
            val_loss, val_score = core.assess(problem.validation_samples, True)
            if self.iteration == 0 and not math.isfinite(val_loss):
                try:
                    self._raise_overflow(problem.validation)
                except FloatingPointError as error:
                    raise FloatingPointError(f"validation: {error}") from error
        return Evaluated(self.iteration, score, val_loss, val_score, self.controls.h.copy())

    def _raise_overflow(self, data: Data) -> NoReturn:
        """Raise an error that names the first sample that is not finite, on any rank."""
        reason = self._search(overflow.describe_overflow, data, self.core.controls())
        raise FloatingPointError(reason or overflow.describe_later_overflow(self.problem.net.dtype))

    def find_unsolved_stages(self) -> str | None:
        """Return which stage equations made the last trial fail, on any rank; None if none did."""
        trial = self.core.nonfinite_trial()
        return None if trial is None else self._search(overflow.describe_unsolved_stages, self.problem.data, trial)

    def _search(self, search: Callable[..., str | None], data: Data, vector: FloatArray) -> str | None:
        """Return what `search` finds in the flow of the samples, on the first rank where it finds anything."""
        core_network, own = self.problem.net._core_network, None
        controls, states = self.split(vector)
        chunks = data.chunks()
        if states is not None and isinstance(data, WindowData):
            core_network, chunks = _core.with_whole_states(core_network), iter([(0, data.rows_from(states))])
        for first, rows in chunks:
            own = own or search(core_network, controls._vector, rows, first)
        return next((reason for reason in self.ranks.allgather(own) if reason is not None), None)

    def last_evaluation(self) -> Evaluated:
        """Return the evaluation at the current controls, computed once."""
        return self.evaluated[-1] if self.is_evaluated else self.evaluate()

    def note_evaluation(self, *, keep_best: bool) -> None:
        """Evaluate, and with `keep_best` keep the controls where the validation loss has become lower."""
        evaluated = self.evaluate()
        if keep_best:
            best = self.best
            if best is None or is_lower(evaluated.val_loss, best.val_loss):
                self.best = Best(evaluated.val_loss, self.core.controls(), 0)
            else:
                self.best = best._replace(stalled=best.stalled + 1)
        self.evaluated.append(evaluated)

    def records(self) -> FloatArray:
        """Return the rows of all iterations, that of the start first."""
        self.trim()
        rows = [rows for _, rows in self.slices]
        return np.concatenate(rows) if rows else np.array([self.core.record])

    def history(self, last: Evaluated | None) -> History:
        """Return the history up to now, with an evaluation of the last iterate if there is one."""
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
