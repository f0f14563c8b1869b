"""Networks that expand no distance, and the radii that they certify."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from problems import ACTIVATIONS, random_problem

import ocdl
from ocdl import Network, Objective, Tableau
from ocdl.model.nonexpansive import clip_singular_values

# Dahlquist and Jeltsch 1979; the radii of implicit methods that are algebraically stable are infinite.
RADII = {
    "euler": 1.0,
    "improved_euler": 1.0,
    "kutta4": 1.0,
    "ralston": 0.7913,
    "kutta3": 0.5,
    "rk38": 0.4641,
    "trapezoidal": 2.0,
    "sdirk2": 8.2426,
    "implicit_euler": math.inf,
    "implicit_midpoint": math.inf,
    "gauss2": math.inf,
    "radau_iia2": math.inf,
    "midpoint": 0.0,
    "kutta5": 0.0,
    "dormand_prince": 0.0,
}
INCREASING = [name for name in ACTIVATIONS if name != "sin"]


@pytest.mark.parametrize(("name", "radius"), [row for row in RADII.items() if row[0] in ocdl.tableaux()])
def test_radii_are_the_published_ones(name: str, radius: float) -> None:
    assert Tableau.named(name).contractivity_radius == pytest.approx(radius, abs=1e-4)


def test_the_radius_does_not_depend_on_stages_without_effect() -> None:
    assert Tableau([[0, 0], [5, 0]], [1, 0]).contractivity_radius == 1.0


@pytest.mark.parametrize("name", ["euler", "ralston", "kutta3", "rk38", "kutta4", "trapezoidal", "sdirk2"])
def test_linear_steps_within_the_radius_do_not_expand(name: str) -> None:
    """The disc of the radius r, which touches the imaginary axis, lies in the stability region |R(z)| <= 1."""
    tableau = Tableau.named(name)
    r = tableau.contractivity_radius

    def growth(z: complex) -> float:
        one = np.ones(tableau.stages)
        return abs(1 + z * tableau.b @ np.linalg.solve(np.eye(tableau.stages) - z * tableau.A, one))

    angles = np.linspace(0, 2 * np.pi, 200)
    assert max(growth(complex(-r + r * np.exp(1j * angle))) for angle in angles) <= 1 + 1e-12


@pytest.mark.parametrize("tableau", ["euler", "kutta4", "rk38", "trapezoidal", "implicit_midpoint"])
def test_projected_controls_are_the_nearest_ones_within_the_bound(tableau: str) -> None:
    net = Network(3, 4, field="gradient", width=5, tableau=tableau, control_intervals=2, nonexpansive=True)
    h = np.array([0.1, 0.4, 0.2, 0.3])
    bounds = net._singular_value_bounds(h)
    np.testing.assert_allclose(bounds, np.sqrt(2 * net.tableau.contractivity_radius / np.array([0.4, 0.3])))
    rng = np.random.default_rng(0)
    K = 5 * rng.normal(size=(2, 5, 3))
    clipped = clip_singular_values(K, bounds)
    if np.isinf(bounds).all():
        assert clipped is K
        return
    assert (np.linalg.norm(clipped, 2, axis=(1, 2)) <= bounds * (1 + 1e-14)).all()
    np.testing.assert_array_equal(clip_singular_values(clipped, bounds), clipped)
    for _ in range(200):  # of a convex set, no point is at an acute angle
        other = clip_singular_values(5 * rng.normal(size=K.shape), bounds)
        assert ((K - clipped) * (other - clipped)).sum() <= 1e-10


def two_spirals(samples: int = 120) -> tuple[Any, Any]:
    X, y = ocdl.datasets.make_spiral(samples, random_state=1)
    return X / np.abs(X).max(), y


METHODS = {
    "descent": ocdl.GradientDescent(0.2),
    "backtracking": ocdl.Backtracking(),
    "armijo": ocdl.Armijo(),
    "adam": ocdl.Adam(0.05),
    "batches": ocdl.Adam(0.05, batch_size=40),
    "lbfgs": ocdl.LBFGS(),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("stage_controls", [False, True])
def test_training_keeps_every_layer_nonexpansive(method: str, stage_controls: bool) -> None:
    net = Network(2, 6, field="gradient", width=6, augment=2, tableau="kutta4", horizon=6.0, control_intervals=3)
    net = Network(**(net._arguments() | {"nonexpansive": True, "stage_controls": stage_controls}))
    X, y = two_spirals()
    u = 4.0 * net.init(random_state=0)  # beyond the bound: the training begins with its projection
    u.h[...] = 1.0
    result = ocdl.train(net, u, X, y, optimiser=METHODS[method], max_iter=60, random_state=0)
    bound = math.sqrt(2 * net.tableau.contractivity_radius)
    norms = np.linalg.norm(result.controls.K, 2, axis=(-2, -1))
    assert norms.max() <= bound * (1 + 1e-12)
    assert norms.max() >= bound * (1 - 1e-12)  # the constraint is active
    assert net.lipschitz_bound(result.controls) == 1.0
    if method in ("backtracking", "armijo", "lbfgs"):
        assert (np.diff(result.history.loss) <= 0).all()
        assert result.history.loss[-1] < result.history.loss[0]


@pytest.mark.parametrize("tableau", ["euler", "kutta4", "ralston"])
def test_single_precision_rounds_to_the_side_of_the_bound(tableau: str) -> None:
    net = Network(2, 6, field="gradient", width=6, augment=2, tableau=tableau, horizon=6.0, dtype="float32")
    net = Network(**(net._arguments() | {"nonexpansive": True}))
    X, y = two_spirals()
    u = net.init(random_state=0)
    assert net.lipschitz_bound(u) == 1.0
    result = ocdl.train(net, u, X, y, optimiser=ocdl.LBFGS(), max_iter=40)
    assert net.lipschitz_bound(result.controls) == 1.0
    assert result.history.loss[-1] < result.history.loss[0]


@pytest.mark.parametrize("activation", INCREASING)
@pytest.mark.parametrize("tableau", ["euler", "ralston", "kutta4", "rk38", "gauss2"])
def test_no_pair_of_samples_is_driven_apart(activation: str, tableau: str) -> None:
    net = Network(
        3, 5, field="gradient", width=7, augment=2, tableau=tableau, activation=activation, horizon=8.0,
        nonexpansive=True,
    )  # fmt: skip
    u = net.init(random_state=3)
    u.b[...] = np.random.default_rng(1).normal(size=u.b.shape)
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 3))
    Z = X + rng.normal(size=X.shape)
    before, after = (np.linalg.norm(a - b, axis=1) for a, b in ((X, Z), (net.final_state(u, X), net.final_state(u, Z))))
    assert (after[before > 0.1] <= before[before > 0.1] * (1 + 1e-12)).all()
    directions = rng.normal(size=(2000, 3))
    grown = np.linalg.norm(net.tangent(u, X, dX=directions)[-1], axis=1)
    assert (grown <= np.linalg.norm(directions, axis=1) * (1 + 1e-12)).all()


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_no_attack_breaks_a_certified_radius(n_outputs: int) -> None:
    """Projected gradient descent on the margin, ten starts of 40 steps within the radius."""
    net = Network(2, 8, n_outputs=n_outputs, field="gradient", width=6, augment=2, horizon=4.0, nonexpansive=True)
    X, y = two_spirals(60)
    if n_outputs == 3:
        y = (X[:, 0] > 0.3).astype(int) + (X[:, 1] > 0.3)
    objective = Objective("cross_entropy")
    u = ocdl.train(
        net, net.init(random_state=0), X, y, objective=objective, optimiser=ocdl.LBFGS(), max_iter=100
    ).controls
    labels = np.array([net.predict(u, X)[:, 0] > 0] if n_outputs == 1 else [net.predict(u, X).argmax(1)])[0].astype(int)
    radius = net.certified_radius(u, X) * (1 - 1e-9)
    assert (radius > 0).all()
    rng = np.random.default_rng(0)
    for _ in range(10):
        moved = X + radius[:, None] * unit(rng.normal(size=X.shape))
        for _ in range(40):
            slope = net.sensitivity(u, moved, labels, objective)
            step = moved + 0.2 * radius[:, None] * unit(slope) - X
            length = np.linalg.norm(step, axis=1)
            moved = X + step * np.minimum(1, radius / np.maximum(length, 1e-300))[:, None]
        z = net.predict(u, moved)
        np.testing.assert_array_equal((z[:, 0] > 0).astype(int) if n_outputs == 1 else z.argmax(1), labels)
    with np.errstate(invalid="ignore"):
        nearest = net.minimal_perturbation(u, X).distance
    assert (nearest >= radius).all()


def unit(v: Any) -> Any:
    return v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300)


def test_the_radius_of_a_linear_network_is_the_distance_to_the_border() -> None:
    net = Network(2, 1, field="gradient", nonexpansive=True, n_outputs=3)
    u = net.controls(W=[[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]], mu=[0.0, 0.0, -1.0])
    radius = net.certified_radius(u, [[3.0, 1.0]])  # outputs 3, 2, -1
    assert radius[0] == pytest.approx(min(1 / math.sqrt(5), 4.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"field": "dense"}, "nonexpansive=True needs field='gradient', got field='dense'"),
        ({"time_steps": "free"}, "needs time_steps='fixed', got time_steps='free'"),
        ({"activation": "sin"}, "needs an activation that increases, .* got 'sin'"),
        ({"tableau": "midpoint"}, "positive weights, .*midpoint.*contractivity_radius is 0"),
        ({"nonexpansive": 1}, "nonexpansive must be True or False"),
    ],
)
def test_networks_that_cannot_be_kept_nonexpansive(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Network(**({"n_features": 2, "n_layers": 3, "field": "gradient", "nonexpansive": True} | options))


def test_trainings_that_cannot_project() -> None:
    net = Network(2, 3, field="gradient", nonexpansive=True)
    u, X, y = net.init(random_state=0), np.zeros((2, 2)), [0, 1]
    with pytest.raises(ValueError, match=r"NewtonCG takes no network with nonexpansive=True"):
        ocdl.train(net, u, X, y, optimiser=ocdl.NewtonCG())
    with pytest.raises(ValueError, match=r"L1\(0.1\) acts on K"):
        ocdl.train(net, u, X, y, objective=Objective(penalties=ocdl.L1(0.1)))
    ocdl.train(net, u, X, y, objective=Objective(penalties=ocdl.L1(0.1, ("W",))), max_iter=2)
    u.h[0] = -0.1
    with pytest.raises(ValueError, match=r"h\[0\] is -0.1; the steps .* must not be negative"):
        ocdl.train(net, u, X, y)


def test_files_and_resumption_keep_the_constraint(tmp_path: Any) -> None:
    net = Network(2, 3, field="gradient", nonexpansive=True, tableau="improved_euler")
    u = net.init(random_state=0)
    ocdl.save(tmp_path / "model.ocdl", net, u)
    loaded = ocdl.load(tmp_path / "model.ocdl")
    assert loaded.network == net
    assert loaded.network.tableau.b_embedded.tolist() == [1.0, 0.0]
    X, y = two_spirals(40)
    whole = ocdl.train(net, u, X, y, max_iter=20)
    path = tmp_path / "training.ckpt"
    ocdl.train(net, u, X, y, max_iter=9, checkpoint=path)
    resumed = ocdl.train(net, u, X, y, max_iter=20, checkpoint=ocdl.Checkpoint(path, resume=True))
    np.testing.assert_array_equal(resumed.controls.to_vector(), whole.controls.to_vector())


def test_the_gradient_field_lowers_its_potential() -> None:
    problem = random_problem(Network(3, 40, field="gradient", width=5, horizon=0.5, control_intervals=1), samples=6)
    u, t = problem.u, problem.net.forward(problem.u, problem.X)
    potential = np.log(np.cosh(t.states @ u.K[0].T + u.b[0])).sum(axis=-1)
    assert (np.diff(potential, axis=0) < 0).all()
