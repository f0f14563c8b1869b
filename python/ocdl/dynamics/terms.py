"""The terms of a polynomial: fits with fewer of them compete."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ocdl.dynamics.plan import DynamicsPlan
from ocdl.dynamics.prior import Prior
from ocdl.dynamics.rounds import JUMPS, Stage, continue_from, learned_system, train
from ocdl.dynamics.scaling import ScaledProblem
from ocdl.dynamics.selection import apply_l1, eliminate, elimination_level, find_missing
from ocdl.dynamics.series import Series
from ocdl.dynamics.shooting import Shooting, reduce
from ocdl.dynamics.simulation import fit_states

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LEVELS = (1.0, 4.0)  # multiples of the level of elimination that compete on held-out windows
MAX_ROUNDS = 12  # of the elimination of terms
FRACTIONS = (0.5, 0.1, 0.01)  # of the terms that a round drops at most
MAX_GROWTH = 1.2  # of the noise in such a round
MAX_ADDITIONS = 4  # of terms that are missing
FIRST_DEGREE = 2  # from which on the degrees compete


def choose_terms(
    plan: DynamicsPlan, problem: ScaledProblem, prior: Prior, stage: Stage, held_out: list[Series]
) -> tuple[Stage, int]:
    """Return the stage with the terms that are needed, and the number of iterations.

    "auto": from all terms up to each degree, those are dropped that are not significant, and those are added that are
    missing; the best of these fits has the lowest information criterion. A higher level of significance is chosen if
    held-out windows are fitted as well.
    """
    if plan.sparsity != "auto":
        return _drop(plan, problem, prior, stage, float(plan.sparsity), is_l1=True)
    n_iter, candidates = 0, []
    level = elimination_level(int(stage.windows.n_observed.sum()), int(prior.free.sum()))
    for degree in range(FIRST_DEGREE, (plan.system.degree or 0) + 1):
        current = stage
        if degree < (plan.system.degree or 0):
            current, more = train(plan, problem, prior, prior.free & _terms_up_to(plan, degree))
            n_iter += more
        current, more = _drop(plan, problem, prior, current, level, is_l1=False)
        n_iter += more
        for _ in range(MAX_ADDITIONS):
            larger, more = _add(plan, problem, prior, current, level)
            n_iter += more
            if larger is None or _criterion(larger, level) >= _criterion(current, level):
                break
            current = larger
        plan.report(f"degree {degree}: {int(current.free.sum())} terms, criterion {_criterion(current, level):.1f}")
        candidates.append(current)
    if not candidates:
        candidates.append(_drop(plan, problem, prior, stage, level, is_l1=False)[0])
    best = min(candidates, key=lambda one: _criterion(one, level))
    sparser, more = _drop(plan, problem, prior, best, LEVELS[-1] * level, is_l1=False)
    n_iter += more
    if not held_out or sparser.free.sum() == best.free.sum():
        return best, n_iter
    return _choose_by(held_out, plan, problem, [best, sparser]), n_iter


def _choose_by(held_out: list[Series], plan: DynamicsPlan, problem: ScaledProblem, stages: list[Stage]) -> Stage:
    """Return the last stage that fits held-out series as well as the best, but for the noise of this comparison."""
    count = sum(int((~np.isnan(one.values)).sum()) for one in held_out)
    errors = [fit_states(learned_system(plan, problem, one), held_out, problem.lift)[1] for one in stages]
    squares = [float(np.mean((error * one.noise.mean()) ** 2)) for error, one in zip(errors, stages, strict=True)]
    allowed = min(squares) * (1 + np.sqrt(2 / count))
    return stages[max(i for i, square in enumerate(squares) if square <= allowed or square == min(squares))]


def _criterion(stage: Stage, level: float) -> float:
    """Return the extended information criterion: twice the negative logarithm of the likelihood, and the terms."""
    count = np.maximum(stage.windows.n_observed, 1)
    squares = np.nansum(stage.solution.residuals.errors**2, axis=(0, 1)) / count
    return float(np.sum(count * np.log(np.maximum(squares, 1e-300))) + level * stage.free.sum())


def _terms_up_to(plan: DynamicsPlan, degree: int) -> Mask:
    low = np.zeros(plan.system.n_parameters)
    plan.system.part(low, "C")[:, plan.system.monomials().sum(axis=1) <= degree] = 1
    return low > 0


def _drop(
    plan: DynamicsPlan, problem: ScaledProblem, prior: Prior, stage: Stage, level: float, *, is_l1: bool
) -> tuple[Stage, int]:
    """Return the stage after rounds of dropping terms and fitting the others again through trajectories.

    A round after which the fit is bad is made again with fewer terms to drop, and with larger jumps.
    """
    n_iter, n_observed = 0, int(stage.windows.n_observed.sum())
    fractions = iter(FRACTIONS)
    fraction = next(fractions)
    for _ in range(MAX_ROUNDS):
        theta = None
        if is_l1:
            free = apply_l1(stage.solution, stage.free, prior.protected, level, n_observed)
        else:
            free, theta = eliminate(stage.solution, stage.free, prior.protected, level, fraction)
        if free.sum() == stage.free.sum():
            break
        jumps = JUMPS if fraction < FRACTIONS[0] else JUMPS[-1:]
        again = continue_from(plan, problem, prior, stage, free, theta, jumps)
        n_iter += again[1] if again else 0
        if again is not None and (is_l1 or np.mean(again[0].noise) <= MAX_GROWTH * np.mean(stage.noise)):
            stage = again[0]
            continue
        fraction = next(fractions, 0.0)
        if fraction == 0:
            break
    return stage, n_iter


def _add(
    plan: DynamicsPlan, problem: ScaledProblem, prior: Prior, stage: Stage, level: float
) -> tuple[Stage | None, int]:
    """Return the stage with the term besides that lowers chi^2 most, None if none lowers it by the level."""
    shooting = Shooting(plan.system, stage.windows, problem.W, prior.free)
    solution = stage.solution
    equations = shooting.linearise(solution.theta, solution.states, solution.weights)
    if equations is None:
        return None, 0
    term = find_missing(reduce(equations, 0.0), prior.free, stage.free, level, solution.weights.noise)
    if term is None:
        return None, 0
    free = stage.free.copy()
    free[term] = True
    again = continue_from(plan, problem, prior, stage, free)
    if again is None:
        return None, 0
    smaller, more = _drop(plan, problem, prior, again[0], level, is_l1=False)
    return smaller, again[1] + more
