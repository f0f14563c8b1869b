"""Classifiers in model files: a network with its classes and the scaling of its inputs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ocdl.base.validation import FloatArray, real_array
from ocdl.cli._output import UserError
from ocdl.model.controls import Controls
from ocdl.model.losses import names_of
from ocdl.model.objective import decided, meaning_of_outputs
from ocdl.network import Network, files
from ocdl.storage.container import Migration, exact_record, migrate, refusal

KEY = "command_line"  # of the metadata
MIGRATIONS: dict[int, Migration] = {}  # what the metadata have become since a version


@dataclass(frozen=True)
class Description:
    """What a model file of the command line says besides the network.

    Inputs are (x - mean) / scale. The target is the column of the labels in the file of the training data, its
    position counted from 0; there is none if the data came from elsewhere.
    """

    classes: list[Any]
    loss: str
    mean: list[float]
    scale: list[float]
    feature_names: list[str] | None = None
    target_name: str | None = None
    target_position: int | None = None


@dataclass(frozen=True)
class Classifier:
    """A network that predicts classes."""

    network: Network
    controls: Controls
    description: Description

    def probabilities(self, rows: FloatArray) -> FloatArray:
        """Return the probabilities of the classes, (samples, classes)."""
        return meaning_of_outputs(self._outputs(rows), self.description.loss)

    def predict(self, rows: FloatArray) -> list[Any]:
        """Return the class of each sample, as `ODEClassifier` chooses it."""
        return [self.description.classes[i] for i in decided(self._outputs(rows))]

    def save(self, path: str) -> None:
        """Write the model file, whole or not at all."""
        try:
            files.save(path, self.network, self.controls, **{KEY: asdict(self.description)})
        except ValueError as error:  # too many features or classes for the header of a file
            raise UserError(f"{path!r} cannot hold the model: {error}") from error

    def _outputs(self, rows: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (rows - np.array(self.description.mean)) / np.array(self.description.scale)
        bad = np.flatnonzero(~np.isfinite(scaled).all(axis=1))
        if len(bad):
            raise UserError(f"sample {bad[0] + 1} has a number that is too large for the model")
        try:
            return self.network.predict(self.controls, scaled)
        except FloatingPointError as error:
            raise UserError(str(error)) from error


def load_classifier(path: str) -> Classifier:
    """Return the classifier in a file of ``ocdl train`` or of `ODEClassifier.save`."""
    (network, controls, metadata), version, _ = files.read(path)
    if KEY in metadata:
        try:
            migrate(metadata, {}, version, MIGRATIONS)
            return Classifier(network, controls, _description(metadata[KEY], network))
        except (TypeError, ValueError) as error:
            raise refusal(path, f"holds no classifier that this ocdl can load: {error!s:.300}") from error
    if "estimator" in metadata:
        return _from_estimator(path)
    raise refusal(path, "holds a network without classes; ocdl train and ODEClassifier.save write files with them")


def _from_estimator(path: str) -> Classifier:
    from ocdl.estimator import ODEClassifier

    estimator = ODEClassifier.load(path)
    names = getattr(estimator, "feature_names_in_", None)
    n = estimator.network_.n_features
    description = Description(
        classes=estimator.classes_.tolist(),
        loss=estimator.loss,
        mean=[0.0] * n,
        scale=[1.0] * n,
        feature_names=None if names is None else names.tolist(),
    )
    return Classifier(estimator.network_, estimator.controls_, description)


def _description(stored: object, network: Network) -> Description:
    description = Description(**exact_record(stored, f"its {KEY}", tuple(Description.__dataclass_fields__)))
    n, n_classes = network.n_features, max(network.n_outputs, 2)
    classes, names, position = description.classes, description.feature_names, description.target_position
    if not isinstance(classes, list) or len(classes) != n_classes:
        raise ValueError(f"it needs {n_classes} classes")
    if not all(isinstance(label, (str, int)) for label in classes):
        raise ValueError("its classes must be texts or whole numbers")
    if description.loss not in names_of("classes"):
        raise ValueError(f"its loss is {description.loss!r:.80}")
    for name in ("mean", "scale"):
        if real_array(getattr(description, name), name, np.dtype(np.float64)).shape != (n,):
            raise ValueError(f"its {name} must have {n} numbers")
    if not all(description.scale):
        raise ValueError("its scale has a 0")
    if names is not None and (not isinstance(names, list) or len(names) != n):
        raise ValueError(f"it needs {n} feature names")
    if names is not None and not all(isinstance(name, str) for name in names):
        raise ValueError("its feature names must be texts")
    if not isinstance(description.target_name, (str, type(None))):
        raise ValueError("its target_name must be text")
    if position is not None and (type(position) is not int or not 0 <= position <= n):
        raise ValueError(f"its target_position must be from 0 to {n}")
    return description
