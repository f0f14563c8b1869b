"""Smooth noisy series by Gaussian processes: values, derivatives and the level of the noise before any model exists."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CHUNK = 60  # observations of a long series that are smoothed at once
OVERLAP = 10  # observations that neighbouring chunks share on each side
MAX_CHUNKS = 40  # from which the length and the noise are estimated
LENGTHS = 14  # candidates for the correlation length
NOISE_RATIOS = np.logspace(-9, 0.5, 24)  # candidates for the variance of the noise over that of the signal
OFFSET = 10.0  # variance of the mean of a chunk, over that of the signal


@dataclass(frozen=True)
class Kernel:
    """The squared exponential covariance with its noise, as chosen by the marginal likelihood."""

    length: float
    noise_ratio: float
    variance: float

    @property
    def noise(self) -> float:
        """The standard deviation of the noise."""
        return float(np.sqrt(self.noise_ratio * self.variance))


def choose_kernel(chunks: list[tuple[Floats, Floats]]) -> Kernel:
    """Return the kernel of largest likelihood for chunks of one component, each (times, values)."""
    stride = max(1, len(chunks) // MAX_CHUNKS)
    chunks = chunks[::stride]
    spacing = float(np.median(np.concatenate([np.diff(t) for t, _ in chunks])))
    span = max(float(t[-1] - t[0]) for t, _ in chunks)
    best, best_value = Kernel(spacing, 1.0, 1.0), np.inf
    for length in np.geomspace(spacing, max(span, 2 * spacing), LENGTHS):
        quadratic, logarithm, count = np.zeros(len(NOISE_RATIOS)), np.zeros(len(NOISE_RATIOS)), 0
        for t, v in chunks:
            eigenvalues, Q = np.linalg.eigh(_covariance(t, t, length))
            shifted = np.maximum(eigenvalues, 0.0)[:, None] + NOISE_RATIOS
            quadratic += ((Q.T @ v)[:, None] ** 2 / shifted).sum(axis=0)
            logarithm += np.log(shifted).sum(axis=0)
            count += len(t)
        values = count * np.log(np.maximum(quadratic, 1e-300) / count) + logarithm
        i = int(np.argmin(values))
        if values[i] < best_value:
            best_value = float(values[i])
            best = Kernel(float(length), float(NOISE_RATIOS[i]), float(quadratic[i] / count))
    return best


def smooth(t: Floats, v: Floats, at: Floats, kernel: Kernel) -> tuple[Floats, Floats]:
    """Return values and derivatives of the smooth function at increasing times; t, v: what was observed."""
    value, slope = np.empty(len(at)), np.empty(len(at))
    for chosen, wanted in _chunk_ranges(t, at):
        s = t[chosen]
        K = _covariance(s, s, kernel.length) + max(kernel.noise_ratio, 1e-9) * np.eye(len(s))
        weights = np.linalg.solve(K, v[chosen])
        difference = (at[wanted, None] - s) / kernel.length
        bell = np.exp(-0.5 * difference**2)
        value[wanted] = (bell + OFFSET) @ weights
        slope[wanted] = (-difference / kernel.length * bell) @ weights
    return value, slope


def cut_chunks(t: Floats, v: Floats) -> list[tuple[Floats, Floats]]:
    """Return a series in chunks."""
    return [(t[i : i + CHUNK], v[i : i + CHUNK]) for i in range(0, max(len(t) - CHUNK // 2, 1), CHUNK)]


def _covariance(a: Floats, b: Floats, length: float) -> Floats:
    covariance: Floats = np.exp(-0.5 * ((a[:, None] - b) / length) ** 2) + OFFSET
    return covariance


def _chunk_ranges(t: Floats, at: Floats) -> list[tuple[slice, NDArray[np.bool_]]]:
    """Return for each chunk the observations that it uses and the wanted times within its inner part."""
    starts = list(range(0, max(len(t) - CHUNK // 2, 1), CHUNK))
    ranges = []
    for i, start in enumerate(starts):
        is_last = i == len(starts) - 1
        end = len(t) if is_last else starts[i + 1]
        wanted = (at >= (t[start] if i else -np.inf)) & (at < (np.inf if is_last else t[end]))
        ranges.append((slice(max(start - OVERLAP, 0), min(end + OVERLAP, len(t))), wanted))
    return ranges
