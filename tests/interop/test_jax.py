"""A flow inside JAX: its gradients, compiled and mapped, and trained by optax."""

from __future__ import annotations

import copy
import importlib
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from bridged_problems import FIFTY, expected_of, numbered, problem
from subprocesses import run_python

import ocdl
from ocdl import Network
from ocdl.interop.bridge import RETURNS

pytestmark = pytest.mark.extras
jax: Any = pytest.importorskip("jax", reason="jax is not installed: pip install 'ocdl[jax]'")
jax.config.update("jax_enable_x64", True)
jnp = jax.numpy
jax_flow: Any = importlib.import_module("ocdl.interop.jax_flow")

# ---- gradients ----


@pytest.mark.parametrize("number", range(len(FIFTY)))
def test_check_grads(number: int) -> None:
    """By finite differences along random directions, of the controls and of x."""
    from jax.test_util import check_grads

    p, returns = numbered(number, time_steps="free", stage_controls=number % 4 == 3)
    check_grads(ocdl.jax.flow(p.net, returns), (p.u.parts(), p.X), order=1, modes=("rev",))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("returns", RETURNS)
def test_the_flow_has_the_bits_of_the_network(returns: str, dtype: str) -> None:
    p = problem(dtype=dtype, augment=1, tableau="kutta3")
    flow = ocdl.jax.flow(p.net, returns)
    result, apply_vjp = jax.vjp(flow, p.u.parts(), p.X)
    assert np.array_equal(result, expected_of(p, returns))
    slopes = np.random.default_rng(0).normal(size=result.shape).astype(dtype)
    by_controls, by_x = apply_vjp(jnp.asarray(slopes))
    g = p.net.vjp(p.u, p.X, **{"output_cotangents" if returns == "outputs" else "state_cotangents": slopes})
    assert np.array_equal(by_x, g.X)
    assert all(np.array_equal(by_controls[name], part) for name, part in g.parts().items())


@pytest.mark.parametrize("returns", RETURNS)
def test_compiled_flows_have_the_same_bits(returns: str) -> None:
    p = problem(tableau="kutta4")
    flow = ocdl.jax.flow(p.net, returns)

    def loss(controls: Any, x: Any) -> Any:
        return (flow(controls, x) ** 2).sum()

    assert np.array_equal(jax.jit(flow)(p.u.parts(), p.X), flow(p.u.parts(), p.X))
    plain, compiled = (f(p.u.parts(), p.X) for f in (jax.grad(loss), jax.jit(jax.grad(loss))))
    assert all(np.array_equal(plain[name], compiled[name]) for name in plain)


@pytest.mark.parametrize("returns", RETURNS)
def test_mapped_flows_have_the_same_bits(returns: str) -> None:
    """Over samples, over controls, over both, one inside the other, and over gradients; each to the last bit."""
    p = problem(samples=12, augment=1)
    flow, X = ocdl.jax.flow(p.net, returns), jnp.asarray(p.X.reshape(3, 4, 2))
    parts = p.u.parts()
    several = {
        name: jnp.stack([factor * jnp.asarray(part) for factor in (1.0, 0.5, -0.7)]) for name, part in parts.items()
    }

    def of(number: int) -> Any:
        return {name: part[number] for name, part in several.items()}

    over_x = jax.vmap(flow, in_axes=(None, 0))(parts, X)
    assert np.array_equal(over_x, jnp.stack([flow(parts, x) for x in X]))
    over_last = jax.vmap(flow, in_axes=(None, 1))(parts, X)
    assert np.array_equal(over_last, jnp.stack([flow(parts, X[:, i]) for i in range(4)]))
    over_controls = jax.vmap(flow, in_axes=(0, None))(several, X)
    assert np.array_equal(over_controls, jnp.stack([flow(of(i), X) for i in range(3)]))
    over_both = jax.vmap(flow)(several, X)
    assert np.array_equal(over_both, jnp.stack([flow(of(i), X[i]) for i in range(3)]))
    nested = jax.jit(jax.vmap(jax.vmap(flow, in_axes=(None, 0)), in_axes=(0, None)))(several, X)
    assert np.array_equal(nested, jnp.stack([jnp.stack([flow(of(i), x) for x in X]) for i in range(3)]))

    def loss(controls: Any, x: Any) -> Any:
        return (flow(controls, x) ** 2).sum()

    slopes = jax.vmap(jax.grad(loss), in_axes=(None, 0))(parts, X)
    one_by_one = [jax.grad(loss)(parts, x) for x in X]
    for name, slope in slopes.items():
        assert np.array_equal(slope, jnp.stack([g[name] for g in one_by_one]))


