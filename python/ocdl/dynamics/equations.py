"""A learned polynomial as equations in the units of the data, with the standard errors of its coefficients."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ocdl.dynamics.plan import LearnedSystem

Floats = NDArray[np.float64]


def coefficients(learned: LearnedSystem) -> tuple[Floats, Floats]:
    """Return the coefficients (dim, terms) in the units of the data, and their standard errors, 0 where dropped."""
    system = learned.system
    factor = unit_factors(learned)
    return system.part(learned.theta, "C") * factor, np.sqrt(system.part(learned.variance, "C")) * factor


def unit_factors(learned: LearnedSystem) -> Floats:
    """Return what turns the coefficients of a polynomial without units into those in the units of the data."""
    units = learned.units
    scales = np.concatenate([units.scale, units.input_scale])
    monomials = np.prod(scales ** learned.system.monomials(), axis=1)
    factors: Floats = units.scale[:, None] / units.time / monomials
    return factors


def term_names(exponents: NDArray[np.int64], variables: Sequence[str]) -> list[str]:
    """Return the names of monomials, as in ``1``, ``x``, ``x^2 y``."""
    names = []
    for row in exponents:
        factors = [name if e == 1 else f"{name}^{e}" for name, e in zip(variables, row, strict=True) if e]
        names.append(" ".join(factors) or "1")
    return names


def format_equations(
    C: Floats, exponents: NDArray[np.int64], states: Sequence[str], inputs: Sequence[str], precision: int, latex: bool
) -> list[str]:
    """Return an equation per state; terms of coefficient 0 are left out."""
    variables = [_latex_name(name) for name in [*states, *inputs]] if latex else [*states, *inputs]
    names = term_names(exponents, variables)
    if latex:
        names = [_latex_powers(name) for name in names]
    lines = []
    for state, row in zip(states, C, strict=True):
        terms = [_format_term(c, name, precision, latex) for c, name in zip(row, names, strict=True) if c != 0]
        right = " ".join(terms) or "0"
        right = right.removeprefix("+ ")
        if right.startswith("- "):
            right = "-" + right[2:]
        lines.append(f"\\dot{{{_latex_name(state)}}} = {right}" if latex else f"{state}' = {right}")
    return lines


def _format_term(coefficient: float, name: str, precision: int, latex: bool) -> str:
    size = f"{abs(coefficient):.{precision}g}"
    if latex and "e" in size:
        mantissa, exponent = size.split("e")
        size = f"{mantissa} \\cdot 10^{{{int(exponent)}}}"
    sign = "-" if math.copysign(1.0, coefficient) < 0 else "+"
    return f"{sign} {size}" if name == "1" else f"{sign} {size} {name}"


def _latex_name(name: str) -> str:
    stem = name.rstrip("0123456789")
    number = name[len(stem) :]
    if stem and number and len(stem) == 1:
        return f"{stem}_{{{number}}}"
    return name if len(name) == 1 else "\\mathrm{" + name.replace("_", "\\_") + "}"


def _latex_powers(name: str) -> str:
    factors = [factor.rsplit("^", 1) if "^" in factor else [factor] for factor in name.split(" ")]
    return " ".join(f"{parts[0]}^{{{parts[1]}}}" if len(parts) == 2 else parts[0] for parts in factors)
