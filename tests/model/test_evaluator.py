"""A training over several parts of the samples has the bits of one with all samples in memory, for any parts."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import ocdl
from ocdl import LBFGS, Adam, Armijo, Backtracking, GradientDescent, Network, NewtonCG, Objective, Tikhonov, _core
from ocdl.model.losses import LOSSES

METHODS = {
    "gradient descent": GradientDescent(0.1),
    "backtracking": Backtracking(),
    "armijo": Armijo(),
    "adam": Adam(),
    "adam on batches": Adam(batch_size=100),
    "lbfgs": LBFGS(),
    "newton": NewtonCG(max_products=4),
    "gauss-newton": NewtonCG(curvature="gauss_newton", max_products=4),
}
SHARD = _core.shard_size(1)
ROWS = 5 * SHARD + 77  # six shards, the last one short
SHARDS = 6
PARTITIONS = {1: [0, 6], 2: [0, 4, 6], 3: [0, 1, 4, 6], 4: [0, 3, 3, 5, 6]}  # the third of four is empty
ITERATIONS = 6
PENALTY = Tikhonov(1e-3)
Sums = tuple[np.ndarray, np.ndarray]  # in double and in single precision
NO_SINGLE = np.zeros(0, np.float32)
NOTHING = (np.zeros(0), NO_SINGLE)


class Exchange:
    """Parts in threads of one process: each hands in its nodes, one of them adds up, and all have the sum."""

    def __init__(self, parts: int) -> None:
        self._nodes: list[Any] = []
        self._lock = threading.Lock()
        self._total = NOTHING
        self._met = threading.Barrier(parts, action=self._add)
        self._read = threading.Barrier(parts)
        self.sums = 0

    def _add(self) -> None:
        self._total, self._nodes = _core.root_of(self._nodes, SHARDS), []
        self.sums += 1

    def add_up(self, nodes: list[Any]) -> Sums:
        with self._lock:
            self._nodes += nodes
        self._met.wait(60)
        total = self._total
        self._read.wait(60)
        return total

    def abort(self) -> None:
        self._met.abort()
        self._read.abort()


class Sample:
    """All rows, and what is made of some of them."""

    def __init__(
        self, loss: str, dtype: str, time_steps: str = "free", weighted: bool = True, layers: int = 3, **network: Any
    ) -> None:
        rng = np.random.default_rng(0)
        self.net = Network(2, layers, n_outputs=2, time_steps=time_steps, dtype=dtype, **network)
        self.objective = Objective(loss, penalties=PENALTY)
        self.X = rng.normal(size=(ROWS, 2)).astype(dtype)
        self.y: Any = (self.X[:, 0] > self.X[:, 1]).astype(np.int64)
        if LOSSES[loss].targets == "numbers":
            self.y = np.abs(rng.normal(size=(ROWS, 2))).astype(dtype)
        self.weights = rng.uniform(0.5, 1.5, ROWS).astype(dtype) if weighted else None

    def part(self, first: int, end: int) -> tuple[Any, ...]:
        rows = slice(min(first * SHARD, ROWS), min(end * SHARD, ROWS))
        weights = None if self.weights is None else self.weights[rows]
        return self.X[rows], self.y[rows], weights

    def training(self, evaluator: _core.Evaluator, method: Any) -> _core.Training:
        net = self.net
        vector = net.init(random_state=1).to_vector()
        simplex = net.time_steps == "simplex"
        core = method._core_method(3)
        settings = [], simplex, [], 0.0, 0.0, 0.0, self.objective._core_objective
        return _core.make_training(net._core_network, evaluator, vector, core, *settings)

    def evaluator(self, cuts: list[int], part: int, add_up: Any) -> _core.Evaluator:
        X, y, weights = self.part(cuts[part], cuts[part + 1])
        first = min(cuts[part] * SHARD, ROWS)
        core = self.objective._core_objective
        return _core.shards_evaluator(self.net._core_network, X, y, weights, core, first, ROWS, add_up)

    def in_memory(self) -> _core.Evaluator:
        core = self.objective._core_objective
        return _core.samples_evaluator(self.net._core_network, self.X, self.y, self.weights, core)


def outcome(sample: Sample, evaluator: _core.Evaluator, method: Any) -> tuple[bytes, ...]:
    """The bits of a short training, of its records but the time, and of the score at its end."""
    training = sample.training(evaluator, method)
    training.start()
    rows = np.empty((ITERATIONS, 5))
    first = training.record[:2]
    while training.iterations < ITERATIONS and training.status == "running":
        training.run(rows[training.iterations :], 60.0)
    assessed = training.assess(evaluator, True)
    records = rows[: training.iterations, :4]
    return training.controls().tobytes(), records.tobytes(), np.array(first).tobytes(), np.array(assessed).tobytes()


def in_parts(sample: Sample, parts: int, method: Any) -> tuple[list[tuple[bytes, ...]], Exchange]:
    """Return the result of every rank, each in a separate thread."""
    cuts, exchange = PARTITIONS[parts], Exchange(parts)

    def work(part: int) -> tuple[bytes, ...]:
        try:
            return outcome(sample, sample.evaluator(cuts, part, exchange.add_up), method)
        except BaseException:
            exchange.abort()
            raise

    with ThreadPoolExecutor(parts) as pool:
        return list(pool.map(work, range(parts))), exchange


@pytest.mark.parametrize("optimiser", METHODS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_number_of_parts_changes_no_bit_of_a_training(optimiser: str, dtype: str) -> None:
    sample = Sample("cross_entropy", dtype)
    actual = {parts: in_parts(sample, parts, METHODS[optimiser]) for parts in PARTITIONS}
    in_memory = outcome(sample, sample.in_memory(), METHODS[optimiser])
    for parts, (outcomes, exchange) in actual.items():
        assert outcomes == [in_memory] * parts
        assert exchange.sums == actual[1][1].sums > ITERATIONS


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_loss_adds_up(loss: str, weighted: bool) -> None:
    sample = Sample(loss, "float64", weighted=weighted)
    in_memory = outcome(sample, sample.in_memory(), Backtracking())
    assert in_parts(sample, 3, Backtracking())[0] == [in_memory] * 3


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("network", [{"augment": 94}, {"field": "antisymmetric"}])
def test_wide_states_and_other_fields_add_up(dtype: str, network: dict[str, Any]) -> None:
    sample, method = Sample("cross_entropy", dtype, layers=1, **network), GradientDescent(0.1)
    in_memory = outcome(sample, sample.in_memory(), method)
    assert in_parts(sample, 2, method)[0] == [in_memory] * 2


def test_steps_on_the_simplex_add_up() -> None:
    sample = Sample("cross_entropy", "float64", "simplex")
    in_memory = outcome(sample, sample.in_memory(), LBFGS())
    assert in_parts(sample, 2, LBFGS())[0] == [in_memory] * 2


def test_many_samples_have_the_sums_of_their_shards() -> None:
    """In extended precision, which on some machines is double."""
    sample = Sample("cross_entropy", "float64", weighted=False)
    u, objective = sample.net.init(random_state=1), Objective("cross_entropy", reduction="sum")
    value, gradient = sample.net.value_and_grad(u, sample.X, sample.y, objective)
    shards = [
        sample.net.value_and_grad(u, sample.X[first : first + SHARD], sample.y[first : first + SHARD], objective)
        for first in range(0, ROWS, SHARD)
    ]
    assert value == pytest.approx(float(sum(np.longdouble(v) for v, _ in shards)), rel=1e-15)
    total = np.sum([g.to_vector() for _, g in shards], axis=0, dtype=np.longdouble).astype(float)
    np.testing.assert_allclose(gradient.to_vector(), total, rtol=0, atol=1e-14 * np.abs(total).max())


def test_train_takes_samples_in_memory() -> None:
    sample = Sample("cross_entropy", "float64")
    result = ocdl.train(
        sample.net,
        sample.net.init(random_state=1),
        sample.X,
        sample.y,
        objective=sample.objective,
        sample_weight=sample.weights,
        max_iter=ITERATIONS,
        tol=0.0,
    )
    assert result.controls.to_vector().tobytes() == outcome(sample, sample.in_memory(), Backtracking())[0]


def test_the_scores_are_those_of_all_rows() -> None:
    for loss in LOSSES:
        sample = Sample(loss, "float64")
        cuts, exchange = PARTITIONS[2], Exchange(2)

        def assess(part: int, sample: Any = sample, cuts: Any = cuts, exchange: Any = exchange) -> Any:
            evaluator = sample.evaluator(cuts, part, exchange.add_up)
            return sample.training(evaluator, Backtracking()).assess(evaluator, True)

        with ThreadPoolExecutor(2) as pool:
            actual = list(pool.map(assess, range(2)))
        in_memory = sample.in_memory()
        expected = sample.training(in_memory, Backtracking()).assess(in_memory, True)
        assert actual == [expected] * 2
        u = sample.net.init(random_state=1)
        assert actual[0][0] == sample.net.value(u, sample.X, sample.y, sample.objective, sample_weight=sample.weights)


# ---- the tree ----


def root(leaves: np.ndarray) -> np.ndarray:
    """As the tree is defined, a level at a time."""
    level = leaves
    while len(level) > 1:
        above = level[::2].copy()
        above[: len(level) // 2] += level[1::2]
        level = above
    return np.asarray(level[0])


def test_the_root_does_not_depend_on_the_order_of_additions() -> None:
    """Any cut into neighbouring leaves, added up to finished nodes or not, in any order."""
    rng = np.random.default_rng(0)
    for count in (1, 2, 3, 7, 16, 37):
        wide = rng.normal(size=(count, 3))
        single = wide.astype(np.float32)
        nodes = [(0, k, wide[k], single[k]) for k in range(count)]
        for _ in range(3):
            actual = _core.root_of([nodes[k] for k in rng.permutation(count)], count)
            assert [sums.dtype for sums in actual] == [np.float64, np.float32]
            assert np.array_equal(actual[0], root(wide))
            assert np.array_equal(actual[1], root(single))
    joined = [(1, 0, wide[0] + wide[1], single[0] + single[1]), *nodes[2:]]
    assert np.array_equal(np.concatenate(_core.root_of(joined, 37)), np.concatenate(_core.root_of(nodes, 37)))


@pytest.mark.parametrize("missing", range(5))
def test_a_tree_that_lacks_a_leaf_is_an_error(missing: int) -> None:
    nodes = [(0, k, np.ones(2), NO_SINGLE) for k in range(5) if k != missing]
    with pytest.raises(ValueError, match="the nodes do not make up the tree"):
        _core.root_of(nodes, 5)


def test_nodes_of_different_lengths_are_an_error() -> None:
    for other in ((0, 1, np.ones(3), NO_SINGLE), (0, 1, np.ones(2), np.ones(1, np.float32))):
        with pytest.raises(ValueError, match="the nodes do not make up the tree"):
            _core.root_of([(0, 0, np.ones(2), NO_SINGLE), other], 2)


def test_a_part_holds_whole_shards() -> None:
    sample = Sample("cross_entropy", "float64")
    core, objective = sample.net._core_network, sample.objective._core_objective
    for first, end in ((1, SHARD), (0, SHARD - 1), (SHARD, 2 * SHARD + 1)):
        X, y = sample.X[first:end], sample.y[first:end]
        with pytest.raises(ValueError, match="a rank holds whole shards"):
            _core.shards_evaluator(core, X, y, None, objective, first, ROWS, lambda nodes: NOTHING)


def test_an_error_while_adding_up_arrives_unchanged() -> None:
    """The error is raised on the rank on which it happens; no rank continues with half a sum."""
    sample, error = Sample("cross_entropy", "float64"), KeyError("the network is down")
    calls: list[int] = []

    def add_up(nodes: list[Any]) -> Sums:
        calls.append(len(nodes))
        if len(calls) == 5:
            raise error
        return _core.root_of(nodes, SHARDS)

    training = sample.training(sample.evaluator([0, 6], 0, add_up), Backtracking())
    training.start()
    with pytest.raises(KeyError) as caught:
        training.run(np.empty((50, 5)), 60.0)
    assert caught.value is error
    before = training.controls()
    training.run(np.empty((1, 5)), 60.0)  # and it can continue from the last complete iterate
    assert not np.array_equal(before, training.controls())
