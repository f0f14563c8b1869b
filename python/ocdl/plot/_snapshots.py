"""Plot the points after some of the layers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure, SubFigure
from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.plot._axes import add_grid, enlarge_legend_markers, get_figure, space_evenly
from ocdl.plot._model import resolve_model
from ocdl.plot._plane import Plane, Window
from ocdl.plot._scene import Scene
from ocdl.plot._transformation import draw_states

PANEL = 1.9  # inches
LONGEST_ROW = 6


def snapshots(
    model: object,
    X: ArrayLike,
    y: ArrayLike,
    *,
    layers: int | Sequence[int] = 6,
    same_limits: bool = True,
    resolution: int = 200,
    legend: bool = True,
    fig: Figure | SubFigure | None = None,
) -> list[Scene]:
    """Draw the points after some of the layers, one panel each; the last layer over the linear classifier.

    All panels show the same plane; states with more than two components are projected onto the first two principal
    axes of all states that are shown, and the title says so.

    Parameters
    ----------
    model, X, y, resolution, legend
        As for `prediction`; the legend is below the panels.
    layers : int or sequence of int
        How many panels, evenly over the layers from 0, the data, to N; or after which layers.
    same_limits : bool
        Whether all panels show the same square; otherwise each shows its points.
    fig : Figure or SubFigure, optional
        Where to draw; none: a new figure.

    Returns
    -------
    list of Scene
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
    >>> X, y = ocdl.datasets.make_spiral(200, random_state=0)
    >>> net = ocdl.Network(2, 10)
    >>> panels = ocdl.plot.snapshots((net, net.init(random_state=0)), X, y, layers=3)
    >>> [panel.ax.get_title() for panel in panels]
    ['layer 0, data', 'layer 5', 'layer 10']
    """
    flow = resolve_model(model)
    selected = resolve_layers(layers, flow.network.n_layers)
    states = flow.states(X)[selected]
    numbers = flow.classes.numbers(y, states.shape[1])
    legend, same_limits = validation.boolean(legend, "legend"), validation.boolean(same_limits, "same_limits")
    resolution = validation.integer(resolution, "resolution", minimum=2)
    plane = Plane.from_points(states, "y")
    positions = plane.coordinates(states)
    if same_limits:
        windows = [Window.from_points(positions)] * len(selected)
    else:
        windows = [Window.from_points(of_layer) for of_layer in positions]
    columns = min(len(selected), LONGEST_ROW)
    rows = math.ceil(len(selected) / columns)
    fig = get_figure(fig, (PANEL * columns, PANEL * rows + 0.6))
    scenes = []
    for i, ax in enumerate(add_grid(fig, rows, columns, len(selected))):
        over_classifier = resolution if selected[i] == flow.network.n_layers else None
        scenes.append(draw_states(ax, flow, plane, states[i], numbers, windows[i], over_classifier))
        ax.set_title(layer_title(selected[i]), fontsize="medium")
        ax.tick_params(labelsize="x-small", labelleft=i % columns == 0 or not same_limits)
        if plane.dim == 1:
            ax.set_yticks([])
    if plane.note:
        fig.suptitle(plane.note, fontsize="small")
    if legend:
        columns = min(len(flow.classes), LONGEST_ROW)
        enlarge_legend_markers(
            fig.legend(handles=scenes[0].points, loc="outside lower center", ncols=columns, frameon=False)
        )
    return scenes


def layer_title(layer: int) -> str:
    """Return the title of a panel: the layers count from 1, and before the first are the data."""
    return f"layer {layer}" if layer else "layer 0, data"


def resolve_layers(layers: int | Sequence[int], n_layers: int) -> list[int]:
    """Return the layers to show, each a number from 0 to N."""
    if not isinstance(layers, (Sequence, np.ndarray)) or isinstance(layers, str):
        return space_evenly(validation.integer(layers, "layers", minimum=1), n_layers)
    if len(layers) == 0:
        raise ValueError(f"layers must name at least one layer from 0 to {n_layers}, got none")
    return [validation.integer_up_to(layer, f"layers[{i}]", n_layers + 1) for i, layer in enumerate(layers)]
