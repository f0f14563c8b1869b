"""Fitted dynamical systems in model files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Protocol, TypeVar

import numpy as np

from ocdl.dynamics.plan import LearnedSystem
from ocdl.dynamics.system import System
from ocdl.dynamics.units import Units
from ocdl.model.tableau import Tableau
from ocdl.network import files
from ocdl.storage.container import FilePath, Migration, file_error, migrate, require_keys

KIND = "Dynamics"
SPEC = (
    "kind",
    "parameters",
    "state_names",
    "input_names",
    "n_features",
    "n_iter",
    "n_windows",
    "validation_error",
    "layers",
)
ARRAYS = ("theta", "W", "output_shift", "output_scale", "noise", "step", "free", "variance")
UNITS = tuple(field.name for field in fields(Units))

# By version n: the function that changes the metadata of version n to that of version n + 1; its arrays are empty.
MIGRATIONS: dict[int, Migration] = {}


class FittedDynamics(Protocol):
    """The attributes of a fitted estimator that a file holds."""

    models_: list[LearnedSystem]
    state_names_: list[str]
    input_names_: list[str]
    n_features_in_: int
    n_iter_: int
    n_windows_: int
    validation_error_: float

    def get_params(self, deep: bool = ...) -> dict[str, Any]: ...
    def _describe(self) -> Any: ...


SomeDynamics = TypeVar("SomeDynamics", bound=FittedDynamics)


def save(path: FilePath, model: FittedDynamics) -> None:
    """Write a fitted model: the first network with its controls, and the arrays of all models."""
    first: LearnedSystem = model.models_[0]
    net = first.system.network(first.layers, first.step)
    spec = {
        "kind": KIND,
        "parameters": {name: _to_json(name, value) for name, value in model.get_params(deep=False).items()},
        "state_names": list(model.state_names_),
        "input_names": list(model.input_names_),
        "n_features": int(model.n_features_in_),
        "n_iter": int(model.n_iter_),
        "n_windows": int(model.n_windows_),
        "validation_error": None if np.isnan(model.validation_error_) else float(model.validation_error_),
        "layers": [learned.layers for learned in model.models_],
    }
    others: dict[str, Any] = {}
    for i, learned in enumerate(model.models_):
        for name in ARRAYS:
            others[f"{i}.{name}"] = np.atleast_1d(np.asarray(getattr(learned, name), np.float64))
        others |= {f"{i}.{name}": np.asarray(array) for name, array in learned.units.to_dict().items()}
    files.write(path, net, first.system.controls(net, first.theta), {"estimator": spec}, others)


def is_dynamics(metadata: dict[str, Any]) -> bool:
    """Whether the metadata of a file are those of a fitted dynamical system."""
    spec = metadata.get("estimator")
    return isinstance(spec, dict) and spec.get("kind") == KIND


def restore(path: FilePath, stored: files.Stored, kind: Callable[..., SomeDynamics]) -> SomeDynamics:
    """Return the fitted model from the contents of a file."""
    network, _, metadata = stored.model
    try:
        migrate(metadata, {}, stored.version, MIGRATIONS)
        spec = require_keys(metadata["estimator"], "it", SPEC)
        parameters = require_keys(spec["parameters"], "the parameters", tuple(kind().get_params(deep=False)))
        model = kind(**{name: _from_json(name, value) for name, value in parameters.items()})
        system = System(network.field, network.dim, network.n_inputs, network.width, network.degree, network.tableau)
        layers = [int(number) for number in spec["layers"]]
        if not 1 <= len(layers) <= len(stored.others):
            raise ValueError("it has no models")
        names = [f"{i}.{name}" for i in range(len(layers)) for name in (*ARRAYS, *UNITS)]
        arrays = require_keys(stored.others, "the set of arrays", names)
        model.models_ = [_learned(system, arrays, i, number) for i, number in enumerate(layers)]
        model.n_features_in_ = int(spec["n_features"])
        model.state_names_, model.input_names_ = _names(spec["state_names"]), _names(spec["input_names"])
        if len(model.state_names_) != system.dim or len(model.input_names_) != system.n_inputs:
            raise ValueError(f"it needs {system.dim} names of states and {system.n_inputs} of inputs")
        if model.n_features_in_ != len(model.models_[0].W):
            raise ValueError(f"it has {len(model.models_[0].W)} outputs but n_features {model.n_features_in_}")
        model.n_iter_, model.n_windows_ = int(spec["n_iter"]), int(spec["n_windows"])
        error = spec["validation_error"]
        model.validation_error_ = float("nan") if error is None else float(error)
        model._describe()
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise file_error(path, f"holds no dynamical system that this ocdl can load: {error!s:.300}") from error
    return model


def _learned(system: System, arrays: dict[str, Any], number: int, layers: int) -> LearnedSystem:
    part = {name: np.asarray(arrays[f"{number}.{name}"], np.float64) for name in (*ARRAYS, *UNITS)}
    outputs, P = part["noise"].shape[0], system.n_parameters
    free = part["free"] != 0
    shapes = {
        "theta": (P,), "W": (outputs, system.dim), "output_shift": (outputs,), "output_scale": (outputs,),
        "noise": (outputs,), "step": (1,), "free": (P,), "variance": (P,),
        "shift": (system.dim,), "scale": (system.dim,), "time": (1,),
        "input_shift": (system.n_inputs,), "input_scale": (system.n_inputs,),
    }  # fmt: skip
    for name, shape in shapes.items():
        if part[name].shape != shape:
            raise ValueError(f"{name} has shape {part[name].shape} but the system needs {shape}")
        if not np.isfinite(part[name]).all():
            raise ValueError(f"{name} must be finite")
    for name in ("output_scale", "scale", "input_scale", "time", "step", "noise"):
        if not (part[name] > 0).all():
            raise ValueError(f"{name} must be positive")
    units = Units(part["shift"], part["scale"], part["input_shift"], part["input_scale"], float(part["time"][0]))
    return LearnedSystem(
        system, part["theta"], units, part["W"], part["output_shift"], part["output_scale"], part["noise"],
        float(part["step"][0]), layers, free, part["variance"],
    )  # fmt: skip


def _names(given: Any) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise ValueError(f"names must be a list of texts, got {given!r:.80}")
    return given


def _to_json(name: str, value: Any) -> Any:
    if isinstance(value, Tableau):
        return files.tableau_to_dict(value)
    if name in ("linear", "observe") and value is not None:
        return np.asarray(value).tolist()
    if name == "random_state" and not isinstance(value, (int, np.integer)):
        return None  # the state of a generator is not stored: a new fit would continue it anyway
    return value.item() if isinstance(value, np.generic) else value


def _from_json(name: str, value: Any) -> Any:
    return files.tableau_from_dict(value) if name == "tableau" and isinstance(value, dict) else value
