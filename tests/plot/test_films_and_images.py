"""Films, arguments that are refused, and stored images of plots."""

import re
import shutil
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.testing.compare import compare_images
from matplotlib.testing.decorators import remove_ticks_and_titles
from PIL import Image
from subprocesses import run_python

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.figure import Figure
from plot_examples import make_figure, make_network, make_points
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import ocdl
from ocdl import plot
from ocdl.plot._animate import interpolate_positions

REFERENCES = Path(__file__).parent / "images"
TOLERANCE = 15


# ---- films ----


@pytest.mark.parametrize(("dim", "classes"), [(1, 2), (2, 3), (3, 2)])
def test_a_gif_has_a_frame_per_step_and_loops(tmp_path: Path, dim: int, classes: int) -> None:
    X, y = make_points(dim, classes)
    path = tmp_path / "flow.gif"
    before = pyplot.get_fignums()
    plot.animate(make_network(dim, classes), X, y, path=path, frames_per_layer=2, hold=0, fps=10, dpi=40, resolution=20)
    with Image.open(path) as film:
        assert film.n_frames == 8 * 2 + 1
        assert film.info["loop"] == 0
        assert film.info["duration"] == 100
    assert [file.name for file in tmp_path.iterdir()] == ["flow.gif"]
    assert pyplot.get_fignums() == before


def test_a_held_state_stays_longer(tmp_path: Path) -> None:
    X, y = make_points(2, 2)
    path = tmp_path / "flow.gif"
    plot.animate(make_network(2, 2), X, y, path=path, frames_per_layer=1, hold=9, fps=10, dpi=40, resolution=20)
    with Image.open(path) as film:
        durations = []
        for frame in range(film.n_frames):
            film.seek(frame)
            durations.append(film.info["duration"])
    assert sum(durations) == 100 * (9 + 8 + 1 + 9)


def test_between_layers_points_move_on_straight_lines() -> None:
    states = np.random.default_rng(0).random((3, 5, 2))
    for j in range(3):
        np.testing.assert_allclose(interpolate_positions(states, float(j)), states[j], atol=1e-15)
    np.testing.assert_allclose(interpolate_positions(states, 1.25), 0.75 * states[1] + 0.25 * states[2])


def test_a_film_can_be_a_page_or_shown_on_axes(tmp_path: Path) -> None:
    X, y = make_points(2, 2)
    options: dict[str, Any] = {"frames_per_layer": 1, "hold": 0, "dpi": 40, "resolution": 20}
    plot.animate(make_network(2, 2), X, y, path=tmp_path / "flow.html", **options)
    page = (tmp_path / "flow.html").read_text()
    assert page.count("data:image/png;base64") == 9
    assert [file.name for file in tmp_path.iterdir()] == ["flow.html"]
    ax = make_figure().add_subplot()
    plot.animate(make_network(2, 2), X, y, ax=ax, path=tmp_path / "flow.gif", **options)
    with Image.open(tmp_path / "flow.gif") as on_axes:
        assert (on_axes.n_frames, on_axes.size) == (9, (120, 120))
    film = plot.animate(make_network(2, 2), X, y, ax=make_figure().add_subplot(), **options)
    assert "data:image/png;base64" in film.to_jshtml()
    assert len(ax.collections) >= 2


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="needs ffmpeg")
def test_a_film_can_be_mp4(tmp_path: Path) -> None:
    X, y = make_points(2, 2)
    plot.animate(make_network(2, 2), X, y, path=tmp_path / "flow.mp4", frames_per_layer=1, dpi=40, resolution=20)
    assert (tmp_path / "flow.mp4").stat().st_size > 0


def test_without_ffmpeg_mp4_is_refused_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matplotlib.animation.FFMpegWriter.isAvailable", classmethod(lambda cls: False))
    X, y = make_points(2, 2)
    with pytest.raises(ValueError, match=r"'flow\.mp4' needs ffmpeg.*\.gif and \.html work without"):
        plot.animate(make_network(2, 2), X, y, path=tmp_path / "flow.mp4")


def test_a_failed_film_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    X, y = make_points(2, 2)
    path = tmp_path / "flow.gif"
    path.write_text("old")
    monkeypatch.setattr("PIL.Image.Image.save", full_disk)
    with pytest.raises(OSError, match="No space left"):
        plot.animate(make_network(2, 2), X, y, path=path, frames_per_layer=1, hold=0, dpi=40, resolution=20)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


# ---- refusals ----

