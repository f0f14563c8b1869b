"""How a training is stopped, why it ended, and what it returns."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from ocdl import _core
from ocdl.model.controls import Controls
from ocdl.training.history import History

__all__ = ["Result", "Status", "Stop"]


class Status(enum.Enum):
    """Why a training ended."""

    GRADIENT = "the norm of the gradient is at most tol"
    STEP = "the step is smaller than the roundoff of the controls"
    DECREASE = "the loss falls by no more than the share rtol of it"
    LOSS = "the loss is zero to working precision"
    NO_PROGRESS = "no trial step lowers the loss"
    NOT_FINITE = "the next step leads to a loss or gradient that is not finite"
    ITERATION_LIMIT = "all iterations were made"
    VALIDATION = "the validation loss has not become lower for a while"
    ROSE = "the loss is higher than at the start"
    SATURATED = "the outputs have saturated: their slopes vanish although little is predicted"
    INTERRUPTED = "it was asked to stop"


class Stop:
    """A handle to stop a training from another thread or from a signal handler.

    Examples
    --------
    >>> import ocdl
    >>> stop = ocdl.Stop()
    >>> stop.request()
    >>> net = ocdl.Network(1, 2)
    >>> ocdl.train(net, net.init(0), [[0.0], [1.0]], [0, 1], stop=stop).status
    <Status.INTERRUPTED: 'it was asked to stop'>
    """

    def __init__(self) -> None:
        self._flag = _core.StopFlag()

    def request(self) -> None:
        """Let the training return the last complete iterate, within a tenth of a second."""
        self._flag.request()

    @property
    def requested(self) -> bool:
        return self._flag.requested


@dataclass(frozen=True, eq=False)
class Result:
    """What a training returns.

    Attributes
    ----------
    controls : Controls
        The last iterate; with `patience` the evaluated one of the lowest validation loss.
    history : History
        Every iteration.
    n_iter, n_evals : int
        Iterations made, and evaluations of the objective with its gradient; `NewtonCG` says how its products count.
    status : Status
        Why it ended; its value is a sentence.
    message : str
        The same with the numbers.
    """

    controls: Controls
    history: History
    n_iter: int
    n_evals: int
    status: Status
    message: str

    def followed_by(self, other: Result) -> Result:
        """Return the result of a training that went on with another one."""
        return replace(
            other,
            history=self.history.followed_by(other.history),
            n_iter=self.n_iter + other.n_iter,
            n_evals=self.n_evals + other.n_evals,
        )
