"""A learned system as a function of arrays with its vector-Jacobian product, for automatic differentiation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.dynamics.plan import LearnedSystem
from ocdl.dynamics.series import simulation_times
from ocdl.dynamics.simulation import simulate, simulation_grid

FLOAT64 = np.dtype(np.float64)
Gradients = tuple[FloatArray, FloatArray, FloatArray | None]


@dataclass(frozen=True, eq=False)
class DynamicsBridge:
    """The function (numbers of the field, y0, times, inputs) -> states at the times.

    The numbers are a vector, those of `learned` without units; y0 has shape (samples, dim), inputs (samples, times,
    inputs), the result (samples, times, dim). A trajectory that leaves the finite range is NaN from there on; its
    gradient is NaN, and so is the one by the numbers, which is a sum over all samples.
    """

    learned: LearnedSystem

    @classmethod
    def from_model(cls, model: Any) -> DynamicsBridge:
        """Return the bridge of a fitted `ocdl.Dynamics`."""
        from ocdl.dynamics import Dynamics

        if not isinstance(model, Dynamics):
            raise TypeError(f"model must be a fitted Dynamics, got {validation.format_with_type(model)}")
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(model)
        if len(model.models_) > 1:
            raise ValueError(
                f"model must be a single model, n_models=1, got an ensemble of {len(model.models_)}: "
                "fit one to differentiate it"
            )
        return cls(model.models_[0])

    @property
    def dim(self) -> int:
        """The number of components of a state."""
        return self.learned.system.dim

    @property
    def n_inputs(self) -> int:
        """The number of inputs."""
        return self.learned.system.n_inputs

    @property
    def parts(self) -> dict[str, tuple[slice, tuple[int, ...]]]:
        """The slice of the vector that holds each part of the field's numbers, and its shape."""
        return self.learned.system.layout

    def check(self, y0: tuple[int, ...], times: ArrayLike, inputs: tuple[int, ...] | None) -> NDArray[np.float64]:
        """Return the times, and raise unless these shapes fit them: y0 (..., dim), inputs (..., times, inputs)."""
        clock = simulation_times(times)
        if not y0 or y0[-1] != self.dim:
            raise ValueError(f"y0 must have shape (..., {self.dim}), (..., components), got {y0}")
        if self.n_inputs == 0:
            if inputs is not None:
                raise ValueError("inputs must be left out: the model was fitted without any")
            return clock
        expected = (*y0[:-1], len(clock), self.n_inputs)
        if inputs is None:
            raise ValueError(f"inputs are missing: the model takes an array of shape {expected}")
        if inputs != expected:
            raise ValueError(f"inputs must have shape {expected}, (..., times, inputs), got {inputs}")
        return clock

    def forward(self, vector: FloatArray, y0: FloatArray, times: FloatArray, inputs: FloatArray | None) -> FloatArray:
        """Return the states at the times."""
        with warnings.catch_warnings():  # NaN says that a trajectory is lost
            warnings.simplefilter("ignore", RuntimeWarning)
            return simulate(replace(self.learned, theta=vector), y0, times, inputs)

    def vjp(
        self,
        vector: FloatArray,
        y0: FloatArray,
        times: FloatArray,
        inputs: FloatArray | None,
        cotangent: FloatArray,
    ) -> Gradients:
        """Return the gradients of <cotangent, states> by y0, by the vector and by the inputs."""
        states = self.forward(vector, y0, times, inputs)
        kept = np.isfinite(states).all(axis=(1, 2)) & np.isfinite(cotangent).all(axis=(1, 2))
        by_y0 = np.full(y0.shape, np.nan)
        by_inputs = None if inputs is None else np.full(inputs.shape, np.nan)
        by_vector = np.full(vector.shape, np.nan)
        if kept.any():
            some = None if inputs is None else inputs[kept]
            rows, total, values = self._vjp_of_finite(vector, y0[kept], times, some, cotangent[kept])
            by_y0[kept] = rows
            if by_inputs is not None and values is not None:
                by_inputs[kept] = values
            if kept.all():
                by_vector = total
        elif not len(y0):
            by_vector = np.zeros(vector.shape)
        return by_y0, by_vector, by_inputs

    def _vjp_of_finite(
        self,
        vector: FloatArray,
        y0: FloatArray,
        times: FloatArray,
        inputs: FloatArray | None,
        cotangent: FloatArray,
    ) -> Gradients:
        """Return the gradients; every number of the states and the cotangents is finite."""
        units, system = self.learned.units, self.learned.system
        if len(times) == 1:
            return cotangent[:, 0], np.zeros(vector.shape), None if inputs is None else np.zeros(inputs.shape)
        grid = simulation_grid(self.learned, times)
        net = system.network(grid.layers, grid.step)
        rows = units.to_scaled(y0)
        if inputs is not None:
            x = grid.input_matrix @ units.inputs_to_scaled(inputs)
            rows = np.concatenate([rows, x.reshape(len(rows), -1)], axis=1)
        of_states = np.zeros((grid.layers + 1, *y0.shape))
        of_times = np.moveaxis(cotangent * units.scale, 1, 0)
        np.add.at(of_states, grid.nodes, grid.weights[:, :, None, None] * of_times[:, None])
        controls = system.controls(net, vector)._vector
        result = net._core_network.vjp(controls, np.ascontiguousarray(rows), None, of_states, False, False)
        assert result is not None
        by_controls, by_rows = result[0], result[1]
        by_y0 = by_rows[:, : system.dim] / units.scale
        by_inputs = None
        if inputs is not None:
            by_grid = by_rows[:, system.dim :].reshape(len(rows), grid.layers + 1, -1)
            by_inputs = grid.input_matrix.T @ by_grid / units.input_scale
        return by_y0, by_controls[: len(vector)].copy(), by_inputs
