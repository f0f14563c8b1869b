"""The flow of the points through the layers, as a film."""

from __future__ import annotations

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
from ocdl.plot._axes import SQUARE, axes_or_new, legend_beside
from ocdl.plot._model import flow_of
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
    """Let the points flow through the layers, over the linear classifier that waits for them.

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
        How smooth it is.
    hold : int
        Frames that the first and the last state stay, in addition.
    fps : int
        Frames per second.
    dpi : int
        Pixels per inch of the file.

    Returns
    -------
    FuncAnimation
        Keep it as long as it is shown; ``to_jshtml()`` is for notebooks.

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
    flow = flow_of(model)
    states = flow.states(X)
    numbers = flow.classes.numbers(y, states.shape[1])
    between = validation.integer(frames_per_layer, "frames_per_layer", least=1)
    hold = validation.integer(hold, "hold", least=0)
    fps, dpi = validation.integer(fps, "fps", least=1), validation.integer(dpi, "dpi", least=1)
    legend = validation.boolean(legend, "legend")
    resolution = validation.integer(resolution, "resolution", least=2)
    target = None if path is None else Path(path)
    if target is not None:
        _check_target(target)
    plane = Plane.of(states, "y")
    positions = plane.coordinates(states)
    own = ax is None
    if own and target is not None:  # a figure for the file alone; pyplot never sees it
        ax = Figure(figsize=SQUARE, dpi=dpi, layout="compressed").add_subplot()
    ax = axes_or_new(ax)
    scene = draw_states(ax, flow, plane, states[0], numbers, Window.around(positions), resolution)
    plane.label(ax)
    legend_beside(ax, legend)
    layers = flow.network.n_layers
    times = [0.0] * hold + [k / between for k in range(layers * between + 1)] + [float(layers)] * hold

    def show(time: float) -> list[Artist]:
        at = between_layers(positions, time)
        for i, points in enumerate(scene.points):
            points.set_offsets(at[numbers == i])
        title = f"{plane.note}\nlayer {int(time)} of {layers}".strip()
        return [*scene.points, ax.set_title(title, fontsize="small" if plane.note else "medium")]

    moving = show(0.0)
    film = _film(ax, show, times, fps, own)
    if target is not None:
        _write(film, target, _writer(target, fps, moving if own else None), dpi)
    return film


def between_layers(positions: FloatArray, time: float) -> FloatArray:
    """Return the positions at a time between two layers, from those after every layer, (layers + 1, samples, 2)."""
    before = min(int(time), len(positions) - 2)
    share = time - before
    between: FloatArray = (1 - share) * positions[before] + share * positions[before + 1]
    return between


def _film(ax: Axes, show: Callable[[float], list[Artist]], times: list[float], fps: int, own: bool) -> FuncAnimation:
    from matplotlib.animation import FuncAnimation

    fig = ax.get_figure(root=True)
    assert fig is not None
    if own:  # the layout is found once, not for every frame
        fig.draw_without_rendering()
        fig.set_layout_engine("none")
    return FuncAnimation(
        fig, show, frames=times, interval=1000 / fps, blit=False, init_func=list, cache_frame_data=False
    )


def _check_target(target: Path) -> None:
    """Refuse what could not be written, before anything is drawn."""
    from matplotlib.animation import FFMpegWriter

    suffix = target.suffix.lower()
    if suffix not in (".gif", ".html", ".mp4"):
        raise ValueError(f"path must end in .gif, .html or .mp4, got {str(target)!r}")
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(f"path: there is no folder {str(target.parent)!r} to write {target.name!r} to")
    if suffix == ".mp4" and not FFMpegWriter.isAvailable():
        raise ValueError(f"path: {target.name!r} needs ffmpeg, which is not installed; .gif and .html work without")


def _writer(target: Path, fps: int, moving: list[Artist] | None) -> AbstractMovieWriter:
    """Return what writes files of this kind; quickly where it is known what moves."""
    from matplotlib.animation import FFMpegWriter, HTMLWriter, PillowWriter

    from ocdl.plot._gif import StillGifWriter

    suffix = target.suffix.lower()
    if suffix == ".html":
        return HTMLWriter(fps=fps, embed_frames=True, embed_limit=LARGEST_PAGE, default_mode="loop")
    if suffix == ".mp4":
        return FFMpegWriter(fps=fps)
    return PillowWriter(fps=fps) if moving is None else StillGifWriter(fps, moving)


def _write(film: FuncAnimation, target: Path, writer: AbstractMovieWriter, dpi: int) -> None:
    """Write the film under another name first, so that a failure leaves no half of one."""
    with tempfile.TemporaryDirectory(prefix=f".{target.stem}-", dir=target.absolute().parent) as folder:
        complete = Path(folder) / target.name
        film.save(complete, writer=writer, dpi=dpi)
        os.replace(complete, target)
