"""The losses of the core, one class each, and the protocol of custom losses.

``ocdl.losses.Huber(delta=0.5)`` is a loss with a parameter; the names that `Objective` takes, ``"huber"`` say, are
these classes with their defaults.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ocdl import _core
from ocdl.base import validation
from ocdl.base.validation import FloatArray

__all__ = ["CrossEntropy", "CustomLoss", "Huber", "Loss", "Poisson", "Quantile", "Squared", "SquaredError"]

_TRAITS: dict[str, list[Any]] = {name: traits for name, *traits in _core.losses()}


class Loss:
    """The interface of all losses; `ocdl.losses` has a subclass for each loss of the core.

    Attributes
    ----------
    name : str
    targets : {"classes", "numbers", "any"}
        The kind of the targets: labels 0, 1, ...; real numbers, one for each output; or, for a custom loss, anything.
    minimum_target : float
        The smallest target that is accepted.
    score_name : str
        The score that is reported: "accuracy" for classes, "R^2" for numbers, "score" for a custom loss.
    is_custom : bool
        Whether it is computed by the method ``value_and_grad`` of an object, not by the core.

    Examples
    --------
    >>> import ocdl
    >>> loss = ocdl.losses.Poisson()
    >>> loss.name, loss.targets, loss.minimum_target, loss.score_name, loss.is_custom
    ('poisson', 'numbers', 0.0, 'R^2', False)
    """

    name: str
    targets: str = "any"
    minimum_target: float = -math.inf
    score_name: str = "score"
    is_custom: bool = False
    _ranges: dict[str, tuple[float, float]] = {}  # noqa: RUF012

    def __init_subclass__(cls) -> None:
        if (name := vars(cls).get("name")) in _TRAITS:
            cls.targets, _, cls.minimum_target, parameters = _TRAITS[name]
            cls.score_name = "accuracy" if cls.targets == "classes" else "R^2"
            cls._ranges = {parameter: (above, below) for parameter, _, above, below, _ in parameters}

    def __post_init__(self) -> None:
        for parameter, (above, below) in self._ranges.items():
            number = validation.real(getattr(self, parameter), parameter)
            if not above < number < below:
                accepted = f"above {above:g}" + ("" if math.isinf(below) else f" and below {below:g}")
                raise ValueError(f"{parameter} must be {accepted}, got {number}")
            object.__setattr__(self, parameter, number)

    def parameters(self) -> dict[str, float]:
        """Return the numbers that belong to the loss, by name.

        Returns
        -------
        dict of str to float

        Examples
        --------
        >>> import ocdl
        >>> ocdl.losses.Huber(delta=0.5).parameters()
        {'delta': 0.5}
        """
        return {parameter: getattr(self, parameter) for parameter in self._ranges}

    def inverse_link(self, outputs: FloatArray) -> FloatArray:
        """Return what outputs (samples, outputs) predict after a training with this loss.

        For classes these are their probabilities, (samples, classes): one output z gives C(z) = 1 / (1 + exp(-z)) for
        class 1; several give the softmax, or with the squared loss C of each, normalised. For numbers it is their mean.

        Parameters
        ----------
        outputs : ndarray of shape (samples, outputs)

        Returns
        -------
        ndarray of shape (samples, classes) or (samples, outputs)

        Raises
        ------
        FloatingPointError
            If a mean is beyond the range of the numbers.

        Examples
        --------
        >>> import numpy as np, ocdl
        >>> ocdl.losses.CrossEntropy().inverse_link(np.zeros((1, 1))).tolist()
        [[0.5, 0.5]]
        """
        means = _core.Objective(self.name, self.parameters(), True, []).mean(np.ascontiguousarray(outputs))
        bad = _core.first_non_finite(means)
        if bad >= 0:
            sample, output = divmod(bad, means.shape[1])
            raise FloatingPointError(
                f"the mean of output {output} of sample {sample} overflows {means.dtype}; "
                "scale the data or the controls down"
            )
        return means

    def _validate_targets(self, y: Any, samples: int, outputs: int, dtype: np.dtype[Any]) -> Any:
        """Return targets as the loss takes them: labels, or numbers of this type."""
        if self.targets == "classes":
            return validation.labels(y, samples, outputs)
        return validation.numbers(y, samples, outputs, dtype, self.minimum_target)

    def _to_dict(self) -> dict[str, Any]:
        """Return what identifies the loss in a checkpoint, as JSON can hold it."""
        return {"name": self.name, "parameters": self.parameters()}


@runtime_checkable
class CustomLoss(Protocol):
    """A custom loss: any object with this method.

    Optional are ``name``, a text that identifies it in a checkpoint; ``score(outputs, targets)``, a number that is
    reported in the history; and ``inverse_link(outputs)``, what the outputs predict: the probabilities of the classes
    (samples, classes) in a classifier, numbers (samples, outputs) in a regressor.

    Examples
    --------
    >>> import numpy as np, ocdl
    >>> class LogCosh:
    ...     def value_and_grad(self, outputs, targets):
    ...         residual = outputs - targets[:, None]
    ...         return np.log(np.cosh(residual)).sum(axis=1), np.tanh(residual)
    >>> isinstance(LogCosh(), ocdl.losses.CustomLoss)
    True
    """

    def value_and_grad(self, outputs: FloatArray, targets: Any, /) -> tuple[Any, Any]:
        """Return the losses of all samples and their gradients, without weights.

        Parameters
        ----------
        outputs : ndarray of shape (samples, outputs)
        targets : object
            What was given as `y`.

        Returns
        -------
        values : array_like of shape (samples,)
        gradients : array_like of shape (samples, outputs)
            Their derivatives by the outputs.

        Examples
        --------
        >>> import numpy as np
        >>> class HalfSquares:
        ...     def value_and_grad(self, outputs, targets):
        ...         residual = outputs - targets[:, None]
        ...         return (residual**2).sum(axis=1) / 2, residual
        >>> values, gradients = HalfSquares().value_and_grad(np.ones((3, 1)), np.zeros(3))
        >>> values.shape, gradients.shape
        ((3,), (3, 1))
        """
        ...


@dataclass(frozen=True)
class Squared(Loss):
    """The loss "squared" of classes: ``1/2 |C(z) - c|^2`` with ``C(z) = 1 / (1 + exp(-z))``.

    z are the outputs of a sample, c is its label or, with several outputs, the label's one-hot vector.

    Examples
    --------
    >>> import ocdl
    >>> ocdl.losses.Squared().targets
    'classes'
    """

    name = "squared"


@dataclass(frozen=True)
class CrossEntropy(Loss):
    """The loss "cross_entropy" of classes: the logistic one of one output, the softmax one of several.

    Examples
    --------
    >>> import ocdl
    >>> ocdl.Objective(ocdl.losses.CrossEntropy()).score_name
    'accuracy'
    """

    name = "cross_entropy"


@dataclass(frozen=True)
class SquaredError(Loss):
    """The loss "squared_error" of numbers: ``1/2 |z - c|^2`` of outputs z and targets c.

    Examples
    --------
    >>> import ocdl
    >>> ocdl.Objective(ocdl.losses.SquaredError()).score_name
    'R^2'
    """

    name = "squared_error"


@dataclass(frozen=True)
class Huber(Loss):
    """The loss "huber" of numbers: ``1/2 r^2`` for ``|r| <= delta``, ``delta (|r| - delta / 2)`` beyond, r = z - c.

    Parameters
    ----------
    delta : float
        The size of the residual from which the loss is linear.

    Raises
    ------
    TypeError, ValueError
        If `delta` is not a number above 0.

    Examples
    --------
    >>> import ocdl
    >>> ocdl.losses.Huber(delta=0.5)
    Huber(delta=0.5)
    """

    name = "huber"
    delta: float = 1.0


@dataclass(frozen=True)
class Quantile(Loss):
    """The loss "quantile" of numbers: ``max(level (c - z), (level - 1) (c - z))`` of each output z and target c.

    Parameters
    ----------
    level : float
        The quantile that is predicted; 0.5: the median.

    Raises
    ------
    TypeError, ValueError
        If `level` is not a number above 0 and below 1.

    Examples
    --------
    >>> import ocdl
    >>> ocdl.losses.Quantile(level=0.9)
    Quantile(level=0.9)
    """

    name = "quantile"
    level: float = 0.5


@dataclass(frozen=True)
class Poisson(Loss):
    """The loss "poisson" of numbers c >= 0: ``exp(z) - c z + c log c - c`` of each output z, with the mean exp(z).

    Examples
    --------
    >>> import ocdl
    >>> ocdl.losses.Poisson().minimum_target
    0.0
    """

    name = "poisson"


LOSSES: dict[str, type[Loss]] = {
    kind.name: kind for kind in (Squared, CrossEntropy, SquaredError, Huber, Quantile, Poisson)
}
ALIASES = {
    "log_loss": "cross_entropy",
    "mse": "squared_error",
    "mean_squared_error": "squared_error",
    "pinball": "quantile",
    "absolute_error": "quantile",  # half of it, at the level 0.5
    "mae": "quantile",
}


def loss_names(targets: str) -> tuple[str, ...]:
    """Return the names of the losses for targets of this kind."""
    return tuple(name for name, kind in LOSSES.items() if kind.targets == targets)
