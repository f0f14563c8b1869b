"""Plot how the error of forecasts grows with their horizon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D

from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.dynamics.series import Series, read_series
from ocdl.plot._axes import get_axes
from ocdl.plot._classes import OKABE_ITO
from ocdl.plot._series import observe, require_dynamics

WIDE = (5.6, 3.8)  # inches
BINS = 20  # of the horizon


class ForecastError(NamedTuple):
    """The artists of errors over the horizon.

    Attributes
    ----------
    ax : Axes
    lines : list of Line2D
        The median error of each model.
    bands : list of PolyCollection
        The middle half of the errors.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np, ocdl, ocdl.plot
    >>> t = np.linspace(0, 3, 40)
    >>> X = np.exp(-t)[:, None]
    >>> model = ocdl.Dynamics(field="polynomial", degree=1, random_state=0).fit(X, t)
    >>> drawn = ocdl.plot.forecast_error(model, X, t)
    >>> drawn.ax.get_xlabel(), len(drawn.lines), len(drawn.bands)
    ('time after the last observation used', 1, 1)
    """

    ax: Axes
    lines: list[Line2D]
    bands: list[PolyCollection]

    def __repr__(self) -> str:
        return f"<ForecastError: {len(self.lines)} model{'' if len(self.lines) == 1 else 's'}>"


def forecast_error(
    models: object,
    X: Any,
    times: Any,
    *,
    n_observations: int = 5,
    inputs: Any = None,
    legend: bool = True,
    ax: Axes | None = None,
) -> ForecastError:
    """Draw the error of forecasts over the time since the last observation that they use.

    Each series is cut into pieces of `n_observations`. From each of these a model computes a state, and forecasts the
    rest of the series. The error at a time is the root of the mean square over the components, each divided by its
    standard deviation in `X`: an error of 1 is that of a forecast that says the mean, the dashed line. A line is the
    median over all forecasts, the band holds the middle half of them.

    Parameters
    ----------
    models : Dynamics, or mapping of names to Dynamics
        Fitted models.
    X : array_like of shape (times, components), a stack or a list of these
        Series that the models were not fitted to. NaN: missing.
    times : float, array_like of shape (times,) or a list of these
        Their times, or the time step.
    n_observations : int
        From how many observations a forecast starts.
    inputs : array_like or list, optional
        The inputs at the times, of models that take some.
    legend : bool
        Whether to add one, where the models have names.
    ax : Axes, optional
        Where to draw; none: on a new figure.

    Returns
    -------
    ForecastError

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
    >>> models = {
    ...     f"degree {d}": ocdl.Dynamics(field="polynomial", degree=d, random_state=0).fit(X, t) for d in (1, 2)
    ... }
    >>> ocdl.plot.forecast_error(models, X, t)
    <ForecastError: 2 models>
    """
    by_name = _name_models(models)
    series = read_series(X, times, inputs).members
    count = validation.integer(n_observations, "n_observations", minimum=1)
    longest = max(map(len, series))
    if longest <= count:
        raise ValueError(f"n_observations must be less than the longest series has, {longest}, got {count}")
    legend = validation.boolean(legend, "legend")
    scale = np.nanstd(np.concatenate([one.values for one in series]), axis=0)
    scale[~(scale > 0)] = 1.0
    ax = get_axes(ax, WIDE, "constrained")
    drawn = ForecastError(ax, [], [])
    for i, (name, model) in enumerate(by_name.items()):
        pieces = [errors for one in series for errors in _forecast_pieces(model, one, count, scale)]
        horizon, low, middle, high = _summarise(np.concatenate(pieces, axis=1))
        colour = OKABE_ITO[i % len(OKABE_ITO)]
        drawn.lines.extend(ax.plot(horizon, middle, color=colour, linewidth=1.6, label=name or None))
        drawn.bands.append(ax.fill_between(horizon, low, high, color=colour, alpha=0.2, linewidth=0))
    ax.axhline(1.0, color="0.4", linestyle="--", linewidth=0.9)
    ax.set_yscale("log")
    ax.set_xlabel("time after the last observation used")
    ax.set_ylabel("error / standard deviation")
    ax.grid(alpha=0.3)
    if legend and any(by_name):
        ax.legend(frameon=False)
    return drawn


def _name_models(models: object) -> dict[str, Any]:
    """Return the models by name; the name of a single one is empty."""
    if not isinstance(models, Mapping):
        return {"": require_dynamics(models, "models")}
    if not models:
        raise ValueError("models must be a Dynamics or a mapping of names to Dynamics, got an empty one")
    return {str(name): require_dynamics(one, f"models[{name!r}]") for name, one in models.items()}


def _forecast_pieces(model: Any, series: Series, count: int, scale: FloatArray) -> list[FloatArray]:
    """Return the horizons and errors, (2, observations), of the forecasts from each piece of a series."""
    pieces = []
    rows, clock, inputs = series.values, series.times, series.inputs
    for first in range(0, len(rows) - count, count):
        used, rest = slice(first, first + count), slice(first + count, None)
        if np.isnan(rows[used]).all():
            continue
        before, after = ({}, {}) if inputs is None else ({"inputs": inputs[used]}, {"inputs": inputs[first:]})
        y0 = model.initial_state(rows[used], clock[used], **before)
        forecasts = observe(model, model.simulate(y0, clock[first:], **after)[count:])
        present = ~np.isnan(rows[rest])
        squares = np.where(present, ((forecasts - rows[rest]) / scale) ** 2, 0.0)
        observed = present.any(axis=1)
        errors = np.sqrt(squares.sum(axis=1)[observed] / present.sum(axis=1)[observed])
        pieces.append(np.stack([(clock[rest] - clock[first + count - 1])[observed], errors]))
    return pieces


def _summarise(pieces: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the middles of the parts of the horizon, and quartiles of the errors in each."""
    horizon, errors = pieces
    order = np.argsort(horizon, kind="stable")
    parts = [part for part in np.array_split(order, min(BINS, len(order))) if len(part)]
    quartiles = np.array([np.quantile(errors[part], (0.25, 0.5, 0.75)) for part in parts])
    return np.array([np.median(horizon[part]) for part in parts]), *quartiles.T
