"""Plot what each layer does to the plane: its arrows, and a grid that moves with the points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure, SubFigure
from matplotlib.quiver import Quiver
from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.base.names import pluralise
from ocdl.base.validation import FloatArray
from ocdl.plot._axes import add_grid, enlarge_legend_markers, get_figure
from ocdl.plot._model import TrainedFlow, resolve_model
from ocdl.plot._plane import Window
from ocdl.plot._scene import draw_points
from ocdl.plot._snapshots import layer_title, resolve_layers

PANEL = 2.6  # inches
LONGEST_ROW = 3
POINTS_PER_LINE = 100
GRID_COLOUR, ARROW_COLOUR = "0.6", "0.25"
LONGEST_ARROW = 0.9  # of the distance between two arrows


class FlowPanel(NamedTuple):
    """The artists of one panel of a plotted flow.

    Attributes
    ----------
    ax : Axes
    points : list of PathCollection
        One per class.
    grid : LineCollection
        The lines of the grid where the layers have moved them.
    arrows : Quiver or None
        The steps of the next layer; none after the last one.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import ocdl, ocdl.plot
    >>> X, y = ocdl.datasets.make_spiral(200, random_state=0)
    >>> net = ocdl.Network(2, 5)
    >>> first, last = ocdl.plot.flow((net, net.init(random_state=0)), X, y, layers=[0, 5])
    >>> first
    <FlowPanel: layer 0, data>
    >>> first.ax is last.ax, first.arrows is None, last.arrows is None, len(last.grid.get_segments()), len(last.points)
    (False, False, True, 26, 2)
    """

    ax: Axes
    points: list[PathCollection]
    grid: LineCollection
    arrows: Quiver | None

    def __repr__(self) -> str:
        return f"<FlowPanel: {self.ax.get_title()}>"


def flow(
    model: object,
    X: ArrayLike,
    y: ArrayLike,
    *,
    layers: int | Sequence[int] = 6,
    cells: int = 12,
    legend: bool = True,
    fig: Figure | SubFigure | None = None,
) -> list[FlowPanel]:
    """Draw what the layers do to the plane: the points, a grid that moves with them, and arrows.

    Each panel shows the points and the grid after some of the layers. Its arrows show where the next layer would move
    points that are there; all panels have the same scale, in which the longest arrow is as long as a cell of the grid
    before the first layer.

    Parameters
    ----------
    model, X, y
        As for `prediction`; the network takes two features and has no augmented dimension.
    layers : int or sequence of int
        How many panels, evenly over the layers from 0, the data, to N; or after which layers.
    cells : int
        Cells of the grid, and arrows, along an axis.
    legend : bool
        Whether to add one, below the panels.
    fig : Figure or SubFigure, optional
        Where to draw; none: a new figure.

    Returns
    -------
    list of FlowPanel
        One per panel.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of its kind, or what is given does not fit each other; the message names it.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import ocdl, ocdl.plot
    >>> X, y = ocdl.datasets.make_donut2d(200, random_state=0)
    >>> net = ocdl.Network(2, 10, tableau="kutta4")
    >>> panels = ocdl.plot.flow((net, net.init(random_state=0)), X, y, layers=3)
    >>> [panel.ax.get_title() for panel in panels]
    ['layer 0, data', 'layer 5', 'layer 10']
    """
    trained = resolve_model(model)
    net = trained.network
    if net.dim != 2 or net.n_features != 2:
        got = f"{pluralise(net.n_features, 'feature')} and augment={net.dim - net.n_features}"
        raise ValueError(f"model must have two features and no augmented dimension, got {got}")
    if net.n_inputs:
        raise ValueError(f"model must have no inputs, got {net.n_inputs}")
    selected = resolve_layers(layers, net.n_layers)
    states = trained.states(X)
    numbers = trained.classes.numbers(y, states.shape[1])
    cells = validation.integer(cells, "cells", minimum=2)
    legend = validation.boolean(legend, "legend")
    window = Window.from_points(states[0])
    lines = net.forward(trained.controls, make_grid(window, cells).reshape(-1, 2)).states.astype(np.float64)
    shown = Window.from_points(np.concatenate([states[selected].reshape(-1, 2), lines[selected].reshape(-1, 2)]))
    starts = shown.grid(cells)
    steps = [layer_step(trained, j, starts) for j in selected if j < net.n_layers]
    longest = max((float(np.hypot(*step.T).max()) for step in steps), default=0.0) or 1.0
    scale = longest * cells / (LONGEST_ARROW * (shown.right - shown.left))
    columns = min(len(selected), LONGEST_ROW)
    rows = math.ceil(len(selected) / columns)
    fig = get_figure(fig, (PANEL * columns, PANEL * rows + 0.6))
    panels = []
    for i, ax in enumerate(add_grid(fig, rows, columns, len(selected))):
        layer = selected[i]
        moved = LineCollection(
            list(lines[layer].reshape(2 * (cells + 1), POINTS_PER_LINE, 2)),
            colors=GRID_COLOUR,
            linewidths=0.6,
            zorder=1,
        )
        ax.add_collection(moved)
        arrows = None
        if layer < net.n_layers:
            arrows = ax.quiver(
                *starts.T, *steps[i].T, angles="xy", scale_units="xy", scale=scale, color=ARROW_COLOUR, width=0.004
            )
            arrows.set_zorder(2)
        points = draw_points(ax, states[layer], numbers, trained.classes)
        shown.apply(ax)
        ax.set_title(layer_title(layer), fontsize="medium")
        ax.tick_params(labelsize="x-small", labelleft=i % columns == 0)
        panels.append(FlowPanel(ax, points, moved, arrows))
    if legend:
        columns = min(len(trained.classes), LONGEST_ROW)
        enlarge_legend_markers(
            fig.legend(handles=panels[0].points, loc="outside lower center", ncols=columns, frameon=False)
        )
    return panels


def make_grid(window: Window, cells: int) -> FloatArray:
    """Return the points of the lines of a grid, (lines, points, 2): the vertical ones, then the horizontal ones."""
    x, y = np.linspace(window.left, window.right, cells + 1), np.linspace(window.bottom, window.top, cells + 1)
    along_x = np.linspace(window.left, window.right, POINTS_PER_LINE)
    along_y = np.linspace(window.bottom, window.top, POINTS_PER_LINE)
    vertical = np.stack(np.broadcast_arrays(x[:, None], along_y), axis=-1)
    horizontal = np.stack(np.broadcast_arrays(along_x, y[:, None]), axis=-1)
    return np.concatenate([vertical, horizontal])


def layer_step(trained: TrainedFlow, layer: int, starts: FloatArray) -> FloatArray:
    """Return how far one layer moves points, by a network of this layer alone."""
    net = trained.network
    one = replace(net, n_layers=1, control_intervals=None, time_steps="free" if net.residual else net.time_steps)
    indices = {"field": net.layer_sets[layer], "steps": layer}
    parts = {
        part.name: values if part.role == "readout" else values[indices[part.role]][None]
        for part, values in zip(net.parts, trained.controls.parts().values(), strict=True)
        if values.size
    }
    moved = one.final_state(one.controls(**parts), starts)
    step: FloatArray = moved.astype(np.float64) - starts
    return step
