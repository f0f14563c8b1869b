"""Where a fit begins: smooth series, their derivatives, and a field fitted to these."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocdl.dynamics.series import Series
from ocdl.dynamics.smoothing import Kernel, choose_kernel, cut_chunks, smooth
from ocdl.dynamics.system import System
from ocdl.dynamics.windows import inputs_at

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

POINTS_PER_INTERVAL = 3  # where derivatives are compared
MAX_POINTS = 5000
SLOPE = 0.7  # of the random hidden units of an mlp, whose centres are points of the data
SPREAD = 0.3  # of these centres


@dataclass(frozen=True, eq=False)
class SmoothSeries:
    """Smooth functions in the place of series, a kernel per column."""

    series: list[Series]
    kernels: list[Kernel]

    @property
    def noise(self) -> Floats:
        """The standard deviation of the noise of each column."""
        return np.array([kernel.noise for kernel in self.kernels])

    def at(self, index: int, times: Floats) -> tuple[Floats, Floats]:
        """Return values and derivatives of a series at increasing times, (times, columns) each."""
        one = self.series[index]
        values, slopes = np.empty((len(times), len(self.kernels))), np.empty((len(times), len(self.kernels)))
        for c, kernel in enumerate(self.kernels):
            present = ~np.isnan(one.values[:, c])
            if not present.any():
                values[:, c], slopes[:, c] = 0.0, 0.0
                continue
            values[:, c], slopes[:, c] = smooth(one.times[present], one.values[present, c], times, kernel)
        return values, slopes


def smooth_series(series: list[Series]) -> SmoothSeries:
    """Return smooth functions for series without units."""
    kernels = []
    for c in range(series[0].values.shape[1]):
        chunks = []
        for one in series:
            present = ~np.isnan(one.values[:, c])
            if present.sum() >= 2:
                chunks += cut_chunks(one.times[present], one.values[present, c])
        kernels.append(choose_kernel(chunks) if chunks else Kernel(1.0, 1.0, 1.0))
    return SmoothSeries(series, kernels)


@dataclass(frozen=True, eq=False)
class DerivativeData:
    """States, their derivatives and inputs at points of all series."""

    z: Floats
    slopes: Floats
    x: Floats | None


def derivative_data(smooth: SmoothSeries, lift: Lift) -> DerivativeData:
    """Return states and their derivatives where the series were observed, and between."""
    z, slopes, x = [], [], []
    for i, one in enumerate(smooth.series):
        times = refine_times(one.times)
        state = lift.states(smooth, i, times)
        z.append(state)
        slopes.append(np.gradient(state, times, axis=0) if lift.is_lifted else smooth.at(i, times)[1] @ lift.matrix)
        if one.inputs is not None:
            x.append(inputs_at(one, times))
    everything = np.concatenate(z), np.concatenate(slopes), np.concatenate(x) if x else None
    stride = max(1, len(everything[0]) // MAX_POINTS)
    return DerivativeData(*(None if part is None else part[::stride] for part in everything))  # type: ignore[arg-type]


def refine_times(times: Floats) -> Floats:
    """Return times with points in each interval, increasing."""
    inner = np.linspace(times[:-1], times[1:], POINTS_PER_INTERVAL, endpoint=False).T.ravel()
    return np.append(inner, times[-1])


@dataclass(frozen=True, eq=False)
class Lift:
    """How a state is guessed from the smooth outputs: ``matrix`` (q, dim), then derivatives for hidden components.

    Component j of `sources` (hidden components) is the derivative of output `sources[j]`, -1: 0.
    """

    matrix: Floats
    hidden: tuple[int, ...]
    sources: tuple[int, ...]

    @property
    def is_lifted(self) -> bool:
        return len(self.hidden) > 0

    def states(self, smooth: SmoothSeries, index: int, times: Floats) -> Floats:
        """Return the guessed states of a series at times."""
        values, slopes = smooth.at(index, times)
        state: Floats = values @ self.matrix
        for component, source in zip(self.hidden, self.sources, strict=True):
            if source >= 0:
                state[:, component] = slopes[:, source]
        return state


def lift_of(W: Floats) -> Lift:
    """Return how states are guessed: components that are not observed are derivatives of those that are."""
    hidden = tuple(int(i) for i in np.flatnonzero(np.abs(W).sum(axis=0) == 0))
    sources = tuple(i if i < len(W) else -1 for i in range(len(hidden)))
    return Lift(np.asarray(np.linalg.pinv(W).T, np.float64), hidden, sources)


def start_theta(system: System, data: DerivativeData, free: Mask, rng: np.random.Generator, ridge: float) -> Floats:
    """Return the parameters that fit the derivatives best, the hidden units of an mlp being random.

    The coefficients of a polynomial that are not free are 0.
    """
    theta = np.zeros(system.n_parameters)
    z = data.z if data.x is None else np.hstack([data.z, data.x])
    if system.field == "polynomial":
        features = np.prod(z[:, None, :] ** system.monomials()[None], axis=2)
        C, is_free = system.part(theta, "C"), free.reshape(data.slopes.shape[1], -1)
        for row, slope, terms in zip(C, data.slopes.T, is_free, strict=True):
            row[terms] = _regress(features[:, terms], slope[:, None], ridge)[:, 0]
        return theta
    K, b = system.part(theta, "K"), system.part(theta, "b")
    K[...] = SLOPE * rng.standard_normal(K.shape) / np.sqrt(z.shape[1])
    centres = z[rng.integers(len(z), size=len(K))]
    b[...] = -np.sum(K * centres, axis=1) + SPREAD * rng.standard_normal(len(b))
    hidden = np.tanh(z @ K.T + b)
    features = np.hstack([hidden, z, np.ones((len(z), 1))])
    coefficients = _regress(features, data.slopes, ridge).T
    width = len(K)
    system.part(theta, "V")[...] = coefficients[:, :width]
    system.part(theta, "A")[...] = coefficients[:, width:-1]
    system.part(theta, "c")[...] = coefficients[:, -1]
    return theta


def _regress(features: Floats, targets: Floats, ridge: float) -> Floats:
    size = np.sqrt(np.mean(features**2, axis=0)) + 1e-12
    scaled = features / size
    matrix = scaled.T @ scaled + ridge * len(scaled) * np.eye(scaled.shape[1])
    solved: Floats = np.linalg.solve(matrix, scaled.T @ targets) / size[:, None]
    return solved
