"""A flow as one function of arrays, and its pull-back: what every library that differentiates around it asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.model.controls import Controls, Part
from ocdl.network import Network

RETURNS = ("outputs", "state", "trajectory")


@dataclass(frozen=True)
class Bridge:
    """The function (parts of the controls, x) -> outputs, final states or trajectory, for x with any axes.

    Attributes
    ----------
    net : Network
    returns : {"outputs", "state", "trajectory"}
        Results of shape (..., outputs), (..., dim) or (layers + 1, ..., dim) for x of shape (..., features).
    """

    net: Network
    returns: str

    def __post_init__(self) -> None:
        if not isinstance(self.net, Network):
            raise TypeError(f"net must be a Network, got {type(self.net).__name__}")
        object.__setattr__(self, "returns", validation.choice(self.returns, "returns", RETURNS))

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the controls that the result depends on: states do not know how they are read."""
        return tuple(part for part in self.net.parts if self.returns == "outputs" or part.role != "readout")

    def shape(self, x: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the result for x of this shape, if that fits."""
        if not x or x[-1] != self.net.n_features:
            raise ValueError(f"x must have shape (..., {self.net.n_features}), (..., features), got {tuple(x)}")
        if self.returns == "outputs":
            return (*x[:-1], self.net.n_outputs)
        layers = (self.net.n_layers + 1,) if self.returns == "trajectory" else ()
        return (*layers, *x[:-1], self.net.dim)

    def forward(self, parts: Sequence[FloatArray], x: FloatArray) -> FloatArray:
        """Return the result for these parts, in the order of `parts`."""
        shape = self.shape(x.shape)
        if not x.size:
            return np.zeros(shape, self.net.dtype)
        u, rows = self.controls(parts), x.reshape(-1, self.net.n_features)
        if self.returns == "outputs":
            result = self.net.predict(u, rows)
        elif self.returns == "state":
            result = self.net.final_state(u, rows)
        else:
            result = self.net.forward(u, rows).states
        return result.reshape(shape)

    def pull_back(
        self, parts: Sequence[FloatArray], x: FloatArray, slopes: FloatArray
    ) -> tuple[FloatArray, list[FloatArray]]:
        """Return the gradient of <slopes, result> by x, and that by each of the parts."""
        if not x.size:
            return np.zeros_like(x), [np.zeros(part.shape, self.net.dtype) for part in self.parts]
        rows = x.reshape(-1, self.net.n_features)
        layers = (self.net.n_layers + 1,) if self.returns == "trajectory" else ()
        flat = slopes.reshape(*layers, len(rows), slopes.shape[-1])
        of_what = "output_slopes" if self.returns == "outputs" else "state_slopes"
        g = self.net.pull_back(self.controls(parts), rows, **{of_what: flat})
        assert g.X is not None
        return g.X.reshape(x.shape), [getattr(g, part.name) for part in self.parts]

    def controls(self, parts: Sequence[FloatArray]) -> Controls:
        """Return controls with these parts; what the result does not depend on is 0."""
        vector = np.zeros(self.net.n_controls, self.net.dtype)
        for place, values in zip(self._places, parts, strict=True):
            vector[place] = values.reshape(-1)
        return Controls(self.net._layout, vector)

    @cached_property
    def _places(self) -> tuple[slice, ...]:
        return tuple(self.net._layout.places[part.name][0] for part in self.parts)
