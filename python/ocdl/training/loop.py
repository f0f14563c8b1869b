"""Training: an optimiser minimises the objective in the core, with callbacks, evaluations and checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ocdl.base import memory
from ocdl.base import validation as checks
from ocdl.base.keywords import known_keywords
from ocdl.base.names import pluralise
from ocdl.base.randomness import draw_seed
from ocdl.base.validation import FloatArray
from ocdl.data.row_source import Rows
from ocdl.distributed.ranks import join_ranks
from ocdl.model.controls import Controls
from ocdl.model.initial_states import InitialStates
from ocdl.model.objective import DEFAULT_OBJECTIVE, Objective
from ocdl.network import Network
from ocdl.storage.container import FilePath
from ocdl.training import checkpoint as checkpoints
from ocdl.training.agreement import describe_arguments
from ocdl.training.checkpoint import Checkpoint, as_checkpoint
from ocdl.training.failure import collect_evidence, diagnose
from ocdl.training.optimisers import Backtracking, Chain, NewtonCG, Optimiser, stages_of
from ocdl.training.problem import Problem
from ocdl.training.result import Result, Status
from ocdl.training.schedule import Every, Schedule, evaluations
from ocdl.training.session import Session, is_lower
from ocdl.training.validation import Validation, as_validation
from ocdl.training.watching import Monitor, TrainingState

__all__ = ["train"]

DEFAULT_OPTIMISER = Backtracking()
FOREIGN_KEYWORDS = {
    "lr": "optimiser=ocdl.Adam(lr=...)",
    "learning_rate": "optimiser=ocdl.Adam(lr=...)",
    "batch_size": "optimiser=ocdl.Adam(batch_size=...)",
    "loss": "objective=ocdl.Objective(loss=...)",
    "regulariser": "objective=ocdl.Objective(penalties=...)",
    "regularizer": "objective=ocdl.Objective(penalties=...)",
    "epochs": "max_iter",
    "n_iter": "max_iter",
    "iterations": "max_iter",
    "eval_set": "validation",
    "validation_data": "validation",
    "patience": "validation=ocdl.Validation(X, y, patience=...)",
    "callbacks": "callback",
    "stop": "callback, which returns True to end the training",
    "checkpoint_every": "checkpoint=ocdl.Checkpoint(path, every=...)",
    "resume": "checkpoint=ocdl.Checkpoint(path, resume=True)",
    "verbose": "progress",
    "seed": "random_state",
}
CONTINUABLE = (
    "step_tolerance",
    "line_search_failed",
    "loss_tolerance",
)  # by the next optimiser


@known_keywords(FOREIGN_KEYWORDS)
def train(
    net: Network,
    u: Controls,
    X: ArrayLike | Rows,
    y: Any = None,
    *,
    objective: Objective | None = None,
    optimiser: Optimiser | Chain | None = None,
    max_iter: int = 1000,
    tol: float = 1e-10,
    rtol: float = 0.0,
    sample_weight: ArrayLike | None = None,
    inputs: ArrayLike | None = None,
    freeze: Iterable[str] = (),
    initial_states: InitialStates | None = None,
    validation: tuple[ArrayLike, Any] | Rows | Validation | None = None,
    eval_every: int | Sequence[int] = 50,
    checkpoint: FilePath | Checkpoint | None = None,
    callback: Callable[[TrainingState], Any] | None = None,
    progress: bool = False,
    random_state: Any = None,
    communicator: Any = None,
) -> Result:
    """Minimise the objective over the controls, from `u` on.

    The loop runs in the compiled core. Ctrl-C stops it within a tenth of a second, even in the middle of an
    evaluation; with `checkpoint`, the last complete iterate is on disk before KeyboardInterrupt is raised.

    Parameters
    ----------
    net : Network
        Learned time steps on the simplex stay there by projection.
    u : Controls
        The start; it is not changed.
    X : array_like of shape (samples, features), or RowSource
        Out-of-core data: a `RowSource`, or any object with ``n_rows`` and ``rows(i, j)``. Its rows carry targets and
        weights: leave out `y` and `sample_weight`. A custom loss is then called chunk by chunk, without a score.
    y : array_like of shape (samples,) or (samples, outputs), or Observations
        As for `Network.value`.
    objective : Objective, optional
        The function to minimise; None: ``Objective()``.
    optimiser : GradientDescent, Backtracking, Armijo, Adam, LBFGS, NewtonCG or Chain, optional
        None: ``Backtracking()``.
    max_iter : int
        The maximum number of iterations.
    tol : float
        The training ends when the norm of the gradient is at most this: with steps on the simplex or an `L1` penalty
        the norm of ``prox(P(u - g)) - u``, with g the gradient of all other terms. Not checked with batches.
    rtol : float
        The training ends when an iteration lowers the loss by at most this fraction of it; 0: never. Not checked with
        optimisers whose loss may rise (`Adam`, `GradientDescent`).
    sample_weight : array_like of shape (samples,), optional
    inputs : array_like of shape (samples, layers [+ 1], inputs), optional
        As for `Network.forward`, of a network with inputs.
    freeze : collection of {"K", "b", "h", "W", "mu"}
        Parts of the controls that stay as they are. The fixed classifier of the paper is ``freeze=("W", "mu")``.
    initial_states : InitialStates, optional
        Learn the state that each sample starts from, too; `Result.initial_states` has them.
    validation : (X, y), RowSource or Validation, optional
        Data on which loss and score are evaluated, as often as `eval_every` says. `Validation` has weights and early
        stopping as well.
    eval_every : int or sequence of int
        Iterations between two evaluations of the scores and the validation loss; or the evaluated iterations
        themselves. Start and end are always evaluated.
    checkpoint : path or Checkpoint, optional
        A file for the state of the training. `Checkpoint` says how often it is written, and resumes from it.
    callback : callable, optional
        Called with a `TrainingState` at most ten times a second, and at the end. If it returns True, the training ends.
    progress : bool
        Whether to show a progress bar.
    random_state : None, int, numpy Generator or RandomState
        The source of random batches.
    communicator : mpi4py.MPI.Intracomm or ocdl.distributed.Communicator, optional
        The ranks that train together: each calls `train` with its own rows of X, y, `sample_weight` and `validation`,
        as `ocdl.distributed.local_rows` returns them, and with the same other arguments. Loss, gradient and controls
        have the same bits for any number of ranks, and for one process with all rows; every rank returns the same. The
        root writes checkpoints, shows the progress and draws the seed. Each rank calls its own callback; True on any of
        them ends the training.

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
        objective = DEFAULT_OBJECTIVE if objective is None else objective
        optimiser = DEFAULT_OPTIMISER if optimiser is None else optimiser
        max_iter = checks.integer(max_iter, "max_iter", minimum=0)
        schedule, held_out, file = evaluations(eval_every), as_validation(validation), as_checkpoint(checkpoint)
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable, got {type(callback).__name__}")
        progress = checks.boolean(progress, "progress")
        net._require_fit(objective)
        vector = _start_of(net, u)
        steps = Controls(net._layout, vector).h
        problem = Problem.from_arguments(
            ranks, net, X, y, objective, sample_weight, inputs, held_out, freeze, tol, rtol, initial_states, steps
        )
        stages = stages_of(optimiser)
        states = problem.data.initial_states()
        if states is not None:
            _require_all_samples(method for method, _ in stages)
            vector = np.concatenate([vector, states.ravel()])
        require_memory(net, len(problem.data), [method for method, _ in stages], len(vector))
        if any(isinstance(method, NewtonCG) for method, _ in stages):
            objective._require_second_derivatives()
            _require_smooth(objective)
            if net.nonexpansive:
                raise ValueError(
                    "NewtonCG takes no network with nonexpansive=True, whose matrices are projected: choose LBFGS, "
                    "Adam, Backtracking, Armijo or GradientDescent"
                )
        _require_no_l1_on_simplex(problem)
        _require_no_l1_on_projected(problem)
        patience = None if held_out is None else held_out.patience
        settings = {"max_iter": max_iter, "eval_every": str(schedule), "patience": patience}
        ranks.require_agreement(lambda: describe_arguments(problem, vector, optimiser) | settings)
        problem = problem.distribute()
        session = Session(problem, vector, stages, max_iter, ranks.broadcast(lambda: draw_seed(random_state)))
        saver = _open_checkpoint(session, optimiser, file)
        try:
            with Monitor(callback, progress and ranks.is_root, max_iter) as monitor:
                status = _iterate(session, monitor, saver, schedule, patience)
                monitor.poll(session, last=True)
        finally:
            if saver:
                saver.save(session)
        return _result(session, status, patience)


