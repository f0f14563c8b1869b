"""What is believed of the parameters before data: their means, precisions, and which of them are learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocdl.dynamics.plan import DynamicsPlan
from ocdl.dynamics.scaling import ScaledProblem

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

WEAK = 1e-4  # precision of what data determine
HIDDEN_LAYER = 0.5  # precision of K and b at the start
READOUT = 1.0  # precision of V at the start
LINEAR = 0.1  # precision of A and c


@dataclass(frozen=True, eq=False)
class Prior:
    """Means and precisions of the parameters, normal and independent.

    Parameters with the same number in `groups` have one precision, which the evidence updates, -1: it stays; None: all
    stay. `free` are learned, the others keep their mean; `protected` are never dropped from a polynomial.
    """

    mean: Floats
    precision: Floats
    groups: Floats | None
    free: Mask
    protected: Mask

    def held(self, free: Mask) -> Floats:
        """Return what parameters are that are not free: means where they never were, else 0."""
        return np.where(self.free & ~free, 0.0, self.mean)


def make_prior(plan: DynamicsPlan, problem: ScaledProblem) -> Prior:
    """Return the prior of a plan: the known linear part is the mean of that of the field."""
    system, units = plan.system, problem.units
    P = system.n_parameters
    mean, precision, free = np.zeros(P), np.full(P, WEAK), np.ones(P, bool)
    protected = np.zeros(P, bool)
    groups = None
    if system.field == "mlp":
        groups = np.full(P, -1.0)
        for name, group, value in (
            ("K", 0, HIDDEN_LAYER),
            ("b", 0, HIDDEN_LAYER),
            ("V", 1, READOUT),
            ("A", -1, LINEAR),
            ("c", -1, LINEAR),
        ):
            where = system.layout[name][0]
            groups[where], precision[where] = group, value
        if plan.alpha != "auto":
            groups, precision = None, np.full(P, float(plan.alpha))
    elif plan.alpha != "auto":
        precision = np.full(P, float(plan.alpha))
    if plan.linear is not None:
        scaled = units.time * plan.linear * units.scale / units.scale[:, None]
        numbers = linear_parameters(plan)
        mean[numbers] = scaled
        if system.field == "mlp":
            mean[system.layout["c"][0]] = units.time * (plan.linear @ units.shift) / units.scale
        protected[numbers] = scaled != 0
        if not plan.learn_linear:
            free[numbers] = False
    return Prior(mean, precision, groups, free, protected)


def linear_parameters(plan: DynamicsPlan) -> NDArray[np.int64]:
    """Return the numbers (dim, dim) of the parameters that are the linear part of the field in the states."""
    system = plan.system
    where, shape = system.layout["A" if system.field == "mlp" else "C"]
    numbers = np.arange(where.start, where.stop).reshape(shape)
    if system.field == "mlp":
        return numbers[:, : system.dim]
    exponents = system.monomials()
    terms = [
        int(np.flatnonzero((exponents == np.eye(exponents.shape[1], dtype=int)[j]).all(axis=1))[0])
        for j in range(system.dim)
    ]
    return numbers[:, terms]
