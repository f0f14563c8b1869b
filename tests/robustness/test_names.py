"""Spellings of names, and what `known_keywords` leaves as it is."""

from __future__ import annotations

import argparse
import copy
import inspect
import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import ocdl
from ocdl import Network, Objective, Tableau, _core
from ocdl.base.keywords import known_keywords
from ocdl.base.names import resolve_name, suggestion
from ocdl.cli._output import name_parser
from ocdl.model import activations, architecture, losses, penalties, tableau
from ocdl.model.fields import FIELDS_WITHOUT_OPTION
from ocdl.training import optimisers

NET = Network(2, 3)
U = NET.init(random_state=0)
X, Y = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1])
OPTIMISERS = {kind.__name__: kind for kind in optimisers.SINGLE_OPTIMISERS}


def of_penalty(name: str) -> list[Any]:
    """What is stored of a penalty behind its weight."""
    return [["K"], "dim"] if "group" in name.lower().translate({ord(c): None for c in "-_ "}) else [None]


# What has names: how a name becomes the one that is stored, the names, and their aliases.
Named = tuple[Callable[[str], str], Iterable[str], Mapping[str, str]]
NAMED: dict[str, Named] = {
    "tableau": (lambda name: Network(2, 3, tableau=name).tableau.name or "", ocdl.tableaux(), tableau.ALIASES),
    "Tableau.named": (lambda name: Tableau.named(name).name or "", ocdl.tableaux(), tableau.ALIASES),
    "activation": (
        lambda name: Network(2, 3, activation=name).activation,
        activations.ACTIVATIONS,
        activations.ALIASES,
    ),
    "field": (lambda name: Network(2, 3, field=name).field, FIELDS_WITHOUT_OPTION, {}),
    "time_steps": (lambda name: Network(2, 3, time_steps=name).time_steps, architecture.TIME_STEPS, {}),
    "loss": (lambda name: str(Objective(name).loss), losses.LOSSES, losses.ALIASES),
    "reduction": (lambda name: Objective(reduction=name).reduction, ("mean", "sum"), {}),
    "penalty": (
        lambda name: penalties.penalties_from_list([[name, 1.0, *of_penalty(name)]])[0].name,
        penalties.PENALTIES,
        {},
    ),
    "curvature": (lambda name: ocdl.NewtonCG(curvature=name).curvature, _core.curvature_names(), {}),
    "optimiser": (
        lambda name: type(optimisers.optimiser_by_name(name)).__name__,
        [type(one).__name__ for one in optimisers.list_default_optimisers()],
        {"newton": "NewtonCG"},
    ),
}
EVERY_NAME = [
    pytest.param(store, known, aliases, name, id=f"{what} {name}")
    for what, (store, known, aliases) in NAMED.items()
    for name in known
]


@pytest.mark.parametrize(("store", "known", "aliases", "name"), EVERY_NAME)
def test_case_and_separators_do_not_matter(
    store: Callable[[str], str], known: Iterable[str], aliases: Mapping[str, str], name: str
) -> None:
    spellings = {name, name.upper(), name.title(), name.replace("_", "-"), name.replace("_", " "), f" {name} "}
    spellings |= {name.replace("_", ""), "_".join(name), np.str_(name)}
    spellings |= {alias for alias, canonical in aliases.items() if canonical == name}
    for spelling in spellings:
        assert store(spelling) == name
        assert type(store(spelling)) is str


@pytest.mark.parametrize(("known", "aliases"), [(known, aliases) for _, known, aliases in NAMED.values()], ids=NAMED)
def test_spellings_are_unambiguous(known: Iterable[str], aliases: Mapping[str, str]) -> None:
    assert set(aliases.values()) <= set(known)
    for name in known:
        assert resolve_name(name.upper(), known, aliases) == name
    for alias, name in aliases.items():
        assert resolve_name(alias, known) is None
        assert resolve_name(alias.upper(), known, aliases) == name


def test_an_ambiguous_spelling_is_no_name() -> None:
    assert resolve_name("a-b", ["a_b", "ab"]) is None
    assert resolve_name("ab", ["a_b", "ab"]) == "ab"
    assert resolve_name("AB", ["ab"], {"a b": "ab"}) == "ab"
    assert resolve_name("x", ["ab"], {"x": "gone"}) is None  # an alias of a name that is not offered here


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        *(("rk4", "kutta4"), ("RK4", "kutta4"), ("Kutta(4)", "kutta4"), ("Kutta(3)", "kutta3"), ("rk-38", "rk38")),
        *(("dopri5", "dormand_prince"), ("rk45", "dormand_prince"), ("Dormand-Prince", "dormand_prince")),
        *(("heun", "improved_euler"), ("Improved Euler", "improved_euler"), ("ImprovedEuler", "improved_euler")),
        *(("Euler", "euler"), ("ResNet/Euler", "euler"), ("Radau IIA-2", "radau_iia2")),
    ],
)
def test_tableaux_have_the_names_that_people_type(spelling: str, name: str) -> None:
    assert Network(2, 3, tableau=spelling) == Network(2, 3, tableau=name)
    assert Tableau.named(spelling).name == name


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        *(
            ("Net", "net"),
            ("ResNet", "resnet"),
            ("res-net", "resnet"),
            ("ResNet/Euler", "resnet"),
            ("ODENet", "odenet"),
        ),
        *(("ODENet+Simplex", "odenet+simplex"), ("ODENet + Simplex", "odenet+simplex")),
        ("odenet-simplex", "odenet+simplex"),
    ],
)
def test_architectures_have_the_papers_names(spelling: str, name: str) -> None:
    assert Network.preset(spelling, 2, 3) == Network.preset(name, 2, 3)


