"""Plot the predictions of a model behind the points."""

from __future__ import annotations

from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.base.names import pluralise
from ocdl.base.validation import FloatArray
from ocdl.plot._axes import add_legend, get_axes
from ocdl.plot._model import resolve_model
from ocdl.plot._plane import Plane, Window, validate_features
from ocdl.plot._scene import Scene, draw_scene


def prediction(
    model: object,
    X: ArrayLike,
    y: ArrayLike,
    *,
    resolution: int = 200,
    legend: bool = True,
    ax: Axes | None = None,
) -> Scene:
    """Draw the points, and behind them the classifier.

    The probability of two classes fades from blue through white at 1/2 to red; of several, the most probable one has
    its colour, fainter where the model is less certain. A line divides the classes. With more than two features the
    classifier is not drawn: the points are projected onto their principal axes, and the title says so.

    Parameters
    ----------
    model : ODEClassifier, Pipeline or (net, u)
        A fitted classifier, a pipeline that ends in one, or a network and its controls; the outputs of the latter are
        read as those of a training with cross entropy.
    X : array_like of shape (samples, features)
    y : array_like of shape (samples,)
        Labels of the model; for a network 0, 1, ...
    resolution : int
        Pixels of the background along an axis.
    legend, ax
        As for `data`.

    Returns
    -------
    Scene

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
    >>> net = ocdl.Network(2, 10)
    >>> scene = ocdl.plot.prediction((net, net.init(random_state=0)), X, y)
    >>> scene.background.get_clim()
    (0.0, 1.0)
    """
    flow = resolve_model(model)
    rows = validate_features(X)
    numbers = flow.classes.numbers(y, len(rows))
    legend = validation.boolean(legend, "legend")
    resolution = validation.integer(resolution, "resolution", minimum=2)
    plane = Plane.from_points(rows, "x")
    positions = plane.coordinates(rows)
    window = Window.from_points(positions)
    flow.probabilities(X)  # refuses data that do not fit, before a figure is created
    ax = get_axes(ax)

    def probabilities(pixels: FloatArray) -> FloatArray:
        return flow.probabilities(plane.points(pixels))

    is_drawn = plane.dim <= 2
    scene = draw_scene(ax, window, positions, numbers, flow.classes, probabilities, resolution if is_drawn else None)
    plane.label(ax)
    reason = f"{plane.note}\nno background: the classifier takes {pluralise(plane.dim, 'feature')}"
    ax.set_title("" if is_drawn else reason, fontsize="small")
    add_legend(ax, legend)
    return scene
