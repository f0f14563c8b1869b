"""A flow under what PyTorch does to modules: torch.func, torch.compile, autocast, other precisions, two processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bridged_problems import layer_of, problem
from subprocesses import run_python

import ocdl
from ocdl import Network
from ocdl.interop.bridge import RETURNS

pytestmark = pytest.mark.extras
torch: Any = pytest.importorskip("torch", reason="torch is not installed: pip install 'ocdl[torch]'")
tensor = torch.tensor


def functional(layer: Any) -> Any:
    """Return the layer as a function of its parameters and x, and the values of these parameters."""
    values = {name: value.detach() for name, value in layer.named_parameters()}
    return lambda parameters, x: torch.func.functional_call(layer, parameters, (x,)), values


def same(actual: Any, expected: Any) -> bool:
    """Whether two trees of tensors are equal to the last bit."""
    pairs = zip(*map(torch.utils._pytree.tree_leaves, (actual, expected)), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


# ---- torch.func ----


def test_grad() -> None:
    p = problem()
    function, parameters = functional(layer_of(p))
    by_parameters, by_x = torch.func.grad(lambda u, x: function(u, x).square().sum(), argnums=(0, 1))(
        parameters, tensor(p.X)
    )
    g = p.net.vjp(p.u, p.X, output_cotangents=2 * p.net.predict(p.u, p.X))
    assert np.array_equal(by_x.numpy(), g.X)
    assert all(np.array_equal(by_parameters[name].numpy(), getattr(g, name)) for name in parameters)


def test_grad_by_fixed_steps() -> None:
    p = problem(time_steps="fixed")
    layer, x = layer_of(p), tensor(p.X)

    def loss(h: Any) -> Any:
        return torch.func.functional_call(layer, {"h": h}, (x,)).square().sum()

    h = layer.h.clone().requires_grad_()
    assert torch.equal(torch.func.grad(loss)(layer.h), torch.autograd.grad(loss(h), h)[0])
    assert torch.func.grad(loss)(layer.h).abs().min() > 0


@pytest.mark.parametrize("returns", RETURNS)
def test_vmap(returns: str) -> None:
    """Over samples along any axis, over controls, over both, and one inside the other; each to the last bit."""
    p = problem(samples=12, augment=1)
    layer, x = layer_of(p, returns), tensor(p.X.reshape(3, 4, 2))
    function, parameters = functional(layer)
    stacked = {name: torch.stack([factor * value for factor in (1.0, 0.5, -0.7)]) for name, value in parameters.items()}
    several = [{name: values[i] for name, values in stacked.items()} for i in range(3)]
    vmap = torch.func.vmap
    assert same(vmap(layer)(x), torch.stack([layer(rows) for rows in x]))
    assert same(vmap(layer, in_dims=1)(x), torch.stack([layer(x[:, i]) for i in range(4)]))
    assert same(vmap(vmap(layer))(x), torch.stack([torch.stack([layer(row) for row in rows]) for rows in x]))
    assert same(vmap(function, in_dims=(0, None))(stacked, x), torch.stack([function(u, x) for u in several]))
    both = torch.stack([function(u, rows) for u, rows in zip(several, x, strict=True)])
    assert same(vmap(function)(stacked, x), both)
    nested = vmap(vmap(function, in_dims=(None, 0)), in_dims=(0, None))(stacked, x)
    assert same(nested, torch.stack([torch.stack([function(u, rows) for rows in x]) for u in several]))


def test_vmap_over_samples_is_one_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    p, seen = problem(samples=12), []
    layer = layer_of(p)
    core = p.net._core_network
    counting = type("Core", (), {"predict": lambda _, u, X: seen.append(len(X)) or core.predict(u, X)})()
    object.__setattr__(layer._bridges[torch.float64].with_step_gradient, "core", counting)
    torch.func.vmap(layer)(tensor(p.X.reshape(3, 4, 2)))
    assert [rows for rows in seen if rows > 4] == [12]


@pytest.mark.parametrize("returns", RETURNS)
def test_gradients_of_every_sample(returns: str) -> None:
    p = problem(samples=4, augment=1)
    function, parameters = functional(layer_of(p, returns))
    x = tensor(p.X)
    grad = torch.func.grad(lambda u, row: function(u, row).square().sum(), argnums=(0, 1))
    mapped = torch.func.vmap(grad, in_dims=(None, 0))(parameters, x)
    by_parameters, by_x = zip(*(grad(parameters, row) for row in x), strict=True)
    expected = {name: torch.stack([g[name] for g in by_parameters]) for name in parameters}, torch.stack(by_x)
    assert same(mapped, expected)


@pytest.mark.parametrize("returns", RETURNS)
def test_jacrev(returns: str) -> None:
    """By x, of every sample by its own x, and by the parameters: rows of what backward() has."""
    p = problem(samples=3, augment=1)
    layer, x = layer_of(p, returns), tensor(p.X)
    jacobian = torch.autograd.functional.jacobian(layer, x)
    assert same(torch.func.jacrev(layer)(x), jacobian)
    of_samples = torch.func.vmap(torch.func.jacrev(layer))(x)
    rows = [jacobian[..., i, :, i, :] for i in range(3)]
    assert same(of_samples, torch.stack(rows))
    function, parameters = functional(layer)
    by_parameters = torch.func.jacrev(function)(parameters, x)
    for number, direction in enumerate(torch.eye(layer(x).numel(), dtype=torch.float64)):
        expected = torch.autograd.grad(layer(x), list(layer.parameters()), direction.reshape(layer(x).shape))
        actual = [by_parameters[name].reshape(-1, *parameters[name].shape)[number] for name in parameters]
        assert same(actual, list(expected))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch, about itself
def test_forward_mode_is_refused_with_a_sentence() -> None:
    p = problem()
    layer, x = layer_of(p), tensor(p.X)
    for transform in (lambda: torch.func.jvp(layer, (x,), (x,)), lambda: torch.func.jacfwd(layer)(x)):
        with pytest.raises(NotImplementedError, match=r"reverse mode only, .*\(jvp\) was requested.*Network\.tangent"):
            transform()
    with torch.autograd.forward_ad.dual_level(), pytest.raises(NotImplementedError, match="reverse mode only"):
        layer(torch.autograd.forward_ad.make_dual(x, x))


@pytest.mark.parametrize("by", ["x", "K"])
def test_second_derivatives_are_refused(by: str) -> None:
    """Also where the first ones do not depend on a slope of the loss, which is a sum."""
    p = problem()
    layer, x = layer_of(p), tensor(p.X, requires_grad=True)
    variable = x if by == "x" else layer.K
    for loss in (layer(x).square().sum(), layer(x).sum()):
        (gradient,) = torch.autograd.grad(loss, variable, create_graph=True)
        with pytest.raises(NotImplementedError, match=r"first derivatives only.*Network\.hessian_product"):
            (gradient.square().sum() + layer.K.square().sum()).backward()
    with pytest.raises(NotImplementedError, match="first derivatives only"):
        torch.func.jacrev(torch.func.jacrev(layer))(x.detach())


# ---- autograd ----


def test_x_that_was_changed_in_place_is_refused_and_parameters_may_change() -> None:
    """As in PyTorch; the controls are copied, so that their gradient is that at which the layer was called."""
    p = problem()
    layer, x = layer_of(p), tensor(p.X)
    (expected,) = torch.autograd.grad(layer(x).sum(), layer.K)
    loss = layer(x).sum()
    with torch.no_grad():
        layer.K.mul_(2.0)
    assert torch.equal(torch.autograd.grad(loss, layer.K)[0], expected)
    loss = layer(x).sum()
    x += 1.0
    with pytest.raises(RuntimeError, match=r"x, which an OCDLayer needs .* has been modified by an inplace operation"):
        loss.backward()


def test_inference_mode() -> None:
    p = problem()
    layer = layer_of(p)
    with torch.inference_mode():
        x = tensor(p.X)
        assert np.array_equal(layer(x).numpy(), p.net.predict(p.u, p.X))
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        layer(x).sum()
    with torch.no_grad():
        assert np.array_equal(layer(x).numpy(), p.net.predict(p.u, p.X))


def test_a_graph_is_used_twice() -> None:
    p = problem()
    layer = layer_of(p)
    loss = layer(tensor(p.X)).square().sum()
    first = torch.autograd.grad(loss, layer.K, retain_graph=True)
    assert same(torch.autograd.grad(loss, layer.K), first)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpointing(use_reentrant: bool) -> None:
    from torch.utils.checkpoint import checkpoint

    p = problem()
    model, x = model_of(layer_of(p)), tensor(p.X, requires_grad=True)
    plain = torch.autograd.grad(model(x).sum(), [x, *model.parameters()])
    checkpoint(model, x, use_reentrant=use_reentrant).sum().backward()
    assert same([x.grad, *(parameter.grad for parameter in model.parameters())], list(plain))


def test_a_parametrised_part() -> None:
    """PyTorch computes it from other parameters, which are trained in its place."""

    class Antisymmetric(torch.nn.Module):  # type: ignore[misc]
        def forward(self, free: Any) -> Any:
            return free - free.mT

    p = problem()
    layer, x = layer_of(p), tensor(p.X)
    torch.nn.utils.parametrize.register_parametrization(layer, "K", Antisymmetric(), unsafe=True)
    K = p.u.K - p.u.K.swapaxes(-1, -2)
    u = p.net.controls(**(p.u.parts() | {"K": K}))
    assert np.array_equal(layer(x).detach().numpy(), p.net.predict(u, p.X))
    layer(x).sum().backward()
    g = p.net.vjp(u, p.X, output_cotangents=np.ones((5, 2))).K
    assert np.array_equal(layer.parametrizations.K.original.grad.numpy(), g - g.swapaxes(-1, -2))


@pytest.mark.parametrize("size", [1, 2])
def test_a_lazy_negative_is_negated(size: int) -> None:
    """Also where it has one number and so is contiguous: of x, of a parameter and of what comes back."""
    p = problem(samples=size)
    net = Network(1, 3)
    layer = ocdl.torch.OCDLayer(net, net.init(random_state=0))
    x = tensor(p.X[:, :1])

    def negative(values: Any) -> Any:
        view = torch.complex(values, -values).conj().imag
        assert view.is_neg()
        return view

    assert torch.equal(layer(negative(x)), layer(x))
    replaced = torch.func.functional_call(layer, {"mu": negative(layer.mu.detach())}, (x,))
    assert torch.equal(replaced, layer(x))
    cotangent = torch.full((size, 1), 0.5, dtype=torch.float64)
    actual, expected = (torch.autograd.grad(layer(x), layer.K, c) for c in (negative(cotangent), cotangent))
    assert same(actual, expected)


# ---- torch.compile ----


def model_of(layer: Any) -> Any:
    return torch.nn.Sequential(torch.nn.Linear(2, 2).double(), layer, torch.nn.Tanh())


@pytest.mark.filterwarnings("ignore")  # of PyTorch, about itself, as it compiles
@pytest.mark.parametrize("returns", RETURNS)
def test_a_compiled_model_is_one_graph_in_which_the_layer_is_one_node(returns: str) -> None:
    p = problem(samples=6)
    layer, graphs = layer_of(p, returns), []
    model, x = model_of(layer), tensor(p.X)

    def keep(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph

    torch._dynamo.reset()
    compiled = torch.compile(model, backend=keep, fullgraph=True)
    assert torch.equal(compiled(x), model(x))
    nodes = [str(node.target) for node in graphs[0].graph.nodes]
    assert len(graphs) == 1
    assert nodes.count("ocdl.flow") == 1
    assert torch._dynamo.explain(model)(x).graph_break_count == 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("time_steps", ["fixed", "free"])
@pytest.mark.parametrize("returns", RETURNS)
def test_a_compiled_model_has_the_bits_of_the_model(returns: str, time_steps: str) -> None:
    """Forward and backward, for any number of samples; with a gradient by fixed steps, too, where it is wanted."""
    p = problem(samples=6, time_steps=time_steps, augment=1)
    model, x = model_of(layer_of(p, returns)), tensor(p.X, requires_grad=True)
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    variables = [x, *model.parameters()]
    for rows in (slice(6), slice(3), slice(4)):
        plain, actual = (torch.autograd.grad(f(x[rows]).square().sum(), variables) for f in (model, compiled))
        assert same(actual, plain)
    model[1].h.requires_grad_()
    plain, actual = (torch.autograd.grad(f(x).sum(), model[1].h)[0] for f in (model, compiled))
    assert torch.equal(actual, plain)
    assert plain.abs().min() > 0


@pytest.mark.filterwarnings("ignore")
def test_a_compiled_layer_has_the_nan_and_precision_of_the_layer() -> None:
    p = problem(samples=4)
    layer, x = layer_of(p), tensor(p.X, requires_grad=True)
    with torch.no_grad():
        x[2, 0] = torch.nan
    torch._dynamo.reset()
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    (by_x,) = torch.autograd.grad(compiled(x)[[0, 1, 3]].sum(), x)
    assert by_x.isnan().all(dim=1).tolist() == [False, False, True, False]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert compiled(x.detach().bfloat16()).dtype is torch.float64
    assert torch.compile(layer.float(), backend="aot_eager", fullgraph=True)(x.float()).dtype is torch.float32


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_model_is_compiled_to_machine_code() -> None:
    """By the usual backend, whose own operators round differently."""
    p = problem(samples=6)
    model, x = model_of(layer_of(p)), tensor(p.X)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True)
    plain, actual = (torch.autograd.grad(f(x).square().sum(), list(model.parameters())) for f in (model, compiled))
    for a, b in zip(actual, plain, strict=True):
        assert torch.allclose(a, b, rtol=1e-12, atol=1e-13)


@pytest.mark.filterwarnings("ignore")
def test_vmap_is_compiled() -> None:
    p = problem(samples=12)
    layer, x = layer_of(p), tensor(p.X.reshape(3, 4, 2))
    function, parameters = functional(layer)
    stacked = {name: torch.stack([value, 2 * value]) for name, value in parameters.items()}
    for mapped, given in ((torch.func.vmap(layer), (x,)), (torch.func.vmap(function, (0, None)), (stacked, x))):
        torch._dynamo.reset()
        assert same(torch.compile(mapped, backend="aot_eager", fullgraph=True)(*given), mapped(*given))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("returns", RETURNS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_operators_pass_the_checks_of_pytorch(dtype: str, returns: str) -> None:
    from ocdl.interop import torch_operator

    p = problem(samples=4, dtype=dtype, time_steps="fixed")
    spec = torch_operator.to_spec(layer_of(p, returns)._bridges[getattr(torch, dtype)])
    for with_steps in (False, True):
        x, u = tensor(p.X, requires_grad=True), tensor(p.u.to_vector(), requires_grad=True)
        torch.library.opcheck(torch_operator.flow, (x, u, spec, with_steps))
        cotangent = torch.ones_like(torch.ops.ocdl.flow(x, u, spec, with_steps))
        torch.library.opcheck(
            torch_operator.flow_vjp, (cotangent, x.detach(), u.detach(), spec, with_steps), test_utils="test_faketensor"
        )


def exported(model: Any, x: Any) -> Any:
    return torch.export.export(model, (x,))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("record", [torch.jit.trace, exported])
def test_a_trace_or_an_export_is_refused(record: Any) -> None:
    """It would hold the outputs of one x, and return them for every other."""
    p = problem()
    with pytest.raises(NotImplementedError, match=r"cannot be traced or exported by PyTorch; ocdl\.export_onnx"):
        record(torch.nn.Sequential(layer_of(p)), tensor(p.X))


# ---- precision ----


@pytest.mark.parametrize("own", ["float32", "float64"])
@pytest.mark.parametrize("cast", ["bfloat16", "float16"])
def test_under_autocast_the_layer_keeps_its_precision(own: str, cast: str) -> None:
    p = problem(dtype=own)
    layer = layer_of(p)
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), layer)
    with torch.autocast("cpu", dtype=getattr(torch, cast)):
        inner = model[0](torch.randn(5, 2))
        result = model[1](inner)
        assert inner.dtype is getattr(torch, cast)
        assert result.dtype is getattr(torch, own)
        result.square().sum().backward()
    assert torch.equal(result, layer(inner.to(result.dtype)))
    assert model[0].weight.grad.abs().sum() > 0
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(TypeError, match=r"x holds torch\.int64"):
        layer(torch.zeros(3, 2, dtype=torch.int64))


def test_the_precision_of_the_network_follows_the_parameters() -> None:
    p = problem(tableau="kutta4", augment=1)
    layer, x = layer_of(p), tensor(p.X)
    assert layer.net is p.net
    single = Network(**(p.net._arguments() | {"dtype": "float32"}))
    assert layer.float().net == single
    assert layer(x.float()).dtype is torch.float32
    u = single.from_vector(p.u.to_vector().astype(np.float32))
    assert np.array_equal(layer(x.float()).detach().numpy(), single.predict(u, p.X.astype(np.float32)))
    layer(x.float()).sum().backward()
    assert layer.K.grad.dtype is torch.float32
    assert layer.to_controls().K.dtype == np.float32
    assert layer.from_controls(u).double().net is p.net
    assert layer(x).dtype is torch.float64
    function, parameters = functional(layer)
    doubled = function({name: value.float() for name, value in parameters.items()} | {"h": layer.h.float()}, x.float())
    assert doubled.dtype is torch.float32


def test_a_precision_that_ocdl_does_not_have_is_named() -> None:
    p = problem()
    layer, x = layer_of(p).half(), tensor(p.X)
    for call in (lambda: layer(x), lambda: layer(x.half()), layer.to_controls):
        with pytest.raises(TypeError, match=r"K holds torch\.float16, but must hold torch\.float32 or torch\.float64"):
            call()
    assert "float64" in repr(layer)
    assert layer.double()(x).dtype is torch.float64
    layer.b = torch.nn.Parameter(layer.b.float())
    with pytest.raises(TypeError, match=r"b holds torch\.float32, .*the same in all parameters"):
        layer(x)


# ---- several processes ----

DISTRIBUTED = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np, torch, ocdl, ocdl.torch

def train(rank, folder):
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    torch.manual_seed(0)
    flow = ocdl.torch.OCDLayer(ocdl.Network(2, 4, time_steps="simplex"), returns=RETURNS)
    model = torch.nn.parallel.DistributedDataParallel(flow)
    method = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = torch.randn(20, 2, dtype=torch.float64)
    for _ in range(4):
        method.zero_grad()
        model(rows[10 * rank : 10 * rank + 10]).square().mean().backward()
        method.step()
        flow.project_()
    torch.save(flow.state_dict(), f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()

def main(folder):
    torch.multiprocessing.spawn(train, (folder,), 2)
    first, second = (torch.load(f"{folder}/{rank}.pt") for rank in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    print("fine")
"""


@pytest.mark.parametrize("returns", ["state", "trajectory"])
def test_distributed_data_parallel(returns: str, tmp_path: Path) -> None:
    """Every parameter gets a gradient in every iteration, without which the second one fails."""
    (tmp_path / "training.py").write_text(DISTRIBUTED.replace("RETURNS", repr(returns)))
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import training; training.main({str(tmp_path)!r})"
    assert run_python(code) == "fine"
