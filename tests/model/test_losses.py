"""Every loss equals its formula: value, gradient, curvature and mean, for usual and for extreme outputs."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from exact_losses import ULPS, exact
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import REDUCTIONS

import ocdl
from ocdl import Network, Objective
from ocdl.model.losses import LOSSES, CustomLoss, Loss, loss_names
from ocdl.model.objective import resolve_loss

DTYPES = ("float64", "float32")


def parameter_values(above: float, below: float) -> list[float]:
    return [above + step for step in (1e-3, 0.7, 30.0)] if math.isinf(below) else [0.01, 0.3, 0.99]


def variants() -> Iterator[Loss]:
    """Every loss with its defaults, and with other values of its parameters."""
    for loss_type in LOSSES.values():
        yield loss_type()
        for parameter, limits in loss_type._ranges.items():
            yield from (loss_type(**{parameter: value}) for value in parameter_values(*limits))


every_loss = pytest.mark.parametrize("loss", list(variants()), ids=repr)
every_loss_of_numbers = pytest.mark.parametrize(
    "loss", [loss for loss in variants() if loss.targets == "numbers"], ids=repr
)
every_name = pytest.mark.parametrize("name", LOSSES)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_count = pytest.mark.parametrize("q", [1, 3])


# ---- what the package computes: a layer of step 0 leaves x as it is, W = I and mu = 0 pass it on ----


def pass_on(q: int, dtype: str = "float64") -> tuple[Network, ocdl.Controls]:
    net = Network(q, 1, n_outputs=q, dtype=dtype)
    return net, net.controls(W=np.eye(q), h=[0.0])


def curvature(loss: Loss, z: np.ndarray, target: Any, kind: str) -> np.ndarray:
    """L_zz, column by column; the outputs are mu here, so that nothing is multiplied by large data."""
    net, _ = pass_on(len(z))
    u = net.controls(W=np.eye(len(z)), mu=z, h=[0.0])
    columns = []
    for o in range(len(z)):
        direction = net.controls(h=[0.0])
        direction.mu[o] = 1
        product = getattr(net, f"{kind}_product")(
            u, np.zeros((1, len(z))), [target], Objective(loss, reduction="sum"), du=direction
        )
        columns.append(product.mu)
    return np.array(columns).T


def assert_right(actual: Any, reference: Any, size: Any, dtype: Any, what: str) -> None:
    """Finite and within some units in the last place of the size of the terms; what underflows may be 0."""
    precision = np.finfo(dtype)
    assert np.isfinite(actual), what
    allowed = ULPS * float(precision.eps) * size + 4 * float(precision.tiny)
    assert abs(mp.mpf(float(actual)) - reference) <= allowed, (
        what,
        float(actual),
        mp.nstr(reference, 20),
        mp.nstr(size, 5),
    )


def attempted(compute: Callable[[], Any]) -> tuple[Any, str]:
    """Return what is computed, or what the overflow says."""
    try:
        return compute(), ""
    except FloatingPointError as error:
        return None, str(error)


def check_row(loss: Loss, z: np.ndarray, target: Any) -> bool:
    """Compare one row with the formulas; what overflows has to be so large indeed. Return whether all was finite."""
    dtype, q = z.dtype, len(z)
    with mp.workdps(350):
        reference, largest, where = exact(loss, z, target), float(np.finfo(dtype).max), f"{loss} at {z!r}, {target!r}"
        net, u = pass_on(q, str(dtype))
        objective, messages = Objective(loss, reduction="sum"), []
        value, complaint = attempted(lambda: net.value(u, z[None], [target], objective))
        if complaint:
            assert complaint.endswith("scale the data or the controls down")
            assert 4 * reference.value_size > largest, where
        else:
            assert_right(value, reference.value, reference.value_size, dtype, f"value of {where}")
        messages.append(complaint)
        slopes, complaint = attempted(lambda: objective.output_grad(z[None], [target]))
        if complaint:
            assert complaint.startswith("the gradient of the loss overflows")
            assert 4 * max(reference.gradient_sizes) > largest, where
        else:
            for o in range(q):
                assert_right(
                    slopes[0, o], reference.gradient[o], reference.gradient_sizes[o], dtype, f"slope {o} of {where}"
                )
        messages.append(complaint)
        for kind in ("hessian", "gauss_newton") if dtype == np.float64 else ():
            actual, complaint = attempted(lambda kind=kind: curvature(loss, z, target, kind))
            if complaint:
                assert 4 * max(reference.curvature_size, reference.value_size) > largest, where
            else:
                matrix = getattr(reference, kind)
                for o, k in np.ndindex(q, q):
                    assert_right(actual[o, k], matrix[o][k], reference.curvature_size, dtype, f"{kind} of {where}")
            messages.append(complaint)
    return not any(messages)


def random_targets(loss: Loss, rng: np.random.Generator, samples: int, q: int, dtype: str = "float64") -> np.ndarray:
    if loss.targets == "classes":
        return rng.integers(0, max(q, 2), samples)
    actual = 3 * rng.normal(size=(samples, q)).astype(dtype)
    return np.abs(actual) if loss.minimum_target == 0 else actual


@every_loss
@every_count
@every_dtype
def test_value_gradient_and_curvature_follow_the_formulas(loss: Loss, q: int, dtype: str) -> None:
    rng = np.random.default_rng(q)
    for scale in (0.1, 3.0, 20.0):
        z = (scale * rng.normal(size=(3, q))).astype(dtype)
        for row, target in zip(z, random_targets(loss, rng, 3, q, dtype), strict=True):
            assert check_row(loss, row, target)


OUTPUTS = (0.0, -0.0, 1e-300, -1e-9, 0.5, -36.0, 80.0, 88.0, -100.0, 700.0, -700.0, 709.0)
TARGETS = (0.0, 1e-300, 1e-9, 0.5, 1.0, 700.0, 1e30, 1e300, -1e-300, -1.0, -1e30, -1e300)


@every_loss
@every_dtype
@every_count
def test_extremes_are_right_or_overflow(loss: Loss, dtype: str, q: int) -> None:
    """Never NaN, never infinite: an overflow is an error that says so, and only where numbers are that large."""
    largest = float(np.finfo(dtype).max)
    targets = range(max(q, 2)) if loss.targets == "classes" else [t for t in TARGETS if t >= loss.minimum_target]
    for i, output in enumerate(OUTPUTS):
        for target in targets:
            if loss.targets == "numbers" and abs(target) > largest:
                continue
            z = np.array([output, *OUTPUTS[i - q + 1 : i]][:q] if i >= q else [output] * q, dtype)
            check_row(loss, z, target if loss.targets == "classes" else np.full(q, target, dtype))


@every_loss_of_numbers
@every_dtype
def test_outputs_equal_to_targets_have_zero_loss(loss: Loss, dtype: str) -> None:
    """Poisson's mean equals c at z = log c, which a float hits but nearly."""
    net, u = pass_on(2, dtype)
    for size in (1e-30, 1.0, 1e30):
        c = np.array([[size, 3 * size]], dtype)
        z = np.log(c) if loss.name == "poisson" else c
        objective = Objective(loss, reduction="sum")
        eps, terms = float(np.finfo(dtype).eps), float(np.abs(c * np.log(c)).max()) if loss.name == "poisson" else 0.0
        assert 0 <= net.value(u, z, c, objective) <= eps * terms
        assert np.abs(objective.output_grad(z, c)).max() <= 2 * eps * terms


