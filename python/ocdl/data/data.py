"""The interface between a training and its samples, in memory or out of core."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from typing import Any, Self

from ocdl import _core
from ocdl.base.validation import FloatArray
from ocdl.distributed.ranks import Ranks
from ocdl.distributed.row_distribution import RowDistribution
from ocdl.model.objective import Objective
from ocdl.model.observations import ObservedTargets
from ocdl.network import Network

Samples = tuple[FloatArray, Any, FloatArray | None]  # X, targets and, if given, weights


class Data(ABC):
    """Samples for one network and objective: all of them, or those of this rank."""

    distribution: RowDistribution | None = None  # None: all rows are here

    def __init__(self, net: Network, objective: Objective) -> None:
        self.net, self.objective = net, objective

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows of this rank."""

    @property
    @abstractmethod
    def first_row(self) -> int:
        """The index of the first row of this rank among all rows."""

    @property
    @abstractmethod
    def is_weighted(self) -> bool:
        """Whether the samples have weights."""

    def initial_states(self) -> FloatArray | None:
        """Return where initial states that are learned begin, (samples, dim)."""
        return None

    @property
    @abstractmethod
    def observed(self) -> ObservedTargets | None:
        """The times of the targets, where these are observations."""

    @abstractmethod
    def evaluator(self, core_objective: _core.Objective) -> _core.Evaluator:
        """Return the objective on the rows of all ranks, as an optimiser sees it."""

    @abstractmethod
    def chunks(self) -> Iterator[tuple[int, FloatArray]]:
        """Yield X in chunks, each after the index of its first row among all rows."""

    @abstractmethod
    def labels(self) -> tuple[Any, FloatArray | None]:
        """Return targets and weights; of a source those of evenly spaced rows."""

    @abstractmethod
    def spaced_rows(self, count: int) -> Samples:
        """Return about so many rows, evenly spaced among all rows: those on this rank; of a source all of them."""

    @abstractmethod
    def digest(self, ranks: Ranks) -> str:
        """Return what identifies the samples of all ranks."""

    def distribute(self, ranks: Ranks, name: str) -> Self:
        """Return the data with the distribution of their rows over the ranks; collective."""
        distribution = ranks.row_distribution(len(self), name)
        if distribution is None:
            return self
        self._require_distribution(distribution, name)
        distributed = copy(self)
        distributed.distribution = distribution
        return distributed

    @abstractmethod
    def _require_distribution(self, distribution: RowDistribution, name: str) -> None:
        """Raise if the rows of all ranks together are not valid."""
