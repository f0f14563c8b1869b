"""The data sets: shares of the classes, distributions, labels that precede the noise, and random order.

Seeds are fixed. A statistic may be off by five of its standard deviations, as one correct draw in a million is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ocdl.datasets import make_donut1d, make_donut2d, make_spiral, make_squares

Maker = Callable[..., tuple[NDArray[np.float64], NDArray[np.int64]]]
DEFAULTS: dict[Maker, tuple[int, float]] = {
    make_donut1d: (500, 0.1),
    make_donut2d: (1000, 0.1),
    make_squares: (1000, 0.1),
    make_spiral: (1000, 0.05),
}
SHARES: dict[Maker, int] = {make_donut1d: 3, make_donut2d: 2, make_spiral: 2}  # one point in so many has label 1
AXIS = np.linspace(-1, 1, 100)
GRID_RADIUS = np.hypot(AXIS[:, None], AXIS)
DONUT_WEIGHTS = {0: lambda r: np.exp(-((r - 0.5) ** 2) / 0.02), 1: lambda r: np.exp(-(r**2) / 0.02)}

every_set = pytest.mark.parametrize("make", DEFAULTS)


def deviation(counts: NDArray[Any], probabilities: NDArray[Any]) -> float:
    """Pearson's chi-square minus its mean, in standard deviations; cells that expect fewer than 5 are one cell."""
    counts, expected = counts.ravel(), counts.sum() * probabilities.ravel()
    rare = expected < 5
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], max(expected[rare].sum(), 1e-300))
    freedom = np.count_nonzero(~rare) - (not rare.any())
    return float((((observed - expected) ** 2 / expected).sum() - freedom) / math.sqrt(2 * freedom))


def on_axis(coordinates: NDArray[np.float64]) -> NDArray[np.intp]:
    """Places in AXIS, where the coordinates must be found."""
    places = np.searchsorted((AXIS[1:] + AXIS[:-1]) / 2, coordinates)
    np.testing.assert_array_equal(AXIS[places], coordinates)
    return places


# ---- shapes, shares, defaults ----


@every_set
@pytest.mark.parametrize("m", [2, 3, 4, 5, 99, 100, 1001])
def test_shapes_types_and_fractions(make: Maker, m: int) -> None:
    X, y = make(m, random_state=m)
    assert X.shape == (m, 2)
    assert y.shape == (m,)
    assert (X.dtype, y.dtype) == (np.float64, np.int64)
    assert X.flags.c_contiguous
    assert np.isfinite(X).all()
    assert set(y.tolist()) <= {0, 1}
    if make in SHARES:
        assert y.sum() == math.ceil(m / SHARES[make])


@every_set
def test_defaults(make: Maker) -> None:
    size, noise = DEFAULTS[make]
    for default, explicit in zip(make(random_state=3), make(size, noise=noise, random_state=3), strict=True):
        np.testing.assert_array_equal(default, explicit)


# ---- distributions, without noise ----


@pytest.mark.parametrize("label", [0, 1])
def test_donut1d_follows_its_weights(label: int) -> None:
    X, y = make_donut1d(600_000, noise=0, random_state=1)
    assert (X[:, 1] == 0).all()
    counts = np.bincount(on_axis(X[y == label, 0]), minlength=len(AXIS))
    weights = DONUT_WEIGHTS[label](np.abs(AXIS))
    assert abs(deviation(counts, weights / weights.sum())) < 5


@pytest.mark.parametrize("label", [0, 1])
def test_donut2d_follows_its_weights(label: int) -> None:
    X, y = make_donut2d(200_000, noise=0, random_state=1)
    places = tuple(on_axis(coordinate) for coordinate in X[y == label].T)
    counts = np.zeros_like(GRID_RADIUS)
    np.add.at(counts, places, 1)
    weights = DONUT_WEIGHTS[label](GRID_RADIUS)
    assert abs(deviation(counts, weights / weights.sum())) < 5


def test_donut2d_is_a_disc_and_a_ring() -> None:
    """In the continuous limit the disc has mean radius 0.1 sqrt(pi/2), the ring (1/4 + 1/100) / (1/2).

    Either radius varies by less than 0.1; grid and edge shift neither mean by more than 1e-5.
    """
    X, y = make_donut2d(20_000, noise=0, random_state=2)
    radius, tolerance = np.linalg.norm(X, axis=1), 5 * 0.1 / math.sqrt(10_000)
    assert radius[y == 1].mean() == pytest.approx(0.1 * math.sqrt(math.pi / 2), abs=tolerance)
    assert radius[y == 0].mean() == pytest.approx(0.52, abs=tolerance)
    assert X.mean(axis=0) == pytest.approx([0, 0], abs=5 * 0.4 / math.sqrt(20_000))


def test_squares_are_uniform_and_labelled_by_quadrant() -> None:
    """A coordinate comes closer to an end than the share 20/m of its range, but in one draw of exp(20)."""
    m = 40_000
    X, y = make_squares(m, noise=0, random_state=1)
    for ends in (-X.min(axis=0), X.max(axis=0)):
        assert (ends <= 0.7).all()
        assert (ends > 0.7 - 1.4 * 20 / m).all()
    np.testing.assert_array_equal(y, X[:, 0] * X[:, 1] > 0)
    counts, _, _ = np.histogram2d(*X.T, bins=14, range=[[-0.7, 0.7]] * 2)
    assert abs(deviation(counts, np.full(counts.shape, 1 / counts.size))) < 5


