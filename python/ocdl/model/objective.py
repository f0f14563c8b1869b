"""The objective: the loss over the samples and the penalties of the controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ocdl import _core
from ocdl.base import validation
from ocdl.base.keywords import known_keywords
from ocdl.base.validation import FloatArray
from ocdl.model.custom_loss import CallbackLoss, LossOnSamples
from ocdl.model.losses import ALIASES, LOSSES, CustomLoss, Loss, Squared
from ocdl.model.observations import Observations
from ocdl.model.penalties import GroupL1, Kinetic, Penalty, penalties_to_list, validate_penalties

__all__ = ["Objective"]

FOREIGN_KEYWORDS = {
    "weight_decay": "penalties=ocdl.Tikhonov(...)",
    "alpha": "penalties=ocdl.Tikhonov(...)",
    "regularizer": "penalties",
}


@known_keywords(FOREIGN_KEYWORDS)
@dataclass(frozen=True, init=False)
class Objective:
    """The function to minimise, J(u) = R(u) + mean or sum over the samples of loss(W y(T) + mu, target).

    Parameters
    ----------
    loss : str, loss of `ocdl.losses`, or object
        For labels: "squared", the paper's ``1/2 |C(z) - c|^2`` with ``C(z) = 1 / (1 + exp(-z))``, c the label or, with
        several outputs, its one-hot vector; "cross_entropy", the logistic or softmax cross entropy. For real targets,
        one for each output: "squared_error", "huber", "quantile", "poisson", or with their parameters
        ``ocdl.losses.Huber(delta=0.5)``. Or a custom loss: any object with a method ``value_and_grad(outputs,
        targets)`` that returns the losses (samples,) and their gradients (samples, outputs).
    reduction : {"mean", "sum"}
        How the losses of the samples are combined; with sample weights the mean divides by their sum.
    penalties : Penalty or sequence of Penalty, optional
        The penalties R(u) that are added: `Tikhonov`, `L1`, `GroupL1`, `TimeSmoothness`, `EvenSteps`, `Kinetic`.

    Attributes
    ----------
    loss : str or object
        The loss: its name, where it was given by one.
    reduction : str
    penalties : tuple of Penalty

    Raises
    ------
    TypeError, ValueError
        If there is no such loss or reduction, or a penalty is not a `Penalty`.

    Examples
    --------
    >>> import ocdl
    >>> ocdl.Objective("cross_entropy", penalties=ocdl.Tikhonov(1e-4))
    Objective(loss='cross_entropy', reduction='mean', penalties=(Tikhonov(0.0001),))

    A custom loss, the absolute error:

    >>> import numpy as np
    >>> class AbsoluteError:
    ...     def value_and_grad(self, outputs, targets):
    ...         residual = outputs - targets[:, None]
    ...         return np.abs(residual).sum(axis=1), np.sign(residual)
    >>> net = ocdl.Network(1, 5)
    >>> u, X = net.init(random_state=0), np.array([[0.0], [1.0]])
    >>> net.value(u, X, np.array([0.5, 2.0]), ocdl.Objective(AbsoluteError())) > 0
    True
    >>> objective = ocdl.Objective("log_loss")
    >>> objective.loss, objective.reduction, objective.penalties
    ('cross_entropy', 'mean', ())
    """

    loss: str | Loss | CustomLoss
    reduction: str
    penalties: tuple[Penalty, ...]

    def __init__(
        self,
        loss: str | Loss | CustomLoss = "squared",
        *,
        reduction: str = "mean",
        penalties: Penalty | Sequence[Penalty] | None = None,
    ) -> None:
        resolved = resolve_loss(loss)
        object.__setattr__(self, "loss", resolved.name if isinstance(loss, str) else loss)
        object.__setattr__(self, "reduction", validation.choice(reduction, "reduction", ("mean", "sum")))
        object.__setattr__(self, "penalties", validate_penalties(penalties))
        if resolved.is_custom and any(isinstance(penalty, Kinetic) for penalty in self.penalties):
            raise ValueError(f"penalties: Kinetic needs a loss of ocdl, got the custom loss {resolved.name}")

    def output_grad(self, outputs: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        """Return the derivative of the losses by the outputs, (samples, outputs), weighted and reduced.

        `Network.value_and_grad` starts the adjoint sweep from it: without penalties, ``net.vjp(u, X,
        output_cotangents=objective.output_grad(net.predict(u, X), y))`` is the gradient, to the last bit.

        Parameters
        ----------
        outputs : array_like of shape (samples, outputs)
        y : array_like of shape (samples,) or (samples, outputs)
            The targets, as for `Network.value`.
        sample_weight : array_like of shape (samples,), optional

        Returns
        -------
        ndarray of shape (samples, outputs)

        Raises
        ------
        TypeError, ValueError
            If an argument does not fit the others or the loss.
        FloatingPointError
            If the gradient is beyond the range of the numbers.

        Examples
        --------
        >>> import ocdl
        >>> ocdl.Objective("squared_error").output_grad([[1.0], [2.0]], [0.0, 0.0]).tolist()
        [[0.5], [1.0]]
        """
        dtype = np.dtype(np.float32 if getattr(outputs, "dtype", None) == np.float32 else np.float64)
        z = validation.real_array(outputs, "outputs", dtype)
        if z.ndim != 2 or z.shape[1] == 0:
            raise ValueError(f"outputs must have two dimensions, (samples, outputs), got shape {z.shape}")
        weights = validation.weights(sample_weight, len(z), dtype, mean=self.reduction == "mean")
        if isinstance(y, Observations):
            raise TypeError("output_grad takes targets of the outputs at the end, not Observations at other times")
        targets = self._loss._validate_targets(y, z.shape[0], z.shape[1], dtype)
        if self._loss.is_custom:
            _, gradient = self._on_samples(targets, weights, len(z)).value_and_grad(z)
        else:
            gradient = self._core_objective.output_grad(z, targets, weights)
        if _core.first_non_finite(gradient) >= 0:
            raise FloatingPointError(
                f"the gradient of the loss overflows {dtype}; scale the outputs or the targets down"
            )
        return gradient

    @cached_property
    def _loss(self) -> Loss:
        """The loss itself, also where it was given by name."""
        return resolve_loss(self.loss)

    @property
    def score_name(self) -> str:
        """The name of the score of the loss: "accuracy", "R^2", or "score" for a custom loss.

        Examples
        --------
        >>> import ocdl
        >>> ocdl.Objective("huber").score_name
        'R^2'
        """
        return self._loss.score_name

    @property
    def loss_name(self) -> str:
        """The name of the loss, whether it was given by its name or not.

        Examples
        --------
        >>> import ocdl
        >>> ocdl.Objective(ocdl.losses.Quantile(level=0.9)).loss_name
        'quantile'
        """
        return self._loss.name

    @property
    def _callback(self) -> CallbackLoss:
        """The loss, which must be a custom one."""
        assert isinstance(self._loss, CallbackLoss)
        return self._loss

    def _on_samples(self, targets: Any, weights: FloatArray | None, samples: int) -> LossOnSamples:
        """Return a custom loss with its samples."""
        return LossOnSamples(self._callback, targets, weights, samples, self.reduction == "mean")

    def _to_dict(self) -> dict[str, Any]:
        """Return what identifies the objective, as JSON can hold it; a custom loss needs a name."""
        penalties = penalties_to_list(self.penalties)
        return {"loss": self._loss._to_dict(), "reduction": self.reduction, "penalties": penalties}

    @property
    def _nonsmooth_penalties(self) -> tuple[Penalty, ...]:
        """The penalties that have no gradient where a control is 0."""
        return tuple(penalty for penalty in self.penalties if penalty.is_nonsmooth and penalty.weight > 0)

    def _require_second_derivatives(self) -> None:
        """Raise if the loss is a custom one, which has no second derivatives."""
        if self._loss.is_custom:
            raise ValueError(
                f"the custom loss {self.loss_name} has no second derivative: Hessian and Gauss-Newton products, and "
                f"NewtonCG, take one of {', '.join(map(repr, LOSSES))}"
            )

    @cached_property
    def _core_objective(self) -> _core.Objective:
        """The objective of the core; for a custom loss only its penalties are used."""
        loss = Squared() if self._loss.is_custom else self._loss
        penalties = [
            (penalty.name, penalty.weight, penalty.parts, penalty.axis if isinstance(penalty, GroupL1) else "")
            for penalty in self.penalties
            if penalty.weight > 0
        ]
        return _core.Objective(loss.name, loss.parameters(), self.reduction == "mean", penalties)

    def __getstate__(self) -> dict[str, Any]:
        return {"loss": self.loss, "reduction": self.reduction, "penalties": self.penalties}


def resolve_loss(loss: object) -> Loss:
    """Return the loss of this name, the loss itself, or a custom one behind the same interface."""
    if isinstance(loss, str):
        return LOSSES[validation.choice(loss, "loss", LOSSES, ALIASES)]()
    if isinstance(loss, CustomLoss) and not isinstance(loss, type) and callable(loss.value_and_grad):
        return CallbackLoss(loss)
    if isinstance(loss, Loss):
        return loss
    raise TypeError(
        f"loss must be one of {', '.join(map(repr, LOSSES))}, a loss of ocdl.losses, or an object with a method "
        f"value_and_grad(outputs, targets), got {validation.format_with_type(loss)}"
    )


DEFAULT_OBJECTIVE = Objective()


def predict_class(outputs: FloatArray) -> Any:
    """Return the class that each row of outputs predicts: by the sign of one output, by the largest of several."""
    return _core.decisions(np.ascontiguousarray(outputs))
