"""Tableaux: the theorems hold in exact rational arithmetic, misuse is named, values behave like values."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ocdl
from ocdl import Tableau

HIGHEST_ORDER = 6
ROUNDOFF = 1e-13

# Coefficients that are no fractions are checked in floating-point numbers, by the same conditions.
IRRATIONAL = ("sdirk2", "gauss2", "gauss3")
RATIONAL = [name for name in ocdl.tableaux() if name not in IRRATIONAL]

named_tableaux = pytest.mark.parametrize("tableau", [Tableau.named(name) for name in ocdl.tableaux()], ids=repr)
rational_tableaux = pytest.mark.parametrize("tableau", [Tableau.named(name) for name in RATIONAL], ids=repr)
irrational_tableaux = pytest.mark.parametrize("tableau", [Tableau.named(name) for name in IRRATIONAL], ids=repr)
with_partner = pytest.mark.parametrize(
    "tableau", [t for t in map(Tableau.named, RATIONAL) if np.all(t.b != 0)], ids=repr
)
without_partner = pytest.mark.parametrize(
    "tableau", [t for t in map(Tableau.named, ocdl.tableaux()) if np.any(t.b == 0)], ids=repr
)


# A rooted tree is the sorted tuple of its branches; the single node is ().
@cache
def trees_with(nodes: int) -> set[tuple]:
    if nodes == 1:
        return {()}
    return {
        tuple(sorted(forest))
        for count in range(1, nodes)
        for sizes in combinations_with_replacement(range(1, nodes), count)
        if sum(sizes) == nodes - 1
        for forest in forests(sizes)
    }


def forests(sizes: tuple[int, ...]) -> list[tuple]:
    if not sizes:
        return [()]
    return [(tree, *rest) for tree in trees_with(sizes[0]) for rest in forests(sizes[1:])]


def size(tree: tuple) -> int:
    return 1 + sum(map(size, tree))


def density(tree: tuple) -> int:
    return size(tree) * prod(map(density, tree))


def internal_weights(tree: tuple, A: list) -> list:
    """The i-th entry sums over all maps of the nodes to stages that send the root to i."""
    branches = [internal_weights(branch, A) for branch in tree]
    return [prod((dot(row, branch) for branch in branches), start=1) for row in A]


def dot(left: list, right: list) -> Any:
    return sum(x * y for x, y in zip(left, right, strict=True))


def satisfies_all_conditions_of(order: int, A: list[list[Fraction]], b: list[Fraction]) -> bool:
    return all(dot(b, internal_weights(tree, A)) * density(tree) == 1 for tree in trees_with(order))


def rational(coefficient: float) -> Fraction:
    fraction = Fraction(coefficient).limit_denominator(10**6)
    assert float(fraction) == coefficient
    return fraction


def rounded_from(coefficient: float) -> Fraction:
    """The fraction of small denominator from which a computed coefficient differs by its roundoff only."""
    fraction = Fraction(coefficient).limit_denominator(10**4)
    assert abs(float(fraction) - coefficient) <= ROUNDOFF * max(1, abs(coefficient))
    return fraction


def rational_coefficients(tableau: Tableau) -> tuple[list[list[Fraction]], list[Fraction]]:
    return [[rational(a) for a in row] for row in tableau.A.tolist()], [rational(w) for w in tableau.b.tolist()]


def is_symplectic_partner(partner: Tableau, A: list[list[Fraction]], b: list[Fraction]) -> bool:
    """b_i a~_ij + b~_j a_ji - b_i b~_j = 0, exactly, with the fractions that the partner's coefficients come from."""
    A_partner = [[rounded_from(a) for a in row] for row in partner.A.tolist()]
    b_partner = [rounded_from(weight) for weight in partner.b.tolist()]
    stages = range(len(b))
    return all(b[i] * A_partner[i][j] + b_partner[j] * A[j][i] == b[i] * b_partner[j] for i in stages for j in stages)


def test_there_are_as_many_rooted_trees_as_cayley_counted() -> None:
    assert [len(trees_with(nodes)) for nodes in range(1, 7)] == [1, 1, 2, 4, 9, 20]


