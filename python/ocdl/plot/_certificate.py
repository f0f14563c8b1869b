"""Plot a certificate: Taylor remainders, drift of <p, v>, order of convergence, norm of the gradient."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

from ocdl.analysis.certificate import Certificate
from ocdl.base.validation import FloatArray
from ocdl.plot._axes import add_grid, get_figure
from ocdl.plot._style import GUIDE, MARKERS, OKABE_ITO

SIZE = (9.0, 6.4)  # inches
APART = 4.0  # factor between a curve and its guide, so that both are visible
ROUNDOFF = float(np.finfo(np.float64).eps)
SMALLEST = ROUNDOFF**2  # where 0 is drawn on a logarithmic axis


class Panels(NamedTuple):
    """The axes of a plotted certificate.

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
    each layer, with the limit of roundoff; how flows with more layers converge, with a guide
    of the tableau's order; and the norm of the gradient by each part of the controls.

    Parameters
    ----------
    report : Certificate
        The result of `Network.certify`.
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
    fig = get_figure(fig, SIZE)
    panels = Panels(*add_grid(fig, 2, 2, 4))
    _draw_taylor(panels.taylor, report)
    _draw_drift(panels.drift, report)
    _draw_order(panels.order, report)
    _draw_residuals(panels.residuals, report)
    for ax in panels:
        ax.grid(alpha=0.3)
    return panels


def _draw_taylor(ax: Axes, report: Certificate) -> None:
    steps = report.taylor.steps
    names = (r"$|J(u+\varepsilon w) - J(u)|$", r"$|J(u+\varepsilon w) - J(u) - \varepsilon\langle g,w\rangle|$")
    for i, remainders in enumerate((report.taylor.order0, report.taylor.order1)):
        shown = np.maximum(remainders, SMALLEST)
        ax.loglog(steps, shown, marker=MARKERS[i], color=OKABE_ITO[i], markersize=4, label=names[i])
        _draw_guide(ax, steps, shown[0] * (steps / steps[0]) ** (i + 1), f"slope {i + 1}", ":" if i == 0 else "--")
    ax.set_ylim(shown.min() / 10, 10 * APART * max(report.taylor.order0.max(), SMALLEST))
    ax.set_xlabel(r"step size $\varepsilon$")
    ax.set_title("Taylor remainders")
    ax.legend(frameon=False, fontsize="small", loc="upper left")


def _draw_drift(ax: Axes, report: Certificate) -> None:
    shown = np.maximum(report.drift[1:], ROUNDOFF / 8)
    ax.semilogy(np.arange(1, len(report.drift)), shown, "o-", color=OKABE_ITO[0], markersize=4)
    ax.axhline(report.drift_limit, color=GUIDE, linestyle="--", linewidth=1)
    ax.annotate("roundoff", (0.99, report.drift_limit), xycoords=("axes fraction", "data"), ha="right", va="bottom")
    ax.set_ylim(top=10 * max(report.drift_limit, report.drift.max()))
    ax.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True, min_n_ticks=1))
    ax.set_xlabel("layer")
    ax.set_title(r"relative drift of $\langle p, v\rangle$")


def _draw_order(ax: Axes, report: Certificate) -> None:
    convergence = report.convergence
    ax.set_title("convergence of the flow")
    ax.set_xlabel("layers")
    if len(convergence.layers):
        ax.loglog(
            convergence.layers,
            convergence.differences,
            "o-",
            color=OKABE_ITO[0],
            markersize=4,
            label="difference to twice as many",
        )
        order = report.network.tableau.order
        _draw_guide(
            ax,
            convergence.layers,
            convergence.differences[-1] * (convergence.layers[-1] / convergence.layers) ** order,
            f"order {order}",
            "--",
        )
        ax.set_xticks(convergence.layers, [str(n) for n in convergence.layers])
        ax.minorticks_off()
        ax.legend(frameon=False, fontsize="small", loc="lower left")
    else:
        ax.set_xticks([])
        ax.set_yticks([])
    if convergence.reason:
        ax.text(
            0.5, 0.95, convergence.reason, transform=ax.transAxes, ha="center", va="top", fontsize="small", wrap=True
        )


def _draw_residuals(ax: Axes, report: Certificate) -> None:
    parts, norms = list(report.residuals), np.array(list(report.residuals.values()))
    ax.bar(parts, norms, color=OKABE_ITO[0], zorder=3)
    if norms.any():
        ax.set_yscale("log")
        ax.set_ylim(norms[norms > 0].min() / 10)
    ax.set_title("norm of the gradient")


def _draw_guide(ax: Axes, x: FloatArray, y: FloatArray, label: str, style: str) -> None:
    ax.loglog(x, APART * y, style, color=GUIDE, linewidth=1, zorder=1, label=label)
