"""Wrong arguments of `Dynamics` raise errors that name them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import ocdl

T = np.linspace(0, 3, 16)
X = np.column_stack([np.exp(-T), np.exp(-2 * T)])
NAN = np.full((16, 2), np.nan)


@pytest.fixture(scope="module")
def fitted() -> ocdl.Dynamics:
    return ocdl.Dynamics(field="polynomial", degree=1, random_state=0).fit(X, T)


@pytest.fixture(scope="module")
def with_inputs() -> ocdl.Dynamics:
    x = np.sin(T)[:, None]
    return ocdl.Dynamics(field="polynomial", degree=1, random_state=0).fit(X, T, inputs=x)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((X, T[::-1]), ValueError, r"times must increase, but times\[1\]"),
        ((X, np.append(T[:-1], T[-2])), ValueError, r"times must increase"),
        ((X, T[:-1]), ValueError, r"times must have shape \(16,\)"),
        ((X, "now"), TypeError, "times must be a time step"),
        ((X, None), TypeError, "times must be a time step"),
        ((X, -0.1), ValueError, "times must be positive"),
        ((X, np.append(T[:-1], np.nan)), ValueError, "times"),
        (([X, X[:5]], T), ValueError, "times must be a list with an array for each series"),
        (([X, X], [T]), ValueError, "times has 1 array for 2 series"),
        (([X, X[:5]], [T, T]), ValueError, r"times\[1\] must have shape \(5,\)"),
        ((X[:, 0], T), ValueError, "X must be one series of shape"),
        (([], T), ValueError, "X is an empty list"),
        (([X, X[:, :1]], [T, T]), ValueError, "as many columns"),
        ((NAN, T), ValueError, "X is all NaN"),
        (([X, NAN], [T, T]), ValueError, r"X\[1\] is all NaN"),
        ((np.where([[True, False]], X, np.nan), T), ValueError, "column 1 of X is all NaN"),
        ((X[:1], T[:1]), ValueError, "one observation only"),
        ((np.where(np.arange(16)[:, None] < 1, X, np.nan), T), ValueError, "one observation only"),
        ((np.where(X > 0.9, np.inf, X), T), ValueError, "X has infinite values"),
        ((X.astype(str), T), TypeError, "X must hold real numbers"),
        ((X + 1j, T), TypeError, "X must hold real numbers"),
    ],
)
def test_wrong_series(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ocdl.Dynamics().fit(*arguments)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (np.ones((15, 1)), "inputs has 15 rows but X has 16"),
        (np.full((16, 1), np.nan), "inputs must be finite"),
        ([np.ones((16, 1))] * 2, "inputs must be given as X is"),
        (np.ones(16), "inputs must be one series of shape"),
    ],
)
def test_wrong_inputs(inputs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ocdl.Dynamics().fit(X, T, inputs=inputs)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"field": "dense"}, ValueError, "field must be"),
        ({"field": "polinomial"}, ValueError, "did you mean 'polynomial'"),
        ({"width": 0}, ValueError, "width"),
        ({"degree": 1.5}, TypeError, "degree"),
        ({"tableau": "implicit_midpoint"}, ValueError, "tableau must be explicit"),
        ({"tableau": "no"}, ValueError, "tableau"),
        ({"max_step": 0}, ValueError, "max_step must be positive"),
        ({"observe": [0]}, ValueError, "observe names 1 components but X has 2 columns"),
        ({"observe": [0, 0]}, ValueError, "different components"),
        ({"observe": [[1.0, 0.0]]}, ValueError, "observe must be 2 component numbers"),
        ({"observe": [[1.0, 0.0], [0.0, 0.0]]}, ValueError, "row of zeros"),
        ({"augment": -1}, ValueError, "augment"),
        ({"linear": [1.0, 2.0]}, ValueError, "linear must be a square matrix"),
        ({"linear": np.eye(3)}, ValueError, r"linear must have shape \(2, 2\)"),
        ({"learn_linear": False}, ValueError, "needs a linear part to keep"),
        ({"sparsity": "some"}, ValueError, "sparsity must be 'auto' or a number"),
        ({"sparsity": -1}, ValueError, "sparsity"),
        ({"alpha": "cv"}, ValueError, "alpha must be 'auto' or a number"),
        ({"n_models": 0}, ValueError, "n_models"),
        ({"max_iter": 0}, ValueError, "max_iter"),
        ({"validation_fraction": 0.9}, ValueError, "validation_fraction must be from 0 to 0.5"),
        ({"random_state": "a"}, TypeError, "random_state"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ocdl.Dynamics(**parameters).fit(X, T)


def test_foreign_keywords_are_explained() -> None:
    with pytest.raises(TypeError, match="sparsity"):
        ocdl.Dynamics(threshold=0.1)  # type: ignore[call-arg]


@pytest.mark.parametrize("method", ["simulate", "initial_state", "derivative", "score", "equations", "save"])
def test_methods_need_a_fit(method: str) -> None:
    arguments = {"simulate": ([1.0], [0.0]), "derivative": ([1.0],), "equations": (), "save": ("x",)}
    with pytest.raises(NotFittedError):
        getattr(ocdl.Dynamics(), method)(*arguments.get(method, (X, T)))


@pytest.mark.parametrize(
    ("y0", "times", "message"),
    [
        ([1.0], T, r"y0 must have shape \(2,\) or \(m, 2\)"),
        ([1.0, np.nan], T, "y0"),
        ([1.0, 1.0], [[0.0]], "times must have shape"),
        ([1.0, 1.0], [], "times must have shape"),
        ([1.0, 1.0], [1.0, 1.0], "times must increase"),
    ],
)
def test_wrong_simulations(fitted: ocdl.Dynamics, y0: Any, times: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted.simulate(y0, times)


def test_inputs_are_needed_or_refused(fitted: ocdl.Dynamics, with_inputs: ocdl.Dynamics) -> None:
    y, x = [1.0, 1.0], np.ones((16, 1))
    with pytest.raises(ValueError, match="inputs must be left out"):
        fitted.simulate(y, T, inputs=x)
    with pytest.raises(ValueError, match="inputs is missing"):
        with_inputs.simulate(y, T)
    with pytest.raises(ValueError, match=r"inputs must have shape \(16, 1\)"):
        with_inputs.simulate(y, T, inputs=x[:4])
    with pytest.raises(ValueError, match="inputs is missing"):
        with_inputs.derivative(y)
    with pytest.raises(ValueError, match="inputs has 0 columns but fit had 1"):
        with_inputs.score(X, T)
    with pytest.raises(ValueError, match="inputs has 1 columns but fit had 0"):
        fitted.initial_state(X, T, inputs=x)
    assert with_inputs.simulate([y, y], T, inputs=x).shape == (2, 16, 2)
    assert with_inputs.simulate([y, y], T, inputs=np.stack([x, x])).shape == (2, 16, 2)


def test_wrong_columns_and_quantiles(fitted: ocdl.Dynamics) -> None:
    with pytest.raises(ValueError, match="X has 1 columns but fit had 2"):
        fitted.score(X[:, :1], T)
    with pytest.raises(ValueError, match="quantiles need an ensemble"):
        fitted.simulate([1.0, 1.0], T, quantiles=(0.1,))
    model = ocdl.Dynamics(field="polynomial", degree=1, n_models=2, random_state=0).fit(X, T)
    with pytest.raises(ValueError, match="quantiles must be numbers from 0 to 1"):
        model.simulate([1.0, 1.0], T, quantiles=(0.1, 1.5))


def test_an_mlp_has_no_equations() -> None:
    model = ocdl.Dynamics(width=3, max_iter=3, random_state=0).fit(X, T)
    with pytest.raises(ValueError, match="equations need field='polynomial'"):
        model.equations()


class Cost:
    def __init__(self, found: Any) -> None:
        self.found = found

    def value_and_grad(self, states: Any, inputs: Any) -> Any:
        return self.found


@pytest.mark.parametrize(
    ("cost", "bounds", "error", "message"),
    [
        (None, None, TypeError, "cost must have a method value_and_grad"),
        (Cost(1.0), None, TypeError, "must return a value, the gradient by the states and that by the inputs"),
        (Cost((1.0, np.zeros(3), np.zeros((16, 1)))), None, ValueError, "the gradient by states must have shape"),
        (Cost((1.0, np.zeros((16, 2)), np.zeros(2))), None, ValueError, "the gradient by inputs must have shape"),
        (Cost(1.0), (1.0, 0.0), ValueError, "lowest < highest"),
        (Cost(1.0), [(0, 1), (0, 1)], ValueError, "bounds must be a pair"),
    ],
)
def test_wrong_costs(with_inputs: ocdl.Dynamics, cost: Any, bounds: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        with_inputs.optimise_inputs([1.0, 1.0], T, cost, bounds)


def test_inputs_to_optimise_are_needed(fitted: ocdl.Dynamics) -> None:
    with pytest.raises(ValueError, match="optimise_inputs needs a system with inputs"):
        fitted.optimise_inputs([1.0, 1.0], T, Cost(0.0))
