"""Random controls that a training starts from."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ocdl.base.randomness import RandomSource
from ocdl.base.validation import FloatArray

__all__ = ["draw_field_parts"]


def draw_field_parts(
    rng: RandomSource,
    shapes: Mapping[str, tuple[int, ...]],
    starts: Mapping[str, tuple[str, float, float]],
    *,
    scaled: bool,
    orthogonal: bool,
) -> dict[str, FloatArray]:
    """Return the parts that do not start at 0, as the field states: their distributions, and sizes without and with
    scaling to the dimension; orthogonal matrices in the place of normal ones if that is asked for.
    """
    drawn: dict[str, FloatArray] = {}
    for name, (distribution, size, scaled_size) in starts.items():
        scale = scaled_size if scaled else size
        if distribution == "uniform":
            drawn[name] = rng.uniform(-scale, scale, shapes[name])
        elif distribution == "normal":
            drawn[name] = scale * rng.standard_normal(shapes[name])
            if orthogonal:
                rotations, triangular = np.linalg.qr(drawn[name])
                drawn[name] = rotations * np.sign(np.diagonal(triangular, axis1=-2, axis2=-1))[..., None, :]
    return drawn
