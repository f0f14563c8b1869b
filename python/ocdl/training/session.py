"""A training in progress: the core's loop, stage by stage, and the records it leaves."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from ocdl import _core
from ocdl.base import validation
from ocdl.base.memory import in_units
from ocdl.base.validation import FloatArray
from ocdl.distributed.ranks import Ranks
from ocdl.distributed.row_distribution import RowDistribution
from ocdl.model import overflow
from ocdl.model.controls import Controls
from ocdl.model.losses import Loss
from ocdl.model.objective import Objective
from ocdl.model.own_loss import LossesOfRows
from ocdl.network import Network
from ocdl.streaming.streamed import Streamed
from ocdl.training.history import EVERY_ITERATION, History
from ocdl.training.optimisers import Optimiser

Found = TypeVar("Found")

SLICE_SECONDS = 0.05  # after which the core comes back between two iterations, so that somebody can look
SLICE_ITERATIONS = 4096
LONGER = 4  # times as many iterations as in the last slice, at most


@dataclass(frozen=True)
class Problem:
    """What is trained, on what: arguments of `train` that are checked already.

    Where X are the rows of a source, their targets and weights come with them.
    """

    net: Network
    X: FloatArray | Streamed
    y: Any
    sample_weight: FloatArray | None
    objective: Objective
    validation: tuple[FloatArray | Streamed, Any] | None
    frozen: tuple[str, ...]
    tol: float
    rtol: float
    ranks: Ranks = field(default_factory=Ranks)
    row_distribution: RowDistribution | None = None  # None: X has the rows of all ranks
    validation_distribution: RowDistribution | None = None

    def distributed(self) -> Problem:
        """Return the problem with the distribution of its rows over the ranks; collective."""
        distribution = self._row_distribution(self.X, "X")
        if distribution is None:
            return self
        if self.sample_weight is not None:
            total = distribution.allreduce_sum(self.sample_weight.astype(np.float64).reshape(-1, 1))
            is_mean = self.objective.reduction == "mean"
            validation.require_total_weight(float(total[0]), self.net.dtype, mean=is_mean)
        of_validation = None
        if self.validation is not None:
            of_validation = self._row_distribution(self.validation[0], "the X of validation")
        return replace(self, row_distribution=distribution, validation_distribution=of_validation)

    def _row_distribution(self, X: FloatArray | Streamed, name: str) -> RowDistribution | None:
        distribution = self.ranks.row_distribution(len(X), name)
        if distribution is not None and isinstance(X, Streamed) and X.all_rows != distribution.all_rows:
            raise ValueError(
                f"{name} is a source of {X.all_rows} rows, and other ranks have one of another length: take the same"
            )
        return distribution

    @cached_property
    def samples(self) -> _core.Evaluator:
        """The objective on the training data, as the core's optimisers see it."""
        objective = self.objective._core_objective
        return self._evaluator(objective, self.X, self.y, self.sample_weight, self.row_distribution)

    @cached_property
    def smooth_samples(self) -> _core.Evaluator:
        """The objective without penalties that have no gradient, for optimisers that take their proximal map."""
        if not self.objective._nonsmooth_terms:
            return self.samples
        objective = self.objective._core_objective.smooth_part()
        return self._evaluator(objective, self.X, self.y, self.sample_weight, self.row_distribution)

    @cached_property
    def validation_samples(self) -> _core.Evaluator | None:
        """The objective on the validation data, where there is some."""
        if self.validation is None:
            return None
        return self._evaluator(self.objective._core_objective, *self.validation, None, self.validation_distribution)

    def _evaluator(
        self,
        core_objective: _core.Objective,
        X: FloatArray | Streamed,
        y: Any,
        weights: FloatArray | None,
        distribution: RowDistribution | None,
    ) -> _core.Evaluator:
        if isinstance(X, Streamed):
            return X.evaluator(core_objective, None if distribution is None else distribution.allreduce_nodes)
        core_network = self.net._core_network
        if distribution is not None:
            rows = distribution.first_row, distribution.all_rows, distribution.allreduce_nodes
            record = self.objective.record
            own = None if isinstance(record, Loss) else LossesOfRows(record, y, weights)
            return _core.shards_evaluator(core_network, X, y, weights, core_objective, *rows, own)
        if isinstance(self.objective.record, Loss):
            return _core.samples_evaluator(core_network, X, y, weights, core_objective)
        on_samples = self.objective._on_samples(y, weights, len(X))
        return _core.outside_loss_evaluator(core_network, X, core_objective, on_samples.evaluate, on_samples.score)

    def start(self, vector: FloatArray, optimiser: Optimiser, seed: int, seconds: float = 0.0) -> _core.Training:
        """Return the core's loop, still without its first evaluation; `seconds` is what optimisers took before."""
        method = optimiser._core_method(seed)
        try:
            return _core.make_training(
                self.net._core_network,
                self.smooth_samples if method.is_proximal else self.samples,
                vector,
                method,
                list(self.frozen),
                self.net.time_steps == "simplex" and "h" not in self.frozen,
                self.tol,
                self.rtol,
                seconds,
                self.objective._core_objective,
            )
        except MemoryError as error:
            size = in_units(optimiser._vectors * vector.nbytes)
            raise MemoryError(f"the vectors of {optimiser} take {size}, which the system refuses") from error


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
        self.ranks, self.is_stopped, self.pace = problem.ranks, False, 1
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

    def look_for_a_stop(self) -> bool:
        """Whether somebody has asked to stop, on whichever rank."""
        self.is_stopped = self.is_stopped or self.ranks.allreduce_any(self.stop.requested)
        return self.is_stopped

    def _in_step(self, compute: Callable[[], Found]) -> Found | None:
        """Return what the core computes, on all ranks or, if it was stopped, on none."""
        found = self.ranks.run_collectively(compute)
        self.is_stopped = self.is_stopped or not found
        return found

    def start(self) -> bool:
        """Evaluate the objective for the first time; raise if it is not finite. False if it was stopped."""
        if not self._in_step(lambda: self.core.start(self.stop)):
            return False
        if not np.isfinite(self.core.record[:2]).all():
            self._report_overflow(self.problem.X, self.problem.row_distribution)
        self.slices.append((-1, np.array([self.core.record])))
        return True

    def advance(self, until: int) -> str:
        """Iterate up to an iteration of the current stage, for a moment at most; return the core's status.

        With other ranks a moment is a number of iterations, for which the first rank looks at its clock.
        """
        self.trim()
        most = min(max(min(until, self.stage_end) - self.iteration, 0), SLICE_ITERATIONS)
        seconds = SLICE_SECONDS
        if self.ranks.size > 1:
            most, seconds = self.ranks.broadcast(lambda: min(most, self.pace)), math.inf
        rows, before, started = np.empty((most, len(EVERY_ITERATION))), self.iteration, time.perf_counter()
        self.slices.append((before, rows))
        self._in_step(lambda: self.core.run(rows, seconds, self.stop))
        made, elapsed = max(self.iteration - before, 1), time.perf_counter() - started
        self.pace = max(1, min(LONGER * made, int(SLICE_SECONDS / elapsed * made)))
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
        core = self.problem.start(self.core.controls(), self.optimisers[number][0], self.seed, self.seconds)
        if self._in_step(lambda: core.start(self.stop)):
            self.stage = Stage(number, Before(self.iteration, self.n_evals), core)
        return True

    def evaluate(self) -> Evaluated | None:
        """Return score and validation at the current controls; None if that was stopped."""
        problem, core = self.problem, self.core
        training = self._in_step(lambda: core.assess(problem.samples, False, self.stop))
        if training is None:
            return None
        seen, looked_at = (math.nan, math.nan), problem.validation_samples
        if looked_at is not None:
            found = self._in_step(lambda: core.assess(looked_at, True, self.stop))
            if found is None:
                return None
            seen = found
        if problem.validation is not None and self.iteration == 0 and not math.isfinite(seen[0]):
            try:
                self._report_overflow(problem.validation[0], problem.validation_distribution)
            except FloatingPointError as error:
                raise FloatingPointError(f"validation: {error}") from error
        return Evaluated(self.iteration, training[1], *seen, self.controls.h.copy())

    def _report_overflow(self, X: FloatArray | Streamed, distribution: RowDistribution | None) -> NoReturn:
        """Raise an error that names the first sample that is not finite, on whichever rank it is."""
        first_row = 0 if distribution is None else distribution.first_row
        own = None
        for first, rows in X.pieces() if isinstance(X, Streamed) else [(first_row, X)]:
            own = own or overflow.found(self.problem.net._core_network, self.core.controls(), rows, first)
        reasons = [reason for reason in self.ranks.allgather(own) if reason is not None]
        raise FloatingPointError(reasons[0] if reasons else overflow.behind_the_flow(self.problem.net.dtype))

    def find_unsolved_stages(self) -> str | None:
        """Return a sentence about the stages because of which the last trial failed, on whichever rank; else None."""
        trial, net = self.core.nonfinite_trial(), self.problem.net._core_network
        distribution = self.problem.row_distribution
        if trial is None:
            return None
        X, own = self.problem.X, None
        first_row = 0 if distribution is None else distribution.first_row
        for first, rows in X.pieces() if isinstance(X, Streamed) else [(first_row, X)]:
            own = own or overflow.unsolved_stages(net, trial, rows, first)
        return next((reason for reason in self.ranks.allgather(own) if reason is not None), None)

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
