"""A certificate: measurements that check the theory on one network and its data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ocdl.analysis import identities
from ocdl.analysis.observed_order import Convergence, convergence
from ocdl.analysis.sensitivity import sensitivity
from ocdl.analysis.taylor import Taylor
from ocdl.base import markup
from ocdl.base.randomness import random_source
from ocdl.base.validation import FloatArray
from ocdl.model.activations import ACTIVATIONS
from ocdl.model.controls import Controls
from ocdl.model.flow import Flow
from ocdl.model.objective import DEFAULT_OBJECTIVE, Objective
from ocdl.model.observations import Observations

__all__ = ["Certificate", "Check", "certify"]

HEAD = ("check", "value", "expected", "verdict")
VERDICTS = {True: "holds", False: "FAILS", None: "-"}


class Check(NamedTuple):
    """One line of a `Certificate`: the measured value, the expected one, and whether the check passes.

    Attributes
    ----------
    name : str
    value : float
    expected : str
    passed : bool or None
        None: the value is only reported.

    Examples
    --------
    >>> import ocdl
    >>> check = ocdl.Check("error", 0.001, "< 0.01", True)
    >>> check.name, check.value, check.expected, check.passed
    ('error', 0.001, '< 0.01', True)
    """

    name: str
    value: float
    expected: str
    passed: bool | None

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The line as text: name, value, expected and verdict."""
        value = "-" if math.isnan(self.value) else f"{self.value:.3g}"
        return self.name, value, self.expected, VERDICTS[self.passed]