def test_any_axes_before_the_features() -> None:
    p = problem(samples=24, augment=1)
    for returns in RETURNS:
        flow = ocdl.jax.flow(p.net, returns)
        flat = flow(p.u.parts(), p.X)
        for shape in [(24,), (2, 3, 4), (24, 1)]:
            result = flow(p.u.parts(), p.X.reshape(*shape, 2))
            assert np.array_equal(result.reshape(flat.shape), flat)
        assert np.array_equal(flow(p.u.parts(), p.X[0]), flat[..., 0, :])
        assert flow(p.u.parts(), p.X[:0]).shape == (*flat.shape[:-2], 0, flat.shape[-1])


def test_missing_parts_have_defaults() -> None:
    p = problem(time_steps="fixed")
    flow = ocdl.jax.flow(p.net)
    u = p.net.controls(K=p.u.K, b=p.u.b, W=p.u.W)
    given = {name: getattr(u, name) for name in ("K", "b", "W")}
    assert np.array_equal(flow(given, p.X), p.net.predict(u, p.X))
    assert jax.grad(lambda controls: flow(controls, p.X).sum())(given).keys() == given.keys()


@pytest.mark.parametrize("number", range(0, len(FIFTY), 3))
def test_fixed_steps_that_are_passed_in_get_their_gradient(number: int) -> None:
    """Not 0, compiled or not; the other gradients have the bits that they have without it."""
    from jax.test_util import check_grads

    p, returns = numbered(number, time_steps="fixed")
    flow, parts = ocdl.jax.flow(p.net, returns), p.u.parts()
    check_grads(lambda h: flow(parts | {"h": h}, p.X), (p.u.h,), order=1, modes=("rev",))
    without = {name: part for name, part in parts.items() if name != "h"}
    default = np.full_like(p.u.h, p.net.horizon / p.net.n_layers)

    def loss(controls: Any) -> Any:
        return (flow(controls, p.X) ** 2).sum()

    for grad in (jax.grad(loss), jax.jit(jax.grad(loss))):
        some, all_of_them = grad(without), grad(parts | {"h": default})
        assert jnp.abs(all_of_them["h"]).max() > 0
        assert all(np.array_equal(some[name], all_of_them[name]) for name in without)


def callbacks(jaxpr: Any) -> Iterator[Any]:
    """Yield the callbacks in a function's equations, however deep."""
    for equation in jaxpr.eqns:
        if "callback" in equation.primitive.name:
            yield equation
        for parameter in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda leaf: hasattr(leaf, "jaxpr")):
            if hasattr(parameter, "jaxpr"):
                yield from callbacks(parameter.jaxpr)


def test_a_callback_takes_the_controls_as_one_vector() -> None:
    """Every array takes time on its way to the host and back."""
    p = problem()
    flow = ocdl.jax.flow(p.net)

    def vjp(controls: Any, x: Any) -> Any:
        return jax.vjp(flow, controls, x)[1](jnp.ones((5, 2)))

    shapes = {
        tuple(variable.aval.shape for variable in equation.invars)
        for equation in callbacks(jax.make_jaxpr(vjp)(p.u.parts(), p.X).jaxpr)
    }
    vector, x, cotangent = (p.net.n_controls,), (5, 2), (5, 2)
    assert shapes == {(vector, x), (vector, x, cotangent)}


