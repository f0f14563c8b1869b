"""Plot a series with its observations, and what a model makes of it: also beyond the data, with a band."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.dynamics.series import Series, read_series
from ocdl.plot._axes import get_axes
from ocdl.plot._classes import OKABE_ITO
from ocdl.plot._series import (
    component_label,
    interpolate_inputs,
    observe,
    observed_names,
    require_dynamics,
    validate_components,
)

WIDE = (6.4, 3.6)  # inches
POINTS = 400  # of a line, at least


class Forecast(NamedTuple):
    """The artists of a forecast.

    Attributes
    ----------
    ax : Axes
    observations : list of Line2D
        The observed values of each component.
    lines : list of Line2D
        The simulated ones.
    bands : list of PolyCollection
        Between the quantiles, for a model that is an ensemble.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np, ocdl, ocdl.plot
    >>> t = np.linspace(0, 3, 40)
    >>> X = np.exp(-t)[:, None]
    >>> model = ocdl.Dynamics(field="polynomial", degree=1, random_state=0).fit(X, t)
    >>> drawn = ocdl.plot.forecast(model, X, t)
    >>> drawn.ax.get_xlabel(), len(drawn.observations), len(drawn.lines), len(drawn.bands)
    ('time', 1, 1, 0)
    """

    ax: Axes
    observations: list[Line2D]
    lines: list[Line2D]
    bands: list[PolyCollection]

    def __repr__(self) -> str:
        bands = ", with bands" if self.bands else ""
        return f"<Forecast: {len(self.lines)} component{'' if len(self.lines) == 1 else 's'}{bands}>"


def forecast(
    model: object,
    X: Any,
    times: ArrayLike,
    *,
    origin: float | None = None,
    end: float | None = None,
    inputs: ArrayLike | None = None,
    quantiles: tuple[float, float] = (0.1, 0.9),
    components: Sequence[int] | None = None,
    legend: bool = True,
    ax: Axes | None = None,
) -> Forecast:
    """Draw a series as points and the model's simulation as lines, with a band for an ensemble.

    The simulation starts from ``model.initial_state`` of the observations up to `origin`. Those after it are drawn as
    circles: the model has not used them for this simulation, so the lines are a forecast there.

    Parameters
    ----------
    model : Dynamics
        A fitted model.
    X : array_like of shape (times, components) or DataFrame
        One series. NaN: missing.
    times : float or array_like of shape (times,)
        Its times, or the time step.
    origin : float, optional
        The time of the last observation that the initial state is computed from; none: all are used.
    end : float, optional
        The time at which the lines end; none: the last time.
    inputs : array_like of shape (times, inputs), optional
        The inputs at the times, of a model that takes some. They are known until the last time, so `end` is too.
    quantiles : tuple of two float
        The edges of the band.
    components : sequence of int, optional
        Which columns of X to draw; none: all.
    legend : bool
        Whether to add one.
    ax : Axes, optional
        Where to draw; none: on a new figure.

    Returns
    -------
    Forecast

    Raises
    ------
    TypeError, ValueError
        If an argument is not of its kind, or what is given does not fit each other; the message names it.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np, ocdl, ocdl.plot
    >>> t = np.linspace(0, 6, 60)
    >>> X = np.stack([np.sin(t), np.cos(t)], axis=1)
    >>> model = ocdl.Dynamics(field="polynomial", degree=1, random_state=0).fit(X, t)
    >>> drawn = ocdl.plot.forecast(model, X, t, origin=2.0, end=9.0)
    >>> drawn
    <Forecast: 2 components>
    """
    fitted = require_dynamics(model)
    series = read_series(X, times, inputs)
    if len(series.members) > 1:
        raise ValueError(f"X must be one series, got {len(series.members)}; draw one of them, as X[0]")
    (one,) = series.members
    clock, known = one.times, one.inputs
    numbers = validate_components(components, series.n_columns)
    edges = _validate_quantiles(quantiles)
    legend = validation.boolean(legend, "legend")
    used = _count_used(origin, clock)
    last = clock[-1] if end is None else validation.real(end, "end")
    if last <= clock[0] or (known is not None and last > clock[-1]):
        limit = f"the last time {clock[-1]:g}, until which the inputs are known" if known is not None else "any time"
        raise ValueError(f"end must lie after the first time {clock[0]:g} and up to {limit}, got {end!r}")
    at = np.linspace(clock[0], last, max(POINTS, 4 * len(clock)))
    options = {} if known is None else {"inputs": known[:used]}
    y0 = fitted.initial_state(one.values[:used], clock[:used], **options)
    if known is not None:
        options = {"inputs": interpolate_inputs(known, clock, at)}
    lines = observe(fitted, fitted.simulate(y0, at, **options))
    band = None
    if len(fitted.models_) > 1:
        band = observe(fitted, fitted.simulate(y0, at, quantiles=edges, **options))
    names = observed_names(fitted, series.names)
    labels = {j: component_label(names, j) for j in numbers}
    ax = get_axes(ax, WIDE, "constrained")
    return _draw(ax, one, used, at, lines, band, labels, legend)


def _draw(
    ax: Axes,
    series: Series,
    used: int,
    at: FloatArray,
    lines: FloatArray,
    band: FloatArray | None,
    labels: dict[int, str],
    legend: bool,
) -> Forecast:
    drawn = Forecast(ax, [], [], [])
    clock = series.times
    for i, (j, label) in enumerate(labels.items()):
        colour, values = OKABE_ITO[i % len(OKABE_ITO)], series.values[:, j]
        drawn.lines.extend(ax.plot(at, lines[:, j], color=colour, linewidth=1.5, label=label))
        drawn.observations.extend(ax.plot(clock[:used], values[:used], ".", color=colour, markersize=5))
        if used < len(clock):
            ax.plot(clock[used:], values[used:], "o", color=colour, markersize=3.5, markerfacecolor="none")
        if band is not None:
            drawn.bands.append(ax.fill_between(at, *band[:, :, j], color=colour, alpha=0.2, linewidth=0))
    if used < len(clock):
        ax.axvline(clock[used - 1], color="0.5", linewidth=0.8, linestyle=":")
    ax.set_xlabel("time")
    ax.grid(alpha=0.3)
    if legend:
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(len(labels), 6), frameon=False)
    return drawn


def _validate_quantiles(quantiles: Any) -> tuple[float, float]:
    edges = tuple(validation.real(edge, "quantiles") for edge in quantiles)
    if len(edges) != 2 or not 0 <= edges[0] < edges[1] <= 1:
        raise ValueError(f"quantiles must be two increasing numbers from 0 to 1, got {quantiles!r}")
    return edges[0], edges[1]


def _count_used(origin: float | None, clock: FloatArray) -> int:
    """Return how many observations the initial state is computed from."""
    if origin is None:
        return len(clock)
    used = int(np.searchsorted(clock, validation.real(origin, "origin"), side="right"))
    if not used:
        raise ValueError(f"origin must be at least the first time {clock[0]:g}, got {origin!r}")
    return used
