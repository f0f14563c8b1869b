"""A training that fails says so, and one that does not warns of nothing."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_circles,
    make_classification,
    make_moons,
)
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ocdl
from ocdl import Network, ODEClassifier, ODERegressor, Status
from ocdl.datasets import GENERATORS

X, Y = ocdl.datasets.make_donut2d(200, random_state=0)


# ---- trainings ----


def test_a_loss_that_has_risen_is_no_success() -> None:
    net = Network(2, 5)
    objective = ocdl.Objective("cross_entropy")
    descent = ocdl.GradientDescent(1e3)
    result = ocdl.train(net, net.init(0), X, Y, objective=objective, optimiser=descent, max_iter=3, tol=0.0)
    assert result.history.loss[-1] > result.history.loss[0]
    assert result.status is Status.DIVERGED
    assert "higher than at the start" in result.message


@pytest.mark.parametrize("seed", range(3))
def test_saturated_outputs_are_not_a_gradient_that_has_vanished(seed: int) -> None:
    """The squared loss is flat where outputs are large, right or wrong: the gradient is 0 and nothing is learned."""
    net = Network(2, 5)
    u = net.init(seed)
    u.mu[...] = 1.0
    result = ocdl.train(net, u, X, Y, optimiser=ocdl.Adam(lr=1e3), max_iter=20, tol=1e-3)
    assert result.history.accuracy[-1] <= 0.6
    assert result.status is Status.SATURATED


def test_saturation_at_the_start_is_diagnosed() -> None:
    net = Network(2, 5)
    result = ocdl.train(net, net.controls(mu=[60.0]), X, Y, max_iter=10)
    assert result.status is Status.SATURATED


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_vanishing_gradients_of_correct_predictions_are_no_failure(loss: str, n_outputs: int) -> None:
    """Where there is one class, all that is predicted is the largest one, and a second training lowers nothing."""
    net, labels, objective = Network(2, 5, n_outputs=n_outputs), np.ones(len(X), int), ocdl.Objective(loss)
    u = net.init(0)
    for _ in range(2):
        result = ocdl.train(net, u, X, labels, objective=objective, optimiser=ocdl.LBFGS(), max_iter=500)
        u = result.controls
    assert result.history.accuracy[-1] == 1.0
    assert result.history.loss[-1] < 1e-9
    assert result.status is Status.GRADIENT


def test_rows_without_weight_are_not_predicted_wrongly() -> None:
    net, labels = Network(2, 5), np.ones(len(X), int)
    labels[:20] = 0
    weights = (labels == 1).astype(float)
    result = ocdl.train(net, net.controls(mu=[60.0]), X, labels, sample_weight=weights, max_iter=10)
    assert result.history.accuracy[-1] == 1.0
    assert result.status is not Status.SATURATED


def test_wrong_predictions_without_a_gradient_are_a_failure_even_if_few() -> None:
    net, labels = Network(2, 5), np.ones(len(X), int)
    labels[:20] = 0
    result = ocdl.train(net, net.controls(mu=[60.0]), X, labels, max_iter=10)
    assert result.history.accuracy[-1] == 0.9
    assert result.status is Status.SATURATED


class Redescending:
    """1 - exp(-r^2 / 2), flat far away from the targets, and shifted, so that no value counts as small."""

    def __init__(self, shift: float) -> None:
        self.shift = shift

    def value_and_grad(self, outputs: Any, targets: Any) -> tuple[Any, Any]:
        residual = outputs[:, 0] - targets
        share = np.exp(-(residual**2) / 2)
        return 1 - share + self.shift, (residual * share)[:, None]


@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_a_custom_loss_that_has_risen_onto_a_plateau_has_risen(shift: float) -> None:
    """Of a custom loss no prediction is known to be wrong: the message says that it rose."""
    net, objective = Network(2, 5), ocdl.Objective(Redescending(shift))
    u = net.init(0)
    result = ocdl.train(net, u, X, net.predict(u, X)[:, 0] + 1, objective=objective, optimiser=ocdl.Adam(lr=1e3))
    assert result.history.gradient_norm[-1] <= 1e-10
    assert result.status is Status.DIVERGED


def test_batches_and_stops_are_not_judged_by_the_first_loss() -> None:
    net = Network(2, 5)
    result = ocdl.train(net, net.init(0), X, Y, optimiser=ocdl.Adam(lr=0.01, batch_size=10), max_iter=1, random_state=1)
    assert result.status is Status.ITERATION_LIMIT
    stopped = ocdl.train(net, net.init(0), X, Y, callback=lambda state: True, max_iter=10**6)
    assert stopped.status in (Status.INTERRUPTED, Status.STEP_TOLERANCE, Status.LINE_SEARCH_FAILED, Status.GRADIENT)


@pytest.mark.parametrize("alpha", [0.0, 1.0])  # with a prior there are two phases, and the first one fails
@pytest.mark.parametrize("kind", [ODEClassifier, ODERegressor])
def test_estimators_warn_with_cause_and_advice(kind: Any, alpha: float) -> None:
    model = kind(optimiser="adam", learning_rate=50.0, max_iter=40, random_state=0, alpha=alpha)
    with pytest.warns(ConvergenceWarning, match=r"not converged: .*(higher|saturated|not finite).*(smaller|scale)"):
        model.fit(X, Y)
    assert model.status_ in (Status.DIVERGED, Status.SATURATED, Status.NOT_FINITE)


def test_a_training_that_is_still_falling_is_not_finished() -> None:
    with pytest.warns(ConvergenceWarning, match=r"in the last \d+ of them the loss fell from .*increase max_iter"):
        ODEClassifier(max_iter=8, random_state=0).fit(*ocdl.datasets.make_spiral(random_state=0))


@pytest.mark.parametrize("kind", [ODEClassifier, ODERegressor])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_training_after_few_iterations_is_unfinished(kind: Any, alpha: float) -> None:
    """With tiny steps nothing rises and nothing falls; with batches the first loss is no measure."""
    rows = np.column_stack([X, X + 1])
    for batch_size in (None, 20):
        model = kind(optimiser=ocdl.Adam(1e-7, batch_size=batch_size), max_iter=20, random_state=2, alpha=alpha)
        with pytest.warns(ConvergenceWarning, match="outputs that are 0 .* would predict better; .*learning rate"):
            model.fit(rows, Y)
        assert model.status_ is Status.ITERATION_LIMIT


def test_a_first_phase_that_is_not_finite_is_the_last_one() -> None:
    rows, _ = make_classification(300, 8, n_informative=5, n_classes=3, flip_y=0.1, random_state=1)
    model = ODERegressor(optimiser="gd", learning_rate=50.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="not finite.*smaller steps"):
        model.fit(rows, rows[:, 0] * rows[:, 1] + rows[:, 2])
    assert model.status_ is Status.NOT_FINITE


@pytest.mark.parametrize("kind", [ODEClassifier, ODERegressor])
def test_columns_of_very_different_scales_are_a_warning(kind: Any) -> None:
    rows = np.random.default_rng(0).standard_normal((200, 10)) * 10.0 ** np.arange(-3, 7)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kind(random_state=0).fit(rows, Y)
    assert re.match(r"X\[:, 9\] has a root mean square of .*StandardScaler", str(caught[0].message))
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize(
    "settings",
    [
        {"optimiser": ocdl.Adam(lr=1e-6)},
        {"optimiser": "adam", "learning_rate": 1e-4},
        {"optimiser": ocdl.GradientDescent(0.01)},
        {"optimiser": "adam", "learning_rate": 0.01, "max_iter": 20},
        {"max_iter": 5},
    ],
)
@pytest.mark.parametrize("name", ["donut1d", "squares", "spiral"])
def test_an_estimator_warns_after_few_iterations(name: str, settings: dict[str, Any]) -> None:
    """Its loss falls as much in the last iterations as in those before, however little that is."""
    rows, labels = GENERATORS[name](random_state=0)
    reason = "(in the last .* the loss fell from .* to|would predict better).*; increase max_iter"
    with pytest.warns(ConvergenceWarning, match=reason):
        model = ODEClassifier(random_state=0, alpha=1.0, **settings).fit(rows, labels)
    assert model.score(rows, labels) < 0.8


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_a_loss_that_was_lower_before_is_a_warning(load: Any) -> None:
    """Its course depends on the last bits, which differ between processors: it may end above a constant's loss."""
    rows, labels = load(return_X_y=True)
    worse = r"after \d+ of them the loss was|the loss is higher than at the start|would predict better"
    with pytest.warns(ConvergenceWarning, match=f"({worse}).*learning rate"):
        ODEClassifier(optimiser=ocdl.Adam(1.0), random_state=0).fit(StandardScaler().fit_transform(rows), labels)