@pytest.mark.parametrize("m", [2, 3, 500, 1001])
def test_spirals_are_equispaced_on_their_curves(m: int) -> None:
    X, y = make_spiral(m, noise=0, random_state=1)
    for label, first_angle in ((0, 0.0), (1, math.pi)):
        points = X[y == label]
        radius = np.linalg.norm(points, axis=1)
        np.testing.assert_allclose(np.sort(radius), np.linspace(0.1, 1, len(points)), rtol=1e-14)
        angle = first_angle + 0.1 + (radius - 0.1) / 0.9 * (2 * math.pi - 0.1)
        curve = radius * np.stack([np.cos(angle), np.sin(angle)])
        np.testing.assert_allclose(points, curve.T, rtol=0, atol=1e-14)


# ---- noise ----


@every_set
@pytest.mark.parametrize("noise", [0.01, 3.0])
def test_noise_is_standard_normal_times_the_factor_and_comes_after_the_labels(make: Maker, noise: float) -> None:
    """The variances of z, z1 z2, z^2 and z^4 are 1, 1, 2 and 96."""
    m = 20_000
    clean, labels = make(m, noise=0, random_state=5)
    X, y = make(m, noise=noise, random_state=5)
    np.testing.assert_array_equal(y, labels)
    z = (X - clean) / noise
    assert z.mean(axis=0) == pytest.approx([0, 0], abs=5 / math.sqrt(m))
    assert (z[:, 0] * z[:, 1]).mean() == pytest.approx(0, abs=5 / math.sqrt(m))
    assert (z**2).mean(axis=0) == pytest.approx([1, 1], abs=5 * math.sqrt(2 / m))
    assert (z**4).mean(axis=0) == pytest.approx([3, 3], abs=5 * math.sqrt(96 / m))


# ---- order ----


@every_set
def test_rows_are_shuffled(make: Maker) -> None:
    """Wald and Wolfowitz: n0 zeros and n1 ones in random order change 2 n0 n1 / m times, give or take its root."""
    m = 10_000
    _, y = make(m, random_state=1)
    mean = 2 * y.sum() * (m - y.sum()) / m
    assert np.count_nonzero(np.diff(y)) == pytest.approx(mean, abs=5 * math.sqrt(mean))


def test_points_of_one_spiral_are_shuffled() -> None:
    X, y = make_spiral(10_000, noise=0, random_state=1)
    radius = np.linalg.norm(X[y == 0], axis=1)
    assert abs(np.corrcoef(radius, np.arange(len(radius)))[0, 1]) < 5 / math.sqrt(len(radius))


# ---- the source of the random numbers ----


@every_set
@pytest.mark.parametrize("source", [int, np.int64, np.random.default_rng, np.random.RandomState])
def test_equal_seeds_give_equal_results(make: Maker, source: Callable[[int], Any]) -> None:
    X, y = make(random_state=source(7))
    again_X, again_y = make(random_state=source(7))
    np.testing.assert_array_equal(X, again_X)
    np.testing.assert_array_equal(y, again_y)


@every_set
def test_a_seed_is_the_generator_of_that_seed(make: Maker) -> None:
    np.testing.assert_array_equal(make(random_state=7)[0], make(random_state=np.random.default_rng(7))[0])


@every_set
@pytest.mark.parametrize("source", [np.random.default_rng(7), np.random.RandomState(7), None])
def test_successive_draws_differ(make: Maker, source: Any) -> None:
    (X, y), (other_X, other_y) = make(random_state=source), make(random_state=source)
    assert (X != other_X).all()
    assert (y != other_y).any()


@every_set
def test_the_global_random_state_is_unchanged(make: Maker) -> None:
    before = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    make(random_state=None)
    after = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    assert before["pos"] == after["pos"]
    np.testing.assert_array_equal(before["key"], after["key"])


# ---- errors ----


@every_set
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_samples": 1}, ValueError, "n_samples must be at least 2, got 1"),
        ({"n_samples": 0}, ValueError, "n_samples must be at least 2, got 0"),
        ({"n_samples": -5}, ValueError, "n_samples must be at least 2, got -5"),
        ({"n_samples": 10.0}, TypeError, "n_samples must be a whole number"),
        ({"n_samples": True}, TypeError, "n_samples must be a whole number"),
        ({"noise": -0.1}, ValueError, "noise must not be negative, got -0.1"),
        ({"noise": math.nan}, ValueError, "noise must be finite, got nan"),
        ({"noise": "0.1"}, TypeError, "noise must be a real number"),
        ({"noise": None}, TypeError, "noise must be a real number"),
        ({"random_state": "seed"}, TypeError, "random_state must be None, a whole number, a numpy Generator"),
        ({"random_state": -1}, ValueError, "random_state must be None, a whole number, a numpy Generator"),
    ],
)
def test_wrong_arguments(make: Maker, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(**arguments)
