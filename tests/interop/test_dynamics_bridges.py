"""Learned systems in PyTorch and JAX: the bits of `Dynamics.simulate`, and exact gradients."""

from __future__ import annotations

import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest
from oscillators import make_series

import ocdl
from ocdl.interop.dynamics_bridge import DynamicsBridge

TIMES = np.array([0.0, 0.13, 0.5, 0.7, 1.1])
RNG = np.random.default_rng(0)
STARTS = RNG.normal(size=(3, 2)) / 2
FORCES = RNG.normal(size=(3, len(TIMES), 1)) / 2
KINDS = [("polynomial", False), ("polynomial", True), ("mlp", False), ("mlp", True)]


@cache
def fitted(field: str, with_inputs: bool, n_models: int = 1) -> ocdl.Dynamics:
    """A model that has seen little, which is enough to be differentiated."""
    X, times = make_series(3, 12)
    inputs = [np.sin(3 * clock)[:, None] for clock in times] if with_inputs else None
    options: dict[str, Any] = {"width": 4, "max_iter": 3} if field == "mlp" else {"degree": 2, "sparsity": None}
    return ocdl.Dynamics(field=field, random_state=0, n_models=n_models, **options).fit(X, times, inputs=inputs)


@pytest.mark.parametrize(("field", "with_inputs"), KINDS)
def test_the_vjp_is_the_derivative(field: str, with_inputs: bool) -> None:
    """<cotangent, derivative along a direction>, by central differences, is <vjp, direction>."""
    bridge = DynamicsBridge.from_model(fitted(field, with_inputs))
    vector, forces = bridge.learned.theta, FORCES if with_inputs else None
    rng = np.random.default_rng(1)
    cotangent = rng.normal(size=(3, len(TIMES), 2))
    by_y0, by_vector, by_inputs = bridge.vjp(vector, STARTS, TIMES, forces, cotangent)
    directions = rng.normal(size=STARTS.shape), rng.normal(size=vector.shape), rng.normal(size=FORCES.shape)

    def states(step: float) -> np.ndarray:
        moved = None if forces is None else forces + step * directions[2]
        return bridge.forward(vector + step * directions[1], STARTS + step * directions[0], TIMES, moved)

    actual = np.sum(by_y0 * directions[0]) + by_vector @ directions[1]
    actual += 0.0 if by_inputs is None else np.sum(by_inputs * directions[2])
    expected = np.sum(cotangent * (states(1e-5) - states(-1e-5)) / 2e-5)
    assert actual == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("field", "with_inputs"), KINDS)
def test_states_are_those_of_simulate(field: str, with_inputs: bool) -> None:
    model = fitted(field, with_inputs)
    forces = FORCES if with_inputs else None
    bridge = DynamicsBridge.from_model(model)
    expected = model.simulate(STARTS, TIMES, inputs=forces)
    assert np.array_equal(bridge.forward(bridge.learned.theta, STARTS, TIMES, forces), expected)


def test_lost_trajectories_are_nan_and_so_are_their_gradients() -> None:
    bridge = DynamicsBridge.from_model(fitted("polynomial", False))
    vector = np.abs(bridge.learned.theta) + 3.0
    starts = np.array([[1.0, 1.0], [50.0, 50.0]])
    times = np.array([0.0, 1e-3, 2.0])
    states = bridge.forward(vector, starts, times, None)
    assert np.isfinite(states[:, 0]).all()
    assert np.isnan(states[1, 2]).all()
    by_y0, by_vector, _ = bridge.vjp(vector, starts, times, None, np.ones(states.shape))
    assert np.isnan(by_y0[1]).all()
    assert np.isnan(by_vector).all()


def test_one_time_is_the_start() -> None:
    bridge = DynamicsBridge.from_model(fitted("polynomial", True))
    one, cotangent = TIMES[:1], np.ones((3, 1, 2))
    assert np.array_equal(bridge.forward(bridge.learned.theta, STARTS, one, FORCES[:, :1])[:, 0], STARTS)
    by_y0, by_vector, by_inputs = bridge.vjp(bridge.learned.theta, STARTS, one, FORCES[:, :1], cotangent)
    assert np.array_equal(by_y0, np.ones((3, 2)))
    assert not by_vector.any()
    assert by_inputs is not None
    assert not by_inputs.any()


@pytest.mark.parametrize(
    ("with_inputs", "y0", "times", "inputs", "message"),
    [
        (False, (3,), TIMES, None, r"y0 must have shape \(\.\.\., 2\)"),
        (False, (), TIMES, None, r"y0 must have shape"),
        (False, (2,), TIMES[::-1], None, "times must increase"),
        (False, (2,), TIMES, (5, 1), "inputs must be left out"),
        (True, (2,), TIMES, None, r"inputs are missing: the model takes an array of shape \(5, 1\)"),
        (True, (4, 2), TIMES, (5, 1), r"inputs must have shape \(4, 5, 1\)"),
    ],
)
def test_arguments_that_do_not_fit(with_inputs: bool, y0: Any, times: Any, inputs: Any, message: str) -> None:
    bridge = DynamicsBridge.from_model(fitted("polynomial", with_inputs))
    with pytest.raises(ValueError, match=message):
        bridge.check(y0, times, inputs)


