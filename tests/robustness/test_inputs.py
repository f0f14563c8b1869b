"""What may be passed as an array: anything that holds real numbers, and no copy where none is needed."""

from __future__ import annotations

import tracemalloc
from array import array
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from problems import Problem, random_problem

from ocdl import Network
from ocdl.base import validation

PROBLEM = random_problem(Network(3, 4, tableau="kutta3", time_steps="free"), samples=40)
# Multiples of 1/64: exact in every dtype that appears below.
X = np.round(PROBLEM.X * 64) / 64
Y, WEIGHTS = PROBLEM.y, np.round(PROBLEM.sample_weight * 64) / 64

Disguise = Callable[[np.ndarray], Any]


def read_only(values: np.ndarray) -> np.ndarray:
    twin = values.copy()
    twin.flags.writeable = False
    return twin


def strided(values: np.ndarray) -> np.ndarray:
    """Every second row of a larger array, and in two dimensions every second column."""
    room = np.full(tuple(2 * size for size in values.shape), -7, dtype=values.dtype)
    room[(slice(None, None, 2),) * values.ndim] = values
    return room[(slice(None, None, 2),) * values.ndim]


def unaligned(values: np.ndarray) -> np.ndarray:
    room = np.zeros(values.nbytes + 1, dtype=np.uint8)
    twin = room[1:].view(values.dtype).reshape(values.shape)
    twin[...] = values
    assert not twin.flags.aligned
    return twin


