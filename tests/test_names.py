"""Names and keywords as people type them: one thing is meant, or the message says which one may be."""

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
from ocdl.base import validation
from ocdl.base.keywords import known_keywords
from ocdl.base.names import did_you_mean, meant
from ocdl.cli._output import name_among
from ocdl.model import activations, architecture, losses, penalties, tableau
from ocdl.training import optimisers

NET = Network(2, 3)
U = NET.init(random_state=0)
X, Y = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1])
OPTIMISERS = {kind.__name__: kind for kind in optimisers.SINGLE_OPTIMISERS}

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
    "field": (lambda name: Network(2, 3, field=name).field, architecture.FIELDS, {}),
    "time_steps": (lambda name: Network(2, 3, time_steps=name).time_steps, architecture.TIME_STEPS, {}),
    "loss": (lambda name: str(Objective(name).loss), losses.LOSSES, losses.ALIASES),
    "reduction": (lambda name: Objective(reduction=name).reduction, ("mean", "sum"), {}),
    "penalty": (lambda name: penalties.Penalty(name, 1.0).name, penalties.PENALTIES, {}),
    "curvature": (lambda name: ocdl.NewtonCG(curvature=name).curvature, _core.curvature_names(), {}),
    "optimiser": (
        lambda name: type(optimisers.named(name)).__name__,
        [type(one).__name__ for one in optimisers.without_settings()],
        {"newton": "NewtonCG"},
    ),
}
EVERY_NAME = [
    pytest.param(store, known, aliases, name, id=f"{what} {name}")
    for what, (store, known, aliases) in NAMED.items()
    for name in known
]


@pytest.mark.parametrize(("store", "known", "aliases", "name"), EVERY_NAME)
def test_case_and_strokes_do_not_matter(
    store: Callable[[str], str], known: Iterable[str], aliases: Mapping[str, str], name: str
) -> None:
    spellings = {name, name.upper(), name.title(), name.replace("_", "-"), name.replace("_", " "), f" {name} "}
    spellings |= {name.replace("_", ""), "_".join(name), np.str_(name)}
    spellings |= {alias for alias, canonical in aliases.items() if canonical == name}
    for spelling in spellings:
        assert store(spelling) == name
        assert type(store(spelling)) is str


@pytest.mark.parametrize(("known", "aliases"), [(known, aliases) for _, known, aliases in NAMED.values()], ids=NAMED)
def test_no_spelling_means_two_things(known: Iterable[str], aliases: Mapping[str, str]) -> None:
    assert set(aliases.values()) <= set(known)
    for name in known:
        assert meant(name.upper(), known, aliases) == name
    for alias, name in aliases.items():
        assert meant(alias, known) is None
        assert meant(alias.upper(), known, aliases) == name


def test_a_spelling_of_two_names_is_neither() -> None:
    assert meant("a-b", ["a_b", "ab"]) is None
    assert meant("ab", ["a_b", "ab"]) == "ab"
    assert meant("AB", ["ab"], {"a b": "ab"}) == "ab"
    assert meant("x", ["ab"], {"x": "gone"}) is None  # an alias of a name that is not offered here


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


def test_what_is_stored_is_the_name() -> None:
    typed = Network(2, 3, tableau="RK4", activation="Leaky ReLU", field="Dense", time_steps="FREE")
    plain = Network(2, 3, tableau="kutta4", activation="leaky_relu", field="dense", time_steps="free")
    assert (typed, hash(typed), repr(typed)) == (plain, hash(plain), repr(plain))
    objective = Objective("Cross-Entropy", "Mean")
    assert (objective, hash(objective)) == (Objective("cross_entropy"), hash(Objective("cross_entropy")))
    assert ocdl.NewtonCG("Gauss-Newton") == ocdl.NewtonCG("gauss_newton")
    assert ocdl.Regulariser(Tikhonov=1.0) == ocdl.Tikhonov(1.0)


def test_names_in_methods() -> None:
    np.testing.assert_array_equal(NET.init(0, "Scaled").K, NET.init(0, "scaled").K)
    refined = NET.refine(U, interpolation="Constant")[1]
    np.testing.assert_array_equal(refined.K, NET.refine(U, interpolation="constant")[1].K)
    typed = ocdl.train(NET, U, X, Y, max_iter=2, freeze=("w", "MU")).controls
    np.testing.assert_array_equal(typed.W, U.W)
    many = ocdl.train_multilevel(NET, U, X, Y, levels=1, max_iter=1, interpolation="LINEAR")
    assert many.n_iter == 1


# ---- what nobody knows ----


@pytest.mark.parametrize(
    ("build", "suggested"),
    [
        (lambda: Network(2, 3, tableau="kuta4"), "kutta4"),
        (lambda: Network(2, 3, tableau="dopri"), "dormand_prince"),
        (lambda: Network(2, 3, tableau="implicit mid-point rule"), "implicit_midpoint"),
        (lambda: Network(2, 3, activation="tan-h1"), "tanh"),
        (lambda: Network(2, 3, activation="Leaky"), "leaky_relu"),
        (lambda: Network(2, 3, field="antisymetric"), "antisymmetric"),
        (lambda: Network.preset("ODNet", 2, 3), "odenet"),
        (lambda: Objective("cross_entrpy"), "cross_entropy"),
        (lambda: Objective(reduction="average"), None),
        (lambda: Network(2, 3, tableau="rk2"), None),  # there are several
        (lambda: Network(2, 3, tableau=""), None),
        (lambda: Network(2, 3, tableau="k" * 10**6), None),
    ],
)
def test_what_is_close_is_suggested(build: Callable[[], Any], suggested: str | None) -> None:
    with pytest.raises(ValueError, match="must be one of ") as caught:
        build()
    message = str(caught.value)
    assert message.endswith(f"; did you mean {suggested!r}?") if suggested else "did you mean" not in message


