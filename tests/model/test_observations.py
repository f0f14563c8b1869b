"""Observations at any times: values against NumPy, gradients against differences, missing values, errors."""

import pickle

import numpy as np
import pytest

import ocdl

SQUARED = ocdl.Objective("squared_error")
NAN = np.nan


def network(outputs=2, **options):
    options = {"tableau": "kutta4", "field": "mlp", "width": 5, "control_intervals": 1} | options
    return ocdl.Network(2, 7, n_outputs=outputs, **options)


def observed(rng, net, samples=9, times=4, own=True, end=1.0):
    """Observations with holes, and X."""
    shape = (samples, times) if own else (times,)
    clock = np.sort(rng.uniform(0, end, shape), axis=-1)
    if net.time_steps != "fixed" or not net.residual:
        clock = np.sort(rng.permuted(np.tile(np.arange(net.n_layers + 1.0), (*shape[:-1], 1)), axis=-1)[..., :times])
    values = np.abs(rng.normal(size=(samples, times, net.n_outputs)))
    values[rng.random(values.shape) < 0.3] = NAN
    values[:, 0, 0] = 0.5
    return ocdl.Observations(clock, values), rng.normal(size=(samples, net.n_features))


def lagrange(nodes, rows, t):
    weights = [np.prod([(t - other) / (own - other) for other in nodes if other != own]) for own in nodes]
    return np.tensordot(weights, rows, 1)


def reference_outputs(net, u, X, times):
    """The outputs at the times, by the rule of the documentation."""
    states = net.forward(u, X).states
    is_layer = net.time_steps != "fixed" or not net.residual
    layers = np.arange(net.n_layers + 1.0) if is_layer else np.concatenate([[0], np.cumsum(u.h)])
    clock = np.broadcast_to(times, (len(X), np.shape(times)[-1]))
    z = np.empty((*clock.shape, net.n_outputs))
    for i, row in enumerate(clock):
        for k, t in enumerate(row):
            j = min(int(np.searchsorted(layers, t, side="right")) - 1, net.n_layers - 1)
            first = max(min(max(j - 1, 0), net.n_layers - 3), 0)
            side = slice(first, first + 4)
            z[i, k] = u.W @ lagrange(layers[side], states[side, i], t) + u.mu
    return z


def losses_of(z, values, name):
    r = z - values
    return {
        "squared_error": r**2 / 2,
        "huber": np.where(np.abs(r) <= 1, r**2 / 2, np.abs(r) - 0.5),
        "quantile": np.where(r <= 0, -r / 2, r / 2),
        "poisson": np.exp(z) - values * z + values * np.log(np.where(values > 0, values, 1)) - values,
    }[name]


@pytest.mark.parametrize("loss", ["squared_error", "huber", "quantile", "poisson"])
@pytest.mark.parametrize("own", [True, False])
def test_the_value_is_that_of_the_formula(loss, own):
    rng = np.random.default_rng(0)
    net = network()
    y, X = observed(rng, net, own=own)
    u, weights = net.init(1), rng.uniform(0.1, 2, len(X))
    terms = losses_of(reference_outputs(net, u, X, y.times), y.values, loss)
    total = np.nansum(weights[:, None, None] * terms)
    count = np.sum(weights[:, None, None] * ~np.isnan(y.values)) / 2
    for reduction, expected in (("sum", total), ("mean", total / count)):
        objective = ocdl.Objective(loss, reduction=reduction)
        assert net.value(u, X, y, objective, sample_weight=weights) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"time_steps": "free"}, {"time_steps": "simplex"}, {"residual": False}])
def test_outputs_at_times_are_those_of_interpolated_states(options):
    rng = np.random.default_rng(1)
    net = network(**options) if options.get("residual", True) else ocdl.Network(2, 7, n_outputs=2, residual=False)
    y, X = observed(rng, net)
    u = net.init(2)
    np.testing.assert_allclose(net.outputs_at(u, X, y.times), reference_outputs(net, u, X, y.times), rtol=1e-12)
    J = net.value(u, X, y, SQUARED)
    terms = losses_of(reference_outputs(net, u, X, y.times), y.values, "squared_error")
    assert pytest.approx(np.nansum(terms) / np.sum(~np.isnan(y.values)) * 2, rel=1e-12) == J


