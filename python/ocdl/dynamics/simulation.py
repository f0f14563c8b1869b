"""Trajectories of a learned system at any times, and the initial states that fit a series best."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocdl.base import memory
from ocdl.dynamics.least_squares import minimise
from ocdl.dynamics.plan import LearnedSystem
from ocdl.dynamics.series import Series
from ocdl.dynamics.shooting import Shooting, Weights
from ocdl.dynamics.start import Lift, SmoothSeries, lift_of, smooth_series
from ocdl.dynamics.windows import MIN_LAYERS, Windows, cut_windows, interpolate

Floats = NDArray[np.float64]

REFINEMENT = 2  # a simulation has smaller steps than the fit, so that its own error is small beside that of the fit
STATE_ITERATIONS = 30
JUMPS = (3.0, 0.1, 0.003)  # of multiple shooting, over the noise
HIDDEN_PRECISION = 1e-4


@dataclass(frozen=True, eq=False)
class SimulationGrid:
    """The layers of a simulation, and what its states and inputs at times are sums of.

    The state at time i is the sum of `weights[i]` times the states of the layers `nodes[i]`; the inputs of the layers
    are `input_matrix` (layers + 1, times) times those at the times.
    """

    layers: int
    step: float
    nodes: NDArray[np.int64]
    weights: Floats
    input_matrix: Floats


def simulation_grid(learned: LearnedSystem, times: Floats) -> SimulationGrid:
    """Return the layers for increasing times; equal intervals are a whole number of layers each."""
    elapsed = (times - times[0]) / learned.units.time
    span, gaps = float(elapsed[-1]), np.diff(elapsed)
    step = learned.step / REFINEMENT
    layers = max(MIN_LAYERS, math.ceil(span / step - 1e-9))
    if np.ptp(gaps) <= 1e-9 * span:
        layers = len(gaps) * math.ceil(max(gaps.mean() / step, MIN_LAYERS / len(gaps)) - 1e-9)
    nodes, weights = interpolate(np.clip(elapsed / span * layers, 0, layers), layers)
    matrix = np.zeros((0, len(times)))
    if learned.system.n_inputs:
        grid = np.linspace(0.0, span, layers + 1)
        matrix = np.stack([np.interp(grid, elapsed, unit) for unit in np.eye(len(times))], axis=1)
    return SimulationGrid(layers, span / layers, nodes, weights, matrix)


def simulate(learned: LearnedSystem, y0: Floats, times: Floats, inputs: Floats | None) -> Floats:
    """Return the states (m, k, dim) at times, from states y0 (m, dim) at the first of them.

    Inputs (m, k, r) are those at the times, linear between. Where a trajectory leaves the range of the numbers, the
    rest of it is NaN, with a warning.
    """
    if len(times) == 1:
        return y0[:, None].copy()
    units, grid = learned.units, simulation_grid(learned, times)
    states = 8.0 * (grid.layers + 1) * y0.size
    memory.require_memory(f"the states of {len(y0)} trajectories at {grid.layers} times", {"states": states})
    net = learned.system.network(grid.layers, grid.step)
    rows = units.to_scaled(y0)
    if inputs is not None:
        x = grid.input_matrix @ units.inputs_to_scaled(inputs)
        rows = np.concatenate([rows, x.reshape(len(rows), -1)], axis=1)
    vector = learned.system.controls(net, learned.theta)._vector
    trajectory = np.asarray(net._core_network.forward(vector, np.ascontiguousarray(rows))[0])
    with np.errstate(invalid="ignore", over="ignore"):
        found = np.einsum("ki,kimd->mkd", grid.weights, trajectory[grid.nodes])
    is_lost = np.logical_or.accumulate(~np.isfinite(found).all(axis=2), axis=1)
    if is_lost.any():
        found[is_lost] = np.nan
        sample = int(np.argmax(is_lost.any(axis=1)))
        first = times[int(np.argmax(is_lost[sample]))]
        warnings.warn(
            f"{int(is_lost.any(axis=1).sum())} of {len(y0)} trajectories leave the range of the numbers, trajectory "
            f"{sample} before time {first:g}; they are NaN from there on",
            RuntimeWarning,
            stacklevel=4,
        )
    result: Floats = units.to_data(found)
    result[:, 0] = y0
    return result


def scale_series(learned: LearnedSystem, series: tuple[Series, ...]) -> list[Series]:
    """Return series without units."""
    units = learned.units
    return [
        Series(
            one.times / units.time,
            (one.values - learned.output_shift) / learned.output_scale,
            None if one.inputs is None else units.inputs_to_scaled(one.inputs),
        )
        for one in series
    ]


def fit_states(learned: LearnedSystem, series: list[Series], lift: Lift) -> tuple[Floats, Floats]:
    """Return the initial states of series without units, (series, dim), and their residuals over the noise.

    The parameters stay; the residuals are root mean squares, one per series, infinite where the flow overflows.
    """
    smooth = smooth_series(series)
    windows = cut_windows(series, learned.layers, learned.step)
    states = start_states(lift, smooth, windows)
    problem = Shooting(learned.system, windows, learned.W, np.zeros(len(learned.theta), bool))
    hidden = np.zeros(learned.system.dim)
    hidden[list(lift.hidden)] = HIDDEN_PRECISION
    first = (windows.position == 0) & np.append(True, windows.series[1:] != windows.series[:-1])
    errors = np.full(len(series), np.inf)
    level = float(np.mean(learned.noise))
    for jump in JUMPS:
        weights = Weights(
            learned.noise,
            np.full(learned.system.dim, jump * level),
            np.zeros(len(learned.theta)),
            learned.theta,
            hidden,
        )
        found = minimise(problem, learned.theta, states, weights, max_iter=STATE_ITERATIONS)
        if found is None:
            break
        states = found.states
        squares = (found.residuals.errors / learned.noise) ** 2
        squares = np.concatenate(
            [squares.reshape(len(windows), -1), (found.residuals.jumps / weights.jump) ** 2], axis=1
        )
        for s in range(len(series)):
            mine = windows.series == s
            count = max(int((~np.isnan(windows.values[mine])).sum()), 1)
            errors[s] = np.sqrt(np.nansum(squares[mine]) / count)
    return states[first], errors


def start_states(lift: Lift, smooth: SmoothSeries, windows: Windows) -> Floats:
    """Return the states at the starts of windows, as the smooth series have them."""
    numbers = np.unique(windows.series)
    return np.concatenate([lift.states(smooth, int(s), windows.start[windows.series == s]) for s in numbers])


def guess_lift(learned: LearnedSystem) -> Lift:
    """Return how states are guessed from outputs, as at the start of a fit."""
    return lift_of(learned.W)
