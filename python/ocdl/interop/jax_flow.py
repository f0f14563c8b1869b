"""A flow as a JAX function: a callback in compiled code, with the adjoint sweep as its derivative."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np

from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.interop.bridge import Bridge
from ocdl.network import Network

try:
    from jax.experimental.buffer_callback import buffer_callback
except ImportError:  # in older versions
    buffer_callback = None

__all__ = ["flow"]

HostFunction = Callable[..., tuple[FloatArray, ...]]  # of arrays whose leading axes `vmap` has added


def flow(net: Network, returns: str = "outputs", *, on_nonfinite: str = "nan") -> FlowFunction:
    """Return a network as a function of JAX, ``(controls, x) -> array``, for `jit`, `grad` and `vmap`.

    Gradients, by the controls and by x, are those of `Network.vjp`: exact, by one forward and one adjoint sweep,
    whatever the tableau. They are first derivatives, in reverse mode. The computation is that of ocdl, on the CPU,
    wherever JAX has its arrays.

    Parameters
    ----------
    net : Network
        One of dtype float64 needs ``jax.config.update("jax_enable_x64", True)``.
    returns : {"outputs", "state", "trajectory"}
        What the function returns for x of shape (..., features): the outputs, (..., outputs); the states at time T,
        (..., dim); or those after every layer, (layers + 1, ..., dim).
    on_nonfinite : {"nan", "raise"}
        What the function does if a row of x or its flow is not finite. "nan": the results of
        that row are NaN, as is its gradient; so is the gradient by the controls, which is a sum over all rows.
        "raise": an error names the row.

    Returns
    -------
    function
        Its `controls` are a dict of the parts, as ``net.init().parts()``; a part that is missing has the value of
        ``net.controls()``, and no gradient. Time steps ``h`` that are passed in get theirs, also on a network whose
        steps are fixed. The function can be pickled, and compared: it is equal to others of the same arguments.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of its kind; the function raises them for controls and x that do not fit.

    Examples
    --------
    >>> import jax, ocdl, ocdl.jax
    >>> net = ocdl.Network(2, 10, tableau="kutta4", dtype="float32")
    >>> controls = net.init(random_state=0).parts()
    >>> outputs = ocdl.jax.flow(net)
    >>> loss = lambda controls, x: (outputs(controls, x) ** 2).mean()
    >>> x = jax.numpy.ones((5, 2), "float32")
    >>> jax.jit(jax.grad(loss))(controls, x)["K"].shape
    (10, 2, 2)
    """
    return FlowFunction(Bridge(net, returns, on_nonfinite))


@dataclass(frozen=True, repr=False)
class FlowFunction:
    """The function that `flow` returns."""

    bridge: Bridge

    def __call__(self, controls: Mapping[str, Any], x: Any) -> Any:
        net, defaults = self.bridge.net, self._defaults
        if not isinstance(controls, Mapping) or not controls.keys() <= defaults.keys():
            what = ", ".join(map(repr, controls)) if isinstance(controls, Mapping) else type(controls).__name__
            raise TypeError(f"controls must be a dict of the parts {', '.join(defaults)}, got {what}")
        arrays = {name: _validate_array(net, name, values) for name, values in {**defaults, **controls}.items()}
        for part in net.parts:
            given = arrays[part.name].shape
            if given != part.shape:
                raise ValueError(f"{part.name} must have shape {part.shape}, {part.meaning}, got {given}")
        rows = _validate_array(net, "x", x)
        self.bridge.shape(rows.shape)
        parts = [arrays[part.name] for part in self.bridge.parts]
        has_steps = self.bridge.parts[self.bridge.steps].name in controls
        return (self._with_step_gradient if has_steps else self._without_step_gradient)(rows, *parts)

    def __reduce__(self) -> tuple[partial[FlowFunction], tuple[()]]:
        bridge = self.bridge
        return partial(flow, bridge.net, bridge.returns, on_nonfinite=bridge.on_nonfinite), ()

    def __repr__(self) -> str:
        bridge = self.bridge
        return f"flow({bridge.net!r}, returns={bridge.returns!r}, on_nonfinite={bridge.on_nonfinite!r})"

    @cached_property
    def _defaults(self) -> dict[str, FloatArray]:
        return self.bridge.net.controls().parts()

    @cached_property
    def _without_step_gradient(self) -> Any:
        return _make_differentiable(self.bridge)

    @cached_property
    def _with_step_gradient(self) -> Any:
        return _make_differentiable(self.bridge.with_step_gradient)


def _validate_array(net: Network, name: str, values: Any) -> Any:
    """Return a JAX array, concrete or traced; refuse other number types than the network's."""
    try:
        array = jax.numpy.asarray(values)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers, got {validation.format_with_type(values)}") from error
    if array.dtype != net.dtype:
        if net.dtype == np.float64 and not jax.config.jax_enable_x64:
            advice = "call jax.config.update('jax_enable_x64', True), or make the network with dtype='float32'"
        else:
            advice = f"convert it with .astype('{net.dtype}')"
        raise TypeError(f"{name} holds {array.dtype}, but the network takes {net.dtype}: {advice}")
    return array