def test_at_layers_the_outputs_are_those_of_the_states():
    net = network()
    u, X = net.init(0), np.random.default_rng(2).normal(size=(5, 2))
    u.h[:] = [0.1, 0.2, 0.05, 0.3, 0.1, 0.15, 0.2]
    trajectory = net.forward(u, X)
    times = np.concatenate([[0], np.cumsum(u.h)])
    z = net.outputs_at(u, X, times)
    np.testing.assert_allclose(z, np.moveaxis(trajectory.states @ u.W.T + u.mu, 0, 1), rtol=1e-13)
    with pytest.raises(ValueError, match=r"between 0 and the horizon 1\.1, got 1\.2"):
        net.outputs_at(u, X, [0.5, 1.2])


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("options", [{}, {"time_steps": "free"}, {"tableau": "trapezoidal"}])
def test_gradients_costates_and_second_derivatives_fit_together(options, own):
    rng = np.random.default_rng(3)
    net = network(**options)
    y, X = observed(rng, net, own=own)
    u, du = net.init(1), net.init(2)
    du.h[:] = 0.0 if net.time_steps == "fixed" else du.h
    dX = rng.normal(size=X.shape)
    _, g = net.value_and_grad(u, X, y, SQUARED, input_grad=True)
    e = 1e-5

    def J(a):
        return net.value(u + a * du, X + a * dX, y, SQUARED)

    assert (J(e) - J(-e)) / (2 * e) == pytest.approx(g.dot(du) + np.sum(g.X * dX), rel=1e-7)
    np.testing.assert_array_equal(net.adjoint(u, X, y, SQUARED)[0], g.X)
    product = net.hessian_product(u, X, y, SQUARED, du=du)
    ahead, behind = (net.value_and_grad(u + a * du, X, y, SQUARED)[1] for a in (e, -e))
    assert ((ahead - behind) / (2 * e) - product).norm() <= 1e-6 * product.norm()
    assert net.gauss_newton_product(u, X, y, SQUARED, du=du).dot(du) > 0


def test_hamiltonians_and_sensitivities():
    net = ocdl.Network(2, 4, n_outputs=2, tableau="kutta4")
    y, X = observed(np.random.default_rng(4), net)
    u = net.init(0)
    _, g = net.value_and_grad(u, X, y, SQUARED)
    assert g.K.shape == (4, 2, 2)
    assert np.all(np.isfinite(net.hamiltonian_hessian(u, X, y, SQUARED, layer=1)))
    total = ocdl.Objective("squared_error", reduction="sum")
    np.testing.assert_array_equal(net.sensitivity(u, X, y, SQUARED), net.adjoint(u, X, y, total)[0])


def test_one_complete_observation_at_the_end_is_the_usual_objective():
    rng = np.random.default_rng(5)
    net = network()
    u, X, values = net.init(0), rng.normal(size=(700, 2)), rng.normal(size=(700, 2))
    y = ocdl.Observations([1.0], values[:, None, :])
    J, g = net.value_and_grad(u, X, y, SQUARED)
    expected, gradient = net.value_and_grad(u, X, values, SQUARED)
    assert pytest.approx(expected, rel=1e-14) == J
    assert (g - gradient).norm() <= 1e-14 * gradient.norm()


def test_missing_values_and_missing_times_change_nothing():
    rng = np.random.default_rng(6)
    net = network(outputs=1)
    u, X = net.init(0), rng.normal(size=(3, 2))
    values = rng.normal(size=(3, 2))
    plain = ocdl.Observations([0.2, 0.9], values)
    wider = np.full((3, 4), NAN)
    wider[:, [1, 2]] = values
    holes = ocdl.Observations([0.1, 0.2, 0.9, 1.0], wider)
    short = ocdl.Observations([[0.2, 0.9, NAN]] * 3, np.column_stack([values, [NAN] * 3]))
    J, g = net.value_and_grad(u, X, plain, SQUARED)
    for y in (holes, short):
        same, gradient = net.value_and_grad(u, X, y, SQUARED)
        assert same == pytest.approx(J, rel=1e-14)
        assert (gradient - g).norm() <= 1e-13 * g.norm()


class SquaredError:
    """The squared error as a custom loss; NaN in the gradients must not matter."""

    name = "own"

    def __init__(self):
        self.rows = []

    def value_and_grad(self, outputs, targets):
        assert not np.isnan(targets).all(axis=1).any()
        self.rows.append(len(outputs))
        r = outputs - targets
        return np.nansum(r**2, axis=1) / 2, r

    def score(self, outputs, targets):
        return -float(np.nanmean((outputs - targets) ** 2))