@dataclass(frozen=True, eq=False)
class Certificate:
    """The result of `Network.certify`: printed, it is a table; `ocdl.plot.certificate` draws it.

    Attributes
    ----------
    network : Network
    checks : tuple of Check
        The lines of the table: name, value, expected, passed.
    passed : bool
        Whether no check fails.
    taylor : Taylor
        Remainders of J along a direction of all controls: steps, order0, order1, slope0, slope1.
    drift : ndarray of shape (layers + 1,)
        ``|<p[j], v[j]> - <p[0], v[0]>|`` of the worst sample, relative to ``|p| |v|``.
    drift_limit : float
        The largest drift that counts as roundoff.
    convergence : Convergence
        The convergence of flows with smaller and smaller steps: layers, differences, order, reason.
    residuals : mapping of names to floats
        The norm of the projected gradient for each part of the controls.
    sensitivity : ndarray of shape (samples,)
        ``|dJ_i/dx_i|``, the norm of the derivative of each sample's loss with respect to the sample.

    Examples
    --------
    >>> import ocdl
    >>> X, y = ocdl.datasets.make_spiral(50, random_state=0)
    >>> net = ocdl.Network(2, 5, tableau="midpoint")
    >>> report = net.certify(net.init(random_state=0), X, y)
    >>> report.passed, report.network is net, len(report.checks) > 5
    (True, True, True)
    >>> bool(report.taylor.slope1 > 1.9), bool(report.drift.max() < report.drift_limit)
    (True, True)
    >>> report.convergence.order > 1.8, sorted(report.residuals)
    (True, ['K', 'W', 'b', 'mu'])
    >>> report.sensitivity.shape
    (50,)
    """

    network: Flow
    checks: tuple[Check, ...]
    taylor: Taylor
    drift: FloatArray
    drift_limit: float
    convergence: Convergence
    residuals: Mapping[str, float]
    sensitivity: FloatArray

    @property
    def passed(self) -> bool:
        """Whether no check fails.

        Examples
        --------
        >>> import ocdl
        >>> net = ocdl.Network(1, 3)
        >>> net.certify(net.init(random_state=0), [[0.0], [1.0]], [0, 1]).passed
        True
        """
        return all(check.passed is not False for check in self.checks)

    def __str__(self) -> str:
        lines = [HEAD, *(check.cells for check in self.checks)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        return "\n".join([*table, self._summary()])

    def __repr__(self) -> str:
        return f"<Certificate: {self._summary()}>"

    def _repr_html_(self) -> str:
        return markup.table(HEAD, (check.cells for check in self.checks)) + markup.paragraph(self._summary())

    def _summary(self) -> str:
        tested = [check for check in self.checks if check.passed is not None]
        failed = [check.name for check in tested if not check.passed]
        if failed:
            return f"{len(failed)} of {len(tested)} checks fail: {'; '.join(failed)}"
        return f"all {len(tested)} checks hold"


def certify(
    net: Flow,
    u: Controls,
    X: ArrayLike,
    y: ArrayLike,
    objective: Objective | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    inputs: ArrayLike | None = None,
    random_state: Any = 0,
) -> Certificate:
    """Check the theory on these controls and data, and return the measurements as a table.

    - The gradient is that of J: the Taylor remainders ``|J(u + e w) - J(u) - e <g, w>|`` fall like e^2, along a
      direction of all controls, and of each part and the data by themselves. Directions are half random and half the
      gradient. An error of the gradient is seen from about 1e-7 of the curvature of J on, in float32 1e-3. A float32
      network that enlarges differences a lot can fail: its gradient is not that accurate.
    - Costates p and variations v have a product <p[j], v[j]> that is the same at all layers if the controls do not
      vary; if they do, its change is the sum over the layers of <dJ/du[j], w[j]>.
    - The tableau and its partner are a symplectic pair. With a weight of 0 there is no partner, and the general
      adjoint, by which all gradients are computed, needs none.
    - With 2, 4, 8, ... times as many layers and the same ODE, the flow converges with the order of the tableau.
    - What is left of the gradient, part by part (for steps on the simplex ``|P(h - g) - h|``), and how sensitive the
      losses are to the data: these values are only reported.

    Parameters
    ----------
    u, X, y, objective, sample_weight, inputs
        As for `Network.value`. The states of all samples are stored: a few hundred samples are enough.
    random_state : None, int, numpy Generator or RandomState
        The source of the directions.

    Returns
    -------
    Certificate

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit the network; the message names it, the given value and what is accepted.
    FloatingPointError
        If the flow leaves the finite range; the message names the sample and the layer.

    Examples
    --------
    >>> import ocdl
    >>> X, y = ocdl.datasets.make_spiral(200, random_state=0)
    >>> net = ocdl.Network(2, 10, tableau="kutta4", time_steps="free")
    >>> report = net.certify(net.init(random_state=0), X, y)
    >>> report
    <Certificate: all 7 checks hold>
    >>> report.passed
    True
    """
    objective = DEFAULT_OBJECTIVE if objective is None else objective
    if isinstance(y, Observations):
        raise ValueError(
            "certify takes targets of the outputs at the end: Observations within the horizon change the costates on "
            "their way, so that <p[j], v[j]> is not constant"
        )
    case, rng = identities.Case(net, u, X, y, objective, sample_weight, inputs), random_source(random_state)
    g = case.gradient(objective)
    whole, parts = identities.taylor_tests(case, g, rng)
    drift, by_parts = identities.product_drift(case, rng), identities.defect_by_parts(case, rng)
    limit = 100 * net.n_layers * net.stages * float(np.finfo(net.dtype).eps)
    observed = convergence(net, u, X, inputs)
    residuals = identities.optimality_residuals(case, g)
    sensitivities = np.linalg.norm(sensitivity(net, u, X, y, objective, inputs=inputs).astype(np.float64), axis=1)
    checks = (
        *_taylor_checks(net, whole, parts),
        _check_at_most("drift of <p[j], v[j]> over the layers", float(drift.max()), limit),
        _check_at_most("<p[N], v[N]> - <p[0], v[0]> = sum <dJ/du, w>", by_parts, limit),
        _check_symplectic_pair(net),
        _check_order(net, observed),
        *(
            Check(f"norm of the gradient by {part}", value, "0 at a minimiser", None)
            for part, value in residuals.items()
        ),
        Check("|dJ_i/dx_i|, largest", float(sensitivities.max()), "", None),
        Check("|dJ_i/dx_i|, median", float(np.median(sensitivities)), "", None),
    )
    return Certificate(net, checks, whole, drift, limit, observed, residuals, sensitivities)


def _taylor_checks(net: Flow, whole: Taylor, parts: Mapping[str, Taylor]) -> Iterator[Check]:
    yield _check_at_least("slope of |J(u + e w) - J(u)|", whole.slope0, 1, 0.5)
    yield _check_second_order(net, "slope of |J(u + e w) - J(u) - e <g, w>|", whole)
    by_part = {
        part: _check_second_order(net, f"the same for {', '.join(parts)} alone, lowest for {part}", test)
        for part, test in parts.items()
    }
    yield min(by_part.values(), key=lambda check: (check.passed is not False, math.isnan(check.value), check.value))


def _check_second_order(net: Flow, name: str, test: Taylor) -> Check:
    error = 1e-6 if net.dtype == np.float64 else 1e-3
    check = _check_at_least(name, test.slope1, 2, 1.5)
    is_accurate = bool(test.error <= error)
    expected = f"{check.expected[:-1]}, or <g, w> right to {error:.0e})" if check.passed is not None else check.expected
    return check._replace(expected=expected, passed=is_accurate or check.passed)


def _check_symplectic_pair(net: Flow) -> Check:
    name = "symplecticity of the tableau and its partner"
    if not net.residual:
        return Check(name, math.nan, "no tableau: feed-forward", None)
    if not net.tableau.b.all():
        return Check(name, math.nan, "no partner: a weight is 0, the general adjoint is used", None)
    largest = max(1.0, float(np.abs(net.tableau.adjoint().A).max()))
    return _check_at_most(
        name, identities.symplecticity_defect(net.tableau), 8 * largest * float(np.finfo(np.float64).eps)
    )


def _check_order(net: Flow, observed: Convergence) -> Check:
    name = "order of convergence of the flow"
    if observed.reason:
        return Check(name, math.nan, f"not measured: {observed.reason}", None)
    if ACTIVATIONS[net.activation].nonsmooth:
        return Check(name, observed.order, "none: the field is nonsmooth", None)
    order = net.tableau.order
    return _check_at_least(name, observed.order, order, min(order - 0.5, 0.85 * order))


def _check_at_most(name: str, value: float, limit: float) -> Check:
    return Check(name, value, f"at most {limit:.2g}", value <= limit)


def _check_at_least(name: str, value: float, theory: int, limit: float) -> Check:
    if math.isnan(value):
        return Check(name, value, f"{theory}, but all values are below roundoff", None)
    return Check(name, value, f"{theory} (at least {limit:.2g})", value >= limit)