@rational_tableaux
def test_order_conditions_hold_up_to_the_order_and_fail_beyond(tableau: Tableau) -> None:
    A, b = rational_coefficients(tableau)
    assert all(satisfies_all_conditions_of(order, A, b) for order in range(1, tableau.order + 1))
    assert tableau.order == HIGHEST_ORDER or not satisfies_all_conditions_of(tableau.order + 1, A, b)


@irrational_tableaux
def test_order_conditions_of_irrational_coefficients_hold_to_roundoff(tableau: Tableau) -> None:
    A, b = tableau.A.tolist(), tableau.b.tolist()

    def worst_defect(order: int) -> float:
        return max(abs(dot(b, internal_weights(tree, A)) * density(tree) - 1) for tree in trees_with(order))

    assert all(worst_defect(order) <= ROUNDOFF for order in range(1, tableau.order + 1))
    assert tableau.order == HIGHEST_ORDER or worst_defect(tableau.order + 1) >= 1e-3


def test_implicit_methods_have_the_coefficients_of_their_names() -> None:
    """Gauss: collocation at the roots of the Legendre polynomials. Radau: c_s = 1, the last row of A is b."""
    for name, stages in (("implicit_midpoint", 1), ("gauss2", 2), ("gauss3", 3)):
        tableau = Tableau.named(name)
        nodes, weights = np.polynomial.legendre.leggauss(stages)
        np.testing.assert_allclose(tableau.c, (1 + nodes) / 2, atol=ROUNDOFF)
        np.testing.assert_allclose(tableau.b, weights / 2, atol=ROUNDOFF)
        np.testing.assert_allclose(tableau.adjoint().A, tableau.A, atol=ROUNDOFF)  # symplectic: its own partner
        assert tableau.order == 2 * stages
    for name in ("implicit_euler", "trapezoidal", "radau_iia2", "sdirk2"):
        tableau = Tableau.named(name)
        np.testing.assert_array_equal(tableau.A[-1], tableau.b)
        assert tableau.c[-1] == pytest.approx(1, abs=ROUNDOFF)
    gamma = Tableau.named("sdirk2").A[0, 0]
    assert 2 * gamma**2 - 4 * gamma + 1 == pytest.approx(0, abs=ROUNDOFF)  # which makes it L-stable


@rational_tableaux
def test_abscissae_are_row_sums(tableau: Tableau) -> None:
    A, _ = rational_coefficients(tableau)
    np.testing.assert_allclose(tableau.c, [float(sum(row)) for row in A], rtol=ROUNDOFF, atol=ROUNDOFF)


@named_tableaux
def test_abscissae_have_the_same_bits_under_every_instruction_set(tableau: Tableau) -> None:
    """They are summed from left to right, one after the other; files compare tableaux by their bits."""
    expected = np.zeros(tableau.stages)
    for column in tableau.A.T:
        expected += column
    assert Tableau(tableau.A, tableau.b).c.tobytes() == expected.tobytes()


@with_partner
def test_the_pair_with_the_partner_is_symplectic(tableau: Tableau) -> None:
    assert is_symplectic_partner(tableau.adjoint(), *rational_coefficients(tableau))
    np.testing.assert_array_equal(tableau.adjoint().b, tableau.b)


@without_partner
def test_a_zero_weight_has_no_partner(tableau: Tableau) -> None:
    stage = 1 + tableau.b.tolist().index(0)
    with pytest.raises(ValueError, match=f"b is 0 at stage {stage} of {tableau.name}; choose a tableau"):
        tableau.adjoint()


def test_the_papers_table_1() -> None:
    papers = {
        "euler": ([[0]], [1]),
        "improved_euler": ([[0, 0], [1, 0]], [1 / 2, 1 / 2]),
        "kutta3": ([[0, 0, 0], [1 / 2, 0, 0], [-1, 2, 0]], [1 / 6, 2 / 3, 1 / 6]),
        "kutta4": (
            [[0, 0, 0, 0], [1 / 2, 0, 0, 0], [0, 1 / 2, 0, 0], [0, 0, 1, 0]],
            [1 / 6, 1 / 3, 1 / 3, 1 / 6],
        ),
    }
    for name, (A, b) in papers.items():
        assert Tableau.named(name) == Tableau(A, b)


