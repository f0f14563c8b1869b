"""What is minimised: the loss over the samples and the regulariser of the controls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ocdl import _core
from ocdl.base.validation import FloatArray, choice, not_negative

__all__ = ["L1", "Objective", "Regulariser", "Tikhonov", "TimeSmoothness"]


def probabilities(outputs: FloatArray, loss: str) -> FloatArray:
    """Return the probabilities of the classes, (samples, classes), that outputs (samples, outputs) stand for.

    One output z means C(z) = 1 / (1 + exp(-z)) for class 1; several the softmax, or after a training with the squared
    loss C of each, normalised.
    """
    if outputs.shape[1] == 1:
        logs = -np.logaddexp(0, np.column_stack([outputs, -outputs]))
    else:
        logs = -np.logaddexp(0, -outputs) if loss == "squared" else outputs
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return shares


@dataclass(frozen=True)
class Regulariser:
    """The penalty R(u), a sum of `Tikhonov`, `L1` and `TimeSmoothness` terms with these weights.

    The time steps are not penalised: they carry the horizon.

    Examples
    --------
    >>> import ocdl
    >>> ocdl.Tikhonov(1e-3) + ocdl.TimeSmoothness(0.1)
    Regulariser(tikhonov=0.001, l1=0.0, time_smoothness=0.1)
    """

    tikhonov: float = 0.0
    l1: float = 0.0
    time_smoothness: float = 0.0

    def __post_init__(self) -> None:
        for name in ("tikhonov", "l1", "time_smoothness"):
            object.__setattr__(self, name, not_negative(getattr(self, name), name))

    def __add__(self, other: object) -> Regulariser:
        if not isinstance(other, Regulariser):
            return NotImplemented
        return Regulariser(
            self.tikhonov + other.tikhonov, self.l1 + other.l1, self.time_smoothness + other.time_smoothness
        )


def Tikhonov(weight: float) -> Regulariser:
    """Return the penalty ``weight / 2 * |(K, b, W, mu)|^2``."""
    return Regulariser(tikhonov=not_negative(weight, "weight"))


def L1(weight: float) -> Regulariser:
    """Return the penalty ``weight * |(K, b, W, mu)|_1``; its subgradient at 0 is 0."""
    return Regulariser(l1=not_negative(weight, "weight"))


def TimeSmoothness(weight: float) -> Regulariser:
    """Return the penalty ``weight / 2 * N/T * sum_j |(K, b)[j+1] - (K, b)[j]|^2`` on a network of N layers."""
    return Regulariser(time_smoothness=not_negative(weight, "weight"))


@dataclass(frozen=True)
class Objective:
    """The function to minimise, J(u) = R(u) + mean or sum over the samples of loss(W y(T) + mu, label).

    Parameters
    ----------
    loss : {"squared", "cross_entropy"}
        "squared" is the paper's 1/2 |C(z) - c|^2 with C(z) = 1 / (1 + exp(-z)), c the label or, with several outputs,
        its one-hot vector. "cross_entropy" is the logistic or softmax cross entropy.
    reduction : {"mean", "sum"}
        How the losses of the samples are combined; with sample weights the mean divides by their sum.
    regulariser : Regulariser, optional
        A sum of `Tikhonov`, `L1` and `TimeSmoothness`.

    Examples
    --------
    >>> import ocdl
    >>> ocdl.Objective("cross_entropy", regulariser=ocdl.Tikhonov(1e-4))
    Objective(loss='cross_entropy', reduction='mean', \
regulariser=Regulariser(tikhonov=0.0001, l1=0.0, time_smoothness=0.0))
    """

    loss: str = "squared"
    reduction: str = "mean"
    regulariser: Regulariser | None = None

    def __post_init__(self) -> None:
        choice(self.loss, "loss", _core.loss_names())
        choice(self.reduction, "reduction", ("mean", "sum"))
        if self.regulariser is not None and not isinstance(self.regulariser, Regulariser):
            raise TypeError(
                "regulariser must be a sum of Tikhonov, L1 and TimeSmoothness, or None, "
                f"got {type(self.regulariser).__name__}"
            )

    @cached_property
    def _core_objective(self) -> _core.Objective:
        penalty = self.regulariser or Regulariser()
        return _core.Objective(
            self.loss, self.reduction == "mean", penalty.tikhonov, penalty.l1, penalty.time_smoothness
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (Objective, (self.loss, self.reduction, self.regulariser))


DEFAULT_OBJECTIVE = Objective()
