"""`Dynamics` learns systems whose equations are known."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from dynamical_systems import irregular_series, oscillator, saturation, solve
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

import ocdl

TRUTH = {("y0", "y1"): 1.0, ("y1", "y0"): -1.0, ("y1", "y1"): -0.3, ("y1", "y0^3"): -0.5}


def named_terms(model: ocdl.Dynamics) -> dict[tuple[str, str], float]:
    return {
        (state, term): float(c)
        for state, row in zip(model.state_names_, model.coefficients_, strict=True)
        for term, c in zip(model.feature_names_, row, strict=True)
        if c != 0
    }


@pytest.fixture(scope="module")
def polynomial() -> ocdl.Dynamics:
    return ocdl.Dynamics(field="polynomial", random_state=0).fit(*irregular_series(oscillator, noise=0.01))


@pytest.fixture(scope="module")
def mlp() -> ocdl.Dynamics:
    return ocdl.Dynamics(width=12, random_state=0, max_iter=30).fit(*irregular_series(saturation, noise=0.01))


def test_true_equation_is_found(polynomial: ocdl.Dynamics) -> None:
    found = named_terms(polynomial)
    assert found.keys() == TRUTH.keys()
    for key, value in TRUTH.items():
        assert found[key] == pytest.approx(value, rel=0.05)


def test_noise_and_standard_errors_are_estimated(polynomial: ocdl.Dynamics) -> None:
    np.testing.assert_allclose(polynomial.noise_, 0.01, rtol=0.2)
    errors = polynomial.coefficient_errors_[polynomial.coefficients_ != 0]
    deviations = np.array([*named_terms(polynomial).values()]) - np.array([*TRUTH.values()])
    assert (errors > 0).all()
    assert (np.abs(deviations) < 5 * errors).all()


def test_mlp_simulates_new_starts_beyond_the_data(mlp: ocdl.Dynamics) -> None:
    times, y0 = np.linspace(0, 12, 40), np.array([1.0, 0.5])
    error = mlp.simulate(y0, times) - solve(saturation, y0, times)
    assert np.sqrt(np.mean(error**2)) < 0.05
    assert mlp.score(*irregular_series(saturation, seed=7, count=3)) > 0.99


def test_simulation_is_invariant_in_time_and_takes_several_states(polynomial: ocdl.Dynamics) -> None:
    times, y0 = np.array([0.0, 0.5, 2.0]), np.array([[1.0, 0.0], [0.0, 1.0]])
    together = polynomial.simulate(y0, times)
    assert together.shape == (2, 3, 2)
    np.testing.assert_array_equal(together[1], polynomial.simulate(y0[1], times))
    np.testing.assert_array_equal(together[:, 0], y0)
    np.testing.assert_allclose(polynomial.simulate(y0, times + 3.0), together, rtol=1e-12, atol=1e-12)
    assert polynomial.simulate(y0[0], [5.0]).tolist() == [[1.0, 0.0]]


def test_derivative_is_that_of_the_simulation(mlp: ocdl.Dynamics) -> None:
    y0, h = np.array([0.4, -0.3]), 1e-3
    path = mlp.simulate(y0, [0.0, h, 2 * h])
    np.testing.assert_allclose(mlp.derivative(path[1]), (path[2] - path[0]) / (2 * h), rtol=1e-4, atol=1e-6)
    assert mlp.derivative(path).shape == (3, 2)


def test_derivative_is_the_equation(polynomial: ocdl.Dynamics) -> None:
    y = np.array([0.4, -0.3])
    C = named_terms(polynomial)
    expected = [C["y0", "y1"] * y[1], C["y1", "y0"] * y[0] + C["y1", "y1"] * y[1] + C["y1", "y0^3"] * y[0] ** 3]
    np.testing.assert_allclose(polynomial.derivative(y), expected, rtol=1e-10)


def test_initial_state_fits_a_series_with_missing_values(polynomial: ocdl.Dynamics) -> None:
    times, y0 = np.linspace(0, 4, 15), np.array([1.0, -0.5])
    X = solve(oscillator, y0, times)
    X[0] = np.nan
    X[3:6, 1] = np.nan
    np.testing.assert_allclose(polynomial.initial_state(X, times), y0, atol=0.02)
    assert polynomial.initial_state([X, X], [times, times]).shape == (2, 2)
    assert polynomial.score(X, times) > 0.999


@pytest.mark.parametrize("form", ["stack", "one", "frames"])
def test_forms_of_series(form: str) -> None:
    times = np.linspace(0, 5, 26)
    series = [solve(oscillator, np.array(y0), times) for y0 in ([1.0, 0.0], [0.0, 1.2], [-1.0, 0.4])]
    model = ocdl.Dynamics(field="polynomial", random_state=0)
    if form == "stack":
        model.fit(np.stack(series), times[1])
    elif form == "one":
        model.fit(series[0], times)
    else:
        model.fit([pd.DataFrame(one, columns=["q", "p"]) for one in series], times)
        assert model.state_names_ == ["q", "p"]
        assert model.equations(2)[0] == "q' = 1 p"
    y = model.simulate([1.0, 0.0], times)
    np.testing.assert_allclose(y, series[0], atol=0.01)


def test_demo_of_torchdiffeq() -> None:
    A = np.array([[-0.1, 2.0], [-2.0, -0.1]])
    times = np.linspace(0.0, 25.0, 1000)
    X = solve(lambda _, y: (y**3 @ A).tolist(), np.array([2.0, 0.0]), times)
    model = ocdl.Dynamics(field="polynomial", random_state=0).fit(X, times)
    assert np.abs(model.simulate(X[0], times) - X).mean() < 1e-4


def test_hidden_component() -> None:
    X, times = irregular_series(oscillator, noise=0.005)
    model = ocdl.Dynamics(width=10, augment=1, max_iter=45, random_state=0).fit([x[:, :1] for x in X], times)
    new, clock = irregular_series(oscillator, seed=5, count=3)
    assert model.score([x[:, :1] for x in new], clock) > 0.98
    assert model.simulate([1.0, 0.0], [0.0, 1.0]).shape == (2, 2)


def test_observed_combinations() -> None:
    X, times = irregular_series(oscillator)
    W = np.array([[1.0, 1.0], [1.0, -1.0], [0.5, 0.0]])
    model = ocdl.Dynamics(field="polynomial", observe=W, random_state=0).fit([x @ W.T for x in X], times)
    assert named_terms(model).keys() == TRUTH.keys()
    swapped = ocdl.Dynamics(field="polynomial", observe=[1, 0], random_state=0).fit([x[:, ::-1] for x in X], times)
    assert named_terms(swapped).keys() == TRUTH.keys()


def test_inputs() -> None:
    rng = np.random.default_rng(0)
    times = np.linspace(0, 8, 81)
    X, inputs = [], []
    for _ in range(4):
        x = np.interp(times, times[::10], rng.uniform(-1, 1, 9))
        X.append(
            solve(
                lambda t, y, x=x: [y[1], -2 * y[0] - 0.4 * y[1] + 1.5 * np.interp(t, times, x)],
                rng.uniform(-1, 1, 2),
                times,
            )
        )
        inputs.append(x[:, None])
    model = ocdl.Dynamics(field="polynomial", degree=2, random_state=0).fit(X, times, inputs=inputs)
    found = named_terms(model)
    assert found.keys() == {("y0", "y1"), ("y1", "y0"), ("y1", "y1"), ("y1", "x0")}
    assert found["y1", "x0"] == pytest.approx(1.5, rel=0.01)
    path = model.simulate(X[0][0], times, inputs=inputs[0])
    np.testing.assert_allclose(path, X[0], atol=0.01)
    assert model.score(X, times, inputs=inputs) > 0.999
    np.testing.assert_allclose(model.derivative(X[0][:3], inputs[0][:3])[:, 0], X[0][:3, 1], atol=0.01)


def test_known_linear_part_is_kept_or_learned() -> None:
    X, times = irregular_series(oscillator)
    A = np.array([[0.0, 1.0], [-1.0, -0.3]])
    kept = ocdl.Dynamics(field="polynomial", linear=A, learn_linear=False, random_state=0).fit(X, times)
    assert named_terms(kept).keys() == TRUTH.keys()
    np.testing.assert_allclose(kept.coefficients_[:, 1:3], A, atol=1e-12)
    mlp = ocdl.Dynamics(width=8, linear=A, learn_linear=False, max_iter=15, random_state=0).fit(X, times)
    learned = mlp.models_[0]
    scaled = learned.units.time * A * learned.units.scale / learned.units.scale[:, None]
    np.testing.assert_allclose(learned.system.part(learned.theta, "A"), scaled, rtol=1e-12)


def test_sparsity() -> None:
    X, times = irregular_series(oscillator, noise=0.01)
    counts = [
        len(named_terms(ocdl.Dynamics(field="polynomial", sparsity=weight, random_state=0).fit(X, times)))
        for weight in (None, 1e-3, 10.0)
    ]
    assert counts[0] == 20
    assert counts[0] > counts[1] > counts[2]


def test_ensemble_has_bands() -> None:
    X, times = irregular_series(oscillator, noise=0.05)
    model = ocdl.Dynamics(field="polynomial", n_models=4, n_jobs=2, random_state=0).fit(X, times)
    assert len(model.models_) == 4
    clock = np.linspace(0, 6, 10)
    low, high = model.simulate([1.0, 0.5], clock, quantiles=(0.1, 0.9))
    middle = model.simulate([1.0, 0.5], clock)
    assert (low <= middle).all()
    assert (middle <= high).all()
    assert (low[1:] < high[1:]).all()
    assert model.simulate([[1.0, 0.5]], clock, quantiles=[0.5]).shape == (1, 1, 10, 2)
    one = ocdl.Dynamics(field="polynomial", n_models=2, random_state=0).fit(X[0], times[0])
    assert (one.coefficient_errors_ > 0).any()


def test_same_seed_same_bits_and_clone() -> None:
    X, times = irregular_series(oscillator, noise=0.01)
    model = ocdl.Dynamics(width=6, max_iter=9, random_state=3)
    first, second = (clone(model).fit(X, times).simulate([1.0, 0.0], [0.0, 2.0]) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    assert clone(model).get_params() == model.get_params()


def test_grid_search_over_lists_of_series() -> None:
    X, times = irregular_series(oscillator, noise=0.01, count=6)
    search = GridSearchCV(ocdl.Dynamics(field="polynomial", random_state=0), {"degree": [1, 3]}, cv=KFold(2))
    search.fit(X, times)
    assert search.best_params_ == {"degree": 3}


def test_trajectories_beyond_the_range_are_nan_with_a_warning() -> None:
    t = np.linspace(0, 0.8, 30)
    model = ocdl.Dynamics(field="polynomial", degree=2, random_state=0).fit((1 / (1 - t))[:, None], t)  # y' = y^2
    with pytest.warns(RuntimeWarning, match="1 of 2 trajectories leave the range"):
        y = model.simulate([[1.0], [-1.0]], np.linspace(0, 3, 31))
    assert np.isnan(y[0, -1, 0])
    assert np.isfinite(y[0, :9]).all()
    assert np.isfinite(y[1]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert model.score(np.ones((31, 1)), np.linspace(0, 3, 31)) <= 0


@pytest.mark.parametrize("field", ["mlp", "polynomial"])
def test_pure_noise_and_constants_give_finite_models(field: str) -> None:
    rng = np.random.default_rng(0)
    for X in (rng.standard_normal((30, 2)), np.ones((10, 1)), np.column_stack([np.arange(12.0), np.full(12, 3.0)])):
        model = ocdl.Dynamics(field=field, width=5, max_iter=6, random_state=0).fit(X, 0.5)
        assert np.isfinite(model.models_[0].theta).all()


def test_verbose_says_what_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    X, times = irregular_series(oscillator, noise=0.01)
    ocdl.Dynamics(field="polynomial", verbose=1, random_state=0).fit(X, times)
    text = capsys.readouterr().out
    assert "windows, jumps 3 of the noise" in text
    assert "held-out error" in text


class Distance:
    """The squared distance from the origin at the last time, and the squares of the inputs."""

    def value_and_grad(self, states: np.ndarray, inputs: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        gradient = np.zeros_like(states)
        gradient[-1] = 2 * states[-1]
        return float(np.sum(states[-1] ** 2) + 0.01 * np.sum(inputs**2)), gradient, 0.02 * inputs


@pytest.fixture(scope="module")
def controlled() -> ocdl.Dynamics:
    times = np.linspace(0, 6, 61)
    x = np.sin(times) + 0.5 * np.cos(2.3 * times)
    y = solve(
        lambda t, y: [y[1], -y[0] + np.sin(t) + 0.5 * np.cos(2.3 * t)],
        np.array([1.0, 0.0]),
        times,
    )
    return ocdl.Dynamics(field="polynomial", degree=1, random_state=0).fit(y, times, inputs=x[:, None])


def test_inputs_are_optimised(controlled: ocdl.Dynamics) -> None:
    times = np.linspace(0, 3, 16)
    free = controlled.simulate([1.0, 0.0], times, inputs=np.zeros((16, 1)))
    found = controlled.optimise_inputs([1.0, 0.0], times, Distance(), bounds=(-1, 1))
    assert found.converged
    assert np.abs(found.inputs).max() <= 1
    assert found.cost < 0.2 * np.sum(free[-1] ** 2)
    np.testing.assert_allclose(found.states, controlled.simulate([1.0, 0.0], times, inputs=found.inputs), atol=1e-9)


def test_gradient_by_inputs_is_that_of_the_cost(controlled: ocdl.Dynamics) -> None:
    from ocdl.dynamics.control import InputProblem

    times = np.array([0.0, 0.4, 1.1, 2.0])
    problem = InputProblem(controlled.models_[0], np.array([1.0, 0.2]), times)
    x, rng = np.array([[0.3], [-0.2], [0.5], [0.1]]), np.random.default_rng(0)
    weights = rng.standard_normal((4, 2))
    states, sweep = problem.trajectory(x)
    gradient = problem.gradient(sweep, weights)
    for i in range(4):
        moved = x.copy()
        moved[i] += 1.0  # the system is linear in its inputs: differences are exact
        difference = np.sum(weights * (problem.trajectory(moved)[0] - states))
        np.testing.assert_allclose(gradient[i, 0], difference, rtol=1e-9, atol=1e-12)
