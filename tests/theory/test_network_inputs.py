"""Inputs: what the field takes beside the state, and the derivatives by it."""

import pickle
import re
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import reference
from numpy.typing import NDArray
from problems import TABLEAUX, field_options

import ocdl
from ocdl import Network, Tableau

Array = NDArray[Any]
SQUARED_ERROR = ocdl.Objective("squared_error")
HOLDS = ("linear", "zero")
TAKERS = ("mlp", "polynomial")


def network(
    field: str = "mlp", hold: str = "linear", tableau: str = "kutta4", layers: int = 5, **options: Any
) -> Network:
    settings: dict[str, Any] = {"n_inputs": 2, "time_steps": "free", "n_outputs": 2, "augment": 1} | options
    return Network(2, layers, **field_options(field), input_hold=hold, tableau=tableau, **settings)


def samples_of(net: Network, samples: int = 9, seed: int = 0) -> tuple[ocdl.Controls, Array, Array, Array]:
    """Controls of moderate size, X, inputs and targets."""
    rng = np.random.default_rng(seed)
    u = net.from_vector((0.05 if net.degree == 2 else 0.2) * rng.normal(size=net.n_controls))
    u.h[...] = rng.uniform(0.5, 1.5, net.n_layers) / net.n_layers
    times = net.n_layers + (net.input_hold == "linear")
    X, inputs = rng.normal(size=(samples, 2)), rng.normal(size=(samples, times, net.n_inputs))
    return u, X.astype(net.dtype), inputs.astype(net.dtype), rng.normal(size=(samples, net.n_outputs)).astype(net.dtype)


# ---- values ----


@pytest.mark.parametrize("hold", HOLDS)
@pytest.mark.parametrize("field", TAKERS)
@pytest.mark.parametrize("tableau", TABLEAUX)
def test_the_flow_follows_the_formula(tableau: str, field: str, hold: str) -> None:
    for options in ({}, {"control_intervals": 2}, {"stage_controls": True}, {"n_inputs": 7}):
        net = network(field, hold, tableau, **options)
        u, X, inputs, _ = samples_of(net)
        parts = [u.parts()[part.name][list(net.layer_sets) if part.role == "field" else ...] for part in net.parts]
        expected = reference.states(net, np.concatenate([part.ravel() for part in parts]), X, inputs)
        result = net.forward(u, X, inputs=inputs)
        np.testing.assert_allclose(result.states, expected, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(net.predict(u, X, inputs=inputs), result.outputs)
        np.testing.assert_array_equal(net.final_state(u, X, inputs=inputs), result.states[-1])


@pytest.mark.parametrize("hold", HOLDS)
def test_the_flow_follows_the_formula_in_fifty_digits(hold: str) -> None:
    """Kutta's method of order 4 for one sample, written out with mpmath."""
    net = network(hold=hold, augment=0, n_inputs=1)
    u, X, inputs, _ = samples_of(net, samples=1)
    with mp.workdps(50):
        y = mp.matrix(X[0].tolist())
        for j in range(net.n_layers):
            K, b, V, A, c = (mp.matrix(getattr(u, name)[j].tolist()) for name in ("K", "b", "V", "A", "c"))
            now, after = mp.mpf(inputs[0, j, 0]), mp.mpf(inputs[0, min(j + 1, inputs.shape[1] - 1), 0])

            def f(state: Any, at: float, now: Any = now, after: Any = after, parts: Any = (K, b, V, A, c)) -> Any:
                K, b, V, A, c = parts
                x = (1 - at) * now + at * after if hold == "linear" else now
                z = mp.matrix([*state, x])
                return V * (K * z + b).apply(mp.tanh) + A * z + c

            h = mp.mpf(float(u.h[j]))
            k1 = f(y, 0)
            k2 = f(y + h / 2 * k1, mp.mpf(0.5))
            k3 = f(y + h / 2 * k2, mp.mpf(0.5))
            k4 = f(y + h * k3, 1)
            y += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        expected = [float(component) for component in y]
    np.testing.assert_allclose(net.final_state(u, X, inputs=inputs)[0], expected, rtol=1e-14)


@pytest.mark.parametrize("tableau", TABLEAUX)
def test_a_forced_oscillator_has_the_order_of_the_method(tableau: str) -> None:
    """y'' = -y + x with x linear in time, which a linear hold has exactly."""
    errors = []
    layers = (8, 16) if Tableau.named(tableau).order >= 4 else (64, 128)
    for n in layers:
        net = Network(2, n, field="polynomial", degree=1, n_inputs=1, tableau=tableau, control_intervals=1, horizon=2.0)
        u = net.controls(C=[[[0, 0, 1, 0], [0, -1, 0, 1]]])
        t = np.linspace(0, 2, n + 1)
        final = net.final_state(u, [[1.0, 0.5]], inputs=(0.3 + 0.7 * t).reshape(1, -1, 1))[0]
        exact = [0.7 * np.cos(2) - 0.2 * np.sin(2) + 0.3 + 1.4, -0.7 * np.sin(2) - 0.2 * np.cos(2) + 0.7]
        errors.append(np.abs(final - exact).max())
    order = Tableau.named(tableau).order
    assert errors[1] < 1e-13 or np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.35)


