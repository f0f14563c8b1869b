"""Flows inside PyTorch and JAX where others are at work: any order of imports, forks, workers of a loader, threads."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

import pytest
from subprocesses import run_python

LIBRARIES = ("torch", "jax")
pytestmark = [
    pytest.mark.extras,
    *(
        pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"pip install 'ocdl[{name}]'")
        for name in LIBRARIES
    ),
]

START = """
import hashlib, os, signal, sys, threading, warnings
warnings.simplefilter("ignore")  # of forks beside threads: that is what is tested
import numpy as np
"""
IMPORTS = {
    "ocdl": "import ocdl\n",
    "torch": "import torch\n",
    "jax": "import jax\njax.config.update('jax_enable_x64', True)\n",
}
# What is computed in three ways: outputs, and the gradient of their sum by samples and by K.
FLOWS = """
net = ocdl.Network(3, 8, n_outputs=2, tableau="kutta4")
u, X = net.init(random_state=0), np.random.default_rng(0).normal(size=(3000, 3))

def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()

def in_ocdl(X=X):
    g = net.vjp(u, X, output_cotangents=np.ones((len(X), 2)))
    return digest(net.predict(u, X), g.X, g.K)
"""
IN_TORCH = """
layer = ocdl.torch.OCDLayer(net, u)
def in_torch(X=X):
    x = torch.tensor(X, requires_grad=True)
    outputs = layer(x)
    return digest(outputs.detach(), *torch.autograd.grad(outputs.sum(), (x, layer.K)))
"""
IN_JAX = """
flow = ocdl.jax.flow(net)
def total(controls, x):
    outputs = flow(controls, x)
    return outputs.sum(), outputs
compiled = jax.jit(jax.value_and_grad(total, argnums=(0, 1), has_aux=True))
def in_jax(X=X):
    (_, outputs), (by_controls, by_x) = compiled(u.parts(), X)
    return digest(outputs, by_x, by_controls["K"])
"""
ALL = START + "".join(IMPORTS.values()) + FLOWS + IN_TORCH + IN_JAX
THREADS = """
ocdl._core.insist_on_threads(True)
ocdl.set_num_threads(2)
"""

ORDERS = list(itertools.permutations(IMPORTS))


@pytest.mark.parametrize(
    "order", [pytest.param(order, marks=[pytest.mark.slow] if i % 5 else []) for i, order in enumerate(ORDERS)]
)
def test_the_order_of_the_imports_changes_no_bit(order: tuple[str, ...]) -> None:
    """The first and the last order here, all others in the slow tests."""
    together = THREADS + "print(len({in_torch(), in_jax(), in_ocdl(), in_torch(), in_jax(), in_ocdl()}))"
    code = START + "".join(IMPORTS[name] for name in order) + FLOWS + IN_TORCH + IN_JAX + together
    assert run_python(code) == "1"


CHILDREN = """
def child_succeeds(work):
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that hangs dies, and its parent fails
        os._exit(0 if work() else 1)
    return os.waitpid(child, 0)[1] == 0
"""


def test_forked_children_after_layers_have_computed() -> None:
    """JAX itself does not survive a fork once it has computed, but the core in the same process does."""
    forks = """
expected = in_torch()
assert in_ocdl() == in_jax() == expected
assert all(child_succeeds(lambda: in_torch() == expected == in_ocdl()) for _ in range(20))
assert in_torch() == in_jax() == expected  # the parent continues with its threads
print("fine")
"""
    assert run_python(ALL + THREADS + CHILDREN + forks) == "fine"


def test_forks_while_threads_compute() -> None:
    forks = """
expected, done, wrong = in_torch(), threading.Event(), []
def compute():
    while not done.is_set():
        if in_torch() != expected:
            wrong.append(1)
threads = [threading.Thread(target=compute) for _ in range(2)]
for thread in threads:
    thread.start()
try:
    assert all(child_succeeds(lambda: in_torch() == expected) for _ in range(20))
finally:
    done.set()
    for thread in threads:
        thread.join()
assert not wrong
print("fine")
"""
    code = START + IMPORTS["ocdl"] + IMPORTS["torch"] + FLOWS + IN_TORCH + THREADS + CHILDREN + forks
    assert run_python(code) == "fine"


def test_a_child_that_is_forked_before_jax_computes() -> None:
    forks = """
