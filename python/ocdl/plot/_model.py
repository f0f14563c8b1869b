"""What pictures need to know of a model, whether it is an estimator, a pipeline or a network with its controls."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocdl.base.validation import FloatArray
from ocdl.model.controls import Controls
from ocdl.model.objective import meaning_of_outputs
from ocdl.network import Network
from ocdl.plot._classes import Classes
from ocdl.plot._plane import Plane

ACCEPTED = "a fitted ODEClassifier, a Pipeline that ends in one, or a pair (net, u)"


@dataclass(frozen=True)
class TrainedFlow:
    """A network with its controls, what comes before it and what its outputs mean."""

    network: Network
    controls: Controls
    classes: Classes
    prepare: Callable[[Any], Any]  # from the user's data to the network's
    loss: str = "cross_entropy"  # that it was trained with: what its outputs mean

    def states(self, X: Any) -> FloatArray:
        """Return the states after every layer, (layers + 1, samples, dim)."""
        return self.network.forward(self.controls, self._prepared(X)).states.astype(np.float64, copy=False)

    def predicted(self, X: Any) -> FloatArray:
        """Return the probabilities of the classes for samples, (samples, classes)."""
        return meaning_of_outputs(self.network.predict(self.controls, self._prepared(X)).astype(np.float64), self.loss)

    def classified(self, coordinates: FloatArray, plane: Plane) -> FloatArray:
        """Return what the linear classifier W y + mu makes of points of a plane: probabilities, (points, classes)."""
        W = self.controls.W.T
        return meaning_of_outputs(coordinates @ (plane.axes @ W) + (plane.origin @ W + self.controls.mu), self.loss)

    def _prepared(self, X: Any) -> Any:
        with warnings.catch_warnings():  # the pixels of a background have no names, whatever the data had
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            return self.prepare(X)


def flow_of(model: object) -> TrainedFlow:
    """Return what a model is made of."""
    if isinstance(model, tuple):
        return _flow_of_pair(model)
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import check_is_fitted

    from ocdl.estimator import ODEClassifier

    estimator, prepare = model, _as_it_is
    if isinstance(model, Pipeline):
        estimator = model.steps[-1][1]
        prepare = model[:-1].transform if len(model.steps) > 1 else _as_it_is
    if not isinstance(estimator, ODEClassifier):
        within = " with a last step " + type(estimator).__name__ if estimator is not model else ""
        raise TypeError(f"model must be {ACCEPTED}, got {type(model).__name__}{within}")
    check_is_fitted(estimator)
    return TrainedFlow(estimator.network_, estimator.controls_, Classes(estimator.classes_), prepare, estimator.loss)


def _flow_of_pair(pair: tuple[Any, ...]) -> TrainedFlow:
    if len(pair) < 2 or not isinstance(pair[0], Network) or not isinstance(pair[1], Controls):
        kinds = ", ".join(type(part).__name__ for part in pair)
        raise TypeError(f"model must be {ACCEPTED}, got a tuple of ({kinds})")
    net, u = pair[:2]
    net._vector(u)  # it says what does not fit
    return TrainedFlow(net, u, Classes(np.arange(max(net.n_outputs, 2))), _as_it_is)


def _as_it_is(X: Any) -> Any:
    return X
