"""Adam, an epoch at a time: for rows that come in portions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ocdl import _core
from ocdl.estimator.samples import Samples
from ocdl.estimator.settings import optimiser_of
from ocdl.model.controls import Controls
from ocdl.model.objective import Objective
from ocdl.network import Network
from ocdl.training.history import EVERY_ITERATION
from ocdl.training.optimisers import Adam
from ocdl.training.session import Problem

DEFAULT_BATCH = 200
KEPT = ("steps", "first_moment", "second_moment")


def adam_of(optimiser: Any, learning_rate: Any, batch_size: Any) -> Adam:
    """Return the Adam that the parameters of an estimator ask for; they may not ask for another method."""
    chosen = optimiser_of("adam" if optimiser is None else optimiser, learning_rate, batch_size)
    if not isinstance(chosen, Adam):
        raise ValueError(f"partial_fit makes epochs of Adam, got optimiser={optimiser!r}; leave it out, or call fit")
    is_object = not isinstance(optimiser, (str, type(None)))
    return chosen if is_object or batch_size is not None else replace(chosen, batch_size=DEFAULT_BATCH)


class AdamEpochs:
    """What Adam carries from one portion of the rows to the next."""

    def __init__(self, adam: Adam, seed: int) -> None:
        self.adam, self.seed = adam, seed
        self.rows_seen = 0.0
        self._averages: dict[str, Any] = {}

    def run(self, net: Network, u: Controls, samples: Samples, objective: Objective) -> tuple[Controls, int]:
        """Return the controls after one epoch over these samples, and the steps that were made."""
        X, y, weights, _ = samples
        problem = Problem(net, X, y, weights, objective, None, (), 0.0, 0.0)
        vector, *_ = net._problem(u, X, y, objective, weights)
        training = problem.start(vector.copy(), self.adam, self.seed)
        stop = _core.StopFlag()
        training.start(stop)
        training.restore(training.state() | self._averages)
        steps = math.ceil(len(X) / min(self.adam.batch_size or len(X), len(X)))
        training.run(np.empty((steps, len(EVERY_ITERATION))), math.inf, stop)
        state = training.state()
        self._averages = {name: state[name] for name in KEPT}
        return Controls(net._layout, training.controls()), steps
