"""Samples in memory whose initial states are learned."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from ocdl import _core
from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.data.array_data import ArrayData
from ocdl.distributed.ranks import Ranks
from ocdl.model.initial_states import InitialStates
from ocdl.model.objective import Objective
from ocdl.network import Network


class WindowData(ArrayData):
    """Arrays of samples that start where the training learns it; entries of X that are NaN start at 0."""

    def __init__(
        self,
        net: Network,
        objective: Objective,
        X: Any,
        y: Any,
        sample_weight: Any,
        inputs: Any,
        initial_states: InitialStates,
        h: FloatArray | None,
    ) -> None:
        if objective._loss.is_custom:
            raise ValueError("initial_states needs a loss of ocdl; a custom loss cannot be combined with it")
        observed = validation.plain_array(X, "X", net.dtype)
        filled = np.where(np.isnan(observed), net.dtype.type(0), observed)
        super().__init__(net, objective, filled, y, sample_weight, inputs, 1, h)
        self._observed, self._options = self.X.copy(), initial_states
        self._observed[:, : net.n_features] = observed
        self._windows = initial_states._windows(len(self))

    def evaluator(self, core_objective: _core.Objective) -> _core.Evaluator:
        options, continuity = self._options, self._options.continuity_weight or 0.0
        return _core.initial_states_evaluator(
            self.net._core_network,
            self._observed,
            self.y,
            self.sample_weight,
            core_objective,
            float(options.weight),
            float(continuity),
            self._windows,
        )

    def initial_states(self) -> FloatArray:
        states = np.zeros((len(self), self.net.dim), self.net.dtype)
        states[:, : self.net.n_features] = self.X[:, : self.net.n_features]
        return states

    def rows_from(self, states: FloatArray) -> FloatArray:
        """Return the rows of the network with whole states: these states, and the inputs."""
        return np.concatenate([states, self.X[:, self.net.n_features :]], axis=1)

    def digest(self, ranks: Ranks) -> str:
        own = f"{super().digest(ranks)} {np.flatnonzero(np.isnan(self._observed)).tolist()}"
        return hashlib.sha256(own.encode()).hexdigest()
