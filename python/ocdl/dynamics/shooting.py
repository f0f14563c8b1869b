"""Multiple shooting as a nonlinear least-squares problem, with its exact Jacobian by tangent sweeps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocdl.dynamics.system import System
from ocdl.dynamics.windows import Windows

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MAX_TANGENT = 1e100  # whose square is within the range of the numbers


@dataclass(frozen=True, eq=False)
class Weights:
    r"""The weights of the sum of squares.

    .. math:: \sum_c |r_c|^2 / noise_c^2 + \sum_i |y_i(T) - s_{n(i)}|^2 / jump^2 + \sum_p prior_p (\theta_p - mean_p)^2

    with `state_prior` times the squares of the initial states besides, of components that are hidden.
    """

    noise: Floats  # (q,)
    jump: Floats  # (dim,)
    prior: Floats  # (parameters,)
    mean: Floats  # (parameters,)
    state_prior: Floats  # (dim,)


@dataclass(frozen=True, eq=False)
class Residuals:
    """The sum of squares and its terms at a point: `errors` (m, k, q), NaN where nothing was observed."""

    value: float
    errors: Floats
    jumps: Floats  # (m, dim), 0 where no window follows


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """The Gauss-Newton matrix and the half gradient, blocks by chains of initial states and by parameters.

    `state` (chains, n, n), `mixed` (chains, n, parameters), `parameter` (chains, parameters, parameters) without the
    prior, the gradients alike.
    """

    state: Floats
    mixed: Floats
    parameter: Floats
    state_gradient: Floats
    parameter_gradient: Floats
    windows: Windows


@dataclass(frozen=True, eq=False)
class Shooting:
    """The problem: windows, the system, the outputs W z (q, dim) that are observed, and the free parameters."""

    system: System
    windows: Windows
    W: Floats
    free: Mask

    def residuals(self, theta: Floats, states: Floats, weights: Weights) -> Residuals | None:
        """Return the terms of the sum; None where the flow overflows."""
        found = self._forward(theta, states)
        return None if found is None else self._terms(theta, states, found, weights)

    def _forward(self, theta: Floats, states: Floats) -> Floats | None:
        net = self.system.network(self.windows.layers, self.windows.step)
        u = self.system.controls(net, theta)
        trajectory = np.asarray(net._core_network.forward(u._vector, self._rows(states))[0])
        return trajectory if np.isfinite(trajectory).all() else None

    def _rows(self, states: Floats) -> Floats:
        inputs = self.windows.inputs
        if inputs is None:
            return np.ascontiguousarray(states)
        return np.concatenate([states, inputs.reshape(len(states), -1)], axis=1)

    def _terms(self, theta: Floats, states: Floats, trajectory: Floats, weights: Weights) -> Residuals:
        following = self.windows.next_window
        errors = self._observe(trajectory) - self.windows.values
        jumps = np.where((following >= 0)[:, None], trajectory[-1] - states[following], 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            value = (
                float(np.nansum((errors / weights.noise) ** 2))
                + float(np.sum((jumps / weights.jump) ** 2))
                + float(np.sum(weights.prior * (theta - weights.mean) ** 2))
                + float(np.sum(weights.state_prior * states**2))
            )
        return Residuals(value if np.isfinite(value) else np.inf, errors, jumps)

    def _observe(self, trajectory: Floats) -> Floats:
        """Return the outputs at the observed times, (m, k, q), of states (layers + 1, m, dim)."""
        nodes, weights = self.windows.stencil, self.windows.weights
        m = np.arange(len(self.windows))[:, None]
        values = sum(weights[..., i, None] * trajectory[nodes[..., i], m] for i in range(nodes.shape[-1]))
        return np.asarray(values @ self.W.T)

    def linearise(self, theta: Floats, states: Floats, weights: Weights) -> NormalEquations | None:
        """Return the normal equations at a point; None where states or tangents are beyond the range of the numbers."""
        windows, dim = self.windows, self.system.dim
        m, q = len(windows), len(self.W)
        net = self.system.network(windows.layers, windows.step)
        core, vector = net._core_network, self.system.controls(net, theta)._vector
        rows, (chosen,) = self._rows(states), np.nonzero(self.free)
        trajectory = self._forward(theta, states)
        if trajectory is None:
            return None
        residuals = self._terms(theta, states, trajectory, weights)
        columns = dim + len(chosen)
        observed = np.empty((m, windows.values.shape[1] * q, columns))
        ends = np.empty((m, dim, columns))
        present = ~np.isnan(windows.values)
        scale = np.where(present, 1 / weights.noise, 0.0).reshape(m, -1)
        for column in range(columns):
            direction = row_direction = None
            if column < dim:
                row_direction = np.zeros_like(rows)
                row_direction[:, column] = 1.0
            else:
                direction = np.zeros_like(vector)
                direction[chosen[column - dim]] = 1.0
            tangent = np.asarray(core.tangent(vector, rows, direction, row_direction))
            observed[:, :, column] = self._observe(tangent).reshape(m, -1) * scale
            ends[:, :, column] = tangent[-1]
        largest = max(float(np.abs(observed).max(initial=0.0)), float(np.abs(ends).max(initial=0.0)))
        if not largest < MAX_TANGENT:
            return None
        errors = np.where(present, residuals.errors / weights.noise, 0.0).reshape(m, -1)
        follows = windows.next_window >= 0
        ends = ends / weights.jump[:, None] * follows[:, None, None]
        jumps = residuals.jumps / weights.jump
        return self._assemble(observed, errors, ends, jumps, states, weights)

    def _assemble(
        self, observed: Floats, errors: Floats, ends: Floats, jumps: Floats, states: Floats, weights: Weights
    ) -> NormalEquations:
        windows, dim = self.windows, self.system.dim
        length, chains = int(windows.position.max()) + 1, windows.n_chains
        P = observed.shape[2] - dim
        both = np.concatenate([observed, ends], axis=1)
        right = np.concatenate([errors, jumps], axis=1)
        product = np.einsum("mri,mrj->mij", both, both, optimize=True)
        gradient = np.einsum("mri,mr->mi", both, right)
        state = np.zeros((chains, length, dim, length, dim))
        mixed = np.zeros((chains, length, dim, P))
        state_gradient = np.zeros((chains, length, dim))
        c, w = windows.chain, windows.position
        diagonal = np.zeros((chains, length, dim, dim))
        diagonal[c, w] = product[:, :dim, :dim] + np.diag(weights.state_prior)
        mixed[c, w] = product[:, :dim, dim:]
        state_gradient[c, w] = gradient[:, :dim] + weights.state_prior * states
        begins = np.flatnonzero(w == 0)  # windows of a chain are neighbours
        parameter = np.add.reduceat(product[:, dim:, dim:], begins, axis=0)
        parameter_gradient = np.add.reduceat(gradient[:, dim:], begins, axis=0)
        follows = windows.next_window >= 0
        c, w = c[follows], w[follows]
        inverse = 1 / weights.jump
        diagonal[c, w + 1] += np.diag(inverse**2)
        coupling = -inverse[:, None] * ends[follows][:, :, :dim]  # of the next state's rows by this one's columns
        state[c, w + 1, :, w, :] = coupling
        state[c, w, :, w + 1, :] = np.swapaxes(coupling, 1, 2)
        mixed[c, w + 1] -= inverse[:, None] * ends[follows][:, :, dim:]
        state_gradient[c, w + 1] -= inverse * jumps[follows]
        is_used = np.zeros((chains, length), bool)
        is_used[windows.chain, windows.position] = True
        diagonal[~is_used] = np.eye(dim)
        for i in range(length):
            state[:, i, :, i, :] = diagonal[:, i]
        n = length * dim
        return NormalEquations(
            state.reshape(chains, n, n),
            mixed.reshape(chains, n, P),
            parameter,
            state_gradient.reshape(chains, n),
            parameter_gradient,
            windows,
        )


@dataclass(frozen=True, eq=False)
class ReducedEquations:
    """The normal equations of the parameters alone, a matrix and a gradient per chain: initial states eliminated."""

    matrix: Floats  # (chains, parameters, parameters)
    gradient: Floats  # (chains, parameters)
    elimination: Floats  # (chains, n, parameters + 1): states = -elimination @ (step, 1)


def reduce(equations: NormalEquations, damping: float) -> ReducedEquations:
    """Return the equations of the parameters, with the states' part of the matrix damped."""
    state = equations.state.copy()
    n = state.shape[1]
    diagonal = np.einsum("cii->ci", state)
    diagonal *= 1 + damping
    diagonal += 1e-12 * diagonal.max(axis=1, keepdims=True)
    right = np.concatenate([equations.mixed, equations.state_gradient[:, :, None]], axis=2)
    elimination = np.linalg.solve(state, right) if n else right
    transposed = np.swapaxes(equations.mixed, 1, 2)
    reduced = transposed @ elimination
    return ReducedEquations(
        equations.parameter - reduced[:, :, :-1],
        equations.parameter_gradient - reduced[:, :, -1],
        elimination,
    )
