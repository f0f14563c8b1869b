"""Remove layers whose time step is 0, and hidden units without effect."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ocdl.base.validation import LabelArray
from ocdl.model.controls import Controls
from ocdl.model.flow import Flow, SomeFlow

__all__ = ["PruningSummary", "prune", "saving"]


@dataclass(frozen=True)
class PruningSummary:
    """The layers before and after `Network.prune`; as text a sentence.

    Attributes
    ----------
    layers, kept : int

    Examples
    --------
    >>> import ocdl
    >>> summary = ocdl.PruningSummary(layers=20, kept=5)
    >>> summary.layers, summary.kept, summary.factor
    (20, 5, 4.0)
    """

    layers: int
    kept: int

    @property
    def factor(self) -> float:
        """The number of layers before pruning divided by that after it."""
        return self.layers / self.kept

    def __str__(self) -> str:
        if self.kept == self.layers:
            which = "the only layer cannot" if self.layers == 1 else f"none of the {self.layers} layers can"
            return f"{which} be left out"
        left_out = self.layers - self.kept
        return f"{left_out} of {self.layers} layers can be left out: {self.factor:.3g} times fewer to compute"


def prune(net: SomeFlow, u: Controls) -> tuple[SomeFlow, Controls]:
    """Return a network and controls without the layers whose step is 0; the outputs are the same to the last bit.

    One layer is kept where all steps are 0. Shared controls are removed with the last layer that uses them. A
    feed-forward network has no steps and keeps its layers. `saving` counts the layers beforehand. A network with inputs
    of zero hold takes those of the layers that are kept; with a linear hold it can lose no layer, because inputs go on
    from one layer to the next.

    Of the field "mlp" the hidden units go whose column of V is 0 in all layers, as `GroupL1` leaves them; one stays.
    Outputs then agree up to roundoff, because sums have other lengths.

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
    if net.n_inputs and net.input_hold == "linear" and len(kept) < net.n_layers:
        raise ValueError("prune takes networks whose inputs have input_hold='zero', or no inputs, got 'linear'")
    kept_sets, sets = kept, None
    if net.control_intervals is not None:
        kept_sets, renumbered = np.unique(np.array(net.layer_sets)[kept], return_inverse=True)
        sets = tuple(renumbered.tolist())
    units = _kept_units(net, u)
    small = replace(net, n_layers=len(kept), control_intervals=sets, width=None if units is None else len(units))
    selected = {"field": kept_sets, "steps": kept if net.residual else slice(None), "readout": slice(None)}
    pruned = []
    for part, values in zip(net.parts, u.parts().values(), strict=True):
        values = values[selected[part.role]]
        pruned.append(
            values if units is None or "width" not in part.axes else values.take(units, part.axes.index("width"))
        )
    return small, Controls(small._layout, np.concatenate([values.ravel() for values in pruned]))


def saving(net: Flow, u: Controls) -> PruningSummary:
    """Return how many layers `prune` would leave.

    Parameters
    ----------
    u : Controls

    Returns
    -------
    PruningSummary
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
    return PruningSummary(net.n_layers, len(_kept_layers(net, u)))


def _kept_units(net: Flow, u: Controls) -> LabelArray | None:
    """Return the hidden units with an effect, one if there are none; None: the field has no width."""
    if net.width is None:
        return None
    V = u.parts()["V"]
    kept = np.flatnonzero(V.reshape(-1, net.width).any(axis=0))
    return kept if len(kept) else np.array([0])


def _kept_layers(net: Flow, u: Controls) -> LabelArray:
    """Return the layers that `Network.prune` keeps: those whose step is not 0, one if there are none."""
    kept = np.flatnonzero(u.h) if net.residual else np.arange(net.n_layers)
    return kept if len(kept) else np.array([0])
