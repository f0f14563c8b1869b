"""Animate the flow of the points through the layers."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.plot._axes import SQUARE, add_legend, get_axes
from ocdl.plot._model import resolve_model
from ocdl.plot._plane import Plane, Window
from ocdl.plot._transformation import draw_states

if TYPE_CHECKING:
    from matplotlib.animation import AbstractMovieWriter, FuncAnimation

LARGEST_PAGE = 200.0  # megabytes of an HTML file


def animate(
    model: object,
    X: ArrayLike,
    y: ArrayLike,
    *,
    path: str | os.PathLike[str] | None = None,
    frames_per_layer: int = 4,
    hold: int = 10,
    fps: int = 20,
    dpi: int = 100,
    resolution: int = 200,
    legend: bool = True,
    ax: Axes | None = None,
) -> FuncAnimation:
    """Animate the flow of the points through the layers, over the linear classifier.

    Between two layers the points move on straight lines. States with more than two components are projected onto the
    first two principal axes of all states, and the title says so.

    Parameters
    ----------
    model, X, y, resolution, legend, ax
        As for `prediction`.
    path : str or path-like, optional
        Where to write the film; an existing file is replaced when the new one is complete. ``.gif`` and ``.html`` work
        everywhere, ``.mp4`` where ffmpeg is installed. Without a path nothing is written.
    frames_per_layer : int
        Frames per layer: more make the film smoother.
    hold : int
        Additional frames of the first and the last state.
    fps : int
        Frames per second.
    dpi : int
        Pixels per inch of the file.

    Returns
    -------
    FuncAnimation
        Keep a reference while it is shown; ``to_jshtml()`` is for notebooks.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of its kind, or what is given does not fit each other; the message names it.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import os, ocdl, ocdl.plot
    >>> X, y = ocdl.datasets.make_spiral(100, random_state=0)
    >>> net = ocdl.Network(2, 3)
    >>> film = ocdl.plot.animate((net, net.init(random_state=0)), X, y, path="flow.gif", frames_per_layer=2, hold=0)
    >>> os.path.exists("flow.gif")
    True
    """
    flow = resolve_model(model)
    states = flow.states(X)
    numbers = flow.classes.numbers(y, states.shape[1])
    frames = validation.integer(frames_per_layer, "frames_per_layer", minimum=1)
    hold = validation.integer(hold, "hold", minimum=0)
    fps, dpi = validation.integer(fps, "fps", minimum=1), validation.integer(dpi, "dpi", minimum=1)
    legend = validation.boolean(legend, "legend")
    resolution = validation.integer(resolution, "resolution", minimum=2)
    target = None if path is None else Path(path)
    if target is not None:
        _check_target(target)
    plane = Plane.from_points(states, "y")
    positions = plane.coordinates(states)
    is_new = ax is None
    if is_new and target is not None:  # a figure for the file only, outside pyplot
        ax = Figure(figsize=SQUARE, dpi=dpi, layout="compressed").add_subplot()
    ax = get_axes(ax)
    scene = draw_states(ax, flow, plane, states[0], numbers, Window.from_points(positions), resolution)
    plane.label(ax)
    add_legend(ax, legend)
    layers = flow.network.n_layers
    times = [0.0] * hold + [k / frames for k in range(layers * frames + 1)] + [float(layers)] * hold

    def show(time: float) -> list[Artist]:
        at = interpolate_positions(positions, time)
        for i, points in enumerate(scene.points):
            points.set_offsets(at[numbers == i])
        title = f"{plane.note}\nlayer {math.ceil(time)} of {layers}".strip()
        return [*scene.points, ax.set_title(title, fontsize="small" if plane.note else "medium")]

    moving = show(0.0)
    film = _make_film(ax, show, times, fps, is_new)
    if target is not None:
        _write(film, target, _make_writer(target, fps, moving if is_new else None), dpi)
    return film


def interpolate_positions(positions: FloatArray, time: float) -> FloatArray:
    """Interpolate positions after every layer, (layers + 1, samples, 2), at a time between two layers."""
    before = min(int(time), len(positions) - 2)
    fraction = time - before
    result: FloatArray = (1 - fraction) * positions[before] + fraction * positions[before + 1]
    return result


def _make_film(
    ax: Axes, show: Callable[[float], list[Artist]], times: list[float], fps: int, is_new: bool
) -> FuncAnimation:
    from matplotlib.animation import FuncAnimation

    fig = ax.get_figure(root=True)
    assert fig is not None
    if is_new:  # compute the layout once, not for every frame
        fig.draw_without_rendering()
        fig.set_layout_engine("none")
    return FuncAnimation(
        fig, show, frames=times, interval=1000 / fps, blit=False, init_func=list, cache_frame_data=False
    )


def _check_target(target: Path) -> None:
    """Refuse a path that cannot be written, before drawing."""
    from matplotlib.animation import FFMpegWriter

    suffix = target.suffix.lower()
    if suffix not in (".gif", ".html", ".mp4"):
        raise ValueError(f"path must end in .gif, .html or .mp4, got {str(target)!r}")
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(f"path: there is no folder {str(target.parent)!r} to write {target.name!r} to")
    if suffix == ".mp4" and not FFMpegWriter.isAvailable():
        raise ValueError(f"path: {target.name!r} needs ffmpeg, which is not installed; .gif and .html work without")


def _make_writer(target: Path, fps: int, moving: list[Artist] | None) -> AbstractMovieWriter:
    """Return a writer for this kind of file; a faster one for GIF if the moving artists are known."""
    from matplotlib.animation import FFMpegWriter, HTMLWriter, PillowWriter

    from ocdl.plot._gif import StillGifWriter

    suffix = target.suffix.lower()
    if suffix == ".html":
        return HTMLWriter(fps=fps, embed_frames=True, embed_limit=LARGEST_PAGE, default_mode="loop")
    if suffix == ".mp4":
        return FFMpegWriter(fps=fps)
    return PillowWriter(fps=fps) if moving is None else StillGifWriter(fps, moving)


def _write(film: FuncAnimation, target: Path, writer: AbstractMovieWriter, dpi: int) -> None:
    """Write the film to a temporary file first, so that a failure leaves no incomplete file."""
    with tempfile.TemporaryDirectory(prefix=f".{target.stem}-", dir=target.absolute().parent) as folder:
        complete = Path(folder) / target.name
        film.save(complete, writer=writer, dpi=dpi)
        os.replace(complete, target)