def test_names() -> None:
    explicit = "euler improved_euler kutta3 kutta4 midpoint ralston heun3 ssprk3 rk38 kutta5 dormand_prince"
    implicit = "implicit_euler implicit_midpoint trapezoidal gauss2 gauss3 radau_iia2 sdirk2"
    assert {*explicit.split(), *implicit.split()} <= set(ocdl.tableaux())
    assert all(Tableau.named(name).name == name for name in ocdl.tableaux())
    assert all(Tableau.named(name).is_explicit for name in explicit.split())
    assert not any(Tableau.named(name).is_explicit for name in implicit.split())


twelfths = st.integers(-24, 24).map(lambda numerator: Fraction(numerator, 12))


@st.composite
def random_coefficients(draw: st.DrawFn) -> tuple[list[list[Fraction]], list[Fraction]]:
    """Any tableau of one to four stages, implicit ones included, without zero weights."""
    stages = draw(st.integers(1, 4))
    A = [[draw(twelfths) for _ in range(stages)] for _ in range(stages)]
    b = [draw(twelfths.filter(bool)) for _ in range(stages - 1)]
    last = 1 - sum(b, start=Fraction(0))
    return (A, [*b, last]) if last else (A, [*b[:-1], b[-1] / 2, b[-1] / 2])


@given(random_coefficients())
def test_random_tableaux_have_the_order_of_their_fractions(
    coefficients: tuple[list[list[Fraction]], list[Fraction]],
) -> None:
    A, b = coefficients
    tableau = Tableau(A, b)
    assert tableau.is_explicit == all(A[i][j] == 0 for i in range(len(b)) for j in range(i, len(b)))
    conditions = [satisfies_all_conditions_of(order, A, b) for order in range(1, HIGHEST_ORDER + 1)]
    assert tableau.order == [*conditions, False].index(False)


@given(random_coefficients())
def test_the_partner_of_a_random_tableau_is_symplectic_and_an_involution(
    coefficients: tuple[list[list[Fraction]], list[Fraction]],
) -> None:
    A, b = coefficients
    tableau = Tableau(A, b)
    partner = tableau.adjoint()
    assert is_symplectic_partner(partner, A, b)
    np.testing.assert_allclose(partner.adjoint().A, tableau.A, rtol=1e-9, atol=1e-9)


@given(st.integers(1, 12).map(lambda numerator: Fraction(numerator, 12)))
def test_the_second_order_family(theta: Fraction) -> None:
    tableau = Tableau([[0, 0], [theta, 0]], [1 - 1 / (2 * theta), 1 / (2 * theta)])
    assert (tableau.order, tableau.is_explicit) == (2, True)


def test_implicit_tableaux_are_accepted() -> None:
    root = 3**0.5 / 6
    gauss = Tableau([[1 / 4, 1 / 4 - root], [1 / 4 + root, 1 / 4]], [1 / 2, 1 / 2], name="mine")
    assert (gauss.stages, gauss.order, gauss.is_explicit, gauss.name) == (2, 4, False, "mine")
    np.testing.assert_allclose(gauss.adjoint().A, gauss.A, rtol=ROUNDOFF)