def test_models_that_cannot_be_bridged() -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(TypeError, match="model must be a fitted Dynamics, got"):
        DynamicsBridge.from_model(ocdl.Network(2, 2))
    with pytest.raises(NotFittedError):
        DynamicsBridge.from_model(ocdl.Dynamics())
    with pytest.raises(ValueError, match="got an ensemble of 2"):
        DynamicsBridge.from_model(fitted("polynomial", False, 2))


# ---- PyTorch ----


@pytest.mark.extras
@pytest.mark.parametrize(("field", "with_inputs"), KINDS)
def test_gradcheck_of_the_layer(field: str, with_inputs: bool) -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed: pip install 'ocdl[torch]'")
    layer = ocdl.torch.DynamicsLayer(fitted(field, with_inputs))
    y0 = torch.tensor(STARTS, requires_grad=True)
    forces = [torch.tensor(FORCES, requires_grad=True)] if with_inputs else []
    names = [name for name, _ in layer.named_parameters()]

    def function(y0: Any, *others: Any) -> Any:
        parameters = dict(zip(names, others[len(forces) :], strict=True))
        return torch.func.functional_call(layer, parameters, (y0, TIMES, *others[: len(forces)]))

    assert torch.autograd.gradcheck(function, (y0, *forces, *layer.parameters()))


@pytest.mark.extras
def test_the_layer_has_the_bits_of_simulate_for_any_axes() -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed: pip install 'ocdl[torch]'")
    model = fitted("mlp", True)
    layer = ocdl.torch.DynamicsLayer(model)
    states = layer(torch.tensor(STARTS), torch.tensor(TIMES), torch.tensor(FORCES))
    assert np.array_equal(states.detach().numpy(), model.simulate(STARTS, TIMES, inputs=FORCES))
    one = layer(torch.tensor(STARTS[0]), TIMES, torch.tensor(FORCES[0]))
    assert torch.equal(one, states[0])
    folded = layer(torch.tensor(STARTS)[:, None], TIMES, torch.tensor(FORCES)[:, None])
    assert torch.equal(folded, states[:, None])
    assert pickle.loads(pickle.dumps(layer)).dim == layer.dim == 2


@pytest.mark.extras
def test_what_the_layer_refuses() -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed: pip install 'ocdl[torch]'")
    layer = ocdl.torch.DynamicsLayer(fitted("polynomial", False))
    with pytest.raises(TypeError, match=r"y0 must be a torch\.Tensor"):
        layer(STARTS, TIMES)
    with pytest.raises(TypeError, match=r"y0 holds torch\.float32, but must hold torch\.float64"):
        layer(torch.tensor(STARTS).float(), TIMES)
    y0 = torch.tensor(STARTS, requires_grad=True)
    (slope,) = torch.autograd.grad(layer(y0, TIMES).square().sum(), y0, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


# ---- JAX ----


@pytest.mark.extras
@pytest.mark.parametrize(("field", "with_inputs"), KINDS)
def test_check_grads_of_the_function(field: str, with_inputs: bool) -> None:
    jax: Any = pytest.importorskip("jax", reason="jax is not installed: pip install 'ocdl[jax]'")
    jax.config.update("jax_enable_x64", True)
    from jax.test_util import check_grads

    simulate = ocdl.jax.dynamics(fitted(field, with_inputs))
    forces = FORCES if with_inputs else None

    def function(y0: Any, controls: Any, forces: Any) -> Any:
        return simulate(y0, TIMES, forces, controls=controls)

    check_grads(function, (STARTS, simulate.controls, forces), order=1, modes=("rev",))


@pytest.mark.extras
def test_compiled_and_mapped_functions_have_the_bits_of_simulate() -> None:
    jax: Any = pytest.importorskip("jax", reason="jax is not installed: pip install 'ocdl[jax]'")
    jax.config.update("jax_enable_x64", True)
    model = fitted("mlp", True)
    simulate = ocdl.jax.dynamics(model)
    expected = model.simulate(STARTS, TIMES, inputs=FORCES)
    assert np.array_equal(simulate(STARTS, TIMES, FORCES), expected)
    compiled = jax.jit(lambda y0, forces: simulate(y0, TIMES, forces))
    assert np.array_equal(compiled(STARTS, FORCES), expected)
    mapped = jax.jit(jax.vmap(lambda y0, forces: simulate(y0, TIMES, forces)))
    assert np.array_equal(mapped(STARTS, FORCES), expected)


@pytest.mark.extras
def test_what_the_function_refuses() -> None:
    jax: Any = pytest.importorskip("jax", reason="jax is not installed: pip install 'ocdl[jax]'")
    jax.config.update("jax_enable_x64", True)
    simulate = ocdl.jax.dynamics(fitted("polynomial", False))
    with pytest.raises(TypeError, match="y0 holds float32"):
        simulate(STARTS.astype("float32"), TIMES)
    with pytest.raises(TypeError, match="controls must be a dict of the parts C, got 'D'"):
        simulate(STARTS, TIMES, controls={"D": 1.0})
    with pytest.raises(ValueError, match="C must have shape"):
        simulate(STARTS, TIMES, controls={"C": np.zeros(3)})
    with pytest.raises(NotImplementedError, match="first derivatives only"):
        jax.grad(lambda y0: jax.grad(lambda y0: simulate(y0, TIMES).sum())(y0).sum())(STARTS[0])