@pytest.mark.parametrize("returns", RETURNS)
def test_arrays_replace_unavailable_buffers(returns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On graphics cards, and in older versions of JAX: the bits are the same."""
    p = problem(samples=6, augment=1)

    def results() -> Any:
        flow = ocdl.jax.flow(p.net, returns)
        grad = jax.grad(lambda u, x: (flow(u, x) ** 2).sum(), argnums=(0, 1))
        mapped = jax.vmap(grad, in_axes=(None, 0))(p.u.parts(), p.X.reshape(2, 3, 2))
        return flow(p.u.parts(), p.X), jax.jit(grad)(p.u.parts(), p.X), mapped

    expected = results()
    monkeypatch.setattr(jax_flow, "buffer_callback", None)
    actual = results()
    assert all(np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (actual, expected)), strict=True))


@pytest.mark.parametrize("returns", RETURNS)
def test_a_flow_can_be_pickled(returns: str) -> None:
    p = problem()
    flow = ocdl.jax.flow(p.net, returns, on_nonfinite="raise")
    expected = flow(p.u.parts(), p.X)  # which has been compiled
    for same in (pickle.loads(pickle.dumps(flow)), copy.deepcopy(flow)):
        assert np.array_equal(same(p.u.parts(), p.X), expected)
        assert same == flow
        assert hash(same) == hash(flow)
        assert repr(same) == repr(flow)
    assert flow != ocdl.jax.flow(p.net, returns)
    assert "on_nonfinite='raise'" in repr(flow)


def test_large_batches_in_compiled_code() -> None:
    p = problem(samples=300_000)
    flow = ocdl.jax.flow(p.net)
    slopes = jax.jit(jax.grad(lambda controls, x: flow(controls, x).sum()))(p.u.parts(), p.X)
    g = p.net.vjp(p.u, p.X, output_cotangents=np.ones((300_000, 2)))
    assert np.array_equal(slopes["K"], g.K)


def test_optax_trains_a_flow() -> None:
    optax = pytest.importorskip("optax", reason="optax is not installed: pip install 'ocdl[jax]'")
    X, y = ocdl.datasets.make_donut2d(200, random_state=0)
    net = Network(2, 6, tableau="midpoint", horizon=5.0, augment=1)
    flow = ocdl.jax.flow(net)
    controls = {name: jnp.asarray(part) for name, part in net.init(random_state=0, scheme="scaled").parts().items()}
    del controls["h"]
    optimiser = optax.adam(0.05)

    def loss(controls: Any) -> Any:
        return optax.sigmoid_binary_cross_entropy(flow(controls, X)[:, 0], y).mean()

    @jax.jit
    def step(controls: Any, state: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(controls)
        updates, state = optimiser.update(slopes, state)
        return optax.apply_updates(controls, updates), state, value

    state, values = optimiser.init(controls), []
    for _ in range(100):
        controls, state, value = step(controls, state)
        values.append(float(value))
    assert values[-1] < 0.3 * values[0]
    u = net.controls(**{name: np.asarray(part) for name, part in controls.items()})
    assert ((net.predict(u, X)[:, 0] > 0) == y).mean() > 0.95


# ---- wrong use ----


def test_second_derivatives_are_refused() -> None:
    p = problem()
    flow = ocdl.jax.flow(p.net)

    def slope(x: Any) -> Any:
        return jax.grad(lambda x: flow(p.u.parts(), x).sum())(x).sum()

    with pytest.raises(NotImplementedError, match=r"first derivatives only.*Network\.hessian_product"):
        jax.grad(slope)(p.X)


@pytest.mark.parametrize(
    ("controls", "x", "error", "message"),
    [
        ({}, np.zeros((3, 2), np.float32), TypeError, r"x holds float32, but the network takes float64: .*astype"),
        ({}, np.zeros((3, 2), int), TypeError, "x holds int64, but the network takes float64"),
        ({}, np.zeros((3, 3)), ValueError, r"x must have shape \(..., 2\), .* got \(3, 3\)"),
        ({}, np.zeros(()), ValueError, r"x must have shape \(..., 2\), .* got \(\)"),
        ({"K": np.zeros((3, 2))}, np.zeros((3, 2)), ValueError, r"K must have shape \(3, 2, 2\), .* got \(3, 2\)"),
        ({"b": np.zeros((3, 2), int)}, np.zeros((3, 2)), TypeError, "b holds int64"),
        ({"k": 1.0}, np.zeros((3, 2)), TypeError, "controls must be a dict of the parts K, b, h, W, mu, got 'k'"),
        ([1.0], np.zeros((3, 2)), TypeError, "controls must be a dict of the parts K, b, h, W, mu, got list"),
    ],
)
def test_errors_name_unfitting_arguments(controls: Any, x: Any, error: type[Exception], message: str) -> None:
    for transformed in (lambda f: f, jax.jit):
        if isinstance(controls, dict):
            with pytest.raises(error, match=message):
                transformed(ocdl.jax.flow(Network(2, 3)))(controls, x)
    with pytest.raises(error, match=message):
        ocdl.jax.flow(Network(2, 3))(controls, x)


@pytest.mark.parametrize("value", [None, "text", np.array([[None, 1]])])
def test_errors_name_values_that_are_no_arrays(value: Any) -> None:
    for controls, x, name in (({"K": value}, np.zeros((3, 2)), "K"), ({}, value, "x")):
        with pytest.raises(TypeError, match=rf"^{name} must be an array of numbers, got "):
            ocdl.jax.flow(Network(2, 3))(controls, x)


def test_invalid_arguments_of_flow() -> None:
    with pytest.raises(TypeError, match="net must be a Network, got str"):
        ocdl.jax.flow("resnet")
    with pytest.raises(ValueError, match="returns must be one of 'outputs', 'state', 'trajectory'"):
        ocdl.jax.flow(Network(2, 3), "states")
    with pytest.raises(ValueError, match="on_nonfinite must be one of 'nan', 'raise', got 'ignore'"):
        ocdl.jax.flow(Network(2, 3), on_nonfinite="ignore")


def test_double_precision_must_be_switched_on() -> None:
    code = """
import numpy as np, ocdl, ocdl.jax
try:
    ocdl.jax.flow(ocdl.Network(2, 3))({}, np.zeros((3, 2)))
except TypeError as error:
    print(error)
print(ocdl.jax.flow(ocdl.Network(2, 3, dtype="float32"))({}, np.zeros((3, 2), np.float32)).dtype)
"""
    output, single = run_python(code).splitlines()
    assert "holds float32, but the network takes float64: call jax.config.update('jax_enable_x64', True), or" in output
    assert single == "float32"
