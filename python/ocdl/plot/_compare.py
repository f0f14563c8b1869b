"""Draw the same plot of several things, side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from ocdl.base import validation
from ocdl.plot._axes import add_grid, enlarge_legend_markers, get_figure

PANEL = 2.5  # inches
LONGEST_ROW = 4

Draw = Callable[..., Any]


def compare(
    things: Mapping[str, Any],
    draw: Draw | Mapping[str, Draw],
    *,
    columns: int | None = None,
    fig: Figure | SubFigure | None = None,
) -> dict[str, Any]:
    """Draw several things in the same way, in a grid with their names above.

    The legends of the panels become one below the grid.

    Parameters
    ----------
    things : mapping of names to anything
        Models, data sets, histories.
    draw : callable, or mapping of names to callables
        Called as ``draw(thing, ax=ax)``. With several, each is a row, named on the left, and each thing a column.
    columns : int, optional
        Panels per row, with one callable; none: at most 4.
    fig : Figure or SubFigure, optional
        Where to draw; none: a new figure.

    Returns
    -------
    dict
        The result of `draw` for each name; with several callables a dict of these for each of them.

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
    >>> models = {}
    >>> for name in ("net", "resnet"):
    ...     net = ocdl.Network.preset(name, 2, 10)
    ...     models[name] = net, net.init(random_state=0)
    >>> rows = {
    ...     "prediction": lambda model, ax: ocdl.plot.prediction(model, X, y, ax=ax),
    ...     "transformation": lambda model, ax: ocdl.plot.transformation(model, X, y, ax=ax),
    ... }
    >>> drawn = ocdl.plot.compare(models, rows)
    >>> drawn["prediction"]["resnet"].ax.get_title()
    'resnet'
    """
    if not isinstance(things, Mapping):
        raise TypeError(f"things must be a mapping of names to what is drawn, got {type(things).__name__}")
    if len(things) == 0:
        raise ValueError("things must have at least one entry, got none")
    draws = _resolve_draws(draw)
    if isinstance(draw, Mapping):
        rows, width = len(draws), len(things)
        if columns is not None:
            raise ValueError("columns must be None where draw has several rows: each thing is a column")
    else:
        width = min(len(things), LONGEST_ROW if columns is None else validation.integer(columns, "columns", minimum=1))
        rows = math.ceil(len(things) / width)
    fig = get_figure(fig, (PANEL * width, PANEL * rows + 0.3))
    panels = iter(add_grid(fig, rows, width, len(draws) * len(things)))
    drawn: dict[str, dict[str, Any]] = {}
    keys: dict[str, Artist] = {}
    for row, one_way in draws.items():
        drawn[row] = {}
        for i, (name, thing) in enumerate(things.items()):
            ax = next(panels)
            drawn[row][name] = one_way(thing, ax=ax)
            keys |= _pop_legend(ax)
            if row == next(iter(draws)):
                ax.set_title(f"{name}\n{ax.get_title()}".strip(), fontsize="medium")
            elif ax.get_title():  # a title here would seem to belong to the axes above
                ax.set_xlabel(f"{ax.get_xlabel()}\n{ax.get_title()}".strip())
                ax.set_title("")
            if i == 0 and row:
                ax.set_ylabel(f"{row}\n{ax.get_ylabel()}".strip(), rotation=90, ha="center", va="bottom")
    if keys:
        enlarge_legend_markers(
            fig.legend(keys.values(), keys.keys(), loc="outside lower center", ncols=min(len(keys), 6), frameon=False)
        )
    return drawn if isinstance(draw, Mapping) else drawn[""]


def _resolve_draws(draw: Draw | Mapping[str, Draw]) -> dict[str, Draw]:
    draws = dict(draw) if isinstance(draw, Mapping) else {"": draw}
    for name, one in draws.items():
        if not callable(one):
            where = f"draw[{name!r}]" if name else "draw"
            raise TypeError(f"{where} must be callable as draw(thing, ax=ax), got {type(one).__name__}")
    if not draws:
        raise ValueError("draw must have at least one entry, got none")
    return draws


def _pop_legend(ax: Axes) -> dict[str, Artist]:
    """Remove the legend of the axes and return its entries."""
    legend = ax.get_legend()
    if legend is None:
        return {}
    entries = {text.get_text(): key for text, key in zip(legend.get_texts(), legend.legend_handles, strict=True) if key}
    legend.remove()
    return entries