def test_choice_says_what_it_was_asked() -> None:
    with pytest.raises(ValueError, match=r"^colour must be one of 'red', 'blue', got 'bleu'; did you mean 'blue'\?$"):
        validation.choice("bleu", "colour", ("red", "blue"))
    with pytest.raises(TypeError, match=r"^colour must be one of 'red', 'blue', got 3 \(int\)$"):
        validation.choice(3, "colour", ("red", "blue"))
    assert did_you_mean("bleu", ["red"], {"Blue": "red"}) == "; did you mean 'red'?"


@pytest.mark.parametrize(("typed", "meant_one"), [("adam", "Adam"), ("L-BFGS", "LBFGS"), ("newton_cg", "NewtonCG")])
def test_names_of_optimisers(typed: str, meant_one: str) -> None:
    assert optimisers.named(typed) == OPTIMISERS[meant_one]()
    with pytest.raises(TypeError, match=rf"optimiser must be one of .*, got '{typed}'; did you mean ocdl.{meant_one}"):
        ocdl.train(NET, U, X, Y, optimiser=typed)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"optimiser must be one of .*'LBFGS', 'NewtonCG', got 'sgd'"):
        optimisers.named("sgd")


@pytest.mark.parametrize("bad", [0, -1, 2.5, "four"])
def test_threads_are_refused_as_they_were_typed(bad: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        ocdl.set_num_threads(bad)
    assert f"set_num_threads({bad!r})" in str(caught.value)


# ---- the command line ----


@pytest.mark.parametrize(
    ("text", "name"), [("RK4", "kutta4"), ("euler", "euler"), ("Improved-Euler", "improved_euler")]
)
def test_options_are_spelled_like_arguments(text: str, name: str) -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("--tableau", type=name_among(ocdl.tableaux(), tableau.ALIASES))
    assert parser.parse_args(["--tableau", text]).tableau == name
    for wrong, hint in (("kuta4", "; did you mean 'kutta4'?"), ("rk99", ")")):
        with pytest.raises(argparse.ArgumentError) as caught:
            parser.parse_args(["--tableau", wrong])
        assert str(caught.value).startswith(f"argument --tableau: invalid choice: {wrong!r} (choose from euler, ")
        assert str(caught.value).endswith(hint)


# ---- keywords ----


@pytest.mark.parametrize(
    ("call", "wrong", "suggested"),
    [
        (lambda **k: ocdl.train(NET, U, X, Y, **k), "optimizer", "optimiser"),
        (lambda **k: ocdl.train(NET, U, X, Y, **k), "maxiter", "max_iter"),
        (lambda **k: ocdl.train(NET, U, X, Y, **k), "epochs", "max_iter"),
        (lambda **k: ocdl.train(NET, U, X, Y, **k), "learning_rate", "optimiser=ocdl.Adam(lr=...)"),
        (lambda **k: ocdl.train_multilevel(NET, U, X, Y, **k), "optimizer", "optimiser"),
        (lambda **k: ocdl.train_multilevel(NET, U, X, Y, **k), "sample_weights", "sample_weight"),
        (lambda **k: Network(2, **k), "layers", "n_layers"),
        (lambda **k: Network(2, 3, **k), "method", "tableau"),
        (lambda **k: Network.preset("resnet", 2, 3, **k), "activations", "activation"),
        (lambda **k: Objective(**k), "regularizer", "regulariser"),
        (lambda **k: ocdl.Adam(**k), "learning_rate", "lr"),
        (lambda **k: ocdl.GradientDescent(**k), "lr", "step"),
        (lambda **k: ocdl.Backtracking(**k), "rho_dwn", "rho_down"),
        (lambda **k: ocdl.Armijo(**k), "maxstep", "max_step"),
        (lambda **k: ocdl.LBFGS(**k), "history_size", "memory"),
        (lambda **k: ocdl.NewtonCG(**k), "curvatures", "curvature"),
    ],
)
def test_keywords_that_do_not_exist(call: Callable[..., Any], wrong: str, suggested: str) -> None:
    with pytest.raises(TypeError) as caught:
        call(**{wrong: 1})
    assert str(caught.value).endswith(f"() got an unexpected keyword argument {wrong!r}; did you mean {suggested!r}?")


def test_keywords_that_nothing_is_like() -> None:
    with pytest.raises(TypeError, match=r"^Network\(\) got an unexpected keyword argument 'flavour'$"):
        Network(2, 3, flavour="sweet")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"LBFGS.*unexpected keyword argument 'max_iter'$"):
        ocdl.LBFGS(max_iter=100)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="multiple values for argument 'lr'"):
        ocdl.Adam(0.1, lr=0.1)  # type: ignore[misc]


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
