"""Controls are a vector with names for its parts."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import ocdl
from ocdl import Controls, Network

PARTS = ("K", "b", "h", "W", "mu")
NETWORKS = [
    Network(2, 3, n_outputs=3, augment=1),
    Network(2, 3, residual=False),
    Network(2, 3, tableau="kutta4", stage_controls=True),
    Network(2, 3, dtype="float32"),
]
every_network = pytest.mark.parametrize("net", NETWORKS, ids=repr)


def random_controls(net: Network, seed: int = 0) -> Controls:
    return net.from_vector(np.random.default_rng(seed).normal(size=net.n_controls))


@every_network
def test_the_vector_holds_the_parts_in_order(net: Network) -> None:
    u = random_controls(net)
    stages = (net.stages,) if net.stage_controls else ()
    assert u.K.shape == (net.n_layers, *stages, net.dim, net.dim)
    assert u.b.shape == (net.n_layers, *stages, net.dim)
    assert u.h.shape == (net.n_layers if net.residual else 0,)
    assert u.W.shape == (net.n_outputs, net.dim)
    assert u.mu.shape == (net.n_outputs,)
    np.testing.assert_array_equal(u.to_vector(), np.concatenate([getattr(u, part).ravel() for part in PARTS]))
    np.testing.assert_array_equal(net.from_vector(u.to_vector()).to_vector(), u.to_vector())
    assert u.to_vector().dtype == net.dtype


@every_network
def test_arithmetic_is_that_of_the_vectors(net: Network) -> None:
    u, v = random_controls(net, 1), random_controls(net, 2)
    a, b = u.to_vector(), v.to_vector()
    for result, expected in [
        (u + v, a + b),
        (u - v, a - b),
        (-u, -a),
        (2 * u, 2 * a),
        (u * 0.5, 0.5 * a),
        (u / 4, a / 4),
        (np.float64(0.1) * u, 0.1 * a),
        (np.int64(3) * u, 3 * a),
        (np.float32(0.5) * u, 0.5 * a),
    ]:
        assert isinstance(result, Controls)
        assert result.to_vector().dtype == net.dtype
        np.testing.assert_array_equal(result.to_vector(), expected.astype(net.dtype))
    assert u.dot(v) == pytest.approx(np.dot(a.astype(float), b.astype(float)), rel=1e-5)
    assert u.norm() ** 2 == pytest.approx(u.dot(u), rel=1e-6)
    assert isinstance(u.dot(v), float)
    assert isinstance(u.norm(), float)
    np.testing.assert_array_equal(u.to_vector(), a)  # the operands stay as they are


def test_the_parts_are_views() -> None:
    u = random_controls(NETWORKS[0])
    for part in PARTS:
        getattr(u, part)[...] = 7
        assert (getattr(u, part) == 7).all()
    assert (u.to_vector() == 7).all()
    u.to_vector()[...] = 1
    assert (u.to_vector() == 7).all()


def test_parts_cannot_be_replaced_by_arrays_of_another_shape() -> None:
    u = random_controls(NETWORKS[0])
    for part in PARTS:
        with pytest.raises(AttributeError):
            setattr(u, part, np.zeros(1))
    with pytest.raises(AttributeError):
        u.k = 3  # type: ignore[attr-defined]


def test_an_attribute_that_is_no_part_names_the_parts() -> None:
    u = random_controls(NETWORKS[0])
    with pytest.raises(AttributeError, match=r"^Controls have no attribute 'k'; its parts are K, b, h, W, mu$"):
        u.k  # noqa: B018
    # A part that other controls have: attributes belong to the class.
    fewer = type(u._layout)(u._layout.parts[:2], u._layout.dtype)
    with pytest.raises(AttributeError, match=r"^Controls have no attribute 'W'; its parts are K, b$"):
        Controls(fewer, u._vector[:36]).W  # noqa: B018
    assert not hasattr(Controls(fewer, u._vector[:36]), "mu")


def gradient_with_data() -> Controls:
    net = Network(2, 3)
    return net.value_and_grad(net.init(random_state=0), np.ones((4, 2)), [0, 1, 0, 1], input_grad=True)[1]


@pytest.mark.parametrize("duplicate", [Controls.copy, copy.deepcopy, lambda u: pickle.loads(pickle.dumps(u))])
@pytest.mark.parametrize("u", [*map(random_controls, NETWORKS), gradient_with_data()], ids=repr)
def test_copies_do_not_share_memory(u: Controls, duplicate) -> None:
    twin, vector = duplicate(u), u.to_vector()
    np.testing.assert_array_equal(twin.to_vector(), vector)
    np.testing.assert_array_equal(twin.X, u.X)
    twin.K[...] = 7
    np.testing.assert_array_equal(u.to_vector(), vector)
    if u.X is not None:
        assert not np.shares_memory(twin.X, u.X)


def test_pickled_controls_fit_their_network() -> None:
    net = Network(2, 3)
    u = pickle.loads(pickle.dumps(net.init(random_state=0)))
    assert net.value(u, [[0.0, 1.0]], [1]) == net.value(net.init(random_state=0), [[0.0, 1.0]], [1])


def misaligned(vector: np.ndarray, _: Path) -> np.ndarray:
    return np.frombuffer(b"." + vector.tobytes(), vector.dtype, offset=1)


def memory_map(vector: np.ndarray, folder: Path) -> np.ndarray:
    vector.tofile(folder / "vector")
    return np.memmap(folder / "vector", vector.dtype, "r")


@pytest.mark.parametrize("stored", [misaligned, memory_map])
def test_pickles_with_memory_of_any_kind(stored, tmp_path: Path) -> None:
    net, X, y = Network(2, 3), np.array([[0.0, 1.0], [1.0, 0.0]]), [0, 1]
    u = net.init(random_state=0)
    again = Controls(u._layout, stored(u.to_vector(), tmp_path))
    for call in (
        lambda u: net.forward(u, X).states,
        lambda u: net.predict(u, X),
        lambda u: net.final_state(u, X),
        lambda u: net.vjp(u, X, output_cotangents=np.ones((2, 1))).to_vector(),
        lambda u: net.value(u, X, y),
        lambda u: net.value_and_grad(u, X, y)[1].to_vector(),
        lambda u: net.adjoint(u, X, y),
        lambda u: net.tangent(u, X, u),
        lambda u: net.hessian_product(u, X, y, ocdl.Objective(), du=u).to_vector(),
        lambda u: ocdl.train(net, u, X, y, max_iter=2).controls.to_vector(),
    ):
        np.testing.assert_array_equal(call(again), call(u))


@pytest.mark.parametrize("other", [1.0, np.zeros(24), None, "u"])
def test_sums_with_anything_else_are_refused(other: object) -> None:
    u = Network(2, 3).init(random_state=0)
    for operation in (lambda: u + other, lambda: other + u, lambda: u - other):
        with pytest.raises(TypeError):
            operation()
    with pytest.raises(TypeError, match="dot takes controls, got"):
        u.dot(other)  # type: ignore[arg-type]


@pytest.mark.parametrize("factor", [np.ones(24), 1j, "2", None])
def test_products_with_anything_but_a_number_are_refused(factor: object) -> None:
    u = Network(2, 3).init(random_state=0)
    for operation in (lambda: u * factor, lambda: factor * u, lambda: u / factor):
        with pytest.raises(TypeError):
            operation()


def test_controls_of_another_network_are_refused() -> None:
    u, v = Network(2, 3).init(random_state=0), Network(2, 4).init(random_state=0)
    for operation in (lambda: u + v, lambda: u - v, lambda: u.dot(v)):
        with pytest.raises(ValueError, match=r"controls of different networks, <Controls K \(3, .*K \(4, "):
            operation()


def test_controls_of_an_equal_network_are_accepted() -> None:
    u, v = (Network(2, 3).init(random_state=0) for _ in range(2))
    assert (u - v).norm() == 0
    assert Network(2, 3, tableau="kutta4").predict(u, [[0.0, 1.0]]).shape == (1, 1)


def test_repr() -> None:
    assert repr(ocdl.Network(2, 3).controls()) == "<Controls K (3, 2, 2), b (3, 2), h (3,), W (1, 2), mu (1,), float64>"


def test_norms_and_products_beyond_the_squares_range() -> None:
    net = Network(1, 1)
    for size in (1e300, 1e-300):
        u = net.from_vector([3 * size, 4 * size, 0.0, 0.0, 0.0])
        assert u.norm() == pytest.approx(5 * size, rel=1e-15)
    assert net.from_vector(np.zeros(5)).norm() == 0
    large = net.from_vector(np.full(5, 1.7e308))
    for call in (large.norm, lambda: large.dot(large), lambda: large + large, lambda: 2 * large, lambda: large / 0.1):
        with pytest.raises(FloatingPointError, match=r"float64"):
            call()
    with pytest.raises(ZeroDivisionError, match="divisor"):
        large / 0
    for factor in (np.nan, np.inf):
        with pytest.raises(ValueError, match="the factor of controls must be finite"):
            large * factor


def test_single_precision_stays_single() -> None:
    net = Network(1, 1, dtype="float32")
    u = net.init(random_state=0)
    for result in (u * 0.1, np.float64(0.1) * u, u / 3, u + u, u - u):
        assert result.to_vector().dtype == np.float32
    with pytest.raises(FloatingPointError, match="float32"):
        u * 1e300