def test_the_gradient_of_a_quantile_at_its_target_is_zero() -> None:
    for level in (0.01, 0.5, 0.9):
        slopes = Objective(ocdl.losses.Quantile(level), reduction="sum").output_grad(
            [[1.0], [2.0], [3.0], [-0.0]], [2, 2, 2, 0.0]
        )
        np.testing.assert_array_equal(slopes[:, 0], [-level, 0.0, 1 - level, 0.0])


def test_the_median_is_half_the_absolute_error() -> None:
    rng = np.random.default_rng(0)
    z, c = rng.normal(size=(2, 7, 2))
    net, u = pass_on(2)
    assert net.value(u, z, c, Objective("quantile", reduction="sum")) == pytest.approx(
        np.abs(z - c).sum() / 2, rel=1e-14
    )


def test_a_wide_huber_is_the_squared_error_and_a_narrow_one_the_absolute_error() -> None:
    rng = np.random.default_rng(0)
    z, c = rng.normal(size=(2, 7, 2))
    net, u = pass_on(2)
    wide, narrow = (
        net.value(u, z, c, Objective(ocdl.losses.Huber(delta), reduction="sum")) for delta in (1e200, 1e-12)
    )
    assert wide == pytest.approx(net.value(u, z, c, Objective("squared_error", reduction="sum")), rel=1e-15)
    assert narrow / 1e-12 == pytest.approx(np.abs(z - c).sum(), rel=1e-10)


