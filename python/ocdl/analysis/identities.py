"""Measure identities of gradient, costates and variations on one network with its data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ocdl.analysis.taylor import Taylor, taylor
from ocdl.base.randomness import RandomSource
from ocdl.base.validation import FloatArray
from ocdl.model.controls import Controls
from ocdl.model.flow import Flow
from ocdl.model.objective import Objective
from ocdl.model.projection import project_simplex
from ocdl.model.tableau import Tableau


@dataclass(frozen=True)
class Case:
    """A network with controls, data and objective."""

    net: Flow
    u: Controls
    X: ArrayLike
    y: ArrayLike
    objective: Objective
    sample_weight: ArrayLike | None
    inputs: ArrayLike | None

    @property
    def given(self) -> dict[str, ArrayLike | None]:
        """The keywords of a value."""
        return {"sample_weight": self.sample_weight, "inputs": self.inputs}

    def gradient(self, objective: Objective) -> Controls:
        return self.net.value_and_grad(self.u, self.X, self.y, objective, **self.given, input_grad=True)[1]

    @property
    def loss(self) -> Objective:
        """The objective without penalties, which do not enter costates and variations."""
        return replace(self.objective, penalties=())

    @property
    def smooth_parts(self) -> Iterator[tuple[str, Controls]]:
        """Yield for each part a mask of the entries by which J is differentiable."""
        net, nonsmooth = self.net, self.objective._nonsmooth_penalties
        for part in net.parts:
            mask = net.from_vector(np.zeros(net.n_controls))
            getattr(mask, part.name)[...] = 1
            if any(part.role != "steps" if p.parts is None else part.name in p.parts for p in nonsmooth):
                getattr(mask, part.name)[...] = getattr(self.u, part.name) != 0  # |u| has a kink at 0
            if part.role == "steps" and net.time_steps == "fixed":
                continue
            if mask.to_vector().any():
                yield part.name, mask


def taylor_tests(case: Case, g: Controls, rng: RandomSource) -> tuple[Taylor, dict[str, Taylor]]:
    """Return the remainders of J along a direction of all controls, and along one of each part and of the data.

    J is computed in float64, so that in float32 only the roundoff of the gradient counts.
    """
    net = case.net
    exact = replace(net, dtype=np.dtype(np.float64))
    u, rows = exact.from_vector(case.u.to_vector()), np.asarray(case.X, dtype=np.float64)
    gradient = g.to_vector().astype(np.float64)

    def run_taylor_test(mask: FloatArray) -> Taylor:
        w = half_random_direction(gradient * mask, rng, mask)
        dw = exact.from_vector(w)
        return taylor(
            lambda e: exact.value(u + e * dw, rows, case.y, case.objective, **case.given),
            float(gradient @ w),
            net.dtype,
        )

    masks = {part: mask.to_vector() for part, mask in case.smooth_parts}
    tests = {part: run_taylor_test(mask) for part, mask in masks.items()}
    assert g.X is not None
    dX = half_random_direction(g.X.astype(np.float64), rng)
    tests["X"] = taylor(
        lambda e: exact.value(u, rows + e * dX, case.y, case.objective, **case.given),
        float(np.vdot(g.X, dX)),
        net.dtype,
    )
    return run_taylor_test(np.sum(list(masks.values()), axis=0)), tests


def half_random_direction(gradient: FloatArray, rng: RandomSource, mask: FloatArray | float = 1.0) -> FloatArray:
    """Return a direction of length 1: the gradient's plus a random one that does not oppose it, so that J changes."""
    noise = rng.standard_normal(gradient.shape) * mask
    direction: FloatArray = noise / np.linalg.norm(noise)
    gradient_norm = np.linalg.norm(gradient)
    if gradient_norm > 0:
        sign = 1 if np.vdot(direction, gradient) >= 0 else -1
        direction = sign * direction + gradient / gradient_norm
        direction /= np.linalg.norm(direction)
    return direction


def _costates_and_variations(case: Case, w: Controls | None, rng: RandomSource) -> tuple[FloatArray, FloatArray]:
    """Return costates and variations, in float64: products of large numbers overflow sooner in float32."""
    p = case.net.adjoint(case.u, case.X, case.y, case.loss, **case.given)
    v = case.net.tangent(case.u, case.X, w, rng.standard_normal(np.shape(case.X)), inputs=case.inputs)
    return p.astype(np.float64, copy=False), v.astype(np.float64, copy=False)


def product_drift(case: Case, rng: RandomSource) -> FloatArray:
    """Return |<p[j], v[j]> - <p[0], v[0]>| of the worst sample for each j, relative to the lengths of p and v."""
    p, v = _costates_and_variations(case, None, rng)
    products = np.sum(p * v, axis=2)
    sizes = np.linalg.norm(p, axis=2).max(axis=0) * np.linalg.norm(v, axis=2).max(axis=0)
    drift = np.divide(np.abs(products - products[0]), sizes, out=np.zeros(products.shape), where=sizes > 0)
    worst: FloatArray = drift.max(axis=1)
    return worst


def defect_by_parts(case: Case, rng: RandomSource) -> float:
    """Return |<p[N], v[N]> - <p[0], v[0]> - sum_j <dJ/du[j], w[j]>| relative to the size of its terms."""
    net = case.net
    w = net.from_vector(rng.standard_normal(net.n_controls))
    for part in net.parts:  # the states do not depend on these
        if part.role == "readout" or (part.role == "steps" and net.time_steps == "fixed"):
            getattr(w, part.name)[...] = 0
    p, v = _costates_and_variations(case, w, rng)
    terms = case.gradient(case.loss).to_vector().astype(np.float64) * w.to_vector()
    boundary = np.vdot(p[-1], v[-1]) - np.vdot(p[0], v[0])
    size = np.sum(np.linalg.norm(p, axis=2).max(axis=0) * np.linalg.norm(v, axis=2).max(axis=0)) + np.abs(terms).sum()
    return float(abs(boundary - terms.sum()) / size) if size > 0 else 0.0


def symplecticity_defect(tableau: Tableau) -> float:
    """Return max |b_i a~_ij + b~_j a_ji - b_i b~_j| for the tableau and its partner."""
    partner = tableau.adjoint()
    b, transposed, partner_transposed = tableau.b[:, None], tableau.A.T, partner.A
    return float(np.abs(b * partner_transposed + partner.b * transposed - b * partner.b).max())


def optimality_residuals(case: Case, g: Controls) -> dict[str, float]:
    """Return the norm of the gradient for each part that is trained; on the simplex that of P(h - g) - h."""
    residuals = {part: float(np.linalg.norm(values.astype(np.float64))) for part, values in g.parts().items()}
    if case.net.time_steps == "fixed":
        del residuals["h"]
    if case.net.time_steps == "simplex":
        h = case.u.h
        residuals["h"] = float(np.linalg.norm(project_simplex(h - g.h, case.net.horizon) - h))
    return residuals
