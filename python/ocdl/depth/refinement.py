"""Depth as time: the same flow with more layers, or with any number of them.

A layer lasts |h[j]|. Layers that follow each other with steps of one sign are a *run*, along which the controls are a
function of time; layers with step 0 last no time and interrupt no run. Where the sign changes the flow turns back, and
no controls are interpolated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ocdl.base import validation
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.model.controls import Controls
from ocdl.model.flow import Flow, SomeFlow

__all__ = ["refine", "resample"]

INTERPOLATIONS = ("linear", "constant")


class Sources(NamedTuple):
    """The old layers that new layers interpolate: ``(1 - fraction) * old[lower] + fraction * old[upper]``."""

    lower: LabelArray
    upper: LabelArray
    fraction: FloatArray


def refine(net: SomeFlow, u: Controls, factor: int = 2, *, interpolation: str = "linear") -> tuple[SomeFlow, Controls]:
    """Return a network with `factor` times as many layers on the same horizon, and controls for it.

    Layer j becomes `factor` layers of step ``h[j] / factor``. Their K and b are interpolated in time; W and mu stay. A
    network with inputs takes them at the times of the new layers.

    Parameters
    ----------
    u : Controls
    factor : int
        New layers per layer.
    interpolation : {"linear", "constant"}
        "linear": between the midpoints in time of the layers, constant before the first and after the last; where the
        controls change little from layer to layer the flow is the same up to O(h). "constant": each new layer has the
        controls of the layer that it is a part of, so that the ODE is the same and the flow differs by the error of
        the method, O(h^order). Layers with step 0 are repeated, and nothing is interpolated between steps of
        different signs. Stages with controls of their own are interpolated one by one. With control intervals it is
        always "constant": the new layers share the controls of the layer that they are a part of.

    Returns
    -------
    net : Network
    u : Controls

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit, or the network is feed-forward.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(1, 2, tableau="kutta4")
    >>> u = net.controls(K=[[[1.0]], [[3.0]]])
    >>> fine, v = net.refine(u)
    >>> v.K.ravel().tolist(), v.h.tolist()
    ([1.0, 1.5, 2.5, 3.0], [0.25, 0.25, 0.25, 0.25])
    >>> net.refine(u, interpolation="constant")[1].K.ravel().tolist()
    [1.0, 1.0, 3.0, 3.0]
    """
    h = _steps(net, u)
    factor = validation.integer(factor, "factor", minimum=1)
    interpolation = _interpolation(net, interpolation)
    parents = np.repeat(np.arange(net.n_layers), factor)
    sources = Sources(parents.copy(), parents.copy(), np.zeros(len(parents)))
    inside = np.tile((np.arange(factor) + 0.5) / factor, net.n_layers)  # fraction of the parent's time at the midpoint
    for run in _runs(h):
        new = np.flatnonzero(np.isin(parents, run))
        durations = np.abs(h[run])
        starts = np.cumsum(durations) - durations
        times = np.repeat(starts, factor) + inside[new] * np.repeat(durations, factor)
        for whole, part in zip(sources, _find_sources(run, durations, times, interpolation), strict=True):
            whole[new] = part
    return _interpolate(net, u, sources, np.repeat(h / factor, factor))


def resample(net: SomeFlow, u: Controls, n_layers: int, *, interpolation: str = "linear") -> tuple[SomeFlow, Controls]:
    """Return a network with any number of layers on the same horizon, and controls for it.

    The layers of a run, that is of steps of one sign, are replaced by equally long ones that last as long together;
    layers with step 0 vanish. The sum of the steps stays. K and b are taken at the midpoints of the new layers; W and
    mu stay.

    Parameters
    ----------
    u : Controls
        At least one step is not 0.
    n_layers : int
        At least one for each run, distributed such that the longest step is as short as possible.
    interpolation : {"linear", "constant"}
        As for `refine`: between the midpoints of the old layers, or the controls of the old layer at that time (at the
        border of two, of the later one). With control intervals always "constant"; one without a new layer goes.

    Returns
    -------
    net : Network
    u : Controls

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit, the network is feed-forward, all steps are 0, or there are fewer layers than runs
        of steps of one sign.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network.preset("odenet", 1, 3)
    >>> u = net.controls(K=[[[1.0]], [[7.0]], [[2.0]]], h=[0.75, 0.0, 0.25])
    >>> net.resample(u, 4, interpolation="constant")[1].K.ravel().tolist()
    [1.0, 1.0, 1.0, 2.0]
    """
    h = _steps(net, u)
    n_layers = validation.integer(n_layers, "n_layers", minimum=1)
    interpolation = _interpolation(net, interpolation)
    runs = _runs(h)
    if not runs:
        raise ValueError("u.h is 0 in every layer: the network has no time to distribute")
    if n_layers < len(runs):
        raise ValueError(
            f"n_layers must be at least {len(runs)}, one for each run of steps of one sign, got {n_layers}"
        )
    sampled, steps = [], []
    for run, count in zip(
        runs, _distribute_layers(n_layers, [float(np.abs(h[run]).sum()) for run in runs]), strict=True
    ):
        times = (np.arange(count) + 0.5) / count * np.abs(h[run]).sum()
        sampled.append(_find_sources(run, np.abs(h[run]), times, interpolation))
        steps.append(np.full(count, h[run].sum() / count))
    sources = Sources(*(np.concatenate(parts) for parts in zip(*sampled, strict=True)))
    return _interpolate(net, u, sources, np.concatenate(steps))


def split_layers(net: SomeFlow, u: Controls, counts: LabelArray) -> tuple[SomeFlow, Controls]:
    """Return a network in which layer j has become ``counts[j]`` equally long layers with its controls."""
    parents = np.repeat(np.arange(net.n_layers), counts)
    return _interpolate(net, u, Sources(parents, parents, np.zeros(len(parents))), (_steps(net, u) / counts)[parents])


def _steps(net: Flow, u: Controls) -> FloatArray:
    net._vector(u)
    if not net.residual:
        raise ValueError("a feed-forward network (residual=False) has no time, and cannot be refined or resampled")
    return u.h.astype(np.float64)


def _interpolation(net: Flow, interpolation: str) -> str:
    interpolation = validation.choice(interpolation, "interpolation", INTERPOLATIONS)
    return interpolation if net.control_intervals is None else "constant"


def _runs(h: FloatArray) -> list[LabelArray]:
    moving = np.flatnonzero(h)
    turns = np.flatnonzero(np.diff(np.sign(h[moving]))) + 1
    return [run for run in np.split(moving, turns) if len(run)]


def _distribute_layers(layers: int, durations: list[float]) -> LabelArray:
    """Return the number of layers of each run: one each, the others one by one where the steps are longest."""
    counts = np.ones(len(durations), np.int64)
    for _ in range(layers - len(durations)):
        counts[np.argmax(durations / counts)] += 1
    return counts


def _find_sources(run: LabelArray, durations: FloatArray, times: FloatArray, interpolation: str) -> Sources:
    ends, last = np.cumsum(durations), len(run) - 1
    if interpolation == "constant":
        position = np.searchsorted(ends, times, side="right").clip(0, last).astype(np.float64)
    else:
        position = np.interp(times, ends - durations + 0.5 * durations, np.arange(last + 1))
    lower = np.floor(position).astype(np.int64)
    return Sources(run[lower], run[np.minimum(lower + 1, last)], position - lower)


def _interpolate(net: SomeFlow, u: Controls, sources: Sources, steps: FloatArray) -> tuple[SomeFlow, Controls]:
    if net.control_intervals is not None:
        return _copy_control_sets(net, u, sources.lower, steps)
    new = replace(net, n_layers=len(steps))

    def interpolate(old: FloatArray) -> FloatArray:
        fraction = sources.fraction.reshape(-1, *(1,) * (old.ndim - 1))
        result: FloatArray = (1 - fraction) * old[sources.lower] + fraction * old[sources.upper]
        return result

    parts = u.parts()
    for part in net.parts:
        if part.role == "field":
            parts[part.name] = interpolate(parts[part.name])
        elif part.role == "steps":
            parts[part.name] = steps
    return new, new.controls(**parts)


def _copy_control_sets(net: SomeFlow, u: Controls, parents: LabelArray, steps: FloatArray) -> tuple[SomeFlow, Controls]:
    """Return new layers with the control sets of their parents, without unused sets."""
    kept, sets = np.unique(np.array(net.layer_sets)[parents], return_inverse=True)
    new = replace(net, n_layers=len(steps), control_intervals=tuple(sets.tolist()))
    parts = u.parts()
    for part in net.parts:
        if part.role == "field":
            parts[part.name] = parts[part.name][kept]
        elif part.role == "steps":
            parts[part.name] = steps
    return new, new.controls(**parts)
