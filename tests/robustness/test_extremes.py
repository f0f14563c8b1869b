"""The ends of the number range: a finite result or a FloatingPointError that says where, never a crash or a NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import ACTIVATIONS, EXPLICIT, LOSSES, Problem, random_problem
from subprocesses import run_python

from ocdl import Network, Objective

DTYPES = ("float64", "float32")

every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_activation = pytest.mark.parametrize("activation", ACTIVATIONS)
every_tableau = pytest.mark.parametrize("tableau", EXPLICIT)
every_loss = pytest.mark.parametrize("loss", LOSSES)

EVALUATIONS: dict[str, Callable[[Problem, Objective], Any]] = {
    "forward": lambda case, _: (case.net.forward(case.u, case.X).states, case.net.forward(case.u, case.X).outputs),
    "predict": lambda case, _: case.net.predict(case.u, case.X),
    "value": lambda case, objective: case.net.value(*case.data, objective),
    "value_and_grad": lambda case, objective: flattened(
        *case.net.value_and_grad(*case.data, objective, input_grad=True)
    ),
    "adjoint": lambda case, objective: case.net.adjoint(*case.data, objective),
    "tangent": lambda case, _: case.net.tangent(case.u, case.X, case.du, case.dX),
}


def flattened(J: float, g: Any) -> tuple[Any, ...]:
    return J, g.to_vector(), g.X


def is_finite(result: Any) -> bool:
    return all(np.isfinite(part).all() for part in (result if isinstance(result, tuple) else (result,)))


def outcomes(problem: Problem, objective: Objective) -> dict[str, str]:
    """For each evaluation "finite", or the message of its error; a NaN or an infinity is neither."""
    results = {}
    for name, evaluate in EVALUATIONS.items():
        try:
            result = evaluate(problem, objective)
        except FloatingPointError as error:
            results[name] = str(error)
        else:
            assert is_finite(result), f"{name} returned a number that is not finite"
            results[name] = "finite"
    return results


def scaled(problem: Problem, **factors: float) -> Problem:
    """The problem with parts of its controls, or X, multiplied."""
    u, X = problem.u.copy(), problem.X.copy()
    for name, factor in factors.items():
        part = X if name == "X" else getattr(u, name)
        part[...] = (part.astype(float) * factor).astype(part.dtype)
    return Problem(problem.net, u, problem.du, X, problem.dX, problem.y, problem.sample_weight)


@every_loss
@every_dtype
@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
@pytest.mark.parametrize(
    "options", [{"tableau": "kutta4", "time_steps": "free"}, {"residual": False}], ids=["kutta4", "net"]
)
def test_saturated_networks_are_finite(options: dict[str, Any], activation: str, dtype: str, loss: str) -> None:
    net = Network(3, 20, n_outputs=2, activation=activation, dtype=dtype, **options)
    problem = scaled(random_problem(net, samples=30), K=1e3, b=1e3, W=1e3)
    assert set(outcomes(problem, Objective(loss)).values()) == {"finite"}


@every_activation
@every_dtype
@every_tableau
def test_steps_of_zero_leave_the_data_alone(tableau: str, dtype: str, activation: str) -> None:
    net = Network(3, 5, tableau=tableau, activation=activation, time_steps="free", dtype=dtype)
    problem = scaled(random_problem(net, samples=10), h=0.0)
    t = net.forward(problem.u, problem.X)
    for state in t.states:
        np.testing.assert_array_equal(state, problem.X)
    _, g = net.value_and_grad(*problem.data)
    assert not g.K.any()
    assert not g.b.any()
    assert g.h.any()
    p = net.adjoint(*problem.data)
    for costate in p:
        np.testing.assert_array_equal(costate, p[0])


@every_dtype
@every_activation
@pytest.mark.parametrize("size", ["huge", "largest", "subnormal", "smallest"])
def test_data_at_the_ends_of_the_range(size: str, activation: str, dtype: str) -> None:
    limits = np.finfo(dtype)
    entry = {
        "huge": 1e300 if dtype == "float64" else 1e35,
        "largest": limits.max,
        "subnormal": limits.tiny / 16,
        "smallest": limits.smallest_subnormal,
    }[size]
    net = Network(2, 4, tableau="kutta3", activation=activation, time_steps="free", dtype=dtype)
    problem = random_problem(net, samples=9)
    problem.X[...] = entry * np.sign(problem.X)
    results = outcomes(problem, Objective("cross_entropy"))
    if size in {"subnormal", "smallest"}:
        assert set(results.values()) == {"finite"}
    elif size == "huge" and activation in {"tanh", "sigmoid"}:
        assert results["forward"] == results["predict"] == results["value"] == "finite"


numbers = st.sampled_from([0.0, 1e-320, 1e-200, 1e-30, 1.0, 1e3, 1e10, 1e30, 1e150, 1e300])


@settings(max_examples=400)
@given(
    activation=st.sampled_from(ACTIVATIONS),
    loss=st.sampled_from(LOSSES),
    options=st.sampled_from(
        [{"residual": False}, {"tableau": "kutta4", "time_steps": "free"}, {"tableau": "midpoint"}]
    ),
    n_outputs=st.integers(1, 3),
    factors=st.fixed_dictionaries(dict.fromkeys(("K", "b", "h", "W", "mu", "X"), numbers)),
    seed=st.integers(0, 1000),
)
def test_anything_finite_gives_a_finite_result_or_an_error(
    activation: str, loss: str, options: dict[str, Any], n_outputs: int, factors: dict[str, float], seed: int
) -> None:
    net = Network(2, 3, n_outputs=n_outputs, activation=activation, **options)
    outcomes(scaled(random_problem(net, 5, seed), **factors), Objective(loss, reduction="sum"))


# ---- the message says where ----


def growing(layers: int = 6, samples: int = 600) -> Problem:
    """y[j+1] = 1e100 y[j]: a sample of size 1 leaves the range in layer 3, counted from 0."""
    net = Network(2, layers, activation="identity", residual=False)
    problem = random_problem(net, samples)
    u = net.controls(K=[1e100 * np.eye(2)] * layers, W=[[1.0, 1.0]])
    return Problem(net, u, problem.du, np.zeros((samples, 2)), problem.dX, problem.y, problem.sample_weight)


@pytest.mark.parametrize("evaluation", sorted(EVALUATIONS.keys() - {"tangent"}))
@pytest.mark.parametrize("sample", [0, 7, 255, 256, 599])
def test_an_overflow_names_its_sample_and_layer(evaluation: str, sample: int) -> None:
    problem = growing()
    problem.X[sample, 1] = 1.0
    with pytest.raises(
        FloatingPointError, match=f"the state of sample {sample} is not finite after layer 3 of 6; scale"
    ):
        EVALUATIONS[evaluation](problem, Objective())


@every_loss
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("evaluation", sorted(EVALUATIONS.keys() - {"tangent"}))
def test_a_loss_that_is_flat_at_infinity_hides_no_overflow(evaluation: str, label: int, loss: str) -> None:
    net = Network(1, 2, activation="identity")
    problem = random_problem(net, samples=2)
    problem.u.K[...], problem.u.W[...] = 1e200, 1.0
    problem.X[...], problem.y[...] = [[0.0], [1.0]], label
    with pytest.raises(FloatingPointError, match="the state of sample 1 is not finite after layer 1 of 2"):
        EVALUATIONS[evaluation](problem, Objective(loss))


def test_an_overflow_of_the_outputs_names_its_sample() -> None:
    problem = growing(layers=1)
    problem.X[5, 0] = 1e200
    problem.u.W[...] = 1e200
    with pytest.raises(FloatingPointError, match=r"the outputs W y \+ mu overflow float64 for sample 5"):
        problem.net.predict(problem.u, problem.X)


def test_an_overflow_of_the_derivatives_alone_is_an_error() -> None:
    net = Network(1, 1, activation="identity")
    u = net.controls(K=[[[1e308]]], W=[[1e3]])
    assert np.isfinite(net.value(u, [[1e-308]], [0]))
    with pytest.raises(
        FloatingPointError, match="the objective or its derivatives overflow float64 although the flow is"
    ):
        net.value_and_grad(u, [[1e-308]], [0], Objective("cross_entropy"), input_grad=True)


# ---- single precision ----


@every_loss
@every_activation
@every_tableau
def test_float32_agrees_with_float64(tableau: str, activation: str, loss: str) -> None:
    """To 20 roundoffs of float32 per layer, relative to the largest entry of each result."""
    layers = 10
    options = {"n_outputs": 3, "tableau": tableau, "activation": activation, "time_steps": "free", "augment": 1}
    single, double = (Network(4, layers, dtype=dtype, **options) for dtype in ("float32", "float64"))
    case = random_problem(single, samples=40)
    twin = Problem(
        double,
        double.from_vector(case.u.to_vector()),
        double.from_vector(case.du.to_vector()),
        *(array.astype(float) for array in (case.X, case.dX)),
        case.y,
        case.sample_weight.astype(float),
    )
    tolerance = 20 * layers * float(np.finfo(np.float32).eps)
    for name, evaluate in EVALUATIONS.items():
        narrow, wide = (evaluate(problem, Objective(loss)) for problem in (case, twin))
        pairs = zip(narrow, wide, strict=True) if isinstance(narrow, tuple) else [(narrow, wide)]
        for actual, expected in pairs:
            assert np.abs(actual - expected).max() <= tolerance * np.abs(expected).max(), name


# ---- sizes ----


@pytest.mark.parametrize("stages", [10, 16, 17, 33, 64])
def test_tableaux_of_many_stages(stages: int) -> None:
    """y' = y by the method whose stages are all Euler steps of length 1/s: (1 + h/s)^s."""
    code = f"""
import numpy as np, ocdl
s, layers = {stages}, 2
A, b = np.tril(np.full((s, s), 1 / s), -1), np.full(s, 1 / s)
net = ocdl.Network(1, layers, tableau=ocdl.Tableau(A, b), activation="identity", time_steps="free")
u = net.controls(K=np.ones((layers, 1, 1)), W=[[1.0]])
exact = (1 + 0.5 / s) ** (s * layers)
np.testing.assert_allclose(net.predict(u, [[1.0]]), exact, rtol=1e-13)
np.testing.assert_allclose(net.tangent(u, [[1.0]], dX=[[1.0]])[-1], exact, rtol=1e-13)
du = net.controls(h=np.ones(layers))
np.testing.assert_allclose(
    net.tangent(u, [[1.0]], du)[-1], layers * (1 + 0.5 / s) ** (s * layers - 1), rtol=1e-13
)
J, g = net.value_and_grad(u, [[1.0]], [0], input_grad=True)
C = 1 / (1 + np.exp(-exact))
np.testing.assert_allclose(g.X, C * C * (1 - C) * exact, rtol=1e-12)
print("fine")
"""
    assert run_python(code) == "fine"


@pytest.mark.parametrize(("threads", "dim"), [(1000, 2), (1000, 100), (100_000, 2), (100_000, 100)])
def test_absurdly_many_threads(threads: int, dim: int) -> None:
    code = f"""
import numpy as np, ocdl
net = ocdl.Network({dim}, 3)
u, X, y = net.init(random_state=0), np.ones((4000, {dim})), np.zeros(4000, int)
expected = net.value_and_grad(u, X, y)[0]
ocdl.set_num_threads({threads})
ocdl._core.insist_on_threads(True)
assert net.value_and_grad(u, X, y)[0] == expected
print("fine")
"""
    assert run_python(code) == "fine"
