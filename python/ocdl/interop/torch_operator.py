"""A flow as an operator of PyTorch: one node in the graphs of `torch.compile`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch

from ocdl.interop.bridge import Bridge
from ocdl.interop.torch_function import SECOND_DERIVATIVES, map_flow, pack, to_array
from ocdl.network.files import network_from_dict, network_to_dict


def to_spec(bridge: Bridge) -> str:
    """Return a bridge as text. Operators take no objects, because compiled graphs are cached across processes."""
    return json.dumps([network_to_dict(bridge.net), bridge.returns, bridge.on_nonfinite])


@lru_cache(maxsize=64)
def from_spec(spec: str, dtype: torch.dtype, with_steps: bool) -> Bridge:
    """Return the bridge of a spec in this precision, with the gradient by fixed time steps or without."""
    network, returns, on_nonfinite = json.loads(spec)
    bridge = Bridge(network_from_dict(network), returns, on_nonfinite).astype(str(dtype).removeprefix("torch."))
    return bridge.with_step_gradient if with_steps else bridge


def call_operator(spec: str, bridge: Bridge, x: torch.Tensor, parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the result of a bridge as one node of a graph."""
    steps = [values for part, values in zip(bridge.parts, parts, strict=True) if part.role == "steps"]
    with_steps = any(values.requires_grad for values in steps)
    return torch.ops.ocdl.flow(x, pack(bridge, parts), spec, with_steps)


@torch.library.custom_op(  # type: ignore[untyped-decorator]
    "ocdl::flow",
    mutates_args=(),
    device_types="cpu",
    schema="(Tensor x, Tensor controls, str spec, bool with_steps) -> Tensor",
)
def flow(x: torch.Tensor, controls: torch.Tensor, spec: str, with_steps: bool) -> torch.Tensor:
    """Return the result for a vector of controls."""
    bridge = from_spec(spec, controls.dtype, with_steps)
    return torch.from_numpy(bridge.forward(to_array(controls), to_array(x)))


@torch.library.custom_op(  # type: ignore[untyped-decorator]
    "ocdl::flow_vjp",
    mutates_args=(),
    device_types="cpu",
    schema="(Tensor cotangent, Tensor x, Tensor controls, str spec, bool with_steps) -> (Tensor, Tensor)",
)
def flow_vjp(
    cotangent: torch.Tensor, x: torch.Tensor, controls: torch.Tensor, spec: str, with_steps: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients by x and by the vector of controls."""
    bridge = from_spec(spec, controls.dtype, with_steps)
    by_x, by_controls = bridge.vjp(to_array(controls), to_array(x), to_array(cotangent))
    return torch.from_numpy(by_x), torch.from_numpy(by_controls)


@flow.register_fake  # type: ignore[untyped-decorator]
def _(x: torch.Tensor, controls: torch.Tensor, spec: str, with_steps: bool) -> torch.Tensor:
    return x.new_empty(from_spec(spec, controls.dtype, with_steps).shape(x.shape))


@flow_vjp.register_fake  # type: ignore[untyped-decorator]
def _(
    cotangent: torch.Tensor, x: torch.Tensor, controls: torch.Tensor, spec: str, with_steps: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    return x.new_empty(x.shape), controls.new_empty(controls.shape)


@flow.register_vmap  # type: ignore[untyped-decorator]
def _(
    info: Any, in_dims: tuple[int | None, ...], x: torch.Tensor, controls: torch.Tensor, spec: str, with_steps: bool
) -> tuple[torch.Tensor, int]:
    def function(x: torch.Tensor, controls: torch.Tensor) -> torch.Tensor:
        return torch.ops.ocdl.flow(x, controls, spec, with_steps)

    bridge = from_spec(spec, controls.dtype, with_steps)
    return map_flow(function, bridge, info.batch_size, in_dims[:2], x, controls)


def _save(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    x, controls, *ctx.options = inputs
    ctx.save_for_backward(x, controls)


def _backward(ctx: Any, cotangent: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    return *torch.ops.ocdl.flow_vjp(cotangent, *ctx.saved_tensors, *ctx.options), None, None


def _refuse_second_derivatives(ctx: Any, *cotangents: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    raise NotImplementedError(SECOND_DERIVATIVES)


flow.register_autograd(_backward, setup_context=_save)
flow_vjp.register_autograd(_refuse_second_derivatives)
