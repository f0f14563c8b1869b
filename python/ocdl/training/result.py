"""Why a training ended, and what it returns."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

from ocdl.base.validation import FloatArray
from ocdl.model.controls import Controls
from ocdl.training.history import History

__all__ = ["Result", "Status"]


class Status(enum.Enum):
    """Why a training ended; the value is a sentence.

    Examples
    --------
    >>> import ocdl
    >>> ocdl.Status.GRADIENT.value
    'the norm of the gradient is at most tol'
    """

    GRADIENT = "the norm of the gradient is at most tol"
    STEP_TOLERANCE = "the step is smaller than the roundoff of the controls"
    LOSS_TOLERANCE = "the relative decrease of the loss is at most rtol"
    LINE_SEARCH_FAILED = "no trial step lowers the loss"
    STAGES = "the next step leads to stage equations that are not solved"
    NOT_FINITE = "the next step leads to a loss or gradient that is not finite"
    ITERATION_LIMIT = "all iterations were made"
    EARLY_STOPPING = "the validation loss has not become lower for a while"
    DIVERGED = "the loss is higher than at the start"
    SATURATED = "the outputs have saturated: their gradients vanish although little is predicted"
    INTERRUPTED = "a callback or Ctrl-C ended the training"


CONVERGED = (Status.GRADIENT, Status.STEP_TOLERANCE, Status.LOSS_TOLERANCE)
FOREIGN_NAMES = {
    "predict": "net.predict(result.controls, X)",
    "x": "result.controls",
    "fun": "result.history.loss[-1]",
    "success": "result.converged",
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
        The last iterate; with `Validation.patience` the evaluated one of the lowest validation loss.
    history : History
        Every iteration.
    n_iter, n_evals : int
        Iterations made, and evaluations of the objective with its gradient; `NewtonCG` says how its products count.
    status : Status
        Why the training ended; its value is a sentence.
    message : str
        The same with the numbers.
    initial_states : ndarray of shape (samples, dim) or None
        Those that were learned, with `InitialStates`.
    converged : bool
        Whether a tolerance was reached.

    Examples
    --------
    >>> import ocdl
    >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
    >>> net = ocdl.Network(2, 5)
    >>> r = ocdl.train(net, net.init(random_state=0), X, y, max_iter=10)
    >>> r.n_iter, r.n_evals >= r.n_iter, r.status.name, len(r.history), r.initial_states
    (10, True, 'ITERATION_LIMIT', 11, None)
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
    initial_states: FloatArray | None = None

    @property
    def converged(self) -> bool:
        """Whether the training ended at `tol`, at `rtol`, or at a step as small as roundoff.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> net = ocdl.Network(2, 5)
        >>> ocdl.train(net, net.init(0), X, y, optimiser=ocdl.LBFGS(), tol=0.01).converged
        True
        """
        return self.status in CONVERGED

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            replacement = FOREIGN_NAMES.get(name)
            advice = f"; use {replacement}" if replacement else ""
            raise AttributeError(f"a Result has no attribute {name!r}{advice}", name=name, obj=self)

    def _with_status(self, status: Status) -> Result:
        """Return the result with another status, which its message says too."""
        return replace(self, status=status, message=self.message.replace(self.status.value, status.value, 1))

    def followed_by(self, other: Result) -> Result:
        """Return the result of this training and another one that continued it from its end.

        Parameters
        ----------
        other : Result
            The result of the second training.

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
