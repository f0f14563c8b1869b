"""Losses, reductions, weights and penalties, against their formulas."""

from __future__ import annotations

import copy
import pickle

import mpmath as mp
import numpy as np
import pytest
import reference
from problems import LOSSES, REDUCTIONS, random_problem

import ocdl
from ocdl import L1, Network, Objective, Penalty, Tikhonov, TimeSmoothness

NET = Network(2, 4, n_outputs=3, augment=1, horizon=2.0)
PROBLEM = random_problem(NET, samples=20)
PENALTIES = [Tikhonov(0.3), L1(0.2), TimeSmoothness(0.7), (Tikhonov(0.1), L1(0.2), TimeSmoothness(0.3))]

every_loss = pytest.mark.parametrize("loss", LOSSES)
every_reduction = pytest.mark.parametrize("reduction", REDUCTIONS)
every_penalty = pytest.mark.parametrize("penalties", PENALTIES, ids=repr)


def loss_of_output(loss: str, z: list[float], label: int) -> tuple[float, np.ndarray]:
    """The loss at the outputs z, and its slope: one layer of step 0 leaves x as it is, and W = 1, mu = 0 pass it on."""
    q = len(z)
    net = Network(q, 1, n_outputs=q)
    u = net.controls(W=np.eye(q), h=[0.0])
    value, g = net.value_and_grad(u, [z], [label], Objective(loss, reduction="sum"), input_grad=True)
    assert g.X is not None
    return value, g.X[0]


def exact_loss(loss: str, z: list[float], label: int) -> tuple[float, list[float]]:
    """To many more digits than a double has."""
    with mp.workdps(400):
        outputs = [mp.mpf(entry) for entry in z]
        targets = [label] if len(z) == 1 else [int(o == label) for o in range(len(z))]
        probabilities = [1 / (1 + mp.exp(-entry)) for entry in outputs]
        if loss == "squared":
            value = mp.fsum((p - c) ** 2 for p, c in zip(probabilities, targets, strict=True)) / 2
            slopes = [(p - c) * p * (1 - p) for p, c in zip(probabilities, targets, strict=True)]
        else:
            if len(z) == 1:
                value = mp.log1p(mp.exp((1 - 2 * label) * outputs[0]))
            else:
                total = mp.fsum(mp.exp(entry) for entry in outputs)
                value = mp.log(total) - outputs[label]
                probabilities = [mp.exp(entry) / total for entry in outputs]
            slopes = [p - c for p, c in zip(probabilities, targets, strict=True)]
        return float(value), [float(slope) for slope in slopes]


SCALES = (0.0, 1e-8, 0.5, 3.0, 20.0, 36.0, 100.0, 300.0)


@every_loss
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("direction", "label"),
    [([1.0], 0), ([1.0], 1), ([-1.0], 0), ([-1.0], 1), *(([1.0, -0.4, 0.3], label) for label in range(3))],
)
def test_losses_keep_their_digits(loss: str, direction: list[float], label: int, scale: float) -> None:
    """Small losses too: they are computed from z, never from a rounded probability."""
    z = [scale * entry for entry in direction]
    value, slope = loss_of_output(loss, z, label)
    expected, expected_slope = exact_loss(loss, z, label)
    assert value == pytest.approx(expected, rel=2e-15, abs=1e-300)
    np.testing.assert_allclose(slope, expected_slope, rtol=3e-15, atol=1e-300)


@every_loss
@pytest.mark.parametrize("q", [1, 2, 5])
def test_losses_of_huge_outputs_are_finite(loss: str, q: int) -> None:
    for size in (1e3, 1e100, 1e300):
        for label in range(max(q, 2)):
            z = [size * (-1) ** o for o in range(q)]
            value, slope = loss_of_output(loss, z, label)
            assert np.isfinite(value)
            assert np.isfinite(slope).all()
            if loss == "cross_entropy" and q == 1:
                assert value == pytest.approx(max((1 - 2 * label) * size, 0), rel=1e-15)


def test_ties_between_outputs() -> None:
    value, slope = loss_of_output("cross_entropy", [2.0, 2.0, 2.0, 2.0], 1)
    assert value == pytest.approx(np.log(4), rel=1e-15)
    np.testing.assert_allclose(slope, [0.25, -0.75, 0.25, 0.25], rtol=1e-15)


@every_loss
def test_the_mean_is_the_sum_divided_by_the_number_of_samples(loss: str) -> None:
    (value_mean, g_mean), (value_sum, g_sum) = (
        NET.value_and_grad(*PROBLEM.data, Objective(loss, reduction=reduction)) for reduction in ("mean", "sum")
    )
    assert value_mean == pytest.approx(value_sum / 20, rel=1e-14)
    np.testing.assert_allclose(g_mean.to_vector(), g_sum.to_vector() / 20, rtol=1e-13, atol=1e-16)


