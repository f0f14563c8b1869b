"""The parameters of `Dynamics`, checked: from what a user gives to the plan of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.base import validation
from ocdl.base.randomness import draw_seed
from ocdl.dynamics.plan import DynamicsPlan, LearnedSystem
from ocdl.dynamics.series import SeriesSet
from ocdl.dynamics.system import System
from ocdl.model.tableau import method_of

Floats = NDArray[np.float64]
FLOAT64 = np.dtype(np.float64)
FIELDS = ("mlp", "polynomial")
AUTO = "auto"
FOREIGN_KEYWORDS = {
    "feature_library": "field='polynomial'",
    "threshold": "sparsity",
    "optimizer": "sparsity",
    "hidden_dim": "width",
    "hidden_layer_sizes": "width",
    "poly_order": "degree",
    "method": "tableau",
    "solver": "tableau",
    "dt": "max_step",
    "step_size": "max_step",
    "seed": "random_state",
    "n_ensemble": "n_models",
    "feature_names": "a DataFrame for X",
}


def make_plan(parameters: Mapping[str, Any], series: SeriesSet) -> DynamicsPlan:
    """Return the plan of a fit; errors name the parameter."""
    field = validation.choice(parameters["field"], "field", FIELDS)
    augment = validation.integer(parameters["augment"], "augment", minimum=0)
    linear = _read_linear(parameters["linear"])
    W, are_components = _read_observe(parameters["observe"], series.n_columns, augment)
    learn_linear = validation.boolean(parameters["learn_linear"], "learn_linear")
    if linear is None and not learn_linear:
        raise ValueError("learn_linear=False needs a linear part to keep, as in linear=A")
    if linear is not None and len(linear) != W.shape[1]:
        raise ValueError(f"linear must have shape {(W.shape[1],) * 2}, one row per component, got {linear.shape}")
    width = validation.integer(parameters["width"], "width", minimum=1)
    degree = validation.integer(parameters["degree"], "degree", minimum=1)
    tableau = method_of(parameters["tableau"])
    if not tableau.is_explicit:
        raise ValueError(f"tableau must be explicit, got {parameters['tableau']!r}")
    system = System(
        field,
        W.shape[1],
        series.n_inputs,
        width if field == "mlp" else None,
        degree if field == "polynomial" else None,
        tableau,
    )
    max_step = parameters["max_step"]
    fraction = validation.not_negative(parameters["validation_fraction"], "validation_fraction")
    if fraction > 0.5:
        raise ValueError(f"validation_fraction must be from 0 to 0.5, got {fraction}")
    verbose = validation.integer(int(parameters["verbose"]), "verbose", minimum=0)
    return DynamicsPlan(
        series=series.members,
        system=system,
        W=W,
        observes_components=are_components,
        max_step=None if max_step is None else validation.positive(max_step, "max_step"),
        linear=linear,
        learn_linear=learn_linear,
        sparsity=_read_sparsity(parameters["sparsity"]),
        alpha=_read_auto(parameters["alpha"], "alpha"),
        max_iter=validation.integer(parameters["max_iter"], "max_iter", minimum=1),
        validation_fraction=fraction,
        seed=draw_seed(parameters["random_state"]),
        report=print if verbose else _ignore,
    )


def _ignore(_: str) -> None:
    """Report nothing."""


def _read_sparsity(sparsity: Any) -> float | str:
    return 0.0 if sparsity is None else _read_auto(sparsity, "sparsity")


def _read_auto(value: Any, name: str) -> float | str:
    if isinstance(value, str):
        if value != AUTO:
            raise ValueError(f"{name} must be 'auto' or a number that is not negative, got {value!r}")
        return AUTO
    return validation.not_negative(value, name)


def _read_linear(linear: Any) -> Floats | None:
    if linear is None:
        return None
    A = np.asarray(validation.real_array(linear, "linear", FLOAT64))
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"linear must be a square matrix (components, components), got shape {A.shape}")
    return A


def _read_observe(observe: Any, columns: int, augment: int) -> tuple[Floats, bool]:
    """Return the matrix W (columns, components) of what is observed, and whether its rows are components."""
    if observe is None:
        return np.eye(columns, columns + augment), True
    try:
        given = np.asarray(observe)
    except ValueError as error:
        raise ValueError("observe must be component numbers or a matrix, got a ragged sequence") from error
    if given.ndim == 1 and given.dtype.kind in "iu":
        if len(given) != columns:
            raise ValueError(f"observe names {len(given)} components but X has {columns} columns")
        if given.min(initial=0) < 0 or len(set(given.tolist())) < len(given):
            raise ValueError(f"observe must name different components from 0 on, got {given.tolist()}")
        return np.eye(int(given.max()) + 1 + augment)[given], True
    W = np.asarray(validation.real_array(observe, "observe", FLOAT64))
    if W.ndim != 2 or W.shape[0] != columns or W.shape[1] == 0:
        raise ValueError(
            f"observe must be {columns} component numbers, or a matrix ({columns}, components), got shape {W.shape}"
        )
    if (W == 0).all(axis=1).any():
        raise ValueError(f"observe has a row of zeros: column {int(np.argmax((W == 0).all(axis=1)))} observes nothing")
    return np.hstack([W, np.zeros((columns, augment))]), False


def read_states(y: Any, learned: LearnedSystem, name: str) -> Floats:
    """Return one state or several, checked."""
    states = np.asarray(validation.real_array(y, name, FLOAT64))
    dim = learned.system.dim
    if states.ndim not in (1, 2) or states.shape[-1] != dim or 0 in states.shape:
        raise ValueError(f"{name} must have shape ({dim},) or (m, {dim}), got {states.shape}")
    return states


def read_inputs(inputs: Any, learned: LearnedSystem, m: int, k: int | None) -> Floats | None:
    """Return the inputs (m, k, r) of a simulation, or for k None (m, r), checked."""
    r = learned.system.n_inputs
    if r == 0:
        if inputs is not None:
            raise ValueError("inputs must be left out: the system was fitted without")
        return None
    shape = (r,) if k is None else (k, r)
    if inputs is None:
        raise ValueError(
            f"inputs is missing: the system was fitted with {r} of them; give shape {shape} or {(m, *shape)}"
        )
    x = np.asarray(validation.real_array(inputs, "inputs", FLOAT64))
    if x.shape not in (shape, (m, *shape)):
        raise ValueError(f"inputs must have shape {shape} or {(m, *shape)}, got {x.shape}")
    return np.broadcast_to(x, (m, *shape)).copy()