# ---- weights, reductions, several outputs ----


@every_loss
@every_count
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_weights_and_reductions_combine_single_samples(loss: Loss, q: int, reduction: str) -> None:
    rng = np.random.default_rng(3)
    z, y, weights = rng.normal(size=(40, q)), random_targets(loss, rng, 40, q), rng.uniform(0, 2, 40)
    weights[5] = 0
    net, u = pass_on(q)
    alone = Objective(loss, reduction="sum")
    values = np.array([net.value(u, z[i : i + 1], y[i : i + 1], alone) for i in range(40)])
    slopes = np.concatenate([alone.output_grad(z[i : i + 1], y[i : i + 1]) for i in range(40)])
    scale = 1 / weights.sum() if reduction == "mean" else 1.0
    objective = Objective(loss, reduction=reduction)
    J, g = net.value_and_grad(u, z, y, objective, sample_weight=weights, input_grad=True)
    assert J == pytest.approx(scale * weights @ values, rel=1e-13)
    np.testing.assert_allclose(g.X, scale * weights[:, None] * slopes, rtol=1e-13)
    np.testing.assert_allclose(objective.output_grad(z, y, weights), scale * weights[:, None] * slopes, rtol=1e-13)
    np.testing.assert_allclose(g.mu, scale * weights @ slopes, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("name", loss_names("numbers"))
def test_one_target_each_may_be_a_column(name: str) -> None:
    """(samples,) and (samples, 1) are the same numbers."""
    rng = np.random.default_rng(1)
    z, y = rng.normal(size=(9, 1)), np.abs(rng.normal(size=9))
    net, u = pass_on(1)
    flat, column = (net.value_and_grad(u, z, targets, Objective(name)) for targets in (y, y[:, None]))
    assert flat[0] == column[0]
    assert np.array_equal(flat[1].to_vector(), column[1].to_vector())
    assert net.value(u, z, list(y), Objective(name)) == flat[0]


@settings(max_examples=60)
@given(
    st.sampled_from(list(variants())),
    st.lists(st.floats(-700, 700), min_size=1, max_size=4),
    st.lists(st.floats(0, 1e300), min_size=4, max_size=4),
    st.integers(0, 3),
)
def test_any_outputs_and_targets(loss: Loss, z: list[float], c: list[float], label: int) -> None:
    q = len(z)
    target = label % max(q, 2) if loss.targets == "classes" else np.array(c[:q])
    check_row(loss, np.array(z), target)


# ---- what outputs stand for ----


@every_loss
@every_count
@every_dtype
def test_the_inverse_link_follows_the_formula(loss: Loss, q: int, dtype: str) -> None:
    z = np.random.default_rng(2).normal(size=(50, q)).astype(dtype) * 4
    z[0], z[1] = 80.0, -80.0
    actual, exactly = resolve_loss(loss).inverse_link(z), z.astype(np.float64)
    rtol = 20 * float(np.finfo(dtype).eps)
    assert actual.dtype == dtype
    if loss.targets == "numbers":
        np.testing.assert_allclose(actual, np.exp(exactly) if loss.name == "poisson" else exactly, rtol=rtol)
        return
    assert actual.shape == (50, max(q, 2))
    np.testing.assert_allclose(actual.sum(axis=1), 1, rtol=rtol)
    if q == 1:
        C = 1 / (1 + np.exp(-exactly[:, 0]))
        expected = np.column_stack([1 / (1 + np.exp(exactly[:, 0])), C])
    else:
        expected = 1 / (1 + np.exp(-exactly)) if loss.name == "squared" else np.exp(exactly - exactly.max(1)[:, None])
        expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=float(np.finfo(dtype).tiny))


@pytest.mark.parametrize("name", loss_names("classes"))
@pytest.mark.parametrize("size", [700.0, 1e5, 1e300])
def test_probabilities_of_huge_outputs(name: str, size: float) -> None:
    for z in ([[size]], [[-size]], [[size, -size, 0.0]], [[-size, -size, -size]]):
        actual = resolve_loss(name).inverse_link(np.array(z))
        assert np.isfinite(actual).all()
        assert actual.sum() == pytest.approx(1, rel=1e-15)


