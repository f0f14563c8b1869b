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
    """A loss of the core.

    Attributes
    ----------
    name : str
    targets : {"classes", "numbers"}
        What it compares outputs with: labels 0, 1, ..., or real numbers, one for each output.
    least_target : float
        No target is below this.
    score : str
        What is reported with it: the accuracy of classes, R^2 of numbers.
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
        """Return the numbers that belong to the loss, by name."""
        return {parameter: getattr(self, parameter) for parameter in self._ranges}


@runtime_checkable
class OwnLoss(Protocol):
    """A loss of the user's own.

    Optional are ``name``, a text by which a checkpoint knows it, and ``score(outputs, targets)``, a number that is
    reported in the history.
    """

    def value_and_slope(self, outputs: FloatArray, targets: Any, /) -> tuple[Any, Any]:
        """Return the losses (samples,) and their slopes by the outputs, (samples, outputs), without weights."""
        ...


def _record(name: str, targets: str, formula: str, least: float, parameters: list[Any]) -> type[Loss]:
    fields = [(parameter, float, default) for parameter, default, *_ in parameters]
    lines = "\n".join(f"    {parameter} : float\n        {meaning}" for parameter, *_, meaning in parameters)
    facts = {
        "__doc__": f"The loss {formula}." + (f"\n\n    Parameters\n    ----------\n{lines}\n" if lines else ""),
        "__module__": __name__,
        "name": name,
        "targets": targets,
        "least_target": least,
        "score": "accuracy" if targets == "classes" else "R^2",
        "_ranges": {parameter: (above, below) for parameter, _, above, below, _ in parameters},
    }
    made = dataclasses.make_dataclass(
        name.title().replace("_", ""), fields, bases=(Loss,), namespace=facts, frozen=True
    )
    made.__module__ = __name__
    return made


LOSSES: dict[str, type[Loss]] = {record[0]: _record(*record) for record in _core.losses()}
ALIASES = {"log_loss": "cross_entropy", "pinball": "quantile"}
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
    if isinstance(loss, Loss) or (isinstance(loss, OwnLoss) and not isinstance(loss, type)):
        return loss
    raise TypeError(
        f"loss must be one of {', '.join(map(repr, LOSSES))}, a loss of ocdl.losses, or an object with a method "
        f"value_and_slope(outputs, targets), got {loss!r:.200} ({type(loss).__name__})"
    )
