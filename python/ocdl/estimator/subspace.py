"""The subspace of the inputs in which the flow moves: some of the columns, or principal components.

A row x becomes C x. The rows of C, the components, are orthonormal; those that are unit vectors are columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ocdl.base.validation import FloatArray, LabelArray
from ocdl.model.controls import Controls
from ocdl.model.objective import Objective
from ocdl.network import Network

if TYPE_CHECKING:
    from ocdl.estimator.samples import Samples

MIN_VARIANCE = 1e-10  # relative to the largest: a component with less is rounding


def project(rows: FloatArray, components: FloatArray | None) -> FloatArray:
    """Return the rows in the subspace; None is the whole space."""
    return rows if components is None else np.ascontiguousarray(rows @ components.T)


def choose_components(n_components: int | str | None, samples: Samples) -> FloatArray | None:
    """Return the components that the parameter asks for; with "auto" those that hold all rows if these are few."""
    rows, columns = samples.X.shape
    if isinstance(n_components, int):
        return principal_components(samples.X, n_components)
    return principal_components(samples.X, rows) if n_components is not None and rows < columns else None


def principal_components(rows: FloatArray, count: int) -> FloatArray:
    """Return at most `count` orthonormal directions with the largest sums of squares of the rows, (count, columns).

    There are fewer if fewer hold all rows. The largest entry of each is positive.
    """
    if len(rows) < rows.shape[1]:
        _, sizes, directions = np.linalg.svd(rows, full_matrices=False)
        squares = sizes**2
    else:
        squares, vectors = np.linalg.eigh(rows.T @ rows)
        squares, directions = squares[::-1], vectors.T[::-1]
    count = max(1, min(count, int(np.sum(squares > MIN_VARIANCE * squares[0]))))
    largest = np.abs(directions[:count]).argmax(axis=1)
    signs = np.where(directions[np.arange(count), largest] < 0, -1.0, 1.0)
    return np.ascontiguousarray(signs[:, None] * directions[:count])


def unit_components(columns: LabelArray, n_features: int) -> FloatArray:
    """Return the components that are these columns."""
    components = np.zeros((len(columns), n_features))
    components[np.arange(len(columns)), columns] = 1.0
    return components


def rises_without_columns(
    network: Network, u: Controls, samples: Samples, loss: Any, components: FloatArray | None
) -> FloatArray:
    """Return by how much the mean loss rises if a column is permuted, for each column.

    The samples lie in the subspace. A hash has sorted them, so moving a column down by a row is a random permutation.
    """
    X, y, weights, _ = samples
    objective = Objective(loss)
    plain = network.value(u, X, y, objective, sample_weight=weights)
    directions = np.eye(X.shape[1]) if components is None else components.T
    rises = np.zeros(len(directions))
    for j, direction in enumerate(directions):
        if direction.any():
            column = X @ direction
            moved = X + np.outer(np.roll(column, 1) - column, direction)
            rises[j] = network.value(u, moved, y, objective, sample_weight=weights) - plain
    return rises
