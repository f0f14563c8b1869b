"""A loss of the user's own at work: called with all rows or those of a batch, weighted, reduced and checked here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocdl import _core
from ocdl.base import validation
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
        targets, weights = self.targets, self.weights
        scale = 1.0
        if self.mean:
            scale = 1 / (self.samples if weights is None else _core.sum_in_order(weights.astype(np.float64)))
        if rows is not None:
            targets = chosen_rows(targets, rows)
            weights = None if weights is None else weights[rows]
            scale = scale * self.samples / len(rows)
        losses, slopes = losses_and_slopes(self.loss, outputs, targets, weights, scale)
        return scale * _core.sum_in_order(losses), slopes

    def score(self, outputs: FloatArray) -> float:
        """Return the score of the loss at the outputs of all samples; NaN if it has none."""
        score = getattr(self.loss, "score", None)
        if score is None:
            return math.nan
        found = score(outputs, self.targets)
        try:
            return float(found)
        except (TypeError, ValueError, OverflowError) as error:
            name = f"{name_of(self.loss)}.score"
            raise TypeError(f"{name} must return a real number, got {validation.shown(found)}") from error


@dataclass(frozen=True)
class LossesOfRows:
    """A loss with the targets and weights of rows that are a part of all: the core adds up and scales."""

    loss: OwnLoss
    targets: Any
    weights: FloatArray | None

    def __call__(
        self, outputs: FloatArray, positions: LabelArray | None, scale: float, with_slopes: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return the weighted losses of all rows, or of those at these positions, and their slopes times the scale."""
        targets, weights = self.targets, self.weights
        if positions is not None:
            targets = chosen_rows(targets, positions)
            weights = None if weights is None else weights[positions]
        return losses_and_slopes(self.loss, outputs, targets, weights, scale)


def losses_and_slopes(
    loss: OwnLoss, outputs: FloatArray, targets: Any, weights: FloatArray | None, scale: float
) -> tuple[FloatArray, FloatArray]:
    """Return the weighted losses of rows, (rows,), and the slopes of these times the scale, (rows, outputs)."""
    values, slopes = _called(loss, outputs, targets)
    wide = np.ones(len(outputs)) if weights is None else weights.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        return wide * values, (scale * wide[:, None] * slopes).astype(outputs.dtype, order="C")


def _called(loss: OwnLoss, outputs: FloatArray, targets: Any) -> tuple[FloatArray, FloatArray]:
    name = f"{name_of(loss)}.value_and_slope"
    found = loss.value_and_slope(outputs.copy(), targets)
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
    validation.require_unmasked(array, name)
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
    try:
        return targets[rows]
    except (TypeError, IndexError) as error:
        kinds = "an array, a table, a list, a tuple, None, or a dict of these"
        raise TypeError(
            f"y must be {kinds}, as a loss of one's own sees some of its rows: {type(targets).__name__} does not take "
            f"them by their numbers ({error})"
        ) from error


def joined_rows(parts: Sequence[Any]) -> Any:
    """Return the targets of several runs of rows as one, of the kind that they came as."""
    first = parts[0]
    if first is None:
        return None
    if isinstance(first, dict):
        return {key: joined_rows([part[key] for part in parts]) for key in first}
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat(list(parts))
    if isinstance(first, (list, tuple)):
        return type(first)(target for part in parts for target in part)
    return np.concatenate(parts)
