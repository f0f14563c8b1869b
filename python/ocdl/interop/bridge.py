"""A flow as a function of arrays with its vector-Jacobian product, for automatic differentiation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from ocdl import _core
from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.interop import nonfinite
from ocdl.model.controls import Part
from ocdl.model.inputs import refuse_inputs
from ocdl.network import Network

RETURNS = ("outputs", "state", "trajectory")
ON_NONFINITE = ("nan", "raise")


@dataclass(frozen=True)
class Bridge:
    """The function (vector of controls, x) -> outputs, final states or trajectory, for x with any leading axes.

    Attributes
    ----------
    net : Network
    returns : {"outputs", "state", "trajectory"}
        Results of shape (..., outputs), (..., dim) or (layers + 1, ..., dim) for x of shape (..., features).
    on_nonfinite : {"nan", "raise"}
        Whether a row that is not finite becomes NaN, or raises an error.
    core : ocdl._core.Network
        The compiled network.
    of_outputs : bool
        Whether the result is the outputs.
    parts : tuple of Part
        The parts of the controls that the result depends on; states do not depend on the readout.
    slices : tuple
        The slice of the vector for each part, and its shape.
    steps : int
        The index of the time steps in `parts`.
    n_unused : int
        The number of unused entries at the end of the vector: a readout that the result does not depend on.
    """

    net: Network
    returns: str = "outputs"
    on_nonfinite: str = "nan"
    core: _core.Network = field(init=False, repr=False, compare=False)
    of_outputs: bool = field(init=False, repr=False, compare=False)
    parts: tuple[Part, ...] = field(init=False, repr=False, compare=False)
    slices: tuple[tuple[slice, tuple[int, ...]], ...] = field(init=False, repr=False, compare=False)
    steps: int = field(init=False, repr=False, compare=False)
    n_unused: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        net = self.net
        if not isinstance(net, Network):
            raise TypeError(f"net must be a Network, got {type(net).__name__}")
        refuse_inputs(net, "a layer of PyTorch or JAX")
        returns = validation.choice(self.returns, "returns", RETURNS)
        parts = tuple(part for part in net.parts if returns == "outputs" or part.role != "readout")
        derived = {
            "returns": returns,
            "on_nonfinite": validation.choice(self.on_nonfinite, "on_nonfinite", ON_NONFINITE),
            "core": net._core_network,
            "of_outputs": returns == "outputs",
            "parts": parts,
            "slices": tuple(net._layout.slices[part.name] for part in parts),
            "steps": [part.role for part in parts].index("steps"),
            "n_unused": net.n_controls - sum(part.size for part in parts),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[type[Self], tuple[Network, str, str]]:
        return type(self), (self.net, self.returns, self.on_nonfinite)

    @cached_property
    def with_step_gradient(self) -> Self:
        """The same function, with the gradient by fixed time steps."""
        if self.net.time_steps != "fixed" or not self.net.residual:
            return self
        return self._replace(time_steps="free")

    def astype(self, dtype: str) -> Self:
        """Return the same function in this precision."""
        return self if self.net.dtype == dtype else self._replace(dtype=dtype)

    def shape(self, x: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the result for x of this shape; refuse a shape that does not fit."""
        if not x or x[-1] != self.net.n_features:
            raise ValueError(f"x must have shape (..., {self.net.n_features}), (..., features), got {tuple(x)}")
        if self.returns == "outputs":
            return (*x[:-1], self.net.n_outputs)
        layers = (self.net.n_layers + 1,) if self.returns == "trajectory" else ()
        return (*layers, *x[:-1], self.net.dim)

    def pack(self, parts: Sequence[FloatArray]) -> FloatArray:
        """Return the vector of controls with these parts, in the order of `parts`."""
        return np.concatenate([*parts, np.zeros(self.n_unused, self.net.dtype)], axis=None)

    def forward(self, vector: FloatArray, x: FloatArray) -> FloatArray:
        """Return the result for these controls."""
        result = None if self.returns == "trajectory" else self._sweep(vector, x)
        if result is not None:
            return result
        shape = self.shape(x.shape)
        if not x.size:
            return np.zeros(shape, self.net.dtype)
        rows = self._rows(x)
        result = self._sweep(vector, rows)
        if result is None:
            if self.on_nonfinite == "raise":
                nonfinite.raise_nonfinite(self.net, vector, x)
            keep = ~nonfinite.find_nonfinite_rows(self.net, vector, rows)
            result = np.full((*shape[: -x.ndim], len(rows), shape[-1]), np.nan, self.net.dtype)
            if keep.any():
                result[..., keep, :] = self._sweep(vector, rows[keep])
        return result.reshape(shape)

    def vjp(self, vector: FloatArray, x: FloatArray, cotangent: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient of <cotangent, result> by x, and that by the vector of controls."""
        result = self._adjoint_sweep(vector, x, cotangent)
        if result is not None:
            return result
        if not x.size:
            return np.zeros_like(x), np.zeros_like(vector)
        rows = self._rows(x)
        flat = np.ascontiguousarray(cotangent).reshape(*cotangent.shape[: -x.ndim], len(rows), cotangent.shape[-1])
        result = self._adjoint_sweep(vector, rows, flat)
        if result is None:
            if self.on_nonfinite == "raise":
                nonfinite.raise_nonfinite(self.net, vector, x, cotangent)
            result = self._adjoint_sweep_of_finite_rows(vector, rows, flat)
        by_rows, by_vector = result
        return by_rows.reshape(x.shape), by_vector

    def _replace(self, **arguments: Any) -> Self:
        return replace(self, net=type(self.net)(**(self.net._arguments() | arguments)))

    def _rows(self, x: FloatArray) -> FloatArray:
        return np.ascontiguousarray(x).reshape(-1, self.net.n_features)

    def _sweep(self, vector: FloatArray, rows: FloatArray) -> FloatArray | None:
        """Return the result for rows; None if a number is not finite, or the rows are not two-dimensional.

        A trajectory needs two-dimensional rows.
        """
        if self.of_outputs:
            return self.core.predict(vector, rows)
        if self.returns == "state":
            return self.core.final_state(vector, rows)
        self.net._require_memory_for_states(len(rows))
        states, _ = self.core.forward(vector, rows)
        return None if _core.first_non_finite(vector) >= 0 or _core.first_non_finite(states) >= 0 else states

    def _adjoint_sweep(
        self, vector: FloatArray, rows: FloatArray, cotangent: FloatArray, require_finite: bool = True
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return the gradients by rows and by the vector; None as `_sweep`, or if a gradient is not finite."""
        of_outputs, of_states = (cotangent, None) if self.of_outputs else (None, cotangent)
        result = self.core.vjp(vector, rows, of_outputs, of_states, False, require_finite)
        return None if result is None else (result[1], result[0])

    def _adjoint_sweep_of_finite_rows(
        self, vector: FloatArray, rows: FloatArray, cotangent: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradients, with NaN for all other rows and for the vector, which sums over all rows."""
        keep = ~nonfinite.find_nonfinite_rows(self.net, vector, rows) & nonfinite.all_finite(cotangent)
        by_rows, by_vector = np.full_like(rows, np.nan), np.full_like(vector, np.nan)
        if keep.any():
            kept = np.ascontiguousarray(cotangent[..., keep, :])
            result = self._adjoint_sweep(vector, rows[keep], kept, require_finite=False)
            assert result is not None
            by_rows[keep] = result[0]
            if keep.all():  # the flow is finite, the gradient is not
                by_vector = result[1]
        return by_rows, by_vector
