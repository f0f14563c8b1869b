"""Callback and progress bar of a training, called rarely enough to cost little."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from ocdl.model.controls import Controls
from ocdl.training.session import Session

__all__ = ["TrainingState"]

MAX_TIME_FRACTION = 0.005  # of the training, for callback and bar
MIN_PAUSE = 0.1  # seconds


@dataclass(frozen=True)
class TrainingState:
    """The state of a training, for a callback.

    `score`, `val_loss` and `val_score` are those of the last evaluation, see `eval_every`; NaN before the first one,
    or without validation data.

    Attributes
    ----------
    iteration : int
    loss, gradient_norm : float
        Of the last complete iteration.
    seconds : float
        Since the start.
    n_evals : int
        Evaluations of the objective with its gradient.
    controls : Controls
        A copy.
    score, val_loss, val_score : float
        Those of the last evaluation.

    Examples
    --------
    >>> import ocdl
    >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
    >>> net = ocdl.Network(2, 5)
    >>> def enough(state):
    ...     print(state.iteration, state.n_evals >= 20, state.loss > 0, state.gradient_norm > 0, state.seconds > 0)
    ...     print(state.controls.K.shape, state.score > 0.5, state.val_loss, state.val_score)
    >>> r = ocdl.train(net, net.init(random_state=0), X, y, max_iter=20, callback=enough)
    20 True True True True
    (5, 2, 2) True nan nan
    """

    iteration: int
    loss: float
    gradient_norm: float
    seconds: float
    n_evals: int
    controls: Controls
    score: float
    val_loss: float
    val_score: float


class Monitor:
    """Calls the callback and moves the progress bar, at most ten times a second."""

    def __init__(self, callback: Callable[[TrainingState], Any] | None, progress: bool, max_iter: int) -> None:
        self._callback, self._progress, self._max_iter = callback, progress, max_iter
        self._bar: Any = None
        self._next_poll = time.perf_counter() + MIN_PAUSE

    def __enter__(self) -> Self:
        if self._progress:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=self._max_iter, unit="it", desc="training")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def poll(self, session: Session, *, last: bool = False) -> bool:
        """Show the state of the session if it is time to; return whether the callback ends the training."""
        started = time.perf_counter()
        if self._callback is None and self._bar is None:
            return False
        if started < self._next_poll and not last:
            return False
        loss, gradient_norm, *_ = session.core.record
        if self._bar is not None:
            self._bar.set_postfix_str(_summary(session, loss), refresh=False)
            self._bar.update(session.iteration - self._bar.n)
            if last:
                self._bar.refresh()
        is_ended = False
        if self._callback is not None:
            evaluated = session.evaluated[-1] if session.evaluated else None
            state = TrainingState(
                session.iteration,
                loss,
                gradient_norm,
                session.seconds,
                session.n_evals,
                session.controls,
                *((math.nan,) * 3 if evaluated is None else evaluated[1:4]),
            )
            is_ended = bool(self._callback(state))
        now = time.perf_counter()
        self._next_poll = now + max(MIN_PAUSE, (now - started) / MAX_TIME_FRACTION)
        return is_ended


def _summary(session: Session, loss: float) -> str:
    """Return the text of the bar: the loss, and the score of the last evaluation with its iteration, if it has one."""
    text = f"loss {loss:.4g}"
    if session.evaluated and not math.isnan(session.evaluated[-1].score):
        text += f", {session.problem.objective.score_name} {session.evaluated[-1].score:.4g}"
        text += "" if session.is_evaluated else f" at iteration {session.evaluated[-1].iteration}"
    return text
