"""Plot the predictions of a regressor: a curve, a surface, or predictions over targets."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import Normalize
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.base.names import pluralise
from ocdl.base.validation import FloatArray
from ocdl.model.controls import Controls
from ocdl.network import Network
from ocdl.plot._axes import get_axes
from ocdl.plot._plane import Plane, Window, validate_features
from ocdl.plot._style import COLOURS, GUIDE, OKABE_ITO

POINTS_OF_CURVE = 400
COLOUR_MAP = "cividis"  # the same for all kinds of colour vision
WIDE = (5.2, 3.6)  # inches

Predict = Callable[[FloatArray], FloatArray]


class Fit(NamedTuple):
    """The artists of a plotted regression.

    Attributes
    ----------
    ax : Axes
    points : PathCollection
        The samples.
    curve : Line2D or None
        The prediction over one feature; with three features or more, the line where predictions equal targets.
    background : AxesImage or None
        The prediction over two features.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np, ocdl, ocdl.plot
    >>> x = np.linspace(-1, 1, 50)[:, None]
    >>> net = ocdl.Network(1, 5)
    >>> fit = ocdl.plot.prediction((net, net.init(random_state=0)), x, x[:, 0] ** 2)
    >>> fit
    <Fit: 50 points>
    >>> len(fit.points.get_offsets()), fit.curve is None, fit.background is None, fit.ax.get_xlabel()
    (50, False, True, '$x$')
    """

    ax: Axes
    points: PathCollection
    curve: Line2D | None
    background: AxesImage | None

    def __repr__(self) -> str:
        return f"<Fit: {pluralise(len(np.asarray(self.points.get_offsets())), 'point')}>"


def is_regression(model: object, y: ArrayLike) -> bool:
    """Return whether a model predicts numbers; of a network with controls the targets decide: labels are 0, 1, ..."""
    if isinstance(model, tuple):
        targets = np.asarray(y)
        return targets.dtype.kind == "f" and bool((targets != np.round(targets)).any())
    from sklearn.pipeline import Pipeline

    from ocdl.estimator import ODERegressor

    estimator = model.steps[-1][1] if isinstance(model, Pipeline) else model
    return isinstance(estimator, ODERegressor)


def draw_fit(model: Any, X: ArrayLike, y: ArrayLike, *, resolution: int, legend: bool, ax: Axes | None) -> Fit:
    """Draw samples and predictions, as `prediction` says."""
    rows = validate_features(X)
    targets = validation.real_array(y, "y", np.dtype(np.float64))
    if targets.shape != (len(rows),):
        raise ValueError(f"y must have shape ({len(rows)},), one target of each sample, got {targets.shape}")
    legend = validation.boolean(legend, "legend")
    resolution = validation.integer(resolution, "resolution", minimum=2)
    predict = _resolve_predictor(model)
    predicted = predict(rows)  # refuses data that do not fit, before a figure is created
    if predicted.shape != targets.shape:
        raise ValueError(f"model must predict one number, got predictions of shape {predicted.shape}")
    features = rows.shape[1]
    ax = get_axes(ax, WIDE, "constrained")
    if features == 2:
        return _draw_surface(ax, predict, rows, targets, resolution, legend)
    drawn = _draw_curve(ax, predict, rows, targets) if features == 1 else _draw_agreement(ax, predicted, targets)
    if legend:
        ax.legend(frameon=False)
    return drawn


def _resolve_predictor(model: Any) -> Predict:
    if not isinstance(model, tuple):

        def predict(X: FloatArray) -> FloatArray:
            with warnings.catch_warnings():  # a grid has no feature names
                warnings.filterwarnings("ignore", message="X does not have valid feature names")
                return np.asarray(model.predict(X), dtype=np.float64)

        return predict
    if len(model) < 2 or not isinstance(model[0], Network) or not isinstance(model[1], Controls):
        kinds = ", ".join(type(part).__name__ for part in model)
        raise TypeError(f"model must be a fitted estimator, a Pipeline or a pair (net, u), got a tuple of ({kinds})")
    net, u = model[:2]
    if net.n_outputs != 1:
        raise ValueError(f"model must have one output, got {net.n_outputs}")
    return lambda X: net.predict(u, X)[:, 0].astype(np.float64)


def _draw_curve(ax: Axes, predict: Predict, rows: FloatArray, targets: FloatArray) -> Fit:
    x = np.linspace(rows.min(), rows.max(), POINTS_OF_CURVE)
    points = _scatter(ax, rows[:, 0], targets, "data")
    (curve,) = ax.plot(x, predict(x[:, None]), color=OKABE_ITO[1], linewidth=2, label="prediction", zorder=4)
    ax.set_xlabel("$x$")
    ax.set_ylabel("$y$", rotation=0, ha="right", va="center")
    return Fit(ax, points, curve, None)


def _draw_surface(
    ax: Axes, predict: Predict, rows: FloatArray, targets: FloatArray, resolution: int, legend: bool
) -> Fit:
    window = Window.from_points(rows)
    values = predict(window.grid(resolution)).reshape(resolution, resolution)
    norm = Normalize(min(values.min(), targets.min()), max(values.max(), targets.max()))
    background = ax.imshow(values, cmap=COLOUR_MAP, norm=norm, extent=window, origin="lower", zorder=0)
    points = ax.scatter(
        rows[:, 0],
        rows[:, 1],
        c=targets,
        cmap=COLOUR_MAP,
        norm=norm,
        s=22,
        edgecolors="white",
        linewidths=0.7,
        zorder=3,
    )
    window.apply(ax)
    Plane.from_points(rows, "x").label(ax)
    figure = ax.get_figure(root=False)
    if legend and figure is not None:
        figure.colorbar(background, ax=ax, label="$y$: the plane is predicted, the points are data")
    return Fit(ax, points, None, background)


def _draw_agreement(ax: Axes, predicted: FloatArray, targets: FloatArray) -> Fit:
    window = Window.from_points(np.stack([targets, predicted], axis=-1))
    limits = [min(window.left, window.bottom), max(window.right, window.top)]
    points = _scatter(ax, targets, predicted, "data")
    (line,) = ax.plot(limits, limits, color=GUIDE, linestyle="--", linewidth=1, label="prediction = target", zorder=2)
    ax.set(xlim=limits, ylim=limits, aspect="equal")
    ax.set_xlabel("target")
    ax.set_ylabel("prediction")
    return Fit(ax, points, line, None)


def _scatter(ax: Axes, x: FloatArray, y: FloatArray, label: str) -> PathCollection:
    size = float(np.clip(9000 / len(x), 8, 30))
    return ax.scatter(x, y, s=size, color=COLOURS[0], edgecolors="white", linewidths=0.4, label=label, zorder=3)
