"""Training: an optimiser minimises the objective in the core; here it is watched, stored and resumed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from ocdl.base import validation as checks
from ocdl.base.keywords import known_keywords
from ocdl.base.randomness import seed_of
from ocdl.model.controls import Controls
from ocdl.model.objective import DEFAULT_OBJECTIVE, Objective
from ocdl.network import Network
from ocdl.training import checkpoint as checkpoints
from ocdl.training.failure import judged
from ocdl.training.optimisers import Backtracking, Chain, NewtonCG, Optimiser, stages_of
from ocdl.training.result import Result, Status, Stop
from ocdl.training.schedule import Every, Schedule, evaluations
from ocdl.training.session import Problem, Session, is_lower
from ocdl.training.watching import TrainingState, Watcher

__all__ = ["train"]

DEFAULT_OPTIMISER = Backtracking()
KEYWORDS_OF_OTHERS = {
    "lr": "optimiser=ocdl.Adam(lr=...)",
    "learning_rate": "optimiser=ocdl.Adam(lr=...)",
    "batch_size": "optimiser=ocdl.Adam(batch_size=...)",
    "loss": "objective=ocdl.Objective(loss=...)",
    "regulariser": "objective=ocdl.Objective(regulariser=...)",
    "regularizer": "objective=ocdl.Objective(regulariser=...)",
    "epochs": "max_iter",
    "n_iter": "max_iter",
    "iterations": "max_iter",
    "eval_set": "validation",
    "verbose": "progress",
    "seed": "random_state",
}
PASSED_ON = ("step", "no_progress", "decrease")  # ends of a stage after which the next optimiser may still get further


@known_keywords(KEYWORDS_OF_OTHERS)
def train(
    net: Network,
    u: Controls,
    X: ArrayLike,
    y: Any,
    *,
    objective: Objective = DEFAULT_OBJECTIVE,
    optimiser: Optimiser | Chain = DEFAULT_OPTIMISER,
    max_iter: int = 1000,
    tol: float = 1e-10,
    rtol: float = 0.0,
    sample_weight: ArrayLike | None = None,
    validation: tuple[ArrayLike, ArrayLike] | None = None,
    freeze: Iterable[str] = (),
    callback: Callable[[TrainingState], Any] | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    resume: str | os.PathLike[str] | None = None,
    random_state: Any = None,
    eval_every: int | Sequence[int] = 50,
    patience: int | None = None,
    stop: Stop | None = None,
) -> Result:
    """Minimise the objective over the controls, from `u` on.

    The loop runs in the compiled core. Ctrl-C stops it within a tenth of a second, in the middle of an evaluation if
    need be; with `checkpoint`, the last complete iterate is on disk before KeyboardInterrupt is raised.

    Parameters
    ----------
    net : Network
        Steps on the simplex are kept there by projection.
    u : Controls
        The start; not changed.
    X, y, sample_weight
        As for `Network.value`.
    objective : Objective
        What is minimised.
    optimiser : GradientDescent, Backtracking, Armijo, Adam, LBFGS, NewtonCG or Chain
        How.
    max_iter : int
        Iterations at most.
    tol : float
        The training ends when the norm of the gradient, with steps on the simplex that of ``P(u - g) - u``, is at most
        this. Not looked at with batches.
    rtol : float
        The training ends as well when an iteration lowers the loss by at most this share of it; 0: never. Not looked at
        by methods whose loss may rise (`Adam`, `GradientDescent`).
    validation : (X, y), optional
        Data on which loss and score are noted, as often as `eval_every` says.
    freeze : collection of {"K", "b", "h", "W", "mu"}
        Parts of the controls that stay as they are. The paper's fixed classifier is ``freeze=("W", "mu")``.
    callback : callable, optional
        Called with a `TrainingState` several times a second at most, and at the end; True ends the training.
    progress : bool
        Whether to show a progress bar.
    checkpoint : path, optional
        Where to store the state of the training: at the start, regularly, and at the end.
    checkpoint_every : int, optional
        Iterations between two checkpoints; none: half a minute.
    resume : path, optional
        A checkpoint to go on from, bit for bit as if the training had not been interrupted; the controls `u` and
        `random_state` are then those of the checkpoint. Network, objective, optimiser, `freeze` and data must be the
        same.
    random_state : None, int, numpy Generator or RandomState
        The source of random batches.
    eval_every : int or sequence of int
        Iterations between two evaluations of the scores and the validation loss; or those iterations themselves, which
        may be dense at first. Start and end are always evaluated.
    patience : int, optional
        The training ends when the validation loss has not become lower in so many evaluations; the controls of the
        lowest one are returned. Needs `validation`.
    stop : Stop, optional
        A handle to end the training from another thread.

    Returns
    -------
    Result

    Raises
    ------
    FloatingPointError
        If the objective is not finite at the start; it names the sample and the layer.

    Examples
    --------
    >>> import numpy as np, ocdl
    >>> X, y = ocdl.datasets.make_donut1d(200, random_state=0)
    >>> net = ocdl.Network.preset("odenet", 2, 10)
    >>> r = ocdl.train(net, net.init(random_state=0), X, y, max_iter=200)
    >>> r.status
    <Status.ITERATION_LIMIT: 'all iterations were made'>
    >>> bool(np.all(np.diff(r.history.loss) <= 0))
    True
    """
    if not isinstance(net, Network):
        raise TypeError(f"net must be a Network, got {type(net).__name__}")
    max_iter = checks.integer(max_iter, "max_iter", least=0)
    evaluated = evaluations(eval_every)
    if patience is not None:
        patience = checks.integer(patience, "patience", least=1)
        if validation is None:
            raise ValueError("patience needs validation data: validation=(X, y)")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable, got {type(callback).__name__}")
    if stop is not None and not isinstance(stop, Stop):
        raise TypeError(f"stop must be an ocdl.Stop, got {type(stop).__name__}")
    progress = checks.boolean(progress, "progress")
    problem, vector = _problem(net, u, X, y, objective, sample_weight, validation, freeze, tol, rtol)
    stages = stages_of(optimiser)
    if any(isinstance(method, NewtonCG) for method, _ in stages):
        objective._require_second_derivatives()
    session = Session(problem, vector, stages, max_iter, seed_of(random_state), (stop or Stop())._flag)
    saver = _storage(session, optimiser, checkpoint, checkpoint_every, resume)
    try:
        with Watcher(callback, progress, max_iter) as watcher:
            status = _iterate(session, watcher, saver, evaluated, patience)
            watcher.look(session, last=True)
    finally:
        if saver:
            saver.save(session)
    return _result(session, status, patience)


def _storage(
    session: Session,
    optimiser: Optimiser | Chain,
    checkpoint: str | os.PathLike[str] | None,
    checkpoint_every: int | None,
    resume: str | os.PathLike[str] | None,
) -> checkpoints.Saver | None:
    """Bring the session into the state of `resume`, and return who stores it; an unwritable file is noticed at once."""
    if checkpoint_every is not None:
        checkpoint_every = checks.integer(checkpoint_every, "checkpoint_every", least=1)
        if checkpoint is None:
            raise ValueError("checkpoint_every needs a file to write to: checkpoint=path")
    for name, path in (("checkpoint", checkpoint), ("resume", resume)):
        if path is not None and not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"{name} must be a path, got {path!r} ({type(path).__name__})")
    if checkpoint is None and resume is None:
        return None
    identity = checkpoints.fingerprint(session.problem, optimiser)
    if resume is not None:
        checkpoints.restore(resume, session, identity)
    if checkpoint is None:
        return None
    saver = checkpoints.Saver(checkpoint, checkpoint_every, identity)
    saver.save(session)
    return saver


def _iterate(
    session: Session, watcher: Watcher, saver: checkpoints.Saver | None, evaluated: Schedule, patience: int | None
) -> Status:
    """Run the session to its end, with everything that is due on the way."""
    if not session.is_started and not session.start():
        return Status.INTERRUPTED
    while not session.stop.requested:
        iteration = session.iteration
        if iteration in evaluated and not session.is_evaluated:
            session.note_evaluation(keep_best=patience is not None)
            if session.stop.requested:
                break
        if patience is not None and session.best is not None and session.best.stalled >= patience:
            return Status.VALIDATION
        due = [evaluated.after(iteration)]
        if saver and saver.every is not None:
            due.append(Every(saver.every).after(iteration))
        status = session.advance(min(due))
        if saver and session.iteration > iteration:
            saver.save_if_due(session)
        if watcher.look(session):
            break
        if status == "running" and session.iteration < session.stage_end:
            continue
        if status not in ("running", *PASSED_ON):
            return Status[status.upper()]
        if not session.stop.requested and not session.next_stage():
            return Status.ITERATION_LIMIT if status == "running" else Status[status.upper()]
    return Status.INTERRUPTED


def _result(session: Session, status: Status, patience: int | None) -> Result:
    last = None if status is Status.INTERRUPTED else session.last_evaluation()
    history, controls, best = session.history(last), session.controls, session.best
    status = judged(session, history, status)
    message = (
        f"{status.value}: loss {history.loss[-1]:.6g}, gradient norm {history.gradient_norm[-1]:.3g} "
        f"after {session.iteration} iterations and {session.n_evals} evaluations"
    )
    if patience is not None and best is not None and not (last and is_lower(last.val_loss, best.val_loss)):
        controls = Controls(controls._layout, best.controls)
        message += f"; the controls are those of the lowest validation loss, {best.val_loss:.6g}"
    return Result(controls, history, session.iteration, session.n_evals, status, message)


def _problem(
    net: Network,
    u: Controls,
    X: ArrayLike,
    y: ArrayLike,
    objective: Objective,
    sample_weight: ArrayLike | None,
    validation: tuple[ArrayLike, ArrayLike] | None,
    freeze: Iterable[str],
    tol: float,
    rtol: float,
) -> tuple[Problem, Any]:
    """Return what is trained, checked, and the start as a vector of its own."""
    vector, rows, targets, weights = net._problem(u, X, y, objective, sample_weight)
    frozen = _frozen(net, freeze)
    start = Controls(net._layout, vector.copy())
    if net.time_steps == "simplex":
        start.h[...] = net._onto_simplex(start.h)
    checked = None
    if validation is not None:
        if not isinstance(validation, (tuple, list)) or len(validation) != 2:
            raise TypeError(f"validation must be a pair (X, y), got {type(validation).__name__}")
        val_rows = checks.samples(validation[0], net.n_features, net.dtype, "the X of validation")
        try:
            checked = val_rows, objective._checked_targets(validation[1], len(val_rows), net.n_outputs, net.dtype)
        except (TypeError, ValueError) as error:
            raise type(error)(f"validation: {error}") from error
    tol, rtol = checks.not_negative(tol, "tol"), checks.not_negative(rtol, "rtol")
    return Problem(net, rows, targets, weights, objective, checked, frozen, tol, rtol), start._vector


def _frozen(net: Network, freeze: Iterable[str]) -> tuple[str, ...]:
    try:
        given = None if isinstance(freeze, (str, bytes)) else list(freeze)
    except TypeError:
        given = None
    if given is None:
        raise TypeError(f"freeze must be a collection of names, as in ('W', 'mu'), got {freeze!r}")
    known = [part.name for part in net.parts]
    names = [checks.choice(name, "freeze", known) for name in given]
    return tuple(part for part in known if part in names)