@pytest.mark.parametrize(("z", "dtype"), [(710.0, "float64"), (89.0, "float32")])
def test_an_inverse_link_that_overflows_is_an_error(z: float, dtype: str) -> None:
    with pytest.raises(FloatingPointError, match=f"mean of output 1 of sample 2 overflows {dtype}"):
        resolve_loss("poisson").inverse_link(np.array([[0.0, 0.0], [1.0, 1.0], [0.0, z]], dtype))


# ---- targets that are wrong ----

WRONG: list[tuple[str, Any, type[Exception], str]] = [
    ("numbers", [[1.0, 2.0]], ValueError, r"y has 1 target but X has 2 samples"),
    ("numbers", [1.0, 2.0], ValueError, r"y must have shape \(2, 2\), a number for each sample and output, got \(2,\)"),
    ("numbers", np.ones((2, 3)), ValueError, r"y must have shape \(2, 2\), .* got \(2, 3\)"),
    ("numbers", 1.0, ValueError, r"y must have shape \(2, 2\)"),
    ("numbers", np.ones((2, 2, 1)), ValueError, r"y must have shape \(2, 2\)"),
    ("numbers", [[1.0, np.nan], [1.0, 1.0]], ValueError, r"y\[0, 1\] is nan; all of y must be finite"),
    ("numbers", [[1.0, 1.0], [np.inf, 1.0]], ValueError, r"y\[1, 0\] is inf; all of y must be finite"),
    ("numbers", [["a", "b"], ["c", "d"]], TypeError, "y must hold real numbers, got dtype <U1"),
    ("numbers", [["1", "2"], ["3", "4"]], TypeError, "y must hold real numbers"),
    ("numbers", None, TypeError, "y must hold real numbers, got None"),
    ("numbers", [[1j, 1], [1, 1]], TypeError, "y must hold real numbers, got dtype complex128"),
    ("numbers", [[1.0], [1.0, 2.0]], ValueError, "y must be an array of real numbers, got a ragged sequence"),
    ("numbers", [0, 1], ValueError, r"y must have shape \(2, 2\), a number for each"),  # labels
    ("classes", [[0.5, 1.0], [0.0, 2.0]], ValueError, r"y\[0, 0\] is 0.5; labels are the whole numbers 0, 1, ..."),
    ("classes", [0.5, 1.5], ValueError, r"y\[0\] is 0.5; labels are the whole numbers"),
    ("classes", [0, 2], ValueError, r"y\[1\] is 2; a network with 2 outputs takes labels 0 to 1"),
    ("classes", [0, -1], ValueError, r"y\[1\] is -1"),
    ("classes", [0], ValueError, "y has 1 label but X has 2 samples"),
    ("classes", [np.nan, 1], ValueError, r"y\[0\] is nan"),
    ("classes", ["a", "b"], TypeError, "y must hold the labels"),
]


@pytest.mark.parametrize(
    ("name", "y", "error", "message"),
    [(name, *case) for kind, *case in WRONG for name in loss_names(kind)],
    ids=str,
)
def test_wrong_targets_are_named(name: str, y: Any, error: type[Exception], message: str) -> None:
    net, u = pass_on(2)
    X, objective = np.zeros((2, 2)), Objective(name)
    for call in (
        lambda: net.value(u, X, y, objective),
        lambda: net.value_and_grad(u, X, y, objective),
        lambda: net.adjoint(u, X, y, objective),
        lambda: objective.output_grad(X, y),
        lambda: ocdl.train(net, u, X, y, objective=objective),
    ):
        with pytest.raises(error, match=message):
            call()
    good = np.ones((2, 2)) if LOSSES[name].targets == "numbers" else [0, 1]
    with pytest.raises(error, match=f"validation: {message}"):
        ocdl.train(net, u, X, good, objective=objective, validation=(X, y))


