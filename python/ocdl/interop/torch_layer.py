"""A flow as a module of PyTorch: its parameters are the controls, its backward pass is the adjoint sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch

from ocdl.base import validation
from ocdl.interop import torch_operator
from ocdl.interop.bridge import Bridge
from ocdl.interop.torch_function import apply_flow, to_array
from ocdl.model.controls import Controls
from ocdl.model.projection import project_simplex
from ocdl.network import Network

__all__ = ["OCDLayer"]

_is_exporting = getattr(torch.compiler, "is_exporting", bool)  # PyTorch before 2.7 does not have it


class OCDLayer(torch.nn.Module):  # type: ignore[misc]
    """A network as a layer of a model in PyTorch.

    Its parameters are the parts of the controls, under their names: ``layer.K``, ``layer.b``, ... The time steps are a
    buffer where they are fixed; a tensor ``h`` that requires a gradient gets one all the same. A layer that returns
    states has no readout, W and mu. Gradients, also by x, are those of `Network.vjp`: exact, by one forward and
    one adjoint sweep, whatever the tableau. There are no second derivatives.

    A layer computes on the CPU, with as many threads as `ocdl.set_num_threads` allows, in the precision of its
    parameters, which ``.double()`` and ``.float()`` change; under autocast, x is converted to it. In the graphs of
    ``torch.compile`` it is one operator; ``torch.func`` has ``grad``, ``vjp``, ``vmap`` and ``jacrev`` of it. A trace
    or an export of the model is refused, as PyTorch's own operators do not describe what a layer computes.

    Parameters
    ----------
    net : Network
    controls : Controls, optional
        Where to start, copied. None: ``net.init(scheme="scaled")``, with a seed from PyTorch's own generator, so that
        ``torch.manual_seed`` fixes it.
    returns : {"outputs", "state", "trajectory"}
        What `forward` returns for x of shape (..., features): the outputs, (..., outputs); the states at time T,
        (..., dim); or those after every layer, (layers + 1, ..., dim).
    on_nonfinite : {"nan", "raise"}
        What `forward` does if a row of x or its flow is not finite. "nan": the results of that
        row are NaN, as is its gradient; so is the gradient by the controls, which is a sum over all rows. "raise": an
        error names the row.

    Attributes
    ----------
    net : Network
    returns : str
    on_nonfinite : str

    Raises
    ------
    TypeError, ValueError
        If an argument is not of its kind, or the controls do not fit the network.

    Examples
    --------
    The middle of a model:

    >>> import ocdl, ocdl.torch, torch
    >>> net = ocdl.Network(8, 10, n_outputs=8, tableau="kutta4", dtype="float32")
    >>> flow = ocdl.torch.OCDLayer(net, returns="state")
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 8), flow, torch.nn.Linear(8, 3))
    >>> model(torch.zeros(5, 2)).sum().backward()
    >>> flow.K.grad.shape
    torch.Size([10, 8, 8])
    >>> flow.net is net, flow.returns, flow.on_nonfinite
    (True, 'state', 'nan')
    """

    def __init__(
        self,
        net: Network,
        controls: Controls | None = None,
        returns: str = "outputs",
        *,
        on_nonfinite: str = "nan",
    ) -> None:
        super().__init__()
        bridge = Bridge(net, returns, on_nonfinite)
        self._spec = torch_operator.to_spec(bridge)
        self._bridges = {getattr(torch, name): bridge.astype(name) for name in ("float32", "float64")}
        self._dtype = getattr(torch, str(net.dtype))
        self._names = tuple(part.name for part in bridge.parts)
        if controls is None:
            controls = net.init(random_state=int(torch.randint(2**31, ())), scheme="scaled")
        net._vector(controls, "controls")
        for part in bridge.parts:
            values = torch.from_numpy(getattr(controls, part.name).copy())
            if part.role == "steps" and net.time_steps == "fixed":
                self.register_buffer(part.name, values)
            else:
                self.register_parameter(part.name, torch.nn.Parameter(values))

    @property
    def net(self) -> Network:
        """The network that computes, in the precision of the parameters.

        Examples
        --------
        >>> import ocdl, ocdl.torch, torch
        >>> layer = ocdl.torch.OCDLayer(ocdl.Network(2, 5, time_steps="simplex"))
        >>> layer.net.n_layers
        5
        """
        return self._bridges[self._precision(getattr(self, self._names[0]))].net

    @property
    def returns(self) -> str:
        """What `forward` returns: "outputs", "state" or "trajectory".

        Examples
        --------
        >>> import ocdl, ocdl.torch, torch
        >>> layer = ocdl.torch.OCDLayer(ocdl.Network(2, 5, time_steps="simplex"))
        >>> layer.returns
        'outputs'
        """
        return self._bridges[self._dtype].returns

    @property
    def on_nonfinite(self) -> str:
        """What `forward` does with rows that are not finite: "nan" or "raise".

        Examples
        --------
        >>> import ocdl, ocdl.torch, torch
        >>> layer = ocdl.torch.OCDLayer(ocdl.Network(2, 5, time_steps="simplex"))
        >>> layer(torch.tensor([[torch.nan, 0.0]], dtype=torch.float64)).isnan().all().item(), layer.on_nonfinite
        (True, 'nan')
        """
        return self._bridges[self._dtype].on_nonfinite

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return outputs, final states or trajectory of x, (..., features).

        Parameters
        ----------
        x : torch.Tensor of shape (..., features)
            In the precision of the parameters, on the CPU; under autocast in any.

        Returns
        -------
        torch.Tensor
            Of shape (..., outputs), (..., dim) or (layers + 1, ..., dim).

        Raises
        ------
        TypeError, ValueError
            If `x` is no such tensor, or with ``on_nonfinite="raise"`` not finite.
        FloatingPointError
            If with ``on_nonfinite="raise"`` the flow leaves the finite range.
        NotImplementedError
            If the layer is traced or exported.

        Examples
        --------
        >>> import ocdl, ocdl.torch, torch
        >>> layer = ocdl.torch.OCDLayer(ocdl.Network(2, 5, time_steps="simplex"))
        >>> layer(torch.zeros(7, 3, 2, dtype=torch.float64)).shape
        torch.Size([7, 3, 1])
        """
        if torch.jit.is_tracing() or _is_exporting():  # a trace would store this result as a constant
            raise NotImplementedError(
                "an OCDLayer cannot be traced or exported by PyTorch; ocdl.export_onnx(path, layer.net, "
                "layer.to_controls()) writes its network"
            )
        parts = self._parts()
        dtype = getattr(parts[0], "dtype", None)
        if dtype not in self._bridges or getattr(x, "dtype", None) is not dtype:
            x = _cast(x, dtype)
            self._check(parts, x)
        bridge = self._bridges[dtype]
        if torch.compiler.is_compiling():
            self._check(parts, x)
            return torch_operator.call_operator(self._spec, bridge, x, parts)
        return apply_flow(bridge, x, parts, self._check)

    def to_controls(self) -> Controls:
        """Return a copy of the controls, for the other functions of ocdl.

        Returns
        -------
        Controls
            Of `net`. A layer that returns states has no readout: W and mu are 0.

        Raises
        ------
        TypeError, ValueError
            If a parameter has been replaced by something that does not fit, or is not finite.

        Examples
        --------
        >>> import ocdl, ocdl.torch, torch
        >>> layer = ocdl.torch.OCDLayer(ocdl.Network(2, 5, time_steps="simplex"))
        >>> layer.to_controls().K.shape
        (5, 2, 2)
        """
        parts = self._parts()
        self._check(parts)
        net = self.net
        arrays = {
            name: validation.real_array(to_array(values), name, net.dtype)
            for name, values in zip(self._names, parts, strict=True)
        }
        return Controls(net._layout, self._bridges[parts[0].dtype].pack(list(arrays.values())))

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def from_controls(self, controls: Controls) -> Self:
        """Copy controls into the parameters, in place, so that optimisers keep them.

        Parameters
        ----------
        controls : Controls
            Of `net`. A layer that returns states leaves their readout out.

        Returns
        -------
        OCDLayer
            The layer itself.

        Raises
        ------
        TypeError, ValueError
            If they are of another network.

        Examples
        --------
        >>> import ocdl, ocdl.torch, torch
        >>> layer = ocdl.torch.OCDLayer(ocdl.Network(2, 5, time_steps="simplex"))
        >>> u = layer.net.init(random_state=0)
        >>> (layer.from_controls(u).to_controls() - u).norm()
        0.0
        """
        self.net._vector(controls, "controls")
        for name in self._names:
            getattr(self, name).copy_(torch.from_numpy(getattr(controls, name)))
        return self

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def project_(self) -> Self:
        """Move the time steps to the closest point of the simplex, in place, for a network with time_steps="simplex".

        Call it after every step of an optimiser. Networks with fixed or free steps are unchanged.

        Returns
        -------
        OCDLayer
            The layer itself.

        Examples
        --------
        >>> import ocdl, ocdl.torch, torch
        >>> layer = ocdl.torch.OCDLayer(ocdl.Network(2, 5, time_steps="simplex"))
        >>> with torch.no_grad():
        ...     _ = layer.h.add_(0.1)
        >>> round(layer.project_().h.detach().sum().item(), 12)
        1.0
        """
        if self.net.time_steps == "simplex":
            for part in self.net.parts:
                if part.role == "steps":
                    steps = getattr(self, part.name)
                    steps.copy_(torch.from_numpy(project_simplex(to_array(steps), self.net.horizon)))
        return self

    def extra_repr(self) -> str:
        """Return the text for the repr of the layer.

        Returns
        -------
        str

        Examples
        --------
        >>> import ocdl, ocdl.torch, torch
        >>> layer = ocdl.torch.OCDLayer(ocdl.Network(2, 5, time_steps="simplex"))
        >>> "returns='outputs'" in layer.extra_repr()
        True
        """
        return f"{self.net!r}, returns={self.returns!r}, on_nonfinite={self.on_nonfinite!r}"

    def _parts(self) -> list[torch.Tensor]:
        """Return the parts of the controls, faster than by attribute access of `torch.nn.Module`."""
        registered = self._parameters | self._buffers
        return [registered[name] if name in registered else getattr(self, name) for name in self._names]

    def _check(self, parts: Sequence[torch.Tensor], *x: torch.Tensor) -> None:
        """Raise an error if x or the parts, which users can replace, do not fit."""
        dtype = self._precision(parts[0])
        for part, values in zip(self._bridges[dtype].parts, parts, strict=True):
            accepted = "torch.float32 or torch.float64, the same in all parameters: call .float() or .double()"
            _require(part.name, values, dtype, accepted)
            if values.shape != part.shape:
                raise ValueError(f"{part.name} must have shape {part.shape}, {part.meaning}, got {tuple(values.shape)}")
        for values in x:
            _require("x", values, dtype, f"{dtype}, as the parameters of the layer do: convert it with .to({dtype})")

    def _precision(self, values: object) -> torch.dtype:
        """Return the number type of a parameter; if it is not supported, that of the original network."""
        dtype = getattr(values, "dtype", None)
        return dtype if dtype in self._bridges else self._dtype


def _cast(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return x in this precision under autocast, and x itself otherwise."""
    is_cast = isinstance(x, torch.Tensor) and x.is_floating_point() and torch.is_autocast_enabled("cpu")
    return x.to(dtype) if is_cast else x


def _require(name: str, values: object, dtype: torch.dtype, accepted: str) -> None:
    """Refuse anything but a dense tensor of this number type on the CPU."""
    if not isinstance(values, torch.Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(values).__name__}")
    if not values.is_cpu:
        raise ValueError(
            f"{name} is on the device {str(values.device)!r}, but ocdl computes on the CPU: keep the layer there, "
            "and call it as layer(x.cpu()).to(x.device)"
        )
    if values.layout is not torch.strided or values.is_nested:
        raise TypeError(f"{name} must be a dense tensor, got a sparse or nested one: convert with .to_dense()")
    if values.dtype is not dtype:
        raise TypeError(f"{name} holds {values.dtype}, but must hold {accepted}")
