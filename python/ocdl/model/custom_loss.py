"""Custom losses: called with all rows or those of a batch, weighted, reduced and validated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl import _core
from ocdl.base import validation
from ocdl.base.names import pluralise
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.model.losses import CustomLoss, Loss
from ocdl.model.observations import ObservedTargets


class CallbackLoss(Loss):
    """A custom loss behind the interface of all losses; its results are checked."""

    is_custom = True

    def __init__(self, custom: CustomLoss) -> None:
        score = getattr(custom, "score", None)
        if score is not None and not callable(score):
            raise TypeError(
                "the score of a loss must be a method score(outputs, targets), "
                f"got {validation.format_with_type(score)}"
            )
        name = getattr(custom, "name", None)
        self.custom, self.name = custom, name if isinstance(name, str) else type(custom).__name__

    def inverse_link(self, outputs: FloatArray) -> FloatArray:
        """Return the predictions of outputs by ``inverse_link``; without this method, the outputs."""
        link = getattr(self.custom, "inverse_link", None)
        return outputs if link is None else np.asarray(link(outputs))

    def weighted_values_and_grads(
        self, outputs: FloatArray, targets: Any, weights: FloatArray | None, scale: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the weighted losses of rows, (rows,), and their gradients times the scale, (rows, outputs)."""
        if isinstance(targets, ObservedTargets):
            values, gradients = self._observed_values_and_grads(outputs, targets)
        else:
            values, gradients = self._values_and_grads(outputs, targets)
        wide = np.ones(len(outputs)) if weights is None else weights.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            return wide * values, (scale * wide[:, None] * gradients).astype(outputs.dtype, order="C")

    def _values_and_grads(
        self, outputs: FloatArray, targets: Any, missing: NDArray[np.bool_] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return what the custom loss returns, with a gradient of 0 where targets are missing."""
        name = f"{self.name}.value_and_grad"
        result = self.custom.value_and_grad(outputs.copy(), targets)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise TypeError(f"{name} must return a pair (values, gradients), got {type(result).__name__}")
        values = _validate(result[0], (len(outputs),), f"the values of {name}", "(samples,)")
        gradients = _validate(result[1], outputs.shape, f"the gradients of {name}", "(samples, outputs)", missing)
        return values, gradients

    def _observed_values_and_grads(
        self, outputs: FloatArray, targets: ObservedTargets
    ) -> tuple[FloatArray, FloatArray]:
        """Return the losses of samples, summed over the times with something observed, and their gradients."""
        some, z, observed = observed_outputs(outputs, targets)
        values, gradients = np.zeros(some.shape), np.zeros((*some.shape, targets.outputs))
        values[some], gradients[some] = self._values_and_grads(z, observed, np.isnan(observed))
        return values.sum(axis=1), gradients.reshape(len(outputs), -1)

    def _validate_targets(self, y: Any, samples: int, outputs: int, dtype: np.dtype[Any]) -> Any:
        """Return targets as they were given."""
        if getattr(y, "shape", None) == ():
            raise ValueError(f"y has shape () but X has {pluralise(samples, 'sample')}")
        if hasattr(y, "__len__") and not isinstance(y, dict) and len(y) != samples:
            raise ValueError(f"y has {pluralise(len(y), 'target')} but X has {pluralise(samples, 'sample')}")
        return y

    def _to_dict(self) -> dict[str, Any]:
        if not isinstance(getattr(self.custom, "name", None), str):
            raise ValueError(
                f"a checkpoint identifies a custom loss by its name: give {self.name} an attribute 'name', a string"
            )
        return {"custom": self.name}


@dataclass(frozen=True)
class LossOnSamples:
    """A custom loss with the targets and weights of all samples."""

    loss: CallbackLoss
    targets: Any
    weights: FloatArray | None
    samples: int
    mean: bool

    def evaluate(
        self, outputs: FloatArray, rows: LabelArray | None = None, with_grad: bool = True
    ) -> tuple[float, FloatArray | None]:
        """Return the losses at these outputs, weighted and reduced, and if `with_grad` the gradient of the result.

        The sum over the rows of a batch is scaled so that its expectation is that of all samples.
        """
        value, gradient = self.value_and_grad(outputs, rows)
        return value, gradient if with_grad else None

    def value_and_grad(self, outputs: FloatArray, rows: LabelArray | None = None) -> tuple[float, FloatArray]:
        """Return the same, always with the gradient."""
        targets, weights = self.targets, self.weights
        scale = 1.0
        if self.mean:
            scale = 1 / self._total_weight()
        if rows is not None:
            targets = select_rows(targets, rows)
            weights = None if weights is None else weights[rows]
            scale = scale * self.samples / len(rows)
        losses, gradient = self.loss.weighted_values_and_grads(outputs, targets, weights, scale)
        return scale * _core.sum_in_order(losses), gradient

    def _total_weight(self) -> float:
        """Return what a mean divides by."""
        weights = np.ones(self.samples) if self.weights is None else self.weights.astype(np.float64)
        if isinstance(self.targets, ObservedTargets):
            weights = weights * self.targets.observed_fractions()
        return _core.sum_in_order(weights)

    def score(self, outputs: FloatArray) -> float:
        """Return the score of the loss at the outputs of all samples; NaN if it has none."""
        score = getattr(self.loss.custom, "score", None)
        if score is None:
            return math.nan
        targets = self.targets
        if isinstance(targets, ObservedTargets):
            _, outputs, targets = observed_outputs(outputs, targets)
        result = score(outputs, targets)
        try:
            return float(result)
        except (TypeError, ValueError, OverflowError) as error:
            name = f"{self.loss.name}.score"
            raise TypeError(f"{name} must return a real number, got {validation.format_with_type(result)}") from error


@dataclass(frozen=True)
class LossOnRows:
    """A custom loss with the targets and weights of some of the rows; the core adds up and scales the losses."""

    loss: CallbackLoss
    targets: Any
    weights: FloatArray | None

    def __call__(
        self, outputs: FloatArray, positions: LabelArray | None, scale: float, with_grad: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return the weighted losses of all rows, or of those at these positions, and their scaled gradients."""
        targets, weights = self.targets, self.weights
        if positions is not None:
            targets = select_rows(targets, positions)
            weights = None if weights is None else weights[positions]
        return self.loss.weighted_values_and_grads(outputs, targets, weights, scale)


def observed_outputs(outputs: FloatArray, targets: ObservedTargets) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
    """Return at which (sample, time) something was observed, and the outputs and values of these, (rows, outputs)."""
    values = targets.values
    some: NDArray[np.bool_] = np.asarray(~np.isnan(values).all(axis=2))
    return some, outputs.reshape(values.shape)[some], values[some]


def _validate(
    array: Any, shape: tuple[int, ...], name: str, meaning: str, missing: NDArray[np.bool_] | None = None
) -> FloatArray:
    """Return such numbers, with 0 where they are missing."""
    numbers = validation.to_array(array, name)
    if numbers.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be real numbers, got dtype {numbers.dtype}")
    if numbers.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, {meaning}, got {numbers.shape}")
    validation.require_unmasked(array, name)
    if missing is not None:
        numbers = np.where(missing, 0, numbers)
    bad = np.flatnonzero(np.isnan(numbers).reshape(len(numbers), -1).any(axis=1))
    if len(bad):
        raise FloatingPointError(f"{name} are NaN for sample {bad[0]}")
    return numbers.astype(np.float64)


def select_rows(targets: Any, rows: LabelArray) -> Any:
    """Return the targets of some rows, in the type in which they were given."""
    if targets is None:
        return None
    if isinstance(targets, dict):
        return {key: select_rows(value, rows) for key, value in targets.items()}
    if hasattr(targets, "iloc"):
        return targets.iloc[rows]
    if isinstance(targets, (list, tuple)):
        return type(targets)(targets[row] for row in rows)
    try:
        return targets[rows]
    except (TypeError, IndexError) as error:
        kinds = "an array, a table, a list, a tuple, None, or a dict of these"
        raise TypeError(
            f"y must be {kinds}, as a custom loss is called with some of its rows: {type(targets).__name__} cannot be "
            f"indexed by row numbers ({error})"
        ) from error


def concatenate_rows(parts: Sequence[Any]) -> Any:
    """Concatenate the targets of several row ranges, in the type in which they were given."""
    first = parts[0]
    if first is None:
        return None
    if isinstance(first, ObservedTargets):
        return replace(first, observed_rows=np.concatenate([part.observed_rows for part in parts]))
    if isinstance(first, dict):
        return {key: concatenate_rows([part[key] for part in parts]) for key in first}
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat(list(parts))
    if isinstance(first, (list, tuple)):
        return type(first)(target for part in parts for target in part)
    return np.concatenate(parts)
