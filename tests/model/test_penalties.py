"""Penalties act on the parts that they name and on nothing else; they are values that files can hold."""

from __future__ import annotations

import itertools
import json
import pickle
from typing import Any

import numpy as np
import pytest
from problems import random_problem

import ocdl
from ocdl import L1, EvenSteps, Network, Objective, Penalty, Tikhonov, TimeSmoothness
from ocdl.model.penalties import PENALTIES, penalties_from_list, penalties_to_list

NET = Network(2, 4, n_outputs=3, tableau="midpoint", time_steps="free", stage_controls=True, augment=1)
PROBLEM = random_problem(NET, samples=7)
NAMES = [part.name for part in NET.parts]
USUAL = [part.name for part in NET.parts if part.role != "steps"]
CHOICES = [parts for size in (1, 2, 5) for parts in itertools.combinations(NAMES, size)]
WITH_PARTS = {"tikhonov": Tikhonov, "l1": L1}


def contribution(penalties: Penalty | list[Penalty]) -> tuple[float, ocdl.Controls]:
    """Return what penalties add to the value and to the gradient."""
    plain, penalised = (NET.value_and_grad(*PROBLEM.data, Objective(penalties=r)) for r in (None, penalties))
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
    value, gradient = contribution(WITH_PARTS[name](0.3, parts))
    expected, gradients = formula(name, 0.3, USUAL if parts is None else parts)
    assert value == pytest.approx(expected, rel=1e-12)
    for part in NAMES:
        reference = gradients.get(part, np.zeros_like(getattr(gradient, part)))
        np.testing.assert_allclose(getattr(gradient, part), reference, rtol=1e-11, atol=1e-14)


def test_penalties_are_added() -> None:
    terms = [Tikhonov(0.3, ("K", "W")), L1(0.2, ["h"]), Tikhonov(0.1), TimeSmoothness(0.5)]
    value, gradient = contribution(terms)
    pieces = [contribution(term) for term in terms]
    assert value == pytest.approx(sum(block[0] for block in pieces), rel=1e-12)
    expected = sum(block[1].to_vector() for block in pieces)
    np.testing.assert_allclose(gradient.to_vector(), expected, rtol=1e-11, atol=1e-14)


def test_curvature_products_of_penalties_on_parts() -> None:
    du, objective = PROBLEM.du, Objective(penalties=Tikhonov(0.7, ("b", "mu")))
    for product in (NET.hessian_product, NET.gauss_newton_product):
        added = product(*PROBLEM.data, objective, du=du) - product(*PROBLEM.data, Objective(), du=du)
        for part in NAMES:
            reference = 0.7 * getattr(du, part) * (part in ("b", "mu"))
            np.testing.assert_allclose(getattr(added, part), reference, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", WITH_PARTS)
def test_unknown_parts_are_named_with_the_known_ones(name: str) -> None:
    objective = Objective(penalties=WITH_PARTS[name](1.0, ("K", "pudding")))
    for call in (NET.value, NET.value_and_grad, NET.adjoint):
        with pytest.raises(
            ValueError, match=r"penalties: .* names the part 'pudding'; the parts of this network are K, b"
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


EXAMPLES = [Tikhonov(0.5), Tikhonov(1, ["K", "K", "b"]), L1(0.25, {"W": 1}), TimeSmoothness(2), EvenSteps(0)]


@pytest.mark.parametrize("penalty", EXAMPLES, ids=repr)
def test_penalties_are_values(penalty: Penalty) -> None:
    (stored,) = penalties_from_list(json.loads(json.dumps(penalties_to_list([penalty]))))
    for twin in (eval(repr(penalty), vars(ocdl)), pickle.loads(pickle.dumps(penalty)), stored):
        assert type(twin) is type(penalty)
        assert (twin, hash(twin)) == (penalty, hash(penalty))
    with pytest.raises(AttributeError, match="cannot assign to field"):
        penalty.weight = 1.0
    assert penalty not in (L1(0.5), Tikhonov(0.5, ["K"]), 0.5)


def test_an_objective_takes_one_penalty_or_several() -> None:
    one, several = Tikhonov(1), [Tikhonov(1, ("K",)), L1(3)]
    assert Objective(penalties=one).penalties == Objective(penalties=[one]).penalties == (one,)
    assert Objective(penalties=several).penalties == tuple(several)
    assert Objective().penalties == Objective(penalties=[]).penalties == ()
    for wrong in (1.0, "l1", [one, "l1"], {one}, L1, [None]):
        with pytest.raises(TypeError, match=r"penalties must be one of Tikhonov, .* or None, got"):
            Objective(penalties=wrong)


def test_penalties_of_weight_zero_do_not_count() -> None:
    value, gradient = contribution([L1(0), Tikhonov(0)])
    assert value == 0
    assert not gradient.to_vector().any()
    assert not Objective(penalties=L1(0))._nonsmooth_penalties


def test_the_base_class_is_no_penalty_itself() -> None:
    assert all(issubclass(kind, Penalty) for kind in PENALTIES.values())
    with pytest.raises(TypeError, match="Penalty is a base class"):
        Penalty()
    with pytest.raises(TypeError, match="Penalty cannot be subclassed by Mine"):

        class Mine(Penalty):
            name = "mine"


@pytest.mark.parametrize(
    "stored",
    [
        *(None, {}, "x", [1], [["tikhonov", 1.0]], [["pudding", 1.0, None]], [["l1", -1.0, None]], [["l1", "1", None]]),
        *([["l1", 1.0, "K"]], [["l1", 1.0, []]], [["l1", 1.0, [3]]], [[3, 1.0, None]], [["even_steps", 1.0, ["K"]]]),
    ],
    ids=repr,
)
def test_other_records_are_refused(stored: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        penalties_from_list(stored)
