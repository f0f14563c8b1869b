"""The flow of a network: a Runge-Kutta step per layer, forward, backward, and along directions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ocdl import _core
from ocdl.base import validation
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.model import overflow
from ocdl.model.architecture import FIELDS, TIME_STEPS, Architecture, float_dtype, method_of
from ocdl.model.controls import Controls
from ocdl.model.objective import DEFAULT_OBJECTIVE, Objective
from ocdl.model.tableau import Tableau

__all__ = ["Flow", "SomeFlow", "Trajectory"]


@dataclass(frozen=True)
class Trajectory:
    """The states of all samples after every layer, (layers + 1, samples, dim), and the outputs, (samples, outputs)."""

    states: FloatArray
    outputs: FloatArray


class Flow(Architecture):
    """What computes: states, outputs, objective, gradient, costates, variations and curvature of an architecture.

    Immutable and without weights; the arguments are those of `Network`, which adds what is made of these.
    """

    def __init__(
        self,
        n_features: int,
        n_layers: int,
        *,
        n_outputs: int = 1,
        tableau: str | Tableau = "euler",
        residual: bool = True,
        field: str = "dense",
        activation: str = "tanh",
        time_steps: str = "fixed",
        horizon: float = 1.0,
        augment: int = 0,
        stage_controls: bool = False,
        dtype: DTypeLike = "float64",
    ) -> None:
        super().__init__(
            n_features=validation.integer(n_features, "n_features", least=1),
            n_layers=validation.integer(n_layers, "n_layers", least=1),
            n_outputs=validation.integer(n_outputs, "n_outputs", least=1),
            tableau=method_of(tableau),
            residual=validation.boolean(residual, "residual"),
            field=validation.choice(field, "field", FIELDS),
            activation=validation.choice(activation, "activation", _core.activation_names()),
            time_steps=validation.choice(time_steps, "time_steps", TIME_STEPS),
            horizon=validation.positive(horizon, "horizon"),
            augment=validation.integer(augment, "augment", least=0),
            stage_controls=validation.boolean(stage_controls, "stage_controls"),
            dtype=float_dtype(dtype),
        )
        if not residual and field != "dense":
            raise ValueError(f"field={field!r} needs residual=True: a feed-forward network has no flow")
        if field == "hamiltonian" and self.dim % 2:
            raise ValueError(
                "field='hamiltonian' needs a state of even dimension, positions and momenta, got n_features + augment "
                f"= {self.dim}; one more augmented component makes it even"
            )
        if not residual and time_steps != "fixed":
            raise ValueError(
                f"time_steps={time_steps!r} needs residual=True: a feed-forward network has no steps to learn"
            )
        self._core_network = _core.Network(
            features=self.n_features,
            dim=self.dim,
            layers=self.n_layers,
            outputs=self.n_outputs,
            tableau=self.tableau._core_tableau,
            activation=self.activation,
            residual=self.residual,
            stage_controls=self.stage_controls,
            learns_steps=self.time_steps != "fixed",
            horizon=self.horizon,
            field=self.field,
        )

    def forward(self, u: Controls, X: ArrayLike) -> Trajectory:
        """Return the states after every layer and the outputs.

        From y[0] = x, filled up with zeros, layer j with stages i = 1, ..., s computes ::

            y_i = y[j] + h[j] sum_l A[i, l] k_l,   k_i = f(y_i, (K[j], b[j])),   y[j+1] = y[j] + h[j] sum_i w[i] k_i

        with the coefficients A and weights w of the tableau and the vector field f, ``sigma(K[j] y_i + b[j])`` unless
        another one was chosen; with stage controls, stage i has its own K[j, i] and b[j, i]. A feed-forward layer is
        ``y[j+1] = sigma(K[j] y[j] + b[j])``. The outputs are ``W y[N] + mu``.

        Parameters
        ----------
        u : Controls
        X : array_like of shape (samples, features)

        Returns
        -------
        Trajectory
            ``states`` of shape (layers + 1, samples, dim), ``outputs`` of shape (samples, outputs).

        Examples
        --------
        Euler's method with two steps of 1/2 for y' = y:

        >>> import ocdl
        >>> net = ocdl.Network(1, 2, activation="identity")
        >>> u = net.controls(K=[[[1.0]], [[1.0]]], W=[[1.0]])
        >>> net.forward(u, [[1.0]]).states.ravel().tolist()
        [1.0, 1.5, 2.25]
        """
        vector, X = self._vector(u), self._samples(X)
        states, outputs = self._core_network.forward(vector, X, True)
        if _core.first_non_finite(outputs) >= 0 or _core.first_non_finite(states) >= 0:
            overflow.report(self._core_network, vector, X)
        return Trajectory(states, outputs)

    def predict(self, u: Controls, X: ArrayLike) -> FloatArray:
        """Return the outputs ``W y[N] + mu``, (samples, outputs).

        They are those of `forward`, to the last bit, but no trajectory is stored. A network with one output decides
        for class 1 where it is positive, one with several for the class of the largest.
        """
        if isinstance(u, Controls) and u._layout is self._layout:
            found = self._core_network.predict(u._vector, X)  # nothing to convert and nothing to refuse
            if found is not None:
                return found
        vector, X = self._vector(u), self._samples(X)
        _, outputs = self._core_network.forward(vector, X, False)
        if _core.first_non_finite(outputs) >= 0:
            overflow.report(self._core_network, vector, X)
        return outputs

    def value(
        self,
        u: Controls,
        X: ArrayLike,
        y: ArrayLike,
        objective: Objective = DEFAULT_OBJECTIVE,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the objective J(u).

        Parameters
        ----------
        u : Controls
        X : array_like of shape (samples, features)
        y : array_like of shape (samples,)
            Labels 0, 1, ...; a network with one output takes 0 and 1.
        objective : Objective
        sample_weight : array_like of shape (samples,), optional
            Weights of the samples' losses, not negative.
        """
        vector, X, labels, weights = self._problem(u, X, y, sample_weight)
        J = self._core_network.value(vector, X, labels, weights, core_of(objective))
        if not math.isfinite(J):
            overflow.report(self._core_network, vector, X)
        return J

    def value_and_grad(
        self,
        u: Controls,
        X: ArrayLike,
        y: ArrayLike,
        objective: Objective = DEFAULT_OBJECTIVE,
        sample_weight: ArrayLike | None = None,
        *,
        input_grad: bool = False,
    ) -> tuple[float, Controls]:
        """Return J(u) and its exact gradient, by one forward and one adjoint sweep.

        Parameters are those of `value`; with ``input_grad=True`` the gradient has an attribute ``X``, the derivative
        with respect to the data.
        """
        vector, X, labels, weights = self._problem(u, X, y, sample_weight)
        J, gradient, input_gradient, finite = self._core_network.value_and_grad(
            vector, X, labels, weights, core_of(objective), validation.boolean(input_grad, "input_grad")
        )
        if not finite:
            overflow.report(self._core_network, vector, X)
        return J, Controls(self._layout, gradient, input_gradient)

    def adjoint(
        self,
        u: Controls,
        X: ArrayLike,
        y: ArrayLike,
        objective: Objective = DEFAULT_OBJECTIVE,
        sample_weight: ArrayLike | None = None,
    ) -> FloatArray:
        """Return the costates p[j] = dJ/dy[j] of all samples, (layers + 1, samples, dim).

        From p[N] = W^T dJ/dz, with the outputs z, layer j goes back through its stages i = s, ..., 1 ::

            g_i = w[i] p[j+1] + sum_l A[l, i] eta_l,   eta_i = h[j] (df/dy(y_i))^T g_i
            p[j] = p[j+1] + sum_i eta_i

        with the coefficients A and weights w of the tableau; of an implicit one these are linear equations. Where no
        weight is 0 this is the adjoint equation by the method `Tableau.adjoint`; weights of 0 need no special care. A
        feed-forward layer has ``p[j] = K[j]^T (sigma'(K[j] y[j] + b[j]) * p[j+1])``. Parameters are those of `value`.

        Examples
        --------
        The costate at time 0 is the sensitivity to the data:

        >>> import numpy as np, ocdl
        >>> net = ocdl.Network(2, 10, tableau="midpoint")
        >>> u, X, y = net.init(random_state=0), np.array([[0.0, 1.0], [1.0, 0.0]]), [0, 1]
        >>> _, g = net.value_and_grad(u, X, y, input_grad=True)
        >>> np.array_equal(net.adjoint(u, X, y)[0], g.X)
        True
        """
        vector, X, labels, weights = self._problem(u, X, y, sample_weight)
        costates = self._core_network.adjoint(vector, X, labels, weights, core_of(objective))
        if _core.first_non_finite(costates) >= 0:
            overflow.report(self._core_network, vector, X)
        return costates

    def tangent(self, u: Controls, X: ArrayLike, du: Controls | None = None, dX: ArrayLike | None = None) -> FloatArray:
        """Return the derivative v[j] of the states y[j] along a direction, (layers + 1, samples, dim).

        From v[0] = dX, filled up with zeros, layer j differentiates the formulas of `forward` ::

            dk_i = df/dy(y_i) v_i + df/du(y_i) (dK[j], db[j])
            v_i = v[j] + sum_l A[i, l] (h[j] dk_l + dh[j] k_l)
            v[j+1] = v[j] + sum_i w[i] (h[j] dk_i + dh[j] k_i)

        Parameters
        ----------
        u : Controls
        X : array_like of shape (samples, features)
        du : Controls, optional
            The direction of the controls; none: 0. On a network with fixed steps its part h counts, too.
        dX : array_like of shape (samples, features), optional
            The direction of the data; none: 0.

        Examples
        --------
        Along a direction of the data, <p[j], v[j]> with the costates p is the same at every layer:

        >>> import numpy as np, ocdl
        >>> net = ocdl.Network(2, 10)
        >>> u, X = net.init(random_state=0), np.array([[0.0, 1.0], [1.0, 0.0]])
        >>> p, v = net.adjoint(u, X, [0, 1]), net.tangent(u, X, dX=np.ones((2, 2)))
        >>> products = np.sum(p * v, axis=(1, 2))
        >>> np.allclose(products, products[0], rtol=1e-13)
        True
        """
        vector, X = self._vector(u), self._samples(X)
        direction = None if du is None else self._vector(du, "du")
        input_direction = None
        if dX is not None:
            input_direction = validation.samples(dX, self.n_features, self.dtype, "dX")
            if len(input_direction) != len(X):
                raise ValueError(f"dX has {len(input_direction)} samples but X has {len(X)}")
        tangents = self._core_network.tangent(vector, X, direction, input_direction)
        if _core.first_non_finite(tangents) >= 0:
            overflow.report(self._core_network, vector, X)
        return tangents

    def _curvature_product(
        self,
        u: Controls,
        X: ArrayLike,
        y: ArrayLike,
        objective: Objective,
        du: Controls,
        sample_weight: ArrayLike | None,
        curvature: str,
    ) -> Controls:
        """Return the Hessian or the Gauss-Newton matrix times `du`; in float64, whatever the network's numbers are."""
        vector, rows, labels, weights = self._problem(u, X, y, sample_weight)
        direction = self._vector(du, "du")
        product = self._core_network.curvature_product(
            _wide(vector),
            _wide(rows),
            labels,
            None if weights is None else _wide(weights),
            core_of(objective),
            curvature,
            _wide(direction),
        ).astype(self.dtype, copy=False)
        if _core.first_non_finite(product) >= 0:
            overflow.report(self._core_network, vector, rows)
        return Controls(self._layout, product)

    def _samples(self, X: ArrayLike) -> FloatArray:
        return validation.samples(X, self.n_features, self.dtype)

    def _problem(
        self, u: Controls, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[FloatArray, FloatArray, LabelArray, FloatArray | None]:
        if isinstance(u, Controls) and u._layout is self._layout and self._core_network.fits(u._vector, X, y):
            rows, labels = cast(FloatArray, X), cast(LabelArray, y)  # nothing to convert and nothing to refuse
            return u._vector, rows, labels, validation.weights(sample_weight, len(rows), self.dtype)
        vector, rows = self._vector(u), self._samples(X)
        labels = validation.labels(y, len(rows), self.n_outputs)
        return vector, rows, labels, validation.weights(sample_weight, len(rows), self.dtype)


SomeFlow = TypeVar("SomeFlow", bound=Flow)


def core_of(objective: Objective) -> _core.Objective:
    """Return what the core takes for an objective."""
    if not isinstance(objective, Objective):
        raise TypeError(f"objective must be an Objective, got {type(objective).__name__}")
    return objective._core_objective


def _wide(array: FloatArray) -> FloatArray:
    return array.astype(np.float64, copy=False)
