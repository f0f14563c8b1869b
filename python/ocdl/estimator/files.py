"""Fitted estimators in model files: what is needed to predict, and the parameters; not the history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ocdl.model.controls import Controls
from ocdl.model.penalties import Regulariser
from ocdl.model.tableau import Tableau
from ocdl.network import Network, files
from ocdl.storage.container import Arrays, FilePath, Migration, exact_record, migrate, refusal
from ocdl.training import optimisers
from ocdl.training.result import Status

FIELDS = ("parameters", "classes", "feature_names", "n_iter", "status")


def _from_version_1(metadata: dict[str, Any], _: Arrays) -> None:
    """A regulariser was a record of three weights."""
    parameters = metadata["estimator"]["parameters"]
    weights = parameters["regulariser"]
    if weights is not None:
        record = exact_record(weights, "the regulariser", ("tikhonov", "l1", "time_smoothness"))
        parameters["regulariser"] = Regulariser(**record).to_list()


# What an estimator has become since a version. A parameter that is missing takes the value that keeps predictions.
MIGRATIONS: dict[int, Migration] = {1: _from_version_1}


class Fitted(Protocol):
    """A fitted estimator, as far as a file holds it."""

    classes_: NDArray[Any]
    feature_names_in_: NDArray[Any]
    n_features_in_: int
    network_: Network
    controls_: Controls
    n_iter_: int
    status_: Status

    def get_params(self, deep: bool = ...) -> dict[str, Any]: ...


SomeFitted = TypeVar("SomeFitted", bound=Fitted)


def save(path: FilePath, estimator: Fitted) -> None:
    """Write a fitted estimator."""
    names = getattr(estimator, "feature_names_in_", None)
    values: tuple[Any, ...] = (
        {name: _stored(name, value) for name, value in estimator.get_params(deep=False).items()},
        {"dtype": estimator.classes_.dtype.str, "values": _plain_list(estimator.classes_, "classes_")},
        None if names is None else _plain_list(names, "feature_names_in_"),
        int(estimator.n_iter_),
        estimator.status_.name,
    )
    files.save(path, estimator.network_, estimator.controls_, estimator=dict(zip(FIELDS, values, strict=True)))


def load(path: FilePath, kind: Callable[..., SomeFitted]) -> SomeFitted:
    """Return the fitted estimator of `save`."""
    (network, controls, metadata), version, _ = files.read(path)
    try:
        migrate(metadata, {}, version, MIGRATIONS)
        stored = exact_record(exact_record(metadata, "its metadata", ("estimator",))["estimator"], "it", FIELDS)
        parameters = exact_record(stored["parameters"], "the parameters", tuple(kind().get_params(deep=False)))
        estimator = kind(**{name: _restored(name, value) for name, value in parameters.items()})
        estimator.classes_ = _classes(stored["classes"], network.n_outputs)
        estimator.network_, estimator.controls_ = network, controls
        estimator.n_iter_, estimator.status_ = int(stored["n_iter"]), Status[stored["status"]]
        estimator.n_features_in_ = network.n_features
        if stored["feature_names"] is not None:
            names = np.array(stored["feature_names"], dtype=object)
            if names.shape != (network.n_features,) or not all(isinstance(name, str) for name in names):
                raise ValueError(f"it needs {network.n_features} feature names")
            estimator.feature_names_in_ = names
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise refusal(path, f"holds no estimator that this ocdl can load: {error!s:.300}") from error
    return estimator


def _stored(name: str, value: Any) -> Any:
    """Return a parameter as JSON can hold it."""
    if isinstance(value, Tableau):
        return files.tableau_to_dict(value)
    if isinstance(value, Regulariser):
        return value.to_list()
    if name == "optimiser" and value is not None:
        return optimisers.to_dict(value)
    if name == "class_weight" and isinstance(value, dict):
        return [[_plain_list(np.asarray([label]), "class_weight")[0], float(weight)] for label, weight in value.items()]
    if name == "random_state" and not isinstance(value, (int, np.integer)):
        return None  # a generator's state is not worth keeping: a new fit starts elsewhere anyway
    return value.item() if isinstance(value, np.generic) else value


def _restored(name: str, value: Any) -> Any:
    if name == "tableau" and isinstance(value, dict):
        return files.tableau_from_dict(value)
    if name == "regulariser" and value is not None:
        return Regulariser.from_list(value)
    if name == "optimiser" and value is not None:
        return optimisers.from_dict(value)
    if name == "class_weight" and isinstance(value, list):
        return dict(value)
    return value


def _plain_list(values: NDArray[Any], name: str) -> list[Any]:
    plain: list[Any] = [value.item() if isinstance(value, np.generic) else value for value in values.tolist()]
    for value in plain:
        if not isinstance(value, (str, bool, int, float)):
            raise TypeError(
                f"{name} must be text, numbers or booleans to be saved, got {value!r} ({type(value).__name__})"
            )
    return plain


def _classes(stored: Any, n_outputs: int) -> NDArray[Any]:
    record = exact_record(stored, "the classes", ("dtype", "values"))
    dtype = np.dtype("O" if record["dtype"] == "|O" else str(record["dtype"]))
    if dtype.kind not in "OUSbiuf" or not isinstance(record["values"], list):
        raise ValueError(f"classes of dtype {record['dtype']!r:.80} cannot be read")
    classes = np.array(record["values"], dtype=object).astype(dtype)
    if classes.shape != (max(n_outputs, 2),):
        raise ValueError(f"a network with {n_outputs} outputs needs {max(n_outputs, 2)} classes, got {classes.shape}")
    return classes
