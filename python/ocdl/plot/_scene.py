"""Draw points in front of the predictions of a classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.collections import PathCollection
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.contour import QuadContourSet
from matplotlib.image import AxesImage
from matplotlib.markers import MarkerStyle
from matplotlib.transforms import IdentityTransform

from ocdl.base.validation import FloatArray, LabelArray
from ocdl.plot._classes import Classes
from ocdl.plot._plane import Window

ORDINARY = 3.0  # inches; smaller axes have smaller points
STRENGTH = 0.48  # of the background where a prediction is certain, so that points stand out


class Scene(NamedTuple):
    """The artists of plotted points.

    Attributes
    ----------
    ax : Axes
    points : list of PathCollection
        One per class, in the order of the classes; empty ones included.
    background : AxesImage or None
        The probabilities; of two classes those of the second, ready for a colour bar.
    boundary : list of QuadContourSet
        The lines between the classes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import ocdl, ocdl.plot
    >>> X, y = ocdl.datasets.make_spiral(200, random_state=0)
    >>> net = ocdl.Network(2, 10)
    >>> scene = ocdl.plot.prediction((net, net.init(random_state=0)), X, y)
    >>> scene
    <Scene: 200 points of 2 classes>
    >>> len(scene.points), scene.background.get_clim(), scene.ax is scene.background.axes, type(scene.boundary)
    (2, (0.0, 1.0), True, <class 'list'>)
    """

    ax: Axes
    points: list[PathCollection]
    background: AxesImage | None
    boundary: list[QuadContourSet]

    def __repr__(self) -> str:
        count = sum(np.shape(points.get_offsets())[0] for points in self.points)
        return f"<Scene: {count:,} points of {len(self.points)} classes>"


def draw_scene(
    ax: Axes,
    window: Window,
    positions: FloatArray,
    numbers: LabelArray,
    classes: Classes,
    probabilities: Callable[[FloatArray], FloatArray],
    resolution: int | None,
) -> Scene:
    """Draw points, over the probabilities of the classes if a resolution is given."""
    background: AxesImage | None = None
    boundary: list[QuadContourSet] = []
    if resolution is not None:
        background, boundary = _draw_background(ax, window, probabilities, classes, resolution)
    points = draw_points(ax, positions, numbers, classes)
    window.apply(ax)
    return Scene(ax, points, background, boundary)


def draw_points(ax: Axes, positions: FloatArray, numbers: LabelArray, classes: Classes) -> list[PathCollection]:
    """Draw points of shape (samples, 2), each class with its colour and marker."""
    fig = ax.get_figure(root=True)
    side = min(ax.bbox.width, ax.bbox.height) / (fig.dpi if fig is not None else 100)
    size = float(np.clip(9000 / len(positions), 14, 36) * np.clip(side / ORDINARY, 0.6, 1))
    styles = zip(classes.colours, classes.markers, classes.labels, strict=True)
    drawn: list[PathCollection] = []
    for i, (colour, marker, label) in enumerate(styles):
        style = MarkerStyle(marker)
        points = _InterleavedPoints(
            [style.get_path().transformed(style.get_transform())],
            [size],
            offsets=positions[numbers == i],
            offset_transform=ax.transData,
            facecolors=colour,
            edgecolors="white",
            linewidths=0.1 * size**0.5,
            label=label,
            zorder=3,
        )
        points.set_transform(IdentityTransform())
        points.together = drawn
        drawn.append(points)
        ax.add_collection(points)
    return drawn


class _InterleavedPoints(PathCollection):
    """The points of a class. The last class draws those of all in turns, so that none hides another.

    Each turn begins with another class and is half of the points that are left, from everywhere: what is drawn last is
    a single one of each class.
    """

    together: Sequence[PathCollection] = ()

    def draw(self, renderer: RendererBase) -> None:
        if not self.together:  # the key in a legend
            super().draw(renderer)
            return
        visible = [points for points in self.together if points.axes is self.axes and points.get_visible()]
        if not visible or visible[-1] is not self:
            return
        offsets_of_classes = [np.asarray(points.get_offsets()) for points in visible]
        for turn in range(max(map(len, offsets_of_classes)).bit_length()):
            for i in range(len(visible)):
                number = (turn + i) % len(visible)
                visible[number].set_offsets(offsets_of_classes[number][2**turn - 1 :: 2 ** (turn + 1)])
                PathCollection.draw(visible[number], renderer)
        for points, everywhere in zip(visible, offsets_of_classes, strict=True):
            points.set_offsets(everywhere)
            points.stale = False


def _draw_background(
    ax: Axes, window: Window, probabilities: Callable[[FloatArray], FloatArray], classes: Classes, resolution: int
) -> tuple[AxesImage, list[QuadContourSet]]:
    """Draw the probabilities, (pixels, classes) of the pixels' coordinates, fading to white where nothing is sure."""
    p = probabilities(window.grid(resolution)).reshape(resolution, resolution, len(classes))
    if len(classes) == 2:
        image = ax.imshow(
            p[..., 1], cmap=_make_colour_map(classes), vmin=0, vmax=1, extent=window, origin="lower", zorder=0
        )
        return image, _draw_level(ax, window, p[..., 1] - 0.5)
    image = ax.imshow(_class_colours(p, classes), extent=window, origin="lower", zorder=0)
    lines = []
    for i in range(len(classes)):
        lines += _draw_level(ax, window, p[..., i] - np.delete(p, i, axis=-1).max(axis=-1))
    return image, lines


def _make_colour_map(classes: Classes) -> LinearSegmentedColormap:
    low, high = (_mix_with_white(colour, np.array(STRENGTH)) for colour in classes.colours)
    return LinearSegmentedColormap.from_list("ocdl", [tuple(low), (1.0, 1.0, 1.0), tuple(high)])


def _class_colours(p: FloatArray, classes: Classes) -> FloatArray:
    """Return the colour of the most probable class, the whiter the closer its probability is to the lowest possible."""
    lowest = 1 / len(classes)
    sureness = (p.max(axis=-1) - lowest) / (1 - lowest)
    colours = [_mix_with_white(colour, STRENGTH * sureness) for colour in classes.colours]
    return np.take_along_axis(np.stack(colours, axis=-1), p.argmax(axis=-1)[..., None, None], axis=-1)[..., 0]


def _mix_with_white(colour: str, strength: FloatArray) -> FloatArray:
    mixed: FloatArray = 1 - strength[..., None] * (1 - np.array(to_rgb(colour)))
    return mixed


def _draw_level(ax: Axes, window: Window, values: FloatArray) -> list[QuadContourSet]:
    """Draw the line where the values are 0, if there is one."""
    if not values.min() < 0 < values.max():
        return []
    centres = window.grid(len(values)).reshape(len(values), len(values), 2)
    return [ax.contour(centres[0, :, 0], centres[:, 0, 1], values, [0.0], colors="0.35", linewidths=0.8, zorder=1)]
