"""Series cut into windows of equal length: the samples of one least-squares problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocdl.dynamics.series import Series

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MAX_CHAIN = 48  # windows of a chain, whose linear equations are dense
STENCIL = 4  # layers that make up a value between layers, as for `ocdl.Observations`
MIN_LAYERS = 4


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows (m of them) of `layers` steps each, in chains of neighbours.

    Window i is number `position[i]` of chain `chain[i]`, which belongs to series `series[i]`, and begins at time
    `start[i]`. It is observed at up to k times: `values` (m, k, q), NaN where nothing was. The state at observation j
    is the sum of `weights[i, j]` times the states of the layers `stencil[i, j]`.
    """

    layers: int
    step: float
    series: Integers
    chain: Integers
    position: Integers
    start: Floats
    values: Floats
    stencil: Integers
    weights: Floats
    inputs: Floats | None

    def __len__(self) -> int:
        return len(self.series)

    @property
    def n_chains(self) -> int:
        return int(self.chain.max()) + 1

    @property
    def next_window(self) -> Integers:
        """The index of the window that follows, or -1."""
        follows = (self.chain[1:] == self.chain[:-1]).tolist()
        return np.array([i + 1 if follow else -1 for i, follow in enumerate([*follows, False])], dtype=np.int64)

    @property
    def n_observed(self) -> Integers:
        """How many values of each output were observed."""
        counts: Integers = (~np.isnan(self.values)).sum(axis=(0, 1))
        return counts


def cut_windows(series: list[Series], layers: int, step: float) -> Windows:
    """Return the windows of series without units."""
    length = layers * step
    number, chain, position, start, rows = [], [], [], [], []
    chains = 0
    for s, one in enumerate(series):
        elapsed = one.times - one.times[0]
        place = np.maximum(np.ceil(elapsed / length * (1 - 1e-12) - 1e-9).astype(np.int64) - 1, 0)
        for w in range(int(place[-1]) + 1):
            if w and w % MAX_CHAIN == 0:
                chains += 1
            number.append(s)
            chain.append(chains)
            position.append(w % MAX_CHAIN)
            start.append(one.times[0] + w * length)
            rows.append(np.flatnonzero(place == w))
        chains += 1
    m, k = len(rows), max(max(map(len, rows)), 1)
    outputs = series[0].values.shape[1]
    values, within = np.full((m, k, outputs), np.nan), np.zeros((m, k))
    for i, chosen in enumerate(rows):
        one = series[number[i]]
        values[i, : len(chosen)] = one.values[chosen]
        within[i, : len(chosen)] = (one.times[chosen] - start[i]) / step
    stencil, weights = interpolate(np.clip(within, 0, layers), layers)
    inputs = None
    if series[0].inputs is not None:
        inputs = np.stack(
            [inputs_at(series[s], begin + step * np.arange(layers + 1)) for s, begin in zip(number, start, strict=True)]
        )
    return Windows(
        layers, step, np.array(number), np.array(chain), np.array(position), np.array(start), values, stencil, weights,
        inputs,
    )  # fmt: skip


def inputs_at(one: Series, times: Floats) -> Floats:
    """Return the inputs of a series, linear between its times and constant beyond, (times, inputs)."""
    assert one.inputs is not None
    return np.stack([np.interp(times, one.times, column) for column in one.inputs.T], axis=1)


def interpolate(place: Floats, layers: int) -> tuple[Integers, Floats]:
    """Return the layers and the weights of the cubic polynomial at places counted in steps, (..., 4) each."""
    count = min(STENCIL, layers + 1)
    below = np.minimum(np.floor(place), layers - 1).astype(np.int64)
    first = np.clip(below - 1, 0, max(layers - STENCIL + 1, 0))
    nodes = first[..., None] + np.arange(count)
    weights = np.ones(nodes.shape)
    for i in range(count):
        for j in range(count):
            if i != j:
                weights[..., i] *= (place - nodes[..., j]) / (i - j)
    return nodes, weights