@every_name
def test_targets_below_the_minimum_are_refused(name: str) -> None:
    least = LOSSES[name].minimum_target
    net, u = pass_on(1)
    if LOSSES[name].targets == "numbers" and math.isfinite(least):
        net.value(u, np.zeros((2, 1)), [least, least], Objective(name))
        with pytest.raises(ValueError, match=rf"y\[1\] is .*; this loss takes targets from {least:g} on"):
            net.value(u, np.zeros((2, 1)), [least, least - 1e-9], Objective(name))


def test_targets_beyond_single_precision_are_named() -> None:
    net, u = pass_on(1, "float32")
    with pytest.raises(ValueError, match=r"y\[1\] = 1e\+300 is too large for float32"):
        net.value(u, np.zeros((2, 1)), [0.0, 1e300], Objective("squared_error"))


def test_output_grad_checks_outputs() -> None:
    objective = Objective("huber")
    for bad, message in ((np.zeros(3), r"outputs must have two dimensions"), ([[np.nan]], r"outputs\[0, 0\] is nan")):
        with pytest.raises(ValueError, match=message):
            objective.output_grad(bad, [0.0])
    with pytest.raises(ValueError, match="sample_weight must have shape"):
        objective.output_grad([[0.0]], [0.0], [1.0, 2.0])


# ---- losses are records ----


@every_loss
def test_losses_are_values(loss: Loss) -> None:
    for twin in (type(loss)(**loss.parameters()), copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert twin == loss
        assert hash(twin) == hash(loss)
        assert Objective(twin) == Objective(loss)
    assert eval(repr(loss), {name: getattr(ocdl.losses, name) for name in dir(ocdl.losses)}) == loss
    assert pickle.loads(pickle.dumps(Objective(loss))) == Objective(loss)
    for parameter in loss.parameters():
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(loss, parameter, 0.5)
    others = [other for other in variants() if repr(other) != repr(loss)]
    assert loss not in others


@every_name
def test_a_name_is_the_loss_with_default_parameters(name: str) -> None:
    loss_type = LOSSES[name]
    assert getattr(ocdl.losses, loss_type.__name__) is loss_type
    assert Objective(name)._loss == loss_type() == Objective(loss_type())._loss
    assert Objective(name).score_name == {"classes": "accuracy", "numbers": "R^2"}[loss_type.targets]
    assert Objective(loss_type()).loss_name == name
    assert name in loss_names(loss_type.targets)
    assert loss_type.__doc__
    assert loss_type.__doc__.startswith("The loss ")
    assert isinstance(loss_type(), Loss)
    assert not isinstance(loss_type(), CustomLoss)


@every_name
def test_parameters_are_checked(name: str) -> None:
    loss_type = LOSSES[name]
    for parameter, (above, below) in loss_type._ranges.items():
        assert getattr(loss_type(**{parameter: np.float32(0.5)}), parameter) == 0.5
        assert type(getattr(loss_type(**{parameter: np.float32(0.5)}), parameter)) is float
        for bad in (above, above - 1, *([] if math.isinf(below) else [below, below + 1])):
            with pytest.raises(ValueError, match=f"{parameter} must be above {above:g}"):
                loss_type(**{parameter: bad})
        for bad in (math.nan, math.inf):
            with pytest.raises(ValueError, match=f"{parameter} must be finite"):
                loss_type(**{parameter: bad})
        for bad in ("1", None, 1j, True, [0.5]):
            with pytest.raises(TypeError, match=f"{parameter} must be a real number"):
                loss_type(**{parameter: bad})
    with pytest.raises(TypeError):
        loss_type(pudding=1)  # type: ignore[call-arg]


def test_losses_are_imported_by_name() -> None:
    from ocdl.losses import Huber, Quantile

    assert Huber(delta=2) == Huber(2.0) != Huber()
    assert Quantile(0.5) == Quantile()
    assert repr(Huber(delta=0.5)) == "Huber(delta=0.5)"


def test_unknown_names_list_the_known_ones() -> None:
    listed = ", ".join(map(repr, LOSSES))
    with pytest.raises(ValueError, match=f"loss must be one of {listed}, got 'hubert'"):
        Objective("hubert")
    for bad in (3, None, ocdl.losses.Huber, object(), b"huber"):
        with pytest.raises(TypeError, match=r"loss must be one of .* or an object with a method value_and_grad"):
            Objective(bad)
    with pytest.raises(AttributeError, match=r"has no attribute 'Pudding'"):
        ocdl.losses.Pudding  # noqa: B018