@pytest.mark.parametrize("own", [True, False])
def test_a_custom_loss_has_the_rows_with_something_observed(own):
    rng = np.random.default_rng(7)
    net = network()
    y, X = observed(rng, net, own=own)
    u, weights, custom = net.init(0), rng.uniform(1, 2, 9), ocdl.Objective(SquaredError())
    J, g = net.value_and_grad(u, X, y, SQUARED, sample_weight=weights, input_grad=True)
    same, gradient = net.value_and_grad(u, X, y, custom, sample_weight=weights, input_grad=True)
    assert set(custom.loss.rows) == {int((~np.isnan(y.values)).any(axis=2).sum())}
    assert same == pytest.approx(J, rel=1e-13)
    assert net.value(u, X, y, custom, sample_weight=weights) == same
    np.testing.assert_allclose(gradient.to_vector(), g.to_vector(), rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(gradient.X, g.X, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(
        net.adjoint(u, X, y, custom, sample_weight=weights),
        net.adjoint(u, X, y, SQUARED, sample_weight=weights),
        rtol=1e-9,
        atol=1e-14,
    )


def test_a_value_that_is_nan_is_an_error():
    class Careless(SquaredError):
        def value_and_grad(self, outputs, targets):
            r = outputs - targets
            return (r**2).sum(axis=1), r

    net = network()
    y, X = observed(np.random.default_rng(8), net)
    with pytest.raises(FloatingPointError, match=r"values of own\.value_and_grad are NaN"):
        net.value(net.init(0), X, y, ocdl.Objective(Careless()))


def test_single_precision():
    rng = np.random.default_rng(9)
    net, wide = network(dtype="float32"), network()
    y, X = observed(rng, wide)
    u = wide.init(0)
    single = net.from_vector(u.to_vector())
    J, g = wide.value_and_grad(u, X, y, SQUARED)
    same, gradient = net.value_and_grad(single, X, y, SQUARED)
    assert same == pytest.approx(J, rel=1e-5)
    np.testing.assert_allclose(gradient.to_vector(), g.to_vector(), rtol=1e-3, atol=1e-5)
    ends = ocdl.Observations([0.5, 1.0], y.values[:, :2])
    assert net.value(single, X, ends, SQUARED) == pytest.approx(wide.value(u, X, ends, SQUARED), rel=1e-5)


def test_scipy_takes_them():
    net = network()
    y, X = observed(np.random.default_rng(10), net)
    u, J = net.init(0), net.scipy_objective(X, y, SQUARED)
    assert J.y is y
    value, gradient = J.fun(u.to_vector())
    expected, g = net.value_and_grad(u, X, y, SQUARED)
    assert value == expected
    np.testing.assert_array_equal(gradient, g.to_vector())
    assert J.hessp(u, u).shape == (net.n_controls,)


def test_the_object():
    y = ocdl.Observations([0.0, 1.0], [[1, 2], [3, 4]])
    assert (len(y), y.values.shape, repr(y)) == (2, (2, 2, 1), "<Observations of 2 samples at 2 shared times>")
    with pytest.raises(ValueError, match="read-only"):
        y.values[0] = 0
    own = ocdl.Observations([[0.1, NAN], [0.2, 0.4]], [[1, NAN], [3, 4]])
    np.testing.assert_array_equal(own[:1].times, [[0.1, NAN]])
    np.testing.assert_array_equal(own[1].values, [[[3], [4]]])
    copy = pickle.loads(pickle.dumps(y))
    np.testing.assert_array_equal(copy.values, y.values)
    net = network(outputs=1)
    X = np.zeros((2, 2))
    assert net.value(net.init(0), X, copy, SQUARED) == net.value(net.init(0), X, y, SQUARED)


@pytest.mark.parametrize(
    ("times", "values", "message"),
    [
        ([0.1, 0.2], np.zeros((3, 3, 1)), r"times must have shape \(3,\), .* got \(2,\)"),
        ([0.1, 0.2], np.zeros(3), r"values must have shape .* got \(3,\)"),
        ([], np.zeros((3, 0, 1)), r"values must have shape .* got \(3, 0, 1\)"),
        ([[0.1], [0.2]], np.zeros((3, 1)), r"times must have shape"),
        ([0.2, 0.1], np.zeros((3, 2)), r"times must increase, but times\[1\] = 0.1 comes after 0.2"),
        ([[0.1, 0.2], [0.1, 0.1]], np.zeros((2, 2)), r"times\[1, 1\] = 0.1 comes after 0.1"),
        ([-0.1, 0.2], np.zeros((3, 2)), "times must not be negative, got -0.1"),
        ([0.1, np.inf], np.zeros((3, 2)), "times must be finite"),
        ([0.1, NAN], np.zeros((3, 2)), r"times\[1\] is NaN; only samples with times of their own"),
        ([[0.1, NAN]], np.zeros((1, 2)), r"times\[0, 1\]: NaN stands for no more times"),
        ([[NAN, 0.1]], [[NAN, 0.0]], r"times\[0, 1\]: NaN stands for no more times"),
        ([0.1, 0.2], np.full((3, 2), NAN), "all NaN: nothing was observed"),
        ([0.1, 0.2], [[1.0, 2.0], [NAN, NAN]], "nothing was observed of sample 1"),
        ([0.1, 0.2], [[1.0, np.inf]], r"values\[0, 1, 0\] is infinite"),
        (["a"], [[1.0]], "times must hold real numbers"),
        ([0.1], [["a"]], "values must hold real numbers"),
        ([0.1], [[1.0], [1.0, 2.0]], "ragged"),
    ],
)
def test_what_is_no_observation_is_refused(times, values, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ocdl.Observations(times, values)


@pytest.mark.parametrize(
    ("options", "times", "objective", "message"),
    [
        ({}, [0.5, 1.1], SQUARED, "times must lie between 0 and the horizon 1, got 1.1"),
        ({}, [0.5, 1.0], ocdl.Objective("squared"), "which the loss 'squared' of labels does not take"),
        ({}, [0.5, 1.0], ocdl.Objective("poisson"), "y observes -1.0; this loss takes targets from 0 on"),
        ({"time_steps": "free"}, [1, 2.5], SQUARED, "numbers of layers, 0 to 7, where the steps are learned, got 2.5"),
        ({"time_steps": "simplex"}, [1, 8], SQUARED, "numbers of layers, 0 to 7, where the steps are learned, got 8"),
        ({"outputs": 3}, [0.5, 1.0], SQUARED, "y observes 2 outputs but the network has 3"),
    ],
)
def test_what_does_not_fit_the_network_is_refused(options, times, objective, message):
    net = network(**options)
    y = ocdl.Observations(times, -np.ones((4, 2, 2)))
    u, X = net.init(0), np.zeros((4, 2))
    for evaluate in (
        lambda: net.value(u, X, y, objective),
        lambda: net.value_and_grad(u, X, y, objective),
        lambda: net.adjoint(u, X, y, objective),
        lambda: net.hessian_product(u, X, y, objective, du=u),
        lambda: net.scipy_objective(X, y, objective),
        lambda: ocdl.train(net, u, X, y, objective=objective, max_iter=1),
    ):
        with pytest.raises(ValueError, match=message):
            evaluate()


def test_other_refusals():
    net = network()
    y, X = observed(np.random.default_rng(11), net)
    u = net.init(0)
    with pytest.raises(ValueError, match="observations of 9 samples but X has 8"):
        net.value(u, X[:8], y, SQUARED)
    u.h[2] = 0
    with pytest.raises(ValueError, match=r"need positive steps, but h\[2\] is 0"):
        net.value(u, X, y, SQUARED)
    with pytest.raises(TypeError, match="not Observations"):
        SQUARED.output_grad(np.zeros((9, 2)), y)
    with pytest.raises(ValueError, match="certify takes targets of the outputs at the end"):
        net.certify(net.init(0), X, y, SQUARED)
    with pytest.raises(ValueError, match="too large for float32"):
        network(dtype="float32").value(
            network(dtype="float32").init(0), X, ocdl.Observations([1.0], np.full((9, 1, 2), 1e300)), SQUARED
        )
    for times, message in (([[0.1]] * 3, "one row per sample"), ([0.3, 0.2], "must increase"), ([NAN], "finite")):
        with pytest.raises(ValueError, match=message):
            net.outputs_at(net.init(0), X, times)


def test_what_fitted_once_is_checked_again_where_something_has_changed():
    rng = np.random.default_rng(9)
    net = network()
    y, X = observed(rng, net)
    u = net.init(0)
    expected = net.value(u, X, y, SQUARED)
    assert net.value(u, X, y, SQUARED) == expected
    assert net.value_and_grad(u, X.tolist(), y, SQUARED)[0] == expected
    with pytest.raises(ValueError, match="observations of 9 samples but X has 5"):
        net.value(u, X[:5], y, SQUARED)
    with pytest.raises(ValueError, match="Observations are real numbers"):
        net.value(u, X, y, ocdl.Objective("squared"))
    other = network(outputs=3)
    with pytest.raises(ValueError, match="y observes 2 outputs but the network has 3"):
        other.value(other.init(0), X, y, SQUARED)
    u.h[:] /= 2
    with pytest.raises(ValueError, match="times must lie between 0 and the horizon"):
        net.value_and_grad(u, X, y, SQUARED)
