"""Observed orders of convergence: those that the tableaux derive from their coefficients.

The controls are constant in time, so that the network is a method for y' = tanh(K y + b) and its classical order
applies: to the states, to the costates (adjoint and method form a symplectic pair) and to the gradient.
"""

from __future__ import annotations

from functools import cache

import mpmath as mp
import numpy as np
import pytest
from numpy.typing import NDArray
from problems import TABLEAUX

from ocdl import Network, Objective, Tableau

# Fine enough for the leading term of the error to stand alone, coarse enough for it to stand above roundoff.
LAYERS_FOR_ORDER = {1: 512, 2: 256, 3: 128, 4: 64, 5: 48, 6: 16}

HORIZON = 2.0
K = np.array([[-0.2, 1.8], [-0.6, 0.2]])
BIAS = np.array([-0.1, -0.3])
W = np.array([1.5, -0.7])
MU = np.array([0.1])
X = np.array([[1.8, -1.4], [1.1, 0.2], [-1.0, 0.1]])
LABELS = [0, 1, 1]

Quantities = dict[str, NDArray[np.float64]]


@cache
def computed(tableau: str, layers: int) -> Quantities:
    net = Network(2, layers, tableau=tableau, horizon=HORIZON, time_steps="free")
    u = net.controls(K=np.tile(K, (layers, 1, 1)), b=np.tile(BIAS, (layers, 1)), W=[W], mu=MU)
    objective = Objective("cross_entropy", reduction="sum")
    _, g = net.value_and_grad(u, X, LABELS, objective)
    return {
        "y": net.forward(u, X).states[-1],
        "p": net.adjoint(u, X, LABELS, objective)[0],
        # By the constant K and b, by the horizon (h = T/N), by W and mu.
        "gradient": np.concatenate([g.K.sum(axis=0).ravel(), g.b.sum(axis=0), [g.h.mean()], g.W.ravel(), g.mu]),
    }


@cache
def exact() -> Quantities:
    """To far more digits than a double has: Taylor series of the solution, differences with a step of 1e-18."""
    with mp.workdps(36):
        step = mp.mpf(10) ** -18
        controls = [mp.mpf(float(number)) for number in (*K.flat, *BIAS, HORIZON, *W, *MU)]
        final, costates, gradient = [], [], [mp.mpf(0)] * len(controls)
        for x, label in zip(X, LABELS, strict=True):
            arguments = [*(mp.mpf(float(number)) for number in x), *controls]
            y, loss = flow_and_loss(arguments, label)
            shifted = ([a + step * (n == m) for n, a in enumerate(arguments)] for m in range(len(arguments)))
            slopes = [(flow_and_loss(shifted_arguments, label)[1] - loss) / step for shifted_arguments in shifted]
            final.append(y)
            costates.append(slopes[:2])
            gradient = [a + b for a, b in zip(gradient, slopes[2:], strict=True)]
        return {
            name: np.array(values, dtype=float)
            for name, values in {"y": final, "p": costates, "gradient": gradient}.items()
        }


def flow_and_loss(arguments: list[mp.mpf], label: int) -> tuple[list[mp.mpf], mp.mpf]:
    y, (k11, k12, k21, k22), bias, horizon, weights, mu = (
        arguments[:2], arguments[2:6], arguments[6:8], arguments[8], arguments[9:11], arguments[11]
    )  # fmt: skip
    intervals = 10
    for _ in range(intervals):
        y = taylor_step(y, [[k11, k12], [k21, k22]], bias, horizon / intervals, terms=26)
    z = mp.fdot(weights, y) + mu
    return y, mp.log1p(mp.exp(-z if label else z))


def taylor_step(y: list[mp.mpf], matrix: list[list[mp.mpf]], bias: list[mp.mpf], h: mp.mpf, terms: int) -> list[mp.mpf]:
    """One step for y' = tanh(z), z = K y + b. The series of t = tanh(z) follows from t' = s z', s = 1 - t^2."""
    series = [[component] for component in y]
    z: list[list[mp.mpf]] = [[], []]
    t: list[list[mp.mpf]] = [[], []]
    s: list[list[mp.mpf]] = [[], []]
    for n in range(terms):
        for i in range(2):
            z[i].append(mp.fdot(matrix[i], [component[n] for component in series]) + (bias[i] if n == 0 else 0))
            if n == 0:
                t[i].append(mp.tanh(z[i][0]))
            else:
                t[i].append(mp.fdot((k * z[i][k], s[i][n - k]) for k in range(1, n + 1)) / n)
            s[i].append((n == 0) - mp.fdot((t[i][k], t[i][n - k]) for k in range(n + 1)))
        for i in range(2):
            series[i].append(t[i][n] / (n + 1))
    powers = [h**n for n in range(terms + 1)]
    return [mp.fdot(coefficients, powers) for coefficients in series]


def error(quantity: str, tableau: str, layers: int) -> float:
    return float(np.linalg.norm(computed(tableau, layers)[quantity] - exact()[quantity]))


@pytest.mark.parametrize("quantity", ["y", "p", "gradient"])
@pytest.mark.parametrize("tableau", TABLEAUX)
def test_observed_order_is_the_derived_order(tableau: str, quantity: str) -> None:
    order = Tableau.named(tableau).order
    layers = LAYERS_FOR_ORDER[order]
    coarse, fine = error(quantity, tableau, layers), error(quantity, tableau, 2 * layers)
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.05)


@pytest.mark.parametrize("quantity", ["y", "p", "gradient"])
def test_many_layers_reach_the_exact_solution(quantity: str) -> None:
    assert error(quantity, "dormand_prince", 512) <= 1e-14 * np.linalg.norm(exact()[quantity])
