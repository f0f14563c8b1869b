"""Projection onto the simplex of time steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ocdl import _core
from ocdl.base import validation
from ocdl.base.validation import FloatArray

__all__ = ["project_simplex"]


def project_simplex(v: ArrayLike, total: float = 1.0) -> FloatArray:
    """Return the point of {x >= 0, sum x = total} that is closest to `v`.

    Entries outside become exactly 0; a point that is on the simplex up to roundoff is returned as it is.

    Parameters
    ----------
    v : array_like of shape (n,)
        Any finite numbers.
    total : float
        The sum, positive.

    Returns
    -------
    ndarray of shape (n,)
        In float32 if `v` is, else in float64.

    Raises
    ------
    TypeError, ValueError
        If `v` is no vector of finite numbers, or `total` is not positive.

    Examples
    --------
    >>> import ocdl
    >>> ocdl.project_simplex([0.5, 1.0, -2.0]).tolist()
    [0.25, 0.75, 0.0]
    """
    single = getattr(v, "dtype", None) == np.float32
    array = validation.real_array(v, "v", np.dtype(np.float32 if single else np.float64))
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"v must have one dimension and at least one entry, got shape {array.shape}")
    return _core.project_simplex(array, validation.positive(total, "total"))
