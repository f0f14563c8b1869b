"""The arguments that calls of a network share, checked and converted to what the core takes."""

from __future__ import annotations

from typing import Any, cast

from numpy.typing import ArrayLike

from ocdl.base import memory, validation
from ocdl.base.names import pluralise
from ocdl.base.validation import FloatArray
from ocdl.model.architecture import Architecture
from ocdl.model.controls import Controls
from ocdl.model.inputs import join_direction, join_inputs, require_no_inputs
from ocdl.model.objective import Objective
from ocdl.model.observations import Observations, validate_targets
from ocdl.model.penalties import GroupL1, Kinetic

LEFT_OUT = cast(ArrayLike, ...)  # so that the error of a call without controls mentions the controls


class CallArguments(Architecture):
    """Checks samples, inputs, targets, weights, directions and objectives against an architecture."""

    def _joined(self, X: ArrayLike, inputs: ArrayLike | None, minimum: int = 1) -> ArrayLike:
        """Return the samples with their inputs, see `join_inputs`; X itself, unchecked, if the network takes none."""
        if self.n_inputs:
            _require_samples(X)
            return join_inputs(self, X, inputs, minimum=minimum)
        require_no_inputs(inputs)
        return X

    def _samples(self, X: ArrayLike, minimum: int = 1) -> FloatArray:
        """Return samples that have been joined with their inputs."""
        _require_samples(X)
        return validation.samples(X, self._core_network.row_size, self.dtype, minimum=minimum)

    def _row_direction(self, dX: ArrayLike | None, dinputs: ArrayLike | None, samples: int) -> FloatArray | None:
        """Return the direction of the rows that `_joined` makes; None: 0."""
        if self.n_inputs:
            direction = join_direction(self, samples, dX, dinputs)
        else:
            require_no_inputs(dinputs, "dinputs")
            direction = None if dX is None else validation.samples(dX, self.n_features, self.dtype, "dX")
        if direction is not None and len(direction) != samples:
            raise ValueError(f"dX has {pluralise(len(direction), 'sample')} but X has {samples}")
        return direction

    def _problem(
        self, u: Controls, X: ArrayLike, y: Any, objective: Objective, sample_weight: ArrayLike | None, minimum: int = 1
    ) -> tuple[FloatArray, FloatArray, Any, FloatArray | None]:
        """Return vector, joined samples, targets and weights as the core takes them; errors name what does not fit.

        `minimum`: how many samples there have to be; 0 where they are a part of all.
        """
        self._require_fit(objective)
        vector, rows = self._vector(u), self._samples(X, minimum)
        steps = Controls(self._layout, vector).h if isinstance(y, Observations) else None
        targets = validate_targets(self, objective._loss, y, len(rows), steps)
        is_mean = objective.reduction == "mean"
        weights = validation.weights(sample_weight, len(rows), self.dtype, are_all=minimum > 0, mean=is_mean)
        return vector, rows, targets, weights

    def _require_fit(self, objective: Objective) -> None:
        """Raise if the objective is not an `Objective`, or its penalties name parts that the network does not have."""
        if not isinstance(objective, Objective):
            raise TypeError(f"objective must be an Objective, got {type(objective).__name__}")
        for penalty in objective.penalties:
            if isinstance(penalty, Kinetic):
                self._require_kinetic(penalty)
            for part in penalty.parts or ():
                if part not in self._layout.slices:
                    known = ", ".join(self._layout.slices)
                    raise ValueError(
                        f"penalties: {penalty!r} names the part {part!r}; the parts of this network are {known}"
                    )
            if isinstance(penalty, GroupL1):
                penalty._require_fit({part.name: part for part in self.parts})

    def _require_kinetic(self, penalty: Kinetic) -> None:
        if not self.residual:
            raise ValueError(f"penalties: {penalty!r} needs a residual network: a feed-forward one has no time")
        if self.tableau.b.min() < 0:
            raise ValueError(
                f"penalties: {penalty!r} needs a tableau without negative weights, whose energy has a lower bound; "
                f"{self.tableau!r} has b[{int(self.tableau.b.argmin())}] = {self.tableau.b.min():g}"
            )

    def _core_may_try(self, u: object, objective: object) -> bool:
        """Whether the core can check the other arguments itself, as in `_end`, given the controls and the loss."""
        return (
            isinstance(u, Controls)
            and u._layout is self._layout
            and isinstance(objective, Objective)
            and not objective._loss.is_custom
        )

    def _require_memory_for_states(self, samples: int) -> None:
        states = float(self.n_layers + 1) * samples * self.dim * self.dtype.itemsize
        memory.require_memory(
            f"the states of {pluralise(samples, 'sample')} after each of {pluralise(self.n_layers, 'layer')}",
            {"states": states},
        )


def _require_samples(X: ArrayLike) -> None:
    if X is LEFT_OUT:
        raise TypeError("X is missing: the controls come first, the samples second, as in net.predict(u, X)")
