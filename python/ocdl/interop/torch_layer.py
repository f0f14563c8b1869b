"""A flow as a module of PyTorch: its parameters are the controls, its backward pass is the adjoint sweep."""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np

from ocdl.base.validation import FloatArray
from ocdl.interop.bridge import Bridge
from ocdl.interop.extras import missing
from ocdl.model.controls import Controls, Part
from ocdl.model.projection import project_simplex
from ocdl.network import Network

try:
    import torch
except ModuleNotFoundError as error:
    raise missing("ocdl.torch", "PyTorch", "torch") from error

__all__ = ["OCDLayer"]

_is_exporting = getattr(torch.compiler, "is_exporting", bool)  # PyTorch before 2.7 cannot be asked


class OCDLayer(torch.nn.Module):  # type: ignore[misc]
    """A network as a layer of a model in PyTorch.

    Its parameters are the parts of the controls, under their names: ``layer.K``, ``layer.b``, ... The time steps are a
    buffer where they are fixed. Gradients, also by x, are those of `Network.pull_back`: exact, by one forward and one
    adjoint sweep, whatever the tableau. There are no second derivatives. A layer computes on the CPU, with as many
    threads as `ocdl.set_num_threads` says, in the number type of its network. ``torch.compile`` compiles what stands
    around it; a trace or an export of the model is refused, as no operators of PyTorch say what a layer computes.

    Parameters
    ----------
    net : Network
    controls : Controls, optional
        Where to start, copied. None: ``net.init(scheme="scaled")``, with a seed from PyTorch's own generator, so that
        ``torch.manual_seed`` fixes it.
    returns : {"outputs", "state", "trajectory"}
        What `forward` returns for x of shape (..., features): the outputs, (..., outputs); the states at time T,
        (..., dim); or those after every layer, (layers + 1, ..., dim). States do not depend on the readout W and mu,
        which have no gradient then.

    Attributes
    ----------
    net : Network
    returns : str

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
    >>> flow.net is net, flow.returns
    (True, 'state')
    """

    def __init__(self, net: Network, controls: Controls | None = None, returns: str = "outputs") -> None:
        super().__init__()
        self._bridge = Bridge(net, returns)
        self._dtype = getattr(torch, str(net.dtype))
        if controls is None:
            controls = net.init(random_state=int(torch.randint(2**31, ())), scheme="scaled")
        net._vector(controls, "controls")
        for part in net.parts:
            values = torch.from_numpy(getattr(controls, part.name).copy())
            if part.role == "steps" and net.time_steps == "fixed":
                self.register_buffer(part.name, values)
            else:
                self.register_parameter(part.name, torch.nn.Parameter(values))

    @property
    def net(self) -> Network:
        """The network that computes.

        Examples
        --------
        >>> import ocdl, ocdl.torch, torch
        >>> layer = ocdl.torch.OCDLayer(ocdl.Network(2, 5, time_steps="simplex"))
        >>> layer.net.n_layers
        5
        """
        return self._bridge.net

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
        return self._bridge.returns

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return outputs, final states or trajectory of x, (..., features).

        Parameters
        ----------
        x : torch.Tensor of shape (..., features)
            Of the network's number type, on the CPU.

        Returns
        -------
        torch.Tensor
            Of shape (..., outputs), (..., dim) or (layers + 1, ..., dim).

        Raises
        ------
        TypeError, ValueError
            If `x` is no such tensor.
        FloatingPointError
            If the flow leaves the finite range.
        NotImplementedError
            If the layer is traced or exported.

        Examples
        --------
        >>> import ocdl, ocdl.torch, torch
        >>> layer = ocdl.torch.OCDLayer(ocdl.Network(2, 5, time_steps="simplex"))
        >>> layer(torch.zeros(7, 3, 2, dtype=torch.float64)).shape
        torch.Size([7, 3, 1])
        """
        if torch.jit.is_tracing() or _is_exporting():  # which would keep this very result as a constant
            raise NotImplementedError(
                "an OCDLayer cannot be traced or exported by PyTorch; ocdl.export_onnx(path, layer.net, "
                "layer.to_controls()) writes its network"
            )
        parts = [getattr(self, part.name) for part in self._bridge.parts]
        self._require("x", x)
        for part, values in zip(self._bridge.parts, parts, strict=True):
            self._require_part(part, values)
        self._bridge.shape(x.shape)
        return _Forward.apply(self._bridge, x, *parts)

    def to_controls(self) -> Controls:
        """Return a copy of the controls, for everything else that ocdl does.

        Returns
        -------
        Controls

        Examples
        --------
        >>> import ocdl, ocdl.torch, torch
        >>> layer = ocdl.torch.OCDLayer(ocdl.Network(2, 5, time_steps="simplex"))
        >>> layer.to_controls().K.shape
        (5, 2, 2)
        """
        parts = {part: getattr(self, part.name) for part in self.net.parts}
        for part, values in parts.items():
            self._require_part(part, values)
        return self.net.from_vector(np.concatenate([_array(values).ravel() for values in parts.values()]))

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def from_controls(self, controls: Controls) -> Self:
        """Take over controls, of a training in ocdl say, in place, so that optimisers keep their parameters.

        Parameters
        ----------
        controls : Controls
            Of the network of the layer.

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
        for name, values in controls.parts().items():
            getattr(self, name).copy_(torch.from_numpy(values))
        return self

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def project_(self) -> Self:
        """Move the time steps to the closest point of the simplex, in place, where the network asks for that.

        To be called after every step of an optimiser. Networks whose steps are fixed or free stay as they are.

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
                    steps.copy_(torch.from_numpy(project_simplex(_array(steps), self.net.horizon)))
        return self

    def extra_repr(self) -> str:
        """Return what `print` shows of the layer.

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
        return f"{self.net!r}, returns={self.returns!r}"

    def _require(self, name: str, values: torch.Tensor) -> None:
        """Refuse what is no tensor of the network's numbers in the memory of the CPU."""
        if isinstance(values, torch.Tensor) and values.dtype is self._dtype and values.is_cpu and _is_dense(values):
            return
        if not isinstance(values, torch.Tensor):
            raise TypeError(f"{name} must be a torch.Tensor, got {type(values).__name__}")
        if not values.is_cpu:
            raise ValueError(
                f"{name} is on the device {str(values.device)!r}, but ocdl computes on the CPU: keep the layer there, "
                "and call it as layer(x.cpu()).to(x.device)"
            )
        if not _is_dense(values):
            raise TypeError(f"{name} must be a dense tensor, got a sparse or nested one: convert with .to_dense()")
        known = f"{self._dtype}: convert with .to({self._dtype})"
        if values.dtype in (torch.float32, torch.float64):
            known += f", or make the network with dtype={str(values.dtype).removeprefix('torch.')!r}"
        raise TypeError(f"{name} holds {values.dtype}, but the network takes {known}")

    def _require_part(self, part: Part, values: torch.Tensor) -> None:
        """Refuse what is no such part of the controls: a parameter can be replaced by any other."""
        self._require(part.name, values)
        if values.shape != part.shape:
            raise ValueError(f"{part.name} must have shape {part.shape}, {part.meaning}, got {tuple(values.shape)}")


