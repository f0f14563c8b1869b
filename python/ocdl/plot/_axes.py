"""Get axes and figures: the given ones or new ones."""

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


def get_axes(ax: Axes | None, figsize: tuple[float, float] = SQUARE, layout: Layout = "compressed") -> Axes:
    """Return the given axes, or those of a new figure whose layout has room for labels and legend."""
    if ax is None:
        from matplotlib import pyplot

        return pyplot.subplots(figsize=figsize, layout=layout)[1]
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be matplotlib Axes or None, got {type(ax).__name__}")
    return ax


def get_figure(fig: Figure | SubFigure | None, figsize: tuple[float, float]) -> Figure | SubFigure:
    """Return the given figure, or a new one, with a layout that keeps labels apart."""
    if fig is None:
        from matplotlib import pyplot

        return pyplot.figure(figsize=figsize, layout="constrained")
    if not isinstance(fig, (Figure, SubFigure)):
        raise TypeError(f"fig must be a matplotlib Figure, a SubFigure or None, got {type(fig).__name__}")
    if isinstance(fig, Figure) and fig.get_layout_engine() is None:
        fig.set_layout_engine("constrained")
    return fig


def add_grid(fig: Figure | SubFigure, rows: int, columns: int, panels: int) -> list[Axes]:
    """Add axes in the first `panels` cells of a grid, row by row."""
    cells = fig.add_gridspec(rows, columns)
    return [fig.add_subplot(cells[i // columns, i % columns]) for i in range(panels)]


def add_legend(ax: Axes, legend: bool) -> None:
    """Add a legend to the right of the axes, where it hides no point."""
    if legend:
        enlarge_legend_markers(ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, handletextpad=0.3))


def enlarge_legend_markers(legend: Legend) -> None:
    """Enlarge the markers in a legend to the size of its letters."""
    for key in legend.legend_handles:
        if isinstance(key, PathCollection):
            key.set_sizes([KEY])


def space_evenly(count: int, last: int) -> list[int]:
    """Return at most `count` evenly spaced integers from 0 to `last`."""
    return [int(i) for i in np.unique(np.linspace(last, 0, count).round().astype(int))]
