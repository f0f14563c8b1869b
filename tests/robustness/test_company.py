"""In one process with other libraries that have threads: the same bits, no changed settings, no deadlocks."""

from __future__ import annotations

import importlib.util
import itertools

import pytest
from subprocesses import run_python

# Each defines others_work(), which keeps the library's own threads busy for a moment, and others_threads().
OTHERS = {
    "sklearn": """
import sklearn.cluster
def others_work():
    sklearn.cluster.KMeans(4, n_init=1, max_iter=2, random_state=0).fit(np.random.default_rng(0).normal(size=(999, 9)))
def others_threads():
    return None
""",
    "torch": """
import torch
def others_work():
    A = torch.full((700, 700), 0.01, requires_grad=True)
    (A @ A).tanh().sum().backward()
def others_threads():
    return torch.get_num_threads(), torch.get_num_interop_threads()
""",
    "numba": """
import numba
@numba.njit(parallel=True)
def total(x):
    s = 0.0
    for i in numba.prange(x.size):
        s += x[i]
    return s
def others_work():
    total(np.ones(1_000_000))
def others_threads():
    return numba.get_num_threads()
""",
}

OCDL = """
import ocdl
from ocdl import ODEClassifier
X = np.random.default_rng(0).normal(size=(600, 2))
wide = np.random.default_rng(0).normal(size=(120, 100))
y = np.arange(600) % 2
def bits():
    digest = hashlib.sha256()
    for samples in (X, wide):
        net = ocdl.Network(samples.shape[1], 5, tableau="kutta4")
        u, labels = net.init(random_state=0), y[: len(samples)]
        digest.update(net.value_and_grad(u, samples, labels)[1].to_vector())
        digest.update(net.predict(u, samples))
        digest.update(ocdl.train(net, u, samples, labels, max_iter=3).controls.to_vector())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # five iterations do not converge
        digest.update(ODEClassifier(n_layers=4, max_iter=5, random_state=0).fit(X, y).predict_proba(X))
    return digest.hexdigest()
"""

START = """
import hashlib, sys, warnings
warnings.simplefilter("default")  # what others import may warn of what it likes
import numpy as np
from threadpoolctl import threadpool_info
def settings():
    pools = {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}
    return pools, others_threads(), np.geterr()
"""

# The first others_work() loads what its library loads late; each of the two comes before, between and after the other.
TOGETHER = """
others_work()
before = settings()
ocdl._core.insist_on_threads(True)
seen = set()
for threads in (2, 3):
    ocdl.set_num_threads(threads)
    seen.add(bits())
    others_work()
    seen.add(bits())
after = settings()
assert after == before, (before, after)
print(*seen)
"""


@pytest.fixture(scope="module")
def bits_alone() -> str:
    return run_python(START + OCDL + "print(bits())")


def needs(library: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(library) is None, reason=f"{library} is not installed")


@pytest.mark.parametrize("ocdl_first", [True, False], ids=["ocdl first", "ocdl last"])
@pytest.mark.parametrize("other", [pytest.param(name, marks=needs(name)) for name in OTHERS])
def test_beside_another_library(other: str, ocdl_first: bool, bits_alone: str) -> None:
    imports = [OCDL, OTHERS[other]] if ocdl_first else [OTHERS[other], OCDL]
    assert run_python(START + "".join(imports) + TOGETHER) == bits_alone


ORDERS = list(itertools.permutations(["ocdl", *OTHERS]))


@pytest.mark.slow
@needs("torch")
@needs("numba")
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_beside_all_of_them(order: tuple[str, ...], bits_alone: str) -> None:
    """In every order of the imports."""
    parts = {name: code.replace("others_", f"{name}_") for name, code in OTHERS.items()} | {"ocdl": OCDL}
    all_together = """
def others_work():
    sklearn_work(), torch_work(), numba_work()
def others_threads():
    return sklearn_threads(), torch_threads(), numba_threads()
"""
    assert run_python(START + "".join(parts[name] for name in order) + all_together + TOGETHER) == bits_alone