def _start_of(net: Network, u: Controls) -> FloatArray:
    """Return a copy of the controls as a vector, with the time steps on the simplex if they belong there."""
    start = Controls(net._layout, net._vector(u).copy())
    if net.time_steps == "simplex":
        start.h[...] = net._onto_simplex(start.h)
    return start._vector


def _require_all_samples(methods: Iterable[Optimiser]) -> None:
    """Raise if initial states cannot be learned with a method."""
    for method in methods:
        if isinstance(method, NewtonCG) or getattr(method, "batch_size", None) is not None:
            raise ValueError(
                f"initial_states cannot be learned with {method!r:.80}: choose LBFGS, Backtracking, Armijo, "
                "GradientDescent, or Adam without batch_size"
            )


def _require_smooth(objective: Objective) -> None:
    """Raise if a penalty has no second derivatives."""
    if objective._nonsmooth_penalties:
        raise ValueError(
            f"NewtonCG minimises functions with second derivatives, and {objective._nonsmooth_penalties[0]} has none "
            "where a control is 0: choose LBFGS, Backtracking, Armijo or GradientDescent, which take its proximal map"
        )


def _require_no_l1_on_simplex(problem: Problem) -> None:
    """Raise if an L1 penalty is constant, because it is on time steps of the simplex."""
    if problem.net.time_steps != "simplex" or "h" in problem.frozen:
        return
    for term in problem.objective._nonsmooth_penalties:
        if "h" in (term.parts or ()):
            raise ValueError(
                f"{term} has no effect: time_steps='simplex' keeps the sum of the steps at the horizon; "
                "leave 'h' out of parts, or freeze it"
            )


