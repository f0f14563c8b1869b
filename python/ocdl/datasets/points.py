"""Points of the plane in two classes that no line separates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.base import validation
from ocdl.base.randomness import RandomSource, random_source

__all__ = ["make_donut1d", "make_donut2d", "make_spiral", "make_squares"]

Points = NDArray[np.float64]
Labels = NDArray[np.int64]


def make_donut1d(n_samples: int = 500, *, noise: float = 0.1, random_state: Any = None) -> tuple[Points, Labels]:
    """Return points of a line: those of class 1 around the middle, those of class 0 on both sides of it.

    Points are drawn from 100 equispaced ones of [-1, 1] x {0}, by their distance r from 0. A third of them, rounded
    up, has label 1 and weight exp(-r^2 / 0.02); the others have label 0 and weight exp(-(r - 1/2)^2 / 0.02).

    Parameters
    ----------
    n_samples : int
        Number m of points, at least 2.
    noise : float
        Standard deviation of the normal noise that is added to both coordinates after labelling.
    random_state : None, int, numpy Generator or RandomState
        The seed or the source of the random numbers. One seed gives the same points and labels under any `noise`.

    Returns
    -------
    X : ndarray of shape (m, 2), float64
        The points, in random order.
    y : ndarray of shape (m,), int64
        Their labels 0 and 1.

    Raises
    ------
    TypeError, ValueError
        If `n_samples` is no whole number from 2 on, `noise` negative or not finite, or `random_state` no source of
        random numbers.

    Examples
    --------
    >>> from ocdl.datasets import make_donut1d
    >>> X, y = make_donut1d(random_state=0)
    >>> X.shape, int(y.sum())
    ((500, 2), 167)
    """
    line = np.linspace(-1, 1, 100)
    return _draw_donut(np.column_stack([line, np.zeros_like(line)]), 3, n_samples, noise, random_state)


def make_donut2d(n_samples: int = 1000, *, noise: float = 0.1, random_state: Any = None) -> tuple[Points, Labels]:
    """Return points of a disc, class 1, and of a ring around it, class 0.

    Points are drawn from a grid of 100 x 100 on [-1, 1]^2, by their distance r from 0. Half of them, rounded up, has
    label 1 and weight exp(-r^2 / 0.02); the others have label 0 and weight exp(-(r - 1/2)^2 / 0.02).

    Parameters
    ----------
    n_samples : int
        Number m of points, at least 2.
    noise : float
        Standard deviation of the normal noise that is added to both coordinates after labelling.
    random_state : None, int, numpy Generator or RandomState
        As for `make_donut1d`.

    Returns
    -------
    X, y : ndarray
        As of `make_donut1d`.

    Raises
    ------
    TypeError, ValueError
        If `n_samples` is no whole number from 2 on, `noise` negative or not finite, or `random_state` no source of
        random numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from ocdl.datasets import make_donut2d
    >>> X, y = make_donut2d(random_state=0)
    >>> radius = np.linalg.norm(X, axis=1)
    >>> [round(float(radius[y == label].mean()), 1) for label in (0, 1)]
    [0.5, 0.2]
    """
    line = np.linspace(-1, 1, 100)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    return _draw_donut(grid, 2, n_samples, noise, random_state)


def make_squares(n_samples: int = 1000, *, noise: float = 0.1, random_state: Any = None) -> tuple[Points, Labels]:
    """Return points of a chess board of four squares: class 1 where x1 x2 > 0, class 0 elsewhere.

    Points are uniform on [-0.7, 0.7]^2, so the classes are of equal size only on average, and a handful of points may
    all have the same label.

    Parameters
    ----------
    n_samples : int
        Number m of points, at least 2.
    noise : float
        Standard deviation of the normal noise that is added to both coordinates after labelling.
    random_state : None, int, numpy Generator or RandomState
        As for `make_donut1d`.

    Returns
    -------
    X, y : ndarray
        As of `make_donut1d`.

    Raises
    ------
    TypeError, ValueError
        If `n_samples` is no whole number from 2 on, `noise` negative or not finite, or `random_state` no source of
        random numbers.

    Examples
    --------
    >>> from ocdl.datasets import make_squares
    >>> X, y = make_squares(noise=0, random_state=0)
    >>> bool(((X[:, 0] * X[:, 1] > 0) == y).all())
    True
    """
    m, noise, rng = _validate(n_samples, noise, random_state)
    points = rng.uniform(-0.7, 0.7, (m, 2))
    return _shuffle_with_noise(points, points[:, 0] * points[:, 1] > 0, noise, rng)


def make_spiral(n_samples: int = 1000, *, noise: float = 0.05, random_state: Any = None) -> tuple[Points, Labels]:
    """Return points of two spirals, one the other turned by half a circle.

    Class 0 has radius 0.1 to 1 while its angle goes from 0.1 to 2 pi, both equispaced; class 1 is the same with pi
    added to the angle, and has the odd point of an odd number.

    Parameters
    ----------
    n_samples : int
        Number m of points, at least 2.
    noise : float
        Standard deviation of the normal noise that is added to both coordinates after labelling.
    random_state : None, int, numpy Generator or RandomState
        As for `make_donut1d`.

    Returns
    -------
    X, y : ndarray
        As of `make_donut1d`.

    Raises
    ------
    TypeError, ValueError
        If `n_samples` is no whole number from 2 on, `noise` negative or not finite, or `random_state` no source of
        random numbers.

    Examples
    --------
    >>> from ocdl.datasets import make_spiral
    >>> X, y = make_spiral(2, noise=0, random_state=0)
    >>> bool(abs(X.sum(axis=0)).max() < 1e-15)  # the innermost points lie opposite each other
    True
    """
    m, noise, rng = _validate(n_samples, noise, random_state)
    ones = _divide_rounding_up(m, 2)
    points = np.concatenate([_spiral(0.0, m - ones), _spiral(np.pi, ones)])
    return _shuffle_with_noise(points, np.arange(m) >= m - ones, noise, rng)


GENERATORS: dict[str, Callable[..., tuple[Points, Labels]]] = {  # all functions above
    name.removeprefix("make_"): make for name, make in list(globals().items()) if name in __all__
}


def _spiral(first_angle: float, size: int) -> Points:
    radius, angle = np.linspace(0.1, 1, size), first_angle + np.linspace(0.1, 2 * np.pi, size)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def _draw_donut(
    candidates: Points, ratio: int, n_samples: int, noise: float, random_state: Any
) -> tuple[Points, Labels]:
    """Draw candidates by their distance from 0; one in `ratio` is of the inner class."""
    m, noise, rng = _validate(n_samples, noise, random_state)
    r = np.linalg.norm(candidates, axis=1)
    ones = _divide_rounding_up(m, ratio)
    drawn = [
        rng.choice(len(candidates), size, p=weight / weight.sum())
        for size, weight in ((m - ones, np.exp(-((r - 0.5) ** 2) / 0.02)), (ones, np.exp(-(r**2) / 0.02)))
    ]
    return _shuffle_with_noise(candidates[np.concatenate(drawn)], np.arange(m) >= m - ones, noise, rng)


def _shuffle_with_noise(
    points: Points, in_class_1: NDArray[np.bool_], noise: float, rng: RandomSource
) -> tuple[Points, Labels]:
    order = rng.permutation(len(points))
    with np.errstate(over="ignore"):
        noisy = points[order] + noise * rng.standard_normal(points.shape)
    if not np.isfinite(noisy).all():
        raise ValueError(f"noise must be small enough for points within the range of float64, got {noise}")
    return noisy, in_class_1[order].astype(np.int64)


def _validate(n_samples: int, noise: float, random_state: Any) -> tuple[int, float, RandomSource]:
    m = validation.integer(n_samples, "n_samples", minimum=2)  # one for each class
    return m, validation.not_negative(noise, "noise"), random_source(random_state)


def _divide_rounding_up(m: int, ratio: int) -> int:
    return -(-m // ratio)
