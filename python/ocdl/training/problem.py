"""The checked arguments of `train`: network, objective and data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ocdl import _core
from ocdl.base import validation as checks
from ocdl.base.memory import format_bytes
from ocdl.base.validation import FloatArray
from ocdl.data.array_data import ArrayData
from ocdl.data.data import Data
from ocdl.data.row_source import Rows, is_source
from ocdl.data.source_data import SourceData
from ocdl.data.window_data import WindowData
from ocdl.distributed.ranks import Ranks
from ocdl.model.controls import Controls
from ocdl.model.initial_states import InitialStates
from ocdl.model.objective import Objective
from ocdl.network import Network
from ocdl.training.optimisers import Optimiser
from ocdl.training.validation import Validation


@dataclass(frozen=True)
class Problem:
    """Network, objective and data of a training."""

    net: Network
    objective: Objective
    data: Data
    validation: Data | None
    frozen: tuple[str, ...]
    tol: float
    rtol: float
    ranks: Ranks
    initial_states: InitialStates | None = None

    @classmethod
    def from_arguments(
        cls,
        ranks: Ranks,
        net: Network,
        X: ArrayLike | Rows,
        y: Any,
        objective: Objective,
        sample_weight: ArrayLike | None,
        inputs: ArrayLike | None,
        validation: Validation | None,
        freeze: Iterable[str],
        tol: float,
        rtol: float,
        initial_states: InitialStates | None = None,
        h: FloatArray | None = None,
    ) -> Problem:
        """Check the arguments; errors name them. The steps h are those of the start; None: of the horizon."""
        if initial_states is None:
            data = _make_data(ranks, net, objective, X, y, sample_weight, inputs, "X", h)
        else:
            data = _make_windows(ranks, net, objective, X, y, sample_weight, inputs, initial_states, h)
        val_data = None
        if validation is not None:
            given = validation.X, validation.y, validation.sample_weight, validation.inputs
            try:
                val_data = _make_data(ranks, net, objective, *given, "the X of validation", h)
            except (TypeError, ValueError) as error:
                raise type(error)(f"validation: {error}") from error
        tol, rtol = checks.not_negative(tol, "tol"), checks.not_negative(rtol, "rtol")
        return cls(net, objective, data, val_data, _resolve_frozen_parts(net, freeze), tol, rtol, ranks, initial_states)

    def distribute(self) -> Problem:
        """Return the problem with the distribution of its rows over the ranks; collective."""
        validation = self.validation
        return replace(
            self,
            data=self.data.distribute(self.ranks, "X"),
            validation=None if validation is None else validation.distribute(self.ranks, "the X of validation"),
        )

    @cached_property
    def samples(self) -> _core.Evaluator:
        """The objective on the training data, as an optimiser sees it."""
        return self.data.evaluator(self.objective._core_objective)

    @cached_property
    def smooth_samples(self) -> _core.Evaluator:
        """The objective without nonsmooth penalties, for optimisers that take their proximal map."""
        if not self.objective._nonsmooth_penalties:
            return self.samples
        return self.data.evaluator(self.objective._core_objective.smooth_part())

    @cached_property
    def validation_samples(self) -> _core.Evaluator | None:
        """The objective on the validation data, if there are any."""
        return None if self.validation is None else self.validation.evaluator(self.objective._core_objective)

    def start(self, vector: FloatArray, optimiser: Optimiser, seed: int, seconds: float = 0.0) -> _core.Training:
        """Return the loop of the core before its first evaluation; `seconds` is the time of earlier optimisers."""
        method = optimiser._core_method(seed)
        try:
            return _core.make_training(
                self.net._core_network,
                self.smooth_samples if method.is_proximal else self.samples,
                vector,
                method,
                list(self.frozen),
                self.net.time_steps == "simplex" and "h" not in self.frozen,
                self._singular_value_bounds(vector),
                self.tol,
                self.rtol,
                seconds,
                self.objective._core_objective,
            )
        except MemoryError as error:
            size = format_bytes(optimiser._vectors * vector.nbytes)
            raise MemoryError(f"the vectors of {optimiser} need {size}, which the system refuses") from error

    def _singular_value_bounds(self, vector: FloatArray) -> list[float]:
        """Return the bound of each set of controls, of a network that expands no distance; else none."""
        if not self.net.nonexpansive:
            return []
        bounds = self.net._singular_value_bounds(Controls(self.net._layout, vector[: self.net.n_controls]).h)
        return [] if np.all(np.isinf(bounds)) else bounds.tolist()


def _make_data(
    ranks: Ranks,
    net: Network,
    objective: Objective,
    X: Any,
    y: Any,
    sample_weight: Any,
    inputs: Any,
    name: str,
    h: FloatArray | None,
) -> Data:
    if not is_source(X):
        return ArrayData(net, objective, X, y, sample_weight, inputs, ranks.min_rows, h)
    for other, given in (("y", y), ("sample_weight", sample_weight), ("inputs", inputs)):
        if given is not None:
            raise TypeError(f"{other} must be left out with a source, whose rows carry it")
    return SourceData(net, objective, X, ranks, name, h)


def _make_windows(
    ranks: Ranks,
    net: Network,
    objective: Objective,
    X: Any,
    y: Any,
    sample_weight: Any,
    inputs: Any,
    initial_states: InitialStates,
    h: FloatArray | None,
) -> Data:
    if not isinstance(initial_states, InitialStates):
        given = checks.format_with_type(initial_states)
        raise TypeError(f"initial_states must be an ocdl.InitialStates, got {given}")
    if is_source(X):
        raise TypeError("initial_states needs X in memory: the states of a RowSource are not learned")
    if ranks.size > 1:
        raise ValueError("initial_states needs all samples on one rank: leave communicator out")
    return WindowData(net, objective, X, y, sample_weight, inputs, initial_states, h)


def _resolve_frozen_parts(net: Network, freeze: Iterable[str]) -> tuple[str, ...]:
    known = [part.name for part in net.parts]
    collection = checks.collection_of_names(freeze, "freeze", ("W", "mu"))
    names = [checks.choice(name, "freeze", known) for name in collection]
    return tuple(part for part in known if part in names)
