"""Systems learned from time series: known solutions, orders of the interpolation, and references in fifty digits."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest
import reference
from numpy.typing import NDArray
from problems import TABLEAUX, field_options, tame_field, tame_stage_equations

import ocdl
from ocdl import Network, Observations, Tableau

Array = NDArray[Any]
SUM = ocdl.Objective("squared_error", reduction="sum")


# ---- known solutions ----


SPEED = 6


def spiral(t: Any, radius: Any, angle: Any) -> Array:
    """The solution of r' = r - r^3, angle' = 6."""
    r = 1 / np.sqrt(1 + (radius**-2 - 1) * np.exp(-2 * np.asarray(t)))
    return np.stack([r * np.cos(angle + SPEED * t), r * np.sin(angle + SPEED * t)], axis=-1)


def spiral_network(layers: int, tableau: str) -> tuple[Network, ocdl.Controls]:
    """x' = x - 6 y - x r^2, y' = 6 x + y - y r^2 with the monomials 1, x, y, x^2, xy, y^2, x^3, x^2 y, x y^2, y^3."""
    net = Network(2, layers, n_outputs=2, field="polynomial", degree=3, control_intervals=1, tableau=tableau)
    x = [0, 1, -SPEED, 0, 0, 0, -1, 0, -1, 0]
    y = [0, SPEED, 1, 0, 0, 0, 0, -1, 0, -1]
    return net, net.controls(C=[[x, y]], W=np.eye(2))


@pytest.mark.parametrize("tableau", TABLEAUX)
def test_a_spiral_has_the_order_of_the_method(tableau: str) -> None:
    order = Tableau.named(tableau).order
    coarse = 24 if order >= 4 else 128
    radii, angles = np.array([0.4, 0.8, 1.3]), np.array([0.3, 2.0, 4.0])
    errors = []
    for layers in (coarse, 2 * coarse):
        net, u = spiral_network(layers, tableau)
        final = net.final_state(u, spiral(0.0, radii, angles))
        errors.append(np.linalg.norm(final - spiral(1.0, radii, angles)))
    assert errors[1] < 1e-13 or np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.35)


def observed_order(errors: list[float]) -> float:
    return float(np.log2(errors[-2] / errors[-1]))


def test_between_layers_a_smooth_flow_has_order_four() -> None:
    errors = []
    for layers in (40, 80, 160):
        times = (np.arange(layers)[:, None] + [0.25, 0.5, 0.75]).ravel() / layers
        net, u = spiral_network(layers, "dormand_prince")
        z = net.outputs_at(u, spiral(0.0, 0.4, 0.3)[None], times)[0]
        errors.append(np.abs(z - spiral(times, 0.4, 0.3)).max())
    assert observed_order(errors) == pytest.approx(4, abs=0.2)


@pytest.mark.parametrize(("hold", "order"), [("linear", 3), ("zero", 2)])
def test_between_layers_held_inputs_cost_orders(hold: str, order: int) -> None:
    """y' = -y + x(t) with x(t) = sin 3t held: solved exactly from layer to layer."""
    errors = []
    for layers in (20, 40, 80):
        h, t = 2 / layers, np.linspace(0, 2, layers + 1)
        net = Network(
            1,
            layers,
            field="polynomial",
            degree=1,
            n_inputs=1,
            input_hold=hold,
            control_intervals=1,
            tableau="gauss3",
            horizon=2.0,
        )
        u = net.controls(C=[[[0, -1, 1]]], W=[[1.0]])
        x = np.sin(3 * t)
        slopes = np.diff(x) / h if hold == "linear" else np.zeros(layers)
        inputs = x if hold == "linear" else x[:-1]
        # y - x + slope decays within a layer.
        y, exact, inside = 0.5, [], np.array([0.25, 0.5, 0.75]) * h
        for j in range(layers):
            rest = y - x[j] + slopes[j]
            exact.append(x[j] + slopes[j] * inside - slopes[j] + rest * np.exp(-inside))
            y = x[j] + slopes[j] * h - slopes[j] + rest * np.exp(-h)
        clock = (t[:-1, None] + inside).ravel()
        z = net.outputs_at(u, [[0.5]], clock, inputs=inputs.reshape(1, -1, 1))[0, :, 0]
        errors.append(np.abs(z - np.concatenate(exact)).max())
    assert observed_order(errors) == pytest.approx(order, abs=0.2)


# ---- fifty digits ----


