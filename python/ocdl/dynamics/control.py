"""Optimal inputs of a learned system, by the gradient through its flow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.base import validation
from ocdl.dynamics.plan import LearnedSystem
from ocdl.dynamics.simulation import simulation_grid

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OptimalInputs:
    """What `Dynamics.optimise_inputs` returns.

    Attributes
    ----------
    inputs : ndarray of shape (times, inputs)
    states : ndarray of shape (times, components)
        The trajectory with these inputs.
    cost : float
    n_iter : int
    converged : bool
    message : str
        How the optimisation ended, by SciPy.

    Examples
    --------
    >>> import numpy as np, ocdl
    >>> t = np.linspace(0, 4, 40)
    >>> x, y = np.sin(2 * t)[:, None], ((2 * np.exp(-t) - 2 * np.cos(2 * t) + np.sin(2 * t)) / 5)[:, None]
    >>> model = ocdl.Dynamics(field="polynomial", degree=1).fit(y, t, inputs=x)  # y' = x - y
    >>> class Energy:
    ...     def value_and_grad(self, states, inputs):
    ...         return 0.5 * np.sum(inputs**2), np.zeros_like(states), inputs
    >>> r = model.optimise_inputs([1.0], [0.0, 1.0, 2.0], Energy(), bounds=(0.5, 1))
    >>> isinstance(r, ocdl.OptimalInputs), r.inputs.ravel().tolist(), r.cost, r.states.shape
    (True, [0.5, 0.5, 0.5], 0.375, (3, 1))
    >>> r.converged, r.n_iter >= 0, isinstance(r.message, str)
    (True, True, True)
    """

    inputs: Floats
    states: Floats
    cost: float
    n_iter: int
    converged: bool
    message: str


@dataclass(frozen=True, eq=False)
class InputProblem:
    """The states at times as a function of the inputs at these times, for one initial state."""

    learned: LearnedSystem
    y0: Floats
    times: Floats

    def trajectory(self, inputs: Floats) -> tuple[Floats, Any]:
        """Return the states (k, dim) and what `gradient` needs of them."""
        learned, units = self.learned, self.learned.units
        grid = simulation_grid(learned, self.times)
        net = learned.system.network(grid.layers, grid.step)
        u = learned.system.controls(net, learned.theta)
        x = (grid.input_matrix @ units.inputs_to_scaled(inputs))[None]
        z = units.to_scaled(self.y0)[None]
        states = net.forward(u, z, inputs=x).states[:, 0]
        at_times = np.einsum("ki,kid->kd", grid.weights, states[grid.nodes])
        return units.to_data(at_times), (net, u, z, x, grid)

    def gradient(self, sweep: Any, state_gradient: Floats) -> Floats:
        """Return the gradient by the inputs of a function with this gradient by the states."""
        net, u, z, x, grid = sweep
        cotangents = np.zeros((grid.layers + 1, 1, len(self.y0)))
        scaled = state_gradient * self.learned.units.scale
        np.add.at(cotangents[:, 0], grid.nodes, grid.weights[:, :, None] * scaled[:, None, :])
        by_layers = net.vjp(u, z, state_cotangents=cotangents, inputs=x).inputs
        assert by_layers is not None
        gradient: Floats = grid.input_matrix.T @ by_layers[0] / self.learned.units.input_scale
        return gradient


def optimise_inputs(
    models: Sequence[LearnedSystem], y0: Floats, times: Floats, cost: Any, bounds: Any, max_iter: int
) -> OptimalInputs:
    """Return the inputs of least cost, on average over the models; `Dynamics.optimise_inputs` documents it."""
    from scipy.optimize import minimize

    r, k = models[0].system.n_inputs, len(times)
    if not callable(getattr(cost, "value_and_grad", None)):
        raise TypeError(f"cost must have a method value_and_grad(states, inputs), got {type(cost).__name__}")
    low, high = _read_bounds(bounds, r)
    problems = [InputProblem(model, y0, times) for model in models]
    start = np.clip(np.tile(models[0].units.input_shift, (k, 1)), low, high)

    def value_and_grad(flat: Floats) -> tuple[float, Floats]:
        inputs = flat.reshape(k, r)
        total, gradient = 0.0, np.zeros((k, r))
        for problem in problems:
            try:
                states, sweep = problem.trajectory(inputs)
            except FloatingPointError:
                return math.inf, np.zeros(k * r)
            value, by_states, by_inputs = _evaluate(cost, states, inputs)
            total += value / len(problems)
            gradient += (problem.gradient(sweep, by_states) + by_inputs) / len(problems)
        return total, gradient.ravel()

    pairs = np.column_stack([np.tile(low, k), np.tile(high, k)])
    found = minimize(
        value_and_grad, start.ravel(), jac=True, method="L-BFGS-B", bounds=pairs, options={"maxiter": max_iter}
    )
    inputs = np.asarray(found.x, np.float64).reshape(k, r)
    states = np.mean([problem.trajectory(inputs)[0] for problem in problems], axis=0)
    return OptimalInputs(inputs, states, float(found.fun), int(found.nit), bool(found.success), str(found.message))


def _evaluate(cost: Any, states: Floats, inputs: Floats) -> tuple[float, Floats, Floats]:
    found = cost.value_and_grad(states, inputs)
    if not isinstance(found, tuple) or len(found) != 3:
        raise TypeError("cost.value_and_grad must return a value, the gradient by the states and that by the inputs")
    value = validation.real(found[0], "the value of cost")
    dtype = np.dtype(np.float64)
    by_states = validation.array_of_shape(
        found[1], "the gradient by states", states.shape, "(times, components)", dtype
    )
    by_inputs = validation.array_of_shape(found[2], "the gradient by inputs", inputs.shape, "(times, inputs)", dtype)
    return value, np.asarray(by_states), np.asarray(by_inputs)


def _read_bounds(bounds: Any, n_inputs: int) -> tuple[Floats, Floats]:
    """Return the lowest and the highest value of each input."""
    if bounds is None:
        return np.full(n_inputs, -np.inf), np.full(n_inputs, np.inf)
    pairs = np.asarray(bounds, np.float64)
    if pairs.shape == (2,):
        pairs = np.tile(pairs, (n_inputs, 1))
    if pairs.shape != (n_inputs, 2):
        raise ValueError(
            f"bounds must be a pair (lowest, highest), or {n_inputs} of them, one per input, got shape {pairs.shape}"
        )
    if not (pairs[:, 0] < pairs[:, 1]).all():
        raise ValueError(f"bounds must be pairs (lowest, highest) with lowest < highest, got {pairs.tolist()}")
    return pairs[:, 0], pairs[:, 1]
