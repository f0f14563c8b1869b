"""The units in which a model is fitted: states, inputs and time divided by scales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Units:
    """States are ``shift + scale * z``, inputs ``input_shift + input_scale * x``, times ``time * tau``.

    A polynomial has shifts of 0: a shift makes a sparse polynomial dense.
    """

    shift: Floats
    scale: Floats
    input_shift: Floats
    input_scale: Floats
    time: float

    def to_scaled(self, y: Floats) -> Floats:
        """Return states without units."""
        scaled: Floats = (y - self.shift) / self.scale
        return scaled

    def to_data(self, z: Floats) -> Floats:
        """Return states in the units of the data."""
        return self.shift + self.scale * z

    def inputs_to_scaled(self, x: Floats) -> Floats:
        """Return inputs without units."""
        scaled: Floats = (x - self.input_shift) / self.input_scale
        return scaled

    def to_dict(self) -> dict[str, Floats]:
        """Return the arrays that make it, for a file."""
        return {
            "shift": self.shift,
            "scale": self.scale,
            "input_shift": self.input_shift,
            "input_scale": self.input_scale,
            "time": np.array([self.time]),
        }


def column_scales(columns: Floats, *, shifts: bool) -> tuple[Floats, Floats]:
    """Return shift and scale of each column, NaN left out; without `shifts` the shift is 0."""
    shift = np.nanmean(columns, axis=0) if shifts else np.zeros(columns.shape[1])
    scale = np.sqrt(np.nanmean((columns - shift) ** 2, axis=0))
    return shift, np.where(scale > 0, scale, 1.0)
