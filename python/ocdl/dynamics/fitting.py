"""Fit a dynamical system: from a plan to a learned system, without state in between."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ocdl.dynamics.least_squares import Solution, minimise
from ocdl.dynamics.plan import DynamicsFit, DynamicsPlan, LearnedSystem
from ocdl.dynamics.prior import Prior, make_prior
from ocdl.dynamics.scaling import MIN_NOISE, ScaledProblem, scale_problem
from ocdl.dynamics.selection import apply_l1, eliminate, elimination_level
from ocdl.dynamics.series import Series
from ocdl.dynamics.shooting import Shooting, Weights
from ocdl.dynamics.simulation import HIDDEN_PRECISION, fit_states, start_states
from ocdl.dynamics.start import SmoothSeries, derivative_data, start_theta
from ocdl.dynamics.windows import MIN_LAYERS, Windows, cut_windows

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

JUMPS = (3.0, 0.3, 0.03)  # the jumps between windows that the rounds allow, over the noise
RIDGE = {"mlp": 1e-3, "polynomial": 1e-6}  # of the fit of derivatives
MAX_SHORTENINGS = 4  # of windows, where trajectories leave the range of the numbers
MAX_HALVINGS = 3  # of the step
STEP_ERROR = 0.1  # of the noise: a larger difference between steps h and h/2 halves the step
LEVELS = (1.0, 4.0)  # multiples of the level of elimination that compete on held-out windows
MAX_ROUNDS = 8  # of the elimination of terms
MIN_SERIES = 5  # from which on whole series are held out, and not their ends
MIN_FREEDOM = 0.2  # of the observations, where the noise is estimated


@dataclass(frozen=True, eq=False)
class Stage:
    """A solution in progress: the windows and the point, and the learned noise."""

    windows: Windows
    solution: Solution
    noise: Floats
    free: Mask


def fit_dynamics(plan: DynamicsPlan) -> DynamicsFit:
    """Return the learned system of a plan."""
    problem = scale_problem(plan)
    prior = make_prior(plan, problem)
    training, held_out = split_series(problem.series, plan.validation_fraction)
    rng = np.random.default_rng(plan.seed)
    begin = replace(problem, series=training, smooth=SmoothSeries(training, problem.smooth.kernels))
    theta = prior.start(
        start_theta(plan.system, derivative_data(begin.smooth, problem.lift), rng, RIDGE[plan.system.field])
    )
    stage, n_iter = _train(plan, begin, prior, theta, prior.free, problem.noise)
    validation_error = float("nan")
    if plan.system.field == "polynomial" and plan.sparsity != 0:
        stage, more = _choose_terms(plan, begin, prior, stage, held_out)
        n_iter += more
    if held_out:
        learned = _learned(plan, begin, stage)
        validation_error = float(np.sqrt(np.mean(fit_states(learned, held_out, problem.lift)[1] ** 2)))
        plan.report(f"held-out error {validation_error:.3g} of the noise")
        again = _continue(plan, problem, prior, stage, stage.free)
        if again is not None:
            stage, n_iter = again[0], n_iter + again[1]
            begin = problem
    for _ in range(MAX_HALVINGS if plan.max_step is None else 0):
        error = _step_error(plan, begin, stage)
        if error <= STEP_ERROR:
            break
        plan.report(f"the error of the steps is {error:.2g} of the noise: they are halved")
        begin = replace(begin, step=begin.step / 2, layers=begin.layers * 2)
        again = _continue(plan, begin, prior, stage, stage.free)
        if again is None:
            break
        stage, n_iter = again[0], n_iter + again[1]
    return DynamicsFit(
        _learned(plan, begin, stage), n_iter, len(stage.windows), validation_error, n_iter < plan.max_iter
    )


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


def _train(
    plan: DynamicsPlan, problem: ScaledProblem, prior: Prior, theta: Floats, free: Mask, noise: Floats
) -> tuple[Stage, int]:
    """Return the stage after all rounds, from a start; windows become shorter where its flow overflows."""
    layers = problem.layers
    for _ in range(MAX_SHORTENINGS):
        windows = cut_windows(problem.series, layers, problem.step)
        states = start_states(problem.lift, problem.smooth, windows)
        found = _rounds(plan, problem, prior, windows, theta, states, free, noise, JUMPS)
        if found is not None:
            return found
        plan.report("a trajectory leaves the range of the numbers: windows become shorter, the field smaller")
        layers, theta = max(MIN_LAYERS, layers // 2), 0.5 * theta
    theta = prior.mean.copy()
    found = _rounds(plan, problem, prior, windows, theta, states, free, noise, JUMPS)
    if found is None:
        raise ValueError("X leads to trajectories beyond the range of the numbers; check its units and times")
    return found


def _continue(
    plan: DynamicsPlan, problem: ScaledProblem, prior: Prior, stage: Stage, free: Mask
) -> tuple[Stage, int] | None:
    """Return the stage after more iterations, with other series, steps or terms; None where the flow overflows."""
    windows = cut_windows(problem.series, problem.layers, problem.step)
    same = len(windows) == len(stage.windows) and np.array_equal(windows.start, stage.windows.start)
    states = stage.solution.states if same else start_states(problem.lift, problem.smooth, windows)
    prior = replace(prior, precision=stage.solution.weights.prior)
    theta = np.where(free, stage.solution.theta, prior.held(free))
    return _rounds(plan, problem, prior, windows, theta, states, free, stage.noise, JUMPS[-1:] if same else JUMPS[1:])


def _rounds(
    plan: DynamicsPlan,
    problem: ScaledProblem,
    prior: Prior,
    windows: Windows,
    theta: Floats,
    states: Floats,
    free: Mask,
    noise: Floats,
    jumps: tuple[float, ...],
) -> tuple[Stage, int] | None:
    """Return the stage after a minimisation for each size of jumps; None where the flow overflows at the start."""
    shooting = Shooting(plan.system, windows, problem.W, free)
    hidden = np.zeros(plan.system.dim)
    hidden[list(problem.lift.hidden)] = HIDDEN_PRECISION
    precision, found, n_iter = prior.precision, None, 0
    for jump in jumps:
        weights = Weights(noise, np.full(plan.system.dim, jump * float(np.mean(noise))), precision, prior.mean, hidden)
        solution = minimise(
            shooting, theta, states, weights, max_iter=plan.max_iter // len(JUMPS), groups=prior.groups,
            should_stop=plan.should_stop,
        )  # fmt: skip
        if solution is None:
            return None if found is None else (found, n_iter)
        theta, states, precision = solution.theta, solution.states, solution.weights.prior
        n_iter += solution.n_iter
        noise = estimate_noise(shooting, solution)
        found = Stage(windows, solution, noise, free)
        plan.report(
            f"{len(windows)} windows, jumps {jump:g} of the noise: {solution.n_iter} iterations, noise "
            f"{np.array2string(noise * problem.output_scale, precision=3)}, {int(free.sum())} parameters"
        )
    assert found is not None
    return found, n_iter


def estimate_noise(shooting: Shooting, solution: Solution) -> Floats:
    """Return the standard deviation of each output's residuals, for the degrees of freedom that are left."""
    (chosen,) = np.nonzero(shooting.free)
    curvature, prior = solution.curvature, np.diag(solution.weights.prior[chosen])
    effective = float(
        np.trace(np.linalg.pinv(curvature + prior + 1e-12 * np.eye(len(chosen)), hermitian=True) @ curvature)
    )
    windows = shooting.windows
    jumps = float(np.sum((solution.residuals.jumps / solution.weights.jump) ** 2))
    states = len(windows) * shooting.system.dim - jumps_freedom(windows, shooting.system.dim, jumps)
    count = windows.n_observed
    share = max(1 - (effective + states) / max(int(count.sum()), 1), MIN_FREEDOM)
    squares = np.nansum(solution.residuals.errors**2, axis=(0, 1))
    noise: Floats = np.sqrt(squares / np.maximum(count * share, 1.0))
    return np.maximum(noise, MIN_NOISE)