class _Unmapped(torch.autograd.Function):  # type: ignore[misc]
    """A function of arrays, which PyTorch cannot look into."""

    @staticmethod
    def vmap(info: Any, in_dims: Any, *arguments: Any) -> Any:
        raise NotImplementedError(
            "an OCDLayer is not mapped (torch.vmap, torch.func.jacrev): x may have any axes before the features, so "
            "that it takes all rows at once"
        )


class _Forward(_Unmapped):
    """The function of a bridge."""

    @staticmethod
    def forward(bridge: Bridge, x: torch.Tensor, *parts: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(bridge.forward([_array(part) for part in parts], _array(x)))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        ctx.bridge = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def jvp(ctx: Any, *directions: Any) -> torch.Tensor:
        raise NotImplementedError(
            "an OCDLayer has derivatives by backward() only, and something asks for those along a direction (jvp); of "
            "a network they are Network.tangent"
        )

    @staticmethod
    def backward(ctx: Any, slopes: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        pull_back = _PullBack.apply if torch.is_grad_enabled() else _PullBack.forward
        return None, *pull_back(ctx.bridge, slopes, *ctx.saved_tensors)


# PyTorch asks for it in every call, and deriving it takes as long as a small flow.
_Forward.forward.__signature__ = inspect.signature(_Forward.forward)  # type: ignore[attr-defined]


class _PullBack(_Unmapped):
    """Its pull-back; where a graph of it is wanted a function of its own, so that whoever differentiates it is told."""

    @staticmethod
    def forward(
        bridge: Bridge, slopes: torch.Tensor, x: torch.Tensor, *parts: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        by_x, by_parts = bridge.pull_back([_array(part) for part in parts], _array(x), _array(slopes))
        return torch.from_numpy(by_x), *map(torch.from_numpy, by_parts)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *slopes: torch.Tensor) -> tuple[torch.Tensor, ...]:
        raise NotImplementedError(
            "an OCDLayer has first derivatives only, and something asks for second ones (create_graph=True); products "
            "with the Hessian of an objective are Network.hessian_product"
        )


def _is_dense(values: torch.Tensor) -> bool:
    return values.layout is torch.strided and not values.is_nested


def _array(values: torch.Tensor) -> FloatArray:
    """Return a tensor as an array: the same memory, but where it is a view that stands for its negative."""
    array: FloatArray = values.detach().resolve_neg().numpy()
    return array
