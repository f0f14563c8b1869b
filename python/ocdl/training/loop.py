"""Training: an optimiser minimises the objective in the core; here it is watched, stored and resumed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from ocdl.base import memory
from ocdl.base import validation as checks
from ocdl.base.keywords import known_keywords
from ocdl.base.names import counted
from ocdl.base.randomness import seed_of
from ocdl.base.validation import FloatArray
from ocdl.distributed.ranks import Ranks, join_ranks
from ocdl.distributed.row_distribution import row_range
from ocdl.model.controls import Controls
from ocdl.model.objective import DEFAULT_OBJECTIVE, Objective
from ocdl.network import Network
from ocdl.streaming.source import Rows, is_source
from ocdl.streaming.streamed import Streamed
from ocdl.training import checkpoint as checkpoints
from ocdl.training.agreement import agreed_upon
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
    X: ArrayLike | Rows,
    y: Any = None,
    *,
    objective: Objective = DEFAULT_OBJECTIVE,
    optimiser: Optimiser | Chain = DEFAULT_OPTIMISER,
    max_iter: int = 1000,
    tol: float = 1e-10,
    rtol: float = 0.0,
    sample_weight: ArrayLike | None = None,
    validation: tuple[ArrayLike, ArrayLike] | Rows | None = None,
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
    communicator: Any = None,
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
    X : array_like of shape (samples, features), or Source
        Samples that are not in memory: a `Source`, or any object with ``n_rows`` and ``rows(i, j)``, whose rows have
        targets and weights with them; y and `sample_weight` are left out. Then a loss of one's own is called piece by
        piece, and its score is not computed.
    y : array_like of shape (samples,) or (samples, outputs)
        As for `Network.value`.
    sample_weight : array_like of shape (samples,), optional
    objective : Objective
        What is minimised.
    optimiser : GradientDescent, Backtracking, Armijo, Adam, LBFGS, NewtonCG or Chain
        How.
    max_iter : int
        Iterations at most.
    tol : float
        The training ends when the norm of the gradient is at most this: with steps on the simplex or an `L1` penalty
        the norm of ``prox(P(u - g)) - u``, with g the gradient of all else. Not checked with batches.
    rtol : float
        The training ends as well when an iteration lowers the loss by at most this share of it; 0: never. Not looked at
        by methods whose loss may rise (`Adam`, `GradientDescent`).
    validation : (X, y) or Source, optional
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
        same; of a source, the number of rows and 64 rows at 16 places are looked at. Another core (instruction set)
        than the one that wrote the checkpoint has other bits, of which a RuntimeWarning warns.
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
    communicator : mpi4py.MPI.Intracomm or ocdl.distributed.Communicator, optional
        The ranks that train together: each calls `train` with its own rows of X, y, `sample_weight` and `validation`,
        as `ocdl.distributed.local_rows` returns them, and with all else alike. Loss, gradient and controls have the
        same bits for any number of ranks, and one process with all rows has them, too; every rank returns the same. The
        root writes checkpoints, calls the callback, shows the progress and draws the seed.

    Returns
    -------
    Result

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit, or a checkpoint belongs to another training.
    FloatingPointError
        If the objective is not finite at the start; it names the sample and the layer.
    KeyboardInterrupt
        After Ctrl-C; with `checkpoint` nothing is lost.

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
    with join_ranks(communicator) as ranks:
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
        problem, vector = _problem(ranks, net, u, X, y, objective, sample_weight, validation, freeze, tol, rtol)
        stages = stages_of(optimiser)
        require_memory(net, len(problem.X), [method for method, _ in stages])
        if any(isinstance(method, NewtonCG) for method, _ in stages):
            objective._require_second_derivatives()
            _require_smooth(objective)
        _require_no_l1_on_simplex(problem)
        schedule = {"max_iter": max_iter, "eval_every": str(evaluated), "patience": patience}
        ranks.require_agreement(lambda: agreed_upon(problem, vector, optimiser) | schedule)
        problem = problem.distributed()
        seed = ranks.broadcast(lambda: seed_of(random_state))
        session = Session(problem, vector, stages, max_iter, seed, (stop or Stop())._flag)
        saver = _storage(session, optimiser, checkpoint, checkpoint_every, resume)
        try:
            with Watcher(callback if ranks.is_root else None, progress and ranks.is_root, max_iter) as watcher:
                status = _iterate(session, watcher, saver, evaluated, patience)
                watcher.look(session, last=True)
        finally:
            if saver:
                saver.save(session)
        return _result(session, status, patience)


def _require_smooth(objective: Objective) -> None:
    """Refuse penalties without second derivatives."""
    if objective._nonsmooth_terms:
        raise ValueError(
            f"NewtonCG minimises functions with second derivatives, and {objective._nonsmooth_terms[0]} has none "
            "where a control is 0: choose LBFGS, Backtracking, Armijo or GradientDescent, which take its proximal map"
        )


def _require_no_l1_on_simplex(problem: Problem) -> None:
    """Refuse a penalty that is constant."""
    if problem.net.time_steps != "simplex" or "h" in problem.frozen:
        return
    for term in problem.objective._nonsmooth_terms:
        if "h" in (term.parts or ()):
            raise ValueError(
                f"{term} has no effect: time_steps='simplex' keeps the sum of the steps at the horizon; "
                "leave 'h' out of parts, or freeze it"
            )


def require_memory(net: Network, samples: int, methods: Sequence[Optimiser]) -> None:
    """Refuse a training that cannot fit; what it takes is known before anything is made for it."""
    size = net.n_controls * float(net.dtype.itemsize)
    largest = max(methods, key=lambda method: method._vectors)
    single = net.dtype.itemsize == 4
    memory.require(
        f"the training of {net.n_controls} controls",
        {
            f"for the {largest._vectors} vectors of {largest!r:.80}": largest._vectors * size,
            f"for the sweeps of samples through {counted(net.n_layers, 'layer')}": net._core_network.scratch_bytes(
                samples, single
            ),
        },
    )


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
            raise TypeError(f"{name} must be a path, got {checks.shown(path)}")
    ranks = session.ranks
    resumes, stores = ranks.broadcast(lambda: (resume is not None, checkpoint is not None))
    if not resumes and not stores:
        return None
    identity = checkpoints.fingerprint(session.problem, optimiser)
    if resumes:
        checkpoints.restore(resume, session, identity)
    if checkpoint is None or not ranks.is_root:
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
    while not session.look_for_a_stop():
        iteration = session.iteration
        if iteration in evaluated and not session.is_evaluated:
            session.note_evaluation(keep_best=patience is not None)
            if session.is_stopped:
                break
        if patience is not None and session.best is not None and session.best.stalled >= patience:
            return Status.VALIDATION
        due = [evaluated.after(iteration)]
        if saver and saver.every is not None:
            due.append(Every(saver.every).after(iteration))
        status = session.advance(min(due))
        if saver and session.iteration > iteration:
            saver.save_if_due(session)
        if session.ranks.allreduce_any(watcher.look(session)):
            break
        if status == "running" and session.iteration < session.stage_end:
            continue
        if status not in ("running", *PASSED_ON):
            return Status[status.upper()]
        if not session.look_for_a_stop() and not session.next_stage():
            return Status.ITERATION_LIMIT if status == "running" else Status[status.upper()]
    return Status.INTERRUPTED


def _result(session: Session, status: Status, patience: int | None) -> Result:
    last = None if status is Status.INTERRUPTED else session.last_evaluation()
    history, controls, best = session.history(last), session.controls, session.best
    status = judged(session, history, status)
    unsolved = session.find_unsolved_stages() if status in (Status.NO_PROGRESS, Status.NOT_FINITE) else None
    if unsolved is not None:
        status = Status.STAGES
    reason = status.value if unsolved is None else f"{status.value}: {unsolved}"
    message = (
        f"{reason}: loss {history.loss[-1]:.6g}, gradient norm {history.gradient_norm[-1]:.3g} "
        f"after {counted(session.iteration, 'iteration')} and {counted(session.n_evals, 'evaluation')}"
    )
    if patience is not None and best is not None and not (last and is_lower(last.val_loss, best.val_loss)):
        controls = Controls(controls._layout, best.controls)
        message += f"; the controls are those of the lowest validation loss, {best.val_loss:.6g}"
    return Result(controls, history, session.iteration, session.n_evals, status, message)


def _problem(
    ranks: Ranks,
    net: Network,
    u: Controls,
    X: Any,
    y: Any,
    objective: Objective,
    sample_weight: ArrayLike | None,
    validation: tuple[ArrayLike, ArrayLike] | Rows | None,
    freeze: Iterable[str],
    tol: float,
    rtol: float,
) -> tuple[Problem, Any]:
    """Return what is trained, checked, and the start as a vector of its own."""
    rows: FloatArray | Streamed
    if is_source(X):
        net._require_fit(objective)
        vector, targets, weights = net._vector(u), None, None
        for name, given in (("y", y), ("sample_weight", sample_weight)):
            if given is not None:
                raise TypeError(f"{name} must be left out with a source, whose rows have it with them")
        rows = Streamed(X, net, objective, part=_part(ranks, X))
    else:
        vector, rows, targets, weights = net._problem(u, X, y, objective, sample_weight, least=ranks.min_rows)
    frozen = _frozen(net, freeze)
    start = Controls(net._layout, vector.copy())
    if net.time_steps == "simplex":
        start.h[...] = net._onto_simplex(start.h)
    checked: tuple[FloatArray | Streamed, Any] | None = None
    if is_source(validation):
        checked = Streamed(validation, net, objective, "validation", _part(ranks, validation)), None
    elif validation is not None:
        if not isinstance(validation, (tuple, list)) or len(validation) != 2:
            raise TypeError(f"validation must be a pair (X, y) or a source, got {type(validation).__name__}")
        val_rows = checks.samples(validation[0], net.n_features, net.dtype, "the X of validation", ranks.min_rows)
        try:
            checked = val_rows, objective._checked_targets(validation[1], len(val_rows), net.n_outputs, net.dtype)
        except (TypeError, ValueError) as error:
            raise type(error)(f"validation: {error}") from error
    tol, rtol = checks.not_negative(tol, "tol"), checks.not_negative(rtol, "rtol")
    return Problem(net, rows, targets, weights, objective, checked, frozen, tol, rtol, ranks), start._vector


def _part(ranks: Ranks, source: Rows) -> slice | None:
    """Return which rows of a source this rank reads; None: all."""
    return None if ranks.size == 1 else row_range(ranks.rank, ranks.size, source.n_rows)


def _frozen(net: Network, freeze: Iterable[str]) -> tuple[str, ...]:
    try:
        given = None if isinstance(freeze, (str, bytes)) else list(freeze)
    except TypeError:
        given = None
    if given is None:
        raise TypeError(f"freeze must be a collection of names, as in ('W', 'mu'), got {checks.written(freeze)}")
    known = [part.name for part in net.parts]
    names = [checks.choice(name, "freeze", known) for name in given]
    return tuple(part for part in known if part in names)
