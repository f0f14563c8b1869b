"""Fit a dynamical system: from a plan to a learned system, without state in between."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ocdl.dynamics.plan import DynamicsFit, DynamicsPlan
from ocdl.dynamics.prior import make_prior
from ocdl.dynamics.rounds import Stage, continue_from, learned_system, train
from ocdl.dynamics.scaling import ScaledProblem, scale_problem
from ocdl.dynamics.series import Series
from ocdl.dynamics.shooting import Shooting
from ocdl.dynamics.simulation import fit_states
from ocdl.dynamics.start import SmoothSeries
from ocdl.dynamics.terms import choose_terms
from ocdl.dynamics.windows import cut_windows

Floats = NDArray[np.float64]

MAX_HALVINGS = 3  # of the step
STEP_ERROR = 0.1  # of the noise: a larger difference between steps h and h/2 halves the step
MIN_SERIES = 5  # from which on whole series are held out, and not their ends


def fit_dynamics(plan: DynamicsPlan) -> DynamicsFit:
    """Return the learned system of a plan."""
    problem = scale_problem(plan)
    prior = make_prior(plan, problem)
    training, held_out = split_series(problem.series, plan.validation_fraction)
    begin = replace(problem, series=training, smooth=SmoothSeries(training, problem.smooth.kernels))
    stage, n_iter = train(plan, begin, prior, prior.free)
    validation_error = float("nan")
    if plan.system.field == "polynomial" and plan.sparsity != 0:
        stage, more = choose_terms(plan, begin, prior, stage, held_out)
        n_iter += more
    if held_out:
        learned = learned_system(plan, begin, stage)
        validation_error = float(np.sqrt(np.mean(fit_states(learned, held_out, problem.lift)[1] ** 2)))
        plan.report(f"held-out error {validation_error:.3g} of the noise")
        again = continue_from(plan, problem, prior, stage, stage.free)
        if again is not None:
            stage, n_iter = again[0], n_iter + again[1]
            begin = problem
    for _ in range(MAX_HALVINGS if plan.max_step is None else 0):
        error = _step_error(plan, begin, stage)
        if error <= STEP_ERROR:
            break
        plan.report(f"the error of the steps is {error:.2g} of the noise: they are halved")
        begin = replace(begin, step=begin.step / 2, layers=begin.layers * 2)
        again = continue_from(plan, begin, prior, stage, stage.free)
        if again is None:
            break
        stage, n_iter = again[0], n_iter + again[1]
    return DynamicsFit(learned_system(plan, begin, stage), n_iter, len(stage.windows), validation_error)


def split_series(series: list[Series], fraction: float) -> tuple[list[Series], list[Series]]:
    """Return series to learn from and held-out ones: the last ones, or the ends of a few."""
    if fraction == 0:
        return series, []
    if len(series) >= MIN_SERIES:
        count = max(1, round(fraction * len(series)))
        return series[:-count], series[-count:]
    begins, ends = [], []
    for one in series:
        cut = len(one) - max(3, round(fraction * len(one)))
        if cut < 2 * max(3, round(fraction * len(one))):
            return series, []
        begins.append(_rows(one, slice(0, cut)))
        ends.append(_rows(one, slice(cut, None)))
    if any(np.isnan(one.values).all(axis=0).any() for one in [*begins, *ends]):
        return series, []
    return begins, ends


def _rows(one: Series, rows: slice) -> Series:
    return Series(one.times[rows], one.values[rows], None if one.inputs is None else one.inputs[rows])


def _step_error(plan: DynamicsPlan, problem: ScaledProblem, stage: Stage) -> float:
    """Return the largest difference of the windows' ends with half the step, over the noise."""
    fine = cut_windows(problem.series, problem.layers * 2, problem.step / 2)
    solution = stage.solution
    if len(fine) != len(stage.windows):
        return 0.0
    ends = []
    for windows in (stage.windows, fine):
        shooting = Shooting(plan.system, windows, problem.W, stage.free)
        residuals = shooting.residuals(solution.theta, solution.states, solution.weights)
        if residuals is None:
            return np.inf
        ends.append(residuals.errors)
    difference = np.nan_to_num(ends[1] - ends[0]) / stage.noise
    return float(np.sqrt(np.mean(difference**2)) + 0.1 * np.abs(difference).max())
