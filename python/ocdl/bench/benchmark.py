"""How long this machine takes, with ocdl and with the peers that are installed: the numbers of ``ocdl bench``."""

from __future__ import annotations

import math
import statistics
import time
import timeit
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from ocdl import datasets
from ocdl.bench.peers import PEERS, Evaluate, Problem
from ocdl.model.objective import Objective
from ocdl.network import Network

LAYERS = 20
TOLERANCE = 1e-10  # of what a peer computes, relative to the largest number of each array
SETTLING = 0.25  # seconds before a sample, in which the threads of other libraries stop spinning
LONGEST = 10.0  # seconds of a job after which no round is added to the least
LEAST_ROUNDS = 3


@dataclass(frozen=True)
class Job:
    """What is timed: loss and gradient, or the outputs, of a ResNet with fixed steps and squared loss."""

    name: str
    samples: int
    features: int = 2
    tableau: str = "euler"
    gradient: bool = True


@dataclass(frozen=True)
class Timing:
    """The median time of an evaluation; none where a peer could not be used, or computes something else.

    `difference` is the largest one to ocdl's numbers, relative, if they can be compared; `fault` is empty or says why
    there is no time.
    """

    contender: str
    seconds: float | None
    difference: float | None
    fault: str = ""


JOBS = (
    Job("gradient, 2 features, euler, 1,000 samples", 1000),
    Job("gradient, 2 features, kutta4, 1,000 samples", 1000, tableau="kutta4"),
    Job("gradient, 64 features, euler, 1,000 samples", 1000, features=64),
    Job("prediction, 2 features, euler, 100,000 samples", 100_000, gradient=False),
)


def installed_peers() -> dict[str, str]:
    """Return the peers that are installed, and their versions."""
    found = {}
    for name in PEERS:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def measure(job: Job, peers: Sequence[str], *, rounds: int, seconds: float) -> list[Timing]:
    """Time ocdl and the peers in turn, round after round, so that a slow moment hits all of them.

    A sample repeats short evaluations until it takes `seconds`. A peer is compared with ocdl first.
    """
    own, problem, net = _prepared(job)
    expected = own()
    evaluations, timings = {"ocdl": own}, {"ocdl": Timing("ocdl", None, None)}
    for name in peers:
        try:
            evaluate = PEERS[name](net.tableau, problem, gradient=job.gradient)
            difference = _difference(evaluate(), expected)
        except Exception as error:  # whatever is wrong with another library, the others are measured
            timings[name] = Timing(name, None, None, f"could not be used: {' '.join(str(error).split()):.200}")
            continue
        if difference is None:
            fault = "not timed: its arrays have other shapes, or numbers that are not finite"
        else:
            fault = "" if difference <= TOLERANCE else "not timed: its numbers differ from ocdl's"
        timings[name] = Timing(name, None, difference, fault)
        if not fault:
            evaluations[name] = evaluate
    medians = _medians(evaluations, rounds, seconds)
    return [Timing(name, medians.get(name), one.difference, one.fault) for name, one in timings.items()]


def _prepared(job: Job) -> tuple[Evaluate, Problem, Network]:
    """Return how ocdl evaluates, the same problem for the others, and the network."""
    rng = np.random.default_rng(0)
    if job.features == 2:
        X, y = datasets.make_spiral(job.samples, random_state=rng)
    else:
        X, y = rng.standard_normal((job.samples, job.features)), rng.integers(0, 2, job.samples)
    net = Network(job.features, LAYERS, tableau=job.tableau)
    u = net.init(random_state=rng, scheme="scaled")
    objective = Objective()

    def loss_and_gradient() -> tuple[Any, ...]:
        loss, g = net.value_and_grad(u, X, y, objective)
        return loss, g.K, g.b, g.W, g.mu

    def outputs() -> tuple[Any, ...]:
        return (net.predict(u, X).T,)

    problem = Problem(u.K, u.b, u.W, u.mu, float(u.h[0]), np.ascontiguousarray(X.T), y.astype(np.float64))
    return loss_and_gradient if job.gradient else outputs, problem, net


def _difference(got: tuple[Any, ...], expected: tuple[Any, ...]) -> float | None:
    """Return the largest difference, relative to the largest number of each array; None if they cannot be compared."""
    differences = []
    for one, right in zip(got, expected, strict=True):
        if np.shape(one) != np.shape(right) or not np.isfinite(one).all():
            return None
        differences.append(float(np.max(np.abs(np.asarray(one) - right)) / np.max(np.abs(right))))
    return max(differences)


def _medians(evaluations: dict[str, Evaluate], rounds: int, seconds: float) -> dict[str, float]:
    started = time.perf_counter()
    repetitions = {
        name: math.ceil(seconds / timeit.timeit(evaluate, number=1)) for name, evaluate in evaluations.items()
    }
    samples: dict[str, list[float]] = {name: [] for name in evaluations}
    for done in range(rounds):
        if done >= LEAST_ROUNDS and time.perf_counter() - started > LONGEST:
            break
        for name, evaluate in evaluations.items():
            time.sleep(min(SETTLING, 2 * seconds))
            if repetitions[name] > 1:
                evaluate()  # so that caches and threads are awake again
            samples[name].append(timeit.timeit(evaluate, number=repetitions[name]) / repetitions[name])
    return {name: statistics.median(taken) for name, taken in samples.items()}
