"""Plot the phase plane of a system: the arrows of its field, trajectories and observations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.quiver import Quiver
from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.dynamics.series import read_series
from ocdl.plot._axes import get_axes
from ocdl.plot._series import (
    FLOAT64,
    GREY,
    LINE,
    OBSERVED,
    component_label,
    require_dynamics,
    to_components,
    validate_components,
    validate_trajectories,
)

MARGIN = 0.06  # of the points' extent, on each side
LONGEST = 0.9  # of an arrow, in the distance of two arrows


class PhasePortrait(NamedTuple):
    """The artists of a phase portrait.

    Attributes
    ----------
    ax : Axes
    arrows : Quiver
        The field on a grid. The faster the state moves, the longer the arrow, up to the distance of two arrows.
    trajectories : list of Line2D
        One per trajectory.
    points : Line2D or None
        The observations.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np, ocdl.plot
    >>> drawn = ocdl.plot.phase_portrait(lambda y: -y, np.eye(2))
    >>> drawn.ax.get_xlabel(), drawn.arrows.N, drawn.trajectories, len(drawn.points.get_xdata())
    ('y0', 400, [], 2)
    """

    ax: Axes
    arrows: Quiver
    trajectories: list[Line2D]
    points: Line2D | None

    def __repr__(self) -> str:
        count = len(self.trajectories)
        return f"<PhasePortrait: {self.arrows.N} arrows, {count} trajector{'y' if count == 1 else 'ies'}>"


def phase_portrait(
    model: object,
    X: Any = None,
    *,
    trajectories: Any = None,
    components: Sequence[int] = (0, 1),
    at: ArrayLike | None = None,
    inputs: ArrayLike | None = None,
    resolution: int = 20,
    legend: bool = True,
    ax: Axes | None = None,
) -> PhasePortrait:
    """Draw where the states of a system go: the field as arrows, trajectories as lines, observations as points.

    Parameters
    ----------
    model : Dynamics or callable
        A fitted model, whose `derivative` is drawn, or a function of states (states, components) that returns their
        derivatives.
    X : array_like of shape (times, components), a stack or a list of these, optional
        Observations. NaN: missing.
    trajectories : array_like of shape (times, components), a stack or a list of these, optional
        What ``model.simulate`` returns.
    components : sequence of two int
        Which components are the horizontal and the vertical axis.
    at : array_like of shape (components,), optional
        The values of the other components, for the arrows; none: the medians of what is drawn.
    inputs : array_like of shape (inputs,), optional
        The inputs for the arrows, of a model that takes some; none: 0.
    resolution : int
        The number of arrows in a row.
    legend : bool
        Whether to add one.
    ax : Axes, optional
        Where to draw; none: on a new figure.

    Returns
    -------
    PhasePortrait

    Raises
    ------
    TypeError, ValueError
        If an argument is not of its kind, or neither `X` nor `trajectories` says which part of the plane to draw.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np, ocdl.plot
    >>> t = np.linspace(0, 6, 50)
    >>> circle = np.stack([np.sin(t), np.cos(t)], axis=1)
    >>> drawn = ocdl.plot.phase_portrait(lambda y: y[:, ::-1] * [1, -1], trajectories=circle, resolution=10)
    >>> drawn
    <PhasePortrait: 100 arrows, 1 trajectory>
    """
    derivative = _derivative(model, inputs)
    series = None if X is None else read_series(X, 1.0)
    observed = [] if series is None else [to_components(model, one.values) for one in series.members]
    lines = [] if trajectories is None else validate_trajectories(trajectories)
    if not observed and not lines:
        raise ValueError("X or trajectories is required: they say which part of the plane is drawn")
    widths = {one.shape[1] for one in (*observed, *lines)}
    if len(widths) > 1:
        raise ValueError(f"X and trajectories must have the same components, got {sorted(widths)} of them")
    points, width = np.concatenate([*observed, *lines]), widths.pop()
    pair = validate_components(components, width)
    if len(pair) != 2:
        raise ValueError(f"components must be two numbers, got {components!r}")
    resolution = validation.integer(resolution, "resolution", minimum=2)
    legend = validation.boolean(legend, "legend")
    names = getattr(model, "state_names_", None)
    centre = _middle(points) if at is None else _validate_state(at, width)
    ax = get_axes(ax)
    grid, cell = _make_grid(points[:, pair], resolution)
    states = np.tile(centre, (len(grid), 1))
    states[:, pair] = grid
    velocity = np.asarray(derivative(states), np.float64)
    if velocity.shape != states.shape:
        raise ValueError(
            f"model must return derivatives of shape {states.shape}, one per state, got shape {velocity.shape}"
        )
    arrows = _draw_arrows(ax, grid, velocity[:, pair], cell)
    drawn = [
        ax.plot(*line[:, pair].T, color=LINE, linewidth=1.4, zorder=3, label=None if i else "trajectories")[0]
        for i, line in enumerate(lines)
    ]
    dots = None
    if observed:
        rows = np.concatenate(observed)[:, pair]
        (dots,) = ax.plot(*rows.T, ".", color=OBSERVED, markersize=3.5, zorder=2, label="observations")
    ax.set_xlabel(component_label(names, pair[0]))
    ax.set_ylabel(component_label(names, pair[1]))
    if legend:
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    return PhasePortrait(ax, arrows, drawn, dots)


def _derivative(model: Any, inputs: ArrayLike | None) -> Callable[[FloatArray], Any]:
    """Return the field as a function of states."""
    if callable(model) and not isinstance(model, type):
        if inputs is not None:
            raise ValueError("inputs are for a Dynamics; a function has them inside")
        function: Callable[[FloatArray], Any] = model
        return function
    fitted = require_dynamics(model)
    count = len(fitted.input_names_)
    if inputs is None and not count:
        return lambda states: fitted.derivative(states)
    values = np.zeros(count) if inputs is None else validation.real_array(inputs, "inputs", FLOAT64).reshape(-1)
    return lambda states: fitted.derivative(states, inputs=np.tile(values, (len(states), 1)))


def _middle(points: FloatArray) -> FloatArray:
    """Return the median of each component, 0 for hidden ones."""
    is_seen = ~np.isnan(points).all(axis=0)
    middle = np.zeros(points.shape[1])
    middle[is_seen] = np.nanmedian(points[:, is_seen], axis=0)
    return middle


def _validate_state(at: ArrayLike, width: int) -> FloatArray:
    return validation.array_of_shape(at, "at", (width,), "(components,)", FLOAT64)


def _make_grid(points: FloatArray, resolution: int) -> tuple[FloatArray, FloatArray]:
    """Return the places of the arrows, (arrows, 2), and their distances."""
    low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
    extent = np.where(high > low, high - low, np.maximum(np.abs(high), 1.0))
    low, high = low - MARGIN * extent, high + MARGIN * extent
    axes = [np.linspace(low[i], high[i], resolution) for i in (0, 1)]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    return grid, (high - low) / (resolution - 1)


def _draw_arrows(ax: Axes, grid: FloatArray, velocity: FloatArray, cell: FloatArray) -> Quiver:
    """Draw arrows in cells: their direction is that of the field on the axes, whatever the units."""
    steps = velocity / cell
    speed = np.hypot(*steps.T)
    finite = speed[np.isfinite(speed)]
    typical = float(np.median(finite)) if finite.size and np.median(finite) > 0 else 1.0
    lengths = LONGEST * cell * (steps / (speed + typical)[:, None])
    return ax.quiver(
        *grid.T,
        *lengths.T,
        angles="xy",
        scale_units="xy",
        scale=1.0,
        pivot="middle",
        color=GREY,
        width=0.0028,
        headwidth=4,
        zorder=1,
    )
