"""Which terms a polynomial keeps: backward elimination and the proximal method, on the quadratic model of the fit."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ocdl.dynamics.least_squares import Solution

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MAX_SWEEPS = 1000  # of coordinate descent
NEGLIGIBLE = 1e-4  # of the scale of the data: a term that changes trajectories by less is dropped, however little noise
MAX_FRACTION = 0.5  # of the terms that one round removes, since the quadratic model holds nearby only


def elimination_level(n_observed: int, n_terms: int) -> float:
    """Return by how much a term has to lower chi^2: the extended information criterion of Chen and Chen (2008)."""
    return math.log(max(n_observed, 2)) + 2 * math.log(max(n_terms, 2))


def eliminate(solution: Solution, free: Mask, protected: Mask, level: float) -> Mask:
    """Return the terms that remain after one round: those without which chi^2 rises by more than the level.

    The term that matters least goes first, and the others are fitted again in the quadratic model.
    """
    (chosen,) = np.nonzero(free)
    prior = solution.weights.prior[chosen]
    covariance = np.linalg.pinv(solution.curvature + np.diag(prior), hermitian=True)
    noise = solution.weights.noise
    level = level * float(np.mean(np.maximum(noise, NEGLIGIBLE) ** 2) / np.mean(noise**2))
    value = solution.theta[chosen].copy()
    alive = np.ones(len(chosen), bool)
    can_go = ~protected[chosen]
    for _ in range(max(1, math.ceil(MAX_FRACTION * len(chosen)))):
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
    remaining = free.copy()
    remaining[chosen[~alive]] = False
    return remaining


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
