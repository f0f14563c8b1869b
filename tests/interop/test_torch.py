"""A flow inside PyTorch: its gradients, its parameters, its place in other people's models and training loops."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from bridged_problems import FIFTY, expected_of, layer_of, numbered, problem
from subprocesses import run_python

import ocdl
from ocdl import Network, _core
from ocdl.interop.bridge import RETURNS, Bridge

pytestmark = pytest.mark.extras
torch: Any = pytest.importorskip("torch", reason="torch is not installed: pip install 'ocdl[torch]'")

STEPS = ("fixed", "free", "simplex")


def tensor(array: np.ndarray, **options: Any) -> Any:
    return torch.tensor(array, **options)


# ---- gradients ----


@pytest.mark.parametrize("number", range(len(FIFTY)))
def test_gradcheck(number: int) -> None:
    """By finite differences, in every parameter and every number of x."""
    p, returns = numbered(number, time_steps=STEPS[number % 3], stage_controls=number % 4 == 2)
    layer = layer_of(p, returns)
    names = [name for name, _ in layer.named_parameters()]

    def function(x: Any, *parameters: Any) -> Any:
        return torch.func.functional_call(layer, dict(zip(names, parameters, strict=True)), (x,))

    assert torch.autograd.gradcheck(function, (tensor(p.X, requires_grad=True), *layer.parameters()))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("returns", RETURNS)
def test_the_flow_has_the_bits_of_the_network(returns: str, dtype: str) -> None:
    p = problem(dtype=dtype, augment=1, tableau="kutta3")
    layer, x = layer_of(p, returns), tensor(p.X, requires_grad=True)
    result = layer(x)
    assert np.array_equal(result.detach().numpy(), expected_of(p, returns))
    slopes = np.random.default_rng(0).normal(size=result.shape).astype(dtype)
    result.backward(tensor(slopes))
    g = p.net.vjp(p.u, p.X, **{"output_cotangents" if returns == "outputs" else "state_cotangents": slopes})
    assert np.array_equal(x.grad.numpy(), g.X)
    for name, parameter in layer.named_parameters():
        assert np.array_equal(parameter.grad.numpy(), getattr(g, name))


def test_any_axes_before_the_features() -> None:
    p = problem(samples=24, augment=1)
    for returns in RETURNS:
        layer = layer_of(p, returns)
        flat = layer(tensor(p.X))
        for shape in [(24,), (4, 6), (2, 3, 4), (24, 1)]:
            x = tensor(p.X.reshape(*shape, 2), requires_grad=True)
            result = layer(x)
            layers = (4,) if returns == "trajectory" else ()
            assert result.shape == (*layers, *shape, flat.shape[-1])
            assert torch.equal(result.reshape(flat.shape), flat)
            result.square().sum().backward()
            assert x.grad.shape == x.shape
        assert torch.equal(layer(tensor(p.X[0])), flat[..., 0, :])
        empty = torch.zeros((0, 2), dtype=torch.float64, requires_grad=True)
        result = layer(empty)
        assert result.shape == (*layers, 0, flat.shape[-1])
        result.sum().backward()
        assert empty.grad.shape == (0, 2)


def test_any_layout() -> None:
    p = problem(samples=6)
    layer = layer_of(p)
    transposed = tensor(np.ascontiguousarray(p.X.T)).T
    assert not transposed.is_contiguous()
    assert torch.equal(layer(transposed), layer(tensor(p.X)))
    layer(transposed).sum().backward()  # whose slopes are one number, repeated
    assert torch.isfinite(layer.K.grad).all()


def test_a_contiguous_tensor_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """The core gets the tensor itself, and where it needs an array one of the same memory."""
    p, seen = problem(), []
    x = tensor(p.X, requires_grad=True)
    forward = _core.tensor_forward
    monkeypatch.setattr(_core, "tensor_forward", lambda *given: seen.append(given[1]) or forward(*given))
    layer_of(p)(x)
    assert seen[0] is x
    layer = layer_of(p, "trajectory")
    states = p.net._core_network.forward
    core = type("Core", (), {"forward": lambda _, vector, X: seen.append(X) or states(vector, X)})()
    object.__setattr__(layer._bridges[torch.float64], "core", core)
    layer(x)
    assert np.shares_memory(seen[1], x.detach().numpy())


@pytest.mark.parametrize("returns", ["outputs", "state"])
def test_without_the_functions_of_dlpack_arrays_do(returns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older versions of PyTorch have no such functions: the bits are the same."""
    p = problem(tableau="kutta4")
    layer, x = layer_of(p, returns), tensor(p.X, requires_grad=True)

    def results() -> Any:
        result = layer(x)
        return result, *torch.autograd.grad(result.square().sum(), (x, *layer.parameters()))

    fast = results()
    for name in ("tensor_forward", "tensor_vjp"):
        monkeypatch.setattr(_core, name, lambda *_: None)
    assert all(torch.equal(a, b) for a, b in zip(fast, results(), strict=True))


