"""Networks whose layers expand no distance: what they are made of, and how large their matrices may be.

A gradient field -K^T sigma(K y + b) with an increasing sigma of largest slope L satisfies
``<f(y) - f(z), y - z> <= -|f(y) - f(z)|^2 / (L |K|^2)``. So a step of size h >= 0 of a method with contractivity radius
r expands no distance where ``h L |K|^2 <= 2 r``: the singular values of K are at most ``sqrt(2 r / (h L))``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ocdl.base.validation import FloatArray
from ocdl.model.activations import ACTIVATIONS
from ocdl.model.tableau import Tableau

__all__ = ["FIELD", "clip_singular_values", "require_nonexpansive", "singular_value_bounds"]

FIELD = "gradient"
FLOAT64 = np.dtype(np.float64)


def require_nonexpansive(field: str, time_steps: str, activation: str, tableau: Tableau) -> None:
    """Raise unless networks of this kind can be kept from expanding distances."""
    if field != FIELD:
        raise ValueError(f"nonexpansive=True needs field={FIELD!r}, got field={field!r}")
    if time_steps != "fixed":
        raise ValueError(f"nonexpansive=True needs time_steps='fixed', got time_steps={time_steps!r}")
    if not ACTIVATIONS[activation].increases:
        increasing = ", ".join(repr(name) for name, activation in ACTIVATIONS.items() if activation.increases)
        raise ValueError(
            f"nonexpansive=True needs an activation that increases, one of {increasing}, got {activation!r}"
        )
    if tableau.contractivity_radius == 0:
        raise ValueError(
            f"nonexpansive=True needs a tableau with positive weights, as 'euler' or 'kutta4', got {tableau!r}, "
            "whose contractivity_radius is 0"
        )


def singular_value_bounds(tableau: Tableau, activation: str, layer_sets: Sequence[int], h: FloatArray) -> FloatArray:
    """Return for each set of controls the largest singular value that K may have with these steps."""
    steps = h.astype(np.float64)
    if steps.min() < 0:
        j = int(steps.argmin())
        raise ValueError(f"h[{j}] is {steps[j]}; the steps of a network with nonexpansive=True must not be negative")
    longest = np.zeros(layer_sets[-1] + 1)
    np.maximum.at(longest, np.array(layer_sets), steps)
    with np.errstate(divide="ignore"):
        bounds: FloatArray = np.sqrt(2 * tableau.contractivity_radius / (ACTIVATIONS[activation].steepest * longest))
    return bounds


def clip_singular_values(K: FloatArray, bounds: FloatArray, dtype: np.dtype[Any] = FLOAT64) -> FloatArray:
    """Return the nearest matrices, of each set and stage, whose singular values are within the bounds of their set.

    They stay there when they are rounded to `dtype`.
    """
    if np.all(np.isinf(bounds)):
        return K
    left, values, right = np.linalg.svd(K.astype(np.float64), full_matrices=False)
    room = 0.0 if dtype == FLOAT64 else float(np.finfo(dtype).eps) * math.sqrt(values.shape[-1])
    limits = (1 - room) * bounds.reshape(-1, *(1,) * (values.ndim - 1))
    clipped: FloatArray = (left * np.minimum(values, limits)[..., None, :]) @ right
    is_within = (values[..., 0] <= limits[..., 0] * (1 + 4 * math.ulp(1.0)))[..., None, None]
    return np.where(is_within, K, clipped).astype(K.dtype)
