"""Arguments and settings of trainings: wrong ones are named."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from training_problems import small_problem

import ocdl
from ocdl import (
    LBFGS,
    Adam,
    Armijo,
    Backtracking,
    Chain,
    GradientDescent,
    NewtonCG,
)

BAD_ARGUMENTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"max_iter": -1}, ValueError, "max_iter"),
    ({"max_iter": 1.5}, TypeError, "max_iter"),
    ({"tol": -1}, ValueError, "tol"),
    ({"tol": float("nan")}, ValueError, "tol"),
    ({"eval_every": 0}, ValueError, "eval_every"),
    ({"eval_every": "ten"}, TypeError, "eval_every"),
    ({"eval_every": [1, -1]}, ValueError, r"eval_every\[1\] must be at least 0, got -1"),
    ({"eval_every": [1, 2.0]}, TypeError, r"eval_every\[1\] must be a whole number"),
    ({"eval_every": np.zeros((2, 2), int)}, TypeError, "eval_every"),
    ({"optimiser": "adam"}, TypeError, "optimiser"),
    ({"objective": "squared"}, TypeError, "objective"),
    ({"freeze": "K"}, TypeError, "freeze"),
    ({"freeze": ("V",)}, ValueError, "freeze"),
    ({"validation": 3}, TypeError, "validation"),
    ({"validation": ([[1.0]], [0])}, ValueError, "validation"),
    ({"callback": 3}, TypeError, "callback"),
    ({"progress": 1}, TypeError, "progress"),
    ({"sample_weight": [1.0]}, ValueError, "sample_weight"),
    ({"random_state": "x"}, TypeError, "random_state"),
    ({"validation": ([[1.0, 2.0]], [3])}, ValueError, "validation"),
    ({"freeze": 5}, TypeError, "freeze"),
    ({"freeze": [["K"]]}, TypeError, "freeze"),
    ({"checkpoint": 3}, TypeError, "checkpoint"),
]


@pytest.mark.parametrize(("arguments", "error", "named"), BAD_ARGUMENTS, ids=lambda v: str(v)[:40])
def test_wrong_arguments_are_named(arguments: dict[str, Any], error: type[Exception], named: str) -> None:
    net, u, X, y = small_problem()
    with pytest.raises(error, match=named):
        ocdl.train(net, u, X, y, **arguments)


BAD_OPTIONS: list[tuple[Any, type[Exception], str]] = [
    (lambda: ocdl.Checkpoint("c", every=0), ValueError, "every"),
    (lambda: ocdl.Checkpoint("c", every=1.5), TypeError, "every"),  # type: ignore[arg-type]
    (lambda: ocdl.Checkpoint("c", resume="always"), TypeError, "resume must be True, False or 'if_exists'"),  # type: ignore[arg-type]
    (lambda: ocdl.Checkpoint(3), TypeError, "checkpoint must be a path"),  # type: ignore[arg-type]
    (lambda: ocdl.Checkpoint("c", interval=3), TypeError, "did you mean 'every'"),  # type: ignore[call-arg]
    (lambda: ocdl.Validation([[0.0]], [0], patience=0), ValueError, "patience"),
    (lambda: ocdl.Validation([[0.0]], [0], patience="x"), TypeError, "patience"),  # type: ignore[arg-type]
    (lambda: ocdl.Validation([[0.0]], [0], n_iter_no_change=3), TypeError, "did you mean 'patience'"),  # type: ignore[call-arg]
]


@pytest.mark.parametrize(("make", "error", "named"), BAD_OPTIONS, ids=range(len(BAD_OPTIONS)))
def test_wrong_options_are_named(make: Any, error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        make()


FOREIGN = {
    "patience": "ocdl.Validation(X, y, patience=...)",
    "resume": "ocdl.Checkpoint(path, resume=True)",
    "checkpoint_every": "ocdl.Checkpoint(path, every=...)",
    "stop": "callback",
    "epochs": "max_iter",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_keywords_name_ours(name: str) -> None:
    net, u, X, y = small_problem()
    with pytest.raises(TypeError, match=re.escape(FOREIGN[name])):
        ocdl.train(net, u, X, y, **{name: 3})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("optimiser", "options", "status", "converged"),
    [
        (LBFGS(), {"tol": 0.05}, "GRADIENT", True),
        (LBFGS(), {"rtol": 0.5}, "LOSS_TOLERANCE", True),
        (LBFGS(), {"max_iter": 2}, "ITERATION_LIMIT", False),
        (Backtracking(), {"callback": lambda state: True}, "INTERRUPTED", False),
    ],
)
def test_converged_is_a_tolerance_reached(
    optimiser: Any, options: dict[str, Any], status: str, converged: bool
) -> None:
    net, u, X, y = small_problem()
    defaults: dict[str, Any] = {"max_iter": 10**6, "tol": 0.0}
    result = ocdl.train(net, u, X, y, optimiser=optimiser, **(defaults | options))
    assert (result.status.name, result.converged) == (status, converged)


BAD_OPTIMISERS: list[tuple[Any, type[Exception], str]] = [
    (lambda: GradientDescent(0.0), ValueError, "step"),
    (lambda: Backtracking(L0=-1.0), ValueError, "L0"),
    (lambda: Backtracking(rho_up=1.0), ValueError, "rho_up"),
    (lambda: Backtracking(rho_down=1.5), ValueError, "rho_down"),
    (lambda: Backtracking(max_trials=0), ValueError, "max_trials"),
    (lambda: Armijo(c=1.0), ValueError, "c must"),
    (lambda: Armijo(shrink=2.0), ValueError, "shrink"),
    (lambda: Armijo(grow=0.5), ValueError, "grow"),
    (lambda: Adam(lr=0.0), ValueError, "lr"),
    (lambda: Adam(beta1=1.0), ValueError, "beta1"),
    (lambda: Adam(batch_size=0), ValueError, "batch_size"),
    (lambda: LBFGS(memory=0), ValueError, "memory"),
    (lambda: NewtonCG(curvature="newton"), ValueError, "curvature"),
    (lambda: NewtonCG(radius=0.0), ValueError, "radius"),
    (lambda: NewtonCG(forcing=1.0), ValueError, "forcing"),
    (lambda: NewtonCG(max_products=0), ValueError, "max_products"),
    (lambda: NewtonCG(max_trials=0), ValueError, "max_trials"),
    (lambda: Chain(), ValueError, "at least one stage"),
    (lambda: Chain(Adam()), TypeError, "stage 0"),
    (lambda: Chain((Adam(), None), (LBFGS(), None)), ValueError, "stage 0"),
    (lambda: Chain((Chain((Adam(), 1)), 1)), TypeError, "stage 0"),
]


@pytest.mark.parametrize(("make", "error", "named"), BAD_OPTIMISERS, ids=range(len(BAD_OPTIMISERS)))
def test_wrong_settings_are_named(make: Any, error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        make()
