"""`Network.vjp` gives gradients of any function of outputs and states, from its cotangents there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import FIELDS, REDUCTIONS, TABLEAUX, Problem, field_options, problems, random_problem
from soak import Soak

import ocdl
from ocdl import Network, Objective
from ocdl.model.losses import LOSSES

DTYPES = ("float64", "float32")
KINDS = ("outputs", "last", "all", "outputs and last", "outputs and all")


def random_cotangents(p: Problem, kind: str, seed: int = 0) -> dict[str, np.ndarray]:
    """Cotangents of a kind, as arguments of `vjp`."""
    rng, m, net = np.random.default_rng(seed), len(p.X), p.net
    actual = {}
    if "outputs" in kind:
        actual["output_cotangents"] = rng.normal(size=(m, net.n_outputs)).astype(net.dtype)
    if "last" in kind:
        actual["state_cotangents"] = rng.normal(size=(m, net.dim)).astype(net.dtype)
    if "all" in kind:
        actual["state_cotangents"] = rng.normal(size=(net.n_layers + 1, m, net.dim)).astype(net.dtype)
    return actual


def product(net: Network, vector: np.ndarray, X: np.ndarray, cotangents: dict[str, np.ndarray]) -> Any:
    """<output cotangents, outputs> + <state cotangents, states>, by the reference; real or complex."""
    states, total = reference.states(net, vector, X), 0.0
    if "state_cotangents" in cotangents:
        given_cotangents = cotangents["state_cotangents"]
        total = total + (given_cotangents * (states if given_cotangents.ndim == 3 else states[-1])).sum()
    if "output_cotangents" in cotangents:
        total = total + (cotangents["output_cotangents"] * reference.outputs(net, vector, X)).sum()
    return total


def complex_step(
    p: Problem, cotangents: dict[str, np.ndarray], du: np.ndarray | float, dX: np.ndarray | float
) -> float:
    step = 1j * reference.STEP
    return float(product(p.net, p.u.to_vector() + step * du, p.X + step * dX, cotangents).imag) / reference.STEP


def assert_is_gradient(p: Problem, cotangents: dict[str, np.ndarray]) -> float:
    """Every derivative is that of the complex step, relative to the largest; return the error."""
    g = p.net.vjp(p.u, p.X, **cotangents)
    assert g.X is not None
    by_controls = np.array([complex_step(p, cotangents, unit, 0.0) for unit in np.eye(p.net.n_controls)])
    by_data = np.array([complex_step(p, cotangents, 0.0, unit.reshape(p.X.shape)) for unit in np.eye(p.X.size)])
    expected, actual = np.concatenate([by_controls, by_data]), np.concatenate([g.to_vector(), g.X.ravel()])
    largest = np.abs(expected).max()
    error = float(np.abs(actual - expected).max() / (largest or 1.0))
    assert error <= (1e-12 if p.net.tableau.is_explicit or not p.net.residual else 1e-11)
    return error


@settings(max_examples=25)
@given(problems(max_layers=4, max_dim=4, max_samples=5), st.sampled_from(KINDS), st.integers(0, 2**32))
def test_vjp_is_the_gradient(p: Problem, kind: str, seed: int) -> None:
    """By the complex step, in every control and every number of the data."""
    assert_is_gradient(p, random_cotangents(p, kind, seed))


def error_along_directions(p: Problem, cotangents: dict[str, np.ndarray]) -> float:
    """The largest error along a direction in each part of the controls and in the data, relative to the terms."""
    g, errors = p.net.vjp(p.u, p.X, **cotangents), []
    assert g.X is not None
    for part in p.net.parts:
        direction = p.net.from_vector(np.zeros(p.net.n_controls))
        getattr(direction, part.name)[...] = getattr(p.du, part.name)
        terms = g.to_vector() * direction.to_vector()
        target_value = complex_step(p, cotangents, direction.to_vector(), 0.0)
        errors.append(abs(float(terms.sum()) - target_value) / max(np.abs(terms).sum(), 1e-300))
    terms = g.X * p.dX
    errors.append(abs(float(terms.sum()) - complex_step(p, cotangents, 0.0, p.dX)) / max(np.abs(terms).sum(), 1e-300))
    return float(max(errors))


@pytest.mark.slow
def test_vjp_is_the_gradient_on_many_networks(soak: Soak) -> None:
    worst = {True: 0.0, False: 0.0}

    @settings(max_examples=soak.times(3000), database=None)
    @given(problems(), st.sampled_from(KINDS), st.integers(0, 2**32))
    def compare(p: Problem, kind: str, seed: int) -> None:
        explicit = p.net.tableau.is_explicit or not p.net.residual
        worst[explicit] = max(worst[explicit], error_along_directions(p, random_cotangents(p, kind, seed)))
        assert worst[explicit] <= (1e-12 if explicit else 1e-11)

    compare()
    soak.measured(f"largest relative error {worst[True]:.1e}, of implicit methods {worst[False]:.1e}")


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("tableau", TABLEAUX)
def test_vjp_is_the_transpose_of_the_tangent(tableau: str, field: str) -> None:
    """<cotangents, v> = <vjp, direction>, with the tangents v along the direction, whatever the cotangents are."""
    net = Network(4, 5, n_outputs=2, tableau=tableau, **field_options(field), time_steps="free", augment=2)
    p = random_problem(net, samples=6)
    v = net.tangent(p.u, p.X, p.du, p.dX)
    dz = v[-1] @ p.u.W.T + net.final_state(p.u, p.X) @ p.du.W.T + p.du.mu
    for kind in KINDS:
        cotangents = random_cotangents(p, kind)
        g = net.vjp(p.u, p.X, **cotangents)
        terms = []
        if "output_cotangents" in cotangents:
            terms.append(cotangents["output_cotangents"] * dz)
        if "state_cotangents" in cotangents:
            terms.append(cotangents["state_cotangents"] * (v if "all" in kind else v[-1]))
        size = sum(float(np.abs(term).sum()) for term in terms)
        assert g.X is not None
        assert g.dot(p.du) + float((g.X * p.dX).sum()) == pytest.approx(
            sum(float(t.sum()) for t in terms), abs=1e-13 * size
        )


# ---- the gradient of an objective ----


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_cotangents_of_an_objective_give_its_gradient_to_the_last_bit(
    name: str, dtype: str, reduction: str, weighted: bool
) -> None:
    """Narrow states and wide ones, which a team of threads shares; one block and several."""
    for features, layers, samples in ((2, 5, 13), (3, 4, 3000), (100, 2, 400)):
        for outputs in (1, 3):
            net = Network(features, layers, n_outputs=outputs, tableau="kutta3", time_steps="free", dtype=dtype)
            p = random_problem(net, samples)
            y: Any = p.y
            if LOSSES[name].targets == "numbers":
                y = np.abs(np.random.default_rng(1).normal(size=(samples, outputs))).astype(dtype)
            weights, objective = p.sample_weight if weighted else None, Objective(name, reduction=reduction)
            _, expected = net.value_and_grad(p.u, p.X, y, objective, sample_weight=weights, input_grad=True)
            cotangents = objective.output_grad(net.predict(p.u, p.X), y, weights)
            assert cotangents.dtype == dtype
            actual = net.vjp(p.u, p.X, output_cotangents=cotangents)
            assert np.array_equal(actual.to_vector(), expected.to_vector())
            assert np.array_equal(actual.X, expected.X)


@settings(max_examples=40)
@given(problems(max_layers=6, max_dim=5), st.sampled_from(list(LOSSES)), st.sampled_from(REDUCTIONS))
def test_cotangents_of_an_objective_give_its_gradient_on_any_network(p: Problem, name: str, reduction: str) -> None:
    objective, y = Objective(name, reduction=reduction), p.y
    if LOSSES[name].targets == "numbers":
        y = np.abs(np.random.default_rng(1).normal(size=(len(p.X), p.net.n_outputs)))
    _, expected = p.net.value_and_grad(p.u, p.X, y, objective, sample_weight=p.sample_weight, input_grad=True)
    actual = p.net.vjp(p.u, p.X, output_cotangents=objective.output_grad(p.net.predict(p.u, p.X), y, p.sample_weight))
    assert np.array_equal(actual.to_vector(), expected.to_vector())
    assert np.array_equal(actual.X, expected.X)


# ---- missing and repeated arguments ----


@settings(max_examples=30)
@given(problems(max_layers=6, max_dim=5), st.sampled_from(KINDS))
def test_vjp_is_linear_in_the_cotangents(p: Problem, kind: str) -> None:
    first, second = (random_cotangents(p, kind, seed) for seed in (1, 2))
    both = {name: 2 * first[name] - second[name] for name in first}
    g1, g2, g = (p.net.vjp(p.u, p.X, **cotangents) for cotangents in (first, second, both))
    assert (g - (2.0 * g1 - g2)).norm() <= 1e-13 * (2 * g1.norm() + g2.norm())
    np.testing.assert_allclose(g.X, 2 * g1.X - g2.X, atol=1e-13 * float(np.abs([g1.X, g2.X]).max()), rtol=1e-10)


@settings(max_examples=30)
@given(problems(max_layers=6, max_dim=5))
def test_cotangents_of_the_last_states_are_those_of_every_layer_with_zeros(p: Problem) -> None:
    last = random_cotangents(p, "last")["state_cotangents"]
    every = np.zeros((p.net.n_layers + 1, *last.shape))
    every[-1] = last
    g, h = (p.net.vjp(p.u, p.X, state_cotangents=cotangents) for cotangents in (last, every))
    np.testing.assert_allclose(g.to_vector(), h.to_vector(), rtol=1e-14, atol=1e-300)
    np.testing.assert_allclose(g.X, h.X, rtol=1e-14, atol=1e-300)
    assert not g.W.any()
    assert not g.mu.any()


@settings(max_examples=30)
@given(problems(max_layers=6, max_dim=5))
def test_output_cotangents_are_cotangents_of_the_last_state_for_everything_before(p: Problem) -> None:
    """dz = W dy; W itself and mu see the final state."""
    cotangents = random_cotangents(p, "outputs")["output_cotangents"]
    g = p.net.vjp(p.u, p.X, output_cotangents=cotangents)
    before = p.net.vjp(p.u, p.X, state_cotangents=cotangents @ p.u.W)
    scale = float(np.abs(before.to_vector()).max()) + float(np.abs(before.X).max())
    for part in (*(part.name for part in p.net.parts if part.role != "readout"), "X"):
        np.testing.assert_allclose(getattr(g, part), getattr(before, part), rtol=1e-11, atol=1e-13 * scale)
    np.testing.assert_allclose(g.W, cotangents.T @ p.net.final_state(p.u, p.X), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(g.mu, cotangents.sum(axis=0), rtol=1e-11, atol=1e-12)


def test_cotangents_of_layer_zero_affect_the_data_only() -> None:
    """Those of augmented components drop out: the zeros there are no data."""
    p = random_problem(Network(2, 3, augment=2), samples=5)
    cotangents = np.zeros((4, 5, 4))
    cotangents[0] = np.random.default_rng(0).normal(size=(5, 4))
    g = p.net.vjp(p.u, p.X, state_cotangents=cotangents)
    assert not g.to_vector().any()
    assert np.array_equal(g.X, cotangents[0, :, :2])


def test_fixed_steps_have_no_gradient() -> None:
    p = random_problem(Network(2, 3), samples=5)
    assert not p.net.vjp(p.u, p.X, **random_cotangents(p, "outputs and all")).h.any()


@settings(max_examples=20)
@given(problems(max_layers=5, max_dim=4, max_samples=5))
def test_a_loss_on_the_whole_trajectory(p: Problem) -> None:
    """The gradient of 1/2 sum_j |y[j]|^2: its cotangents are the states. By the complex step along a direction."""

    def energy(vector: np.ndarray, X: np.ndarray) -> Any:
        return (reference.states(p.net, vector, X) ** 2).sum() / 2

    states = p.net.forward(p.u, p.X).states
    g = p.net.vjp(p.u, p.X, state_cotangents=states)
    step = 1j * reference.STEP
    expected = energy(p.u.to_vector() + step * p.du.to_vector(), p.X + step * p.dX).imag / reference.STEP
    size = np.abs(g.to_vector() * p.du.to_vector()).sum() + np.abs(g.X * p.dX).sum()
    assert abs(g.dot(p.du) + float((g.X * p.dX).sum()) - expected) <= 1e-11 * size


def test_descent_on_a_trajectory_loss() -> None:
    """A hundred gradient steps bring the flow to rest, as a user would write it."""
    p = random_problem(Network(2, 10), samples=20)
    u, costs = p.u.copy(), []
    for _ in range(100):
        states = p.net.forward(u, p.X).states
        costs.append(float((np.diff(states, axis=0) ** 2).sum() / 2))
        cotangents = np.zeros_like(states)
        jumps = np.diff(states, axis=0)
        cotangents[1:] += jumps
        cotangents[:-1] -= jumps
        u = u - 0.1 * p.net.vjp(u, p.X, state_cotangents=cotangents)
    assert (np.diff(costs) < 0).all()
    assert costs[-1] < 0.5 * costs[0]


# ---- bits ----


@pytest.mark.usefixtures("all_threads")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [(1, 1, 1), (2, 5, 13), (2, 20, 5000), (17, 3, 2000), (96, 2, 700), (130, 2, 33)])
def test_the_number_of_threads_changes_no_bit(size: tuple[int, int, int], dtype: str) -> None:
    features, layers, samples = size
    net = Network(features, layers, n_outputs=3, tableau="kutta3", time_steps="free", dtype=dtype)
    p = random_problem(net, samples)
    for kind in KINDS:
        cotangents, actual = random_cotangents(p, kind), set()
        for threads in (1, 2, 3, 7, 1):
            ocdl.set_num_threads(threads)
            g = net.vjp(p.u, p.X, **cotangents)
            assert g.X is not None
            actual.add((g.to_vector().tobytes(), g.X.tobytes(), net.final_state(p.u, p.X).tobytes()))
        assert len(actual) == 1


@settings(max_examples=40)
@given(problems(max_layers=6, max_samples=40), st.data())
def test_a_row_of_the_data_does_not_depend_on_its_batch(p: Problem, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(p.X) - 1), min_size=1, max_size=50))
    cotangents = random_cotangents(p, "outputs and all")
    whole = p.net.vjp(p.u, p.X, **cotangents)
    part = p.net.vjp(
        p.u,
        p.X[rows],
        output_cotangents=cotangents["output_cotangents"][rows],
        state_cotangents=cotangents["state_cotangents"][:, rows],
    )
    assert np.array_equal(part.X, whole.X[rows])
    assert np.array_equal(p.net.final_state(p.u, p.X[rows]), p.net.final_state(p.u, p.X)[rows])


@settings(max_examples=40)
@given(problems(max_layers=8, max_samples=40))
def test_the_final_state_is_the_last_of_the_trajectory(p: Problem) -> None:
    trajectory, final = p.net.forward(p.u, p.X), p.net.final_state(p.u, p.X)
    assert final.shape == (len(p.X), p.net.dim)
    assert final.dtype == p.net.dtype
    assert np.array_equal(final, trajectory.states[-1])
    assert np.array_equal(p.net.predict(p.u, p.X), trajectory.outputs)
    expected = final @ p.u.W.T + p.u.mu
    size = np.abs(final) @ np.abs(p.u.W.T) + np.abs(p.u.mu)
    assert (np.abs(p.net.predict(p.u, p.X) - expected) <= 1e-14 * size).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_have_the_type_of_the_network_and_belong_to_the_caller(dtype: str) -> None:
    p = random_problem(Network(2, 3, n_outputs=2, dtype=dtype), samples=7)
    cotangents = random_cotangents(p, "outputs and all")
    before = {name: array.copy() for name, array in cotangents.items()}
    g = p.net.vjp(p.u, p.X, **cotangents)
    assert g.X is not None
    assert g.to_vector().dtype == g.X.dtype == dtype
    kept = g.to_vector().copy()
    p.net.vjp(p.u, 2 * p.X, **cotangents)
    assert np.array_equal(g.to_vector(), kept)
    assert all(np.array_equal(cotangents[name], before[name]) for name in cotangents)
    lists = {name: array.astype(np.float64).tolist() for name, array in cotangents.items()}
    assert np.array_equal(p.net.vjp(p.u, p.X, **lists).to_vector(), kept)


# ---- misuse, overflow ----


@pytest.mark.parametrize(
    ("cotangents", "error", "message"),
    [
        ({}, ValueError, "vjp needs output_cotangents or state_cotangents, got neither"),
        (
            {"output_cotangents": np.ones((5, 2))},
            ValueError,
            r"output_cotangents must have shape \(5, 3\), \(samples, outputs\)",
        ),
        ({"output_cotangents": np.ones(5)}, ValueError, r"output_cotangents must have shape \(5, 3\), .* got \(5,\)"),
        ({"output_cotangents": np.ones((4, 3))}, ValueError, r"output_cotangents must have shape \(5, 3\)"),
        (
            {"state_cotangents": np.ones((5, 2))},
            ValueError,
            r"shape \(5, 4\), \(samples, dim\), or \(4, 5, 4\), \(layers \+ 1, samples, dim\), got \(5, 2\)",
        ),
        ({"state_cotangents": np.ones((3, 5, 4))}, ValueError, r"state_cotangents must have shape .* got \(3, 5, 4\)"),
        ({"state_cotangents": np.ones((4, 5, 2))}, ValueError, r"state_cotangents must have shape .* got \(4, 5, 2\)"),
        ({"state_cotangents": 1.0}, ValueError, r"state_cotangents must have shape .* got \(\)"),
        ({"output_cotangents": np.full((5, 3), np.nan)}, ValueError, r"output_cotangents\[0, 0\] is nan"),
        ({"state_cotangents": np.full((5, 4), np.inf)}, ValueError, r"state_cotangents\[0, 0\] is inf"),
        ({"output_cotangents": [["a"] * 3] * 5}, TypeError, "output_cotangents must hold real numbers"),
        ({"state_cotangents": np.ones((5, 4), complex)}, TypeError, "state_cotangents must hold real numbers"),
    ],
    ids=str,
)
def test_wrong_cotangents_are_named(cotangents: dict[str, Any], error: type[Exception], message: str) -> None:
    p = random_problem(Network(2, 3, n_outputs=3, augment=2), samples=5)
    with pytest.raises(error, match=message):
        p.net.vjp(p.u, p.X, **cotangents)


def test_vjp_validates_controls_and_samples() -> None:
    p = random_problem(Network(2, 3), samples=5)
    for call in (lambda u, X: p.net.final_state(u, X), lambda u, X: p.net.vjp(u, X, output_cotangents=np.ones((5, 1)))):
        with pytest.raises(ValueError, match="X has 3 features but the network takes 2"):
            call(p.u, np.ones((5, 3)))
        with pytest.raises(TypeError, match="u must be Controls"):
            call(p.u.to_vector(), p.X)
        with pytest.raises(ValueError, match=r"X\[1, 0\] is nan"):
            call(p.u, [[0.0, 0.0], [np.nan, 0.0]])


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_flow_that_overflows_is_reported(dtype: str) -> None:
    net = Network(1, 4, activation="identity", dtype=dtype)
    u = net.controls(K=np.full((4, 1, 1), 4e30 if dtype == "float32" else 4e250), W=[[1.0]])
    X = np.array([[0.0], [0.0], [1.0]])
    for call in (lambda: net.final_state(u, X), lambda: net.vjp(u, X, output_cotangents=np.ones((3, 1)))):
        with pytest.raises(FloatingPointError, match=r"the flow overflows .*: the state of sample 2 is not finite"):
            call()


def test_cotangents_that_overflow_on_the_way_back_are_reported() -> None:
    net = Network(1, 4, activation="identity")
    u = net.controls(K=np.full((4, 1, 1), 4e10), W=[[1.0]])
    for cotangents in (
        {"output_cotangents": [[1e300]]},
        {"state_cotangents": [[1e300]]},
        {"state_cotangents": np.array([0, 0, 0, 0, 1e300]).reshape(5, 1, 1)},
    ):
        with pytest.raises(FloatingPointError, match="overflow"):
            net.vjp(u, [[1.0]], **cotangents)
