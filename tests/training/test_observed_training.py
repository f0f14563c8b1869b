"""Trainings on observations: methods, sources, ranks, checkpoints, and a known system, which is recovered."""

import numpy as np
import pytest

import ocdl
from ocdl.distributed.ranks import Ranks

SQUARED = ocdl.Objective("squared_error")
NAN = np.nan


def problem(samples=40, times=5, own=True, **options):
    rng = np.random.default_rng(samples)
    net = ocdl.Network(
        2, 6, **{"n_outputs": 2, "tableau": "kutta4", "field": "mlp", "width": 4, "control_intervals": 1} | options
    )
    clock = np.sort(rng.uniform(0, 1, (samples, times) if own else times), axis=-1)
    X = rng.normal(size=(samples, 2))
    angles = np.broadcast_to(clock, (samples, times))
    values = np.stack(
        [
            X[:, :1] * np.cos(angles) - X[:, 1:] * np.sin(angles),
            X[:, :1] * np.sin(angles) + X[:, 1:] * np.cos(angles),
        ],
        axis=2,
    )
    values[rng.random(values.shape) < 0.3] = NAN
    values[:, 0, 0] = 0.1
    return net, net.init(0), X, clock, values


class Custom:
    name = "custom"

    def value_and_grad(self, outputs, targets):
        r = outputs - targets
        return np.nansum(r**2, axis=1) / 2, r


class Source:
    """Rows in memory as a source."""

    def __init__(self, X, times, values, weights=None):
        self.X, self.times, self.values, self.weights = X, times, values, weights
        self.n_rows = len(X)

    def rows(self, i, j):
        times = self.times if self.times.ndim == 1 else self.times[i:j]
        rows = self.X[i:j], ocdl.Observations(times, self.values[i:j])
        return rows if self.weights is None else (*rows, self.weights[i:j])


@pytest.mark.parametrize("time_steps", ["fixed", "free", "simplex"])
@pytest.mark.parametrize(
    "optimiser",
    [
        ocdl.GradientDescent(0.01),
        ocdl.Backtracking(),
        ocdl.Armijo(),
        ocdl.Adam(0.01),
        ocdl.Adam(0.01, batch_size=7),
        ocdl.LBFGS(),
        ocdl.NewtonCG(),
    ],
    ids=repr,
)
def test_every_method_lowers_the_loss(optimiser, time_steps):
    net, u, X, times, values = problem(time_steps=time_steps)
    if time_steps != "fixed":
        times = np.array([1.0, 2.0, 3.0, 5.0, 6.0])
    if time_steps == "simplex" and isinstance(optimiser, ocdl.NewtonCG):
        net, u = problem(time_steps="simplex")[:2]
    y = ocdl.Observations(times, values)
    result = ocdl.train(net, u, X, y, objective=SQUARED, optimiser=optimiser, max_iter=40)
    assert net.value(result.controls, X, y, SQUARED) < 0.95 * net.value(u, X, y, SQUARED)


def test_a_linear_system_is_found_from_observations_with_holes():
    truth = np.array([[0.0, -0.3, 1.2], [0.1, -1.1, -0.2]])  # y' = C (1, y_0, y_1)
    net = ocdl.Network(2, 12, n_outputs=2, tableau="kutta4", field="polynomial", degree=1, control_intervals=1)
    true = net.controls(C=[truth], W=np.eye(2))
    rng = np.random.default_rng(1)
    X = rng.normal(size=(10, 2))
    times = np.sort(rng.uniform(0, 1, (10, 8)), axis=1)
    values = net.outputs_at(true, X, times)
    values[rng.random(values.shape) < 0.4] = NAN
    values[:, 3, 1] = net.outputs_at(true, X, times)[:, 3, 1]
    y = ocdl.Observations(times, values)
    start = net.controls(W=np.eye(2))
    result = ocdl.train(
        net, start, X, y, objective=SQUARED, optimiser=ocdl.LBFGS(), freeze=("W", "mu"), max_iter=200, tol=1e-12
    )
    np.testing.assert_allclose(result.controls.C[0], truth, atol=1e-8)


def test_the_score_is_r2_of_what_was_observed():
    net, u, X, times, values = problem()
    y, weights = ocdl.Observations(times, values), np.random.default_rng(3).uniform(0.5, 2, 40)
    result = ocdl.train(net, u, X, y, objective=SQUARED, sample_weight=weights, max_iter=3, validation=(X, y))
    z, w = net.outputs_at(result.controls, X, times), weights[:, None] * np.ones(times.shape)
    scores = []
    for o in range(2):
        some = ~np.isnan(values[:, :, o])
        c, predicted, own = values[:, :, o][some], z[:, :, o][some], w[some]
        spread = np.sum(own * (c - np.average(c, weights=own)) ** 2)
        scores.append(1 - np.sum(own * (c - predicted) ** 2) / spread)
    assert result.history.score[-1] == pytest.approx(np.mean(scores), rel=1e-12)
    assert result.history.val_loss[-1] == pytest.approx(net.value(result.controls, X, y, SQUARED), rel=1e-12)


