"""Properties of the activations, as the core states them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ocdl import _core
from ocdl.base.validation import FloatArray

__all__ = ["ACTIVATIONS", "ALIASES", "Activation"]

ALIASES = {"logistic": "sigmoid", "linear": "identity", "sine": "sin"}


class Activation(NamedTuple):
    """An activation sigma.

    Its largest slope, whether it is nonsmooth at 0, the |z| beyond which it is flat, and whether it increases.
    """

    name: str
    steepest: float
    nonsmooth: bool
    saturation_threshold: float
    increases: bool

    def derivatives(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return sigma, sigma' and sigma'' in float64; where sigma is nonsmooth, the slope on the left."""
        return _core.activation_derivatives(self.name, np.ascontiguousarray(z, np.float64))


ACTIVATIONS = {name: Activation(name, *properties) for name, properties in _core.activations().items()}
