"""Rows that are not finite in PyTorch and JAX: NaN in their place, everything else as if they were not there."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from bridged_problems import expected_of, problem
from problems import Problem

import ocdl
from ocdl.interop.bridge import RETURNS, Bridge

pytestmark = pytest.mark.extras
Evaluation = tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]  # result, gradient by x and by each part


def in_torch(p: Problem, returns: str, cotangent: Any = None, **options: Any) -> Evaluation:
    import torch

    layer = ocdl.torch.OCDLayer(p.net, None, returns, **options)
    with torch.no_grad():  # not by the constructor, which takes finite controls only
        for name, values in p.u.parts().items():
            if hasattr(layer, name):
                getattr(layer, name).copy_(torch.from_numpy(values))
    x = torch.tensor(p.X, requires_grad=True)
    result = layer(x)
    result.backward(torch.ones_like(result) if cotangent is None else torch.tensor(cotangent))
    gradients = {name: parameter.grad.numpy() for name, parameter in layer.named_parameters()}
    return result.detach().numpy(), x.grad.numpy(), gradients


def in_jax(p: Problem, returns: str, cotangent: Any = None, **options: Any) -> Evaluation:
    import jax

    jax.config.update("jax_enable_x64", True)
    flow = ocdl.jax.flow(p.net, returns, **options)
    parts = {part.name: getattr(p.u, part.name) for part in Bridge(p.net, returns).parts}
    result, vjp = jax.vjp(flow, parts, p.X)
    by_parts, by_x = vjp(jax.numpy.asarray(np.ones_like(result) if cotangent is None else cotangent))
    return np.asarray(result), np.asarray(by_x), {name: np.asarray(values) for name, values in by_parts.items()}


LIBRARIES = [
    pytest.param(
        function,
        id=name,
        marks=pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"pip install 'ocdl[{name}]'"),
    )
    for name, function in (("torch", in_torch), ("jax", in_jax))
]
both = pytest.mark.parametrize("evaluate", LIBRARIES)


def with_nan(p: Problem) -> None:
    p.X[2, 1] = np.nan


def with_infinity(p: Problem) -> None:
    p.X[2, 0] = -np.inf


def with_overflow(p: Problem) -> None:
    """In which the flow overflows, by a layer that nearly does so."""
    p.u.W[...] *= 1e200
    p.u.K[...], p.u.b[...] = 0, 0
    p.X[2] = 1e200


@both
@pytest.mark.parametrize("returns", RETURNS)
@pytest.mark.parametrize("spoil", [with_nan, with_infinity])
@pytest.mark.parametrize("options", [{}, {"residual": False, "time_steps": "fixed"}, {"tableau": "implicit_midpoint"}])
def test_one_row_is_nan_and_the_others_are_unchanged(
    evaluate: Callable[..., Evaluation], returns: str, spoil: Callable[[Problem], None], options: Any
) -> None:
    p = problem(samples=5, augment=1, **options)
    good = [0, 1, 3, 4]
    expected, by_others, _ = evaluate(replace(p, X=p.X[good]), returns)
    spoil(p)
    result, by_x, by_parts = evaluate(p, returns)
    assert np.isnan(result[..., 2, :]).all()
    assert np.array_equal(result[..., good, :], expected)
    assert np.isnan(by_x[2]).all()
    assert np.array_equal(by_x[good], by_others)
    assert all(np.isnan(values).all() for values in by_parts.values())


@both
def test_rows_whose_outputs_overflow(evaluate: Callable[..., Evaluation]) -> None:
    p = problem(samples=5)
    with_overflow(p)
    result, by_x, by_parts = evaluate(p, "outputs")
    assert np.isnan(result).all(axis=1).tolist() == [False, False, True, False, False]
    assert np.isfinite(by_x).all(axis=1).tolist() == [True, True, False, True, True]
    assert all(np.isnan(values).all() for values in by_parts.values())


@both
def test_a_row_whose_stages_are_not_solved(evaluate: Callable[..., Evaluation]) -> None:
    """Implicit Euler with y = x + y, which no y solves."""
    p = problem(samples=3, tableau="implicit_euler", activation="identity")
    p.u.K[0], p.u.h[0] = np.eye(2), 1.0
    p.u.b[0] = 0
    result, by_x, by_parts = evaluate(p, "outputs")
    for values in (result, by_x, *by_parts.values()):
        assert np.isnan(values).all()
    with pytest.raises(Exception, match=r"x\[0\]: the stage equations of layer 0 of 3 were not solved for sample 0"):
        evaluate(p, "outputs", on_nonfinite="raise")


@both
@pytest.mark.parametrize("returns", RETURNS)
def test_any_axes_before_the_features(evaluate: Callable[..., Evaluation], returns: str) -> None:
    p = problem(samples=6)
    flat = expected_of(p, returns)
    p.X[4, 0] = np.nan
    result, by_x, _ = evaluate(replace(p, X=p.X.reshape(2, 3, 2)), returns)
    bad = np.isnan(result)
    assert bad[..., 1, 1, :].all()
    assert bad.sum() == bad[..., 1, 1, :].size
    assert np.array_equal(np.delete(result.reshape(flat.shape), 4, -2), np.delete(flat, 4, -2))
    assert np.argwhere(np.isnan(by_x).all(axis=-1)).tolist() == [[1, 1]]


@both
@pytest.mark.parametrize("returns", RETURNS)
def test_controls_that_are_not_finite_make_every_row_nan(evaluate: Callable[..., Evaluation], returns: str) -> None:
    p = problem(samples=3)
    p.u.b[1, 0] = np.inf
    result, by_x, by_parts = evaluate(p, returns)
    assert np.isnan(result).all()
    assert np.isnan(by_x).all()
    assert all(np.isnan(values).all() for values in by_parts.values())


@both
@pytest.mark.parametrize("returns", RETURNS)
def test_a_cotangent_that_is_not_finite(evaluate: Callable[..., Evaluation], returns: str) -> None:
    """As a loss has it whose derivative is not finite in one row."""
    p = problem(samples=5)
    cotangent = np.ones_like(expected_of(p, returns))
    _, by_finite, _ = evaluate(p, returns, cotangent)
    cotangent[..., 3, 0] = np.nan
    result, by_x, by_parts = evaluate(p, returns, cotangent)
    assert np.array_equal(result, expected_of(p, returns))
    assert np.isnan(by_x).all(axis=1).tolist() == [False, False, False, True, False]
    assert np.array_equal(by_x[:3], by_finite[:3])
    assert all(np.isnan(values).all() for values in by_parts.values())


@both
def test_a_gradient_that_overflows_alone(evaluate: Callable[..., Evaluation]) -> None:
    """It is what it is, infinite, as loss scaling in PyTorch expects; rows that are finite stay finite."""
    p = problem(samples=3)
    cotangent = np.ones((3, 2))
    cotangent[1] = 1e308
    p.u.W[...] = 1e10
    result, by_x, by_parts = evaluate(p, "outputs", cotangent)
    assert np.isfinite(result).all()
    assert np.isfinite(by_x).all(axis=1).tolist() == [True, False, True]
    assert not np.isfinite(by_parts["K"]).all()
    assert np.isfinite(by_parts["mu"]).all() == np.isfinite(cotangent.sum(axis=0)).all()


@both
@pytest.mark.parametrize("returns", RETURNS)
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (with_nan, r"x\[2, 1\] is nan; all of x must be finite"),
        (lambda p: p.u.b.__setitem__((1, 0), np.inf), r"controls\.b\[1, 0\] is inf; all of controls\.b must be finite"),
        (
            lambda p: p.X.__setitem__(2, 1.7e308),
            r"x\[2\]: the flow overflows float64: the state of sample 2 is not fin",
        ),
    ],
)
def test_errors_name_arguments_of_the_caller(
    evaluate: Callable[..., Evaluation], spoil: Callable[[Problem], None], message: str, returns: str
) -> None:
    p = problem(samples=5, activation="identity")
    spoil(p)
    with pytest.raises(Exception, match=message):  # JAX wraps what a callback raises
        evaluate(p, returns, on_nonfinite="raise")


@both
def test_errors_of_gradients(evaluate: Callable[..., Evaluation]) -> None:
    p = problem(samples=3)
    with pytest.raises(Exception, match=r"cotangent\[1, 0\] is nan; all of cotangent must be finite"):
        evaluate(p, "outputs", np.array([[1.0, 1.0], [np.nan, 1.0], [1.0, 1.0]]), on_nonfinite="raise")
    p.u.W[...] = 1e10
    with pytest.raises(Exception, match="the gradient overflows float64 although the flow is finite"):
        evaluate(p, "outputs", np.full((3, 2), 1e308), on_nonfinite="raise")


@both
def test_several_thousand_rows(evaluate: Callable[..., Evaluation]) -> None:
    """More than are looked at together."""
    p = problem(samples=3000, activation="identity")
    bad = [0, 255, 256, 1999]
    p.X[bad] = [[np.nan, 0], [0, np.inf], [1.7e308, 1.7e308], [np.nan, np.nan]]
    result, by_x, _ = evaluate(p, "state")
    assert np.flatnonzero(np.isnan(result).all(axis=1)).tolist() == bad
    assert np.flatnonzero(~np.isfinite(by_x).all(axis=1)).tolist() == bad
    p.X[[0, 255, 1999]] = 0
    with pytest.raises(Exception, match=r"x\[256\]: the flow overflows float64: the state of sample 256 is not finite"):
        evaluate(p, "state", on_nonfinite="raise")