# ---- parameters ----


@pytest.mark.parametrize("returns", RETURNS)
@pytest.mark.parametrize("time_steps", STEPS)
def test_a_parameter_for_each_part(time_steps: str, returns: str) -> None:
    """All parts that the result depends on, and no others: states do not depend on the readout."""
    p = problem(time_steps=time_steps, stage_controls=True, tableau="midpoint")
    layer = layer_of(p, returns)
    fixed = {"h"} if time_steps == "fixed" else set()
    parts = [part for part in p.net.parts if returns == "outputs" or part.role != "readout"]
    assert {name for name, _ in layer.named_buffers()} == fixed
    assert [name for name, _ in layer.named_parameters()] == [part.name for part in parts if part.name not in fixed]
    assert layer.state_dict().keys() == {part.name for part in parts}
    layer(tensor(p.X)).sum().backward()
    assert all(parameter.grad is not None for parameter in layer.parameters())
    u = layer.to_controls()
    for part in p.net.parts:
        assert np.array_equal(getattr(u, part.name), getattr(p.u, part.name) if part in parts else np.zeros(part.shape))


def test_controls_with_a_readout_go_into_a_layer_without_one() -> None:
    p, q = problem(0), problem(1)
    layer = layer_of(p, "state").from_controls(q.u)
    assert torch.equal(layer(tensor(p.X)), tensor(p.net.final_state(q.u, p.X)))
    missing, unexpected = layer.load_state_dict(layer_of(p).state_dict(), strict=False)
    assert (missing, unexpected) == ([], ["W", "mu"])
    assert torch.equal(layer(tensor(p.X)), tensor(p.net.final_state(p.u, p.X)))


@pytest.mark.parametrize("number", range(0, len(FIFTY), 3))
def test_fixed_steps_that_require_a_gradient_get_it(number: int) -> None:
    """Not 0: as a tensor that is passed in, as the buffer itself, and beside the gradients of all other parts."""
    p, returns = numbered(number, time_steps="fixed")
    layer, x = layer_of(p, returns), tensor(p.X)

    def function(h: Any) -> Any:
        return torch.func.functional_call(layer, {"h": h}, (x,))

    h = layer.h.clone().requires_grad_()
    assert torch.autograd.gradcheck(function, (h,))
    loss = function(h).square().sum()
    expected = torch.autograd.grad(loss, (h, *layer.parameters()))
    layer.h.requires_grad_()
    layer(x).square().sum().backward()
    assert all(torch.equal(part.grad, e) for part, e in zip((layer.h, *layer.parameters()), expected, strict=True))
    free = type(p.net)(**(p.net._arguments() | {"time_steps": "free"}))
    of_free = ocdl.torch.OCDLayer(free, free.from_vector(p.u.to_vector()), returns)
    assert torch.equal(torch.autograd.grad(of_free(x).square().sum(), of_free.h)[0], expected[0])


def test_a_feed_forward_network_has_no_steps() -> None:
    p = problem(residual=False, time_steps="fixed")
    layer, x = layer_of(p), tensor(p.X, requires_grad=True)
    assert "h" not in dict(layer.named_parameters())
    layer(x).sum().backward()
    assert np.array_equal(layer.to_controls().to_vector(), p.u.to_vector())


def test_controls_go_in_and_come_out() -> None:
    p, q = problem(0), problem(1)
    layer = layer_of(p)
    parameter = layer.K
    assert layer.from_controls(q.u) is layer
    assert layer.K is parameter
    u = layer.to_controls()
    assert np.array_equal(u.to_vector(), q.u.to_vector())
    u.K[...] = 0
    assert np.array_equal(layer.to_controls().to_vector(), q.u.to_vector())
    with torch.no_grad():
        layer.b[1, 0] = torch.inf
    with pytest.raises(ValueError, match=r"^b\[1, 0\] is inf; all of b must be finite"):
        layer.to_controls()
    before = p.u.copy()
    with torch.no_grad():
        ocdl.torch.OCDLayer(p.net, p.u).K.zero_()
    assert np.array_equal(p.u.to_vector(), before.to_vector())


