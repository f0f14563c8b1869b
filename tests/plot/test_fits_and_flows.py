"""Pictures of regressions, of what layers do to the plane, and of the iterate that a training kept."""

from dataclasses import replace

import numpy as np
import pytest
from plot_examples import make_figure, make_network, make_points
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ocdl
from ocdl import plot
from ocdl.plot._flow import layer_step, make_grid
from ocdl.plot._model import resolve_model
from ocdl.plot._plane import Window

RNG = np.random.default_rng(0)


def regression(features: int) -> tuple[np.ndarray, np.ndarray]:
    X = RNG.standard_normal((40, features))
    return X, np.sin(X).sum(axis=1)


@pytest.mark.parametrize("kind", ["pair", "estimator", "pipeline"])
@pytest.mark.parametrize("features", [1, 2, 3])
def test_a_regression_is_drawn_as_its_model_predicts(features: int, kind: str) -> None:
    X, y = regression(features)
    if kind == "pair":
        net = ocdl.Network(features, 3)
        model: object = (net, net.init(random_state=0))
        predict = lambda rows: net.predict(model[1], rows)[:, 0]  # noqa: E731
    else:
        steps = [StandardScaler()] if kind == "pipeline" else []
        model = make_pipeline(*steps, ocdl.ODERegressor(alpha=1, random_state=0)).fit(X, y)
        predict = model.predict
    fit = plot.prediction(model, X, y, resolution=7, ax=make_figure().add_subplot())
    assert isinstance(fit, plot.Fit)
    assert len(fit.points.get_offsets()) == 40
    if features == 1:
        assert fit.curve is not None
        np.testing.assert_allclose(fit.curve.get_ydata(), predict(np.asarray(fit.curve.get_xdata())[:, None]))
    elif features == 2:
        assert fit.background is not None
        left, right, bottom, top = fit.background.get_extent()
        centre = [[(left + right) / 2, (bottom + top) / 2]]
        np.testing.assert_allclose(fit.background.get_array()[3, 3], predict(np.array(centre))[0])
        np.testing.assert_array_equal(fit.points.get_array(), y)
        assert fit.points.norm is fit.background.norm
    else:
        np.testing.assert_allclose(fit.points.get_offsets(), np.stack([y, predict(X)], axis=-1))


def test_whole_numbers_are_labels_for_a_network() -> None:
    X, y = make_points(2, 2)
    assert isinstance(plot.prediction(make_network(2, 2), X, y.astype(float), resolution=3), plot.Scene)


def test_a_layer_of_the_flow_is_the_layer_of_the_network() -> None:
    for options in ({"tableau": "kutta4"}, {"residual": False}, {"time_steps": "simplex"}, {"control_intervals": 2}):
        net, u = make_network(2, 2, **options)
        trained = resolve_model((net, u))
        states = net.forward(u, RNG.standard_normal((5, 2))).states
        for j in range(net.n_layers):
            np.testing.assert_allclose(layer_step(trained, j, states[j]), states[j + 1] - states[j], atol=1e-14)


def test_a_flow_shows_points_grid_and_arrows_layer_by_layer() -> None:
    X, y = make_points(2, 2)
    net, u = make_network(2, 2)
    panels = plot.flow((net, u), X, y, layers=[0, 3, 8], cells=5, fig=make_figure())
    assert [panel.ax.get_title() for panel in panels] == ["layer 0, data", "layer 3", "layer 8"]
    states = net.forward(u, X).states
    window = Window.from_points(X)
    for panel, layer in zip(panels, (0, 3, 8), strict=True):
        for number, points in enumerate(panel.points):
            np.testing.assert_array_equal(points.get_offsets(), states[layer][y == number])
        expected = net.forward(u, make_grid(window, 5).reshape(-1, 2)).states[layer]
        np.testing.assert_array_equal(np.concatenate(panel.grid.get_segments()), expected)
        assert (panel.arrows is None) == (layer == 8)
    longest = max(np.hypot(panel.arrows.U, panel.arrows.V).max() / panel.arrows.scale for panel in panels[:2])
    left, right = panels[0].ax.get_xlim()
    assert longest == pytest.approx(0.9 * (right - left) / 5)


REFUSED = [
    (lambda X, y: plot.flow(make_network(2, 2, augment=1), X, y), "got 2 features and augment=1"),
    (lambda X, y: plot.flow(make_network(3, 2), np.zeros((30, 3)), y), "got 3 features and augment=0"),
    (lambda X, y: plot.flow(make_network(2, 2), X, y, cells=1), "cells must be at least 2, got 1"),
    (lambda X, y: plot.prediction(make_network(2, 3), X, y / 2), "model must have one output, got 3"),
    (lambda X, y: plot.prediction(make_network(2, 2), X, y[:3] / 2), r"y must have shape \(30,\)"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refusals_name_what_is_accepted(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call(*make_points(2, 2))


def test_the_kept_iterate_is_marked() -> None:
    X, y = make_points(2, 2)
    net = ocdl.Network(2, 4)
    held = ocdl.Validation(X, 1 - y, patience=2)
    r = ocdl.train(net, net.init(random_state=0), X, y, max_iter=100, eval_every=1, validation=held)
    assert r.status is ocdl.Status.EARLY_STOPPING
    for result, expected in ((r, 1), (r.history, 0), (replace(r, status=ocdl.Status.GRADIENT), 0)):
        curves = plot.history(result, ax=make_figure().add_subplot())
        stars = [line for line in curves.ax.lines if line.get_marker() == "*"]
        assert len(stars) == expected
        assert [text.get_text() for text in curves.ax.get_legend().get_texts()].count("kept") == expected
    best = int(np.argmin(r.history.val_loss))
    (star,) = [line for line in plot.history(r, ax=make_figure().add_subplot()).ax.lines if line.get_marker() == "*"]
    assert star.get_ydata()[0] == r.history.val_loss[best]
