"""The projection onto the simplex: the defining properties, for any finite input."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from ocdl import project_simplex

EPS = float(np.finfo(float).eps)

totals = st.floats(1e-100, 1e100)


def vectors(largest: float, dtype: type = np.float64, max_size: int = 40) -> st.SearchStrategy[NDArray[Any]]:
    width = 8 * np.dtype(dtype).itemsize
    numbers = st.floats(-largest, largest, width=width) | st.sampled_from([0.0, 0.25, 1.0, -1.0])  # ties
    return arrays(dtype, st.integers(1, max_size), elements=numbers)


@settings(max_examples=300)
@given(vectors(1.7e308), totals)
def test_projections_are_on_the_simplex_and_idempotent(v: NDArray[np.float64], total: float) -> None:
    x = project_simplex(v, total)
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(total, rel=(1 + len(v)) * EPS, abs=0)
    np.testing.assert_array_equal(project_simplex(x, total), x)


@settings(max_examples=300)
@given(vectors(1e3, np.float32))
def test_float32(v: NDArray[np.float32]) -> None:
    x = project_simplex(v)
    eps = float(np.finfo(np.float32).eps)
    assert x.dtype == np.float32
    assert (x >= 0).all()
    assert x.sum(dtype=float) == pytest.approx(1, rel=len(v) * eps)
    np.testing.assert_array_equal(project_simplex(x), x)
    np.testing.assert_allclose(x, project_simplex(v.astype(float)), rtol=0, atol=len(v) * eps)


@settings(max_examples=300)
@given(vectors(1e3), st.floats(1e-3, 1e3))
def test_projections_satisfy_the_optimality_conditions(v: NDArray[np.float64], total: float) -> None:
    """x = max(v - theta, 0) for one theta: v - x is the same where x > 0, and v is not above theta elsewhere."""
    x = project_simplex(v, total)
    theta = (v - x)[x > 0]
    slack = 1e-13 * (np.abs(v).max() + total)
    assert np.ptp(theta) <= slack
    assert (v[x == 0] <= theta.min() + slack).all()


@given(vectors(5.0, max_size=5))
def test_no_face_of_the_simplex_holds_a_closer_point(v: NDArray[np.float64]) -> None:
    """Against brute force: the closest point of every face, of which there are finitely many."""
    candidates = []
    for size in range(1, len(v) + 1):
        for support in map(list, combinations(range(len(v)), size)):
            point = np.zeros_like(v)
            point[support] = v[support] + (1 - v[support].sum()) / size
            if (point >= 0).all():
                candidates.append(np.linalg.norm(point - v))
    assert np.linalg.norm(project_simplex(v) - v) == pytest.approx(min(candidates), rel=1e-12, abs=1e-12)


@given(vectors(1e3), st.randoms(use_true_random=False))
def test_projection_commutes_with_permutations(v: NDArray[np.float64], random: Any) -> None:
    order = list(range(len(v)))
    random.shuffle(order)
    np.testing.assert_allclose(project_simplex(v[order]), project_simplex(v)[order], rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 20, 10_000, 100_000])
@pytest.mark.parametrize("spread", [1e-12, 1.0, 1e12])
def test_many_entries(size: int, spread: float) -> None:
    v = spread * np.random.default_rng(size).normal(size=size)
    x = project_simplex(v, 2.0)
    assert x.sum() == pytest.approx(2.0, rel=(1 + size) * EPS)
    np.testing.assert_array_equal(project_simplex(x, 2.0), x)


def test_examples() -> None:
    assert project_simplex([3.0]).tolist() == [1.0]
    assert project_simplex([5.0, 5.0, 5.0, 5.0], total=2).tolist() == [0.5] * 4
    assert project_simplex([-1e300, 1e300, -1e300]).tolist() == [0.0, 1.0, 0.0]
    assert project_simplex([0, 0, 0, 1]).tolist() == [0.0, 0.0, 0.0, 1.0]
    assert project_simplex(np.array([0.5, 1.0, -2.0], dtype=">f8")).tolist() == [0.25, 0.75, 0.0]
    assert project_simplex(np.array([0.5, 9, 1.0, 9, -2.0])[::2]).tolist() == [0.25, 0.75, 0.0]


def test_projection_does_not_change_its_argument() -> None:
    v = np.array([0.5, 1.0, -2.0])
    v.flags.writeable = False
    project_simplex(v)[...] = 7
    assert v.tolist() == [0.5, 1.0, -2.0]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([],), ValueError, r"v must have one dimension and at least one entry, got shape \(0,\)"),
        (([[1.0]],), ValueError, r"v must have one dimension and at least one entry, got shape \(1, 1\)"),
        ((1.0,), ValueError, r"v must have one dimension and at least one entry, got shape \(\)"),
        (([1.0, np.nan],), ValueError, r"v\[1\] is nan; all of v must be finite"),
        (([np.inf, 0.0],), ValueError, r"v\[0\] is inf; all of v must be finite"),
        (([1j],), TypeError, "v must hold real numbers"),
        ((["1"],), TypeError, "v must hold real numbers"),
        (([1.0], 0), ValueError, "total must be positive, got 0.0"),
        (([1.0], -1), ValueError, "total must be positive, got -1.0"),
        (([1.0], np.nan), ValueError, "total must be finite, got nan"),
        (([1.0], "1"), TypeError, "total must be a real number"),
    ],
)
def test_wrong_arguments(arguments: tuple, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        project_simplex(*arguments)