@every_loss
@every_reduction
def test_weights_count_repetitions(loss: str, reduction: str) -> None:
    """A sample of weight 3 is a sample that is there three times; one of weight 0 is not there."""
    counts = np.random.default_rng(0).integers(0, 4, 20)
    assert 0 in counts
    objective = Objective(loss, reduction=reduction)
    value, g = NET.value_and_grad(*PROBLEM.data, objective, sample_weight=counts)
    value_repeated, g_repeated = NET.value_and_grad(
        PROBLEM.u, np.repeat(PROBLEM.X, counts, axis=0), np.repeat(PROBLEM.y, counts), objective
    )
    assert value == pytest.approx(value_repeated, rel=1e-14)
    np.testing.assert_allclose(g.to_vector(), g_repeated.to_vector(), rtol=1e-12, atol=1e-15)


@every_loss
@every_reduction
def test_equal_weights_are_no_weights(loss: str, reduction: str) -> None:
    objective = Objective(loss, reduction=reduction)
    value, g = NET.value_and_grad(*PROBLEM.data, objective)
    value_weighted, g_weighted = NET.value_and_grad(*PROBLEM.data, objective, sample_weight=np.ones(20))
    assert value == value_weighted
    np.testing.assert_array_equal(g.to_vector(), g_weighted.to_vector())


@every_penalty
@every_reduction
def test_penalties_are_added_once(penalties: Penalty | tuple[Penalty, ...], reduction: str) -> None:
    plain, penalised = (
        Objective("squared", reduction=reduction),
        Objective("squared", reduction=reduction, penalties=penalties),
    )
    vector = PROBLEM.u.to_vector()
    (value, g), (value_penalised, g_penalised) = (NET.value_and_grad(*PROBLEM.data, o) for o in (plain, penalised))
    assert value_penalised - value == pytest.approx(
        reference.sum_of_penalties(NET, vector, penalised.penalties), rel=1e-13
    )
    gradient = [
        reference.sum_of_penalties(NET, vector + 1j * reference.STEP * unit, penalised.penalties).imag / reference.STEP
        for unit in np.eye(NET.n_controls)
    ]
    np.testing.assert_allclose((g_penalised - g).to_vector(), gradient, rtol=1e-12, atol=1e-15)
    assert NET.value(*PROBLEM.data, penalised) == value_penalised
    np.testing.assert_array_equal(NET.adjoint(*PROBLEM.data, penalised), NET.adjoint(*PROBLEM.data, plain))


@every_penalty
def test_the_time_steps_are_not_penalised(penalties: Penalty | tuple[Penalty, ...]) -> None:
    net = Network(2, 4, time_steps="free")
    problem = random_problem(net, samples=3)
    g, g_penalised = (net.value_and_grad(*problem.data, Objective(penalties=r))[1] for r in (None, penalties))
    np.testing.assert_array_equal(g.h, g_penalised.h)


def test_the_subgradient_of_a_modulus_at_zero_is_zero() -> None:
    net = Network(2, 2)
    u = net.controls(W=[[1.0, -1.0]])
    _, g = net.value_and_grad(u, [[0.0, 0.0]], [0], Objective(penalties=L1(5.0)))
    _, plain = net.value_and_grad(u, [[0.0, 0.0]], [0])
    penalty = (g - plain).to_vector()
    np.testing.assert_array_equal((g - plain).W, [[5.0, -5.0]])
    assert np.count_nonzero(penalty) == 2


def test_constant_controls_are_smooth_in_time() -> None:
    u = NET.controls(K=np.ones((4, 3, 3)), b=np.ones((4, 3)))
    values = [NET.value(u, PROBLEM.X, PROBLEM.y, Objective(penalties=r)) for r in (None, TimeSmoothness(1e6))]
    assert values[0] == values[1]


@pytest.mark.parametrize("build", [Tikhonov, L1, TimeSmoothness])
def test_wrong_weights_of_penalties(build) -> None:
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="weight must"):
            build(bad)
    for bad in ("1", None, 1j, True):
        with pytest.raises(TypeError, match="weight must be a real number"):
            build(bad)
    with pytest.raises(TypeError, match=r"penalties must be one of Tikhonov, .*, a sequence of these, or None, got"):
        Objective(penalties=build)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_objectives_are_values(duplicate) -> None:
    objective = Objective("cross_entropy", reduction="sum", penalties=Tikhonov(0.5))
    NET.value(*PROBLEM.data, objective)
    twin = duplicate(objective)
    assert twin == objective
    assert hash(twin) == hash(objective)
    assert NET.value(*PROBLEM.data, twin) == NET.value(*PROBLEM.data, objective)
    with pytest.raises(AttributeError):
        objective.loss = "squared"  # type: ignore[misc]


def test_the_default_is_the_papers_objective() -> None:
    assert Objective() == Objective("squared", reduction="mean", penalties=None)
    assert NET.value(*PROBLEM.data) == NET.value(*PROBLEM.data, Objective())
    assert ocdl.Objective is Objective
