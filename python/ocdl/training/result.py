"""How a training is stopped, why it ended, and what it returns."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import NoReturn

from ocdl import _core
from ocdl.model.controls import Controls
from ocdl.training.history import History

__all__ = ["Result", "Status", "Stop"]


class Status(enum.Enum):
    """Why a training ended; the value is a sentence.

    Examples
    --------
    >>> import ocdl
    >>> ocdl.Status.GRADIENT.value
    'the norm of the gradient is at most tol'
    """

    GRADIENT = "the norm of the gradient is at most tol"
    STEP = "the step is smaller than the roundoff of the controls"
    DECREASE = "the loss falls by no more than the share rtol of it"
    NO_PROGRESS = "no trial step lowers the loss"
    STAGES = "the next step leads to stage equations that are not solved"
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
        """Let the training return the last complete iterate, within a tenth of a second.

        Examples
        --------
        >>> import ocdl
        >>> stop = ocdl.Stop()
        >>> stop.request()
        >>> stop.requested
        True
        """
        self._flag.request()

    @property
    def requested(self) -> bool:
        """Whether somebody has asked the training to stop.

        Examples
        --------
        >>> import ocdl
        >>> ocdl.Stop().requested
        False
        """
        return self._flag.requested


NAMES_OF_OTHERS = {
    "predict": "net.predict(result.controls, X)",
    "x": "result.controls",
    "fun": "result.history.loss[-1]",
    "success": "result.status says why it ended",
    "nit": "result.n_iter",
    "nfev": "result.n_evals",
    "loss": "result.history.loss",
}


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

    Examples
    --------
    >>> import ocdl
    >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
    >>> net = ocdl.Network(2, 5)
    >>> r = ocdl.train(net, net.init(random_state=0), X, y, max_iter=10)
    >>> r.n_iter, r.n_evals >= r.n_iter, r.status.name, len(r.history)
    (10, True, 'ITERATION_LIMIT', 11)
    >>> r.message  # doctest: +ELLIPSIS
    '...'
    >>> r.controls.K.shape
    (5, 2, 2)
    """

    controls: Controls
    history: History
    n_iter: int
    n_evals: int
    status: Status
    message: str

    def __getattr__(self, name: str) -> NoReturn:
        instead = NAMES_OF_OTHERS.get(name)
        raise AttributeError(f"a Result has no {name!r}{f': {instead}' if instead else ''}", name=name, obj=self)

    def _ended_as(self, status: Status) -> Result:
        """Return the result with another status, which its message says too."""
        return replace(self, status=status, message=self.message.replace(self.status.value, status.value, 1))

    def followed_by(self, other: Result) -> Result:
        """Return the result of a training that went on with another one.

        Parameters
        ----------
        other : Result
            That of the training that went on.

        Returns
        -------
        Result
            With the controls, the status and the message of `other`, and the iterations of both.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> net = ocdl.Network(2, 5)
        >>> first = ocdl.train(net, net.init(random_state=0), X, y, max_iter=10)
        >>> first.followed_by(ocdl.train(net, first.controls, X, y, max_iter=5)).n_iter
        15
        """
        return replace(
            other,
            history=self.history.followed_by(other.history),
            n_iter=self.n_iter + other.n_iter,
            n_evals=self.n_evals + other.n_evals,
        )
