"""Pictures of learned systems: phase portraits, forecasts and their errors."""

from __future__ import annotations

from functools import cache
from typing import Any

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import pandas as pd
from matplotlib.colors import to_rgba
from oscillators import A, make_series, oscillate
from plot_examples import make_figure

import ocdl
from ocdl import plot

X, TIMES = make_series(4)
BLUE, ORANGE = to_rgba("#0072b2"), to_rgba("#d55e00")


@cache
def fitted(n_models: int = 1) -> ocdl.Dynamics:
    options: dict[str, Any] = {"field": "polynomial", "degree": 1, "n_models": n_models, "random_state": 0}
    return ocdl.Dynamics(**options).fit([pd.DataFrame(x, columns=["a", "b"]) for x in X], TIMES)


# ---- phase portrait ----


def test_arrows_have_the_direction_of_the_field_on_the_axes() -> None:
    """Whatever the units of the axes are: as the steps of a trajectory on them."""
    ax = make_figure().add_subplot()
    states = np.array([[-1.0, -100.0], [1.0, 100.0]])
    scales = np.array([1.0, 100.0])
    drawn = plot.phase_portrait(lambda y: (y / scales) @ A.T * scales, states, resolution=7, ax=ax)
    assert drawn.ax is ax
    assert drawn.arrows.N == 49
    places = np.stack([drawn.arrows.X, drawn.arrows.Y], axis=1)
    lengths = np.stack([drawn.arrows.U, drawn.arrows.V], axis=1)
    slopes = (places / scales) @ A.T * scales
    cell = np.ptp(places, axis=0) / 6
    expected = slopes / cell
    actual = lengths / cell
    moves = np.hypot(*expected.T) > 0
    np.testing.assert_allclose(
        actual[moves] / np.hypot(*actual[moves].T)[:, None],
        expected[moves] / np.hypot(*expected[moves].T)[:, None],
        atol=1e-12,
    )
    assert np.hypot(*actual.T).max() < 1
    order = np.argsort(np.hypot(*expected.T))
    assert (np.diff(np.hypot(*actual[order].T)) > -1e-12).all(), "faster states have longer arrows"


def test_a_model_its_observations_and_trajectories() -> None:
    model = fitted()
    states = model.simulate([[1.0, 0.0], [0.0, 1.0]], np.linspace(0, 3, 30))
    drawn = plot.phase_portrait(model, X, trajectories=states, components=(1, 0), ax=make_figure().add_subplot())
    assert (drawn.ax.get_xlabel(), drawn.ax.get_ylabel()) == ("b", "a")
    assert [line.get_xydata().tolist() for line in drawn.trajectories] == states[:, :, ::-1].tolist()
    assert drawn.points is not None
    assert len(drawn.points.get_xdata()) == sum(map(len, X))
    assert {to_rgba(line.get_color()) for line in drawn.trajectories} == {BLUE}
    assert to_rgba(drawn.points.get_color()) == ORANGE
    assert "2 trajectories" in repr(drawn)


