"""A learned system as a module of PyTorch: its parameters are the numbers of its field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from ocdl.base.validation import FloatArray
from ocdl.interop.dynamics_bridge import DynamicsBridge
from ocdl.interop.torch_function import to_array

if TYPE_CHECKING:
    from ocdl.dynamics import Dynamics

__all__ = ["DynamicsLayer"]


class DynamicsLayer(torch.nn.Module):  # type: ignore[misc]
    """A fitted `ocdl.Dynamics` as a layer of a model in PyTorch: initial states in, trajectories out.

    Its parameters are the parts of the field, under their names: ``layer.K``, ``layer.b``, ... for an mlp, ``layer.C``
    for a polynomial. They are those of the system without units, as the model was fitted. Gradients by them, by the
    initial states and by the inputs are those of the discrete flow: exact, by one forward and one adjoint sweep. There
    are no second derivatives. The layer computes on the CPU, in double precision.

    Parameters
    ----------
    model : Dynamics
        Fitted, a single model and no ensemble.

    Attributes
    ----------
    dim : int
        The number of components of a state.

    Raises
    ------
    TypeError, ValueError
        If the model is no fitted Dynamics, or an ensemble.

    Examples
    --------
    Where must a trajectory start to end at (1, 0)?

    >>> import numpy as np, ocdl, ocdl.torch, torch
    >>> t = np.linspace(0, 6, 60)
    >>> X = np.stack([np.sin(t), np.cos(t)], axis=1)
    >>> layer = ocdl.torch.DynamicsLayer(ocdl.Dynamics(field="polynomial", degree=1, random_state=0).fit(X, t))
    >>> y0 = torch.zeros(layer.dim, dtype=torch.float64, requires_grad=True)
    >>> optimiser = torch.optim.LBFGS([y0])
    >>> def distance():
    ...     optimiser.zero_grad()
    ...     loss = (layer(y0, [0.0, 1.0])[-1] - torch.tensor([1.0, 0.0])).square().sum()
    ...     loss.backward()
    ...     return loss
    >>> bool(optimiser.step(distance) > distance()), bool(distance() < 1e-8)
    (True, True)
    """

    def __init__(self, model: Dynamics) -> None:
        super().__init__()
        self._bridge = DynamicsBridge.from_model(model)
        for name, (where, shape) in self._bridge.parts.items():
            values = torch.from_numpy(self._bridge.learned.theta[where].reshape(shape).copy())
            self.register_parameter(name, torch.nn.Parameter(values))

    @property
    def dim(self) -> int:
        """The number of components of a state.

        Examples
        --------
        >>> import numpy as np, ocdl, ocdl.torch
        >>> t = np.linspace(0, 3, 40)
        >>> model = ocdl.Dynamics(field="polynomial", degree=1, random_state=0).fit(np.exp(-t)[:, None], t)
        >>> ocdl.torch.DynamicsLayer(model).dim
        1
        """
        return self._bridge.dim

    def forward(self, y0: torch.Tensor, times: ArrayLike, inputs: torch.Tensor | None = None) -> torch.Tensor:
        """Return the states at times, (..., times, components), from the states y0 at the first of them.

        Parameters
        ----------
        y0 : torch.Tensor of shape (..., components)
            In double precision, on the CPU.
        times : array_like of shape (times,)
            Increasing; there is no gradient by them.
        inputs : torch.Tensor of shape (..., times, inputs), optional
            Those at the times, linear between, for a model that was fitted with inputs.

        Returns
        -------
        torch.Tensor
            A trajectory that leaves the finite range is NaN from there on.

        Raises
        ------
        TypeError, ValueError
            If an argument is not of its kind, or does not fit the model.

        Examples
        --------
        >>> import numpy as np, ocdl, ocdl.torch, torch
        >>> t = np.linspace(0, 3, 40)
        >>> model = ocdl.Dynamics(field="polynomial", degree=1, random_state=0).fit(np.exp(-t)[:, None], t)
        >>> layer = ocdl.torch.DynamicsLayer(model)
        >>> layer(torch.ones(5, 1, dtype=torch.float64), [0.0, 0.5, 1.0]).shape
        torch.Size([5, 3, 1])
        """
        _require_tensor("y0", y0)
        if inputs is not None:
            _require_tensor("inputs", inputs)
        numbers = to_array(times) if isinstance(times, torch.Tensor) else times
        shape = None if inputs is None else tuple(inputs.shape)
        clock = self._bridge.check(tuple(y0.shape), numbers, shape)
        flat = y0.reshape(-1, self.dim)
        given = None if inputs is None else inputs.reshape(len(flat), len(clock), -1)
        vector = torch.cat([getattr(self, name).reshape(-1) for name in self._bridge.parts])
        states = _Simulation.apply(self._bridge, clock, vector, flat, given)
        return states.reshape(*y0.shape[:-1], len(clock), self.dim)

    def extra_repr(self) -> str:
        """Return the text for the repr of the layer.

        Returns
        -------
        str

        Examples
        --------
        >>> import numpy as np, ocdl, ocdl.torch
        >>> t = np.linspace(0, 3, 40)
        >>> model = ocdl.Dynamics(field="polynomial", degree=1, random_state=0).fit(np.exp(-t)[:, None], t)
        >>> ocdl.torch.DynamicsLayer(model)
        DynamicsLayer(1 component, field='polynomial')
        """
        inputs = f", {self._bridge.n_inputs} inputs" if self._bridge.n_inputs else ""
        components = f"{self.dim} component{'' if self.dim == 1 else 's'}"
        return f"{components}{inputs}, field={self._bridge.learned.system.field!r}"


class _Simulation(torch.autograd.Function):  # type: ignore[misc]
    """The function of (bridge, times, vector, y0, inputs)."""

    @staticmethod
    def forward(
        ctx: Any,
        bridge: DynamicsBridge,
        times: FloatArray,
        vector: torch.Tensor,
        y0: torch.Tensor,
        inputs: torch.Tensor | None,
    ) -> torch.Tensor:
        ctx.bridge, ctx.times = bridge, times
        ctx.save_for_backward(vector, y0, *([] if inputs is None else [inputs]))
        return torch.from_numpy(bridge.forward(*_to_arrays(vector, y0, times, inputs)))

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, cotangent: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        vector, y0, *rest = ctx.saved_tensors
        arrays = _to_arrays(vector, y0, ctx.times, rest[0] if rest else None)
        by_y0, by_vector, by_inputs = ctx.bridge.vjp(*arrays, to_array(cotangent))
        of_inputs = None if by_inputs is None else torch.from_numpy(np.ascontiguousarray(by_inputs))
        return None, None, torch.from_numpy(by_vector), torch.from_numpy(by_y0), of_inputs


def _to_arrays(
    vector: torch.Tensor, y0: torch.Tensor, times: FloatArray, inputs: torch.Tensor | None
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray | None]:
    return to_array(vector), to_array(y0), times, None if inputs is None else to_array(inputs)


def _require_tensor(name: str, values: object) -> None:
    """Refuse anything but a tensor in double precision on the CPU."""
    if not isinstance(values, torch.Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(values).__name__}")
    if not values.is_cpu:
        raise ValueError(f"{name} is on the device {str(values.device)!r}, but ocdl computes on the CPU: {name}.cpu()")
    if values.dtype is not torch.float64:
        raise TypeError(f"{name} holds {values.dtype}, but must hold torch.float64: convert it with .double()")
