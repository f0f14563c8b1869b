"""Plot the time steps of one or several networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.model.controls import Controls
from ocdl.plot._axes import get_axes
from ocdl.plot._style import line_styles
from ocdl.training.history import History

HATCHES = ("", "////", "----", "xxxx", "....", "++++", "||||", "oooo")
WIDE = (5.6, 3.4)  # inches
GROUP = 0.84  # width of the bars of a layer


class Bars(NamedTuple):
    """The artists of plotted time steps.

    Attributes
    ----------
    ax : Axes
    bars : list of BarContainer
        One per network.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import ocdl, ocdl.plot
    >>> drawn = ocdl.plot.time_steps([0.5, 0.0, 0.5])
    >>> drawn.ax.get_xlabel(), len(drawn.bars[0])
    ('layer', 3)
    """

    ax: Axes
    bars: list[BarContainer]

    def __repr__(self) -> str:
        return f"<Bars: the steps of {len(self.bars)} network{'' if len(self.bars) == 1 else 's'}>"


def time_steps(
    steps: ArrayLike | Controls | History | Mapping[str, Any], *, legend: bool = True, ax: Axes | None = None
) -> Bars:
    """Draw the time step of each layer as a bar.

    Parameters
    ----------
    steps : array_like of shape (layers,), Controls, History, or mapping of names to these
        The steps themselves, the controls ``u`` for ``u.h``, or a history for the last of its snapshots. Several
        networks stand side by side in each layer.
    legend : bool
        Whether to add one where the networks have names.
    ax : Axes, optional
        Where to draw; none: on a new figure.

    Returns
    -------
    Bars
        In the order of the networks.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of its kind, or what is given does not fit each other; the message names it.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import ocdl, ocdl.plot
    >>> u = ocdl.Network(2, 4).init(random_state=0)
    >>> drawn = ocdl.plot.time_steps({"ResNet": u, "sparse": [0.7, 0.0, 0.0, 0.3]})
    >>> [len(bars) for bars in drawn.bars]
    [4, 4]
    """
    by_name = steps if isinstance(steps, Mapping) else {"": steps}
    if not by_name:
        raise ValueError("steps must be an array, Controls, a History or a mapping of names to these, got an empty one")
    values = [_get_steps(one, f"steps[{name!r}]" if name else "steps") for name, one in by_name.items()]
    legend = validation.boolean(legend, "legend")
    ax = get_axes(ax, WIDE, "constrained")
    width = GROUP / len(values)
    ax.axhline(0, color="0.2", linewidth=0.8, zorder=2)
    drawn = []
    styles = line_styles(map(str, by_name))
    for i, (name, h) in enumerate(zip(by_name, values, strict=True)):
        x = np.arange(1, len(h) + 1) + (i + 0.5) * width - GROUP / 2
        drawn.append(
            ax.bar(
                x,
                h,
                width,
                color=styles[i]["color"],
                hatch=HATCHES[i % len(HATCHES)],
                edgecolor="white",
                linewidth=0.3,
                label=str(name) or None,
                zorder=3,
            )
        )
    ax.set_xlim(0.4, max(map(len, values)) + 0.6)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True, min_n_ticks=1))
    ax.set_xlabel("layer")
    ax.set_ylabel("time step $h$")
    if legend and any(by_name):
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(len(by_name), 4), frameon=False)
    return Bars(ax, drawn)


def _get_steps(one: Any, name: str) -> FloatArray:
    if isinstance(one, Controls):
        one = one.h
    elif isinstance(one, History):
        one = one.time_steps[-1]
    h = validation.real_array(one, name, np.dtype(np.float64))
    if h.ndim != 1:
        raise ValueError(f"{name} must have one dimension, (layers,), got shape {h.shape}")
    if len(h) == 0:
        raise ValueError(f"{name} has no time steps: a feed-forward network, or an empty array")
    return h
