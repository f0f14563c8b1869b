"""Epochs: one epoch of Adam for `partial_fit`, and the history of mini-batches by epochs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ocdl.base.validation import LabelArray
from ocdl.distributed.ranks import Ranks
from ocdl.estimator.samples import Samples
from ocdl.estimator.settings import resolve_optimiser
from ocdl.model.controls import Controls
from ocdl.model.objective import Objective
from ocdl.network import Network
from ocdl.training.history import EVERY_ITERATION, SPARSE, History
from ocdl.training.optimisers import Adam
from ocdl.training.problem import Problem

DEFAULT_BATCH = 200
AVERAGES = ("steps", "first_moment", "second_moment")


def resolve_adam(optimiser: Any, learning_rate: Any, batch_size: Any) -> Adam:
    """Return the Adam that the parameters of an estimator describe; another method is an error."""
    adam = resolve_optimiser("adam" if optimiser is None else optimiser, learning_rate, batch_size)
    if not isinstance(adam, Adam):
        raise ValueError(f"partial_fit runs epochs of Adam, got optimiser={optimiser!r}; leave it out, or call fit")
    is_object = not isinstance(optimiser, (str, type(None)))
    return adam if is_object or batch_size is not None else replace(adam, batch_size=DEFAULT_BATCH)


@dataclass(frozen=True, eq=False)
class AdamState:
    """The state of Adam between two calls of `partial_fit`."""

    adam: Adam
    seed: int
    total_weight: float = 0.0
    averages: dict[str, Any] = field(default_factory=dict)


def run_epoch(
    net: Network, u: Controls, samples: Samples, objective: Objective, state: AdamState
) -> tuple[Controls, AdamState]:
    """Return controls and state after one epoch over these samples."""
    X, y, weights, _ = samples
    problem = Problem.from_arguments(Ranks(), net, X, y, objective, weights, None, None, (), 0.0, 0.0)
    training = problem.start(net._vector(u).copy(), state.adam, state.seed)
    training.start()
    training.restore(training.state() | state.averages)
    steps = math.ceil(len(X) / min(state.adam.batch_size or len(X), len(X)))
    training.run(np.empty((steps, len(EVERY_ITERATION))), math.inf)
    averages = training.state()
    return (
        Controls(net._layout, training.controls()),
        replace(state, averages={name: averages[name] for name in AVERAGES}),
    )


def group_by_epochs(history: History, steps: int) -> History:
    """Return the history with a row per epoch of `steps` iterations: means of the losses and gradient norms."""
    if steps == 1:
        return history
    epochs = -(-np.arange(len(history)) // steps)
    first = np.flatnonzero(np.diff(epochs, prepend=-1))
    last = np.append(first[1:], len(history)) - 1
    counts = last - first + 1

    def means(values: Any) -> Any:
        return np.add.reduceat(values, first) / counts

    evaluated: LabelArray = epochs[history.evaluated]
    kept = np.append(evaluated[1:] != evaluated[:-1], True)
    return History(
        loss=means(history.loss),
        gradient_norm=means(history.gradient_norm),
        lipschitz=history.lipschitz[last],
        trials=np.add.reduceat(history.trials, first),
        seconds=history.seconds[last],
        evaluated=evaluated[kept],
        **{name: getattr(history, name)[kept] for name in SPARSE},
        score_name=history.score_name,
    )
