"""A training over several parts of the samples has the bits of one part, whoever holds which rows."""

from __future__ import annotations

import math
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


class Exchange:
    """Parts in threads of one process: each hands in its nodes, one of them adds up, and all have the sum."""

    def __init__(self, parts: int) -> None:
        self._nodes: list[Any] = []
        self._lock = threading.Lock()
        self._total = np.zeros(0)
        self._met = threading.Barrier(parts, action=self._add)
        self._read = threading.Barrier(parts)
        self.sums = 0

    def _add(self) -> None:
        self._total, self._nodes = _core.root_of(self._nodes, SHARDS), []
        self.sums += 1

    def add_up(self, nodes: list[Any]) -> np.ndarray:
        with self._lock:
            self._nodes += nodes
        self._met.wait(60)
        total = self._total.copy()
        self._read.wait(60)
        return total

    def abort(self) -> None:
        self._met.abort()
        self._read.abort()


class Sample:
    """All rows, and what is made of some of them."""

    def __init__(self, loss: str, dtype: str, time_steps: str = "free", weighted: bool = True) -> None:
        rng = np.random.default_rng(0)
        self.net = Network(2, 3, n_outputs=2, time_steps=time_steps, dtype=dtype)
        self.objective = Objective(loss, regulariser=PENALTY)
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
        return _core.make_training(net._core_network, evaluator, vector, core, [], simplex, 0.0, 0.0, math.nan, 0.0)

    def evaluator(self, cuts: list[int], part: int, add_up: Any) -> _core.Evaluator:
        X, y, weights = self.part(cuts[part], cuts[part + 1])
        first = min(cuts[part] * SHARD, ROWS)
        core = self.objective._core_objective
        return _core.shards_evaluator(self.net._core_network, X, y, weights, core, first, ROWS, add_up)


def outcome(sample: Sample, evaluator: _core.Evaluator, method: Any) -> tuple[bytes, ...]:
    """The bits of a short training, of its records but the time, and of the score at its end."""
    training, stop = sample.training(evaluator, method), _core.StopFlag()
    assert training.start(stop)
    rows = np.empty((ITERATIONS, 5))
    first = training.record[:2]
    while training.iterations < ITERATIONS and training.status == "running":
        training.run(rows[training.iterations :], 60.0, stop)
    assessed = training.assess(evaluator, True, stop)
    records = rows[: training.iterations, :4]
    return training.controls().tobytes(), records.tobytes(), np.array(first).tobytes(), np.array(assessed).tobytes()


def in_parts(sample: Sample, parts: int, method: Any) -> tuple[list[tuple[bytes, ...]], Exchange]:
    """What every part has, each in a thread of its own."""
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
    found = {parts: in_parts(sample, parts, METHODS[optimiser]) for parts in PARTITIONS}
    alone = found[1][0][0]
    for parts, (outcomes, exchange) in found.items():
        assert outcomes == [alone] * parts
        assert exchange.sums == found[1][1].sums > ITERATIONS


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_loss_adds_up(loss: str, weighted: bool) -> None:
    sample = Sample(loss, "float64", weighted=weighted)
    outcomes = {parts: in_parts(sample, parts, Backtracking())[0] for parts in (1, 3)}
    assert outcomes[3] == outcomes[1] * 3


def test_steps_on_the_simplex_add_up() -> None:
    sample = Sample("cross_entropy", "float64", "simplex")
    outcomes = {parts: in_parts(sample, parts, LBFGS())[0] for parts in (1, 2)}
    assert outcomes[2] == outcomes[1] * 2


@pytest.mark.parametrize("loss", LOSSES)
def test_parts_train_as_samples_in_memory_do(loss: str) -> None:
    """To roundoff: the order of the sums is another."""
    sample = Sample(loss, "float64")
    memory = _core.samples_evaluator(
        sample.net._core_network, sample.X, sample.y, sample.weights, sample.objective._core_objective
    )
    whole = outcome(sample, memory, Backtracking())
    parts = in_parts(sample, 3, Backtracking())[0][0]
    for ours, theirs in zip(parts, whole, strict=True):
        np.testing.assert_allclose(np.frombuffer(ours), np.frombuffer(theirs), rtol=1e-10, atol=1e-13)