@pytest.mark.parametrize(
    ("spelling", "name"), [("MSE", "squared_error"), ("mae", "quantile"), ("absolute error", "quantile")]
)
def test_losses_have_the_names_of_other_libraries(spelling: str, name: str) -> None:
    assert Objective(spelling) == Objective(name)


def test_the_canonical_name_is_stored() -> None:
    typed = Network(2, 3, tableau="RK4", activation="Leaky ReLU", field="Dense", time_steps="FREE")
    plain = Network(2, 3, tableau="kutta4", activation="leaky_relu", field="dense", time_steps="free")
    assert (typed, hash(typed), repr(typed)) == (plain, hash(plain), repr(plain))
    objective = Objective("Cross-Entropy", reduction="Mean")
    assert (objective, hash(objective)) == (Objective("cross_entropy"), hash(Objective("cross_entropy")))
    assert ocdl.NewtonCG("Gauss-Newton") == ocdl.NewtonCG("gauss_newton")


def test_names_in_methods() -> None:
    np.testing.assert_array_equal(NET.init(0, "Scaled").K, NET.init(0, "scaled").K)
    refined = NET.refine(U, interpolation="Constant")[1]
    np.testing.assert_array_equal(refined.K, NET.refine(U, interpolation="constant")[1].K)
    typed = ocdl.train(NET, U, X, Y, max_iter=2, freeze=("w", "MU")).controls
    np.testing.assert_array_equal(typed.W, U.W)
    many = ocdl.train_multilevel(NET, U, X, Y, levels=1, max_iter=1, interpolation="LINEAR")
    assert many.n_iter == 1


def test_names_of_optimisers() -> None:
    for typed, name in (("adam", "Adam"), ("L-BFGS", "LBFGS"), ("newton_cg", "NewtonCG")):
        assert optimisers.optimiser_by_name(typed) == OPTIMISERS[name]()


def test_an_alias_is_suggested_by_its_name() -> None:
    assert suggestion("bleu", ["red"], {"Blue": "red"}) == "; did you mean 'red'?"


# ---- the command line ----


@pytest.mark.parametrize(
    ("text", "name"), [("RK4", "kutta4"), ("euler", "euler"), ("Improved-Euler", "improved_euler")]
)
def test_options_are_spelled_like_arguments(text: str, name: str) -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("--tableau", type=name_parser(ocdl.tableaux(), tableau.ALIASES))
    assert parser.parse_args(["--tableau", text]).tableau == name
    for wrong, hint in (("kuta4", "; did you mean 'kutta4'?"), ("rk99", ")")):
        with pytest.raises(argparse.ArgumentError) as caught:
            parser.parse_args(["--tableau", wrong])
        assert str(caught.value).startswith(f"argument --tableau: invalid choice: {wrong!r} (choose from euler, ")
        assert str(caught.value).endswith(hint)


# ---- keywords ----


def test_a_type_error_from_within_keeps_its_words() -> None:
    def callback(state: Any) -> None:
        dict.fromkeys((), optimizer=1)  # type: ignore[call-overload]

    with pytest.raises(TypeError) as caught:
        ocdl.train(NET, U, X, Y, max_iter=1, callback=callback)
    assert "did you mean" not in str(caught.value)


def test_signatures_stay() -> None:
    assert list(inspect.signature(ocdl.Adam).parameters) == [field.name for field in fields(ocdl.Adam)]
    assert list(inspect.signature(ocdl.train).parameters)[:4] == ["net", "u", "X", "y"]
    assert "tableau" in inspect.signature(Network).parameters
    for one in (ocdl.train, ocdl.train_multilevel, *OPTIMISERS.values()):
        assert pickle.loads(pickle.dumps(one)) is one
        assert one.__doc__
    assert (ocdl.train.__name__, ocdl.train.__module__) == ("train", "ocdl.training.loop")
    for value in (ocdl.Adam(lr=0.5), ocdl.GradientDescent(0.1), Objective("huber"), NET):
        assert copy.copy(value) == pickle.loads(pickle.dumps(value)) == value


class Estimator(BaseEstimator):  # type: ignore[misc]
    @known_keywords({"lr": "learning_rate"})
    def __init__(self, *, optimiser: Any = None, learning_rate: float = 0.1) -> None:
        self.optimiser = optimiser
        self.learning_rate = learning_rate


def test_estimators_keep_their_parameters() -> None:
    estimator = Estimator(optimiser="adam")
    assert estimator.get_params() == {"learning_rate": 0.1, "optimiser": "adam"}
    assert clone(estimator).set_params(learning_rate=1).learning_rate == 1
    with pytest.raises(TypeError, match=r"Estimator\(\) got .* 'optimizer'; did you mean 'optimiser'\?"):
        Estimator(optimizer="adam")
    with pytest.raises(TypeError, match=r"'lr'; did you mean 'learning_rate'\?"):
        Estimator(lr=1)


def test_positional_only_and_collecting_functions() -> None:
    @known_keywords()
    def one(a: int, /, *rest: int, b: int = 0) -> int:
        return a + sum(rest) + b

    assert one(1, 2, b=3) == 6
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'a'$"):
        one(1, a=1)
