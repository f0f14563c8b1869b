"""Where to draw: the axes and figures that came, or new ones."""

from __future__ import annotations

from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure, SubFigure
from matplotlib.legend import Legend

Layout = Literal["constrained", "compressed"]
KEY = 30.0  # square points
SQUARE = (5.2, 4.0)  # inches: square axes and a legend beside them


def axes_or_new(ax: Axes | None, figsize: tuple[float, float] = SQUARE, layout: Layout = "compressed") -> Axes:
    """Return the axes that came, or those of a new figure; its layout keeps labels and legend of square axes in it."""
    if ax is None:
        from matplotlib import pyplot

        return pyplot.subplots(figsize=figsize, layout=layout)[1]
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be matplotlib Axes or None, got {type(ax).__name__}")
    return ax


def figure_or_new(fig: Figure | SubFigure | None, figsize: tuple[float, float]) -> Figure | SubFigure:
    """Return the figure that came, with a layout that keeps labels apart, or a new one."""
    if fig is None:
        from matplotlib import pyplot

        return pyplot.figure(figsize=figsize, layout="constrained")
    if not isinstance(fig, (Figure, SubFigure)):
        raise TypeError(f"fig must be a matplotlib Figure, a SubFigure or None, got {type(fig).__name__}")
    if isinstance(fig, Figure) and fig.get_layout_engine() is None:
        fig.set_layout_engine("constrained")
    return fig


def add_grid(fig: Figure | SubFigure, rows: int, columns: int, panels: int) -> list[Axes]:
    """Add axes for the first `panels` places of a grid, row by row."""
    places = fig.add_gridspec(rows, columns)
    return [fig.add_subplot(places[i // columns, i % columns]) for i in range(panels)]


def legend_beside(ax: Axes, legend: bool) -> None:
    """Add a legend of the labelled artists right of the axes, where it hides no point."""
    if legend:
        readable(ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, handletextpad=0.3))


def readable(legend: Legend) -> None:
    """Let the points in a legend be as large as its letters, however small those of the picture are."""
    for key in legend.legend_handles:
        if isinstance(key, PathCollection):
            key.set_sizes([KEY])


def spread(count: int, last: int) -> list[int]:
    """Return at most `count` whole numbers from `last` down to 0, evenly, in increasing order."""
    return [int(i) for i in np.unique(np.linspace(last, 0, count).round().astype(int))]
