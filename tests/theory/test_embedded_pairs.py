"""Errors of layers from embedded pairs, and layers added where they are large."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import ocdl
from ocdl import Network, Tableau

PAIRS = [name for name in ocdl.tableaux() if Tableau.named(name).b_embedded is not None]


@pytest.mark.parametrize("name", PAIRS)
def test_the_second_weights_are_of_an_order_less(name: str) -> None:
    tableau = Tableau.named(name)
    assert tableau.b_embedded is not None
    assert Tableau(tableau.A, tableau.b_embedded, tableau.c).order == tableau.order - 1


def test_tableaux_keep_their_second_weights() -> None:
    tableau = Tableau([[0, 0], [1, 0]], [0.5, 0.5], b_embedded=[1, 0], name="mine")
    copy = pickle.loads(pickle.dumps(tableau))
    assert copy.b_embedded is not None
    assert copy.b_embedded.tolist() == [1.0, 0.0]
    assert tableau == Tableau.named("improved_euler")
    assert Tableau([[0]], [1]).b_embedded is None
    with pytest.raises(ValueError, match="read-only"):
        copy.b_embedded[0] = 2


@pytest.mark.parametrize(
    ("weights", "message"),
    [([1], "b_embedded must have 2 entries, one for each stage, got 1"), ([1, 1], "sum to 1"), ([np.nan, 1], "finite")],
)
def test_second_weights_that_are_none(weights: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Tableau([[0, 0], [1, 0]], [0.5, 0.5], b_embedded=weights)


@pytest.mark.parametrize("name", PAIRS)
def test_local_errors_are_of_the_order_of_the_pair(name: str) -> None:
    """A smooth field on more and more layers: each error is O(h^(p + 1)) with the lower order p."""
    layers = np.array([16, 32, 64])
    largest = []
    for n in layers:
        net = Network(2, int(n), field="mlp", width=4, control_intervals=1, tableau=name, horizon=2.0)
        u = net.init(random_state=0)
        u.V[...] *= 20
        errors = net.local_errors(u, [[1.0, -0.5], [0.3, 0.8]])
        assert errors.shape == (n, 2)
        largest.append(errors.max())
    orders = np.log2(np.array(largest[:-1]) / largest[1:])
    assert orders[-1] == pytest.approx(Tableau.named(name).order, abs=0.15)


def test_inputs_of_each_layer_are_those_of_the_network() -> None:
    net = Network(1, 4, field="polynomial", degree=1, n_inputs=1, tableau="improved_euler", control_intervals=1)
    u = net.controls(C=[[[0.0, 0.0, 1.0]]])  # y' = x(t)
    x = np.array([0.0, 0.0, 1.0, 1.0, 0.0]).reshape(1, 5, 1)
    np.testing.assert_allclose(net.local_errors(u, [[0.0]], inputs=x).ravel(), [0, 0.125, 0, 0.125], atol=1e-15)


@pytest.mark.parametrize("name", PAIRS)
def test_layers_are_added_where_the_error_is(name: str) -> None:
    net = Network(2, 4, field="antisymmetric", tableau=name, horizon=4.0)
    K = np.zeros((4, 2, 2))
    K[1] = [[0.0, 3.0], [-1.0, 0.0]]  # the other layers stand still
    u, X = net.controls(K=K), np.array([[1.0, 0.0], [0.2, 0.4]])
    fine, v = net.adapt(u, X, 1e-6)
    assert fine.local_errors(v, X).max() <= 1e-6
    assert np.sum(v.h == 1.0) == 3
    assert v.h.sum() == pytest.approx(4.0)
    assert net.adapt(u, X, 10.0)[0] is net
    exact, w = net.refine(u, 400, interpolation="constant")
    reference = exact.final_state(w, X)
    before, after = (np.abs(n.final_state(c, X) - reference).max() for n, c in ((net, u), (fine, v)))
    assert after < 1e-4 < before


def test_adaptation_that_cannot_be() -> None:
    net = Network(1, 2, tableau="kutta4")
    u = net.init(random_state=0)
    with pytest.raises(ValueError, match="the tableau needs second weights, as 'improved_euler'"):
        net.local_errors(u, [[1.0]])
    net = Network(1, 2, tableau="improved_euler", horizon=10.0)
    u = net.init(random_state=0)
    with pytest.raises(ValueError, match=r"tol=1e-12 needs about .* layers, more than max_layers=50"):
        net.adapt(u, [[1.0]], 1e-12, max_layers=50)
    with pytest.raises(ValueError, match="tol must be positive"):
        net.adapt(u, [[1.0]], 0.0)
