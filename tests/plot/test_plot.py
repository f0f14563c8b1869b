"""Pictures: what is drawn for any number of classes and dimensions, where, and what is refused."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from plot_examples import SAMPLES, make_figure, make_network, make_points
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ocdl
from ocdl import plot
from ocdl.plot._model import resolve_model
from ocdl.plot._plane import PROJECTED, Plane, Window

DIMENSIONS = (1, 2, 3)
CLASS_COUNTS = (2, 3)


def trained(**options: Any) -> tuple[ocdl.Network, ocdl.Controls, ocdl.History]:
    X, y = make_points(2, 2)
    net = ocdl.Network(2, 4, time_steps="free")
    r = ocdl.train(net, net.init(random_state=0), X, y, max_iter=20, eval_every=5, **options)
    return net, r.controls, r.history


def drawn_points(scene: plot.Scene) -> int:
    return sum(len(np.asarray(of_class.get_offsets())) for of_class in scene.points)


def lightness(colour: Any) -> float:
    return float(np.dot(colour[:3], [0.299, 0.587, 0.114]))


# ---- points and backgrounds ----


def draw_scene(name: str, dim: int, classes: int, ax: Axes | None, **options: Any) -> plot.Scene:
    X, y = make_points(dim, classes)
    if name == "data":
        return plot.data(X, y, ax=ax, **options)
    draw = {"prediction": plot.prediction, "transformation": plot.transformation}[name]
    return draw(make_network(dim, classes), X, y, resolution=20, ax=ax, **options)


@pytest.mark.parametrize("own_axes", [True, False])
@pytest.mark.parametrize("classes", CLASS_COUNTS)
@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize("name", ["data", "prediction", "transformation"])
def test_every_sample_is_drawn_with_its_class(name: str, dim: int, classes: int, own_axes: bool) -> None:
    ax = None if own_axes else make_figure().add_subplot()
    scene = draw_scene(name, dim, classes, ax)
    assert ax is None or scene.ax is ax
    assert [p.get_label() for p in scene.points] == [f"class {i}" for i in range(classes)]
    assert drawn_points(scene) == SAMPLES
    assert len({to_hex(p.get_facecolor()[0]) for p in scene.points}) == classes
    assert len({p.get_paths()[0].vertices.tobytes() for p in scene.points}) == classes, "markers differ"
    assert scene.ax.get_legend() is not None
    assert scene.ax.get_aspect() == 1
    assert (PROJECTED in scene.ax.get_title()) == (dim == 3)
    has_background = name == "transformation" or (name == "prediction" and dim <= 2)
    assert (scene.background is not None) == has_background
    assert ("no background" in scene.ax.get_title()) == (name == "prediction" and dim == 3)
    scene.ax.get_figure(root=True).draw_without_rendering()


@pytest.mark.parametrize("classes", [2, 3])
def test_no_class_hides_another(classes: int) -> None:
    """Of what it covers alone, each class keeps about the same share where all lie on each other."""
    X, y = np.random.default_rng(0).normal(size=(3000, 2)), np.arange(3000) % classes
    fig = Figure(dpi=100)
    points = plot.data(X, y, legend=False, ax=fig.add_subplot()).points
    canvas = FigureCanvasAgg(fig)

    def covered() -> np.ndarray:
        canvas.draw()
        pixels = np.asarray(canvas.buffer_rgba())[..., :3] / 255
        return np.array([np.sum(np.abs(pixels - own.get_facecolor()[0, :3]).max(axis=-1) < 0.02) for own in points])

    together, alone = covered(), np.zeros(classes)
    for i in range(classes):
        for j, own in enumerate(points):
            own.set_visible(i == j)
        alone[i] = covered()[i]
    shares = together / alone
    assert shares.min() > 0.7 * shares.max()
    assert [len(own.get_offsets()) for own in points] == [3000 // classes] * classes  # whatever was drawn last


def test_the_keys_of_a_legend_are_drawn() -> None:
    fig = Figure(dpi=100)
    scene = plot.data(np.zeros((2, 2)), [0, 1], ax=fig.add_subplot())
    for points in scene.points:
        points.set_visible(False)
    (legend,) = [child for child in scene.ax.get_children() if isinstance(child, Legend)]
    for key in legend.legend_handles:
        key.set_visible(True)
    canvas = FigureCanvasAgg(fig)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3] / 255
    for points in scene.points:
        assert (np.abs(pixels - points.get_facecolor()[0, :3]).max(axis=-1) < 0.02).any()


def test_two_classes_are_blue_and_red_and_white_between() -> None:
    scene = draw_scene("prediction", 2, 2, None)
    assert [to_hex(p.get_facecolor()[0]) for p in scene.points] == ["#0f4c91", "#e0472f"]
    assert scene.background is not None
    low, middle, high = (scene.background.to_rgba(np.array(p), norm=True)[:3] for p in (0.0, 0.5, 1.0))
    assert low[2] > low[0] + 0.2
    assert high[0] > high[2] + 0.2
    assert min(middle) > 0.99
    assert lightness(high) - lightness(low) > 0.08, "in grey print, too"


def test_the_background_is_the_probability_at_each_pixel() -> None:
    X, y = make_points(2, 2)
    net, u = make_network(2, 2)
    scene = plot.prediction((net, u), X, y, resolution=20)
    assert scene.background is not None
    left, right, bottom, top = scene.background.get_extent()
    output = np.asarray(scene.background.get_array())
    row, column = 3, 16
    pixel = [left + (right - left) * (column + 0.5) / 20, bottom + (top - bottom) * (row + 0.5) / 20]
    assert output[row, column] == pytest.approx(1 / (1 + np.exp(-net.predict(u, [pixel])[0, 0])))


def test_the_transformation_shows_final_states_over_the_linear_classifier() -> None:
    X, y = make_points(2, 2)
    net, u = make_network(2, 2)
    scene = plot.transformation((net, u), X, y, resolution=20)
    final = net.forward(u, X).states[-1]
    np.testing.assert_array_equal(scene.points[1].get_offsets(), final[y == 1])
    assert scene.background is not None
    left, _, bottom, _ = scene.background.get_extent()
    side = scene.background.get_extent()[1] - left
    corner = np.array([left, bottom]) + side / 40
    expected = 1 / (1 + np.exp(-(u.W @ corner + u.mu)))
    assert np.asarray(scene.background.get_array())[0, 0] == pytest.approx(expected[0])


def test_a_boundary_divides_two_classes_and_a_sure_classifier_has_none() -> None:
    X, y = make_points(2, 2)
    net = ocdl.Network(2, 3)
    dividing = net.controls(W=[[1.0, -1.0]])
    assert len(plot.prediction((net, dividing), X, y, resolution=20).boundary) == 1
    sure = net.controls(mu=[50.0])
    assert plot.prediction((net, sure), X, y, resolution=20).boundary == []


def test_augmented_states_are_projected() -> None:
    X, y = make_points(2, 2)
    scene = plot.transformation(make_network(2, 2, augment=1), X, y, resolution=20)
    assert scene.ax.get_title() == PROJECTED
    assert plot.prediction(make_network(2, 2, augment=1), X, y, resolution=20).background is not None


def test_the_plane_has_the_directions_of_largest_variance() -> None:
    rng = np.random.default_rng(0)
    flat = rng.standard_normal((200, 2)) * [3.0, 1.0]
    turned = np.linalg.qr(rng.standard_normal((5, 5)))[0][:2]
    plane = Plane.from_points(flat @ turned + 7.0, "y")
    np.testing.assert_allclose(np.abs(plane.axes @ turned.T).round(1), np.eye(2), atol=0.1)
    again = plane.points(plane.coordinates(flat @ turned + 7.0))
    np.testing.assert_allclose(again, flat @ turned + 7.0, atol=1e-12)


def test_missing_classes_do_not_change_colours_and_markers() -> None:
    X, _ = make_points(2, 2)
    alone = plot.data(X, np.ones(SAMPLES, int), classes=[0, 1])
    assert [len(np.asarray(p.get_offsets())) for p in alone.points] == [0, SAMPLES]
    assert to_hex(alone.points[1].get_facecolor()[0]) == "#e0472f"
    turned = plot.data(X, np.ones(SAMPLES, int), classes=[1, 0])
    assert [p.get_label() for p in turned.points] == ["class 1", "class 0"]
    assert [len(np.asarray(p.get_offsets())) for p in turned.points] == [SAMPLES, 0]


@pytest.mark.parametrize("classes", [8, 10, 40])
def test_many_classes_differ_in_colour_or_marker(classes: int) -> None:
    X, y = np.random.default_rng(0).random((80, 2)), np.arange(80) % classes
    scene = plot.data(X, y)
    appearances = {(to_hex(p.get_facecolor()[0]), p.get_paths()[0].vertices.tobytes()) for p in scene.points}
    assert len(appearances) == classes


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1e9, 1e200])
@pytest.mark.parametrize("dim", DIMENSIONS)
def test_points_of_any_size_fill_the_window(dim: int, scale: float) -> None:
    X, y = make_points(dim, 2)
    scene = plot.data(scale * X, y)
    left, right = scene.ax.get_xlim()
    output = np.concatenate([np.asarray(p.get_offsets()) for p in scene.points])
    assert left < output[:, 0].min() < output[:, 0].max() < right
    assert np.ptp(output[:, 0]) > 0.4 * (right - left)


def test_equal_points_have_a_window() -> None:
    scene = plot.data(np.full((4, 2), 3.0), [0, 1, 0, 1])
    left, right = scene.ax.get_xlim()
    assert left < 3 < right


def test_labels_can_be_of_any_kind() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = make_points(2, 2)
    words = np.array(["in", "out"])[y]
    for labels in (
        y.astype(bool),
        y.astype(float),
        words,
        words.astype(object),
        pandas.Series(words, dtype="category"),
    ):
        assert drawn_points(plot.data(X, labels)) == SAMPLES


def test_one_sample_and_float32_are_enough() -> None:
    for dim in DIMENSIONS:
        net = ocdl.Network(dim, 3, dtype="float32", tableau="kutta3", stage_controls=True)
        for draw in (plot.prediction, plot.transformation):
            assert drawn_points(draw((net, net.init(0)), np.ones((1, dim)), [1], resolution=20)) == 1


def test_legends_can_be_left_out() -> None:
    assert draw_scene("data", 2, 2, None, legend=False).ax.get_legend() is None


# ---- models ----


def test_estimators_and_pipelines_are_drawn_as_they_predict() -> None:
    X, y = make_points(2, 3)
    names = np.array(["a", "b", "c"])[y]
    alone = ocdl.ODEClassifier(n_layers=3, max_iter=30, tol=10, random_state=0)
    for model in (alone, make_pipeline(StandardScaler(), alone), make_pipeline(alone)):
        model.fit(5 * X, names)
        scene = plot.prediction(model, 5 * X, names, resolution=20)
        assert [p.get_label() for p in scene.points] == ["a", "b", "c"]
        np.testing.assert_allclose(resolve_model(model).probabilities(X), model.predict_proba(X), atol=1e-14)
        assert drawn_points(plot.transformation(model, 5 * X, names, resolution=20)) == SAMPLES


@pytest.mark.parametrize("classes", CLASS_COUNTS)
def test_probabilities_of_the_squared_loss_are_those_of_the_estimator(classes: int) -> None:
    X, y = make_points(2, classes)
    model = ocdl.ODEClassifier(n_layers=3, max_iter=5, loss="squared", tol=10, random_state=0).fit(X, y)
    np.testing.assert_allclose(resolve_model(model).probabilities(X), model.predict_proba(X), atol=1e-14)


def test_data_frames_with_names_are_drawn_without_warnings() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = make_points(2, 2)
    frame = pandas.DataFrame(X, columns=["height", "width"])
    model = make_pipeline(StandardScaler(), ocdl.ODEClassifier(n_layers=3, max_iter=5, tol=10, random_state=0))
    assert plot.prediction(model.fit(frame, y), frame, y, resolution=20).background is not None


def test_loaded_models_are_plotted(tmp_path: Path) -> None:
    X, y = make_points(2, 2)
    ocdl.save(tmp_path / "model.ocdl", *make_network(2, 2))
    assert drawn_points(plot.prediction(ocdl.load(tmp_path / "model.ocdl"), X, y, resolution=20)) == SAMPLES


# ---- snapshots ----


@pytest.mark.parametrize("own_figure", [True, False])
@pytest.mark.parametrize("classes", CLASS_COUNTS)
@pytest.mark.parametrize("dim", DIMENSIONS)
def test_snapshots_show_the_states_after_the_layers(dim: int, classes: int, own_figure: bool) -> None:
    X, y = make_points(dim, classes)
    fig = None if own_figure else make_figure()
    scenes = plot.snapshots(make_network(dim, classes), X, y, layers=5, resolution=20, fig=fig)
    assert [scene.ax.get_title() for scene in scenes] == ["layer 0, data", *(f"layer {j}" for j in (2, 4, 6, 8))]
    assert [scene.background is not None for scene in scenes] == [False] * 4 + [True]
    assert all(drawn_points(scene) == SAMPLES for scene in scenes)
    assert len({scene.ax.get_xlim() for scene in scenes}) == 1
    drawn_on = scenes[0].ax.get_figure(root=True)
    assert fig is None or drawn_on is fig
    assert drawn_on is not None
    assert [t.get_text() for t in drawn_on.legends[0].get_texts()] == [f"class {i}" for i in range(classes)]
    assert drawn_on.get_suptitle() == (PROJECTED if dim == 3 else "")
    drawn_on.draw_without_rendering()


def test_snapshots_of_selected_layers_with_separate_limits() -> None:
    X, y = make_points(2, 2)
    scenes = plot.snapshots(make_network(2, 2), X, y, layers=[0, 3], same_limits=False, resolution=20)
    assert [scene.ax.get_title() for scene in scenes] == ["layer 0, data", "layer 3"]
    assert scenes[0].ax.get_xlim() != scenes[1].ax.get_xlim()
    assert len(plot.snapshots(make_network(2, 2), X, y, layers=100, resolution=20)) == 9


def test_snapshots_fill_a_subfigure() -> None:
    X, y = make_points(2, 2)
    upper, _ = make_figure().subfigures(2, 1)
    assert len(plot.snapshots(make_network(2, 2), X, y, layers=2, resolution=20, fig=upper)) == 2
    assert len(upper.axes) == 2


# ---- curves and steps ----


@pytest.mark.parametrize("draw", [plot.history, plot.accuracy])
def test_training_is_solid_and_validation_dashed(draw: Any) -> None:
    with_validation, without = trained(validation=make_points(2, 2))[2], trained()[2]
    curves = draw(with_validation)
    assert [line.get_linestyle() for line in (*curves.training, *curves.validation)] == ["-", "--"]
    assert [t.get_text() for t in curves.ax.get_legend().get_texts()] == ["training", "validation"]
    assert curves.training[0].get_color() == curves.validation[0].get_color()
    assert curves.ax.get_xscale() == "log"
    assert curves.ax.get_yscale() == ("log" if draw is plot.history else "linear")
    ax = make_figure().add_subplot()
    both = draw({"ODENet": with_validation, "other": without}, ax=ax)
    assert both.ax is ax
    assert (len(both.training), len(both.validation)) == (2, 1)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["ODENet", "other", "training", "validation"]
    assert len({line.get_color() for line in both.training}) == 2
    assert len({line.get_marker() for line in both.training}) == 2
    assert [line.get_label() for line in draw([without, without]).training] == ["1", "2"]


def test_curves_hold_the_numbers_of_the_history() -> None:
    h = trained()[2]
    loss = plot.history(h).training[0]
    np.testing.assert_array_equal(loss.get_ydata(), h.loss)
    np.testing.assert_array_equal(loss.get_xdata(), [0.5, *range(1, 21)])
    accuracy = plot.accuracy(h).training[0]
    np.testing.assert_array_equal(accuracy.get_ydata(), h.accuracy)
    np.testing.assert_array_equal(accuracy.get_xdata(), [0.5, 5, 10, 15, 20])


def test_curves_of_evaluated_iterations_only() -> None:
    h = trained(validation=make_points(2, 2))[2]
    curves = plot.history(h, evaluated_only=True)
    for line, values in ((curves.training[0], h.loss[h.evaluated]), (curves.validation[0], h.val_loss)):
        np.testing.assert_array_equal(line.get_xdata(), [0.5, 5, 10, 15, 20])
        np.testing.assert_array_equal(line.get_ydata(), values)
    with pytest.raises(TypeError, match="evaluated_only must be True or False"):
        plot.history(h, evaluated_only=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("draw", [plot.history, plot.accuracy])
@pytest.mark.parametrize("iterations", [3, 20, 200])
def test_the_start_is_labelled(draw: Any, iterations: int) -> None:
    X, y = make_points(2, 2)
    net = ocdl.Network(2, 4)
    r = ocdl.train(net, net.init(random_state=0), X, y, max_iter=iterations, tol=0.0, eval_every=range(iterations))
    ax = draw(r.history, ax=make_figure().add_subplot()).ax
    ax.get_figure().draw_without_rendering()
    low, high = ax.get_xlim()
    ticks = [*ax.xaxis.get_major_ticks(), *ax.xaxis.get_minor_ticks()]
    seen = {tick.get_loc(): tick.label1.get_text() for tick in ticks if low <= tick.get_loc() <= high}
    assert seen.pop(0.5) == "0"
    assert seen[1.0] == "1"
    assert min(seen) == 1.0
    assert all(text in ("", f"{at:g}") for at, text in seen.items())


def test_time_steps_are_bars_side_by_side() -> None:
    _, u, h = trained()
    (alone,) = plot.time_steps(u).bars
    assert [bar.get_height() for bar in alone] == u.h.tolist()
    (last,) = plot.time_steps(h).bars
    assert [bar.get_height() for bar in last] == h.time_steps[-1].tolist()
    ax = make_figure().add_subplot()
    drawn = plot.time_steps({"ODENet": u, "sparse": [0.5, 0.0, 0.5]}, ax=ax)
    assert drawn.ax is ax
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["ODENet", "sparse"]
    first, second = (bars.patches[0] for bars in drawn.bars)
    assert first.get_x() + first.get_width() == pytest.approx(second.get_x())
    assert first.get_facecolor() != second.get_facecolor()
    assert first.get_hatch() != second.get_hatch()


# ---- images and comparisons ----


def test_images_are_rows_of_pictures() -> None:
    flat = np.random.default_rng(0).random((4, 784))
    ((first, *_),) = plot.images(flat)
    np.testing.assert_array_equal(first.get_array(), flat[0].reshape(28, 28))
    ax = make_figure().add_subplot()
    drawn = plot.images({"features": flat.reshape(4, 28, 28), "double": 2 * flat[:3]}, titles="abcd", ax=ax)
    assert [len(row) for row in drawn] == [4, 3]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["features", "double"]
    assert [t.get_text() for t in ax.get_xticklabels()] == list("abcd")
    assert drawn[1][0].get_clim() == (2 * flat[:3].min(), 2 * flat[:3].max())
    assert plot.images(flat, limits=(0, 2))[0][0].get_clim() == (0, 2)
    assert ax.get_ylim()[0] < drawn[1][0].get_extent()[2]


def test_compare_draws_each_entry_and_one_legend() -> None:
    X, y = make_points(2, 2)
    fig = make_figure()
    models = {str(i): make_network(2, 2) for i in range(5)}
    drawn = plot.compare(models, lambda model, ax: plot.prediction(model, X, y, resolution=20, ax=ax), fig=fig)
    assert list(drawn) == list(models)
    assert [scene.ax.get_title() for scene in drawn.values()] == list(models)
    assert len(fig.axes) == 5
    assert all(ax.get_legend() is None for ax in fig.axes)
    assert [t.get_text() for t in fig.legends[0].get_texts()] == ["class 0", "class 1"]


def test_compare_draws_rows_of_pictures() -> None:
    X, y = make_points(3, 3)
    rows = {
        "prediction": lambda model, ax: plot.prediction(model, X, y, ax=ax),
        "transformation": lambda model, ax: plot.transformation(model, X, y, resolution=20, ax=ax),
    }
    drawn = plot.compare({"one": make_network(3, 3), "two": make_network(3, 3)}, rows)
    assert drawn["transformation"]["two"].background is not None
    assert drawn["prediction"]["one"].ax.get_title().startswith(f"one\n{PROJECTED}")
    lower = drawn["transformation"]["one"].ax
    assert lower.get_ylabel().startswith("transformation\n")
    assert lower.get_title() == ""  # it would stand below the upper panel, which may be no projection
    assert lower.get_xlabel().endswith(PROJECTED)


def test_long_tick_labels_do_not_overlap() -> None:
    fig, axes = pyplot.subplots(1, 2)
    for ax, points in zip(axes, ([[0.7064, 0.0], [0.7068, 0.0]], [[-1.0, 0.0], [1.0, 0.0]]), strict=True):
        Window.from_points(np.array(points)).apply(ax)
    fig.canvas.draw()
    assert [len(ax.xaxis.get_majorticklocs()) <= 4 for ax in axes] == [True, False]


@pytest.mark.parametrize("centre", [0.0, -0.73647])
def test_tick_offsets_do_not_overlap_axis_labels(centre: float) -> None:
    fig, ax = pyplot.subplots(figsize=(2.2, 2.2))
    small = centre + 1e-5 * np.random.default_rng(0).random((20, 2))
    Window.from_points(small).apply(ax)
    Plane.from_points(small, "y").label(ax)
    fig.canvas.draw()
    common = ax.xaxis.get_offset_text()
    assert common.get_text()
    assert not common.get_window_extent().overlaps(ax.xaxis.label.get_window_extent())