def test_samples_in_memory_are_what_train_takes() -> None:
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
    memory = _core.samples_evaluator(
        sample.net._core_network, sample.X, sample.y, sample.weights, sample.objective._core_objective
    )
    assert result.controls.to_vector().tobytes() == outcome(sample, memory, Backtracking())[0]


def test_the_scores_are_those_of_all_rows() -> None:
    for loss in LOSSES:
        sample = Sample(loss, "float64")
        cuts, exchange, stop = PARTITIONS[2], Exchange(2), _core.StopFlag()

        def assess(part: int, sample: Any = sample, cuts: Any = cuts, exchange: Any = exchange) -> Any:
            evaluator = sample.evaluator(cuts, part, exchange.add_up)
            return sample.training(evaluator, Backtracking()).assess(evaluator, True, _core.StopFlag())

        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(assess, range(2)))
        memory = _core.samples_evaluator(
            sample.net._core_network, sample.X, sample.y, sample.weights, sample.objective._core_objective
        )
        expected = sample.training(memory, Backtracking()).assess(memory, True, stop)
        assert found[0] == found[1]
        assert found[0] == pytest.approx(expected, rel=1e-12)
        value = sample.net.value(sample.net.init(random_state=1), sample.X, sample.y, sample.objective, sample.weights)
        assert found[0][0] == pytest.approx(value, rel=1e-12)


# ---- the tree ----


def test_the_root_does_not_depend_on_who_added_what() -> None:
    """Any cut into neighbouring leaves, added up to finished nodes or not, in any order."""
    rng = np.random.default_rng(0)
    for count in (1, 2, 3, 7, 16, 37):
        leaves = rng.normal(size=(count, 3))
        level = list(leaves)
        while len(level) > 1:
            level = [sum(level[i : i + 2][1:], level[i]) for i in range(0, len(level), 2)]
        nodes = [(0, k, leaf) for k, leaf in enumerate(leaves)]
        for _ in range(3):
            found = _core.root_of([nodes[k] for k in rng.permutation(count)], count)
            assert np.array_equal(found, level[0])
    joined = [(1, 0, leaves[0] + leaves[1]), *nodes[2:]]
    assert np.array_equal(_core.root_of(joined, 37), _core.root_of(nodes, 37))


@pytest.mark.parametrize("missing", range(5))
def test_a_tree_that_lacks_a_leaf_is_an_error(missing: int) -> None:
    nodes = [(0, k, np.ones(2)) for k in range(5) if k != missing]
    with pytest.raises(ValueError, match="the nodes do not make up the tree"):
        _core.root_of(nodes, 5)


def test_a_part_holds_whole_shards() -> None:
    sample = Sample("cross_entropy", "float64")
    core, objective = sample.net._core_network, sample.objective._core_objective
    for first, end in ((1, SHARD), (0, SHARD - 1), (SHARD, 2 * SHARD + 1)):
        X, y = sample.X[first:end], sample.y[first:end]
        with pytest.raises(ValueError, match="a part holds whole shards"):
            _core.shards_evaluator(core, X, y, None, objective, first, ROWS, lambda nodes: np.zeros(1))


def test_an_error_while_adding_up_arrives_unchanged() -> None:
    """The part that it happens to sees it; nobody trains on with half a sum."""
    sample, error = Sample("cross_entropy", "float64"), KeyError("the network is down")
    calls: list[int] = []

    def add_up(nodes: list[Any]) -> np.ndarray:
        calls.append(len(nodes))
        if len(calls) == 5:
            raise error
        return _core.root_of(nodes, SHARDS)

    training = sample.training(sample.evaluator([0, 6], 0, add_up), Backtracking())
    stop = _core.StopFlag()
    assert training.start(stop)
    with pytest.raises(KeyError) as caught:
        training.run(np.empty((50, 5)), 60.0, stop)
    assert caught.value is error
    before = training.controls()
    training.run(np.empty((1, 5)), 60.0, stop)  # and it can go on from the last complete iterate
    assert not np.array_equal(before, training.controls())
