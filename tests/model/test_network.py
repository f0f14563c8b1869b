"""Networks: shapes, defaults, the paper's architectures, and values that behave like values."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from problems import ACTIVATIONS, TABLEAUX, Problem, problems, random_problem

import ocdl
from ocdl import Network, Objective, Tableau

DTYPES = ("float64", "float32")


@settings(max_examples=100)
@given(problems())
def test_shapes_and_types(problem: Problem) -> None:
    net, (samples, features) = problem.net, problem.X.shape
    t = net.forward(problem.u, problem.X)
    value, g = net.value_and_grad(*problem.data, input_grad=True)
    trajectory = (net.n_layers + 1, samples, net.dim)
    assert net.dim == net.n_features + net.augment
    assert t.states.shape == trajectory
    assert t.outputs.shape == (samples, net.n_outputs)
    assert net.adjoint(*problem.data).shape == trajectory
    assert net.tangent(problem.u, problem.X).shape == trajectory
    assert isinstance(value, float)
    assert g.X is not None
    assert g.X.shape == (samples, features)
    assert g.to_vector().shape == (net.n_controls,)


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_have_the_type_of_the_network(dtype: str) -> None:
    problem = random_problem(Network(2, 3, dtype=dtype), samples=4)
    t = problem.net.forward(problem.u, problem.X)
    value, g = problem.net.value_and_grad(*problem.data, input_grad=True)
    results = (t.states, t.outputs, g.to_vector(), g.X, problem.net.adjoint(*problem.data))
    assert {str(array.dtype) for array in results if array is not None} == {dtype}
    assert isinstance(value, float)


@given(problems())
@settings(max_examples=100)
def test_all_evaluations_agree(problem: Problem) -> None:
    """One forward sweep, one loss: the same bits from whichever method."""
    net = problem.net
    t = net.forward(problem.u, problem.X)
    np.testing.assert_array_equal(net.predict(problem.u, problem.X), t.outputs)
    np.testing.assert_array_equal(t.states[0][:, : net.n_features], problem.X)
    assert not t.states[0][:, net.n_features :].any()
    assert net.value(*problem.data) == net.value_and_grad(*problem.data)[0]
    assert net.value_and_grad(*problem.data)[1].X is None


@given(problems())
@settings(max_examples=50)
def test_the_tangent_is_linear_in_the_direction(problem: Problem) -> None:
    net, u, X = problem.net, problem.u, problem.X
    both = net.tangent(u, X, problem.du, problem.dX)
    apart = net.tangent(u, X, du=problem.du) + net.tangent(u, X, dX=problem.dX)
    np.testing.assert_allclose(both, apart, rtol=0, atol=1e-12 * np.abs(apart).max() + 1e-300)
    np.testing.assert_array_equal(net.tangent(u, X, -2 * problem.du, -2 * problem.dX), -2 * both)
    assert not net.tangent(u, X).any()


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_feed_forward_network_is_a_composition_of_layers(activation: str) -> None:
    net = Network.preset("net", 2, 3, activation=activation, augment=1)
    problem = random_problem(net, samples=4)
    y = np.hstack([problem.X, np.zeros((4, 1))])
    for K, b in zip(problem.u.K, problem.u.b, strict=True):
        y = reference.ACTIVATIONS[activation].value(y @ K.T + b)
    np.testing.assert_allclose(net.forward(problem.u, problem.X).states[-1], y, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("tableau", TABLEAUX)
def test_equal_stage_controls_are_common_controls(tableau: str) -> None:
    common, own = (Network(2, 4, tableau=tableau, time_steps="free", stage_controls=own) for own in (False, True))
    problem = random_problem(common, samples=5)
    u, s = problem.u, own.stages
    spread = own.controls(
        K=np.repeat(u.K[:, None], s, axis=1), b=np.repeat(u.b[:, None], s, axis=1), h=u.h, W=u.W, mu=u.mu
    )
    np.testing.assert_array_equal(own.predict(spread, problem.X), common.predict(u, problem.X))
    g, g_own = (net.value_and_grad(v, problem.X, problem.y)[1] for net, v in ((common, u), (own, spread)))
    np.testing.assert_allclose(g_own.K.sum(axis=1), g.K, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(g_own.b.sum(axis=1), g.b, rtol=1e-13, atol=1e-15)
    np.testing.assert_array_equal(g_own.h, g.h)


def test_unused_stages_change_nothing() -> None:
    """A weight of 0 and a zero column: neither the flow nor any gradient depends on the stage."""
    midpoint = Tableau.named("midpoint")
    A = np.zeros((3, 3))
    A[:2, :2], A[2, :2] = midpoint.A, [0.3, 0.4]
    padded = Network(2, 3, tableau=Tableau(A, [*midpoint.b, 0]), stage_controls=True, time_steps="free")
    plain = Network(2, 3, tableau=midpoint, stage_controls=True, time_steps="free")
    problem = random_problem(padded, samples=4)
    u = plain.controls(K=problem.u.K[:, :2], b=problem.u.b[:, :2], h=problem.u.h, W=problem.u.W, mu=problem.u.mu)
    (value, g), (value_plain, g_plain) = (
        net.value_and_grad(v, problem.X, problem.y) for net, v in ((padded, problem.u), (plain, u))
    )
    assert value == value_plain
    np.testing.assert_array_equal(g.K[:, :2], g_plain.K)
    np.testing.assert_array_equal(g.h, g_plain.h)
    assert not g.K[:, 2].any()
    assert not g.b[:, 2].any()


def test_presets_are_the_papers_architectures() -> None:
    settings_of = {
        "net": (False, "fixed"),
        "resnet": (True, "fixed"),
        "odenet": (True, "free"),
        "odenet+simplex": (True, "simplex"),
    }
    for architecture, expected in settings_of.items():
        net = Network.preset(architecture, 2, 20, activation="sin", horizon=3)
        assert (net.residual, net.time_steps) == expected
        assert (net.activation, net.horizon, net.n_layers, net.tableau) == ("sin", 3.0, 20, Tableau.named("euler"))
    assert Network.preset("odenet", 2, 3, tableau="kutta4").tableau.name == "kutta4"
    with pytest.raises(TypeError, match="colour"):
        Network.preset("net", 2, 3, colour="red")


@pytest.mark.parametrize("scheme", ["paper", "scaled"])
def test_init_draws_matrices_and_leaves_the_rest_at_its_default(scheme: str) -> None:
    net = Network(9, 40, n_outputs=30, horizon=2.0)
    u = net.init(random_state=0, scheme=scheme)
    spread = 1.0 if scheme == "paper" else 1 / 3
    for part in (u.K, u.W):
        deviations = np.sqrt(2 / part.size)  # of a sample's mean of squares
        assert np.mean(part**2) == pytest.approx(spread**2, rel=5 * deviations)
        assert abs(part.mean()) <= 5 * spread / np.sqrt(part.size)
    assert not u.b.any()
    assert not u.mu.any()
    np.testing.assert_array_equal(u.h, np.full(40, 2.0 / 40))


def test_init_is_the_same_for_the_same_seed() -> None:
    net = Network(2, 3)
    first = net.init(random_state=5).to_vector()
    np.testing.assert_array_equal(net.init(random_state=5).to_vector(), first)
    np.testing.assert_array_equal(net.init(random_state=np.random.default_rng(5)).to_vector(), first)
    assert (net.init(random_state=6).to_vector() != first).any()
    assert (net.init().to_vector() != net.init().to_vector()).any()
    legacy = [net.init(random_state=np.random.RandomState(5)).to_vector() for _ in range(2)]
    np.testing.assert_array_equal(*legacy)


def test_init_draws_from_a_generator() -> None:
    net, rng = Network(2, 3), np.random.default_rng(5)
    assert (net.init(random_state=rng).to_vector() != net.init(random_state=rng).to_vector()).any()


def test_controls_default_to_zero_and_equal_steps() -> None:
    u = Network(2, 4, horizon=2.0).controls()
    assert not any(part.any() for part in (u.K, u.b, u.W, u.mu))
    np.testing.assert_array_equal(u.h, [0.5] * 4)
    assert Network(2, 4, residual=False).controls().h.shape == (0,)


def test_controls_copy_their_arguments() -> None:
    net, K = Network(2, 3), np.ones((3, 2, 2))
    u = net.controls(K=K)
    K[...] = 7
    assert (u.K == 1).all()
    v = u.to_vector()
    twin = net.from_vector(v)
    v[...] = 7
    assert (twin.K == 1).all()


@pytest.mark.parametrize("time_steps", ["fixed", "free"])
def test_steps_may_be_any_finite_numbers_off_the_simplex(time_steps: str) -> None:
    h = [0.0, -2.0, 1e5]
    np.testing.assert_array_equal(Network(2, 3, time_steps=time_steps).controls(h=h).h, h)


@pytest.mark.parametrize("dtype", DTYPES)
def test_steps_on_the_simplex_are_kept(dtype: str) -> None:
    net = Network(2, 7, time_steps="simplex", horizon=0.3, dtype=dtype)
    h = ocdl.project_simplex(np.random.default_rng(0).normal(size=7).astype(dtype), 0.3)
    assert (h == 0).any()
    np.testing.assert_array_equal(net.controls(h=h).h, h)
    default = net.controls().h
    assert default.sum(dtype=float) == pytest.approx(0.3, rel=7 * float(np.finfo(dtype).eps))
    np.testing.assert_array_equal(ocdl.project_simplex(default, 0.3), default)


def every_network() -> list[Network]:
    own = Tableau([[0, 0], [0.7, 0]], [0.2, 0.8])
    return [
        Network(2, 3),
        Network(2, 3, residual=False),
        Network(4, 1, n_outputs=3, tableau=own, augment=2, stage_controls=True, dtype="float32", horizon=0.5),
        Network.preset("odenet+simplex", 2, 20, tableau="kutta4", activation="relu"),
    ]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
@pytest.mark.parametrize("net", every_network(), ids=repr)
def test_duplicates_are_equal_and_compute_the_same(net: Network, duplicate) -> None:
    twin = duplicate(net)
    assert twin == net
    assert hash(twin) == hash(net)
    assert repr(twin) == repr(net)
    problem = random_problem(net, samples=3)
    np.testing.assert_array_equal(twin.predict(problem.u, problem.X), net.predict(problem.u, problem.X))


def test_different_networks_are_different() -> None:
    assert len({*every_network(), *every_network()}) == len(every_network())
    assert Network(2, 3) != Network(2, 3, activation="sin")
    assert Network(2, 3) != "Network(2, 3)"


def test_networks_are_immutable() -> None:
    net = Network(2, 3)
    for name in ("n_layers", "tableau", "dtype", "dim", "n_controls"):
        with pytest.raises(AttributeError):
            setattr(net, name, 5)


def test_repr_builds_the_network_again() -> None:
    net = Network(2, 3, tableau="kutta4", time_steps="free", augment=1)
    assert eval(repr(net), {"Network": Network}) == net


def test_an_evaluation_changes_none_of_its_arguments() -> None:
    problem = random_problem(Network(2, 3, time_steps="free"), samples=4)
    u, X, y = problem.u.to_vector(), problem.X.copy(), problem.y.copy()
    problem.net.value_and_grad(*problem.data, Objective(), sample_weight=problem.sample_weight, input_grad=True)
    problem.net.tangent(problem.u, problem.X, problem.du, problem.dX)
    np.testing.assert_array_equal(problem.u.to_vector(), u)
    np.testing.assert_array_equal(problem.X, X)
    np.testing.assert_array_equal(problem.y, y)


def test_results_belong_to_the_caller() -> None:
    """No buffer is used for two results."""
    problem = random_problem(Network(2, 3), samples=4)
    first, second = (problem.net.forward(problem.u, problem.X) for _ in range(2))
    first.states[...] = 7
    assert first.states.flags.owndata
    assert not np.shares_memory(first.states, second.states)
    np.testing.assert_array_equal(problem.net.forward(problem.u, problem.X).states, second.states)


def test_large_gradients_are_unchanged_while_views_exist() -> None:
    """Memory of large gradients is used again, but not before the last view of it is gone."""
    net = ocdl.Network(128, 40)
    X, y = np.random.default_rng(0).normal(size=(10, 128)), np.arange(10) % 2
    u = net.init(random_state=0, scheme="scaled")
    _, g = net.value_and_grad(u, X, y)
    expected, view = g.to_vector(), g.K[3]
    _, other = net.value_and_grad(2 * u, X, y)
    assert np.array_equal(g.to_vector(), expected)
    assert not np.array_equal(other.to_vector(), expected)
    kept = view.copy()
    del g, other
    for _ in range(3):
        _, other = net.value_and_grad(2 * u, X, y)
        assert np.array_equal(view, kept)
    del view, other
    assert np.array_equal(net.value_and_grad(u, X, y)[1].to_vector(), expected)
