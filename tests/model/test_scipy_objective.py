"""The objective as SciPy takes it: one function of a vector, and its second derivatives as linear operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from problems import FIELDS, TABLEAUX, Problem, field_options, random_problem
from scipy.optimize import check_grad, minimize
from scipy.sparse.linalg import LinearOperator, eigsh
from subprocesses import run_python

import ocdl
from ocdl import Network, Objective
from ocdl.model.losses import LOSSES

PENALISED = Objective("cross_entropy", reduction="sum", penalties=(ocdl.Tikhonov(0.1), ocdl.TimeSmoothness(0.2)))


def problem(seed: int = 0, samples: int = 12, **options: Any) -> Problem:
    return random_problem(Network(2, 4, **({"time_steps": "free", "n_outputs": 3} | options)), samples, seed)


def function_of(p: Problem, objective: Objective = PENALISED) -> ocdl.ScipyObjective:
    return p.net.scipy_objective(p.X, p.y, objective, sample_weight=p.sample_weight)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("loss", LOSSES)
def test_scipy_objective_has_the_bits_of_the_objective(loss: str, dtype: str) -> None:
    p, objective = problem(dtype=dtype), Objective(loss)
    y: Any = p.y if LOSSES[loss].targets == "classes" else np.abs(np.random.default_rng(0).normal(size=(12, 3)))
    J = p.net.scipy_objective(p.X, y, objective, sample_weight=p.sample_weight)
    value, g = p.net.value_and_grad(p.u, p.X, y, objective, sample_weight=p.sample_weight)
    for u in (p.u, p.u.to_vector(), p.u.to_vector().tolist()):
        actual, slope = J.fun(u)
        assert actual == value
        assert slope.dtype == np.float64
        assert np.array_equal(slope, g.to_vector())
    Hv = p.net.hessian_product(p.u, p.X, y, objective, du=p.du, sample_weight=p.sample_weight).to_vector()
    Gv = p.net.gauss_newton_product(p.u, p.X, y, objective, du=p.du, sample_weight=p.sample_weight).to_vector()
    v = p.du.to_vector()
    assert np.array_equal(J.hessp(p.u.to_vector(), v), Hv)
    assert np.array_equal(J.hessian(p.u) @ v, Hv)
    assert np.array_equal(J.gauss_newton(p.u.to_vector()) @ v, Gv)
    assert np.array_equal(J.hessp(p.u, p.du), Hv)


@pytest.mark.parametrize("tableau", TABLEAUX)
@pytest.mark.parametrize("field", FIELDS)
def test_scipy_confirms_the_gradient(tableau: str, field: str) -> None:
    p = problem(tableau=tableau, **field_options(field), samples=5)
    J = function_of(p)
    error = check_grad(lambda u: J.fun(u)[0], lambda u: J.fun(u)[1], p.u.to_vector(), direction="random", rng=0)
    assert error <= 1e-5 * max(1.0, float(np.abs(J.fun(p.u)[1]).sum()))


def test_operators_are_symmetric_matrices() -> None:
    p = problem()
    J, n = function_of(p), p.net.n_controls
    for operator in (J.hessian(p.u), J.gauss_newton(p.u)):
        assert isinstance(operator, LinearOperator)
        assert operator.shape == (n, n)
        assert operator.dtype == np.float64
        dense = operator @ np.eye(n)
        np.testing.assert_allclose(dense, dense.T, atol=1e-12 * np.abs(dense).max())
        np.testing.assert_allclose(operator.T @ np.eye(n), dense, atol=1e-12 * np.abs(dense).max())
        largest = eigsh(operator, k=1, which="LA", return_eigenvectors=False)[0]
        assert largest == pytest.approx(np.linalg.eigvalsh(dense)[-1], rel=1e-8)
    assert np.linalg.eigvalsh(J.gauss_newton(p.u) @ np.eye(n)).min() >= -1e-12 * largest


def test_operators_keep_their_controls() -> None:
    p = problem()
    u, v = p.u.to_vector(), p.du.to_vector()
    operator = function_of(p).hessian(u)
    before = operator @ v
    u += 1
    assert np.array_equal(operator @ v, before)


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "CG", "Newton-CG", "trust-ncg", "trust-krylov"])
def test_scipy_minimisers_accept_the_objective(method: str) -> None:
    """All of them reach a point where the gradient is 0, with or without second derivatives."""
    p = problem(samples=30, time_steps="fixed")  # no penalty holds free steps back
    J = p.net.scipy_objective(p.X, p.y, Objective("cross_entropy", penalties=ocdl.Tikhonov(0.05)))
    curved = {"hessp": J.hessp} if method in ("Newton-CG", "trust-ncg", "trust-krylov") else {}
    actual = minimize(J.fun, p.u.to_vector(), jac=True, method=method, options={"maxiter": 2000}, **curved)
    assert np.linalg.norm(J.fun(actual.x)[1]) <= 1e-3
    assert actual.fun == p.net.value(p.net.from_vector(actual.x), p.X, p.y, J.objective)
    assert actual.fun < J.fun(p.u)[0]


def test_fixed_steps_are_no_variables() -> None:
    p = problem(time_steps="fixed")
    J, position = function_of(p), p.net._layout.slices["h"][0]
    assert not J.fun(p.u)[1][position].any()
    assert not (J.hessian(p.u) @ p.du.to_vector())[position].any()


def test_errors_name_unfitting_arguments() -> None:
    p = problem()
    with pytest.raises(ValueError, match="X has 3 features but the network takes 2"):
        p.net.scipy_objective(np.ones((4, 3)), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="y has 2 labels but X has 12 samples"):
        p.net.scipy_objective(p.X, [0, 1])
    with pytest.raises(TypeError, match="objective must be an Objective, got str"):
        p.net.scipy_objective(p.X, p.y, "squared")
    J = function_of(p)
    with pytest.raises(ValueError, match=r"u must have shape \(\d+,\), \(n_controls,\), got \(3,\)"):
        J.fun(np.ones(3))
    with pytest.raises(ValueError, match=r"u\[0\] is nan"):
        J.fun(np.full(p.net.n_controls, np.nan))
    with pytest.raises(ValueError, match=r"du must have shape"):
        J.hessp(p.u, np.ones(3))
    with pytest.raises(ValueError, match="u does not fit the network"):
        J.fun(Network(3, 4).init())


class AbsoluteError:
    def value_and_grad(self, outputs: np.ndarray, targets: np.ndarray) -> Any:
        residual = outputs - targets[:, None]
        return np.abs(residual).sum(axis=1), np.sign(residual)


def test_a_custom_loss_has_first_derivatives() -> None:
    p = problem()
    J = p.net.scipy_objective(p.X, p.y, Objective(AbsoluteError()))
    value, g = p.net.value_and_grad(p.u, p.X, p.y, Objective(AbsoluteError()))
    assert J.fun(p.u)[0] == value
    assert np.array_equal(J.fun(p.u)[1], g.to_vector())
    with pytest.raises(ValueError, match=r"the custom loss .* has no second derivative"):
        J.hessp(p.u, p.du)


def test_scipy_is_imported_with_the_first_operator() -> None:
    code = "import sys, ocdl; ocdl.Network(1, 1).scipy_objective([[1.0]], [0]); print('scipy' in sys.modules)"
    assert run_python(code) == "False"