def jumps_freedom(windows: Windows, dim: int, jumps: float) -> float:
    """Return how many states the conditions of continuity determine: all of them where jumps are as small as asked."""
    conditions = float((windows.next_window >= 0).sum() * dim)
    return max(conditions - jumps, 0.0)


def _choose_terms(
    plan: DynamicsPlan, problem: ScaledProblem, prior: Prior, stage: Stage, held_out: list[Series]
) -> tuple[Stage, int]:
    """Return the stage with the terms that are needed; "auto": the level is chosen on held-out windows."""
    total, n_observed = int(prior.free.sum()), int(stage.windows.n_observed.sum())
    if plan.sparsity != "auto":
        return _drop_terms(plan, problem, prior, stage, float(plan.sparsity), is_l1=True)
    candidates, n_iter, current = [], 0, stage
    for level in LEVELS:
        current, more = _drop_terms(
            plan, problem, prior, current, level * elimination_level(n_observed, total), is_l1=False
        )
        n_iter += more
        candidates.append(current)
    if not held_out or len({int(one.free.sum()) for one in candidates}) == 1:
        return candidates[0], n_iter
    counts = sum(int((~np.isnan(one.values)).sum()) for one in held_out)
    errors = [
        fit_states(_learned(plan, problem, one), held_out, problem.lift)[1] * one.noise.mean() for one in candidates
    ]
    squares = np.array([np.mean(error**2) for error in errors])
    allowed = squares.min() * (1 + np.sqrt(2 / counts))
    best = max(i for i, square in enumerate(squares) if square <= allowed or square == squares.min())
    return candidates[best], n_iter


def _drop_terms(
    plan: DynamicsPlan, problem: ScaledProblem, prior: Prior, stage: Stage, level: float, *, is_l1: bool
) -> tuple[Stage, int]:
    """Return the stage after rounds of dropping terms and fitting the others again through trajectories."""
    n_iter, n_observed = 0, int(stage.windows.n_observed.sum())
    for _ in range(MAX_ROUNDS):
        if is_l1:
            free = apply_l1(stage.solution, stage.free, prior.protected, level, n_observed)
        else:
            free = eliminate(stage.solution, stage.free, prior.protected, level)
        if free.sum() == stage.free.sum():
            break
        again = _continue(plan, problem, prior, stage, free)
        if again is None:
            break
        stage, n_iter = again[0], n_iter + again[1]
    return stage, n_iter


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


def _learned(plan: DynamicsPlan, problem: ScaledProblem, stage: Stage) -> LearnedSystem:
    solution, (chosen,) = stage.solution, np.nonzero(stage.free)
    matrix = solution.curvature + np.diag(solution.weights.prior[chosen])
    variance = np.zeros(len(solution.theta))
    variance[chosen] = np.maximum(np.linalg.pinv(matrix, hermitian=True).diagonal(), 0.0)
    return LearnedSystem(
        plan.system, solution.theta, problem.units, problem.W, problem.output_shift, problem.output_scale, stage.noise,
        problem.step, problem.layers, stage.free, variance,
    )  # fmt: skip
