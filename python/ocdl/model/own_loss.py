"""A loss of the user's own at work: called with all rows or those of a batch, weighted, reduced and checked here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocdl.base.validation import FloatArray, LabelArray
from ocdl.model.losses import OwnLoss


@dataclass(frozen=True)
class OwnLossOnSamples:
    """A loss with the targets and weights of so many samples."""

    loss: OwnLoss
    targets: Any
    weights: FloatArray | None
    samples: int
    mean: bool

    def evaluate(
        self, outputs: FloatArray, rows: LabelArray | None = None, with_slopes: bool = True
    ) -> tuple[float, FloatArray | None]:
        """Return the losses at these outputs, weighted and reduced, and where asked the slopes of that.

        The sum over the rows of a batch is scaled so that its expectation is that of all samples.
        """
        value, slopes = self.value_and_slopes(outputs, rows)
        return value, slopes if with_slopes else None

    def value_and_slopes(self, outputs: FloatArray, rows: LabelArray | None = None) -> tuple[float, FloatArray]:
        """Return the same, always with slopes."""
        targets = self.targets if rows is None else chosen_rows(self.targets, rows)
        values, slopes = self._called(outputs, targets)
        weights = np.ones(self.samples) if self.weights is None else self.weights.astype(np.float64)
        scale = 1 / float(weights.sum()) if self.mean else 1.0
        if rows is not None:
            weights, scale = weights[rows], scale * self.samples / len(rows)
        with np.errstate(over="ignore", invalid="ignore"):
            value = scale * float(weights @ values)
            return value, (scale * weights[:, None] * slopes).astype(outputs.dtype)

    def score(self, outputs: FloatArray) -> float:
        """Return the score of the loss at the outputs of all samples; NaN if it has none."""
        score = getattr(self.loss, "score", None)
        return math.nan if score is None else float(score(outputs, self.targets))

    def _called(self, outputs: FloatArray, targets: Any) -> tuple[FloatArray, FloatArray]:
        name = f"{name_of(self.loss)}.value_and_slope"
        found = self.loss.value_and_slope(outputs.copy(), targets)
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise TypeError(f"{name} must return a pair (values, slopes), got {type(found).__name__}")
        return (
            _checked(found[0], (len(outputs),), f"the values of {name}", "(samples,)"),
            _checked(found[1], outputs.shape, f"the slopes of {name}", "(samples, outputs)"),
        )


def _checked(array: Any, shape: tuple[int, ...], name: str, meaning: str) -> FloatArray:
    try:
        numbers = np.asarray(array)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of real numbers, got a ragged sequence") from error
    if numbers.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be real numbers, got dtype {numbers.dtype}")
    if numbers.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, {meaning}, got {numbers.shape}")
    bad = np.flatnonzero(np.isnan(numbers).reshape(len(numbers), -1).any(axis=1))
    if len(bad):
        raise FloatingPointError(f"{name} are NaN for sample {bad[0]}")
    return numbers.astype(np.float64)


def name_of(loss: OwnLoss) -> str:
    """Return the name that a loss gives itself, else that of its class."""
    name = getattr(loss, "name", None)
    return name if isinstance(name, str) else type(loss).__name__


def chosen_rows(targets: Any, rows: LabelArray) -> Any:
    """Return the targets of some rows, as the kind of thing that they came as."""
    if targets is None:
        return None
    if isinstance(targets, dict):
        return {key: chosen_rows(value, rows) for key, value in targets.items()}
    if hasattr(targets, "iloc"):
        return targets.iloc[rows]
    if isinstance(targets, (list, tuple)):
        return type(targets)(targets[row] for row in rows)
    return targets[rows]
