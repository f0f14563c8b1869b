"""Train the network of a plan: first with a weak prior, then with the full one."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from ocdl.base.names import pluralise
from ocdl.base.threads import limit_threads
from ocdl.estimator.alpha import resolve_by_folds
from ocdl.estimator.epochs import group_by_epochs, run_epoch
from ocdl.estimator.importances import importances
from ocdl.estimator.plan import FitPlan, FittedNetwork
from ocdl.estimator.prior import SHORT, WEAK_FRACTION, WEAK_ITERATIONS, reach
from ocdl.model.controls import Controls
from ocdl.model.objective import Objective
from ocdl.network import Network
from ocdl.training.failure import Evidence, diagnose
from ocdl.training.loop import require_memory, train
from ocdl.training.optimisers import Adam, GradientDescent, stages_of
from ocdl.training.result import Result, Status
from ocdl.training.watching import TrainingState


def fit_network(plan: FitPlan) -> FittedNetwork:
    """Return the network of a plan with fitted controls; a function of the plan alone."""
    with limit_threads(plan.threads):
        if plan.adam is not None:
            return _fit_epoch(plan)
        require_memory(plan.network, len(plan.samples.X), [method for method, _ in stages_of(plan.method)])
        if isinstance(plan.alpha, str):
            plan = resolve_by_folds(plan, fit_network)
        callback = _Callback(plan)
        first = _train_weakly(plan, callback)
        if first is None:
            return _diagnose_phases(plan, [_train(plan, plan.start, callback)])
        if callback.has_ended:
            return _diagnose_phases(plan, [first._with_status(Status.INTERRUPTED)])
        if first.status is Status.NOT_FINITE:
            return _diagnose_phases(plan, [first])
        callback.iterations_before = first.n_iter
        return _diagnose_phases(plan, [first, _train(plan, first.controls, callback, iterations_before=first.n_iter)])


def _fit_epoch(plan: FitPlan) -> FittedNetwork:
    assert plan.adam is not None
    controls, state = run_epoch(plan.network, plan.start, plan.samples, plan.objective(), plan.adam)
    return FittedNetwork(plan.targets, plan.network, controls, plan.factor, 1, adam=state, components=plan.components)


def _train(plan: FitPlan, start: Controls, callback: _Callback, iterations_before: int = 0) -> Result:
    """Train with the full prior, after `iterations_before` iterations with the weak one."""
    return _minimise(
        plan,
        plan.network,
        start,
        plan.objective(),
        callback,
        max_iter=max(plan.max_iter * plan.steps_per_epoch - iterations_before, 0),
        validation=plan.validation,
        checkpoint=plan.checkpoint,
    )


def _train_weakly(plan: FitPlan, callback: _Callback) -> Result | None:
    """Train for some iterations with the weak prior; return None if this is not needed.

    If the prior hardly lets the flow move the rows, the flow starts at rest with a fitted readout instead. No row moves
    then, so one layer gives the same result as all of them in a fraction of the time, and the training that follows is
    short.
    """
    network, iterations = plan.network, min(WEAK_ITERATIONS, int(WEAK_FRACTION * plan.max_iter * plan.steps_per_epoch))
    if plan.factor == 0 or plan.is_warm or iterations == 0:
        return None
    if reach(network, plan.samples.total, plan.factor, plan.noise) >= SHORT:
        return _minimise(plan, network, plan.start, plan.objective(weak=True), callback, max_iter=iterations)
    single = replace(network, n_layers=1)
    frozen = [part.name for part in network.parts if part.role != "readout"]
    at_rest = _minimise(plan, single, single.controls(), plan.objective(), callback, max_iter=iterations, freeze=frozen)
    steps = np.repeat(at_rest.history.time_steps / network.n_layers, network.n_layers, axis=1)
    history = replace(at_rest.history, time_steps=steps)
    return replace(at_rest, controls=_expand_to_layers(at_rest.controls, network), history=history)


def _minimise(
    plan: FitPlan, network: Network, start: Controls, objective: Objective, callback: _Callback, **options: Any
) -> Result:
    steps = plan.steps_per_epoch
    return train(
        network,
        start,
        plan.samples.X,
        plan.samples.y,
        sample_weight=plan.samples.weights,
        objective=objective,
        optimiser=plan.method,
        tol=plan.tol,
        rtol=plan.rtol,
        eval_every=steps if steps > 1 else 50 if plan.validation is None or plan.validation.patience is None else 10,
        progress=plan.progress,
        callback=None if plan.callback is None else callback,
        random_state=plan.seed,
        communicator=plan.communicator,
        **options,
    )


def _diagnose_phases(plan: FitPlan, phases: list[Result]) -> FittedNetwork:
    """Return the fitted network with a diagnosis of its training, based on the last phase."""
    steps, result = plan.steps_per_epoch, reduce(Result.followed_by, phases)
    history, n_iter = group_by_epochs(result.history, steps), math.ceil(result.n_iter / steps)
    first = last = constant = math.nan
    if result.status not in (Status.NOT_FINITE, Status.INTERRUPTED):
        first, last = (_value(plan, u, plan.objective()) for u in (plan.start, result.controls))
    if result.status is Status.ITERATION_LIMIT:
        loss_alone, constant = (
            _value(plan, u, Objective(plan.loss)) for u in (result.controls, plan.network.controls())
        )
        constant += last - loss_alone
    last_method = stages_of(plan.method)[-1][0]
    diagnosis = diagnose(
        Evidence(
            result.status,
            group_by_epochs(phases[-1].history, steps),
            first,
            last,
            lambda: result.status is Status.SATURATED,
            constant,
            on_batches=getattr(last_method, "batch_size", None) is not None,
            has_learning_rate=isinstance(last_method, (Adam, GradientDescent)),
        )
    )
    unit = "iteration" if steps == 1 else "epoch"
    message = (
        f"{diagnosis.status.value}: loss {history.loss[-1]:.6g}, gradient norm {history.gradient_norm[-1]:.3g} "
        f"after {pluralise(n_iter, unit)}"
    )
    if diagnosis.status is Status.STAGES:
        message = result.message
    return FittedNetwork(
        *(plan.targets, plan.network, result.controls, plan.factor, n_iter, diagnosis, history, message),
        components=plan.components,
        importances=importances(plan, result),
    )


def _value(plan: FitPlan, u: Controls, objective: Objective) -> float:
    """Return J on the rows of all ranks."""
    samples, network = plan.samples, plan.network
    if plan.communicator is None:
        return network.value(u, samples.X, samples.y, objective, sample_weight=samples.weights)
    options: Any = {"objective": objective, "max_iter": 0, "communicator": plan.communicator}
    return float(train(network, u, samples.X, samples.y, **options).history.loss[0])


def _expand_to_layers(u: Controls, network: Network) -> Controls:
    """Return controls of one layer at rest as those of all layers."""
    return u if len(u.K) == network.n_layers else network.controls(W=u.W, mu=u.mu)


class _Callback:
    """The callback of a plan, with iterations counted from the first phase and controls of the whole network."""

    def __init__(self, plan: FitPlan) -> None:
        self._plan, self.has_ended, self.iterations_before = plan, False, 0

    def __call__(self, state: TrainingState) -> bool:
        plan = self._plan
        assert plan.callback is not None
        iteration = math.ceil((self.iterations_before + state.iteration) / plan.steps_per_epoch)
        state = replace(state, controls=_expand_to_layers(state.controls, plan.network), iteration=iteration)
        self.has_ended = bool(plan.callback(state))
        return self.has_ended
