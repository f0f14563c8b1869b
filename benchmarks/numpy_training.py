"""The trainings of ``ocdl reproduce`` in plain vectorised NumPy, as one would write them from the paper."""

from __future__ import annotations

from typing import Any

import numpy as np

Parts = dict[str, np.ndarray]


class Problem:
    """A network with its data: loss and gradient, all samples at once."""

    def __init__(self, net: Any, X: np.ndarray, y: np.ndarray, reduction: str, frozen: tuple[str, ...]) -> None:
        self.A, self.weights = (net.tableau.A, net.tableau.b) if net.residual else (np.zeros((1, 1)), np.ones(1))
        self.residual, self.time_steps, self.layers = net.residual, net.time_steps, net.n_layers
        self.X, self.c = X, y[:, None].astype(float)
        self.scale = 1.0 / len(X) if reduction == "mean" else 1.0
        self.frozen = set(frozen) | (set() if self.time_steps in ("free", "simplex") else {"h"})

    def forward(self, u: Parts, X: np.ndarray) -> tuple[np.ndarray, list[Any]]:
        """Return the outputs, and the stages of every layer: pairs of states and values."""
        y, layers = X, []
        for j in range(self.layers):
            K, b = u["K"][j].T, u["b"][j]
            if not self.residual:
                k = np.tanh(y @ K + b)
                layers.append([(y, k)])
                y = k
                continue
            stages: list[tuple[np.ndarray, np.ndarray]] = []
            for row in self.A:
                state = y
                for a, (_, k) in zip(row, stages, strict=False):
                    if a:
                        state = state + u["h"][j] * a * k
                stages.append((state, np.tanh(state @ K + b)))
            layers.append(stages)
            for weight, (_, k) in zip(self.weights, stages, strict=True):
                y = y + u["h"][j] * weight * k
        layers.append(y)
        return y @ u["W"].T + u["mu"], layers

    def loss(self, u: Parts, X: np.ndarray, c: np.ndarray) -> tuple[float, float]:
        """Return loss and accuracy on other samples."""
        z, _ = self.forward(u, X)
        C = 1 / (1 + np.exp(-z))
        return float(((C - c) ** 2).sum() / 2), float(np.mean((z > 0) == (c > 0.5)))

    def evaluate(self, u: Parts) -> tuple[float, Parts]:
        """Return loss and gradient."""
        z, layers = self.forward(u, self.X)
        C = 1 / (1 + np.exp(-z))
        misfit = C - self.c
        outer = self.scale * misfit * C * (1 - C)
        g = {name: np.zeros_like(part) for name, part in u.items()}
        g["W"], g["mu"] = outer.T @ layers[-1], outer.sum(axis=0)
        p = outer @ u["W"]
        for j in reversed(range(self.layers)):
            h = u["h"][j] if self.residual else 1.0
            etas: dict[int, np.ndarray] = {}
            for i in reversed(range(len(layers[j]))):
                state, k = layers[j][i]
                cotangent = self.weights[i] * p
                for later, eta in etas.items():
                    if self.A[later, i]:
                        cotangent = cotangent + self.A[later, i] * eta
                delta = h * (1 - k * k) * cotangent
                g["K"][j] += delta.T @ state
                g["b"][j] += delta.sum(axis=0)
                if "h" not in self.frozen:
                    g["h"][j] += (cotangent * k).sum()
                etas[i] = delta @ u["K"][j]
            p = sum(etas.values(), p if self.residual else 0.0)
        for name in self.frozen:
            g[name][...] = 0.0
        return float(self.scale * (misfit**2).sum() / 2), g

    def stepped(self, u: Parts, g: Parts, t: float) -> Parts:
        """Return P(u - t g)."""
        trial = {name: u[name] - t * g[name] for name in u}
        if self.time_steps == "simplex":
            trial["h"] = onto_simplex(trial["h"])
        return trial


def onto_simplex(v: np.ndarray) -> np.ndarray:
    """Return the closest point of {h >= 0, sum h = 1}."""
    falling = np.sort(v)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(v) + 1)
    return np.maximum(v - excess[np.flatnonzero(falling > excess)[-1]], 0.0)


def dot(a: Parts, b: Parts) -> float:
    return float(sum((a[name] * b[name]).sum() for name in a))


def train(
    problem: Problem, u: Parts, optimiser: Any, iterations: int, test: tuple[Any, Any], evaluated: set[int]
) -> float:
    """Minimise by the paper's backtracking or Armijo's rule, looking at the test data now and then; return the loss."""
    armijo = type(optimiser).__name__ == "Armijo"
    L = 1 / optimiser.first_step if armijo else optimiser.L0
    phi, g = problem.evaluate(u)
    for iteration in range(iterations):
        if iteration in evaluated:
            problem.loss(u, *test)
            problem.loss(u, problem.X, problem.c)
        for _ in range(optimiser.max_trials):
            trial = problem.stepped(u, g, 1 / L)
            phi_trial, g_trial = problem.evaluate(trial)
            moved = {name: trial[name] - u[name] for name in u}
            slope = dot(g, moved)
            bound = optimiser.c * slope if armijo else slope + L / 2 * dot(moved, moved)
            if phi_trial <= phi + bound:
                break
            L = L / optimiser.shrink if armijo else optimiser.rho_up * L
        u, phi, g = trial, phi_trial, g_trial
        L = max(1 / optimiser.max_step, L / optimiser.grow) if armijo else optimiser.rho_down * L
    return phi
