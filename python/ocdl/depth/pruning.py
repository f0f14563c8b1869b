"""Layers whose time step is 0: which remain without them, and what that saves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ocdl.base.validation import LabelArray
from ocdl.model.controls import Controls
from ocdl.model.flow import Flow, SomeFlow

__all__ = ["Saving", "prune", "saving"]


@dataclass(frozen=True)
class Saving:
    """What `Network.prune` saves: the layers before and after. As text it is a sentence."""

    layers: int
    kept: int

    @property
    def factor(self) -> float:
        """How many times fewer layers there are to compute."""
        return self.layers / self.kept

    def __str__(self) -> str:
        if self.kept == self.layers:
            which = "the only layer cannot" if self.layers == 1 else f"none of the {self.layers} layers can"
            return f"{which} be left out"
        left_out = self.layers - self.kept
        return f"{left_out} of {self.layers} layers can be left out: {self.factor:.3g} times fewer to compute"


def prune(net: SomeFlow, u: Controls) -> tuple[SomeFlow, Controls]:
    """Return a network and controls without the layers whose step is 0; the outputs are the same to the last bit.

    One layer is kept where all steps are 0. A feed-forward network has no steps and stays as it is. `saving` says
    beforehand how many layers that are.

    Parameters
    ----------
    u : Controls

    Returns
    -------
    net : Network
    u : Controls

    Raises
    ------
    TypeError, ValueError
        If the controls do not fit the network.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network.preset("odenet+simplex", 2, 4)
    >>> small, controls = net.prune(net.controls(h=[0.0, 0.75, 0.0, 0.25]))
    >>> small.n_layers, controls.h.tolist()
    (2, [0.75, 0.25])
    """
    net._vector(u)
    kept = _kept_layers(net, u)
    small = replace(net, n_layers=len(kept))
    parts = (
        values[kept] if part.is_per_layer and len(values) else values
        for part, values in zip(net.parts, u.parts().values(), strict=True)
    )
    return small, Controls(small._layout, np.concatenate([values.ravel() for values in parts]))


def saving(net: Flow, u: Controls) -> Saving:
    """Return how many layers `prune` would leave.

    Parameters
    ----------
    u : Controls

    Returns
    -------
    Saving
        ``layers``, ``kept`` and ``factor``; as text it is a sentence.

    Raises
    ------
    TypeError, ValueError
        If the controls do not fit the network.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network.preset("odenet+simplex", 2, 4)
    >>> print(net.saving(net.controls(h=[0.0, 0.75, 0.0, 0.25])))
    2 of 4 layers can be left out: 2 times fewer to compute
    """
    net._vector(u)
    return Saving(net.n_layers, len(_kept_layers(net, u)))


def _kept_layers(net: Flow, u: Controls) -> LabelArray:
    """Return the layers that `Network.prune` keeps: those whose step is not 0, one if there are none."""
    kept = np.flatnonzero(u.h) if net.residual else np.arange(net.n_layers)
    return kept if len(kept) else np.array([0])
