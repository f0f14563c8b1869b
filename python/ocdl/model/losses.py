"""The losses that the core knows, each a record that it describes, and what a loss of one's own has to be.

``ocdl.losses.Huber(delta=0.5)`` is a loss with a parameter; the names that `Objective` takes, ``"huber"`` say, are
these with their defaults.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, Protocol, runtime_checkable

from ocdl import _core
from ocdl.base import validation
from ocdl.base.validation import FloatArray

__all__ = ["Loss", "OwnLoss"]  # and the records, below


class Loss:
    """A loss of the core; `ocdl.losses` has one class for each.

    Attributes
    ----------
    name : str
    targets : {"classes", "numbers"}
        What it compares outputs with: labels 0, 1, ..., or real numbers, one for each output.
    least_target : float
        No target is below this.
    score : str
        What is reported with it: the accuracy of classes, R^2 of numbers.

    Examples
    --------
    >>> import ocdl
    >>> loss = ocdl.losses.Poisson()
    >>> loss.name, loss.targets, loss.least_target, loss.score
    ('poisson', 'numbers', 0.0, 'R^2')
    """

    name: ClassVar[str]
    targets: ClassVar[str]
    least_target: ClassVar[float]
    score: ClassVar[str]
    _ranges: ClassVar[dict[str, tuple[float, float]]]

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


@runtime_checkable
class OwnLoss(Protocol):
    """A loss of the user's own: any object with this method.

    Optional are ``name``, a text by which a checkpoint knows it, and ``score(outputs, targets)``, a number that is
    reported in the history.

    Examples
    --------
    >>> import numpy as np, ocdl
    >>> class LogCosh:
    ...     def value_and_slope(self, outputs, targets):
    ...         residual = outputs - targets[:, None]
    ...         return np.log(np.cosh(residual)).sum(axis=1), np.tanh(residual)
    >>> isinstance(LogCosh(), ocdl.losses.OwnLoss)
    True
    """

    def value_and_slope(self, outputs: FloatArray, targets: Any, /) -> tuple[Any, Any]:
        """Return the losses of all samples and their slopes, without weights.

        Parameters
        ----------
        outputs : ndarray of shape (samples, outputs)
        targets : object
            What came as `y`.

        Returns
        -------
        values : array_like of shape (samples,)
        slopes : array_like of shape (samples, outputs)
            Their derivatives by the outputs.

        Examples
        --------
        >>> import numpy as np
        >>> class HalfSquares:
        ...     def value_and_slope(self, outputs, targets):
        ...         residual = outputs - targets[:, None]
        ...         return (residual**2).sum(axis=1) / 2, residual
        >>> values, slopes = HalfSquares().value_and_slope(np.ones((3, 1)), np.zeros(3))
        >>> values.shape, slopes.shape
        ((3,), (3, 1))
        """
        ...


def _record(name: str, targets: str, formula: str, least: float, parameters: list[Any]) -> type[Loss]:
    fields = [(parameter, float, default) for parameter, default, *_ in parameters]
    title = name.title().replace("_", "")
    facts = {
        "__doc__": _described(name, title, targets, formula, parameters),
        "__module__": __name__,
        "name": name,
        "targets": targets,
        "least_target": least,
        "score": "accuracy" if targets == "classes" else "R^2",
        "_ranges": {parameter: (above, below) for parameter, _, above, below, _ in parameters},
    }
    made = dataclasses.make_dataclass(title, fields, bases=(Loss,), namespace=facts, frozen=True)
    made.__module__ = __name__
    return made


def _described(name: str, title: str, targets: str, formula: str, parameters: list[Any]) -> str:
    """Return the docstring of a record."""
    kinds = {"classes": "classes c", "numbers": "numbers c, one for each output"}
    lines = "".join(f"    {parameter} : float\n        {meaning}\n" for parameter, *_, meaning in parameters)
    section = f"    Parameters\n    ----------\n{lines}\n" if lines else ""
    accepted = "".join(
        f"\n        If {p} is not above {low:g} and below {high:g}." for p, _, low, high, _ in parameters
    )
    errors = f"    Raises\n    ------\n    ValueError{accepted}\n\n" if accepted else ""
    return (
        f"The loss {name!r} of outputs z and targets that are {kinds[targets]}.\n\n    Of one sample it is ::\n\n"
        f"        {formula}\n\n{section}{errors}    Examples\n    --------\n    >>> import ocdl\n"
        f"    >>> loss = ocdl.losses.{title}()\n    >>> loss.name, loss.targets\n    {(name, targets)!r}\n"
        f"    >>> ocdl.Objective(loss).score_name\n    {'accuracy' if targets == 'classes' else 'R^2'!r}\n    "
    )


LOSSES: dict[str, type[Loss]] = {record[0]: _record(*record) for record in _core.losses()}
ALIASES = {
    "log_loss": "cross_entropy",
    "mse": "squared_error",
    "mean_squared_error": "squared_error",
    "pinball": "quantile",
    "absolute_error": "quantile",  # half of it, at the level 0.5
    "mae": "quantile",
}
globals().update({record.__name__: record for record in LOSSES.values()})
__all__ += [record.__name__ for record in LOSSES.values()]


def __getattr__(name: str) -> type[Loss]:  # for type checkers, which do not see the records
    raise AttributeError(f"ocdl.losses has no {name!r}; it has {', '.join(__all__)}")


def names_of(targets: str) -> tuple[str, ...]:
    """Return the names of the losses for targets of this kind."""
    return tuple(name for name, record in LOSSES.items() if record.targets == targets)


def resolved(loss: object) -> Loss | OwnLoss:
    """Return the loss of this name, or the loss itself."""
    if isinstance(loss, str):
        return LOSSES[validation.choice(loss, "loss", LOSSES, ALIASES)]()
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, OwnLoss) and not isinstance(loss, type) and callable(loss.value_and_slope):
        score = getattr(loss, "score", None)
        if score is not None and not callable(score):
            raise TypeError(
                f"the score of a loss must be a method score(outputs, targets), got {validation.shown(score)}"
            )
        return loss
    raise TypeError(
        f"loss must be one of {', '.join(map(repr, LOSSES))}, a loss of ocdl.losses, or an object with a method "
        f"value_and_slope(outputs, targets), got {validation.shown(loss)}"
    )
