"""Custom losses for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

import ocdl
from ocdl import LBFGS, Adam, Armijo, Backtracking, GradientDescent, Network, Objective

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 2))
WEIGHTS = RNG.uniform(0, 2, 80)
METHODS = {
    "backtracking": Backtracking(),
    "armijo": Armijo(),
    "adam": Adam(),
    "adam on batches": Adam(batch_size=16),
    "lbfgs": LBFGS(),
    "gradient descent": GradientDescent(0.1),
}


def labels(q: int) -> np.ndarray:
    return ((X[:, 0] * X[:, 1] > 0) + (X[:, 0] > 0.7) * (q > 1)).astype(int)


class CrossEntropy:
    """The package's own, in NumPy."""

    name = "my cross entropy"

    def value_and_grad(self, outputs: np.ndarray, targets: Any) -> tuple[np.ndarray, np.ndarray]:
        z = outputs.astype(np.float64)
        if z.shape[1] == 1:
            sign = 1.0 - 2.0 * np.asarray(targets)[:, None]
            return np.logaddexp(0, sign * z)[:, 0], sign * expit(sign * z)
        c = np.eye(z.shape[1])[np.asarray(targets)]
        shifted = z - z.max(axis=1, keepdims=True)
        total = np.exp(shifted).sum(axis=1, keepdims=True)
        return (np.log(total) - (c * shifted).sum(axis=1, keepdims=True))[:, 0], np.exp(shifted) / total - c

    def score(self, outputs: np.ndarray, targets: Any) -> float:
        decided = outputs[:, 0] > 0 if outputs.shape[1] == 1 else outputs.argmax(axis=1)
        return float((decided == np.asarray(targets)).mean())


class Quadratic:
    """1/2 |z|^2, whatever the targets are; it notes its calls."""

    name = "quadratic"

    def __init__(self, also: Callable[[np.ndarray, Any], Any] | None = None) -> None:
        self.calls: list[tuple[int, Any]] = []
        self._also = also

    def value_and_grad(self, outputs: np.ndarray, targets: Any) -> Any:
        self.calls.append((len(outputs), targets))
        if self._also is not None:
            self._also(outputs, targets)
        return (outputs**2).sum(axis=1) / 2, outputs.copy()


def train(loss: Any, y: Any, net: Network | None = None, max_iter: int = 50, **arguments: Any) -> ocdl.Result:
    net = net or Network(2, 5, time_steps="free")
    settings = {"random_state": 3, "eval_every": 7, "tol": 0.0} | arguments
    objective = loss if isinstance(loss, Objective) else Objective(loss)
    return ocdl.train(net, net.init(random_state=2), X, y, objective=objective, max_iter=max_iter, **settings)


# ---- errors and interrupts ----


class Failing(Quadratic):
    def __init__(self, error: BaseException, calls: int) -> None:
        super().__init__()
        self._error, self._left = error, calls

    def value_and_grad(self, outputs: np.ndarray, targets: Any) -> Any:
        if len(self.calls) == self._left:
            raise self._error
        return super().value_and_grad(outputs, targets)
