"""Layers whose time step is 0: which remain without them, and what that saves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ocdl.base.validation import LabelArray
from ocdl.model.controls import Controls

if TYPE_CHECKING:
    from ocdl.network import Network

__all__ = ["Saving", "saving"]


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
            return f"none of the {self.layers} layers can be left out"
        left_out = self.layers - self.kept
        return f"{left_out} of {self.layers} layers can be left out: {self.factor:.3g} times fewer to compute"


def kept_layers(net: Network, u: Controls) -> LabelArray:
    """Return the layers that `Network.prune` keeps: those whose step is not 0, one if there are none."""
    kept = np.flatnonzero(u.h) if net.residual else np.arange(net.n_layers)
    return kept if len(kept) else np.array([0])


def saving(net: Network, u: Controls) -> Saving:
    """Return how many layers `prune` would leave.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network.preset("odenet+simplex", 2, 4)
    >>> print(net.saving(net.controls(h=[0.0, 0.75, 0.0, 0.25])))
    2 of 4 layers can be left out: 2 times fewer to compute
    """
    net._vector(u)
    return Saving(net.n_layers, len(kept_layers(net, u)))
