"""Plot the transformed points over the linear classifier."""

from __future__ import annotations

from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.plot._axes import add_legend, get_axes
from ocdl.plot._model import TrainedFlow, resolve_model
from ocdl.plot._plane import Plane, Window
from ocdl.plot._scene import Scene, draw_scene


def transformation(
    model: object,
    X: ArrayLike,
    y: ArrayLike,
    *,
    resolution: int = 200,
    legend: bool = True,
    ax: Axes | None = None,
) -> Scene:
    """Draw the points at time T over the linear classifier W y + mu, in the plane of the state.

    A state with more than two components, such as an augmented one, is projected onto the first two principal axes of
    the points, and the title says so; the classifier is then drawn on the plane of these axes through the mean of the
    points, and a point off that plane may be classified differently.

    Parameters
    ----------
    model, X, y, resolution, legend, ax
        As for `prediction`.

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
    >>> net = ocdl.Network(2, 10, augment=1)
    >>> scene = ocdl.plot.transformation((net, net.init(random_state=0)), X, y)
    >>> scene.ax.get_title()
    'projection onto two principal axes'
    """
    flow = resolve_model(model)
    states = flow.states(X)[-1]
    numbers = flow.classes.numbers(y, len(states))
    legend = validation.boolean(legend, "legend")
    resolution = validation.integer(resolution, "resolution", minimum=2)
    plane = Plane.from_points(states, "y")
    ax = get_axes(ax)
    scene = draw_states(ax, flow, plane, states, numbers, Window.from_points(plane.coordinates(states)), resolution)
    plane.label(ax)
    ax.set_title(plane.note, fontsize="small")
    add_legend(ax, legend)
    return scene


def draw_states(
    ax: Axes,
    flow: TrainedFlow,
    plane: Plane,
    states: FloatArray,
    numbers: LabelArray,
    window: Window,
    resolution: int | None,
) -> Scene:
    """Draw states of shape (samples, dim), over the linear classifier if a resolution is given."""

    def probabilities(pixels: FloatArray) -> FloatArray:
        return flow.plane_probabilities(pixels, plane)

    return draw_scene(ax, window, plane.coordinates(states), numbers, flow.classes, probabilities, resolution)
