"""A flow as autograd functions of PyTorch: a fast one for eager mode, and one for `torch.func`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from ocdl import _core
from ocdl.base.validation import FloatArray
from ocdl.interop.bridge import Bridge

# A private function of PyTorch. Without it the function for transforms is used, which is slower but correct.
_are_transforms_active = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)
Check = Callable[[Sequence[torch.Tensor], torch.Tensor], None]
SECOND_DERIVATIVES = (
    "an OCDLayer has first derivatives only, and second ones (create_graph=True) were requested; "
    "Network.hessian_product has products with the Hessian of an objective"
)


def apply_flow(bridge: Bridge, x: torch.Tensor, parts: Sequence[torch.Tensor], check: Check) -> torch.Tensor:
    """Return the result of a bridge, differentiable by x and by the parts of the controls.

    `check` raises an error for arguments that do not fit; it is called only if the fast path fails.
    """
    if _are_transforms_active():
        check(parts, x)
        return _Flow.apply(bridge.with_step_gradient, x, pack(bridge, parts))
    return _apply_eagerly(bridge, check, x, *parts)


def pack(bridge: Bridge, parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the vector of controls with these parts, differentiable by them."""
    unused = parts[0].new_zeros(bridge.n_unused)
    return torch.cat([*(part.reshape(-1) for part in parts), unused])


def to_array(values: torch.Tensor) -> FloatArray:
    """Return a tensor as an array: the same memory, unless it is a lazy view of its negative."""
    array: FloatArray = values.numpy(force=True)
    return array


class _ReverseModeOnly(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> torch.Tensor:
        raise NotImplementedError(
            "an OCDLayer has derivatives in reverse mode only, and forward mode (jvp) was requested; of a network, "
            "Network.tangent has the derivative along a direction"
        )


class _EagerFlow(_ReverseModeOnly):
    """The function of (bridge, check, x, *parts), in as few calls as possible: small flows take microseconds."""

    @staticmethod
    def forward(ctx: Any, bridge: Bridge, check: Check, x: torch.Tensor, *parts: torch.Tensor) -> torch.Tensor:
        is_trajectory = bridge.returns == "trajectory"
        computed = None if is_trajectory else _core.tensor_forward(bridge.core, x, parts, bridge.of_outputs)
        if computed is None:
            check(parts, x)
            vector = bridge.pack([to_array(part) for part in parts])
            computed = vector, torch.from_numpy(bridge.forward(vector, to_array(x)))
        vector, result = computed
        if x.is_inference():  # has no version; PyTorch refuses to save it if a gradient is needed
            ctx.save_for_backward(x)
        else:  # faster than `save_for_backward`; `backward` checks the version
            ctx.saved = bridge, x, x._version, parts, vector
        return result

    @staticmethod
    def backward(ctx: Any, cotangent: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        bridge, x, version, parts, vector = ctx.saved
        if x._version != version:
            raise RuntimeError(
                "x, which an OCDLayer needs for its gradient, has been modified by an inplace operation: it is at "
                f"version {x._version}, and was at version {version} when the layer was called"
            )
        needs = ctx.needs_input_grad[2:]
        if needs[1 + bridge.steps]:
            bridge = bridge.with_step_gradient
        if torch.is_grad_enabled():
            by_x, by_vector = _FlowVjp.apply(bridge, True, cotangent, x, pack(bridge, parts))
        else:
            computed = _core.tensor_vjp(bridge.core, vector, x, cotangent, bridge.of_outputs, needs)
            if computed is not None:
                return None, None, *computed
            by_x, by_vector = map(torch.from_numpy, bridge.vjp(vector, to_array(x), to_array(cotangent)))
        return None, None, by_x, *(by_vector[part].reshape(shape) for part, shape in bridge.slices)


# `Function.apply` also prepares transforms, which takes microseconds.
_apply_eagerly = super(torch.autograd.Function, _EagerFlow).apply


class _Flow(_ReverseModeOnly):
    """The function of (bridge, x, vector of controls)."""

    @staticmethod
    def forward(bridge: Bridge, x: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(bridge.forward(to_array(vector), to_array(x)))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        ctx.bridge, *tensors = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, cotangent: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        needs_vector = ctx.needs_input_grad[2]
        by_x, by_vector = _FlowVjp.apply(ctx.bridge, needs_vector, cotangent, *ctx.saved_tensors)
        return None, by_x, by_vector if needs_vector else None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], bridge: Bridge, *tensors: torch.Tensor
    ) -> tuple[torch.Tensor, int]:
        return map_flow(partial(_Flow.apply, bridge), bridge, info.batch_size, in_dims[1:], *tensors)


class _FlowVjp(_ReverseModeOnly):
    """The function of (bridge, needs_vector, cotangent, x, vector) with the gradients by x and by the vector.

    Where the latter is not needed it is empty: then samples do not depend on each other, and a batch is one sweep.
    """

    @staticmethod
    def forward(
        bridge: Bridge, needs_vector: bool, cotangent: torch.Tensor, x: torch.Tensor, vector: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        by_x, by_vector = bridge.vjp(to_array(vector), to_array(x), to_array(cotangent))
        return torch.from_numpy(by_x), torch.from_numpy(by_vector if needs_vector else by_vector[:0])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> tuple[torch.Tensor, ...]:
        raise NotImplementedError(SECOND_DERIVATIVES)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], bridge: Bridge, needs_vector: bool, *tensors: torch.Tensor
    ) -> tuple[tuple[torch.Tensor, ...], tuple[int | None, ...]]:
        dims = in_dims[2:]
        if not needs_vector and dims[-1] is None:  # more rows, one sweep
            cotangent, x = map(partial(_move_batch_first, info.batch_size), tensors[:-1], dims[:-1])
            if bridge.returns == "trajectory":
                cotangent = cotangent.movedim(0, 1)
            return _FlowVjp.apply(bridge, needs_vector, cotangent, x, tensors[-1]), (0, None)
        batch = _unbind(info.batch_size, dims, *tensors)
        gradients = [_FlowVjp.apply(bridge, needs_vector, *one) for one in batch]
        return tuple(torch.stack(stack) for stack in zip(*gradients, strict=True)), (0, 0)


def _move_batch_first(size: int, tensor: torch.Tensor, dim: int | None) -> torch.Tensor:
    """Return a tensor with its batch dimension in front."""
    return tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


def map_flow(
    function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    bridge: Bridge,
    size: int,
    dims: tuple[int | None, ...],
    x: torch.Tensor,
    vector: torch.Tensor,
) -> tuple[torch.Tensor, int]:
    """Return a function of x and the vector of controls for a batch, and the result's batch dimension."""
    of_x, of_vector = dims
    if of_x is not None and of_vector is None:  # more rows, one sweep
        return function(x.movedim(of_x, 0), vector), int(bridge.returns == "trajectory")
    return torch.stack([function(*one) for one in _unbind(size, dims, x, vector)]), 0


def _unbind(size: int, dims: tuple[int | None, ...], *tensors: torch.Tensor) -> list[list[torch.Tensor]]:
    """Return the tensors of each element of a batch; those without a batch dimension are the same for all."""
    return [
        [tensor if dim is None else tensor.select(dim, i) for tensor, dim in zip(tensors, dims, strict=True)]
        for i in range(size)
    ]
