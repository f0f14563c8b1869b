"""Resolve the models that plots accept: estimators, pipelines, and networks with controls."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocdl.base.validation import FloatArray
from ocdl.model.controls import Controls
from ocdl.model.objective import resolve_loss
from ocdl.network import Network
from ocdl.plot._classes import Classes
from ocdl.plot._plane import Plane

ACCEPTED = "a fitted ODEClassifier, a Pipeline that ends in one, or a pair (net, u)"


@dataclass(frozen=True)
class TrainedFlow:
    """A network with its controls, the steps before it and the meaning of its outputs."""

    network: Network
    controls: Controls
    classes: Classes
    prepare: Callable[[Any], Any]  # maps the user's data to the data of the network
    loss: str = "cross_entropy"  # of the training; determines the meaning of the outputs

    def states(self, X: Any) -> FloatArray:
        """Return the states after every layer, (layers + 1, samples, dim)."""
        return self.network.forward(self.controls, self._prepare(X)).states.astype(np.float64, copy=False)

    def probabilities(self, X: Any) -> FloatArray:
        """Return the class probabilities of samples, (samples, classes)."""
        outputs = self.network.predict(self.controls, self._prepare(X)).astype(np.float64)
        return resolve_loss(self.loss).inverse_link(outputs)

    def plane_probabilities(self, coordinates: FloatArray, plane: Plane) -> FloatArray:
        """Return the probabilities of the linear classifier W y + mu for points of a plane, (points, classes)."""
        W = self.controls.W.T
        outputs = coordinates @ (plane.axes @ W) + (plane.origin @ W + self.controls.mu)
        return resolve_loss(self.loss).inverse_link(outputs)

    def _prepare(self, X: Any) -> Any:
        with warnings.catch_warnings():  # the pixels of a background have no feature names
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            return self.prepare(X)


def resolve_model(model: object) -> TrainedFlow:
    """Return the trained flow of a model."""
    if isinstance(model, tuple):
        return _resolve_pair(model)
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import check_is_fitted

    from ocdl.estimator import ODEClassifier
    from ocdl.estimator.subspace import project

    estimator, prepare = model, _identity
    if isinstance(model, Pipeline):
        estimator = model.steps[-1][1]
        prepare = model[:-1].transform if len(model.steps) > 1 else _identity
    if not isinstance(estimator, ODEClassifier):
        within = " with a last step " + type(estimator).__name__ if estimator is not model else ""
        raise TypeError(f"model must be {ACCEPTED}, got {type(model).__name__}{within}")
    check_is_fitted(estimator)
    components = estimator.components_

    def prepare_inputs(X: Any) -> Any:
        rows = prepare(X)
        return rows if components is None else project(np.asarray(rows, np.float64), components)

    classes = Classes(estimator.classes_)
    return TrainedFlow(estimator.network_, estimator.controls_, classes, prepare_inputs, estimator.loss)


def _resolve_pair(pair: tuple[Any, ...]) -> TrainedFlow:
    if len(pair) < 2 or not isinstance(pair[0], Network) or not isinstance(pair[1], Controls):
        kinds = ", ".join(type(part).__name__ for part in pair)
        raise TypeError(f"model must be {ACCEPTED}, got a tuple of ({kinds})")
    net, u = pair[:2]
    net._vector(u)  # raises an error if u does not fit
    return TrainedFlow(net, u, Classes(np.arange(max(net.n_outputs, 2))), _identity)


def _identity(X: Any) -> Any:
    return X