@pytest.fixture
def fifty_digits(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets the reference's formulas compute with mpmath's numbers, in arrays of objects."""
    tanh = reference.MP_ACTIVATIONS["tanh"]
    in_arrays = reference.Activation(*(np.frompyfunc(function, 1, 1) for function in tanh))
    monkeypatch.setitem(reference.ACTIVATIONS, "tanh", in_arrays)
    with mp.workdps(50):
        yield


as_numbers = np.frompyfunc(lambda number: mp.mpf(float(number)), 1, 1)


def objective_of(net: Network, vector: Array, X: Array, inputs: Array, y: Observations) -> Any:
    """Half the sum of the squared errors over what was observed, sample by sample."""
    u = reference.parts(net, vector)
    t = np.concatenate([[mp.mpf(0)], np.cumsum(u["h"])])
    outputs = reference.states(net, vector, X, inputs) @ u["W"].T + u["mu"]
    total = mp.mpf(0)
    for i, times in enumerate(y.times):
        for time, values in zip(times, y.values[i], strict=True):
            j = max(n for n in range(net.n_layers) if t[n] <= time)
            first = max(min(max(j - 1, 0), net.n_layers - 3), 0)
            nodes = range(first, min(first + 4, net.n_layers + 1))
            weights = [mp.fprod((time - t[m]) / (t[n] - t[m]) for m in nodes if m != n) for n in nodes]
            z = sum(weight * outputs[n, i] for weight, n in zip(weights, nodes, strict=True))
            total += sum((ours - float(seen)) ** 2 / 2 for ours, seen in zip(z, values, strict=True) if seen == seen)
    return total


@pytest.mark.usefixtures("fifty_digits")
@pytest.mark.parametrize("tableau", ["euler", "kutta4", "rk38", "dormand_prince", "gauss2"])
@pytest.mark.parametrize("field", ["mlp", "polynomial"])
def test_value_gradient_and_curvature_in_fifty_digits(field: str, tableau: str) -> None:
    """With inputs, and own times with holes; one set of controls per layer, as the reference has them."""
    rng = np.random.default_rng(0)
    net = Network(2, 4, n_outputs=2, n_inputs=1, augment=1, tableau=tableau, **field_options(field, width=4))
    u = net.from_vector(rng.normal(size=net.n_controls))
    u.h[...] = rng.uniform(0.15, 0.35, 4)
    tame_field(net, u)
    if not net.tableau.is_explicit:
        tame_stage_equations(net, u, 0.05)  # the reference's iterations have thirty digits
    X, inputs = rng.normal(size=(3, 2)), rng.normal(size=(3, 5, 1))
    values = rng.normal(size=(3, 5, 2))
    values[rng.random(values.shape) < 0.3] = np.nan
    values[:, 1] = 0.4
    y = Observations(np.sort(rng.uniform(0, u.h.sum(), (3, 5)), axis=1), values)
    v, w = (net.from_vector(rng.normal(size=net.n_controls)) for _ in range(2))
    v.h[...], w.h[...] = 0, 0
    at, along, across = (as_numbers(controls.to_vector()) for controls in (u, v, w))
    step = mp.mpf(10) ** -10

    def J(a: int, b: int) -> Any:
        moved = at + step * (a * along + b * across)
        return objective_of(net, moved, as_numbers(X), as_numbers(inputs), y)

    value, gradient = net.value_and_grad(u, X, y, SUM, inputs=inputs)
    assert value == pytest.approx(float(J(0, 0)), rel=1e-14)
    # Central differences of order 4, whose errors are of the size step^4.
    slope = (8 * (J(1, 0) - J(-1, 0)) - (J(2, 0) - J(-2, 0))) / (12 * step)
    size = np.abs(gradient.to_vector() * v.to_vector()).sum()
    assert abs(gradient.dot(v) - float(slope)) <= 1e-14 * size
    form = (J(1, 1) - J(1, -1) - J(-1, 1) + J(-1, -1)) / (4 * step**2)
    product = net.hessian_product(u, X, y, SUM, du=v, inputs=inputs)
    assert abs(product.dot(w) - float(form)) <= 1e-13 * np.abs(product.to_vector() * w.to_vector()).sum()


# ---- trainings ----


def test_a_frozen_linear_part_stays() -> None:
    rng = np.random.default_rng(1)
    net = Network(2, 6, n_outputs=2, field="mlp", width=4, control_intervals=1, tableau="kutta4")
    u = net.init(0)
    u.A[...], u.W[...] = 0.3, np.eye(2)
    y = Observations(np.linspace(0, 1, 7), rng.normal(size=(5, 7, 2)))
    r = ocdl.train(net, u, rng.normal(size=(5, 2)), y, objective=SUM, freeze=("A", "W"), max_iter=5)
    for part in ("A", "W"):
        np.testing.assert_array_equal(getattr(r.controls, part), getattr(u, part))
    assert r.history.loss[-1] < r.history.loss[0]
    assert np.abs(r.controls.K - u.K).max() > 0