def test_an_output_that_is_never_observed_does_not_count_in_the_score():
    net, u, X, times, values = problem()
    values[:, :, 1] = NAN
    y = ocdl.Observations(times, values)
    result = ocdl.train(net, u, X, y, objective=SQUARED, max_iter=0)
    z = net.outputs_at(u, X, times)[:, :, 0]
    some = ~np.isnan(values[:, :, 0])
    c = values[:, :, 0][some]
    assert result.history.score[-1] == pytest.approx(1 - np.sum((c - z[some]) ** 2) / np.sum((c - c.mean()) ** 2))


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("objective", [SQUARED, ocdl.Objective(Custom())], ids=["squared_error", "custom"])
@pytest.mark.parametrize("optimiser", [ocdl.Backtracking(), ocdl.Adam(0.01, batch_size=100)], ids=["all", "batches"])
def test_sources_have_the_bits_of_arrays(own, objective, optimiser):
    net, u, X, times, values = problem(samples=5000, own=own)
    weights = np.random.default_rng(0).uniform(0.5, 1, 5000)
    settings = {"objective": objective, "optimiser": optimiser, "max_iter": 6, "random_state": 0}
    arrays = ocdl.train(net, u, X, ocdl.Observations(times, values), sample_weight=weights, **settings)
    source = ocdl.train(net, u, Source(X, times, values, weights), **settings)
    np.testing.assert_array_equal(source.history.loss, arrays.history.loss)
    np.testing.assert_array_equal(source.controls.to_vector(), arrays.controls.to_vector())
    if objective is SQUARED:
        np.testing.assert_array_equal(source.history.score, arrays.history.score)


def test_rows_of_a_source_at_other_times_are_refused():
    net, u, X, times, values = problem(samples=3000, own=False)

    class Changing(Source):
        def rows(self, i, j):
            times = self.times if j - i <= 64 else self.times * 0.9
            return self.X[i:j], ocdl.Observations(times, self.values[i:j])

    with pytest.raises(ValueError, match="at the times of the first rows"):
        ocdl.train(net, u, Changing(X, times, values), objective=SQUARED, max_iter=1)


def test_a_resumed_training_has_the_same_bits(tmp_path):
    net, u, X, times, values = problem()
    y = ocdl.Observations(times, values)
    settings = {"objective": SQUARED, "optimiser": ocdl.LBFGS()}
    whole = ocdl.train(net, u, X, y, max_iter=12, **settings)
    path = tmp_path / "state"
    ocdl.train(net, u, X, y, max_iter=5, checkpoint=path, **settings)
    resumed = ocdl.train(net, u, X, y, max_iter=12, checkpoint=ocdl.Checkpoint(path, resume=True), **settings)
    np.testing.assert_array_equal(resumed.controls.to_vector(), whole.controls.to_vector())
    other = ocdl.Observations(times * 0.99, values)
    with pytest.raises(ValueError, match="training"):
        ocdl.train(net, u, X, other, max_iter=12, checkpoint=ocdl.Checkpoint(path, resume=True), **settings)


def test_bits_do_not_depend_on_threads():
    net, u, X, times, values = problem(samples=3000)
    y, before = ocdl.Observations(times, values), ocdl.get_num_threads()
    actual = []
    try:
        for threads in (1, 2, 3):
            ocdl.set_num_threads(threads)
            actual.append(net.value_and_grad(u, X, y, SQUARED)[1].to_vector())
    finally:
        ocdl.set_num_threads(before)
    np.testing.assert_array_equal(actual[0], actual[1])
    np.testing.assert_array_equal(actual[0], actual[2])


def test_steps_of_the_start_decide_which_times_are_within_the_horizon():
    net, u, X, times, values = problem()
    u.h[:] = 0.3
    y = ocdl.Observations(1.5 * times, values)
    assert len(ocdl.train(net, u, X, y, objective=SQUARED, max_iter=1).history.loss)
    with pytest.raises(ValueError, match="between 0 and the horizon"):
        ocdl.train(net, net.init(0), X, y, objective=SQUARED, max_iter=1)
    with pytest.raises(ValueError, match="validation: times must lie between 0 and the horizon"):
        ocdl.train(net, net.init(0), X, ocdl.Observations(times, values), objective=SQUARED, validation=(X, y))


def test_levels_change_the_numbers_of_layers():
    net, _, X, _, values = problem(time_steps="free")
    y = ocdl.Observations([1, 2, 3, 4, 5], values)
    with pytest.raises(ValueError, match="where times are numbers of layers"):
        ocdl.train_multilevel(net, None, X, y, levels=(3, 6), objective=SQUARED)
    net, _, X, times, values = problem()
    actual = ocdl.train_multilevel(
        net, None, X, ocdl.Observations(times, values), levels=(3, 6), objective=SQUARED, max_iter=5, random_state=0
    )
    assert len(actual.results) == 2


def test_a_rank_may_have_no_rows():
    net, _, X, times, values = problem()
    y = ocdl.Observations(times[:0], values[:0])
    assert Ranks().min_rows == 1
    with pytest.raises(ValueError, match="X is empty"):
        ocdl.train(net, net.init(0), X[:0], y, objective=SQUARED)
