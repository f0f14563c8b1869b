"""Bad input: the right exception, and a message with the argument's name, what came and what is accepted."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from problems import ACTIVATIONS, LOSSES

import ocdl
from ocdl import Network, Objective

NET = Network(2, 3)
U = NET.init(random_state=0)
X = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
Y = np.array([0, 1, 1])

Call = Callable[[Any], Any]

# Every method that takes data, as a function of the data alone: all of them check alike.
TAKES_X: dict[str, Call] = {
    "forward": lambda X: NET.forward(U, X),
    "predict": lambda X: NET.predict(U, X),
    "value": lambda X: NET.value(U, X, Y),
    "value_and_grad": lambda X: NET.value_and_grad(U, X, Y),
    "adjoint": lambda X: NET.adjoint(U, X, Y),
    "tangent": lambda X: NET.tangent(U, X),
}
TAKES_Y: dict[str, Call] = {
    "value": lambda y: NET.value(U, X, y),
    "value_and_grad": lambda y: NET.value_and_grad(U, X, y),
    "adjoint": lambda y: NET.adjoint(U, X, y),
}
TAKES_WEIGHTS: dict[str, Call] = {
    "value": lambda w: NET.value(U, X, Y, sample_weight=w),
    "value_and_grad": lambda w: NET.value_and_grad(U, X, Y, sample_weight=w),
    "adjoint": lambda w: NET.adjoint(U, X, Y, sample_weight=w),
}
TAKES_U: dict[str, Call] = {
    "forward": lambda u: NET.forward(u, X),
    "predict": lambda u: NET.predict(u, X),
    "value": lambda u: NET.value(u, X, Y),
    "value_and_grad": lambda u: NET.value_and_grad(u, X, Y),
    "adjoint": lambda u: NET.adjoint(u, X, Y),
    "tangent": lambda u: NET.tangent(u, X),
}
TAKES_OBJECTIVE: dict[str, Call] = {
    "value": lambda objective: NET.value(U, X, Y, objective),
    "value_and_grad": lambda objective: NET.value_and_grad(U, X, Y, objective),
    "adjoint": lambda objective: NET.adjoint(U, X, Y, objective),
}


class CustomSquares:
    """Half of the squared difference of outputs and labels."""

    def value_and_slope(self, outputs: Any, targets: Any) -> tuple[Any, Any]:
        residual = outputs - targets[:, None]
        return (residual**2).sum(axis=1) / 2, residual


def each(calls: dict[str, Call]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("call", calls.values(), ids=calls.keys())


def with_entry(array: np.ndarray, place: Any, entry: Any) -> np.ndarray:
    changed = np.array(array, dtype=np.result_type(array, type(entry)))
    changed[place] = entry
    return changed


MASKED = np.ma.masked_array(X, mask=[[0, 0], [0, 1], [0, 0]])


@each(TAKES_X)
@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (np.zeros((3, 5)), ValueError, "X has 5 features but the network takes 2"),
        (np.zeros((0, 2)), ValueError, "X is empty: at least one sample is needed"),
        ([], ValueError, r"X must have two dimensions, \(samples, features\), got shape \(0,\)"),
        ([0.0, 1.0], ValueError, r"X must have two dimensions.* got shape \(2,\).*X.reshape\(1, -1\)"),
        (np.zeros((3, 2, 1)), ValueError, r"X must have two dimensions.* got shape \(3, 2, 1\)"),
        (1.5, ValueError, r"X must have two dimensions.* got shape \(\)"),
        (with_entry(X, (1, 0), np.nan), ValueError, r"X\[1, 0\] is nan; all of X must be finite"),
        (with_entry(X, (2, 1), np.inf), ValueError, r"X\[2, 1\] is inf; all of X must be finite"),
        (with_entry(X, (0, 0), -np.inf), ValueError, r"X\[0, 0\] is -inf; all of X must be finite"),
        ([[Decimal("nan"), 0]] * 3, ValueError, r"X\[0, 0\] is NaN; all of X must be finite"),
        ([[10**400, 0]] * 3, ValueError, "X must hold finite numbers, got one beyond the range of float64"),
        ([[0.0, 1.0], [2.0]], ValueError, "X must be an array of real numbers, got a ragged sequence"),
        (MASKED, ValueError, "X has masked values; fill or drop them first"),
        ([["0", "1"]] * 3, TypeError, "X must hold real numbers, got dtype <U1"),
        (np.array([["0", 1.0]] * 3, dtype=object), TypeError, r"X must hold real numbers, got '0' \(str\)"),
        (pd.DataFrame({"a": [0, 1, 2], "b": ["x", "y", "z"]}), TypeError, r"X must hold real numbers, got 'x' \(str\)"),
        (pd.DataFrame({"a": [0, 1, 2], "b": [0.0, None, 1.0]}), ValueError, r"X\[1, 1\] is nan"),
        (X + 1j, TypeError, "X must hold real numbers, got dtype complex128"),
        (X.astype("datetime64[s]"), TypeError, r"X must hold real numbers, got dtype datetime64\[s\]"),
        ([[None, 0.0]] * 3, TypeError, "X must hold real numbers, got None"),
        (None, TypeError, "X must hold real numbers, got None"),
        ("data.csv", TypeError, "X must hold real numbers, got dtype <U8"),
        ({"a": 1}, TypeError, "X must hold real numbers: .*dict"),
    ],
)
def test_wrong_data(call: Call, bad: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(bad)


def test_data_too_large_for_the_network() -> None:
    net = Network(2, 3, dtype="float32")
    with pytest.raises(ValueError, match=r"X\[1, 0\] = 1e\+39 is too large for float32"):
        net.predict(net.init(random_state=0), with_entry(X, (1, 0), 1e39))


@each(TAKES_Y)
@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ([0, 1], ValueError, "y has 2 labels but X has 3 samples"),
        ([], ValueError, "y has 0 labels but X has 3 samples"),
        ([[0], [1], [1]], ValueError, r"y must have one dimension, \(samples,\), got shape \(3, 1\)"),
        (1, ValueError, r"y must have one dimension.* got shape \(\)"),
        ([0, 1, 2], ValueError, r"y\[2\] is 2; a network with 1 output takes labels 0 to 1"),
        ([0, -1, 1], ValueError, r"y\[1\] is -1; a network with 1 output takes labels 0 to 1"),
        (np.array([0, 1, 2**64 - 1], dtype=np.uint64), ValueError, r"y\[2\] is 9223372036854775807; .* labels 0 to 1"),
        ([0, 0.5, 1], ValueError, r"y\[1\] is 0.5; labels are the whole numbers 0, 1, ..."),
        ([0, 1, np.nan], ValueError, r"y\[2\] is nan; labels are the whole numbers"),
        ([np.inf, 1, 0], ValueError, r"y\[0\] is inf; labels are the whole numbers"),
        ([0, 1, 1e300], ValueError, r"y\[2\] is 1e\+300; labels are the whole numbers"),
        ([0, 1, 10**400], ValueError, "y must hold finite numbers, got one beyond the range of float64"),
        ([[0], [1, 1]], ValueError, "y must be an array of labels, got a ragged sequence"),
        (np.ma.masked_array([0, 1, 1], mask=[0, 0, 1]), ValueError, "y has masked values"),
        (["a", "b", "a"], TypeError, "y must hold the labels 0, 1, ... as whole numbers, got dtype <U1"),
        (np.array([0, 1, "1"], dtype=object), TypeError, r"y must hold real numbers, got '1' \(str\)"),
        (np.array([0, 1, 1j]), TypeError, "y must hold the labels .* got dtype complex128"),
        ([0, 1, None], TypeError, "y must hold real numbers, got None"),
        (None, TypeError, "y must hold real numbers, got None"),
    ],
)
def test_wrong_labels(call: Call, bad: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(bad)


def test_labels_go_up_to_the_number_of_outputs() -> None:
    net = Network(2, 3, n_outputs=3)
    u = net.init(random_state=0)
    assert net.value(u, X, [0, 1, 2]) > 0
    with pytest.raises(ValueError, match=r"y\[1\] is 3; a network with 3 outputs takes labels 0 to 2"):
        net.value(u, X, [0, 3, 2])


@each(TAKES_WEIGHTS)
@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ([1, 1], ValueError, r"sample_weight must have shape \(3,\), one per sample, got \(2,\)"),
        ([[1], [1], [1]], ValueError, r"sample_weight must have shape \(3,\), one per sample, got \(3, 1\)"),
        (1.0, ValueError, r"sample_weight must have shape \(3,\), one per sample, got \(\)"),
        ([1, -0.5, 1], ValueError, r"sample_weight\[1\] is -0.5; weights must not be negative"),
        ([0, 0, 0], ValueError, "sample_weight is 0 for every sample; at least one must be positive"),
        ([1, np.nan, 1], ValueError, r"sample_weight\[1\] is nan; all of sample_weight must be finite"),
        ([1, 1, np.inf], ValueError, r"sample_weight\[2\] is inf; all of sample_weight must be finite"),
        ([1e308, 1e308, 1e308], ValueError, "sample_weight has a sum beyond the range of float64"),
        ([0, 1e-310, 0], ValueError, "sample_weight has a sum of 1e-310: its inverse is beyond the range of float64"),
        (["1", "1", "1"], TypeError, "sample_weight must hold real numbers, got dtype <U1"),
        ([1j, 1, 1], TypeError, "sample_weight must hold real numbers, got dtype complex128"),
    ],
)
def test_wrong_weights(call: Call, bad: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(bad)


def test_weights_too_small_for_the_network() -> None:
    net = Network(2, 3, dtype="float32")
    u = net.init(random_state=0)
    assert np.isfinite(net.value(u, X, Y, sample_weight=[1e-37, 0, 1e-38]))
    with pytest.raises(ValueError, match=r"sample_weight has a sum of .*e-39: .* the range of float32; scale it up"):
        net.value(u, X, Y, sample_weight=[1e-39, 0, 1e-39])


@pytest.mark.parametrize("loss", ["squared", CustomSquares()])
@pytest.mark.parametrize(("dtype", "tiny"), [("float64", 1e-310), ("float32", 1e-39)])
def test_a_sum_takes_weights_of_which_a_mean_has_no_inverse(dtype: str, tiny: float, loss: Any) -> None:
    net = Network(2, 3, dtype=dtype)
    u = net.init(random_state=0)
    objective, weights = Objective(loss, reduction="sum"), np.array([0, tiny, 0], dtype)
    expected = weights[1] * net.value(u, X[1:2], Y[1:2], objective)
    J, g = net.value_and_grad(u, X, Y, objective, weights)
    assert J == net.value(u, X, Y, objective, weights) == pytest.approx(expected, rel=1e-5)
    assert np.isfinite(g.to_vector()).all()
    assert np.isfinite(objective.slopes(net.predict(u, X), Y, weights)).all()
    assert np.isfinite(net.adjoint(u, X, Y, objective, weights)).all()
    assert net.function(X, Y, objective, weights).fun(u)[0] == J
    trained = ocdl.train(net, u, X, Y, objective=objective, sample_weight=weights)
    assert trained.history.loss[0] == J
    with pytest.raises(ValueError, match="sample_weight is 0 for every sample"):
        net.value(u, X, Y, objective, np.zeros(3, dtype))
    with pytest.raises(ValueError, match="its inverse is beyond the range"):
        net.value(u, X, Y, Objective(loss), weights)


def with_bad(part: str) -> ocdl.Controls:
    u = U.copy()
    getattr(u, part).flat[-1] = np.nan
    return u


@each(TAKES_U)
@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (Network(2, 4).init(random_state=0), ValueError, r"u does not fit the network: .*K \(4, 2, 2\).* \(3, 2, 2\)"),
        (Network(3, 3).init(random_state=0), ValueError, r"u does not fit the network: .*K \(3, 3, 3\)"),
        (Network(2, 3, n_outputs=3).init(random_state=0), ValueError, r"u does not fit the network: .*W \(3, 2\)"),
        (Network(2, 3, stage_controls=True).init(random_state=0), ValueError, r"u does not fit .*K \(3, 1, 2, 2\)"),
        (Network(2, 3, residual=False).init(random_state=0), ValueError, r"u does not fit the network: .*h \(0,\)"),
        (
            Network(2, 3, dtype="float32").init(random_state=0),
            ValueError,
            "u does not fit the network: .*float32.*float64",
        ),
        (U.to_vector(), TypeError, r"u must be Controls, as net.init\(\) and net.controls\(\) make them, got ndarray"),
        (None, TypeError, "u must be Controls.* got NoneType"),
        *((with_bad(part), ValueError, rf"u\.{part}\[.*\] is nan; all of u\.{part} must be finite") for part in "KbhW"),
        (with_bad("mu"), ValueError, r"u\.mu\[0\] is nan; all of u\.mu must be finite"),
    ],
)
def test_wrong_controls(call: Call, bad: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(bad)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("part", ["K", "b", "h", "W", "mu"])
def test_wrong_controls_of_a_wide_network(part: str, bad: float) -> None:
    """Its sweeps show what is not finite, in the place of a look through all controls."""
    net = Network(100, 3)
    u = net.init(random_state=0)
    getattr(u, part).flat[0] = bad
    with pytest.raises(ValueError, match=rf"u\.{part}\[0.*\] is {bad}; all of u\.{part} must be finite"):
        net.value_and_grad(u, np.ones((3, 100)), Y)


@each(TAKES_OBJECTIVE)
@pytest.mark.parametrize("bad", ["squared", None, Objective])
def test_wrong_objective(call: Call, bad: Any) -> None:
    with pytest.raises(TypeError, match=f"objective must be an Objective, got {type(bad).__name__}"):
        call(bad)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"du": U.to_vector()}, TypeError, "du must be Controls.* got ndarray"),
        ({"du": Network(2, 4).init(random_state=0)}, ValueError, "du does not fit the network"),
        ({"du": with_bad("b")}, ValueError, r"du\.b\[2, 1\] is nan; all of du\.b must be finite"),
        ({"dX": X[:2]}, ValueError, "dX has 2 samples but X has 3"),
        ({"dX": X[:, :1]}, ValueError, "dX has 1 feature but the network takes 2"),
        ({"dX": with_entry(X, (1, 1), np.nan)}, ValueError, r"dX\[1, 1\] is nan"),
        ({"dX": X.astype(str)}, TypeError, "dX must hold real numbers"),
    ],
)
def test_wrong_directions(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        NET.tangent(U, X, **arguments)


def test_input_grad_is_true_or_false() -> None:
    with pytest.raises(TypeError, match=r"input_grad must be True or False, got 'yes' \(str\)"):
        NET.value_and_grad(U, X, Y, input_grad="yes")  # type: ignore[arg-type]


COUNTS = ("n_features", "n_layers", "n_outputs")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        *(({name: 0}, ValueError, f"{name} must be at least 1, got 0") for name in COUNTS),
        *(({name: -3}, ValueError, f"{name} must be at least 1, got -3") for name in COUNTS),
        *(({name: 2.0}, TypeError, rf"{name} must be a whole number, got 2.0 \(float\)") for name in COUNTS),
        *(({name: True}, TypeError, rf"{name} must be a whole number, got True \(bool\)") for name in COUNTS),
        *(({name: "2"}, TypeError, rf"{name} must be a whole number, got '2' \(str\)") for name in COUNTS),
        *(({name: 10**30}, ValueError, f"{name} must be at most 2147483647") for name in COUNTS),
        ({"augment": -1}, ValueError, "augment must be at least 0, got -1"),
        ({"augment": None}, TypeError, "augment must be a whole number, got None"),
        ({"horizon": 0}, ValueError, "horizon must be positive, got 0.0"),
        ({"horizon": -1.0}, ValueError, "horizon must be positive, got -1.0"),
        ({"horizon": np.nan}, ValueError, "horizon must be finite, got nan"),
        ({"horizon": np.inf}, ValueError, "horizon must be finite, got inf"),
        ({"horizon": 10**400}, ValueError, "horizon must be finite, got a number beyond"),
        ({"horizon": "1"}, TypeError, r"horizon must be a real number, got '1' \(str\)"),
        ({"horizon": 1j}, TypeError, r"horizon must be a real number, got 1j \(complex\)"),
        ({"residual": 1}, TypeError, r"residual must be True or False, got 1 \(int\)"),
        ({"stage_controls": "no"}, TypeError, r"stage_controls must be True or False, got 'no' \(str\)"),
        ({"tableau": 4}, TypeError, "tableau must be a name or a Tableau, got int"),
        ({"residual": False, "field": "antisymmetric"}, ValueError, "field='antisymmetric' needs residual=True"),
        ({"residual": False, "field": "hamiltonian"}, ValueError, "field='hamiltonian' needs residual=True"),
        ({"augment": 1, "field": "hamiltonian"}, ValueError, r"needs a state of even dimension, .* got .* = 3"),
        ({"residual": False, "time_steps": "free"}, ValueError, "time_steps='free' needs residual=True"),
        ({"residual": False, "time_steps": "simplex"}, ValueError, "time_steps='simplex' needs residual=True"),
        ({"dtype": "float16"}, ValueError, "dtype must be 'float64' or 'float32', got 'float16'"),
        ({"dtype": complex}, ValueError, "dtype must be 'float64' or 'float32'"),
        ({"dtype": "double precision"}, TypeError, "dtype must be 'float64' or 'float32', got 'double precision'"),
    ],
)
def test_wrong_networks(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Network(**({"n_features": 2, "n_layers": 3} | arguments))


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


@pytest.mark.parametrize("seed", ["seed", 1.5, -1])
def test_wrong_random_states(seed: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="random_state must be None, a whole number, a numpy Generator"):
        NET.init(random_state=seed)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"K": np.zeros((2, 2, 2))},
            ValueError,
            r"K must have shape \(3, 2, 2\), \(layers, dim, dim\), got \(2, 2, 2\)",
        ),
        ({"b": np.zeros((3, 3))}, ValueError, r"b must have shape \(3, 2\), \(layers, dim\), got \(3, 3\)"),
        ({"h": [1.0]}, ValueError, r"h must have shape \(3,\), \(layers,\), got \(1,\)"),
        ({"W": [1.0, 2.0]}, ValueError, r"W must have shape \(1, 2\), \(outputs, dim\), got \(2,\)"),
        ({"mu": 0.0}, ValueError, r"mu must have shape \(1,\), \(outputs,\), got \(\)"),
        ({"K": np.full((3, 2, 2), np.nan)}, ValueError, r"K\[0, 0, 0\] is nan; all of K must be finite"),
        ({"h": [0.1, np.inf, 0.1]}, ValueError, r"h\[1\] is inf; all of h must be finite"),
        ({"mu": ["0"]}, TypeError, "mu must hold real numbers, got dtype <U1"),
        ({"W": [[1j, 0]]}, TypeError, "W must hold real numbers, got dtype complex128"),
        ({"b": [[0, 0], [0]]}, ValueError, "b must be an array of real numbers, got a ragged sequence"),
    ],
)
def test_wrong_parts_of_controls(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        NET.controls(**arguments)


@pytest.mark.parametrize("shape", [(3, 2, 2), (3, 4, 2, 2), (3, 1, 2, 2), (3, 3, 2)])
def test_stage_controls_of_the_wrong_shape(shape: tuple[int, ...]) -> None:
    net = Network(2, 3, tableau="kutta3", stage_controls=True)
    assert net.controls(K=np.ones((3, 3, 2, 2)), b=np.ones((3, 3, 2))).K.shape == (3, 3, 2, 2)
    with pytest.raises(ValueError, match=r"K must have shape \(3, 3, 2, 2\), \(layers, stages, dim, dim\)"):
        net.controls(K=np.ones(shape))
    with pytest.raises(ValueError, match=r"b must have shape \(3, 3, 2\), \(layers, stages, dim\)"):
        net.controls(b=np.ones(shape[:-1]))


def test_steps_where_there_are_none_or_not_any() -> None:
    with pytest.raises(ValueError, match=r"h: a feed-forward network .* has no time steps"):
        Network(2, 3, residual=False).controls(h=[0.1, 0.2, 0.3])
    simplex = Network(2, 3, time_steps="simplex")
    with pytest.raises(ValueError, match=r"h\[1\] is -0.5; on the simplex no step is negative"):
        simplex.controls(h=[1.0, -0.5, 0.5])
    with pytest.raises(ValueError, match=r"h sums to 1.5 but must sum to the horizon 1.0; ocdl.project_simplex"):
        simplex.controls(h=[0.5, 0.5, 0.5])
    with pytest.raises(ValueError, match=r"h sums to inf but must sum to the horizon 1.0"):
        simplex.controls(h=[1.7e308, 1.7e308, 0.0])


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (np.zeros(3), ValueError, r"v must have shape \(24,\), \(n_controls,\), got \(3,\)"),
        (np.full(24, np.nan), ValueError, r"v\[0\] is nan; all of v must be finite"),
        ("vector", TypeError, "v must hold real numbers"),
    ],
)
def test_wrong_vectors(bad: Any, error: type[Exception], message: str) -> None:
    assert NET.n_controls == 24
    with pytest.raises(error, match=message):
        NET.from_vector(bad)


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (0, ValueError, "the number of threads must be at least 1, got 0"),
        (-2, ValueError, "the number of threads must be at least 1, got -2"),
        (10**12, ValueError, "the number of threads must be at most 2147483647"),
        (2.0, TypeError, r"the number of threads must be a whole number, got 2.0 \(float\)"),
        (None, TypeError, r"the number of threads must be a whole number, got None \(NoneType\)"),
        (True, TypeError, r"the number of threads must be a whole number, got True \(bool\)"),
    ],
)
def test_wrong_numbers_of_threads(bad: Any, error: type[Exception], message: str) -> None:
    before = ocdl.get_num_threads()
    with pytest.raises(error, match=message):
        ocdl.set_num_threads(bad)
    assert ocdl.get_num_threads() == before


@pytest.mark.parametrize("accepted", [np.int32(3), np.uint8(3), 3])
def test_whole_numbers_of_any_kind_are_accepted(accepted: Any) -> None:
    assert Network(accepted, accepted, n_outputs=accepted, augment=accepted) == Network(3, 3, n_outputs=3, augment=3)


@pytest.mark.parametrize("accepted", [2, np.float32(2), Fraction(2), np.int8(2)])
def test_real_numbers_of_any_kind_are_accepted(accepted: Any) -> None:
    assert Network(2, 3, horizon=accepted).horizon == 2.0
