"""Wrong arguments: the right exception, and a message with the argument's name, what came and what is accepted.

A row of a table below is a wrong value, the exception, and the words of the message that matter. Every row is tried
with every function that takes the argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from problems import ACTIVATIONS, LOSSES
from wrong_arguments import (
    DATA_FIRST,
    NET,
    RESULT,
    RK4_WITHOUT_RESIDUAL,
    SIMPLEX,
    SINGLE,
    STAGES,
    TAKES_MAX_ITER,
    TAKES_OBJECTIVE,
    TAKES_U,
    TAKES_WEIGHTS,
    TAKES_X,
    TAKES_Y,
    THREE_OUTPUTS,
    U3,
    U32,
    WRONG_COLOURS,
    WRONG_DIRECTIONS,
    WRONG_INPUT_GRADS,
    WRONG_MAX_ITERS,
    WRONG_NETWORKS,
    WRONG_NO_STEPS,
    WRONG_OBJECTIVES,
    WRONG_OPTIMISER_NAMES,
    WRONG_OPTIMISERS,
    WRONG_PARTS,
    WRONG_SEEDS,
    WRONG_SIMPLEX_STEPS,
    WRONG_SINGLE_WEIGHTS,
    WRONG_SINGLE_X,
    WRONG_STAGE_PARTS,
    WRONG_THREADS,
    WRONG_THREE_LABELS,
    WRONG_U,
    WRONG_VECTORS,
    WRONG_WEIGHTS,
    WRONG_X,
    WRONG_Y,
    Call,
    CustomSquares,
    Errors,
    Row,
    U,
    X,
    Y,
    call_with,
    suggestion,
)

import ocdl
from ocdl import Network, Objective
from ocdl.base import validation
from ocdl.training import optimisers

MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no data": (lambda: NET.predict(U), TypeError, r"X is missing: .* net.predict\(u, X\)"),  # type: ignore[call-arg]
    "fit": (lambda: NET.fit(X, Y), AttributeError, r"Network .* 'fit'; .* ocdl.train\(net, net.init\(\), X, y\)"),
    "parameters": (lambda: NET.parameters(), AttributeError, "holds no weights"),
    "nonsense": (lambda: NET.nonsense, AttributeError, "Network .* 'nonsense'$"),
    "predict": (
        lambda: RESULT.predict(X),
        AttributeError,
        r"Result .* 'predict'; .* net.predict\(result.controls, X\)",
    ),
    "keyword twice": (lambda: ocdl.Adam(0.1, lr=0.1), TypeError, "multiple values .* 'lr'"),  # type: ignore[misc]
}

# Keywords: what is called, the keyword that does not exist, and the one that is suggested, if there is one.
train = call_with(ocdl.train, NET, U, X, Y)
train_multilevel = call_with(ocdl.train_multilevel, NET, U, X, Y)
KEYWORDS: list[tuple[str, Call, str, str | None]] = [
    ("train", train, "optimizer", "optimiser"),
    ("train", train, "maxiter", "max_iter"),
    ("train", train, "epochs", "max_iter"),
    ("train", train, "learning_rate", r"optimiser=ocdl.Adam\(lr=...\)"),
    ("train_multilevel", train_multilevel, "optimizer", "optimiser"),
    ("train_multilevel", train_multilevel, "sample_weights", "sample_weight"),
    ("init", call_with(NET.init), "seed", "random_state"),
    ("Network", call_with(Network, 2), "layers", "n_layers"),
    ("Network", call_with(Network, 2, 3), "method", "tableau"),
    ("Network", call_with(Network, 2, 3), "flavour", None),
    ("preset", call_with(Network.preset, "resnet", 2, 3), "activations", "activation"),
    ("Objective", call_with(Objective), "regularizer", "penalties"),
    ("Adam", call_with(ocdl.Adam), "learning_rate", "lr"),
    ("GradientDescent", call_with(ocdl.GradientDescent), "lr", "step"),
    ("Backtracking", call_with(ocdl.Backtracking), "rho_dwn", "rho_down"),
    ("Armijo", call_with(ocdl.Armijo), "maxstep", "max_step"),
    ("LBFGS", call_with(ocdl.LBFGS), "history_size", "memory"),
    ("LBFGS", call_with(ocdl.LBFGS), "max_iter", None),
    ("NewtonCG", call_with(ocdl.NewtonCG), "curvatures", "curvature"),
]

# Names: what is called, a name that does not exist, and the one that is suggested, if there is one.
NAMES: list[tuple[str, Call, str, str | None]] = [
    *(
        ("tableau", lambda name: Network(2, 3, tableau=name), wrong, suggested)
        for wrong, suggested in (
            ("kuta4", "kutta4"),
            ("dopri", "dormand_prince"),
            ("implicit mid-point rule", "implicit_midpoint"),
            ("rk2", None),  # there are several
            ("", None),
            ("k" * 10**6, None),
        )
    ),
    ("activation", lambda name: Network(2, 3, activation=name), "tan-h1", "tanh"),
    ("activation", lambda name: Network(2, 3, activation=name), "Leaky", "leaky_relu"),
    ("field", lambda name: Network(2, 3, field=name), "antisymetric", "antisymmetric"),
    ("architecture", lambda name: Network.preset(name, 2, 3), "ODNet", "odenet"),
    ("loss", Objective, "cross_entrpy", "cross_entropy"),
    ("reduction", lambda name: Objective(reduction=name), "average", None),
]


def pairs(functions: dict[str, Call], rows: list[Row]) -> list[Any]:
    return [
        pytest.param(call, wrong, error, words, id=f"{function}-{i}")
        for function, call in functions.items()
        for i, (wrong, error, words) in enumerate(rows)
    ]


CASES = [
    *pairs(TAKES_X, WRONG_X),
    *pairs({"float32 predict": lambda X: SINGLE.predict(U32, X)}, WRONG_SINGLE_X),
    *pairs(TAKES_Y, WRONG_Y),
    *pairs({"value of three outputs": lambda y: THREE_OUTPUTS.value(U3, X, y)}, WRONG_THREE_LABELS),
    *pairs(TAKES_WEIGHTS, WRONG_WEIGHTS),
    *pairs({"float32 value": lambda w: SINGLE.value(U32, X, Y, sample_weight=w)}, WRONG_SINGLE_WEIGHTS),
    *pairs(TAKES_U, WRONG_U),
    *pairs(DATA_FIRST, [(X, TypeError, r"u .* Controls, .* net.init\(\) .* ndarray")]),
    *pairs(TAKES_OBJECTIVE, WRONG_OBJECTIVES),
    *pairs({"tangent": call_with(NET.tangent, U, X)}, WRONG_DIRECTIONS),
    *pairs({"value_and_grad": call_with(NET.value_and_grad, U, X, Y)}, WRONG_INPUT_GRADS),
    *pairs({"Network": call_with(Network, n_features=2, n_layers=3)}, WRONG_NETWORKS),
    *pairs(RK4_WITHOUT_RESIDUAL, [("rk4", ValueError, "tableau='kutta4' .* residual")]),
    *pairs({"init": lambda seed: NET.init(random_state=seed)}, WRONG_SEEDS),
    *pairs({"controls": call_with(NET.controls)}, WRONG_PARTS),
    *pairs({"controls of stages": call_with(STAGES.controls)}, WRONG_STAGE_PARTS),
    *pairs({"controls without steps": call_with(Network(2, 3, residual=False).controls)}, WRONG_NO_STEPS),
    *pairs({"controls on the simplex": call_with(SIMPLEX.controls)}, WRONG_SIMPLEX_STEPS),
    *pairs({"from_vector": NET.from_vector}, WRONG_VECTORS),
    *pairs({"set_num_threads": ocdl.set_num_threads}, WRONG_THREADS),
    *pairs(TAKES_MAX_ITER, WRONG_MAX_ITERS),
    *pairs({"choice": lambda colour: validation.choice(colour, "colour", ("red", "blue"))}, WRONG_COLOURS),
    *pairs({"train optimiser": lambda name: ocdl.train(NET, U, X, Y, optimiser=name)}, WRONG_OPTIMISERS),
    *pairs({"optimiser": optimisers.optimiser_by_name}, WRONG_OPTIMISER_NAMES),
    *(
        pytest.param(
            call,
            wrong,
            TypeError,
            f"unexpected keyword argument '{wrong}'{suggestion(suggested) or '$'}",
            id=f"{name} {wrong}",
        )
        for name, call, wrong, suggested in KEYWORDS
    ),
]


@pytest.mark.parametrize(("call", "wrong", "error", "words"), CASES)
def test_a_wrong_argument_is_named(call: Call, wrong: Any, error: Errors, words: str) -> None:
    threads = ocdl.get_num_threads()
    with pytest.raises(error, match=words):
        call(wrong)
    assert ocdl.get_num_threads() == threads


@pytest.mark.parametrize(("call", "error", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_common_mistake_is_explained(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(("argument", "call", "wrong", "suggested"), NAMES)
def test_a_close_name_is_suggested(argument: str, call: Call, wrong: str, suggested: str | None) -> None:
    with pytest.raises(ValueError, match=f"(?s){argument} must be one of .*{suggestion(suggested)}") as caught:
        call(wrong)
    assert ("did you mean" in str(caught.value)) == (suggested is not None)


def build_network(**argument: Any) -> Network:
    return Network(2, 3, **argument)


@pytest.mark.parametrize(
    ("build", "argument", "known"),
    [
        (build_network, "activation", ACTIVATIONS),
        (build_network, "field", ["dense", "antisymmetric", "hamiltonian"]),
        (build_network, "time_steps", ["fixed", "free", "simplex"]),
        (build_network, "tableau", ocdl.tableaux()),
        (Objective, "loss", LOSSES),
        (Objective, "reduction", ["mean", "sum"]),
        (
            lambda architecture: Network.preset(architecture, 2, 3),
            "architecture",
            ["net", "resnet", "odenet", "odenet+simplex"],
        ),
        (lambda scheme: NET.init(random_state=0, scheme=scheme), "scheme", ["paper", "scaled"]),
    ],
)
def test_unknown_names_list_the_known_ones(build: Callable[..., Any], argument: str, known: list[str]) -> None:
    with pytest.raises(ValueError, match="'unheard-of'") as caught:
        build(**{argument: "unheard-of"})
    assert argument in str(caught.value)
    assert all(name in str(caught.value) for name in known)
    with pytest.raises(TypeError, match=argument):
        build(**{argument: 3})
    for name in known:
        build(**{argument: name})


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("part", ["K", "b", "h", "W", "mu"])
def test_wrong_controls_of_a_wide_network(part: str, bad: float) -> None:
    """Its sweeps show what is not finite, without a scan of all controls."""
    net = Network(100, 3)
    u = net.init(random_state=0)
    getattr(u, part).flat[0] = bad
    with pytest.raises(ValueError, match=rf"u\.{part}\[0.*\] is {bad}; all of u\.{part} must be finite"):
        net.value_and_grad(u, np.ones((3, 100)), Y)


@pytest.mark.parametrize("loss", ["squared", CustomSquares()])
@pytest.mark.parametrize(("dtype", "tiny"), [("float64", 1e-310), ("float32", 1e-39)])
def test_a_sum_takes_weights_of_which_a_mean_has_no_inverse(dtype: str, tiny: float, loss: Any) -> None:
    net = Network(2, 3, dtype=dtype)
    u = net.init(random_state=0)
    objective, weights = Objective(loss, reduction="sum"), np.array([0, tiny, 0], dtype)
    expected = weights[1] * net.value(u, X[1:2], Y[1:2], objective)
    J, g = net.value_and_grad(u, X, Y, objective, sample_weight=weights)
    assert J == net.value(u, X, Y, objective, sample_weight=weights) == pytest.approx(expected, rel=1e-5)
    assert np.isfinite(g.to_vector()).all()
    assert np.isfinite(objective.output_grad(net.predict(u, X), Y, weights)).all()
    assert np.isfinite(net.adjoint(u, X, Y, objective, sample_weight=weights)).all()
    assert net.scipy_objective(X, Y, objective, sample_weight=weights).fun(u)[0] == J
    trained = ocdl.train(net, u, X, Y, objective=objective, sample_weight=weights)
    assert trained.history.loss[0] == J
    with pytest.raises(ValueError, match="sample_weight is 0 for every sample"):
        net.value(u, X, Y, objective, sample_weight=np.zeros(3, dtype))
    with pytest.raises(ValueError, match="its inverse is beyond the range"):
        net.value(u, X, Y, Objective(loss), sample_weight=weights)


def test_values_at_the_limit_are_accepted() -> None:
    assert THREE_OUTPUTS.value(U3, X, [0, 1, 2]) > 0
    assert np.isfinite(SINGLE.value(U32, X, Y, sample_weight=[1e-37, 0, 1e-38]))
    assert STAGES.controls(K=np.ones((3, 3, 2, 2)), b=np.ones((3, 3, 2))).K.shape == (3, 3, 2, 2)