def _make_differentiable(bridge: Bridge) -> Any:
    """Return the function of a bridge with its derivative; the arguments are x and the parts of the controls."""
    call_forward, call_vjp = (
        _make_host_call(partial(_call_forward, bridge)),
        _make_host_call(partial(_call_vjp, bridge)),
    )
    dtype = bridge.net.dtype

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def function(x: Any, vector: Any) -> Any:
        (result,) = call_forward((jax.ShapeDtypeStruct(bridge.shape(x.shape), dtype),), vector, x)
        return result

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def vjp(cotangent: Any, x: Any, vector: Any) -> Any:
        results = tuple(jax.ShapeDtypeStruct(array.shape, dtype) for array in (x, vector))
        return call_vjp(results, vector, x, cotangent)

    def refuse(*_: Any) -> Any:
        raise NotImplementedError(
            "a flow of ocdl.jax has first derivatives only; products with the Hessian of an objective are "
            "Network.hessian_product"
        )

    vjp.defvjp(refuse, refuse)
    function.defvjp(
        lambda *arrays: (function(*arrays), arrays),  # calls itself, so that second derivatives reach `refuse`
        lambda arrays, cotangent: vjp(cotangent, *arrays),
    )

    @jax.jit  # type: ignore[untyped-decorator]
    def function_of_parts(x: Any, *parts: Any) -> Any:
        unused = jax.numpy.zeros(bridge.n_unused, dtype)
        return function(x, jax.numpy.concatenate([*(part.reshape(-1) for part in parts), unused]))

    return function_of_parts


def _make_host_call(function: HostFunction) -> Callable[..., Any]:
    """Return a JAX function, (result shapes and types, *arrays) -> results, that calls a host function."""

    def write(_: Any, results: Any, *buffers: Any) -> None:
        for result, values in zip(results, function(*map(np.asarray, buffers)), strict=True):
            np.asarray(result)[...] = values

    def compute(*arrays: Any) -> tuple[FloatArray, ...]:
        return function(*map(np.asarray, arrays))

    def call(results: Any, *arrays: Any) -> Any:
        options = {"vmap_method": "expand_dims"}
        anywhere = partial(jax.pure_callback, compute, results, **options)
        if buffer_callback is None:
            return anywhere(*arrays)
        on_cpu = buffer_callback(write, results, **options)  # copies no argument and takes a tenth of the time
        return jax.lax.platform_dependent(*arrays, cpu=on_cpu, default=anywhere)

    return call


# ---- on the host: `vmap` adds leading axes to every array, of length 1 if it is not batched ----


def _call_forward(bridge: Bridge, vector: FloatArray, x: FloatArray) -> tuple[FloatArray]:
    axes = vector.ndim - 1
    if vector.size == vector.shape[-1]:  # the same controls for all: more rows, one sweep
        result = bridge.forward(vector.reshape(-1), x)
        return (np.moveaxis(result, 0, axes) if bridge.returns == "trajectory" else result,)
    return (_stack([bridge.forward(*one) for one in _batches(axes, vector, x)], axes, vector, x),)


def _call_vjp(bridge: Bridge, *arrays: FloatArray) -> tuple[FloatArray, ...]:
    axes = arrays[0].ndim - 1
    if not axes:
        return bridge.vjp(*arrays)
    results = [bridge.vjp(*one) for one in _batches(axes, *arrays)]
    return tuple(_stack(list(gradients), axes, *arrays) for gradients in zip(*results, strict=True))


def _batches(axes: int, *arrays: FloatArray) -> Iterator[list[FloatArray]]:
    """Yield the arrays of each batch."""
    for index in np.ndindex(_batch_shape(axes, *arrays)):
        yield [array[tuple(min(i, n - 1) for i, n in zip(index, array.shape, strict=False))] for array in arrays]


def _stack(results: list[FloatArray], axes: int, *arrays: FloatArray) -> FloatArray:
    """Return the results of all batches as one array."""
    return np.stack(results).reshape(*_batch_shape(axes, *arrays), *results[0].shape)


def _batch_shape(axes: int, *arrays: FloatArray) -> tuple[int, ...]:
    return np.broadcast_shapes(*(array.shape[:axes] for array in arrays))
