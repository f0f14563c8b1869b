"""The system y' = f(y, x; theta) that is learned: networks of any number of equal steps with the same field."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.model.controls import Controls
from ocdl.model.tableau import Tableau
from ocdl.network import Network

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class System:
    """The field, without its numbers theta: these are the field's parts of the controls as one vector."""

    field: str
    dim: int
    n_inputs: int
    width: int | None
    degree: int | None
    tableau: str | Tableau

    def network(self, n_layers: int, step: float) -> Network:
        """Return the network of so many steps; its outputs are its states."""
        return _network(self, n_layers, step)

    def controls(self, net: Network, theta: Floats) -> Controls:
        """Return the controls of such a network."""
        u = net.controls(W=np.eye(self.dim))
        u._vector[: len(theta)] = theta
        return u

    @property
    def layout(self) -> dict[str, tuple[slice, tuple[int, ...]]]:
        """The slice of theta that holds each part, and its shape."""
        net = self.network(1, 1.0)
        roles = {part.name: part.role for part in net.parts}
        return {
            name: (where, shape[1:]) for name, (where, shape) in net._layout.slices.items() if roles[name] == "field"
        }

    @property
    def n_parameters(self) -> int:
        """The length of theta."""
        return max(int(where.stop) for where, _ in self.layout.values())

    def part(self, theta: Floats, name: str) -> Floats:
        """Return a part of theta as a view."""
        where, shape = self.layout[name]
        return theta[where].reshape(shape)

    def derivative(self, theta: Floats, z: Floats, x: Floats | None) -> Floats:
        """Return f at states (m, dim) with inputs (m, r): one step of Euler's method of length 1 tells it."""
        net = _derivative_network(self)
        u = self.controls(net, theta)
        inputs = None if x is None else np.repeat(x[:, None], 2, axis=1)
        return np.asarray(net.forward(u, z, inputs=inputs).outputs - z)

    def monomials(self) -> NDArray[np.int64]:
        """Return the exponents of state and inputs of each monomial, in graded lexicographic order."""
        return monomial_exponents(self.dim + self.n_inputs, self.degree or 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the arguments as JSON can hold them, but the tableau."""
        return {name: getattr(self, name) for name in ("field", "dim", "n_inputs", "width", "degree")}


def monomial_exponents(variables: int, degree: int) -> NDArray[np.int64]:
    """Return the exponents (monomials, variables) in graded lexicographic order, as the core has them."""
    rows = [row for total in range(degree + 1) for row in _compositions(variables, total)]
    return np.array(rows, dtype=np.int64).reshape(len(rows), variables)


def _compositions(variables: int, total: int) -> list[tuple[int, ...]]:
    if variables == 1:
        return [(total,)]
    return [(first, *rest) for first in range(total, -1, -1) for rest in _compositions(variables - 1, total - first)]


@lru_cache(maxsize=64)
def _network(system: System, n_layers: int, step: float) -> Network:
    return Network(
        system.dim,
        n_layers,
        n_outputs=system.dim,
        tableau=system.tableau,
        field=system.field,
        width=system.width,
        degree=system.degree,
        horizon=n_layers * step,
        control_intervals=1,
        n_inputs=system.n_inputs,
    )


@lru_cache(maxsize=16)
def _derivative_network(system: System) -> Network:
    return Network(
        system.dim,
        1,
        n_outputs=system.dim,
        tableau="euler",
        field=system.field,
        width=system.width,
        degree=system.degree,
        control_intervals=1,
        n_inputs=system.n_inputs,
    )
