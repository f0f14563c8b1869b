"""Which terms a polynomial keeps: backward elimination and the proximal method, on the quadratic model of the fit."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ocdl.dynamics.least_squares import Solution
from ocdl.dynamics.shooting import ReducedEquations

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MAX_SWEEPS = 1000  # of coordinate descent
NEGLIGIBLE = 1e-4  # of the scale of the data: a term that changes trajectories by less is dropped, however little noise


def elimination_level(n_observed: int, n_terms: int) -> float:
    """Return by how much a term has to lower chi^2: the extended information criterion of Chen and Chen (2008)."""
    return math.log(max(n_observed, 2)) + 2 * math.log(max(n_terms, 2))


def eliminate(
    solution: Solution, free: Mask, protected: Mask, level: float, max_fraction: float
) -> tuple[Mask, Floats]:
    """Return the terms that remain after one round, those without which chi^2 rises by more than the level.

    The term that matters least goes first, and the others are fitted again in the quadratic model, which holds nearby
    only: so a round removes a fraction of the terms at most. The parameters of that model are returned, too.
    """
    (chosen,) = np.nonzero(free)
    prior = solution.weights.prior[chosen]
    covariance = np.linalg.pinv(solution.curvature + np.diag(prior), hermitian=True)
    level = _raise_level(level, solution.weights.noise)
    value = solution.theta[chosen].copy()
    alive = np.ones(len(chosen), bool)
    can_go = ~protected[chosen]
    for _ in range(max(1, math.ceil(max_fraction * len(chosen)))):
        variance = np.maximum(covariance.diagonal(), 1e-300)
        rise = np.where(alive & can_go, value**2 / variance, np.inf)
        if not np.isfinite(rise).any() or rise.min() > level:
            break
        j = int(np.argmin(rise))
        column = covariance[:, j] / covariance[j, j]
        value = value - column * value[j]
        covariance = covariance - np.outer(column, covariance[j])
        alive[j] = False
        value[~alive] = 0.0
    remaining, theta = free.copy(), solution.theta.copy()
    remaining[chosen[~alive]] = False
    theta[chosen] = value
    return remaining, theta


def find_missing(reduced: ReducedEquations, allowed: Mask, free: Mask, level: float, noise: Floats) -> int | None:
    """Return the number of the term that lowers chi^2 most in the quadratic model, if by more than the level.

    The equations are those of all allowed terms, at a minimiser for the free ones.
    """
    (chosen,) = np.nonzero(allowed)
    inside = free[chosen]
    if inside.all():
        return None
    matrix, gradient = reduced.matrix.sum(axis=0), reduced.gradient.sum(axis=0)
    within = matrix[np.ix_(inside, inside)]
    mixed = matrix[np.ix_(inside, ~inside)]
    solved = np.linalg.pinv(within, hermitian=True) @ mixed
    curvature = matrix.diagonal()[~inside] - np.sum(mixed * solved, axis=0)
    slope = gradient[~inside] - solved.T @ gradient[inside]
    is_known = curvature > 1e-9 * matrix.diagonal()[~inside]
    fall = np.where(is_known, slope**2 / np.where(is_known, curvature, 1.0), 0.0)
    best = int(np.argmax(fall))
    return int(chosen[~inside][best]) if fall[best] > _raise_level(level, noise) else None


def _raise_level(level: float, noise: Floats) -> float:
    """Return the level where the noise is at least what is negligible."""
    return level * float(np.mean(np.maximum(noise, NEGLIGIBLE) ** 2) / np.mean(noise**2))


def apply_l1(solution: Solution, free: Mask, protected: Mask, weight: float, n_observed: int) -> Mask:
    """Return the terms that the minimiser of ``mean squared error / 2 + weight |C|_1`` has, in the quadratic model.

    The proximal map of each coefficient, the soft threshold, is applied in turn until nothing changes.
    """
    (chosen,) = np.nonzero(free)
    variance = float(np.mean(solution.weights.noise**2))
    matrix = solution.curvature * variance / n_observed
    best = solution.theta[chosen]
    right, value = matrix @ best, best.copy()
    diagonal = np.maximum(matrix.diagonal(), 1e-300)
    threshold = np.where(protected[chosen], 0.0, weight)
    for _ in range(MAX_SWEEPS):
        before = value.copy()
        for j in range(len(value)):
            pull = right[j] - matrix[j] @ value + matrix[j, j] * value[j]
            value[j] = math.copysign(max(abs(pull) - threshold[j], 0.0), pull) / diagonal[j]
        if np.abs(value - before).max(initial=0.0) <= 1e-10 * (1 + np.abs(value).max(initial=0.0)):
            break
    remaining = free.copy()
    remaining[chosen[(value == 0) & ~protected[chosen]]] = False
    return remaining
