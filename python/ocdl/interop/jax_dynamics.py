"""A learned system as a JAX function: a callback in compiled code, with the adjoint sweep as its derivative."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.interop.dynamics_bridge import DynamicsBridge

if TYPE_CHECKING:
    from ocdl.dynamics import Dynamics

__all__ = ["dynamics"]


def dynamics(model: Dynamics) -> DynamicsFunction:
    """Return a fitted `ocdl.Dynamics` as a function of JAX, ``(y0, times) -> states``, for `jit`, `grad` and `vmap`.

    Gradients, by the initial states, the inputs and the numbers of the field, are those of the discrete flow: exact, by
    one forward and one adjoint sweep. They are first derivatives, in reverse mode. The computation is that of ocdl, on
    the CPU, in double precision: it needs ``jax.config.update("jax_enable_x64", True)``.

    Parameters
    ----------
    model : Dynamics
        Fitted, a single model and no ensemble.

    Returns
    -------
    function
        Called as ``function(y0, times, inputs=None, controls=None)`` with y0 of shape (..., components) and inputs
        (..., times, inputs), which are linear between the times; it returns (..., times, components). The times are
        constants, not traced. `controls` is a dict of the parts of the field without units, as the attribute
        ``function.controls`` has them; parts that are left out are those of the model.

    Raises
    ------
    TypeError, ValueError
        If the model is no fitted Dynamics, or an ensemble; the function raises them for arguments that do not fit.

    Examples
    --------
    >>> import jax, numpy as np, ocdl, ocdl.jax
    >>> jax.config.update("jax_enable_x64", True)
    >>> t = np.linspace(0, 3, 40)
    >>> model = ocdl.Dynamics(field="polynomial", degree=1, random_state=0).fit(np.exp(-t)[:, None], t)
    >>> simulate = ocdl.jax.dynamics(model)
    >>> last = jax.jit(lambda y0: simulate(y0, [0.0, 1.0])[-1, 0])
    >>> slope = jax.grad(last)(jax.numpy.ones(1))
    >>> bool(abs(slope[0] - np.exp(-1)) < 1e-3)
    True
    """
    return DynamicsFunction(DynamicsBridge.from_model(model))


class DynamicsFunction:
    """The function that `dynamics` returns."""

    def __init__(self, bridge: DynamicsBridge) -> None:
        self._bridge = bridge
        self.controls = {
            name: bridge.learned.theta[where].reshape(shape).copy() for name, (where, shape) in bridge.parts.items()
        }

    def __call__(self, y0: Any, times: ArrayLike, inputs: Any = None, controls: Mapping[str, Any] | None = None) -> Any:
        bridge = self._bridge
        start = _validate_array("y0", y0)
        known = None if inputs is None else _validate_array("inputs", inputs)
        clock = bridge.check(start.shape, times, None if known is None else known.shape)
        parts = [_validate_array(name, values) for name, values in self._resolve(controls).items()]
        vector = jax.numpy.concatenate([part.reshape(-1) for part in parts])
        flat = start.reshape(-1, bridge.dim)
        given = jax.numpy.zeros((len(flat), len(clock), 0)) if known is None else known
        given = given.reshape(len(flat), len(clock), bridge.n_inputs)
        states = _make_differentiable(bridge, clock)(vector, flat, given)
        return states.reshape(*start.shape[:-1], len(clock), bridge.dim)

    def __repr__(self) -> str:
        return f"dynamics({self._bridge.dim} components, field={self._bridge.learned.system.field!r})"

    def _resolve(self, controls: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return all parts of the field."""
        given = {} if controls is None else controls
        if not isinstance(given, Mapping) or not given.keys() <= self.controls.keys():
            what = ", ".join(map(repr, given)) if isinstance(given, Mapping) else type(given).__name__
            raise TypeError(f"controls must be a dict of the parts {', '.join(self.controls)}, got {what}")
        for name, values in given.items():
            if np.shape(values) != self.controls[name].shape:
                raise ValueError(f"{name} must have shape {self.controls[name].shape}, got {np.shape(values)}")
        return {**self.controls, **given}


def _validate_array(name: str, values: Any) -> Any:
    """Return a JAX array of float64, concrete or traced."""
    if not jax.config.jax_enable_x64:
        raise TypeError("ocdl.jax.dynamics computes in float64: call jax.config.update('jax_enable_x64', True)")
    try:
        array = jax.numpy.asarray(values)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers, got {validation.format_with_type(values)}") from error
    if array.dtype != np.float64:
        raise TypeError(f"{name} holds {array.dtype}, but must hold float64: convert it with .astype('float64')")
    return array


def _make_differentiable(bridge: DynamicsBridge, times: FloatArray) -> Any:
    """Return the function of (vector, y0, inputs) with its derivative."""

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def function(vector: Any, y0: Any, inputs: Any) -> Any:
        shape = jax.ShapeDtypeStruct((len(y0), len(times), bridge.dim), np.float64)
        return _call(partial(_forward, bridge, times), shape, vector, y0, inputs)

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def vjp(cotangent: Any, *arrays: Any) -> Any:
        shapes = tuple(jax.ShapeDtypeStruct(array.shape, np.float64) for array in arrays)
        return _call(partial(_vjp, bridge, times), shapes, cotangent, *arrays)

    def refuse(*_: Any) -> Any:
        raise NotImplementedError("ocdl.jax.dynamics has first derivatives only")

    vjp.defvjp(refuse, refuse)
    function.defvjp(
        lambda *arrays: (function(*arrays), arrays),  # calls itself, so that second derivatives reach `refuse`
        lambda arrays, cotangent: vjp(cotangent, *arrays),
    )
    return function


def _call(function: Any, shapes: Any, *arrays: Any) -> Any:
    return jax.pure_callback(function, shapes, *arrays, vmap_method="sequential")


def _forward(bridge: DynamicsBridge, times: FloatArray, *arrays: Any) -> FloatArray:
    vector, y0, inputs = map(np.asarray, arrays)
    return bridge.forward(vector, y0, times, inputs if bridge.n_inputs else None)


def _vjp(bridge: DynamicsBridge, times: FloatArray, *arrays: Any) -> tuple[FloatArray, ...]:
    cotangent, vector, y0, inputs = map(np.asarray, arrays)
    known = inputs if bridge.n_inputs else None
    by_y0, by_vector, by_inputs = bridge.vjp(vector, y0, times, known, cotangent)
    return by_vector, by_y0, np.zeros(inputs.shape) if by_inputs is None else by_inputs