expected = in_ocdl()
assert all(child_succeeds(lambda: in_jax() == expected) for _ in range(3))
assert in_jax() == expected
print("fine")
"""
    assert run_python(START + IMPORTS["ocdl"] + IMPORTS["jax"] + FLOWS + IN_JAX + THREADS + CHILDREN + forks) == "fine"


@pytest.mark.parametrize("library", LIBRARIES)
def test_threads_share_a_layer(library: str) -> None:
    """Eight threads with different samples, inside compiled code and outside it."""
    threads = f"""
rows = [X[100 * i : 100 * i + 100 + i] for i in range(8)]
expected = [in_ocdl(some) for some in rows]
results = {{}}
def compute(i):
    results[i] = {{in_{library}(rows[i]) for _ in range(20)}}
workers = [threading.Thread(target=compute, args=(i,)) for i in range(8)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join(100)
assert [results[i] for i in range(8)] == [{{digest}} for digest in expected]
print("fine")
"""
    assert run_python(ALL + THREADS + threads) == "fine"


LOADER = f"""{START}{IMPORTS["ocdl"]}{IMPORTS["torch"]}{FLOWS}
class Flowed(torch.utils.data.Dataset):
    '''Rows as a layer that is not trained leaves them, and the gradient of their sum.'''

    def __init__(self):
        self.layer = ocdl.torch.OCDLayer(net, u)

    def __len__(self):
        return 40

    def __getitem__(self, i):
        x = torch.tensor(X[i : i + 1], requires_grad=True)
        outputs = self.layer(x)
        return outputs.detach()[0], torch.autograd.grad(outputs.sum(), x)[0][0]


def main(context):
    ocdl._core.insist_on_threads(True)
    ocdl.set_num_threads(2)
    layer = ocdl.torch.OCDLayer(net, u)
    x = torch.tensor(X[:40], requires_grad=True)
    outputs = layer(x)
    by_x = torch.autograd.grad(outputs.sum(), x)[0]
    loader = torch.utils.data.DataLoader(Flowed(), batch_size=8, num_workers=2, multiprocessing_context=context)
    for _ in range(2):
        seen = [torch.cat(parts) for parts in zip(*loader)]
        assert torch.equal(seen[0], outputs.detach()) and torch.equal(seen[1], by_x)
    print("fine")
"""


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_the_workers_of_a_loader_compute_with_a_layer(context: str, tmp_path: Path) -> None:
    (tmp_path / "loading.py").write_text(LOADER)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import loading; loading.main({context!r})"
    assert run_python(code) == "fine"


def test_a_layer_in_shared_memory_is_trained_by_several_processes(tmp_path: Path) -> None:
    """Hogwild: the last step wins, no process crashes, and the parent has finite numbers that have changed."""
    (tmp_path / "sharing.py").write_text(
        START
        + IMPORTS["ocdl"]
        + IMPORTS["torch"]
        + FLOWS
        + """
def descend(layer):
    method = torch.optim.SGD(layer.parameters(), lr=1e-3)
    for _ in range(20):
        method.zero_grad()
        layer(torch.tensor(X[:50])).square().mean().backward()
        method.step()

def main():
    layer = ocdl.torch.OCDLayer(net, u)
    layer.share_memory()
    layer(torch.tensor(X))
    context = torch.multiprocessing.get_context("fork")
    children = [context.Process(target=descend, args=(layer,)) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join(100)
    assert [child.exitcode for child in children] == [0, 0]
    moved = (layer.to_controls() - u).norm()
    assert 0 < moved < 1e3
    print("fine")
"""
    )
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import sharing; sharing.main()"
    assert run_python(code) == "fine"


def test_jax_flows_are_sent_to_other_processes(tmp_path: Path) -> None:
    (tmp_path / "flowing.py").write_text(
        START
        + IMPORTS["ocdl"]
        + IMPORTS["jax"]
        + FLOWS
        + """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

def compute(flow, rows):
    return np.asarray(flow(u.parts(), rows))

def main():
    flow = ocdl.jax.flow(net)
    expected = compute(flow, X)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        results = np.concatenate(list(pool.map(compute, [flow] * 3, np.split(X, 3))))
    assert np.array_equal(results, expected)
    print("fine")
"""
    )
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import flowing; flowing.main()"
    assert run_python(code) == "fine"
