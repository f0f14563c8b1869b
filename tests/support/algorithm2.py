"""Algorithm 2 of the paper for Euler's method and the feed-forward network, written in NumPy from the formulas.

Nothing is shared with the package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Parts = dict[str, Array]


def loss_and_gradient(u: Parts, X: Array, c: Array, *, residual: bool, learn_steps: bool) -> tuple[float, Parts]:
    """1/(2m) sum |C(W y[N] + mu) - c|^2 and its derivatives."""
    m, N = len(X), len(u["K"])
    y, k = [X], []
    for j in range(N):
        k.append(np.tanh(y[j] @ u["K"][j].T + u["b"][j]))
        y.append(y[j] + u["h"][j] * k[j] if residual else k[j])
    C = 1 / (1 + np.exp(-(y[N] @ u["W"].T + u["mu"])))
    misfit = C - c[:, None]
    outer = misfit * C * (1 - C) / m
    g = {name: np.zeros_like(part) for name, part in u.items()}
    g["W"], g["mu"] = outer.T @ y[N], outer.sum(axis=0)
    p = outer @ u["W"]
    for j in reversed(range(N)):
        gamma = (u["h"][j] if residual else 1.0) * (1 - k[j] ** 2) * p
        g["K"][j], g["b"][j] = gamma.T @ y[j], gamma.sum(axis=0)
        if learn_steps:
            g["h"][j] = (p * k[j]).sum()
        p = (p if residual else 0) + gamma @ u["K"][j]
    return float((misfit**2).sum() / (2 * m)), g


def onto_simplex(v: Array) -> Array:
    """The closest point of {x >= 0, sum x = 1}: max(v - theta, 0), with theta by bisection."""
    low, high = v.min() - 1, v.max()
    for _ in range(200):
        theta = (low + high) / 2
        low, high = (theta, high) if np.maximum(v - theta, 0).sum() > 1 else (low, theta)
    return np.maximum(v - (low + high) / 2, 0)


def minimise(
    evaluate: Callable[[Parts], tuple[float, Parts]],
    u: Parts,
    iterations: int,
    *,
    simplex: bool,
    L: float = 0.1,
    rho_up: float = 1.5,
    rho_down: float = 0.99,
) -> tuple[list[float], list[float]]:
    """The losses, and the L of each accepted step."""
    phi, g = evaluate(u)
    losses, accepted = [phi], []
    for _ in range(iterations):
        while True:
            trial = {name: u[name] - g[name] / L for name in u}
            if simplex:
                trial["h"] = onto_simplex(trial["h"])
            phi_trial, g_trial = evaluate(trial)
            moved = {name: trial[name] - u[name] for name in u}
            slope = sum((g[name] * moved[name]).sum() for name in u)
            squared = sum((moved[name] ** 2).sum() for name in u)
            if phi_trial <= phi + slope + L / 2 * squared:
                break
            L *= rho_up
        u, phi, g = trial, phi_trial, g_trial
        losses.append(phi)
        accepted.append(L)
        L *= rho_down
    return losses, accepted
