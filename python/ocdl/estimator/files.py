"""Fitted estimators in model files: what is needed to predict, and the parameters; not the history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ocdl.base.names import counted
from ocdl.model.controls import Controls
from ocdl.model.losses import LOSSES, Loss
from ocdl.model.penalties import Regulariser
from ocdl.model.tableau import Tableau
from ocdl.network import Network, files
from ocdl.storage.container import FilePath, Migration, exact_record, migrate, refusal
from ocdl.training import optimisers
from ocdl.training.result import Status

FIELDS = ("kind", "parameters", "targets", "feature_names", "n_iter", "status")


# By version n: the function that changes the metadata of version n to that of version n + 1; its arrays are empty.
MIGRATIONS: dict[int, Migration] = {}


class Fitted(Protocol):
    """A fitted estimator, as far as a file holds it."""

    feature_names_in_: NDArray[Any]
    n_features_in_: int
    network_: Network
    controls_: Controls
    n_iter_: int
    status_: Status

    def get_params(self, deep: bool = ...) -> dict[str, Any]: ...
    def _require_loss(self) -> None: ...
    def _stored_targets(self) -> dict[str, Any]: ...
    def _restore_targets(self, stored: Any) -> None: ...


SomeFitted = TypeVar("SomeFitted", bound=Fitted)


def save(path: FilePath, estimator: Fitted, **metadata: Any) -> None:
    """Write a fitted estimator, and what else there is to say about it."""
    names = getattr(estimator, "feature_names_in_", None)
    status = getattr(estimator, "status_", None)
    values: tuple[Any, ...] = (
        type(estimator).__name__,
        {name: _stored(name, value) for name, value in estimator.get_params(deep=False).items()},
        estimator._stored_targets(),
        None if names is None else plain_list(names, "feature_names_in_"),
        int(estimator.n_iter_),
        None if status is None else status.name,
    )
    record = dict(zip(FIELDS, values, strict=True))
    files.save(path, estimator.network_, estimator.controls_, estimator=record, **metadata)


def load(path: FilePath, kind: Callable[..., SomeFitted]) -> SomeFitted:
    """Return the fitted estimator of `save`."""
    model, version, _ = files.read(path)
    if "table" in model.metadata:
        raise refusal(path, "holds an estimator for the columns of a table; load it with ocdl.load_model(path)")
    return restored(path, model, version, kind)


def restored(path: FilePath, model: files.Model, version: int, kind: Callable[..., SomeFitted]) -> SomeFitted:
    """Return the estimator of this kind in what was read from a file."""
    network, controls, metadata = model
    try:
        if "estimator" not in metadata:
            raise ValueError("its metadata lacks estimator")
        migrate(metadata, {}, version, MIGRATIONS)
        stored = exact_record(metadata["estimator"], "it", FIELDS)
        estimator = kind()
        if stored["kind"] != type(estimator).__name__:
            raise ValueError(f"it is an {stored['kind']!r:.80}, not an {type(estimator).__name__!r}")
        parameters = exact_record(stored["parameters"], "the parameters", tuple(estimator.get_params(deep=False)))
        estimator = kind(**{name: _restored(name, value) for name, value in parameters.items()})
        estimator._require_loss()
        estimator.network_, estimator.controls_ = network, controls
        estimator._restore_targets(stored["targets"])
        estimator.n_iter_ = int(stored["n_iter"])
        if stored["status"] is not None:
            estimator.status_ = Status[stored["status"]]
        estimator.n_features_in_ = network.n_features
        if stored["feature_names"] is not None:
            names = np.array(stored["feature_names"], dtype=object)
            if names.shape != (network.n_features,) or not all(isinstance(name, str) for name in names):
                raise ValueError(f"it needs {network.n_features} feature names")
            estimator.feature_names_in_ = names
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise refusal(path, f"holds no estimator that this ocdl can load: {error!s:.300}") from error
    return estimator


def _stored(name: str, value: Any) -> Any:
    """Return a parameter as JSON can hold it."""
    if isinstance(value, Tableau):
        return files.tableau_to_dict(value)
    if isinstance(value, Regulariser):
        return value.to_list()
    if name == "optimiser" and value is not None and not isinstance(value, str):
        return optimisers.to_dict(value)
    if isinstance(value, Loss):
        return {value.name: value.parameters()}
    if name == "loss" and not isinstance(value, str):
        raise TypeError(f"a file holds no loss of one's own, got {type(value).__name__}")
    if name == "class_weight" and isinstance(value, dict):
        return [[plain_list(np.asarray([label]), "class_weight")[0], float(weight)] for label, weight in value.items()]
    if name == "random_state" and not isinstance(value, (int, np.integer)):
        return None  # a generator's state is not worth keeping: a new fit starts elsewhere anyway
    return value.item() if isinstance(value, np.generic) else value


def _restored(name: str, value: Any) -> Any:
    if name == "tableau" and isinstance(value, dict):
        return files.tableau_from_dict(value)
    if name == "regulariser" and value is not None:
        return Regulariser.from_list(value)
    if name == "optimiser" and isinstance(value, dict):
        return optimisers.from_dict(value)
    if name == "loss" and isinstance(value, dict):
        ((loss, settings),) = value.items()
        return LOSSES[loss](**settings)
    if name == "class_weight" and isinstance(value, list):
        return dict(value)
    return value


def classes_to(classes: NDArray[Any]) -> dict[str, Any]:
    """Return classes as JSON can hold them."""
    return {"dtype": classes.dtype.str, "values": plain_list(classes, "classes_")}


def plain_list(values: NDArray[Any], name: str) -> list[Any]:
    """Return texts, numbers or booleans as JSON can hold them."""
    plain: list[Any] = [value.item() if isinstance(value, np.generic) else value for value in values.tolist()]
    for value in plain:
        if not isinstance(value, (str, bool, int, float)):
            raise TypeError(
                f"{name} must be text, numbers or booleans to be saved, got {value!r} ({type(value).__name__})"
            )
    return plain


def classes_from(stored: Any, n_outputs: int) -> NDArray[Any]:
    """Return the classes of `classes_to`, if they fit so many outputs."""
    record = exact_record(stored, "the classes", ("dtype", "values"))
    dtype = np.dtype("O" if record["dtype"] == "|O" else str(record["dtype"]))
    if dtype.kind not in "OUSbiuf" or not isinstance(record["values"], list):
        raise ValueError(f"classes of dtype {record['dtype']!r:.80} cannot be read")
    classes = np.array(record["values"], dtype=object).astype(dtype)
    if classes.shape != (max(n_outputs, 2),):
        raise ValueError(
            f"a network with {counted(n_outputs, 'output')} needs {max(n_outputs, 2)} classes, got {classes.shape}"
        )
    return classes
