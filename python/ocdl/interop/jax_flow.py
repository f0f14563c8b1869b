"""A flow as a function of JAX: called back from compiled code, and differentiated by the adjoint sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.interop.bridge import Bridge
from ocdl.interop.extras import missing
from ocdl.network import Network

try:
    import jax
except ModuleNotFoundError as error:
    raise missing("ocdl.jax", "JAX", "jax") from error

__all__ = ["flow"]

FlowFunction = Callable[[Mapping[str, Any], Any], Any]


def flow(net: Network, returns: str = "outputs") -> FlowFunction:
    """Return a network as a function of JAX, ``(controls, x) -> array``, for `jit`, `grad` and `vmap`.

    Gradients, by the controls and by x, are those of `Network.pull_back`: exact, by one forward and one adjoint sweep,
    whatever the tableau. They are first derivatives, in reverse mode. The computation is that of ocdl, on the CPU,
    wherever JAX has its arrays.

    Parameters
    ----------
    net : Network
        One of dtype float64 needs ``jax.config.update("jax_enable_x64", True)``.
    returns : {"outputs", "state", "trajectory"}
        What the function returns for x of shape (..., features): the outputs, (..., outputs); the states at time T,
        (..., dim); or those after every layer, (layers + 1, ..., dim).

    Returns
    -------
    function
        Its `controls` are a dict of the parts, as ``net.init().parts()``; a part that is missing has the value of
        ``net.controls()``. The gradient by fixed time steps is 0.

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
    bridge = Bridge(net, returns)
    given = {part.name: getattr(net.controls(), part.name) for part in net.parts}
    differentiable = _differentiable(bridge)

    def function(controls: Mapping[str, Any], x: Any) -> Any:
        if not isinstance(controls, Mapping) or not controls.keys() <= given.keys():
            what = ", ".join(map(repr, controls)) if isinstance(controls, Mapping) else type(controls).__name__
            raise TypeError(f"controls must be a dict of the parts {', '.join(given)}, got {what}")
        arrays = {name: _checked(net, name, values) for name, values in {**given, **controls}.items()}
        for part in net.parts:
            if arrays[part.name].shape != part.shape:
                found = arrays[part.name].shape
                raise ValueError(f"{part.name} must have shape {part.shape}, {part.meaning}, got {found}")
        rows = _checked(net, "x", x)
        bridge.shape(rows.shape)
        return differentiable(rows, *(arrays[part.name] for part in bridge.parts))

    return function


def _checked(net: Network, name: str, values: Any) -> Any:
    """Return an array of JAX, or one that is traced, in the network's number type."""
    try:
        array = jax.numpy.asarray(values)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers, got {validation.shown(values)}") from error
    if array.dtype != net.dtype:
        if net.dtype == np.float64 and not jax.config.jax_enable_x64:
            advice = "call jax.config.update('jax_enable_x64', True), or make the network with dtype='float32'"
        else:
            advice = f"convert it with .astype('{net.dtype}')"
        raise TypeError(f"{name} holds {array.dtype}, but the network takes {net.dtype}: {advice}")
    return array


def _differentiable(bridge: Bridge) -> Any:
    """Return the function of a bridge with its pull-back; the arguments are x and the parts."""
    dtype = bridge.net.dtype

    def forward(x: Any, *parts: Any) -> Any:
        result = jax.ShapeDtypeStruct(bridge.shape(x.shape), dtype)
        return jax.pure_callback(_forward(bridge), result, x, *parts, vmap_method="expand_dims")

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def pull_back(slopes: Any, x: Any, *parts: Any) -> Any:
        results = tuple(jax.ShapeDtypeStruct(array.shape, dtype) for array in (x, *parts))
        return jax.pure_callback(_pull_back(bridge), results, slopes, x, *parts, vmap_method="expand_dims")

    def refuse(*_: Any) -> Any:
        raise NotImplementedError(
            "a flow of ocdl.jax has first derivatives only; products with the Hessian of an objective are "
            "Network.hessian_product"
        )

    pull_back.defvjp(refuse, refuse)
    function = jax.custom_vjp(forward)
    function.defvjp(
        lambda *arrays: (function(*arrays), arrays),  # itself, so that second derivatives come to `refuse`
        lambda arrays, slopes: pull_back(slopes, *arrays),
    )
    return function


def _forward(bridge: Bridge) -> Callable[..., FloatArray]:
    def call(*arrays: Any) -> FloatArray:
        x, *parts = map(np.asarray, arrays)
        axes = _batch_axes(bridge, parts)
        if all(part.shape[:axes] == (1,) * axes for part in parts):  # the same controls for all: more rows, one sweep
            result = bridge.forward([part.reshape(part.shape[axes:]) for part in parts], x)
            return np.moveaxis(result, 0, axes) if bridge.returns == "trajectory" else result
        return _stacked([bridge.forward(parts, x) for x, *parts in _batches(axes, x, *parts)], axes, x, *parts)

    return call


def _pull_back(bridge: Bridge) -> Callable[..., tuple[FloatArray, ...]]:
    def call(*arrays: Any) -> tuple[FloatArray, ...]:
        given = [np.asarray(array) for array in arrays]
        axes = _batch_axes(bridge, given[2:])
        results = []
        for slopes, x, *parts in _batches(axes, *given):
            by_x, by_parts = bridge.pull_back(parts, x, slopes)
            results.append((by_x, *by_parts))
        return tuple(_stacked(list(gradients), axes, *given) for gradients in zip(*results, strict=True))

    return call


# ---- vmap: every array has axes in front, of length 1 where it is the same for all ----


def _batch_axes(bridge: Bridge, parts: list[FloatArray]) -> int:
    """Return how many axes `vmap` has put in front."""
    return parts[0].ndim - len(bridge.parts[0].shape)


def _batches(axes: int, *arrays: FloatArray) -> Iterator[list[FloatArray]]:
    """Yield the arrays of one batch after the other."""
    for index in np.ndindex(_batch_shape(axes, *arrays)):
        yield [array[tuple(min(i, n - 1) for i, n in zip(index, array.shape, strict=False))] for array in arrays]


def _stacked(results: list[FloatArray], axes: int, *arrays: FloatArray) -> FloatArray:
    """Return the results of all batches as one array."""
    shape = _batch_shape(axes, *arrays)
    return np.stack(results).reshape(*shape, *results[0].shape) if axes else results[0]


def _batch_shape(axes: int, *arrays: FloatArray) -> tuple[int, ...]:
    return np.broadcast_shapes(*(array.shape[:axes] for array in arrays))
