"""Random problems: hypothesis draws their structure and a seed, NumPy the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from numpy.typing import NDArray

import ocdl
from ocdl import Network, Tableau, _core
from ocdl.model import fields

ACTIVATIONS = list(_core.activations())
LOSSES = ["squared", "cross_entropy"]
REDUCTIONS = ("mean", "sum")
TABLEAUX = ocdl.tableaux()
EXPLICIT = [name for name in TABLEAUX if Tableau.named(name).is_explicit]
IMPLICIT = [name for name in TABLEAUX if name not in EXPLICIT]
FIELDS = list(fields.FIELDS)
SMOOTH_ENOUGH = 0.3  # of what a polynomial's coefficients are drawn from: larger ones blow up


def field_options(field: str, width: int = 7, degree: int = 2) -> dict[str, Any]:
    """The arguments of `Network` that make this field."""
    options = {"width": width, "degree": degree}
    option = fields.FIELDS[field].option
    return {"field": field} | ({} if option is None else {option: options[option]})


@dataclass(frozen=True)
class Problem:
    """A network, controls, a direction of the controls, data, a direction of the data, labels and weights."""

    net: Network
    u: ocdl.Controls
    du: ocdl.Controls
    X: NDArray[Any]
    dX: NDArray[Any]
    y: NDArray[np.int64]
    sample_weight: NDArray[Any]

    @property
    def data(self) -> tuple[ocdl.Controls, NDArray[Any], NDArray[np.int64]]:
        return self.u, self.X, self.y


def random_problem(net: Network, samples: int, seed: int = 0) -> Problem:
    """Controls of a size that keeps the flow tame; on free networks steps of both signs, one of them 0.

    Outputs are at most 4: the squared loss of a larger one is the square of 1 minus a number close to 1.
    """
    rng = np.random.default_rng(seed)
    u = net.from_vector(rng.normal(size=net.n_controls))
    tame_field(net, u)
    if net.residual:
        u.h[...] = rng.uniform(0.2, 1.8, net.n_layers) * net.horizon / net.n_layers
        if net.time_steps == "free":
            u.h[...] *= rng.choice([-1, 1], net.n_layers)
            u.h[rng.integers(net.n_layers)] = 0 if net.n_layers > 1 else u.h[0]
        if net.time_steps == "simplex":
            u.h[...] = ocdl.project_simplex(u.h, net.horizon)
    if net.residual and not net.tableau.is_explicit:
        tame_stage_equations(net, u)
    X, dX = (rng.normal(size=(samples, net.n_features)).astype(net.dtype) for _ in range(2))
    excess = max(1.0, float(np.abs(net.predict(u, X)).max()) / 4)
    u.W[...] /= excess
    u.mu[...] /= excess
    du = net.from_vector(rng.normal(size=net.n_controls))
    y = rng.integers(0, max(net.n_outputs, 2), samples)
    return Problem(net, u, du, X, dX, y, rng.uniform(0, 2, samples).astype(net.dtype))


def tame_field(net: Network, u: ocdl.Controls) -> None:
    """Give the field slopes of size 1, whatever its dimension and width."""
    for part in net.parts:
        if part.role != "field" or part.axes[-2] in ("layers", "intervals", "stages"):
            continue
        size = np.sqrt(part.shape[-1])
        if part.axes[-1] == "monomials":
            assert net.degree is not None
            size *= net.degree / SMOOTH_ENOUGH
        getattr(u, part.name)[...] /= size


def tame_stage_equations(net: Network, u: ocdl.Controls, limit: float = 0.25) -> None:
    """Scale matrices until the stage equations are a contraction by `limit`, and so have one solution."""
    factor = np.abs(u.h).max() * np.abs(net.tableau.A).sum(axis=1).max()
    if net.field == "polynomial":  # of samples of size 4 or less
        reach = net.degree * 4.0 ** (net.degree - 1) * np.sqrt(u.C.shape[-1])
        u.C[...] *= min(1.0, limit / (factor * reach * np.linalg.norm(u.C, 2, axis=(-2, -1)).max()))
        return
    norms = {name: np.linalg.norm(net._swept_parts(u)[name], 2, axis=(-2, -1)) for name in "KVA" if hasattr(u, name)}
    if net.field == "mlp":
        for slopes, name in ((norms["K"] * norms["V"], "V"), (norms["A"], "A")):
            getattr(u, name)[...] *= min(1.0, limit / 2 / (factor * slopes.max()))
        return
    degree = 2 if net.field in ("hamiltonian", "gradient") else 1
    rate = factor * (norms["K"] ** degree).max()
    if rate > limit:
        u.K[...] *= (limit / rate) ** (1 / degree)


@st.composite
def explicit_tableaux(draw: st.DrawFn, *, zero_weights: bool | None = None) -> Tableau:
    """A strictly lower triangular, b summing to 1, at most 5 in size; some weights are 0, none, or either."""
    with_zeros = draw(st.booleans()) if zero_weights is None else zero_weights
    stages = draw(st.integers(2 if with_zeros else 1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    A = np.tril(rng.uniform(-1, 1, (stages, stages)), -1)
    A[rng.random(A.shape) < 0.2] = 0
    b = rng.uniform(0.1, 1, stages)
    if with_zeros:
        b[rng.permutation(stages)[: rng.integers(1, stages)]] = 0
    elif stages > 1:
        b[rng.integers(stages)] *= rng.choice([-0.3, 1])
    assume(np.abs(b).max() <= 5 * abs(b.sum()))
    return Tableau(A, b / b.sum())


@st.composite
def implicit_tableaux(draw: st.DrawFn, *, zero_weights: bool | None = None) -> Tableau:
    """An explicit tableau with some entries on and above the diagonal: any pattern of groups."""
    explicit = draw(explicit_tableaux(zero_weights=zero_weights))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    upper = np.triu(rng.uniform(-1, 1, explicit.A.shape))
    upper[rng.random(upper.shape) < draw(st.sampled_from([0.2, 0.8]))] = 0
    return Tableau(explicit.A + upper, explicit.b)


def any_tableaux(*, zero_weights: bool | None = None) -> st.SearchStrategy[Tableau]:
    return explicit_tableaux(zero_weights=zero_weights) | implicit_tableaux(zero_weights=zero_weights)


@st.composite
def problems(
    draw: st.DrawFn,
    *,
    tableau: st.SearchStrategy[Tableau] | None = None,
    residual: bool | None = None,
    max_layers: int = 30,
    max_dim: int = 12,
    max_samples: int = 20,
) -> Problem:
    """Networks of every kind: random tableaux, feed-forward or not, stage controls, augmentation, all sigma and f."""
    is_residual = draw(st.sampled_from([True, True, True, False])) if residual is None else residual
    features = draw(st.integers(1, max_dim))
    augment = draw(st.integers(0, 3))
    field = draw(st.sampled_from(FIELDS if is_residual else FIELDS[:1]))
    if fields.FIELDS[field].needs_even_dim:
        augment += (features + augment) % 2
    net = Network(
        features,
        draw(st.integers(1, max_layers)),
        n_outputs=draw(st.integers(1, 4)),
        tableau=draw(any_tableaux() if tableau is None else tableau) if is_residual else "euler",
        residual=is_residual,
        **field_options(field, draw(st.integers(1, 20)), draw(st.integers(1, 3 if features + augment < 5 else 2))),
        activation=draw(st.sampled_from(ACTIVATIONS)),
        time_steps="free" if is_residual else "fixed",
        horizon=draw(st.sampled_from([0.5, 1.0, 2.0])),
        augment=augment,
        stage_controls=draw(st.booleans()),
    )
    return random_problem(net, draw(st.integers(1, max_samples)), draw(st.integers(0, 2**32)))


objectives = st.builds(ocdl.Objective, st.sampled_from(LOSSES), reduction=st.sampled_from(REDUCTIONS))