X2, Y2 = make_points(2, 2)
PAIR = make_network(2, 2)
REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: plot.data(X2[:, 0], Y2), ValueError, "X must have two dimensions, (samples, features)"),
    (lambda: plot.data(X2, Y2[:3]), ValueError, "y has 3 labels but X has 30 samples"),
    (lambda: plot.data(X2, X2), ValueError, "y must have one dimension"),
    (lambda: plot.data([[np.nan, 0.0]], [0]), ValueError, "X[0, 0] is nan"),
    (lambda: plot.data(X2, np.where(Y2, np.nan, 0.0)), ValueError, "y has missing labels"),
    (lambda: plot.data(np.zeros((99, 2)), np.arange(99)), ValueError, "y has 99 different labels; at most 90"),
    (lambda: plot.data(X2, Y2, classes=[0]), ValueError, "y[1] is 1; the classes are 0"),
    (lambda: plot.data(X2, Y2, classes=[0, 1, 1]), ValueError, "classes must be a list of different labels"),
    (lambda: plot.data(X2, Y2, ax=3), TypeError, "ax must be matplotlib Axes or None, got int"),
    (lambda: plot.data(X2, Y2, legend="no"), TypeError, "legend must be True or False"),
    (lambda: plot.prediction(3, X2, Y2), TypeError, "model must be a fitted ODEClassifier, a Pipeline"),
    (lambda: plot.prediction(KNeighborsClassifier(), X2, Y2), TypeError, "got KNeighborsClassifier"),
    (lambda: plot.prediction(make_pipeline(KNeighborsClassifier()), X2, Y2), TypeError, "a last step KNeighbors"),
    (lambda: plot.prediction((1, 2, 3), X2, Y2), TypeError, "got a tuple of (int, int, int)"),
    (lambda: plot.prediction((PAIR[0], make_network(3, 2)[1]), X2, Y2), ValueError, "u does not fit the network"),
    (lambda: plot.prediction(ocdl.ODEClassifier(), X2, Y2), ValueError, "not fitted"),
    (lambda: plot.prediction(PAIR, X2[:, :1], Y2), ValueError, "X has 1 feature but the network takes 2"),
    (lambda: plot.prediction(PAIR, X2, Y2 + 1), ValueError, "y[1] is 2; the classes are 0, 1"),
    (lambda: plot.prediction(PAIR, X2, Y2, resolution=1), ValueError, "resolution must be at least 2, got 1"),
    (lambda: plot.transformation(PAIR, X2, Y2[:1]), ValueError, "y has 1 label but X has 30 samples"),
    (lambda: plot.snapshots(PAIR, X2, Y2, layers=0), ValueError, "layers must be at least 1, got 0"),
    (lambda: plot.snapshots(PAIR, X2, Y2, layers=[0, 9]), ValueError, "layers[1] must be a whole number from 0 to 8"),
    (lambda: plot.snapshots(PAIR, X2, Y2, layers=[]), ValueError, "layers must name at least one layer"),
    (lambda: plot.snapshots(PAIR, X2, Y2, layers="all"), TypeError, "layers must be a whole number"),
    (lambda: plot.snapshots(PAIR, X2, Y2, fig=3), TypeError, "fig must be a matplotlib Figure"),
    (lambda: plot.history(3), TypeError, "histories must be a Result, a History, a mapping"),
    (lambda: plot.history({"a": 3}), TypeError, "got int for 'a'"),
    (lambda: plot.accuracy([]), ValueError, "histories must be a Result, a History, a mapping"),
    (lambda: plot.time_steps({}), ValueError, "steps must be an array, Controls, a History or a mapping"),
    (lambda: plot.time_steps({"net": []}), ValueError, "steps['net'] has no time steps"),
    (lambda: plot.time_steps([[1.0]]), ValueError, "steps must have one dimension, (layers,)"),
    (lambda: plot.images(np.zeros((2, 785))), ValueError, "785 pixels are not a square"),
    (lambda: plot.images(np.zeros(784)), ValueError, "rows must have shape (images, height, width) or (images"),
    (lambda: plot.images(np.zeros((2, 4)), titles=["a"]), ValueError, "titles has 1 entries but"),
    (lambda: plot.images(np.zeros((2, 4)), limits=(1, 0)), ValueError, "limits must increase"),
    (lambda: plot.compare([1], print), TypeError, "things must be a mapping"),
    (lambda: plot.compare({}, print), ValueError, "things must have at least one entry"),
    (lambda: plot.compare({"a": 1}, 3), TypeError, "draw must be callable as draw(thing, ax=ax)"),
    (lambda: plot.compare({"a": 1}, {"row": print}, columns=2), ValueError, "columns must be None"),
    (lambda: plot.animate(PAIR, X2, Y2, path="flow.avi"), ValueError, "path must end in .gif, .html or .mp4"),
    (lambda: plot.animate(PAIR, X2, Y2, path="/no/such/flow.gif"), FileNotFoundError, "no folder '/no/such'"),
    (lambda: plot.certificate(PAIR), TypeError, "report must be a Certificate, as net.certify() returns it, got tuple"),
    (lambda: plot.animate(PAIR, X2, Y2, frames_per_layer=0), ValueError, "frames_per_layer must be at least 1"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED, ids=[message for _, _, message in REFUSED])
