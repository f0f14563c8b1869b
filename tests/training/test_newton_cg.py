"""NewtonCG: fast near a minimum, safe far from it, and every product is counted."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import ocdl
from ocdl import LBFGS, Chain, Network, NewtonCG, Objective, Status, Tikhonov, TimeSmoothness, datasets
from ocdl.training import optimisers

SMOOTH = Objective("cross_entropy", penalties=[Tikhonov(0.05), TimeSmoothness(0.01)])


def problem(architecture: str = "odenet", samples: int = 60, **overrides: Any) -> tuple[Any, ...]:
    net = Network.preset(architecture, 2, 4, **overrides)
    X, y = datasets.make_donut2d(samples, random_state=1)
    return net, net.init(random_state=2), X, y


def hessian(net: Network, u: ocdl.Controls, X: Any, y: Any, objective: Objective) -> np.ndarray:
    columns = [
        net.hessian_product(u, X, y, objective, du=net.from_vector(e)).to_vector() for e in np.eye(net.n_controls)
    ]
    return np.array(columns)


@pytest.mark.parametrize("architecture", ["net", "resnet"])
def test_exact_steps_converge_quadratically_to_a_minimiser(architecture: str) -> None:
    net, u, X, y = problem(architecture)
    method = NewtonCG(forcing=1e-13, max_products=500)
    result = ocdl.train(net, u, X, y, objective=SMOOTH, optimiser=method, max_iter=200, tol=1e-13)
    assert result.status in (Status.GRADIENT, Status.LINE_SEARCH_FAILED, Status.STEP_TOLERANCE)
    norms = result.history.gradient_norm
    assert norms[-1] <= 1e-13
    fast = np.flatnonzero((norms[:-1] < 1e-2) & (norms[1:] > 1e-13))
    assert len(fast) >= 1
    assert np.all(norms[fast + 1] <= 100 * norms[fast] ** 2)
    assert np.linalg.eigvalsh(hessian(net, result.controls, X, y, SMOOTH)).min() > -1e-12


def test_it_leaves_a_point_where_the_gradient_alone_does_not() -> None:
    """At K = 0, b = 0 of a symmetric problem the gradient is tiny and the Hessian indefinite."""
    net = Network(1, 3)
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([1, 0, 0, 1])
    start = net.controls(K=np.full((3, 1, 1), 1e-3), b=np.full((3, 1), 1e-3), W=[[1e-3]], mu=[0.0])
    arguments: dict[str, Any] = {"max_iter": 40, "tol": 0}
    assert np.linalg.eigvalsh(hessian(net, start, X, y, Objective())).min() < 0
    newton = ocdl.train(net, start, X, y, optimiser=NewtonCG(), **arguments).history.loss
    plain = ocdl.train(net, start, X, y, optimiser=ocdl.Backtracking(), **arguments).history.loss
    assert plain[-1] > 0.999 * plain[0]
    assert newton[-1] < 0.96 * newton[0]


@pytest.mark.parametrize("curvature", ["hessian", "gauss_newton"])
def test_a_convex_problem_is_solved_in_a_few_iterations(curvature: str) -> None:
    """The classifier alone, with the cross entropy: logistic regression of the states at time T."""
    net, u, X, y = problem("resnet")
    objective = Objective("cross_entropy", penalties=Tikhonov(1e-3))
    method = NewtonCG(curvature=curvature, radius=10.0)
    result = ocdl.train(net, u, X, y, objective=objective, optimiser=method, freeze=("K", "b"), max_iter=20, tol=1e-10)
    assert result.status is Status.GRADIENT
    assert np.array_equal(result.controls.K, u.K)


@pytest.mark.parametrize("curvature", ["hessian", "gauss_newton"])
def test_steps_stay_on_the_simplex(curvature: str) -> None:
    net, u, X, y = problem("odenet+simplex", samples=200)
    result = ocdl.train(net, u, X, y, optimiser=NewtonCG(curvature=curvature), max_iter=120, eval_every=1)
    steps = result.history.time_steps
    assert np.all(steps >= 0)
    assert np.any(steps == 0)
    np.testing.assert_allclose(steps.sum(axis=1), net.horizon, rtol=1e-14)
    assert np.all(np.diff(result.history.loss) <= 0)
    assert result.history.loss[-1] < 0.5 * result.history.loss[0]


def test_on_the_simplex_it_ends_at_a_stationary_point() -> None:
    net, u, X, y = problem("odenet+simplex")
    result = ocdl.train(net, u, X, y, objective=SMOOTH, optimiser=NewtonCG(), max_iter=300, tol=1e-9)
    assert result.status is Status.GRADIENT


def test_every_product_counts_as_three_evaluations() -> None:
    net, u, X, y = problem()
    result = ocdl.train(net, u, X, y, optimiser=NewtonCG(max_products=1), max_iter=10)
    assert result.n_evals == 1 + result.history.trials.sum()
    assert np.all(result.history.trials[1:] >= 3 + 1)
    assert np.any(result.history.trials[1:] == 3 + 1)


def test_a_start_far_out_is_survived() -> None:
    """Trials that are not finite are refused."""
    net = Network(2, 5, activation="identity", time_steps="free")
    X, y = datasets.make_donut2d(50, random_state=1)
    u = net.init(random_state=0)
    result = ocdl.train(net, u, 1e3 * X, y, optimiser=NewtonCG(radius=1e12), max_iter=30)
    assert np.all(np.isfinite(result.history.loss))
    assert np.all(np.diff(result.history.loss) <= 0)


@pytest.mark.parametrize(
    "method", [NewtonCG(curvature="gauss_newton", radius=np.float64(2)), Chain((NewtonCG(), 3), (LBFGS(), None))]
)
def test_settings_survive_storage(method: Any) -> None:
    assert optimisers.from_dict(json.loads(json.dumps(optimisers.to_dict(method)))) == method


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_it_works_in_a_chain_and_in_an_estimator() -> None:
    net, u, X, y = problem()
    chain = Chain((ocdl.Adam(), 10), (NewtonCG(), None))
    result = ocdl.train(net, u, X, y, optimiser=chain, max_iter=20)
    assert result.n_iter == 20
    classifier = ocdl.ODEClassifier(n_layers=4, optimiser=NewtonCG(), max_iter=30, random_state=0)
    scaled = X / X.std(axis=0)
    assert classifier.fit(scaled, y).score(scaled, y) > 0.9
