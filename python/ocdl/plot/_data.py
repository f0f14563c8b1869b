"""Points by class."""

from __future__ import annotations

from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.plot._axes import add_legend, get_axes
from ocdl.plot._classes import Classes
from ocdl.plot._plane import Plane, Window, validate_features
from ocdl.plot._scene import Scene, draw_points


def data(
    X: ArrayLike, y: ArrayLike, *, classes: ArrayLike | None = None, legend: bool = True, ax: Axes | None = None
) -> Scene:
    """Draw points, each class with its colour and marker.

    One feature is drawn against 0; more than two are projected onto their first two principal axes.

    Parameters
    ----------
    X : array_like of shape (samples, features)
    y : array_like of shape (samples,)
        Labels: numbers or text.
    classes : array_like, optional
        All classes, where `y` does not have them all: their order determines the colours.
    legend : bool
        Whether to add one, right of the axes.
    ax : Axes, optional
        Where to draw; none: on a new figure.

    Returns
    -------
    Scene
        With one collection of points per class and no background.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of its kind, or what is given does not fit each other; the message names it.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import ocdl, ocdl.plot
    >>> X, y = ocdl.datasets.make_spiral(random_state=0)
    >>> [str(points.get_label()) for points in ocdl.plot.data(X, y).points]
    ['class 0', 'class 1']
    """
    legend = validation.boolean(legend, "legend")
    rows, known = validate_features(X), Classes.from_labels(y, classes)
    numbers = known.numbers(y, len(rows))
    plane = Plane.from_points(rows, "x")
    positions = plane.coordinates(rows)
    ax = get_axes(ax)
    points = draw_points(ax, positions, numbers, known)
    Window.from_points(positions).apply(ax)
    plane.label(ax)
    ax.set_title(plane.note, fontsize="small")
    add_legend(ax, legend)
    return Scene(ax, points, None, [])