class HasArray:
    """Something with the protocol, as tensors of other libraries have it."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.values


DISGUISES: dict[str, Disguise] = {
    "C order": np.copy,
    "Fortran order": np.asfortranarray,
    "list": np.ndarray.tolist,
    "tuple of rows": tuple,
    "read-only": read_only,
    "strided": strided,
    "reversed": lambda values: values[::-1].copy()[::-1],
    "byte-swapped": lambda values: values.astype(values.dtype.newbyteorder()),
    "unaligned": unaligned,
    "masked, nothing masked": np.ma.masked_array,
    "objects": lambda values: values.astype(object),
    "fractions": lambda values: np.vectorize(Fraction, otypes=[object])(values),
    "decimals": lambda values: np.vectorize(Decimal, otypes=[object])(values),
    "subclass": lambda values: values.view(type("Own", (np.ndarray,), {})),
    "array protocol": HasArray,
}
FLOATS = ("float16", "float32", "float64", "longdouble")
ONE_DIMENSION: dict[str, Disguise] = {
    "pandas series": pd.Series,
    "pandas series with an index": lambda values: pd.Series(values, index=range(len(values), 0, -1)),
}
TWO_DIMENSIONS: dict[str, Disguise] = {
    **{name: (lambda values, name=name: values.astype(name)) for name in FLOATS},
    "pandas frame": lambda values: pd.DataFrame(values, columns=["a", "b", "c"]),
    "pandas frame with nullable columns": lambda values: pd.DataFrame(values).convert_dtypes(),
    "transposed": lambda values: values.T.copy().T,
    "matrix": lambda values: values.view(np.matrix),
}
LABELS: dict[str, Disguise] = {
    name: (lambda values, name=name: values.astype(name))
    for name in ("int8", "uint8", "int32", "uint64", "bool", *FLOATS)
} | {"pandas categories": lambda values: pd.Series(values).astype("category")}


def bits(X: Any = X, y: Any = Y, sample_weight: Any = WEIGHTS, problem: Problem = PROBLEM) -> bytes:
    """Everything that the network computes from the data."""
    net, u = problem.net, problem.u
    J, g = net.value_and_grad(u, X, y, sample_weight=sample_weight, input_grad=True)
    t = net.forward(u, X)
    results = (t.states, t.outputs, net.predict(u, X), g.to_vector(), g.X, net.tangent(u, X, dX=X))
    return b"".join(np.asarray(result).tobytes() for result in (*results, J, net.value(u, X, y), net.adjoint(u, X, y)))


EXPECTED = bits()


def test_the_bits_tell_inputs_apart() -> None:
    changed = X.copy()
    changed[3, 1] += 2**-40
    assert bits(changed) != EXPECTED
    assert bits(y=1 - Y) != EXPECTED
    assert bits(sample_weight=None) != EXPECTED


@pytest.mark.parametrize("disguise", (DISGUISES | TWO_DIMENSIONS).values(), ids=(DISGUISES | TWO_DIMENSIONS).keys())
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_data_of_any_kind_give_the_same_bits(disguise: Disguise) -> None:
    assert bits(disguise(X)) == EXPECTED


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16", "bool"])
def test_whole_numbers_are_data_too(dtype: str) -> None:
    whole = np.random.default_rng(0).integers(0, 2, X.shape)
    assert bits(whole.astype(dtype)) == bits(whole.astype(float))


ALL_LABELS = DISGUISES | ONE_DIMENSION | LABELS


@pytest.mark.parametrize("disguise", ALL_LABELS.values(), ids=ALL_LABELS.keys())
def test_labels_of_any_kind_give_the_same_bits(disguise: Disguise) -> None:
    assert bits(y=disguise(Y)) == EXPECTED


ALL_WEIGHTS = DISGUISES | ONE_DIMENSION | {name: TWO_DIMENSIONS[name] for name in FLOATS}


@pytest.mark.parametrize("disguise", ALL_WEIGHTS.values(), ids=ALL_WEIGHTS.keys())
def test_weights_of_any_kind_give_the_same_bits(disguise: Disguise) -> None:
    assert bits(sample_weight=disguise(WEIGHTS)) == EXPECTED


@pytest.mark.parametrize("disguise", DISGUISES.values(), ids=DISGUISES.keys())
def test_controls_of_any_kind_give_the_same_bits(disguise: Disguise) -> None:
    net, u = PROBLEM.net, PROBLEM.u
    rounded = net.from_vector(np.round(u.to_vector() * 64) / 64)
    parts = {part: getattr(rounded, part) for part in ("K", "b", "h", "W", "mu")}
    again = net.controls(**{part: disguise(values) for part, values in parts.items()})
    np.testing.assert_array_equal(again.to_vector(), rounded.to_vector())
    np.testing.assert_array_equal(net.from_vector(disguise(rounded.to_vector())).to_vector(), rounded.to_vector())


def test_buffers_of_the_standard_library() -> None:
    assert bits(y=array("q", Y), sample_weight=memoryview(WEIGHTS)) == EXPECTED


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_maps(tmp_path: Path, order: str) -> None:
    path = tmp_path / "data.npy"
    np.save(path, np.asarray(X, order=order))
    mapped = np.load(path, mmap_mode="r")
    assert isinstance(mapped, np.memmap)
    assert bits(mapped) == EXPECTED


def test_a_float32_network_rounds_data_once() -> None:
    problem = random_problem(Network(3, 4, dtype="float32"), samples=10)
    wide = np.random.default_rng(0).normal(size=(10, 3))
    narrow = wide.astype("float32")
    arguments = {"y": problem.y, "sample_weight": None, "problem": problem}
    assert bits(wide, **arguments) == bits(narrow, **arguments)


# ---- numbers ----


@pytest.mark.parametrize("accepted", [np.int32(3), np.uint8(3), 3])
def test_whole_numbers_of_any_kind_are_accepted(accepted: Any) -> None:
    assert Network(accepted, accepted, n_outputs=accepted, augment=accepted) == Network(3, 3, n_outputs=3, augment=3)


@pytest.mark.parametrize("accepted", [2, np.float32(2), Fraction(2), np.int8(2)])
def test_real_numbers_of_any_kind_are_accepted(accepted: Any) -> None:
    assert Network(2, 3, horizon=accepted).horizon == 2.0


# ---- no copies ----


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_arrays_in_c_order_of_the_networks_type_are_taken_as_they_are(dtype: str) -> None:
    data = np.zeros((5, 3), dtype)
    assert validation.samples(data, 3, np.dtype(dtype)) is data
    weights = np.ones(5, dtype)
    assert validation.weights(weights, 5, np.dtype(dtype)) is weights
    labels = np.zeros(5, np.int64)
    assert validation.labels(labels, 5, 1) is labels


def test_views_subclasses_and_memory_maps_are_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "data.npy"
    np.save(path, X)
    for data in (X[5:20], read_only(X), X.view(type("Own", (np.ndarray,), {})), np.load(path, mmap_mode="r")):
        assert np.shares_memory(validation.samples(data, 3, np.dtype(float)), data)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_unaligned_arrays_are_copied(dtype: str) -> None:
    data, weights, labels = X.astype(dtype), WEIGHTS.astype(dtype), Y.astype(np.int64)
    for given, taken in [
        (data, validation.samples(unaligned(data), 3, np.dtype(dtype))),
        (weights, validation.weights(unaligned(weights), len(weights), np.dtype(dtype))),
        (labels, validation.labels(unaligned(labels), len(labels), 1)),
    ]:
        assert taken is not None
        assert taken.flags.aligned
        np.testing.assert_array_equal(taken, given)


LARGE = random_problem(Network(4, 1), samples=100_000)


@pytest.mark.parametrize(
    ("method", "results"),
    [
        ("value", 0),
        ("predict", 1),
        ("value_and_grad", 0),
        ("forward", 1 + 2 * 4),
        ("adjoint", 2 * 4),
        ("tangent", 2 * 4),
    ],
)
def test_an_evaluation_allocates_its_results_and_no_more(method: str, results: int) -> None:
    """`results`: numbers per sample. tracemalloc counts every array that NumPy makes; X itself has 4 per sample."""
    arguments = LARGE.data if method in {"value", "value_and_grad", "adjoint"} else LARGE.data[:2]
    call = getattr(LARGE.net, method)
    call(*arguments)
    tracemalloc.start()
    kept = call(*arguments)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept is not None
    assert peak <= 8 * len(LARGE.X) * results + 50_000


def test_other_layouts_are_converted_once() -> None:
    data = np.asfortranarray(LARGE.X)
    LARGE.net.value(LARGE.u, data, LARGE.y)
    tracemalloc.start()
    LARGE.net.value(LARGE.u, data, LARGE.y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert data.nbytes <= peak <= data.nbytes + 50_000