# ---- derivatives ----


def test_perturbations_of_samples_leave_their_inputs() -> None:
    net = network(n_outputs=1)
    u, X, inputs, _ = samples_of(net, samples=30)
    y = np.arange(30) % 2
    each = ocdl.Objective(reduction="sum")
    _, g = net.value_and_grad(u, X, y, each, inputs=inputs, input_grad=True)
    np.testing.assert_array_equal(net.sensitivity(u, X, y, inputs=inputs), g.X)
    u.mu[...] -= np.median(net.predict(u, X, inputs=inputs))
    flips = net.minimal_perturbation(u, X, inputs=inputs)
    is_flipped = np.isfinite(flips.distance)
    assert is_flipped.sum() > 5
    before, after = net.predict(u, X, inputs=inputs), net.predict(u, flips.X[is_flipped], inputs=inputs[is_flipped])
    assert np.all((before[is_flipped] > 0) != (after > 0))
    near = X + 0.99 * (flips.X - X)
    same = net.predict(u, near[is_flipped], inputs=inputs[is_flipped])
    assert np.all((before[is_flipped] > 0) == (same > 0))


@pytest.mark.parametrize("hold", HOLDS)
@pytest.mark.parametrize("field", TAKERS)
@pytest.mark.parametrize("tableau", ["euler", "kutta4", "dormand_prince", "gauss2"])
def test_the_gradients_are_the_complex_step(tableau: str, field: str, hold: str) -> None:
    net = network(field, hold, tableau)
    u, X, inputs, _ = samples_of(net)
    u.h[2] = 0  # stages take other inputs than x_j there, too
    y, objective = np.arange(9) % 2, ocdl.Objective("cross_entropy")
    J, g = net.value_and_grad(u, X, y, objective, inputs=inputs, input_grad=True)
    assert J == net.value(u, X, y, objective, inputs=inputs)
    rng = np.random.default_rng(1)
    du, dX, dinputs = (rng.normal(size=size) for size in (net.n_controls, X.shape, inputs.shape))
    step = 1e-100j

    def slope(*shifts: Any) -> float:
        a, b, c = shifts
        at = reference.value(net, u.to_vector() + a, X + b, y, objective, inputs=inputs + c)
        return float(at.imag) / 1e-100

    by_controls, by_X, by_inputs = slope(step * du, 0, 0), slope(0, step * dX, 0), slope(0, 0, step * dinputs)
    assert g.X is not None
    assert g.inputs is not None
    np.testing.assert_allclose(g.to_vector() @ du, by_controls, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose((g.X * dX).sum(), by_X, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose((g.inputs * dinputs).sum(), by_inputs, rtol=1e-11, atol=1e-13)

    cotangents = objective.output_grad(net.predict(u, X, inputs=inputs), y)
    same = net.vjp(u, X, output_cotangents=cotangents, inputs=inputs)
    np.testing.assert_array_equal(same.to_vector(), g.to_vector())
    np.testing.assert_array_equal(same.inputs, g.inputs)
    p, v = net.adjoint(u, X, y, objective, inputs=inputs), net.tangent(u, X, dX=dX, inputs=inputs)
    np.testing.assert_allclose((p * v).sum(axis=(1, 2)), (g.X * dX).sum(), rtol=1e-11, atol=1e-13)
    w = net.tangent(u, X, inputs=inputs, dinputs=dinputs)[-1]
    np.testing.assert_allclose((p[-1] * w).sum(), by_inputs, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("field", TAKERS)
def test_products_with_second_derivatives(field: str) -> None:
    net = network(field, control_intervals=1)
    u, X, inputs, y = samples_of(net)
    rng = np.random.default_rng(2)
    v, w = (net.from_vector(rng.normal(size=net.n_controls)) for _ in range(2))
    Hv, Hw = (net.hessian_product(u, X, y, SQUARED_ERROR, du=du, inputs=inputs) for du in (v, w))
    assert w.dot(Hv) == pytest.approx(v.dot(Hw), rel=1e-12)
    e = 1e-5
    ahead, behind = (net.value_and_grad(u + s * e * v, X, y, SQUARED_ERROR, inputs=inputs)[1] for s in (1, -1))
    np.testing.assert_allclose(Hv.to_vector(), ((ahead - behind) / (2 * e)).to_vector(), rtol=1e-6, atol=1e-7)
    assert v.dot(net.gauss_newton_product(u, X, y, SQUARED_ERROR, du=v, inputs=inputs)) >= 0
    J = net.scipy_objective(X, y, SQUARED_ERROR, inputs=inputs)
    np.testing.assert_array_equal(J.hessp(u, v), Hv.to_vector())
    assert J.fun(u)[0] == net.value(u, X, y, SQUARED_ERROR, inputs=inputs)


@pytest.mark.parametrize("hold", HOLDS)
@pytest.mark.parametrize("tableau", ["midpoint", "kutta4"])
def test_a_certificate_of_a_network_with_inputs(tableau: str, hold: str) -> None:
    net = network(hold=hold, tableau=tableau, augment=0)
    u, X, inputs, _ = samples_of(net)
    report = net.certify(u, X, np.arange(9) % 2, ocdl.Objective("cross_entropy"), inputs=inputs)
    assert report.passed, report
    # A linear hold has the order of the method, and so has a constant one: inputs jump between layers only.
    assert report.convergence.order == pytest.approx(net.tableau.order, abs=0.5)


@pytest.mark.parametrize("hold", HOLDS)
def test_the_stability_of_a_forced_network(hold: str) -> None:
    """A layer's Jacobian is that of the tangent; of a linear field no input changes it."""
    net = network(hold=hold, augment=0)
    u, X, inputs, _ = samples_of(net, samples=3)
    report = net.stability(u, X, inputs=inputs)
    columns = [net.tangent(u, X, dX=np.tile(unit, (3, 1)), inputs=inputs)[-1] for unit in np.eye(2)]
    norms = np.linalg.norm(np.stack(columns, axis=2), 2, axis=(1, 2))
    np.testing.assert_allclose(report.total_growth[-1], norms.max(), rtol=1e-12)
    linear = Network(2, 5, field="polynomial", degree=1, n_inputs=2, input_hold=hold, tableau="kutta4")
    v = linear.controls(C=np.tile([[0, 0, 1, 3, 1], [0, -1, 0, 2, 5]], (5, 1, 1)))
    found = linear.stability(v, X, inputs=inputs)
    plain = Network(2, 5, field="polynomial", degree=1, tableau="kutta4")
    expected = plain.stability(plain.controls(C=v.C[:, :, :3]), X)
    np.testing.assert_allclose(found.growth, expected.growth, rtol=1e-13)
    np.testing.assert_allclose(found.log_norm, expected.log_norm, atol=1e-13)


def test_a_custom_loss_has_the_gradient_by_inputs() -> None:
    class Half:
        def value_and_grad(self, outputs: Array, targets: Array) -> tuple[Array, Array]:
            return ((outputs - targets) ** 2).sum(axis=1) / 2, outputs - targets

    net = network()
    u, X, inputs, y = samples_of(net)
    J, g = net.value_and_grad(u, X, y, SQUARED_ERROR, inputs=inputs, input_grad=True)
    K, k = net.value_and_grad(u, X, y, ocdl.Objective(Half()), inputs=inputs, input_grad=True)
    assert pytest.approx(J, rel=1e-14) == K
    np.testing.assert_allclose(k.inputs, g.inputs, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(k.X, g.X, rtol=1e-12, atol=1e-15)


@pytest.mark.usefixtures("all_threads")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("dim", [2, 100])
def test_bits_do_not_depend_on_threads_or_neighbours(dim: int, dtype: str) -> None:
    net = Network(2, 4, field="mlp", width=dim + 9, n_inputs=2, augment=dim - 2, tableau="kutta4", dtype=dtype)
    u, X, inputs, _ = samples_of(net, samples=700)
    y = np.arange(700) % 2
    results = set()
    for threads in (1, 2, 3):
        ocdl.set_num_threads(threads)
        J, g = net.value_and_grad(u, X, y, inputs=inputs, input_grad=True)
        assert g.inputs is not None
        results.add((J, g.to_vector().tobytes(), g.inputs.tobytes()))
    assert len(results) == 1
    some = net.predict(u, X[100:117], inputs=inputs[100:117])
    np.testing.assert_array_equal(some, net.predict(u, X, inputs=inputs)[100:117])


# ---- training, files, depth ----


def learned_system(hold: str = "linear") -> tuple[Network, Array, Array, Array]:
    """Windows of a forced, damped oscillator: first states, forces, last states."""
    net = Network(2, 10, n_outputs=2, field="polynomial", degree=1, n_inputs=1, input_hold=hold, control_intervals=1,
                  tableau="kutta4")  # fmt: skip
    _, X, inputs, _ = samples_of(net, samples=40)
    truth = net.controls(C=[[[0, 0, 1, 0], [0, -1, -0.2, 0.8]]], W=np.eye(2))
    return net, X, inputs, net.predict(truth, X, inputs=inputs)


@pytest.mark.parametrize("hold", HOLDS)
def test_training_finds_a_forced_system(hold: str) -> None:
    net, X, inputs, y = learned_system(hold)
    start = net.controls(W=np.eye(2))
    held_out = ocdl.Validation(X[30:], y[30:], inputs=inputs[30:])
    r = ocdl.train(net, start, X[:30], y[:30], inputs=inputs[:30], objective=SQUARED_ERROR, freeze=("W", "mu"),
                   optimiser=ocdl.NewtonCG(), validation=held_out, max_iter=60)  # fmt: skip
    np.testing.assert_allclose(r.controls.C[0], [[0, 0, 1, 0], [0, -1, -0.2, 0.8]], atol=1e-5)
    assert r.history.val_loss[-1] < 1e-9


@pytest.mark.parametrize("optimiser", [ocdl.Backtracking(), ocdl.LBFGS(), ocdl.Adam(batch_size=16), ocdl.Armijo()])
def test_every_optimiser_takes_inputs(optimiser: Any) -> None:
    net, X, inputs, y = learned_system()
    start = net.controls(W=np.eye(2))
    r = ocdl.train(
        net, start, X, y, inputs=inputs, objective=SQUARED_ERROR, optimiser=optimiser, max_iter=30, random_state=0
    )
    assert r.history.loss[-1] < 0.7 * r.history.loss[0]


def test_files_and_pickles_keep_what_concerns_inputs(tmp_path: Path) -> None:
    for hold in HOLDS:
        net = network(hold=hold)
        u, X, inputs, _ = samples_of(net)
        ocdl.save(tmp_path / "model.ocdl", net, u)
        model = ocdl.load(tmp_path / "model.ocdl")
        assert model.network == net == pickle.loads(pickle.dumps(net))
        assert (model.network.n_inputs, model.network.input_hold) == (2, hold)
        np.testing.assert_array_equal(
            model.network.predict(model.controls, X, inputs=inputs), net.predict(u, X, inputs=inputs)
        )
        _, g = net.value_and_grad(u, X, np.zeros(9, int), inputs=inputs, input_grad=True)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(g)).inputs, g.inputs)
        np.testing.assert_array_equal(g.copy().inputs, g.inputs)


def test_refined_networks_take_inputs_at_their_own_times() -> None:
    net, X, inputs, y = learned_system()
    u = net.controls(C=[[[0, 0, 1, 0], [0, -1, -0.2, 0.8]]], W=np.eye(2))
    fine, v = net.refine(u, 3)
    between = np.stack([[np.interp(np.arange(31) / 3, np.arange(11), x[:, 0])] for x in inputs]).reshape(40, 31, 1)
    np.testing.assert_allclose(fine.predict(v, X, inputs=between), y, atol=1e-5)


def test_pruning_keeps_the_outputs_where_it_can() -> None:
    net = network(hold="zero", time_steps="simplex")
    u, X, inputs, _ = samples_of(net)
    u.h[...] = [0.5, 0, 0.2, 0, 0.3]
    small, v = net.prune(u)
    np.testing.assert_array_equal(small.predict(v, X, inputs=inputs[:, [0, 2, 4]]), net.predict(u, X, inputs=inputs))
    linear = network(time_steps="simplex")
    with pytest.raises(ValueError, match="prune takes networks whose inputs have input_hold='zero'"):
        linear.prune(linear.controls(h=[0.5, 0, 0.2, 0, 0.3]))


def test_the_lipschitz_bound_is_that_of_the_state() -> None:
    net = Network(2, 3, field="mlp", width=4, n_inputs=1)
    same = Network(2, 3, field="mlp", width=4)
    u = net.init(random_state=0)
    u.A[...] = 0.3
    v = same.controls(K=u.K[..., :2], b=u.b, V=u.V, A=u.A[..., :2], c=u.c)
    assert net.lipschitz_bound(u) == same.lipschitz_bound(v)


def test_the_start_has_the_scale_of_states_and_inputs() -> None:
    u = Network(2, 200, field="mlp", width=50, n_inputs=2).init(random_state=0)
    assert u.K.shape == (200, 50, 4)
    assert u.A.shape == (200, 2, 4)
    assert u.K.std() == pytest.approx(0.5, rel=0.02)


# ---- errors ----


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_inputs": 1}, "n_inputs=1 needs field='mlp' or field='polynomial', got field='dense'"),
        ({"n_inputs": -1}, "n_inputs must be at least 0, got -1"),
        ({"input_hold": "cubic"}, "input_hold must be one of 'linear', 'zero'"),
        ({"input_hold": "zero"}, "input_hold='zero' needs inputs, as in n_inputs=1"),
        (
            {"n_inputs": 1, "field": "mlp", "width": 2, "tableau": Tableau([[0, 0], [1, 0]], [0.5, 0.5], [0, 0])},
            "n_inputs=1 needs a tableau whose c is the sums of the rows of A",
        ),
    ],
)
def test_arguments_of_networks_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Network(2, 3, **options)


