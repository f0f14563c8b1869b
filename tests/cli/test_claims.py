"""The claims of the paper, and the measures behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reproduction_examples import architectures, history, make_outcome, verdict

from ocdl.reproduce import measures
from ocdl.reproduce.cases import Case
from ocdl.reproduce.claims import CLAIMS
from ocdl.reproduce.runs import ARCHITECTURES, METHODS, MNIST, Run
from ocdl.reproduce.store import Outcome
from ocdl.reproduce.verdict import Claim, Verdict

# ---- claims: each can hold and can fail, and its words fit ----


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.number))
def test_remarks_fit_the_verdict(claim: Claim) -> None:
    def remark(*as_claimed: bool, **options: Any) -> str:
        actual = [Case("ab"[i % 2], "somewhere", holds, {"number": 1.0}) for i, holds in enumerate(as_claimed)]
        return Verdict(claim, actual, **options).remark

    assert len({claim.holds, claim.mixed, claim.fails}) == 3
    assert remark(True, True) == claim.holds
    assert remark(False, False) == claim.fails
    assert remark(True, False, True, False) == f"{claim.mixed} As claimed: a 2 of 2, b 0 of 2."
    assert remark(*[True] * 11, False) == f"{claim.holds} As claimed: a 6 of 6, b 5 of 6."
    assert remark() not in (claim.holds, claim.mixed, claim.fails)
    assert "too short" in remark(True, is_evaluated=False)
    for sentence in (claim.holds, claim.mixed, claim.fails):
        assert sentence[0].isupper()
        assert sentence.endswith(".")


def test_claims_about_losses_and_steps() -> None:
    h = np.full(20, 0.05)
    for number in (1, 2, 3, 4, 5, 6):
        assert verdict(number, architectures()).word == "holds"
    assert verdict(1, architectures(Net=(history(0.011, 0.7), ()))).word == "fails"
    assert verdict(1, architectures(Net=(history(0.1, 1.0), ()))).word == "fails"
    assert verdict(2, architectures(ODENet=(history(0.011, early=0.7), h))).word == "fails"
    assert verdict(2, architectures(ODENet=(history(0.001, early=0.4), h))).word == "fails"
    assert verdict(3, architectures(ODENet=(history(0.03), h))).word == "fails"
    worse = verdict(4, architectures(ODENet=(history(0.011, 0.95, training=0.98), h)))
    assert (worse.word, worse.count) == ("mixed", "3 of 4")
    for steps in (h, -h, 0.1 * np.tile([0.3, -0.2], 10), np.r_[0.0, np.tile([0.3, -0.2], 9), 0.3]):
        assert verdict(5, architectures(ODENet=(history(0.011), steps))).word == "fails"
    for kept, word in ((1, "fails"), (2, "holds"), (3, "holds"), (4, "fails"), (20, "fails")):
        steps = np.r_[np.full(kept, 1 / kept), np.zeros(20 - kept)]
        actual = verdict(6, architectures(**{"ODENet+Simplex": (history(0.011), steps)}))
        assert (actual.word, actual.medians) == (word, {"steps kept": kept})
    assert verdict(1, []).word == "not evaluated"


def test_claims_about_digits() -> None:
    def digits(test: float, training: float = 1.0) -> list[Outcome]:
        past = history(0.1, test, training=training)
        return [make_outcome(Run(MNIST, MNIST, name, 1, 101), past) for name in ARCHITECTURES]

    assert verdict(11, digits(0.95)).word == "holds"
    assert verdict(11, digits(0.94)).word == "fails"
    assert verdict(11, digits(1.0, 0.98)).word == "fails"


def linear(experiment: str, network: str, seed: int = 1, *, push: float = 0.0, W: Any = (1.0, 0.0)) -> Outcome:
    """A network that moves all points by `push` along the first axis, and divides them by a line."""
    run = Run(experiment, "donut1d", network, seed, 1)
    net = run.settings.network(network, 2)
    b = np.zeros((net.n_layers, 2))
    b[:, 0] = np.arctanh(push / net.horizon) if push else 0.0
    return make_outcome(run, history(0.1), controls=net.controls(b=b, W=[W]))


def test_claim_about_the_view() -> None:
    def networks(experiment: str, push: float, W: Any) -> list[Outcome]:
        there = [linear(experiment, name) for name in ("Net", "ResNet", "ODENet+Simplex")]
        return [*there, linear(experiment, "ODENet", push=push, W=W)]

    calm, far = networks("fixed_classifier", 0.0, (1.0, 0.0)), networks("architectures", 0.9, (0.5, 0.0))
    assert verdict(7, [*far, *calm]).word == "holds"
    assert verdict(7, [*networks("architectures", 0.9, (2.0, 0.0)), *calm]).word == "fails"  # a narrow band
    assert verdict(7, [*networks("architectures", 0.0, (0.5, 0.0)), *calm]).word == "fails"  # not out of view
    assert (
        verdict(7, [*far, *networks("fixed_classifier", 0.99, (1.0, 0.0))]).word == "fails"
    )  # out of view all the same
    assert verdict(7, calm).word == "not evaluated"


def test_claims_about_shapes() -> None:
    straight = [linear("architectures", name, seed) for name in ARCHITECTURES for seed in (1, 2)]
    assert verdict(8, straight).word == "fails"  # no network squeezes
    same = verdict(9, straight)
    assert (same.word, same.count) == ("holds", "4 of 4")
    outside = linear("architectures", "ResNet", 2, push=0.99, W=(1.0, 0.0))  # all points on one side
    mixed = verdict(9, [*straight, outside])
    assert (mixed.word, mixed.count) == ("mixed", "3 of 4")
    methods = [linear("runge_kutta", name, push=0.9) for name in METHODS]
    assert verdict(10, methods).word == "holds"
    assert verdict(10, [*methods[:3], linear("runge_kutta", "Kutta(4)", push=-0.9)]).count == "3 of 6"


def test_measures() -> None:
    rng = np.random.default_rng(0)
    square = rng.uniform(-1, 1, (2000, 2))
    t = rng.uniform(0, 6, 2000)
    circle = np.stack([np.cos(t), np.sin(t)], axis=1)
    assert 0.7 < measures.thickness(square) < 0.9
    assert measures.thickness(circle) < 0.02
    assert measures.thickness(circle + 0.005 * rng.standard_normal(circle.shape)) < 0.25
    one = linear("architectures", "ResNet", W=(3.0, 4.0))
    z = measures.band_width(one) / 2 * 5.0
    assert 1 / (1 + np.exp(-z)) == pytest.approx(0.9)
    data = one.run.data()
    assert measures.regions(one, data) == (1, 1)
    assert measures.spread(one, data) == 1.0
    moved = linear("architectures", "ResNet", push=0.9)
    assert measures.distance(moved, moved, data) == 0.0
    assert measures.distance(moved, linear("architectures", "ResNet", push=-0.9), data) == pytest.approx(2.0)
