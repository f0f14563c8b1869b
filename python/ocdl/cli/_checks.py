"""The checks of ``ocdl selftest``: each returns one line about what it measured, or raises an error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

import ocdl
from ocdl import Controls, Network, Objective, _core, _cpu, _load_core
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.model.fields import FIELD_OPTIONS, FIELDS, Field

# (features, layers, samples): fused, unrolled and panel products, one block and several, one shard and several.
PROBLEMS: list[tuple[tuple[int, int, int], dict[str, Any], Objective]] = [
    ((2, 10, 5000), {}, Objective()),
    ((3, 6, 200), {"tableau": "kutta4", "time_steps": "free", "augment": 2}, Objective("cross_entropy")),
    ((2, 5, 100), {"tableau": "gauss2", "field": "hamiltonian", "activation": "softplus"}, Objective()),
    ((16, 5, 300), {"n_outputs": 3, "field": "antisymmetric", "activation": "sigmoid"}, Objective("cross_entropy")),
    ((130, 2, 100), {"n_outputs": 2, "stage_controls": True, "tableau": "kutta3"}, Objective("cross_entropy")),
]
AGREEMENT = 1e-13  # of variants, relative to the largest entry
THREADS = (1, 2, 3, 7)
LEARNED = 0.95  # accuracy that every start reaches on easy data


class CheckError(Exception):
    """A check that fails; the message says what was measured."""


def problem(sizes: tuple[int, int, int], settings: dict[str, Any]) -> tuple[Network, Controls, FloatArray, LabelArray]:
    """Return a network with random controls, and random samples; the same on every machine."""
    features, layers, samples = sizes
    net, rng = Network(features, layers, **settings), np.random.default_rng(0)
    scale = 0.1 if net.field == "polynomial" else 0.5  # so that all stage equations have one solution
    u, steps = net.from_vector(rng.normal(scale=scale, size=net.n_controls)), net.init(random_state=0).h
    for part in net.parts:
        if part.role == "field" and part.name.isupper():  # a matrix
            getattr(u, part.name)[...] /= np.sqrt(part.shape[-1])
    u.h[...] = steps
    return net, u, rng.normal(size=(samples, features)), rng.integers(0, max(net.n_outputs, 2), samples)


def gradients() -> list[list[float]]:
    """Return J and its gradient for each of the problems."""
    results = []
    for sizes, settings, objective in PROBLEMS:
        net, u, X, y = problem(sizes, settings)
        J, gradient = net.value_and_grad(u, X, y, objective)
        results.append([J, *gradient.to_vector().tolist()])
    return results


def variants() -> str:
    """Compare the results of all cores that run on this machine, each in a separate process."""
    usable = [name for name in _load_core.built_variants() if _cpu.supports(name)]
    code = "import json; from ocdl.cli._checks import gradients; print(json.dumps(gradients()))"
    expected, worst = gradients(), 0.0
    for name in usable:
        environment = os.environ | {"OCDL_CORE": name}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise CheckError(f"the core {name} ends with exit code {done.returncode}: {done.stderr[-500:]}")
        for actual, reference in zip(json.loads(done.stdout), expected, strict=True):
            difference = np.abs(np.subtract(actual, reference)).max() / np.abs(reference).max()
            if not difference <= AGREEMENT:
                raise CheckError(f"the core {name} differs by {difference:.1e} of the largest entry, not {AGREEMENT}")
            worst = max(worst, float(difference))
    return f"{', '.join(usable)}: the same to {worst:.0e}"


def exact_gradients() -> str:
    """Check Taylor remainders, costates and orders for every tableau, field and activation."""
    settings: list[dict[str, Any]] = [
        {"tableau": tableau, "field": field.name} | _required_option(field)
        for tableau in ocdl.tableaux()
        for field in FIELDS.values()
    ]
    settings += [{"activation": activation, "time_steps": "simplex"} for activation in _core.activations()]
    settings += [{"residual": False}, {"augment": 2}, {"stage_controls": True, "tableau": "kutta4"}]
    for setting in settings:
        net, u, X, y = problem((2, 4, 20), setting)
        report = net.certify(u, X, y)
        if not report.passed:
            raise CheckError(f"{setting}: {report!r}")
    return f"{len(settings)} networks pass their certificates"


def _required_option(field: Field) -> dict[str, Any]:
    return {
        option: value for option, value in FIELD_OPTIONS.items() if option == field.option and field.requires_option
    }


def determinism() -> str:
    """Check that results depend neither on the number of threads nor, for a row, on the other rows."""
    before = ocdl.get_num_threads()
    _core.insist_on_threads(True)
    try:
        for sizes, settings, objective in PROBLEMS:
            net, u, X, y = problem(sizes, settings)
            bits = set()
            for threads in THREADS:
                ocdl.set_num_threads(threads)
                J, gradient = net.value_and_grad(u, X, y, objective)
                bits.add((J, gradient.to_vector().tobytes()))
            if len(bits) != 1:
                raise CheckError(f"gradients with {THREADS} threads have {len(bits)} results for {settings}")
            if not np.array_equal(net.predict(u, X)[3:10], net.predict(u, X[3:10])):
                raise CheckError(f"the outputs of rows depend on the rows beside them for {settings}")
    finally:
        _core.insist_on_threads(False)
        ocdl.set_num_threads(before)
    return f"the same bits with {', '.join(map(str, THREADS))} threads, and row by row"


def training() -> str:
    """Check that easy data are learned, and that a resumed training ends with the same bits."""
    X, y = ocdl.datasets.make_spiral(500, random_state=0)
    net = Network(2, 10, time_steps="simplex", augment=1)
    start = net.init(random_state=0)

    def train(iterations: int, **files: Any) -> ocdl.Result:
        return ocdl.train(net, start, X, y, optimiser=ocdl.LBFGS(), max_iter=iterations, **files)

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.ocdl")
        whole = train(400)
        train(100, checkpoint=path)
        resumed = train(400, checkpoint=ocdl.Checkpoint(path, resume=True))
    if not same_bits(whole.controls, resumed.controls):
        raise CheckError("a resumed training ends with other controls than an uninterrupted one")
    arms = np.where(y == 1, "one arm", "the other")
    estimator = ocdl.ODEClassifier(random_state=0).fit(X, arms)
    scores = float(whole.history.accuracy[-1]), float(estimator.score(X, arms))
    if min(scores) < LEARNED:
        raise CheckError(f"accuracies of {scores} on two spirals, where {LEARNED} is easy")
    return f"accuracies {scores[0]:.3f} and {scores[1]:.3f}; resumed to the same bits"


def files() -> str:
    """Check that a file holds the same bits as the model, and that a damaged file is refused."""
    net, u, X, _ = problem((3, 5, 50), {"tableau": "kutta4", "time_steps": "free"})
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.ocdl")
        ocdl.save(path, net, u)
        read = ocdl.load(path, ocdl.SavedNetwork)
        if not (
            same_bits(read.controls, u) and np.array_equal(read.network.predict(read.controls, X), net.predict(u, X))
        ):
            raise CheckError("a model that was written and read has other bits")
        with open(path, "r+b") as file:
            file.seek(-9, os.SEEK_END)
            byte = file.read(1)[0]
            file.seek(-9, os.SEEK_END)
            file.write(bytes([byte ^ 1]))
        try:
            ocdl.load(path)
        except ocdl.ModelFileError:
            return "the same bits after a round trip; a flipped bit is detected"
    raise CheckError("a file with a flipped bit was read without an error")


def same_bits(u: Controls, v: Controls) -> bool:
    """Return whether all numbers are the same."""
    return u.to_vector().tobytes() == v.to_vector().tobytes()


CHECKS: dict[str, Callable[[], str]] = {
    "variants": variants,
    "gradients": exact_gradients,
    "determinism": determinism,
    "training": training,
    "files": files,
}