def test_inputs_are_checked() -> None:
    net, plain = network(augment=0, n_outputs=1), Network(2, 5)
    u, X, inputs, _ = samples_of(net)
    y = np.zeros(9, int)
    missing = re.escape("inputs is missing: the network takes an array of shape (9, 6, 2), (samples, layers + 1, ")
    for call in (net.forward, net.predict, net.final_state):
        with pytest.raises(ValueError, match=missing):
            call(u, X)
        with pytest.raises(ValueError, match=missing):  # not even what the core takes
            call(u, np.concatenate([X, inputs.reshape(9, -1)], axis=1)[:, :2])
    with pytest.raises(ValueError, match=missing):
        net.value_and_grad(u, X, y)
    with pytest.raises(ValueError, match=missing):
        ocdl.train(net, u, X, y)
    with pytest.raises(ValueError, match="X has 14 features but the network takes 2"):
        net.predict(u, np.concatenate([X, inputs.reshape(9, -1)], axis=1), inputs=inputs)
    with pytest.raises(ValueError, match=re.escape("inputs must have shape (9, 6, 2)")):
        net.predict(u, X, inputs=inputs[:, 1:])
    inputs[3, 1, 0] = np.nan
    with pytest.raises(ValueError, match=re.escape("inputs[3, 1, 0] is nan")):
        net.predict(u, X, inputs=inputs)
    with pytest.raises(ValueError, match="inputs must be left out: the network takes none"):
        plain.predict(plain.init(0), X, inputs=inputs)
    with pytest.raises(ValueError, match="inputs must be left out"):
        ocdl.train(plain, plain.init(0), X, y, inputs=inputs)


def test_functions_without_inputs_refuse_them() -> None:
    net = network(augment=0, n_outputs=1)
    u, X, _, _ = samples_of(net)
    y = np.zeros(9, int)
    for what, call in {
        "train_multilevel": lambda: ocdl.train_multilevel(net, u, X, y, levels=2),
    }.items():
        with pytest.raises(ValueError, match=f"{what} takes networks without inputs, got n_inputs=2"):
            call()
