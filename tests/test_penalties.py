"""Penalties act on the parts that they name and on nothing else; sums of them are values that files can hold."""

from __future__ import annotations

import itertools
import json
import pickle
from typing import Any

import numpy as np
import pytest
from problems import random_problem

import ocdl
from ocdl import L1, Network, Objective, Regulariser, Tikhonov, TimeSmoothness
from ocdl.model.penalties import PENALTIES, Penalty

NET = Network(2, 4, n_outputs=3, tableau="midpoint", time_steps="free", stage_controls=True, augment=1)
PROBLEM = random_problem(NET, samples=7)
NAMES = [part.name for part in NET.parts]
USUAL = [part.name for part in NET.parts if part.role != "steps"]
CHOICES = [parts for size in (1, 2, 5) for parts in itertools.combinations(NAMES, size)]
WITH_PARTS = {"tikhonov": Tikhonov, "l1": L1}


def penalty_of(regulariser: Regulariser) -> tuple[float, ocdl.Controls]:
    """What it adds to the value and to the gradient."""
    plain, penalised = (NET.value_and_grad(*PROBLEM.data, Objective(regulariser=r)) for r in (None, regulariser))
    return penalised[0] - plain[0], penalised[1] - plain[1]


def formula(name: str, weight: float, parts: Any) -> tuple[float, dict[str, np.ndarray]]:
    u = {part: getattr(PROBLEM.u, part) for part in parts}
    if name == "tikhonov":
        return weight / 2 * sum(float((x**2).sum()) for x in u.values()), {part: weight * x for part, x in u.items()}
    return weight * sum(float(np.abs(x).sum()) for x in u.values()), {
        part: weight * np.sign(x) for part, x in u.items()
    }


@pytest.mark.parametrize("parts", [None, *CHOICES], ids=str)
@pytest.mark.parametrize("name", WITH_PARTS)
def test_a_penalty_acts_on_its_parts_alone(name: str, parts: Any) -> None:
    value, gradient = penalty_of(WITH_PARTS[name](0.3, parts))
    expected, slopes = formula(name, 0.3, USUAL if parts is None else parts)
    assert value == pytest.approx(expected, rel=1e-12)
    for part in NAMES:
        wanted = slopes.get(part, np.zeros_like(getattr(gradient, part)))
        np.testing.assert_allclose(getattr(gradient, part), wanted, rtol=1e-11, atol=1e-14)


def test_a_sum_is_the_sum_of_its_terms() -> None:
    terms = [Tikhonov(0.3, ("K", "W")), L1(0.2, ["h"]), Tikhonov(0.1), TimeSmoothness(0.5)]
    total = terms[0] + terms[1] + terms[2] + terms[3]
    assert len(total.terms) == 4
    value, gradient = penalty_of(total)
    pieces = [penalty_of(term) for term in terms]
    assert value == pytest.approx(sum(piece[0] for piece in pieces), rel=1e-12)
    expected = sum(piece[1].to_vector() for piece in pieces)
    np.testing.assert_allclose(gradient.to_vector(), expected, rtol=1e-11, atol=1e-14)


def test_curvature_products_see_the_parts() -> None:
    du, objective = PROBLEM.du, Objective(regulariser=Tikhonov(0.7, ("b", "mu")))
    for product in (NET.hessian_product, NET.gauss_newton_product):
        added = product(*PROBLEM.data, objective, du) - product(*PROBLEM.data, Objective(), du)
        for part in NAMES:
            wanted = 0.7 * getattr(du, part) * (part in ("b", "mu"))
            np.testing.assert_allclose(getattr(added, part), wanted, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", WITH_PARTS)
def test_unknown_parts_are_named_with_those_that_there_are(name: str) -> None:
    objective = Objective(regulariser=WITH_PARTS[name](1.0, ("K", "pudding")))
    for call in (NET.value, NET.value_and_grad, NET.adjoint):
        with pytest.raises(
            ValueError, match=r"regulariser: .* names the part 'pudding'; the parts of this network are K, b"
        ):
            call(*PROBLEM.data, objective)
    with pytest.raises(ValueError, match="names the part 'pudding'"):
        ocdl.train(NET, PROBLEM.u, PROBLEM.X, PROBLEM.y, objective=objective)


@pytest.mark.parametrize("build", WITH_PARTS.values())
def test_wrong_parts(build: Any) -> None:
    for bad in ("K", b"K", 3, 1.5):
        with pytest.raises(TypeError, match="parts must be a collection of names"):
            build(1.0, bad)
    with pytest.raises(TypeError, match="a name in parts must be a string"):
        build(1.0, [1])
    with pytest.raises(ValueError, match="parts must name at least one part"):
        build(1.0, [])


EXAMPLES = [
    Regulariser(),
    Tikhonov(0.5),
    Tikhonov(1, ["K", "K", "b"]),
    L1(0.25, {"W": 1}) + TimeSmoothness(2),
    Tikhonov(1e-3, ("K", "W")) + L1(1e-4, ("b",)) + Tikhonov(1e-4),
]


@pytest.mark.parametrize("regulariser", EXAMPLES, ids=repr)
def test_regularisers_are_values(regulariser: Regulariser) -> None:
    built = eval(repr(regulariser), {"Tikhonov": Tikhonov, "L1": L1, "TimeSmoothness": TimeSmoothness} | vars(ocdl))
    stored = json.loads(json.dumps(regulariser.to_list()))
    for twin in (built, pickle.loads(pickle.dumps(regulariser)), Regulariser.from_list(stored)):
        assert twin == regulariser
        assert hash(twin) == hash(regulariser)
    assert regulariser + Regulariser() == regulariser
    with pytest.raises(AttributeError, match="a Regulariser does not change"):
        regulariser.terms = ()  # type: ignore[misc]


def test_sums_do_not_depend_on_their_order_and_merge_equal_terms() -> None:
    terms = [Tikhonov(1, ("K",)), Tikhonov(2), L1(3), TimeSmoothness(4)]
    sums = {sum(order[1:], order[0]) for order in itertools.permutations(terms)}
    assert len(sums) == 1
    assert Tikhonov(1, ("K",)) + Tikhonov(2, ("K",)) == Tikhonov(3, ("K",)) != Tikhonov(3)
    assert Tikhonov(0, ("K",)) == Regulariser()
    total = sums.pop()
    assert (total.tikhonov, total.l1, total.time_smoothness) == (2, 3, 4)
    assert [getattr(Tikhonov(1, ("K",)), name) for name in PENALTIES] == [0.0] * len(PENALTIES)


@pytest.mark.parametrize(
    "stored",
    [
        *(None, {}, "x", [1], [["tikhonov", 1.0]], [["pudding", 1.0, None]], [["l1", -1.0, None]], [["l1", "1", None]]),
        *([["l1", 1.0, "K"]], [["l1", 1.0, []]], [["l1", 1.0, [3]]], [[3, 1.0, None]]),
    ],
    ids=repr,
)
def test_what_is_no_list_of_terms_is_refused(stored: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        Regulariser.from_list(stored)


def test_terms_are_penalties() -> None:
    assert Regulariser(Penalty("l1", 2)) == L1(2)
    with pytest.raises(TypeError, match="terms must be Penalty records, got Regulariser"):
        Regulariser(Tikhonov(1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the name of a penalty must be one of 'tikhonov'"):
        Regulariser(pudding=1.0)
    with pytest.raises(AttributeError, match="a Regulariser has no 'pudding'; its penalties are tikhonov"):
        Tikhonov(1).pudding  # noqa: B018