def test_other_components_are_at_their_medians_or_where_they_are_put() -> None:
    seen = []

    def field(states: np.ndarray) -> np.ndarray:
        seen.append(states[:, 2])
        return states

    points = np.random.default_rng(0).normal(size=(9, 3))
    plot.phase_portrait(field, points, ax=make_figure().add_subplot())
    plot.phase_portrait(field, points, at=[0.0, 0.0, 5.0], ax=make_figure().add_subplot())
    assert set(seen[0]) == {np.median(points[:, 2])}
    assert set(seen[1]) == {5.0}


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((), {}, "X or trajectories is required"),
        ((X,), {"components": (0, 0)}, "components must be different numbers from 0 to 1"),
        ((X,), {"components": (0,)}, "components must be two numbers"),
        ((X,), {"components": (0, 2)}, "components must be different numbers from 0 to 1"),
        ((X,), {"at": [1.0]}, "at must have shape"),
        ((X,), {"resolution": 1}, "resolution must be at least 2"),
        ((X,), {"trajectories": np.zeros((5, 3))}, "X and trajectories must have the same components"),
        ((X,), {"trajectories": np.zeros(5)}, "trajectories must have shape"),
        ((X,), {"trajectories": []}, "trajectories must not be empty"),
        ((X,), {"inputs": [1.0]}, "inputs"),
    ],
)
def test_mistakes_of_phase_portraits(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot.phase_portrait(lambda y: y, *arguments, **options, ax=make_figure().add_subplot())


def test_fields_that_are_none() -> None:
    with pytest.raises(ValueError, match="model must return derivatives of shape"):
        plot.phase_portrait(lambda y: y[0], X, ax=make_figure().add_subplot())
    for thing in (3, ocdl.Dynamics):
        with pytest.raises(TypeError, match="model must be a fitted Dynamics"):
            plot.phase_portrait(thing, X)


# ---- forecast ----


def test_observations_after_the_origin_are_circles_and_not_used() -> None:
    model, origin = fitted(), float(TIMES[0][9])
    drawn = plot.forecast(model, X[0], TIMES[0], origin=origin, end=6.0, ax=make_figure().add_subplot())
    changed = X[0].copy()
    changed[10:] = 99.0
    other = plot.forecast(model, changed, TIMES[0], origin=origin, end=6.0, ax=make_figure().add_subplot())
    for line, same in zip(drawn.lines, other.lines, strict=True):
        assert np.array_equal(line.get_ydata(), same.get_ydata())
        assert line.get_xdata()[[0, -1]].tolist() == [TIMES[0][0], 6.0]
    assert [len(line.get_xdata()) for line in drawn.observations] == [10, 10]
    assert [line.get_label() for line in drawn.lines] == ["a", "b"]
    assert drawn.bands == []
    states = model.simulate(model.initial_state(X[0][:10], TIMES[0][:10]), drawn.lines[0].get_xdata())
    assert np.array_equal(drawn.lines[1].get_ydata(), states[:, 1])


def test_an_ensemble_has_bands() -> None:
    drawn = plot.forecast(fitted(3), X[0], TIMES[0], components=[1], ax=make_figure().add_subplot())
    assert repr(drawn) == "<Forecast: 1 component, with bands>"
    (band,), (line,) = drawn.bands, drawn.lines
    assert to_rgba(line.get_color()) == BLUE
    assert tuple(band.get_facecolor()[0][:3]) == BLUE[:3]


def test_inputs_are_known_until_the_last_time() -> None:
    t = np.linspace(0, 4, 41)
    x = np.sin(2 * t)[:, None]
    y = ((2 * np.exp(-t) - 2 * np.cos(2 * t) + np.sin(2 * t)) / 5)[:, None]  # y' = x - y
    model = ocdl.Dynamics(field="polynomial", degree=1, random_state=0).fit(y, t, inputs=x)
    drawn = plot.forecast(model, y, t, inputs=x, origin=1.0, ax=make_figure().add_subplot())
    at = drawn.lines[0].get_xdata()
    exact = (2 * np.exp(-at) - 2 * np.cos(2 * at) + np.sin(2 * at)) / 5
    assert np.abs(drawn.lines[0].get_ydata() - exact).max() < 0.01
    with pytest.raises(ValueError, match="until which the inputs are known"):
        plot.forecast(model, y, t, inputs=x, end=5.0)
    portrait = plot.phase_portrait(
        ocdl.Dynamics(field="polynomial", degree=1, random_state=0).fit(np.hstack([y, y]), t, inputs=x),
        np.hstack([y, y]),
        inputs=[1.0],
        ax=make_figure().add_subplot(),
    )
    assert np.isfinite(portrait.arrows.U).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"origin": -1.0}, "origin must be at least the first time"),
        ({"end": 0.0}, "end must lie after the first time"),
        ({"quantiles": (0.9, 0.1)}, "quantiles must be two increasing numbers"),
        ({"components": [2]}, "components must be different numbers from 0 to 1"),
    ],
)
def test_mistakes_of_forecasts(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot.forecast(fitted(), X[0], TIMES[0], **options)
    with pytest.raises(ValueError, match="X must be one series, got 4"):
        plot.forecast(fitted(), X, TIMES)


# ---- error ----


def test_errors_of_a_model_that_is_exact_are_the_noise() -> None:
    """Without noise they are 0; the models' names are those of the legend."""
    times = np.linspace(0, 4, 41)
    series = [oscillate(start, times) for start in np.eye(2)]
    model = ocdl.Dynamics(field="polynomial", degree=1, random_state=0).fit(series, [times] * 2)
    drawn = plot.forecast_error(
        {"exact": model, "other": fitted()}, series, [times] * 2, ax=make_figure().add_subplot()
    )
    exact, other = (line.get_ydata() for line in drawn.lines)
    assert exact.max() < 1e-4
    assert 1e-4 < other.max() < 0.2
    horizon = drawn.lines[0].get_xdata()
    assert 0 < horizon[0] < horizon[-1] <= 4 - 4 * 0.1
    assert [text.get_text() for text in drawn.ax.get_legend().get_texts()] == ["exact", "other"]
    assert (drawn.ax.get_yscale(), repr(drawn)) == ("log", "<ForecastError: 2 models>")


def test_missing_values_are_left_out() -> None:
    rows = X[0].copy()
    rows[:, 0][::2] = np.nan
    rows[7] = np.nan
    drawn = plot.forecast_error(fitted(), rows, TIMES[0], n_observations=4, ax=make_figure().add_subplot())
    assert np.isfinite(drawn.lines[0].get_ydata()).all()


def test_mistakes_of_forecast_errors() -> None:
    with pytest.raises(ValueError, match="n_observations must be less than the longest series has, 20, got 20"):
        plot.forecast_error(fitted(), X, TIMES, n_observations=20)
    with pytest.raises(ValueError, match="got an empty one"):
        plot.forecast_error({}, X, TIMES)
    with pytest.raises(TypeError, match=r"models\['a'\] must be a fitted Dynamics"):
        plot.forecast_error({"a": 3}, X, TIMES)