def test_copies() -> None:
    p = problem(tableau="kutta4")
    layer, x = layer_of(p, "state"), tensor(p.X)
    other = ocdl.torch.OCDLayer(p.net, returns="state")
    assert not torch.equal(other(x), layer(x))
    other.load_state_dict(layer.state_dict())
    for same in (other, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(same(x), layer(x))
        assert same.net == p.net
    assert "returns='state'" in repr(layer)


def test_the_seed_of_torch_fixes_the_start() -> None:
    net = Network(2, 3)

    def start(seed: int) -> Any:
        torch.manual_seed(seed)
        return ocdl.torch.OCDLayer(net).to_controls().to_vector()

    assert np.array_equal(start(1), start(1))
    assert not np.array_equal(start(1), start(2))


def test_steps_are_projected_for_networks_on_the_simplex() -> None:
    for time_steps in STEPS:
        p = problem(time_steps=time_steps, horizon=2.0)
        layer = layer_of(p)
        with torch.no_grad():
            layer.h += torch.tensor([1.0, -3.0, 0.5])
        moved = layer.h.detach().numpy().copy()
        assert layer.project_() is layer
        expected = ocdl.project_simplex(moved, 2.0) if time_steps == "simplex" else moved
        assert np.array_equal(layer.h.detach().numpy(), expected)


# ---- training ----


@pytest.mark.parametrize("time_steps", STEPS)
@pytest.mark.parametrize("outputs", [1, 3])
def test_descent_in_torch_is_descent_in_ocdl(outputs: int, time_steps: str) -> None:
    """A hundred steps with the same size, to 1e-10."""
    p = problem(samples=40, n_outputs=outputs, time_steps=time_steps, tableau="kutta4")
    layer, x, y = layer_of(p), tensor(p.X), tensor(p.y)
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.5)
    for _ in range(100):
        optimiser.zero_grad()
        z = layer(x)
        if outputs == 1:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(z[:, 0], y.double())
        else:
            loss = torch.nn.functional.cross_entropy(z, y)
        loss.backward()
        optimiser.step()
        layer.project_()
    result = ocdl.train(
        p.net,
        p.u,
        p.X,
        p.y,
        objective=ocdl.Objective("cross_entropy"),
        optimiser=ocdl.GradientDescent(0.5),
        max_iter=100,
        tol=0.0,
    )
    assert result.n_iter == 100
    assert (result.controls - p.u).norm() > 0.1
    assert np.abs(layer.to_controls().to_vector() - result.controls.to_vector()).max() <= 1e-10


@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_block_of_a_sequence_learns_from_a_loader(place: str, dtype: str) -> None:
    torch.manual_seed(0)
    X, y = ocdl.datasets.make_donut2d(300, noise=0.02, random_state=0)  # which can be separated
    number = getattr(torch, dtype)
    data = torch.utils.data.TensorDataset(tensor(X, dtype=number), tensor(y))
    loader = torch.utils.data.DataLoader(data, batch_size=50, shuffle=True)
    layers = {
        "first": lambda flow: [flow(2, "state"), torch.nn.Linear(4, 2)],
        "middle": lambda flow: [torch.nn.Linear(2, 3), flow(3, "state"), torch.nn.Linear(5, 2)],
        "last": lambda flow: [torch.nn.Linear(2, 3), torch.nn.Tanh(), flow(3, "outputs")],
    }

    def flow(features: int, returns: str) -> Any:
        net = Network(features, 6, n_outputs=2, time_steps="simplex", horizon=5.0, augment=2, dtype=dtype)
        return ocdl.torch.OCDLayer(net, returns=returns)

    model = torch.nn.Sequential(*layers[place](flow)).to(number)
    (inner,) = (block for block in model if isinstance(block, ocdl.torch.OCDLayer))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    means = []
    for _ in range(40):
        losses = []
        for rows, labels in loader:
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(rows), labels)
            loss.backward()
            optimiser.step()
            inner.project_()
            losses.append(loss.item())
        means.append(np.mean(losses))
    assert means[-1] < 0.3 * means[0]
    assert inner.h.min() >= 0
    assert float(inner.h.detach().sum()) == pytest.approx(5.0, abs=1e-5)
    scored = (model(tensor(X, dtype=number)).argmax(dim=1).numpy() == y).mean()
    assert scored > 0.95


