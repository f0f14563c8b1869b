"""The kinetic energy as a penalty: value, gradient and Hessian products against formulas of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from problems import ACTIVATIONS, FIELDS, TABLEAUX, field_options, random_problem

import ocdl
from ocdl import Kinetic, Network, Objective, Tableau

POSITIVE = [name for name in TABLEAUX if Tableau.named(name).b.min() >= 0]
EXPLICIT = [name for name in POSITIVE if Tableau.named(name).is_explicit]


def energy(net: Network, vector: Any, X: Any, weights: Any, mean: bool) -> Any:
    """sum_j |h_j| sum_i b_i |k_i|^2 of all samples, from the formulas of the reference; complex numbers as well."""
    u = reference.parts(net, vector)
    sigma, field = reference.ACTIVATIONS[net.activation], reference.FIELDS[net.field]
    A, b = net.tableau.A, net.tableau.b
    y = np.concatenate([X, np.zeros((len(X), net.augment))], axis=1).astype(vector.dtype)
    total: Any = 0.0
    for j in range(net.n_layers):
        h, k = u["h"][j], []
        for i in range(net.stages):
            state = y + h * sum((A[i, n] * k[n] for n in range(i)), np.zeros_like(y))
            k.append(field.value(sigma, *reference.at_stage(net, u, j, i), state))
        y = y + h * sum(b[i] * k[i] for i in range(net.stages))
        length = h if h.real >= 0 else -h
        total = total + length * sum(b[i] * (weights[:, None] * k[i] ** 2).sum() for i in range(net.stages))
    return total / weights.sum() if mean else total


@given(st.data())
def test_value_and_gradient_are_those_of_the_formula(data: st.DataObject) -> None:
    net = Network(
        data.draw(st.integers(1, 4)) * 2,
        data.draw(st.integers(1, 5)),
        tableau=data.draw(st.sampled_from(EXPLICIT)),
        activation=data.draw(st.sampled_from(ACTIVATIONS)),
        time_steps=data.draw(st.sampled_from(["fixed", "free"])),
        stage_controls=data.draw(st.booleans()),
        **field_options(data.draw(st.sampled_from(FIELDS))),
    )
    p = random_problem(net, samples=data.draw(st.integers(1, 20)))
    mean = data.draw(st.booleans())
    objective, plain = (Objective(reduction="mean" if mean else "sum", penalties=x) for x in (Kinetic(0.3), None))
    J, g = net.value_and_grad(p.u, p.X, p.y, objective, sample_weight=p.sample_weight)
    J0, g0 = net.value_and_grad(p.u, p.X, p.y, plain, sample_weight=p.sample_weight)
    vector, direction = p.u.to_vector(), p.du.to_vector()
    expected = 0.3 * energy(net, vector, p.X, p.sample_weight, mean)
    assert abs(J - J0 - expected) <= 1e-12 * (abs(J) + abs(expected))
    if net.time_steps == "fixed":
        direction = ocdl.Controls(net._layout, direction.copy())
        direction.h[...] = 0
        direction = direction._vector
    slope = 0.3 * energy(net, vector + 1j * reference.STEP * direction, p.X, p.sample_weight, mean).imag
    terms = np.abs(g.to_vector() * direction).sum() + np.abs(g0.to_vector() * direction).sum()
    assert abs((g - g0).to_vector() @ direction - slope / reference.STEP) <= 1e-12 * terms


@pytest.mark.parametrize("tableau", ["kutta4", "gauss2", "improved_euler"])
@pytest.mark.parametrize("field", FIELDS)
def test_hessian_products_are_those_of_the_gradient(tableau: str, field: str) -> None:
    """The second difference along the direction; and the product is symmetric."""
    net = Network(2, 4, tableau=tableau, time_steps="free", activation="tanh", **field_options(field))
    p = random_problem(net, samples=30)
    p.u.h[...] = 0.1 + np.abs(p.u.h)  # |h| has a kink at 0
    objective = Objective(penalties=Kinetic(0.5))

    def gradient(t: float) -> Any:
        return net.value_and_grad(p.u + t * p.du, p.X, p.y, objective)[1].to_vector()

    product = net.hessian_product(p.u, p.X, p.y, objective, du=p.du).to_vector()
    step = 1e-3 / p.du.norm()
    differences = [(gradient(t * step) - gradient(-t * step)) / (2 * t * step) for t in (1, 2)]
    expected = (4 * differences[0] - differences[1]) / 3
    np.testing.assert_allclose(product, expected, rtol=0, atol=1e-7 * (1 + np.abs(expected).max()))
    other = net.init(random_state=4)
    symmetric = net.hessian_product(p.u, p.X, p.y, objective, du=other).to_vector() @ p.du.to_vector()
    scale = np.abs(product * other.to_vector()).sum()
    assert abs(product @ other.to_vector() - symmetric) <= 1e-11 * scale


@pytest.mark.parametrize("optimiser", [ocdl.LBFGS(), ocdl.NewtonCG(), ocdl.Adam(batch_size=16), ocdl.Backtracking()])
def test_training_moves_samples_less(optimiser: Any) -> None:
    X, y = ocdl.datasets.make_squares(60, random_state=0)
    net = Network(2, 6, tableau="kutta4")
    u = net.init(random_state=0)
    free, slow = (
        ocdl.train(
            net, u, X, y, objective=Objective(penalties=penalty), optimiser=optimiser, max_iter=60, random_state=0
        ).controls
        for penalty in (None, Kinetic(0.5))
    )
    ones = np.ones(len(X))
    assert energy(net, slow.to_vector(), X, ones, True) < energy(net, free.to_vector(), X, ones, True)


def test_bits_do_not_depend_on_threads() -> None:
    p = random_problem(Network(3, 5, tableau="kutta4", time_steps="free"), samples=3000)
    objective, bits = Objective(penalties=Kinetic(0.1)), []
    before = ocdl.get_num_threads()
    try:
        for threads in (1, 2, 3):
            ocdl.set_num_threads(threads)
            bits.append(net_bits(p, objective))
    finally:
        ocdl.set_num_threads(before)
    assert bits[0] == bits[1] == bits[2]


def net_bits(p: Any, objective: Objective) -> bytes:
    J, g = p.net.value_and_grad(p.u, p.X, p.y, objective)
    return np.float64(J).tobytes() + g.to_vector().tobytes()


def test_what_has_no_energy_is_refused() -> None:
    kinetic = Objective(penalties=Kinetic(0.1))
    net = Network(2, 3, residual=False)
    with pytest.raises(ValueError, match=r"Kinetic\(0.1\) needs a residual network"):
        net.value(net.init(0), [[0.0, 1.0]], [1], kinetic)
    net = Network(2, 3, tableau="dormand_prince")
    with pytest.raises(ValueError, match=r"needs a tableau without negative weights, .* b\[4\] = -0.32"):
        net.value(net.init(0), [[0.0, 1.0]], [1], kinetic)
    with pytest.raises(ValueError, match=r"Kinetic needs a loss of ocdl, got the custom loss"):
        Objective(Custom(), penalties=Kinetic(0.1))


class Custom:
    name = "mine"

    def value_and_grad(self, outputs: Any, targets: Any) -> Any:
        return (outputs**2).sum(axis=1), 2 * outputs
