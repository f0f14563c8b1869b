"""The units of a fit, its step and its windows, chosen from the data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ocdl.dynamics.plan import DynamicsPlan
from ocdl.dynamics.series import Series
from ocdl.dynamics.smoothing import Kernel
from ocdl.dynamics.start import Lift, SmoothSeries, derivative_data, lift_of, smooth_series
from ocdl.dynamics.units import Units, column_scales

Floats = NDArray[np.float64]

STEP = {"mlp": 0.2, "polynomial": 0.1}  # of the time in which a state changes by its own size
TIMES_PER_WINDOW = 4  # typical intervals between observations in a window, at least
WINDOW = 1.0  # the length of a window at least, in the time in which a state changes
MAX_WINDOWS = 48  # of a series
MIN_LAYERS = 4
MIN_NOISE = 1e-5  # over the scale of the data: what is below counts as no noise


@dataclass(frozen=True, eq=False)
class ScaledProblem:
    """The series without units, smoothed; how states are guessed from them; steps and layers of a window."""

    series: list[Series]
    smooth: SmoothSeries
    lift: Lift
    units: Units
    W: Floats
    output_shift: Floats
    output_scale: Floats
    noise: Floats
    step: float
    layers: int


def scale_problem(plan: DynamicsPlan) -> ScaledProblem:
    """Return the problem without units."""
    system, columns = plan.system, np.concatenate([one.values for one in plan.series])
    shifts = system.field == "mlp" and plan.observes_components
    output_shift, output_scale = column_scales(columns, shifts=shifts)
    shift, scale = np.zeros(system.dim), np.ones(system.dim)
    if plan.observes_components:
        observed = np.argmax(plan.W, axis=1)
        shift[observed], scale[observed] = output_shift, output_scale
    else:
        size = np.sqrt(np.mean(np.sum(plan.W**2, axis=1)))
        scale[:] = np.sqrt(np.mean(output_scale**2)) / size
    W = plan.W * scale / output_scale[:, None]
    input_shift, input_scale = np.zeros(system.n_inputs), np.ones(system.n_inputs)
    if system.n_inputs:
        known = np.concatenate([one.inputs for one in plan.series if one.inputs is not None])
        input_shift, input_scale = column_scales(known, shifts=system.field == "mlp")
    units = Units(shift, scale, input_shift, input_scale, 1.0)
    series = [
        Series(
            one.times,
            (one.values - output_shift) / output_scale,
            None if one.inputs is None else units.inputs_to_scaled(one.inputs),
        )
        for one in plan.series
    ]
    smooth, lift = smooth_series(series), lift_of(W)
    time = _time_scale(smooth)
    series = [Series(one.times / time, one.values, one.inputs) for one in series]
    smooth = SmoothSeries(series, [Kernel(k.length / time, k.noise_ratio, k.variance) for k in smooth.kernels])
    spacing = float(np.median(np.concatenate([np.diff(one.times) for one in series])))
    longest = max(float(one.times[-1] - one.times[0]) for one in series)
    length = max(TIMES_PER_WINDOW * spacing, WINDOW, longest / MAX_WINDOWS)
    step = STEP[system.field] if plan.max_step is None else plan.max_step / time
    step = _divide_spacing(series, step)
    layers = max(MIN_LAYERS, math.ceil(min(length, longest) / step - 1e-9))
    return ScaledProblem(
        series, smooth, lift, replace(units, time=time), W, output_shift, output_scale,
        np.maximum(smooth.noise, MIN_NOISE), step, layers,
    )  # fmt: skip


def _time_scale(smooth: SmoothSeries) -> float:
    """Return the time in which the fastest component changes by its own standard deviation."""
    columns = len(smooth.kernels)
    data = derivative_data(smooth, Lift(np.eye(columns), (), ()))
    spread = np.std(data.z, axis=0)
    rates = np.sqrt(np.mean(data.slopes**2, axis=0)) / np.where(spread > 0, spread, np.inf)
    longest = max(float(one.times[-1] - one.times[0]) for one in smooth.series)
    return float(1 / max(rates.max(), 1 / longest))


def _divide_spacing(series: list[Series], step: float) -> float:
    """Return a step, not longer, that divides the time between observations where that is always the same."""
    gaps = np.concatenate([np.diff(one.times) for one in series])
    spacing = float(gaps.min())
    multiples = gaps / spacing
    if np.abs(multiples - np.round(multiples)).max() > 1e-6 or spacing < step / 20:
        return step
    return spacing / math.ceil(spacing / step - 1e-9) if spacing > step else spacing * math.floor(step / spacing + 1e-9)