# ---- wrong use ----


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (
            lambda: torch.zeros(3, 2),
            TypeError,
            r"x holds torch.float32, but must hold torch.float64, as the parameters of the layer do: convert it with",
        ),
        (lambda: torch.zeros(3, 2, dtype=torch.int64), TypeError, r"x holds torch.int64.*convert it with \.to"),
        (lambda: torch.zeros(3, 2, dtype=torch.bfloat16), TypeError, "x holds torch.bfloat16"),
        (lambda: torch.zeros(3, 2, dtype=torch.complex128), TypeError, "x holds torch.complex128"),
        (lambda: torch.zeros(3, 2, dtype=torch.float64, device="meta"), ValueError, "'meta', but ocdl computes on the"),
        (lambda: torch.zeros(3, 4, dtype=torch.float64), ValueError, r"shape \(..., 2\), .* got \(3, 4\)"),
        (lambda: torch.zeros((), dtype=torch.float64), ValueError, r"shape \(..., 2\), .* got \(\)"),
        (lambda: np.zeros((3, 2)), TypeError, "x must be a torch.Tensor, got ndarray"),
        (lambda: torch.zeros(3, 2, dtype=torch.float64).to_sparse(), TypeError, "x must be a dense tensor"),
    ],
)
def test_errors_name_unfitting_arguments(x: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        layer_of(problem())(x())


@pytest.mark.parametrize("shape", [(1,), (3, 4), (2, 3, 2)])
def test_a_parameter_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    """One number would be taken for all of them, and as many in another order for those that were meant."""
    layer = ocdl.torch.OCDLayer(Network(2, 3))
    other = {"K": torch.zeros(shape, dtype=torch.float64)}
    message = r"K must have shape \(3, 2, 2\), .*, got \("
    with pytest.raises(ValueError, match=message):
        torch.func.functional_call(layer, other, (torch.zeros(5, 2, dtype=torch.float64),))
    layer.K = torch.nn.Parameter(other["K"])
    with pytest.raises(ValueError, match=message):
        layer.to_controls()


class OnCuda(torch.Tensor):  # type: ignore[misc]
    """A tensor that says that it is on a graphics card, for machines without one."""

    device = torch.device("cuda", 0)
    is_cpu = False


def test_a_tensor_on_a_graphics_card_is_refused() -> None:
    x = torch.zeros(2, 3, dtype=torch.float64).T.as_subclass(OnCuda)  # whose memory the core does not view
    with pytest.raises(ValueError, match=r"x is on the device 'cuda:0', but ocdl computes on the CPU.*x\.cpu\(\)"):
        layer_of(problem())(x)
    if torch.cuda.is_available():
        with pytest.raises(ValueError, match="'cuda:0'"):
            layer_of(problem())(x.cuda())


def test_a_layer_on_another_device_is_refused() -> None:
    p = problem()
    with pytest.raises(ValueError, match="K is on the device 'meta'"):
        layer_of(p).to("meta")(tensor(p.X))


def test_wrong_arguments_of_a_layer() -> None:
    p = problem()
    with pytest.raises(TypeError, match="net must be a Network, got str"):
        ocdl.torch.OCDLayer("resnet")
    with pytest.raises(ValueError, match="returns must be one of 'outputs', 'state', 'trajectory', got 'states'"):
        ocdl.torch.OCDLayer(p.net, returns="states")
    with pytest.raises(ValueError, match="on_nonfinite must be one of 'nan', 'raise', got 'ignore'"):
        ocdl.torch.OCDLayer(p.net, on_nonfinite="ignore")
    with pytest.raises(ValueError, match="controls does not fit the network"):
        ocdl.torch.OCDLayer(p.net, Network(3, 3).init())
    with pytest.raises(TypeError, match="controls must be Controls"):
        layer_of(p).from_controls(p.u.to_vector())


# ---- bits and threads ----


def test_both_libraries_keep_their_threads_and_results_their_bits() -> None:
    code = """
import numpy as np, torch, ocdl, ocdl.torch
from threadpoolctl import threadpool_info
def settings():
    pools = {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}
    return pools, torch.get_num_threads(), torch.get_num_interop_threads(), ocdl.get_num_threads()
torch.ones(300, 300) @ torch.ones(300, 300)
layer = ocdl.torch.OCDLayer(ocdl.Network(3, 20, tableau="kutta4"))
x = torch.randn(3000, 3, dtype=torch.float64, requires_grad=True)
def bits():
    x.grad = layer.K.grad = None
    layer(x).square().sum().backward()
    return x.grad.numpy().tobytes() + layer.K.grad.numpy().tobytes()
before, results = settings(), set()
for threads in (1, 2, 3):
    ocdl.set_num_threads(threads)
    results |= {bits() for _ in range(3)}
ocdl.set_num_threads(before[-1])
assert settings() == before, (before, settings())
print(len(results))
"""
    assert run_python(code) == "1"


def test_the_bridge_itself_is_of_any_network() -> None:
    """What a state does not depend on is no argument, whatever the parts are called."""
    net = Network(2, 3)
    assert {part.role for part in Bridge(net, "outputs").parts} == {"field", "steps", "readout"}
    assert {part.role for part in Bridge(net, "state").parts} == {"field", "steps"}
