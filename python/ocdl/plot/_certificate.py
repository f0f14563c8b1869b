"""A certificate: Taylor remainders, the product of costates and variations, the order, what is left of the gradient."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

from ocdl.analysis.certificate import Certificate
from ocdl.base.validation import FloatArray
from ocdl.plot._axes import add_grid, figure_or_new
from ocdl.plot._classes import MARKERS, OKABE_ITO

SIZE = (9.0, 6.4)  # inches
GREY = "0.5"
APART = 4.0  # times the height of a curve at which its guide is drawn, so that both are seen
ROUNDOFF = float(np.finfo(np.float64).eps)
LEAST = ROUNDOFF**2  # where 0 is drawn: it has no place on a logarithmic axis


class Panels(NamedTuple):
    """What a picture of a certificate consists of.

    Attributes
    ----------
    taylor, drift, order, residuals : Axes
        The axes of the four panels.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import ocdl, ocdl.plot
    >>> net = ocdl.Network(1, 3)
    >>> panels = ocdl.plot.certificate(net.certify(net.init(random_state=0), [[0.0], [1.0]], [0, 1]))
    >>> panels
    <Panels: taylor, drift, order, residuals>
    >>> panels.taylor.figure is panels.drift.figure is panels.order.figure is panels.residuals.figure
    True
    """

    taylor: Axes
    drift: Axes
    order: Axes
    residuals: Axes

    def __repr__(self) -> str:
        return f"<Panels: {', '.join(self._fields)}>"


def certificate(report: Certificate, *, fig: Figure | SubFigure | None = None) -> Panels:
    """Draw a certificate.

    Taylor remainders over the step size, with guides of slopes 1 and 2; how far <p[j], v[j]> is from its first value at
    each layer, with the line of what counts as roundoff; how flows with more layers approach each other, with a guide
    of the tableau's order; and the norm of the gradient by each part of the controls.

    Parameters
    ----------
    report : Certificate
        What `Network.certify` returned.
    fig : Figure or SubFigure, optional
        Where to draw; none: a new figure.

    Returns
    -------
    Panels

    Raises
    ------
    TypeError, ValueError
        If an argument is not of its kind, or what is given does not fit each other; the message names it.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import ocdl, ocdl.plot
    >>> X, y = ocdl.datasets.make_squares(100, random_state=0)
    >>> net = ocdl.Network(2, 10, tableau="kutta3")
    >>> panels = ocdl.plot.certificate(net.certify(net.init(random_state=0), X, y))
    >>> panels.drift.get_xlabel()
    'layer'
    """
    if not isinstance(report, Certificate):
        raise TypeError(f"report must be a Certificate, as net.certify() returns it, got {type(report).__name__}")
    fig = figure_or_new(fig, SIZE)
    panels = Panels(*add_grid(fig, 2, 2, 4))
    _taylor(panels.taylor, report)
    _drift(panels.drift, report)
    _order(panels.order, report)
    _residuals(panels.residuals, report)
    for ax in panels:
        ax.grid(alpha=0.3)
    return panels


def _taylor(ax: Axes, report: Certificate) -> None:
    steps = report.taylor.steps
    names = ("|J(u+ew) - J(u)|", "|J(u+ew) - J(u) - e<g,w>|")
    for i, remainders in enumerate((report.taylor.order0, report.taylor.order1)):
        shown = np.maximum(remainders, LEAST)
        ax.loglog(steps, shown, marker=MARKERS[i], color=OKABE_ITO[i], markersize=4, label=names[i])
        _guide(ax, steps, shown[0] * (steps / steps[0]) ** (i + 1), f"slope {i + 1}", ":" if i == 0 else "--")
    ax.set_ylim(shown.min() / 10, 10 * APART * max(report.taylor.order0.max(), LEAST))
    ax.set_xlabel("step size e")
    ax.set_title("Taylor remainders")
    ax.legend(frameon=False, fontsize="small", loc="upper left")


def _drift(ax: Axes, report: Certificate) -> None:
    shown = np.maximum(report.drift[1:], ROUNDOFF / 8)
    ax.semilogy(np.arange(1, len(report.drift)), shown, "o-", color=OKABE_ITO[0], markersize=4)
    ax.axhline(report.drift_limit, color=GREY, linestyle="--", linewidth=1)
    ax.annotate("roundoff", (0.99, report.drift_limit), xycoords=("axes fraction", "data"), ha="right", va="bottom")
    ax.set_ylim(top=10 * max(report.drift_limit, report.drift.max()))
    ax.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True, min_n_ticks=1))
    ax.set_xlabel("layer")
    ax.set_title("drift of <p, v>, relative")


def _order(ax: Axes, report: Certificate) -> None:
    found = report.convergence
    ax.set_title("convergence of the flow")
    ax.set_xlabel("layers")
    if len(found.layers):
        ax.loglog(
            found.layers, found.differences, "o-", color=OKABE_ITO[0], markersize=4, label="difference to twice as many"
        )
        order = report.network.tableau.order
        _guide(
            ax, found.layers, found.differences[-1] * (found.layers[-1] / found.layers) ** order, f"order {order}", "--"
        )
        ax.set_xticks(found.layers, [str(n) for n in found.layers])
        ax.minorticks_off()
        ax.legend(frameon=False, fontsize="small", loc="lower left")
    else:
        ax.set_xticks([])
        ax.set_yticks([])
    if found.reason:
        ax.text(0.5, 0.95, found.reason, transform=ax.transAxes, ha="center", va="top", fontsize="small", wrap=True)


def _residuals(ax: Axes, report: Certificate) -> None:
    parts, norms = list(report.residuals), np.array(list(report.residuals.values()))
    ax.bar(parts, norms, color=[OKABE_ITO[i] for i in range(len(parts))], zorder=3)
    if norms.any():
        ax.set_yscale("log")
        ax.set_ylim(norms[norms > 0].min() / 10)
    ax.set_title("norm of the gradient")


def _guide(ax: Axes, x: FloatArray, y: FloatArray, label: str, style: str) -> None:
    ax.loglog(x, APART * y, style, color=GREY, linewidth=1, zorder=1, label=label)
