"""Calls and wrong arguments for them, with the words of the errors."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

import ocdl
from ocdl import Network, Objective, ODEClassifier, ODERegressor

NET = Network(2, 3)
SINGLE = Network(2, 3, dtype="float32")
THREE_OUTPUTS = Network(2, 3, n_outputs=3)
STAGES = Network(2, 3, tableau="kutta3", stage_controls=True)
SIMPLEX = Network(2, 3, time_steps="simplex")
U, U32, U3 = (net.init(random_state=0) for net in (NET, SINGLE, THREE_OUTPUTS))
X = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
Y = np.array([0, 1, 1])
RESULT = ocdl.train(NET, U, X, Y, max_iter=1)

Call = Callable[[Any], Any]
Errors = type[Exception] | tuple[type[Exception], ...]
Row = tuple[Any, Errors, str]  # a wrong value, the exception, words of its message


class CustomSquares:
    """Half of the squared difference of outputs and labels."""

    def value_and_grad(self, outputs: Any, targets: Any) -> tuple[Any, Any]:
        residual = outputs - targets[:, None]
        return (residual**2).sum(axis=1) / 2, residual


def with_entry(array: np.ndarray, index: Any, entry: Any) -> np.ndarray:
    changed = np.array(array, dtype=np.result_type(array, type(entry)))
    changed[index] = entry
    return changed


def with_nan(part: str) -> ocdl.Controls:
    u = U.copy()
    getattr(u, part).flat[-1] = np.nan
    return u


def suggestion(name: str | None) -> str:
    return rf"; did you mean '{name}'\?$" if name else ""


def call_with(function: Callable[..., Any], *arguments: Any, **options: Any) -> Call:
    """Return a call with the keywords that it is given, or with the value 1 for the keyword that it is given."""
    return lambda wrong: function(*arguments, **(options | (wrong if isinstance(wrong, dict) else {wrong: 1})))


# ---- data ----

TAKES_X: dict[str, Call] = {
    "forward": lambda X: NET.forward(U, X),
    "predict": lambda X: NET.predict(U, X),
    "value": lambda X: NET.value(U, X, Y),
    "value_and_grad": lambda X: NET.value_and_grad(U, X, Y),
    "adjoint": lambda X: NET.adjoint(U, X, Y),
    "tangent": lambda X: NET.tangent(U, X),
}
WRONG_X: list[Row] = [
    (np.zeros((3, 5)), ValueError, "X has 5 features .* 2"),
    (np.zeros((0, 2)), ValueError, "X is empty"),
    ([], ValueError, r"X .* two dimensions, \(samples, features\), .* \(0,\)"),
    ([0.0, 1.0], ValueError, r"X .* two dimensions.* \(2,\).*X.reshape\(1, -1\)"),
    (np.zeros((3, 2, 1)), ValueError, r"X .* two dimensions.* \(3, 2, 1\)"),
    (1.5, ValueError, r"X .* two dimensions.* \(\)"),
    (with_entry(X, (1, 0), np.nan), ValueError, r"X\[1, 0\] is nan; .* finite"),
    (with_entry(X, (2, 1), np.inf), ValueError, r"X\[2, 1\] is inf; .* finite"),
    (with_entry(X, (0, 0), -np.inf), ValueError, r"X\[0, 0\] is -inf; .* finite"),
    ([[Decimal("nan"), 0]] * 3, ValueError, r"X\[0, 0\] is NaN; .* finite"),
    ([[10**400, 0]] * 3, ValueError, "X .* finite .* beyond the range of float64"),
    ([[0.0, 1.0], [2.0]], ValueError, "X .* real numbers, .* ragged"),
    (np.ma.masked_array(X, mask=[[0, 0], [0, 1], [0, 0]]), ValueError, "X has masked values"),
    ([["0", "1"]] * 3, TypeError, "X .* real numbers, .* <U1"),
    (np.array([["0", 1.0]] * 3, dtype=object), TypeError, r"X .* real numbers, .* '0' \(str\)"),
    (pd.DataFrame({"a": [0, 1, 2], "b": ["x", "y", "z"]}), TypeError, r"X .* real numbers, .* 'x' \(str\)"),
    (pd.DataFrame({"a": [0, 1, 2], "b": [0.0, None, 1.0]}), ValueError, r"X\[1, 1\] is nan"),
    (X + 1j, TypeError, "X .* real numbers, .* complex128"),
    (X.astype("datetime64[s]"), TypeError, r"X .* real numbers, .* datetime64\[s\]"),
    ([[None, 0.0]] * 3, TypeError, "X .* real numbers, .* None"),
    (None, TypeError, "X .* real numbers, .* None"),
    ("data.csv", TypeError, "X .* real numbers, .* <U8"),
    ({"a": 1}, TypeError, "X .* real numbers: .*dict"),
]
TAKES_Y: dict[str, Call] = {
    "value": lambda y: NET.value(U, X, y),
    "value_and_grad": lambda y: NET.value_and_grad(U, X, y),
    "adjoint": lambda y: NET.adjoint(U, X, y),
}
WRONG_Y: list[Row] = [
    ([0, 1], ValueError, "y has 2 labels .* X has 3 samples"),
    ([0], ValueError, "y has 1 label .* X has 3 samples"),
    ([], ValueError, "y has 0 labels .* X has 3 samples"),
    ([[0], [1], [1]], ValueError, r"y .* one dimension, \(samples,\), .* \(3, 1\)"),
    (1, ValueError, r"y .* one dimension.* \(\)"),
    ([0, 1, 2], ValueError, r"y\[2\] is 2; .* 1 output .* 0 to 1"),
    ([0, -1, 1], ValueError, r"y\[1\] is -1; .* 1 output .* 0 to 1"),
    (np.array([0, 1, 2**64 - 1], dtype=np.uint64), ValueError, r"y\[2\] is 9223372036854775807; .* 0 to 1"),
    ([0, 0.5, 1], ValueError, r"y\[1\] is 0.5; .* whole numbers 0, 1"),
    ([0, 1, np.nan], ValueError, r"y\[2\] is nan; .* whole numbers"),
    ([np.inf, 1, 0], ValueError, r"y\[0\] is inf; .* whole numbers"),
    ([0, 1, 1e300], ValueError, r"y\[2\] is 1e\+300; .* whole numbers"),
    ([0, 1, 10**400], ValueError, "y .* finite .* beyond the range of float64"),
    ([[0], [1, 1]], ValueError, "y .* labels, .* ragged"),
    (np.ma.masked_array([0, 1, 1], mask=[0, 0, 1]), ValueError, "y has masked values"),
    (["a", "b", "a"], TypeError, "y .* labels 0, 1, .* whole numbers, .* <U1"),
    (np.array([0, 1, "1"], dtype=object), TypeError, r"y .* real numbers, .* '1' \(str\)"),
    (np.array([0, 1, 1j]), TypeError, "y .* labels .* complex128"),
    ([0, 1, None], TypeError, "y .* real numbers, .* None"),
    (None, TypeError, "y .* real numbers, .* None"),
]
TAKES_WEIGHTS: dict[str, Call] = {
    "value": lambda w: NET.value(U, X, Y, sample_weight=w),
    "value_and_grad": lambda w: NET.value_and_grad(U, X, Y, sample_weight=w),
    "adjoint": lambda w: NET.adjoint(U, X, Y, sample_weight=w),
}
WRONG_WEIGHTS: list[Row] = [
    ([1, 1], ValueError, r"sample_weight .* \(3,\), one per sample, .* \(2,\)"),
    ([[1], [1], [1]], ValueError, r"sample_weight .* \(3,\), one per sample, .* \(3, 1\)"),
    (1.0, ValueError, r"sample_weight .* \(3,\), one per sample, .* \(\)"),
    ([1, -0.5, 1], ValueError, r"sample_weight\[1\] is -0.5; .* negative"),
    ([0, 0, 0], ValueError, "sample_weight is 0 .* positive"),
    ([1, np.nan, 1], ValueError, r"sample_weight\[1\] is nan; .* finite"),
    ([1, 1, np.inf], ValueError, r"sample_weight\[2\] is inf; .* finite"),
    ([1e308, 1e308, 1e308], ValueError, "sample_weight .* sum beyond the range of float64"),
    ([0, 1e-310, 0], ValueError, "sample_weight .* sum of 1e-310: .* inverse .* float64"),
    (["1", "1", "1"], TypeError, "sample_weight .* real numbers, .* <U1"),
    ([1j, 1, 1], TypeError, "sample_weight .* real numbers, .* complex128"),
]
# Of other networks, where the number type or the number of outputs matters.
WRONG_SINGLE_X: list[Row] = [(with_entry(X, (1, 0), 1e39), ValueError, r"X\[1, 0\] = 1e\+39 .* float32")]
WRONG_SINGLE_WEIGHTS: list[Row] = [
    ([1e-39, 0, 1e-39], ValueError, r"sample_weight .* sum of .*e-39: .* float32; scale it up"),
]
WRONG_THREE_LABELS: list[Row] = [([0, 3, 2], ValueError, r"y\[1\] is 3; .* 3 outputs .* 0 to 2")]

# ---- controls, objective, directions ----

TAKES_U: dict[str, Call] = {
    "forward": lambda u: NET.forward(u, X),
    "predict": lambda u: NET.predict(u, X),
    "value": lambda u: NET.value(u, X, Y),
    "value_and_grad": lambda u: NET.value_and_grad(u, X, Y),
    "adjoint": lambda u: NET.adjoint(u, X, Y),
    "tangent": lambda u: NET.tangent(u, X),
}
OTHER_CONTROLS: list[Row] = [
    (net.init(random_state=0), ValueError, rf"u does not fit the network: .*{words}")
    for net, words in (
        (Network(2, 4), r"K \(4, 2, 2\).* \(3, 2, 2\)"),
        (Network(3, 3), r"K \(3, 3, 3\)"),
        (THREE_OUTPUTS, r"W \(3, 2\)"),
        (Network(2, 3, stage_controls=True), r"K \(3, 1, 2, 2\)"),
        (Network(2, 3, residual=False), r"h \(0,\)"),
        (SINGLE, "float32.*float64"),
    )
]
WRONG_U: list[Row] = [
    *OTHER_CONTROLS,
    (U.to_vector(), TypeError, r"u .* Controls, .* net.init\(\) .* ndarray"),
    (None, TypeError, "u .* Controls.* NoneType"),
    *((with_nan(part), ValueError, rf"u\.{part}\[.*\] is nan; .* u\.{part} .* finite") for part in "KbhW"),
    (with_nan("mu"), ValueError, r"u\.mu\[0\] is nan; .* u\.mu .* finite"),
]
DATA_FIRST: dict[str, Call] = {"predict": NET.predict, "forward": NET.forward, "final_state": NET.final_state}
TAKES_OBJECTIVE: dict[str, Call] = {
    "value": lambda objective: NET.value(U, X, Y, objective),
    "value_and_grad": lambda objective: NET.value_and_grad(U, X, Y, objective),
    "adjoint": lambda objective: NET.adjoint(U, X, Y, objective),
}
WRONG_OBJECTIVES: list[Row] = [
    ("squared", TypeError, "objective .* Objective, got str"),
    (Objective, TypeError, "objective .* Objective, got type"),
]
WRONG_DIRECTIONS: list[Row] = [
    ({"du": U.to_vector()}, TypeError, "du .* Controls.* ndarray"),
    ({"du": Network(2, 4).init(random_state=0)}, ValueError, "du does not fit the network"),
    ({"du": with_nan("b")}, ValueError, r"du\.b\[2, 1\] is nan; .* du\.b .* finite"),
    ({"dX": X[:2]}, ValueError, "dX has 2 samples .* 3"),
    ({"dX": X[:, :1]}, ValueError, "dX has 1 feature .* 2"),
    ({"dX": with_entry(X, (1, 1), np.nan)}, ValueError, r"dX\[1, 1\] is nan"),
    ({"dX": X.astype(str)}, TypeError, "dX .* real numbers"),
]
WRONG_INPUT_GRADS: list[Row] = [({"input_grad": "yes"}, TypeError, r"input_grad .* True or False, .* 'yes' \(str\)")]

# ---- networks and their controls ----

COUNTS = ("n_features", "n_layers", "n_outputs")
WRONG_NETWORKS: list[Row] = [
    *(({name: 0}, ValueError, f"{name} .* at least 1, .* 0") for name in COUNTS),
    *(({name: -3}, ValueError, f"{name} .* at least 1, .* -3") for name in COUNTS),
    *(({name: 2.0}, TypeError, rf"{name} .* whole number, .* 2.0 \(float\)") for name in COUNTS),
    *(({name: True}, TypeError, rf"{name} .* whole number, .* True \(bool\)") for name in COUNTS),
    *(({name: "2"}, TypeError, rf"{name} .* whole number, .* '2' \(str\)") for name in COUNTS),
    *(({name: 10**30}, ValueError, f"{name} .* at most 2147483647") for name in COUNTS),
    ({"augment": -1}, ValueError, "augment .* at least 0, .* -1"),
    ({"augment": None}, TypeError, "augment .* whole number, .* None"),
    ({"horizon": 0}, ValueError, "horizon .* positive, .* 0.0"),
    ({"horizon": -1.0}, ValueError, "horizon .* positive, .* -1.0"),
    ({"horizon": np.nan}, ValueError, "horizon .* finite, .* nan"),
    ({"horizon": np.inf}, ValueError, "horizon .* finite, .* inf"),
    ({"horizon": 10**400}, ValueError, "horizon .* finite, .* beyond"),
    ({"horizon": "1"}, TypeError, r"horizon .* real number, .* '1' \(str\)"),
    ({"horizon": 1j}, TypeError, r"horizon .* real number, .* 1j \(complex\)"),
    ({"residual": 1}, TypeError, r"residual .* True or False, .* 1 \(int\)"),
    ({"stage_controls": "no"}, TypeError, r"stage_controls .* True or False, .* 'no' \(str\)"),
    ({"tableau": 4}, TypeError, "tableau .* name or a Tableau, .* int"),
    ({"residual": False, "tableau": "kutta4"}, ValueError, "tableau='kutta4' .* residual"),
    ({"residual": False, "field": "antisymmetric"}, ValueError, "field='antisymmetric' .* residual"),
    ({"residual": False, "field": "hamiltonian"}, ValueError, "field='hamiltonian' .* residual"),
    ({"augment": 1, "field": "hamiltonian"}, ValueError, "state of even dimension, .* = 3"),
    ({"residual": False, "time_steps": "free"}, ValueError, "time_steps='free' .* residual"),
    ({"residual": False, "time_steps": "simplex"}, ValueError, "time_steps='simplex' .* residual"),
    ({"dtype": "float16"}, ValueError, "dtype .* 'float64' or 'float32', .* 'float16'"),
    ({"dtype": complex}, ValueError, "dtype .* 'float64' or 'float32'"),
    ({"dtype": "double precision"}, TypeError, "dtype .* 'float64' or 'float32', .* 'double precision'"),
]
RK4_WITHOUT_RESIDUAL: dict[str, Call] = {
    "preset": lambda tableau: Network.preset("net", 2, 3, tableau=tableau),
    "ODEClassifier": lambda tableau: ODEClassifier(architecture="net", tableau=tableau).fit(X, Y),
}
WRONG_SEEDS: list[Row] = [
    (seed, (TypeError, ValueError), "random_state .* None, a whole number, a numpy Generator")
    for seed in ("seed", 1.5, -1)
]
WRONG_PARTS: list[Row] = [
    ({"K": np.zeros((2, 2, 2))}, ValueError, r"K .* \(3, 2, 2\), \(layers, dim, dim\), .* \(2, 2, 2\)"),
    ({"b": np.zeros((3, 3))}, ValueError, r"b .* \(3, 2\), \(layers, dim\), .* \(3, 3\)"),
    ({"h": [1.0]}, ValueError, r"h .* \(3,\), \(layers,\), .* \(1,\)"),
    ({"W": [1.0, 2.0]}, ValueError, r"W .* \(1, 2\), \(outputs, dim\), .* \(2,\)"),
    ({"mu": 0.0}, ValueError, r"mu .* \(1,\), \(outputs,\), .* \(\)"),
    ({"K": np.full((3, 2, 2), np.nan)}, ValueError, r"K\[0, 0, 0\] is nan; .* K .* finite"),
    ({"h": [0.1, np.inf, 0.1]}, ValueError, r"h\[1\] is inf; .* h .* finite"),
    ({"mu": ["0"]}, TypeError, "mu .* real numbers, .* <U1"),
    ({"W": [[1j, 0]]}, TypeError, "W .* real numbers, .* complex128"),
    ({"b": [[0, 0], [0]]}, ValueError, "b .* real numbers, .* ragged"),
]
STAGE_SHAPES = ((3, 2, 2), (3, 4, 2, 2), (3, 1, 2, 2), (3, 3, 2))
WRONG_STAGE_PARTS: list[Row] = [
    *(
        ({"K": np.ones(shape)}, ValueError, r"K .* \(3, 3, 2, 2\), \(layers, stages, dim, dim\)")
        for shape in STAGE_SHAPES
    ),
    *(({"b": np.ones(shape[:-1])}, ValueError, r"b .* \(3, 3, 2\), \(layers, stages, dim\)") for shape in STAGE_SHAPES),
]
WRONG_NO_STEPS: list[Row] = [({"h": [0.1, 0.2, 0.3]}, ValueError, "h: .* feed-forward .* no time steps")]
WRONG_SIMPLEX_STEPS: list[Row] = [
    ({"h": [1.0, -0.5, 0.5]}, ValueError, r"h\[1\] is -0.5; .* negative"),
    ({"h": [0.5, 0.5, 0.5]}, ValueError, "h sums to 1.5 .* horizon 1.0; ocdl.project_simplex"),
    ({"h": [1.7e308, 1.7e308, 0.0]}, ValueError, "h sums to inf .* horizon 1.0"),
]
WRONG_VECTORS: list[Row] = [
    (np.zeros(3), ValueError, r"v .* \(24,\), \(n_controls,\), .* \(3,\)"),
    (np.full(24, np.nan), ValueError, r"v\[0\] is nan; .* v .* finite"),
    ("vector", TypeError, "v .* real numbers"),
]

# ---- other arguments ----

WRONG_THREADS: list[Row] = [
    (0, ValueError, r"set_num_threads\(0\): the number of threads .* at least 1, .* 0"),
    (-1, ValueError, r"set_num_threads\(-1\): the number of threads .* at least 1, .* -1"),
    (10**12, ValueError, "the number of threads .* at most 2147483647"),
    (2.5, TypeError, r"set_num_threads\(2.5\): the number of threads .* whole number, .* 2.5 \(float\)"),
    (2.0, TypeError, r"the number of threads .* whole number, .* 2.0 \(float\)"),
    ("four", TypeError, r"set_num_threads\('four'\): the number of threads .* 'four' \(str\)"),
    (None, TypeError, r"the number of threads .* whole number, .* None \(NoneType\)"),
    (True, TypeError, r"the number of threads .* whole number, .* True \(bool\)"),
]
TAKES_MAX_ITER: dict[str, Call] = {
    kind.__name__: lambda n, kind=kind: kind(max_iter=n).fit(X, Y) for kind in (ODEClassifier, ODERegressor)
}
WRONG_MAX_ITERS: list[Row] = [(0, ValueError, "max_iter .* at least 1, .* 0")]
WRONG_COLOURS: list[Row] = [
    ("bleu", ValueError, r"^colour must be one of 'red', 'blue', got 'bleu'; did you mean 'blue'\?$"),
    (3, TypeError, r"^colour must be one of 'red', 'blue', got 3 \(int\)$"),
]
WRONG_OPTIMISERS: list[Row] = [
    ("adam", TypeError, r"optimiser .*, got 'adam'; did you mean ocdl.Adam"),
    ("L-BFGS", TypeError, r"optimiser .*, got 'L-BFGS'; did you mean ocdl.LBFGS"),
    ("newton_cg", TypeError, r"optimiser .*, got 'newton_cg'; did you mean ocdl.NewtonCG"),
]
WRONG_OPTIMISER_NAMES: list[Row] = [("sgd", ValueError, "optimiser .*'LBFGS', 'NewtonCG', got 'sgd'")]

# What is no attribute, or stands in the place of another argument.