def _require_no_l1_on_projected(problem: Problem) -> None:
    """Raise if a nonsmooth penalty acts on matrices that are projected."""
    if not problem.net.nonexpansive or "K" in problem.frozen:
        return
    for term in problem.objective._nonsmooth_penalties:
        if term.parts is None or "K" in term.parts:
            raise ValueError(f"{term} acts on K, which nonexpansive=True projects: name other parts, as in ('W',)")


def require_memory(net: Network, samples: int, methods: Sequence[Optimiser], n_variables: int | None = None) -> None:
    """Raise a MemoryError if the training does not fit into memory, before anything is allocated.

    `n_variables`: the controls and what is learned beside them.
    """
    size = (n_variables or net.n_controls) * float(net.dtype.itemsize)
    largest = max(methods, key=lambda method: method._vectors)
    single = net.dtype.itemsize == 4
    memory.require_memory(
        f"the training of {net.n_controls} controls",
        {
            f"for the {largest._vectors} vectors of {largest!r:.80}": largest._vectors * size,
            f"for the sweeps of samples through {pluralise(net.n_layers, 'layer')}": net._core_network.scratch_bytes(
                samples, single
            ),
        },
    )


def _open_checkpoint(
    session: Session, optimiser: Optimiser | Chain, checkpoint: Checkpoint | None
) -> checkpoints.Saver | None:
    """Resume from the checkpoint if it says so, and return its writer on the root; an unwritable file raises now."""
    ranks = session.ranks
    is_given, is_resumed = ranks.broadcast(
        lambda: (checkpoint is not None, checkpoint is not None and checkpoint._is_resumed)
    )
    if not is_given:
        return None
    identity = checkpoints.fingerprint(session.problem, optimiser)
    if is_resumed:
        checkpoints.restore(checkpoint, session, identity)
    if checkpoint is None or not ranks.is_root:
        return None
    saver = checkpoints.Saver(checkpoint, identity)
    saver.save(session)
    return saver


def _iterate(
    session: Session, monitor: Monitor, saver: checkpoints.Saver | None, schedule: Schedule, patience: int | None
) -> Status:
    """Run the session to its end, with evaluations, checkpoints and callbacks between the slices."""
    if not session.is_started:
        session.start()
    while True:
        iteration = session.iteration
        if iteration in schedule and not session.is_evaluated:
            session.note_evaluation(keep_best=patience is not None)
        if patience is not None and session.best is not None and session.best.stalled >= patience:
            return Status.EARLY_STOPPING
        due = [schedule.after(iteration)]
        if saver and saver.every is not None:
            due.append(Every(saver.every).after(iteration))
        status = session.advance(min(due))
        if saver and session.iteration > iteration:
            saver.save_if_due(session)
        if session.ranks.allreduce_any(monitor.poll(session)):
            return Status.INTERRUPTED
        if status == "running" and session.iteration < session.stage_end:
            continue
        if status not in ("running", *CONTINUABLE):
            return Status[status.upper()]
        if not session.next_stage():
            return Status.ITERATION_LIMIT if status == "running" else Status[status.upper()]


def _result(session: Session, status: Status, patience: int | None) -> Result:
    last = None if status is Status.INTERRUPTED else session.last_evaluation()
    history, vector, best = session.history(last), session.core.controls(), session.best
    status = diagnose(collect_evidence(session, history, status)).status
    unsolved = session.find_unsolved_stages() if status in (Status.LINE_SEARCH_FAILED, Status.NOT_FINITE) else None
    if unsolved is not None:
        status = Status.STAGES
    reason = status.value if unsolved is None else f"{status.value}: {unsolved}"
    message = (
        f"{reason}: loss {history.loss[-1]:.6g}, gradient norm {history.gradient_norm[-1]:.3g} "
        f"after {pluralise(session.iteration, 'iteration')} and {pluralise(session.n_evals, 'evaluation')}"
    )
    if patience is not None and best is not None and not (last and is_lower(last.val_loss, best.val_loss)):
        vector = best.controls
        message += f"; the controls are those of the lowest validation loss, {best.val_loss:.6g}"
    controls, states = session.split(vector)
    return Result(controls, history, session.iteration, session.n_evals, status, message, states)