@pytest.mark.parametrize("name", ["donut1d", "donut2d", "squares"])
@pytest.mark.parametrize("seed", range(3))
def test_losses_of_batches_that_differ_by_chance_are_no_warning(name: str, seed: int) -> None:
    rows, labels = GENERATORS[name](random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ODEClassifier(optimiser=ocdl.Adam(0.01, batch_size=50), max_iter=60, random_state=seed).fit(rows, labels)


@pytest.mark.parametrize(
    ("factor", "message"), [(100, "has a root mean square of"), (1e-3, "no column has a larger one"), (1.0, "")]
)
def test_inputs_that_are_not_scaled_are_a_warning(factor: float, message: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ODEClassifier(random_state=0, tol=1e9).fit(factor * X, Y)
    assert [message in str(warning.message) for warning in caught] == [True] * bool(message)
    assert {warning.filename for warning in caught} <= {__file__}


class ShiftedSquares:
    """Half of the squared error plus 10: a fraction of its value says nothing of the predictions."""

    def value_and_grad(self, outputs: Any, targets: Any) -> tuple[Any, Any]:
        residual = outputs - np.reshape(targets, outputs.shape)
        return (residual**2).sum(axis=1) / 2 + 10, residual


def test_a_custom_loss_with_another_minimum_is_no_warning() -> None:
    rows = np.random.default_rng(0).standard_normal((200, 3))
    targets = rows[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ODERegressor(loss=ShiftedSquares(), random_state=0).fit(rows, targets)
    assert model.score(rows, targets) > 0.99


def test_a_callback_ends_the_training_in_whichever_phase_it_is() -> None:
    for kind in (ODEClassifier, ODERegressor):
        model = kind(random_state=0).fit(X, Y, callback=lambda state: True)
        assert model.status_ is Status.INTERRUPTED
        assert model.n_iter_ <= 30
    with pytest.raises(TypeError, match="callback must be callable, got list"):
        ODEClassifier().fit(X, Y, callback=[print])  # type: ignore[arg-type]


GOOD = {name: (lambda draw=draw: draw(random_state=0)) for name, draw in GENERATORS.items()} | {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits": lambda: tuple(part[:400] for part in load_digits(return_X_y=True)),
    "moons": lambda: make_moons(300, noise=0.2, random_state=0),
    "circles": lambda: make_circles(300, noise=0.1, factor=0.5, random_state=0),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_training_warns_of_nothing(name: str) -> None:
    """Inputs in the thousands are no good start: whether their training converges depends on the last bits."""
    rows, labels = GOOD[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        models = [make_pipeline(StandardScaler(), ODEClassifier(random_state=0)).fit(rows, labels)]
        if np.abs(rows).max() < 1000:
            models.append(ODEClassifier(random_state=0).fit(rows, labels))
    assert min(model.score(rows, labels) for model in models) > 0.85


# ---- what the estimators refuse, and take ----


@pytest.mark.parametrize("kind", [ODEClassifier, ODERegressor])
def test_sparse_data_are_refused_with_a_way_out(kind: Any) -> None:
    with pytest.raises(TypeError, match="TruncatedSVD"):
        kind().fit(csr_matrix(X), Y)


@pytest.mark.parametrize(
    "labels", [np.column_stack([Y, 1 - Y]), np.column_stack([Y, 1 - Y]).tolist(), [["a", "b"], *([["a"]] * 199)]]
)
def test_several_labels_are_refused_with_a_way_out(labels: Any) -> None:
    with pytest.raises(ValueError, match="MultiOutputClassifier"):
        ODEClassifier().fit(X, labels)
    with pytest.raises(ValueError, match="MultiOutputClassifier"):
        ODEClassifier().partial_fit(X, labels, classes=[0, 1])


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (np.zeros(200), ValueError, "y has one class, 0.0; "),
        (np.array(["a"] * 200), ValueError, "y has one class, 'a'; "),
        (np.array([1, "a"] * 100, object), TypeError, "y must hold labels of one kind, all numbers or all texts"),
    ],
)
def test_labels_that_are_no_classes(labels: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ODEClassifier().fit(X, labels)


def test_columns_without_numbers_are_named() -> None:
    frame = pd.DataFrame({"a": X[:, 0], "colour": "red", "when": pd.Timestamp("2020-01-01"), "b": Y == 1})
    for kind in (ODEClassifier, ODERegressor):
        with pytest.raises(ValueError, match="columns without numbers: 'colour', 'when'; encode them"):
            kind().fit(frame, Y)
        kind(max_iter=5, tol=10).fit(frame[["a", "b"]], Y)


class Logistic:
    """The logistic loss as a custom loss."""

    def value_and_grad(self, outputs: Any, targets: Any) -> tuple[Any, Any]:
        sign = 1 - 2 * targets[:, None]
        return np.logaddexp(0, sign * outputs)[:, 0], sign / (1 + np.exp(-sign * outputs))

    def inverse_link(self, outputs: Any) -> Any:
        share = 1 / (1 + np.exp(-outputs[:, 0]))
        return np.column_stack([1 - share, share])


class Silent:
    """The same without an inverse link."""

    value_and_grad = Logistic.value_and_grad


def test_a_classifier_takes_a_custom_loss() -> None:
    labels = np.array(["no", "yes"])[Y]
    model = ODEClassifier(loss=Logistic(), random_state=0).fit(X, labels)
    known = ODEClassifier(random_state=0).fit(X, labels)
    assert model.score(X, labels) > 0.9
    np.testing.assert_allclose(model.predict_proba(X), known.predict_proba(X), atol=0.05)
    silent = ODEClassifier(loss=Silent(), random_state=0).fit(X, labels)
    assert np.array_equal(silent.predict(X), model.predict(X))
    assert not hasattr(silent, "predict_proba")
    with pytest.raises(TypeError, match="custom loss"):
        model.save("nowhere")


def test_a_classifier_refuses_a_loss_of_numbers() -> None:
    with pytest.raises(ValueError, match="loss"):
        ODEClassifier(loss="huber").fit(X, Y)
    with pytest.raises(ValueError, match="loss"):
        ODERegressor(loss="cross_entropy").fit(X, Y)


def test_partial_fit_learns_classes_portion_by_portion() -> None:
    model = ODEClassifier(random_state=0, optimiser="adam", learning_rate=0.02, batch_size=25)
    with pytest.raises(ValueError, match="first call"):
        model.partial_fit(X, Y)
    for _ in range(60):
        for part in range(4):
            model.partial_fit(X[part::4], Y[part::4], classes=[0, 1])
    assert model.score(X, Y) > 0.9
    with pytest.raises(ValueError, match="class"):
        model.partial_fit(X, np.full(len(X), 7))
    with pytest.raises(ValueError, match="first call"):
        model.partial_fit(X, Y, classes=[0, 1, 2])


def test_a_first_portion_that_fails_is_forgotten() -> None:
    model = ODEClassifier(random_state=0)
    with pytest.raises(ValueError, match="the class 7, which is not one of"):
        model.partial_fit(X, np.full(len(X), 7), classes=[0, 1])
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(ValueError, match="classes has one class, 0"):
        model.partial_fit(X, np.zeros(len(X)), classes=[0])
    assert model.partial_fit(X, Y, classes=[0, 1, 2]).classes_.tolist() == [0, 1, 2]


def test_partial_fit_takes_the_adam_that_is_given_and_no_other_method() -> None:
    given = ODEClassifier(random_state=0, optimiser=ocdl.Adam(lr=0.3, batch_size=25)).partial_fit(X, Y, classes=[0, 1])
    named = ODEClassifier(random_state=0, optimiser="adam", learning_rate=0.3, batch_size=25)
    assert np.array_equal(given.predict_proba(X), named.partial_fit(X, Y, classes=[0, 1]).predict_proba(X))
    with pytest.raises(ValueError, match="partial_fit runs epochs of Adam, got optimiser='lbfgs'"):
        ODERegressor(optimiser="lbfgs").partial_fit(X, Y)
