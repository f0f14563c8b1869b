"""The method of Levenberg and Marquardt for multiple shooting, with the precision of priors from the evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ocdl.dynamics.shooting import ReducedEquations, Residuals, Shooting, Weights, reduce

Floats = NDArray[np.float64]

START_DAMPING = 1e-3
MIN_DAMPING, MAX_DAMPING = 1e-9, 1e9
DAMPING_DOWN, DAMPING_UP = 0.2, 5.0
PRECISION_RANGE = (1e-6, 1e8)  # of a prior


@dataclass(frozen=True, eq=False)
class Solution:
    """A point, with its residuals and the undamped equations of its free parameters."""

    theta: Floats
    states: Floats
    residuals: Residuals
    reduced: ReducedEquations
    weights: Weights
    n_iter: int

    @property
    def curvature(self) -> Floats:
        """The Gauss-Newton matrix of the free parameters without the prior."""
        matrix: Floats = self.reduced.matrix.sum(axis=0)
        return matrix


def minimise(
    problem: Shooting,
    theta: Floats,
    states: Floats,
    weights: Weights,
    *,
    max_iter: int,
    rtol: float = 1e-4,
    groups: Floats | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Solution | None:
    """Return a minimiser of the sum of squares near a start; None where the flow overflows at the start.

    With `groups`, a number for each parameter, the precision of the prior of each group is updated after every step
    as MacKay does: ``gamma / |theta|^2`` with the effective number gamma of the group's parameters.
    """
    residuals = problem.residuals(theta, states, weights)
    equations = None if residuals is None else problem.linearise(theta, states, weights)
    if residuals is None or equations is None:
        return None
    damping, n_iter, slow = START_DAMPING, 0, 0
    (chosen,) = np.nonzero(problem.free)
    while True:
        if groups is not None:
            weights = _update_prior(reduce(equations, 0.0), theta, weights, groups, chosen)
            residuals = problem.residuals(theta, states, weights) or residuals
        if n_iter >= max_iter or slow >= 2 or should_stop():
            break
        following = None
        while following is None and damping < MAX_DAMPING:
            step, state_steps = _solve(reduce(equations, damping), theta, weights, chosen, damping)
            new_theta = theta.copy()
            new_theta[chosen] += step
            moves = state_steps.reshape(len(state_steps), -1, states.shape[1])
            new_states = states + moves[problem.windows.chain, problem.windows.position]
            trial = problem.residuals(new_theta, new_states, weights)
            if trial is not None and trial.value < residuals.value:
                following = problem.linearise(new_theta, new_states, weights)
            if following is None:
                damping = max(damping, 1e-6) * DAMPING_UP
        if following is None or trial is None:
            break
        slow = slow + 1 if trial.value > (1 - rtol) * residuals.value else 0
        theta, states, residuals, equations = new_theta, new_states, trial, following
        damping = max(damping * DAMPING_DOWN, MIN_DAMPING)
        n_iter += 1
    return Solution(theta, states, residuals, reduce(equations, 0.0), weights, n_iter)


def _solve(
    reduced: ReducedEquations, theta: Floats, weights: Weights, chosen: NDArray[np.int64], damping: float
) -> tuple[Floats, Floats]:
    """Return the steps of the free parameters and of the states, by chains."""
    matrix = reduced.matrix.sum(axis=0)
    prior = weights.prior[chosen]
    diagonal = np.maximum(matrix.diagonal(), 1e-12) + prior
    gradient = reduced.gradient.sum(axis=0) + prior * (theta - weights.mean)[chosen]
    matrix = matrix + np.diag(prior + damping * diagonal)
    root = np.sqrt(diagonal)
    scaled = matrix / np.outer(root, root)
    try:
        step = -np.linalg.solve(scaled, gradient / root) / root
    except np.linalg.LinAlgError:
        step = -np.linalg.lstsq(scaled, gradient / root, rcond=1e-12)[0] / root
    return step, -reduced.elimination @ np.append(step, 1.0)


def _update_prior(
    reduced: ReducedEquations, theta: Floats, weights: Weights, groups: Floats, chosen: NDArray[np.int64]
) -> Weights:
    """Return the weights with the precision of each group's prior from the evidence at this point."""
    matrix = reduced.matrix.sum(axis=0) + np.diag(weights.prior[chosen] + 1e-12)
    covariance = np.linalg.pinv(matrix, hermitian=True)
    prior = weights.prior.copy()
    for group in np.unique(groups[chosen]):
        members = groups[chosen] == group
        where = chosen[members]
        if group < 0:
            continue
        gamma = members.sum() - prior[where[0]] * covariance.diagonal()[members].sum()
        size = float(np.sum((theta - weights.mean)[where] ** 2))
        prior[where] = np.clip(max(gamma, 0.1) / max(size, 1e-12), *PRECISION_RANGE)
    return replace(weights, prior=prior)
