"""The plan of a fit, and its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ocdl.base.validation import FloatArray, LabelArray
from ocdl.estimator import defaults
from ocdl.estimator.epochs import AdamState
from ocdl.estimator.prior import prior
from ocdl.estimator.samples import Samples
from ocdl.estimator.subspace import project, unit_components
from ocdl.estimator.targets import Targets
from ocdl.model.controls import Controls
from ocdl.model.objective import Objective
from ocdl.model.penalties import Penalty
from ocdl.network import Network
from ocdl.training.checkpoint import Checkpoint
from ocdl.training.failure import Diagnosis
from ocdl.training.history import History
from ocdl.training.optimisers import LBFGS, Chain, Optimiser
from ocdl.training.validation import Validation
from ocdl.training.watching import TrainingState

MAX_PAIRS_BYTES = 2**30  # that the pairs of L-BFGS may take

Callback = Callable[[TrainingState], Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class FitPlan:
    """Everything that a fit depends on; `fit_network` needs nothing else.

    Attributes
    ----------
    samples : Samples
        Rows with targets in the form of the loss; with a communicator, the rows of this rank.
    probe : Samples
        A sample of all rows, the same on every rank, for the choice of `alpha`; without a communicator, all rows.
    targets : Targets
        The classes, or the scale of the numbers.
    start : Controls
        The initial controls; with `is_warm` there is no phase with a weak prior.
    alpha : float or {"auto", "cv"}
        The factor of the prior, or how it is chosen.
    noise : float
        The variance of the noise in the targets, which the prior is relative to.
    penalties : Penalty, sequence of Penalty or None
        Penalties that replace the prior.
    optimiser : Optimiser, Chain or None
        None: L-BFGS, with as many pairs as fit into memory.
    max_iter : int
        Iterations; with mini-batches epochs.
    components : ndarray of shape (components, features) or None
        The subspace in which samples and network are; None: that of all columns.
    selects_columns : bool
        Whether the choice of `alpha` may leave columns out.
    adam : AdamState or None
        The state after the epochs before; if it is given, the fit is one more epoch of Adam.
    """

    samples: Samples
    probe: Samples
    targets: Targets
    network: Network
    start: Controls
    loss: Any
    alpha: float | str
    noise: float
    seed: int
    penalties: Penalty | Sequence[Penalty] | None = None
    optimiser: Optimiser | Chain | None = None
    max_iter: int = defaults.MAX_ITER
    tol: float = defaults.TOL
    rtol: float = 0.0
    is_warm: bool = False
    validation: Validation | None = None
    callback: Callback | None = None
    progress: bool = False
    threads: int | None = None
    communicator: Any = None
    checkpoint: Checkpoint | None = None
    adam: AdamState | None = None
    components: FloatArray | None = None
    selects_columns: bool = False

    def __post_init__(self) -> None:
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback must be callable, got {type(self.callback).__name__}")

    @cached_property
    def method(self) -> Optimiser | Chain:
        """The optimiser."""
        if self.optimiser is not None:
            return self.optimiser
        pairs = MAX_PAIRS_BYTES // (2 * 8 * max(self.network.n_controls, 1)) - 1
        return LBFGS(memory=int(np.clip(pairs, 3, defaults.OPTIMISER.memory)))

    @property
    def factor(self) -> float:
        """The factor of the prior, once it is chosen."""
        assert not isinstance(self.alpha, str)
        return self.alpha

    @property
    def steps_per_epoch(self) -> int:
        """Iterations for all rows; 1 without mini-batches, and for a chain, whose iterations count."""
        batch = getattr(self.method, "batch_size", None)
        rows = len(self.samples.X) if self.communicator is None else round(self.samples.total)
        return 1 if batch is None else math.ceil(rows / min(batch, rows))

    def objective(self, *, weak: bool = False) -> Objective:
        """Return the objective: the loss with the prior, or with the penalties that replace it."""
        penalties = self.penalties
        if penalties is None and self.factor != 0:
            total = self.samples.total if self.adam is None else self.adam.total_weight
            penalties = prior(self.network, total, self.factor, noise=self.noise, weak=weak)
        return Objective(self.loss, penalties=penalties)

    def for_fold(self, kept: Samples, **changes: Any) -> FitPlan:
        """Return the plan for a subset of the samples, without a callback and without progress."""
        unwatched: dict[str, Any] = {"validation": None, "callback": None, "progress": False}
        alone: dict[str, Any] = {"communicator": None, "checkpoint": None, "optimiser": None}
        return replace(self, samples=kept, probe=kept, **unwatched, **alone, **changes)

    def restrict(self, columns: LabelArray) -> FitPlan:
        """Return the plan for some of the columns, with new initial controls."""
        components = unit_components(columns, self.samples.X.shape[1])
        network = replace(self.network, n_features=len(columns))
        evaluated, samples = self.validation, self.samples.project(components)
        return replace(
            self,
            samples=samples,
            probe=samples if self.probe is self.samples else self.probe.project(components),
            network=network,
            start=network.init(random_state=self.seed, scheme="scaled"),
            validation=evaluated and replace(evaluated, X=project(np.asarray(evaluated.X), components)),
            components=components if self.components is None else components @ self.components,
        )


@dataclass(frozen=True, eq=False)
class FittedNetwork:
    """What a fit returns; iterations are epochs with mini-batches."""

    targets: Targets
    network: Network
    controls: Controls
    alpha: float
    n_iter: int
    diagnosis: Diagnosis | None = None
    history: History | None = None
    message: str = ""
    adam: AdamState | None = None
    components: FloatArray | None = None
    importances: FloatArray | None = None
