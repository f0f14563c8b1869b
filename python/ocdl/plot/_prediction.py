"""Plot the predictions of a model behind the points."""

from __future__ import annotations

from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.base.names import pluralise
from ocdl.base.validation import FloatArray
from ocdl.plot._axes import add_legend, get_axes
from ocdl.plot._fit import Fit, draw_fit, is_regression
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
) -> Scene | Fit:
    """Draw the samples and what a model predicts.

    For a classifier: the points, and behind them the probability of the second of two classes, from blue through white
    at 1/2 to red. Of several classes, the most probable one has its colour, fainter where the model is less certain. A
    line divides the classes. With more than two features there is no background: the points are projected onto their
    principal axes, and the title says so.

    For a regressor: with one feature the samples and the predicted curve; with two the prediction as a background, with
    the samples in the colours of their targets; with more the predictions over the targets.

    Parameters
    ----------
    model : ODEClassifier, ODERegressor, Pipeline or (net, u)
        A fitted estimator, a pipeline that ends in one, or a network and its controls. For whole numbers `y` the
        outputs of a network are those of a training with cross entropy; for other numbers they are predictions.
    X : array_like of shape (samples, features)
    y : array_like of shape (samples,)
        Labels of the model, for a network 0, 1, ...; or targets.
    resolution : int
        Pixels of the background along an axis.
    legend, ax
        As for `data`; with two features of a regressor the legend is a colour bar.

    Returns
    -------
    Scene or Fit
        Of a classifier a scene, of a regressor a fit.

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
    if is_regression(model, y):
        return draw_fit(model, X, y, resolution=resolution, legend=legend, ax=ax)
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
