"""The subspace of the inputs in which the flow moves: some of the columns, or principal components.

A row x becomes C x. The rows of C, the components, are orthonormal; those that are unit vectors are columns.
"""

from __future__ import annotations

import numpy as np

from ocdl.base.validation import FloatArray, LabelArray

MIN_VARIANCE = 1e-10  # relative to the largest: a component with less is rounding


def project(rows: FloatArray, components: FloatArray | None) -> FloatArray:
    """Return the rows in the subspace; None is the whole space."""
    return rows if components is None else np.ascontiguousarray(rows @ components.T)


def choose_components(n_components: int | str | None, rows: FloatArray) -> FloatArray | None:
    """Return the components that the parameter asks for; with "auto" those that hold all rows if these are few."""
    if isinstance(n_components, int):
        return principal_components(rows, n_components)
    are_few = n_components is not None and len(rows) < rows.shape[1]
    return principal_components(rows, len(rows)) if are_few else None


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
