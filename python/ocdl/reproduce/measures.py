"""Measures of properties of trained networks that the paper describes in words."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ocdl.base.validation import FloatArray
from ocdl.model.objective import predict_class
from ocdl.reproduce.runs import Data
from ocdl.reproduce.store import Outcome

NEIGHBOURS = 30
GRID = 100  # pixels along an axis
SMALLEST_REGION = 0.005  # of the window; smaller specks are not counted


def final_states(outcome: Outcome, X: FloatArray) -> FloatArray:
    """Return the samples at time T."""
    net, u = outcome.model
    return net.final_state(u, X)


def spread(outcome: Outcome, data: Data) -> float:
    """Return how far the samples are from the origin at time T, relative to the start: 95th percentiles."""
    at_end, at_start = (np.percentile(np.linalg.norm(Y, axis=1), 95) for Y in (final_states(outcome, data.X), data.X))
    return float(at_end / at_start)


def band_width(outcome: Outcome) -> float:
    """Return the width of the band at time T in which the probability is between 0.1 and 0.9: 2 log(9) / |W|."""
    _, u = outcome.model
    return 2 * math.log(9) / float(np.linalg.norm(u.W))


def thickness(Y: FloatArray) -> float:
    """Return how two-dimensional a cloud is locally: 0 for a string; evenly filled parts of the plane have about 0.8.

    The median over the points of the ratio of the principal axes of the nearest neighbours.
    """
    from scipy.spatial import cKDTree

    near = Y[cKDTree(Y).query(Y, NEIGHBOURS)[1]]
    near = near - near.mean(axis=1, keepdims=True)
    axes = np.linalg.svd(near, compute_uv=False)
    return float(np.median(axes[:, 1] / np.maximum(axes[:, 0], np.finfo(float).tiny)))


def regions(outcome: Outcome, data: Data) -> tuple[int, int]:
    """Return into how many connected regions the classifier divides the surroundings of the data, for both classes."""
    from scipy.ndimage import label

    net, u = outcome.model
    low, high = data.X.min(axis=0), data.X.max(axis=0)
    x, y = (np.linspace(a, b, GRID) for a, b in zip(low, high, strict=True))
    pixels = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    red = (predict_class(net.predict(u, pixels)) == 1).reshape(GRID, GRID)

    def count(mask: NDArray[np.bool_]) -> int:
        sizes = np.bincount(label(mask)[0].ravel())[1:]
        return int(np.sum(sizes >= SMALLEST_REGION * GRID**2))

    return count(~red), count(red)


def distance(one: Outcome, other: Outcome, data: Data) -> float:
    """Return how far two transformations are apart, relative to how far they move the points: root mean squares."""
    first, second = final_states(one, data.X), final_states(other, data.X)
    moved = 0.5 * (np.mean((first - data.X) ** 2) + np.mean((second - data.X) ** 2))
    return float(np.sqrt(np.mean((first - second) ** 2) / moved))
