"""Fitted estimators in model files: the fitted network, the targets and the parameters, but not the history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.estimator.targets import ClassTargets, NumberTargets, Targets, plain_list
from ocdl.model.controls import Controls
from ocdl.model.losses import LOSSES
from ocdl.model.objective import resolve_loss
from ocdl.model.penalties import Penalty, penalties_from_list, penalties_to_list, validate_penalties
from ocdl.model.tableau import Tableau
from ocdl.network import Network, files
from ocdl.storage.container import Arrays, FilePath, Migration, file_error, migrate, require_keys
from ocdl.training import optimisers
from ocdl.training.result import Status

ARRAYS = ("components_", "feature_importances_")
FIELDS = ("kind", "parameters", "targets", "feature_names", "n_iter", "status")


# By version n: the function that changes the metadata of version n to that of version n + 1; its arrays are empty.
MIGRATIONS: dict[int, Migration] = {}


class Fitted(Protocol):
    """The attributes of a fitted estimator that a file holds."""

    components_: FloatArray | None
    feature_importances_: FloatArray
    feature_names_in_: NDArray[Any]
    n_features_in_: int
    network_: Network
    controls_: Controls
    n_iter_: int
    status_: Status

    def get_params(self, deep: bool = ...) -> dict[str, Any]: ...
    def _require_loss(self) -> None: ...
    @property
    def _targets(self) -> Targets: ...
    @property
    def _targets_type(self) -> type[ClassTargets] | type[NumberTargets]: ...


SomeFitted = TypeVar("SomeFitted", bound=Fitted)


def save(path: FilePath, estimator: Fitted, others: Arrays | None = None, **metadata: Any) -> None:
    """Write a fitted estimator, with other arrays and metadata."""
    names = getattr(estimator, "feature_names_in_", None)
    status = getattr(estimator, "status_", None)
    values: tuple[Any, ...] = (
        type(estimator).__name__,
        {name: _to_json(name, value) for name, value in estimator.get_params(deep=False).items()},
        estimator._targets.to_json(),
        None if names is None else plain_list(names, "feature_names_in_"),
        int(estimator.n_iter_),
        None if status is None else status.name,
    )
    spec = dict(zip(FIELDS, values, strict=True))
    arrays = {name: value for name in ARRAYS if (value := getattr(estimator, name, None)) is not None}
    files.write(path, estimator.network_, estimator.controls_, {"estimator": spec, **metadata}, arrays | (others or {}))


def take_arrays(others: Arrays) -> Arrays:
    """Remove the arrays of an estimator from those of a file; return them."""
    return {name: others.pop(name) for name in ARRAYS if name in others}


def restore(
    path: FilePath, model: files.SavedNetwork, arrays: Arrays, version: int, kind: Callable[..., SomeFitted]
) -> SomeFitted:
    """Return the estimator of this kind from the contents of a file, with its arrays."""
    network, controls, metadata = model
    try:
        if "estimator" not in metadata:
            raise ValueError("its metadata lacks estimator")
        migrate(metadata, {}, version, MIGRATIONS)
        stored = require_keys(metadata["estimator"], "it", FIELDS)
        estimator = kind()
        if stored["kind"] != type(estimator).__name__:
            raise ValueError(f"it is an {stored['kind']!r:.80}, not an {type(estimator).__name__!r}")
        parameters = require_keys(stored["parameters"], "the parameters", tuple(estimator.get_params(deep=False)))
        estimator = kind(**{name: _from_json(name, value) for name, value in parameters.items()})
        estimator._require_loss()
        estimator.network_, estimator.controls_ = network, controls
        targets = estimator._targets_type.from_json(stored["targets"], network.n_outputs)
        vars(estimator).update(vars(targets))
        estimator.n_iter_ = int(stored["n_iter"])
        if stored["status"] is not None:
            estimator.status_ = Status[stored["status"]]
        estimator.components_, importances = _subspace(arrays, network)
        estimator.n_features_in_ = count_features(arrays, network)
        if importances is not None:
            estimator.feature_importances_ = importances
        if stored["feature_names"] is not None:
            names = np.array(stored["feature_names"], dtype=object)
            if names.shape != (estimator.n_features_in_,) or not all(isinstance(name, str) for name in names):
                raise ValueError(f"it needs {estimator.n_features_in_} feature names")
            estimator.feature_names_in_ = names
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise file_error(path, f"holds no estimator that this ocdl can load: {error!s:.300}") from error
    return estimator


def count_features(arrays: Arrays, network: Network) -> int:
    """Return the number of features of the estimator with these arrays."""
    if "components_" not in arrays:
        return network.n_features
    if arrays["components_"].ndim != 2:
        raise ValueError("components_ must have shape (components, features)")
    return int(arrays["components_"].shape[1])


def _subspace(arrays: Arrays, network: Network) -> tuple[FloatArray | None, FloatArray | None]:
    """Return components and importances of columns, checked, as far as a file has them."""
    columns = count_features(arrays, network)
    for name, shape in (("components_", (network.n_features, columns)), ("feature_importances_", (columns,))):
        if name in arrays:
            validation.array_of_shape(arrays[name], name, shape, "(components, features)", np.dtype(np.float64))
    return arrays.get("components_"), arrays.get("feature_importances_")


def _to_json(name: str, value: Any) -> Any:
    """Return a parameter as JSON can hold it."""
    if isinstance(value, Tableau):
        return files.tableau_to_dict(value)
    if name == "penalties" and value is not None:
        stored = penalties_to_list(validate_penalties(value))
        return stored[0] if isinstance(value, Penalty) else stored
    if name == "optimiser" and value is not None and not isinstance(value, str):
        return optimisers.to_dict(value)
    if name == "loss" and not isinstance(value, str):
        if (loss := resolve_loss(value)).is_custom:
            raise TypeError(f"a file cannot hold a custom loss, got {loss.name}")
        return {loss.name: loss.parameters()}
    if name == "class_weight" and isinstance(value, dict):
        return [[plain_list(np.asarray([label]), "class_weight")[0], float(weight)] for label, weight in value.items()]
    if name == "random_state" and not isinstance(value, (int, np.integer)):
        return None  # the state of a generator is not stored: a new fit would continue it anyway
    return value.item() if isinstance(value, np.generic) else value


def _from_json(name: str, value: Any) -> Any:
    if name == "tableau" and isinstance(value, dict):
        return files.tableau_from_dict(value)
    if name == "penalties" and value is not None:
        is_one = isinstance(value, list) and len(value) > 0 and isinstance(value[0], str)
        penalties = penalties_from_list([value] if is_one else value)
        return penalties[0] if is_one else penalties
    if name == "optimiser" and isinstance(value, dict):
        return optimisers.from_dict(value)
    if name == "loss" and isinstance(value, dict):
        ((loss, settings),) = value.items()
        return LOSSES[loss](**settings)
    if name == "class_weight" and isinstance(value, list):
        return dict(value)
    return value
