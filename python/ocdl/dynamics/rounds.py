"""Rounds of least squares, with jumps between windows that become smaller: from a start, or from another solution."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ocdl.dynamics.least_squares import Solution, minimise
from ocdl.dynamics.plan import DynamicsPlan, LearnedSystem
from ocdl.dynamics.prior import Prior
from ocdl.dynamics.scaling import MIN_NOISE, ScaledProblem
from ocdl.dynamics.shooting import Shooting, Weights
from ocdl.dynamics.simulation import HIDDEN_PRECISION, STATE_ITERATIONS, start_states
from ocdl.dynamics.start import derivative_data, start_theta
from ocdl.dynamics.windows import MIN_LAYERS, Windows, cut_windows

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

JUMPS = (3.0, 0.3, 0.03)  # the jumps between windows that the rounds allow, over the noise
RIDGE = {"mlp": 1e-3, "polynomial": 1e-6}  # of the fit of derivatives
RTOL = {"mlp": 1e-3, "polynomial": 1e-4}  # of a round
MAX_RISE = 1.5  # of the noise, where a fit continues with all series or with shorter steps
MAX_SHORTENINGS = 4  # of windows, where trajectories leave the range of the numbers
RIDGE_GROWTH = 30.0  # of the fit of derivatives, at the same time
MIN_FREEDOM = 0.2  # of the observations, where the noise is estimated


@dataclass(frozen=True, eq=False)
class Stage:
    """A solution in progress: the windows and the point, and the learned noise."""

    windows: Windows
    solution: Solution
    noise: Floats
    free: Mask


def train(plan: DynamicsPlan, problem: ScaledProblem, prior: Prior, free: Mask) -> tuple[Stage, int]:
    """Return the stage after all rounds, from a fit of derivatives, and the number of iterations.

    Where trajectories of the start leave the range of the numbers, windows become shorter and the start smaller.
    """
    rng = np.random.default_rng(plan.seed)
    data, layers, ridge = derivative_data(problem.smooth, problem.lift), problem.layers, RIDGE[plan.system.field]
    for attempt in range(MAX_SHORTENINGS + 1):
        theta = start_theta(plan.system, data, free, rng, ridge)
        theta = np.where(free, theta, prior.held(free)) if attempt < MAX_SHORTENINGS else prior.mean.copy()
        windows = cut_windows(problem.series, layers, problem.step)
        states = start_states(problem.lift, problem.smooth, windows)
        found = _rounds(plan, problem, prior, windows, theta, states, free, problem.noise, JUMPS)
        if found is not None:
            return found
        plan.report("a trajectory leaves the range of the numbers: windows become shorter, the field smaller")
        layers, ridge = max(MIN_LAYERS, layers // 2), ridge * RIDGE_GROWTH
    raise ValueError("X leads to trajectories beyond the range of the numbers; check its units and times")


def continue_from(
    plan: DynamicsPlan,
    problem: ScaledProblem,
    prior: Prior,
    stage: Stage,
    free: Mask,
    theta: Floats | None = None,
    jumps: tuple[float, ...] = JUMPS[-1:],
) -> tuple[Stage, int] | None:
    """Return the stage after more iterations, with other series, steps or terms; None where the flow overflows.

    It begins from the parameters of the stage, or from others.
    """
    windows = cut_windows(problem.series, problem.layers, problem.step)
    same = len(windows) == len(stage.windows) and np.array_equal(windows.start, stage.windows.start)
    prior = replace(prior, precision=stage.solution.weights.prior)
    theta = np.where(free, stage.solution.theta if theta is None else theta, prior.held(free))
    states = stage.solution.states
    if not same:
        states = start_states(problem.lift, problem.smooth, windows)
        shooting = Shooting(plan.system, windows, problem.W, np.zeros(len(theta), bool))
        for jump in JUMPS:
            solution = minimise(
                shooting, theta, states, _weights(plan, problem, prior, stage.noise, jump), max_iter=STATE_ITERATIONS
            )
            if solution is None:
                return None
            states = solution.states
    found = _rounds(plan, problem, prior, windows, theta, states, free, stage.noise, jumps)
    if found is not None and free is stage.free and (found[0].noise > MAX_RISE * stage.noise).any():
        plan.report("that is worse: it is dropped")
        return None
    return found


def _weights(plan: DynamicsPlan, problem: ScaledProblem, prior: Prior, noise: Floats, jump: float) -> Weights:
    hidden = np.zeros(plan.system.dim)
    hidden[list(problem.lift.hidden)] = HIDDEN_PRECISION
    jumps = np.full(plan.system.dim, jump * float(np.mean(noise)))
    return Weights(noise, jumps, prior.precision, prior.mean, hidden)


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
    found, n_iter = None, 0
    limit = max(1, plan.max_iter // len(JUMPS))
    for jump in jumps:
        weights = _weights(plan, problem, prior, noise, jump)
        solution = minimise(
            shooting, theta, states, weights, max_iter=limit, rtol=RTOL[plan.system.field], groups=prior.groups,
            should_stop=plan.should_stop,
        )  # fmt: skip
        if solution is None:
            return None if found is None else (found, n_iter)
        theta, states = solution.theta, solution.states
        prior = replace(prior, precision=solution.weights.prior)
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
    states = len(windows) * shooting.system.dim - _jumps_freedom(windows, shooting.system.dim, jumps)
    count = windows.n_observed
    share = max(1 - (effective + states) / max(int(count.sum()), 1), MIN_FREEDOM)
    squares = np.nansum(solution.residuals.errors**2, axis=(0, 1))
    noise: Floats = np.sqrt(squares / np.maximum(count * share, 1.0))
    return np.maximum(noise, MIN_NOISE)


def _jumps_freedom(windows: Windows, dim: int, jumps: float) -> float:
    """Return how many states the conditions of continuity determine: all of them where jumps are as small as asked."""
    conditions = float((windows.next_window >= 0).sum() * dim)
    return max(conditions - jumps, 0.0)


def learned_system(plan: DynamicsPlan, problem: ScaledProblem, stage: Stage) -> LearnedSystem:
    """Return what a stage has learned, with the variances of its parameters."""
    solution, (chosen,) = stage.solution, np.nonzero(stage.free)
    matrix = solution.curvature + np.diag(solution.weights.prior[chosen])
    variance = np.zeros(len(solution.theta))
    variance[chosen] = np.maximum(np.linalg.pinv(matrix, hermitian=True).diagonal(), 0.0)
    return LearnedSystem(
        plan.system, solution.theta, problem.units, problem.W, problem.output_shift, problem.output_scale, stage.noise,
        problem.step, problem.layers, stage.free, variance,
    )  # fmt: skip