def test_abscissae_are_kept_when_given() -> None:
    tableau = Tableau([[0, 0], [1, 0]], [0.5, 0.5], [0.25, 0.75])
    assert tableau.c.tolist() == [0.25, 0.75]
    assert tableau.order == 2


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([[0, 0]], [1]), ValueError, r"A must be a square matrix .* got shape \(1, 2\)"),
        ((np.zeros((0, 0)), []), ValueError, "A must be a square matrix .* at least one"),
        (([0], [1]), ValueError, r"A must be an array of 2 dimension\(s\), got 1: shape \(1,\)"),
        (([[0]], [[1]]), ValueError, r"b must be an array of 1 dimension\(s\), got 2: shape \(1, 1\)"),
        (([[0]], [1], 0), ValueError, r"c must be an array of 1 dimension\(s\), got 0: shape \(\)"),
        (([[0], [1, 0]], [1, 0]), ValueError, "A must be an array of real numbers, got a ragged sequence"),
        (([[0]], [1, 0]), ValueError, "b must have length 1, one entry for each stage of A; got length 2"),
        (([[0]], [1], [0, 0]), ValueError, "c must have length 1, one entry for each stage of A; got length 2"),
        (([[np.nan]], [1]), ValueError, r"A\[0, 0\] is nan; all of A must be finite"),
        (([[0]], [np.inf]), ValueError, r"b\[0\] is inf; all of b must be finite"),
        (([[0]], [1], [-np.inf]), ValueError, r"c\[0\] is -inf; all of c must be finite"),
        (([[10**400]], [1]), ValueError, "A must hold finite numbers, got one beyond the range of float64"),
        (([[0, 0], [1, 0]], [0.5, 0.25]), ValueError, "b must sum to 1; got a sum of 0.75"),
        (([["0"]], [1]), TypeError, "A must hold real numbers, got dtype <U1"),
        (([[0]], "1"), TypeError, "b must hold real numbers, got dtype <U1"),
        (([[1j]], [1]), TypeError, "A must hold real numbers, got dtype complex128"),
        (([[0]], [Fraction(1)], [None]), TypeError, "c must hold real numbers, got None"),
        ((None, [1]), TypeError, "A must hold real numbers, got None"),
    ],
)
def test_wrong_coefficients_are_rejected_by_name(arguments: tuple, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Tableau(*arguments)


def test_wrong_names_are_rejected() -> None:
    with pytest.raises(ValueError, match=f"one of {', '.join(map(repr, ocdl.tableaux()))}, got 'rk99'$"):
        Tableau.named("rk99")
    with pytest.raises(TypeError, match="name must be a string, got int"):
        Tableau.named(4)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="name must be a string or None, got int"):
        Tableau([[0]], [1], name=4)  # type: ignore[arg-type]


def test_equality_and_hash_are_those_of_the_coefficients() -> None:
    euler = Tableau.named("euler")
    assert euler == Tableau([[0]], [1], name="another name")
    assert hash(euler) == hash(Tableau([[-0.0]], [1]))
    assert euler != Tableau([[0]], [1], [0.5])
    assert euler != Tableau.named("midpoint")
    assert euler != "euler"
    assert len({Tableau.named(name) for name in ocdl.tableaux()}) == len(ocdl.tableaux())


@named_tableaux
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda tableau: pickle.loads(pickle.dumps(tableau))])
def test_duplicates_are_equal(tableau: Tableau, duplicate) -> None:
    twin = duplicate(tableau)
    assert twin == tableau
    assert (twin.name, twin.order) == (tableau.name, tableau.order)


def test_a_pickle_keeps_given_abscissae_and_the_lack_of_a_name() -> None:
    twin = pickle.loads(pickle.dumps(Tableau([[0]], [1], [0.5])))
    assert (twin.c.tolist(), twin.name) == ([0.5], None)


def test_tableaux_are_immutable() -> None:
    source = np.array([[0.0]])
    tableau = Tableau(source, [1])
    source[0, 0] = 7
    assert tableau.A[0, 0] == 0
    for part in ("A", "b", "c", "name", "order", "new_attribute"):
        with pytest.raises(AttributeError, match=f"immutable: cannot assign '{part}'"):
            setattr(tableau, part, None)
    with pytest.raises(AttributeError, match="immutable: cannot delete"):
        del tableau.name
    for coefficients in (tableau.A, tableau.b, tableau.c):
        assert coefficients.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            coefficients[...] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            coefficients.flags.writeable = True


def test_coefficients_outlive_their_tableau() -> None:
    A = Tableau.named("kutta4").A
    assert A.tolist() == Tableau.named("kutta4").A.tolist()


def test_repr() -> None:
    assert repr(Tableau.named("kutta4")) == "<Tableau kutta4: 4 stages, order 4, explicit>"
    assert repr(Tableau([[1]], [1])) == "<Tableau: 1 stage, order 1, implicit>"