def test_refusals_name_the_argument_and_open_no_figure(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        call()
    assert pyplot.get_fignums() == []


def test_importing_selects_no_backend() -> None:
    code = (
        "import sys, ocdl.plot; print([m for m in sys.modules if 'pyplot' in m or 'matplotlib.backends.backend' in m])"
    )
    assert run_python(code) == "[]"


# ---- certificates ----


@pytest.mark.parametrize("architecture", ["net", "odenet+simplex"])
def test_all_measurements_of_a_certificate_are_drawn(architecture: str) -> None:
    X, y = make_points(2, 2)
    net = ocdl.Network.preset(architecture, 2, 5)
    report = net.certify(net.init(random_state=0), X, y)
    fig = make_figure()
    panels = plot.certificate(report, fig=fig)
    assert fig.axes == list(panels)
    first, _, second, _ = panels.taylor.lines
    np.testing.assert_array_equal(first.get_ydata(), report.taylor.order0)
    np.testing.assert_array_equal(second.get_ydata(), report.taylor.order1)
    assert len(panels.drift.lines[0].get_xdata()) == 5
    assert len(panels.residuals.patches) == len(report.residuals)
    if net.residual:
        np.testing.assert_array_equal(panels.order.lines[0].get_xdata(), report.convergence.layers)
        assert {text.get_text() for text in panels.order.get_legend().get_texts()} >= {"order 1"}
    else:
        assert [text.get_text() for text in panels.order.texts] == ["a feed-forward network has no time"]
    fig.draw_without_rendering()


def test_a_certificate_at_a_minimiser_is_drawn() -> None:
    net = ocdl.Network(2, 3)
    panels = plot.certificate(net.certify(net.controls(), np.zeros((2, 2)), [0, 1]))
    panels.taylor.get_figure(root=True).draw_without_rendering()
    assert panels.residuals.get_yscale() == "linear"


# ---- stored images ----


def spiral_model() -> tuple[ocdl.Network, ocdl.Controls]:
    """Return a flow that turns the plane, the same on every machine."""
    net = ocdl.Network(2, 10, tableau="kutta4", horizon=2.0)
    K = np.broadcast_to([[0.6, 1.5], [-1.5, 0.6]], (10, 2, 2))
    return net, net.controls(K=K, b=np.full((10, 2), 0.1), W=[[3.0, -2.0]])


def three_classes() -> tuple[ocdl.Network, ocdl.Controls]:
    net = ocdl.Network(2, 3, n_outputs=3)
    return net, net.controls(K=np.full((3, 2, 2), 0.5), W=[[2.0, 0.0], [-1.0, 2.0], [-1.0, -2.0]])


def picture(name: str, fig: Figure) -> None:
    X, y = ocdl.datasets.make_spiral(200, random_state=0)
    third = (np.arange(200) % 3).astype(int)
    if name == "snapshots":
        plot.snapshots(spiral_model(), X, y, layers=4, legend=False, fig=fig)
        return
    ax = fig.add_subplot()
    if name == "prediction":
        plot.prediction(spiral_model(), X, y, legend=False, ax=ax)
    elif name == "transformation":
        plot.transformation(spiral_model(), X, y, legend=False, ax=ax)
    elif name == "three_classes":
        plot.prediction(three_classes(), X, third, legend=False, ax=ax)
    else:
        steps = {"ResNet": [0.2] * 5, "ODENet": [0.5, -0.3, 0.4, -0.1, 0.2], "simplex": [0.7, 0.0, 0.0, 0.3, 0.0]}
        plot.time_steps(steps, legend=False, ax=ax)


@pytest.mark.parametrize("name", ["prediction", "transformation", "three_classes", "snapshots", "time_steps"])
def test_plots_match_the_stored_images(name: str, tmp_path: Path) -> None:
    """To store new ones: draw each with `picture` as here, look at it, and save it to tests/plot/images."""
    fig = make_figure()
    with matplotlib.rc_context(matplotlib.rcParamsDefault | {"backend": "agg"}):
        picture(name, fig)
        remove_ticks_and_titles(fig)
        fig.savefig(tmp_path / f"{name}.png")
    shutil.copy(REFERENCES / f"{name}.png", tmp_path / f"{name}-expected.png")
    difference = compare_images(str(tmp_path / f"{name}-expected.png"), str(tmp_path / f"{name}.png"), TOLERANCE)
    assert difference is None, difference
