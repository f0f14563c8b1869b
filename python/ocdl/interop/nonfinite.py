"""Find rows of x that are not finite or leave the finite range, and raise errors that name them."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ocdl import _core
from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.model import overflow
from ocdl.model.controls import Controls
from ocdl.network import Network


def find_nonfinite_rows(net: Network, vector: FloatArray, rows: FloatArray) -> NDArray[np.bool_]:
    """Return a mask of rows that are not finite, in x, final state or outputs; all if the controls are not."""
    if _core.first_non_finite(vector) >= 0:
        return np.ones(len(rows), bool)
    finite = all_finite(rows)
    for first in range(0, len(rows), overflow.ROWS):
        chunk = slice(first, first + overflow.ROWS)
        states, outputs = net._core_network.forward(vector, rows[chunk])
        finite[chunk] &= all_finite(states[-1]) & all_finite(outputs)
    return ~finite


def all_finite(rows: FloatArray) -> NDArray[np.bool_]:
    """Return a mask of the rows of (..., rows, numbers) that are finite in all leading axes."""
    axes = (*range(rows.ndim - 2), rows.ndim - 1)
    finite: NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(rows), axis=axes)
    return finite


def raise_nonfinite(net: Network, vector: FloatArray, x: FloatArray, cotangent: FloatArray | None = None) -> NoReturn:
    """Raise a ValueError for an argument that is not finite, else a FloatingPointError for a row that overflows."""
    for part, values in Controls(net._layout, vector).parts().items():
        validation.real_array(values, f"controls.{part}", net.dtype)
    validation.real_array(x, "x", net.dtype)
    if cotangent is not None:
        validation.real_array(cotangent, "cotangent", net.dtype)
    rows = np.ascontiguousarray(x).reshape(-1, net.n_features)
    bad = np.flatnonzero(find_nonfinite_rows(net, vector, rows))
    if not len(bad):
        raise FloatingPointError(
            f"the gradient overflows {net.dtype} although the flow is finite; scale the cotangent or the controls down"
        )
    first = int(bad[0])
    index = ", ".join(str(int(i)) for i in np.unravel_index(first, x.shape[:-1]))
    row = f"x[{index}]" if index else "x"
    raise FloatingPointError(
        f"{row}: {overflow.describe_overflow(net._core_network, vector, rows[first : first + 1], first)}"
    )
