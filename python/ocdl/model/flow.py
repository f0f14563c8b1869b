"""The flow of a network: forward, adjoint and tangent sweeps with a Runge-Kutta step per layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ocdl import _core
from ocdl.base import memory, validation
from ocdl.base.keywords import known_keywords
from ocdl.base.names import pluralise
from ocdl.base.validation import FloatArray
from ocdl.model import overflow
from ocdl.model.activations import ACTIVATIONS, ALIASES
from ocdl.model.architecture import DEFAULT_TABLEAU, INPUT_HOLDS, TIME_STEPS, Architecture, float_dtype, method_of
from ocdl.model.control_intervals import validate_control_intervals
from ocdl.model.controls import Controls
from ocdl.model.fields import FIELDS
from ocdl.model.inputs import gradient_of_rows, join_direction, join_inputs, require_no_inputs
from ocdl.model.objective import DEFAULT_OBJECTIVE, Objective
from ocdl.model.observations import Observations, ObservedTargets, times_as_targets, validated_targets
from ocdl.model.penalties import GroupL1
from ocdl.model.tableau import Tableau

__all__ = ["Flow", "SomeFlow", "Trajectory"]

FOREIGN_KEYWORDS = {
    "depth": "n_layers",
    "n_steps": "n_layers",
    "hidden_layer_sizes": "n_layers",
    "method": "tableau",
    "solver": "tableau",
    "integrator": "tableau",
    "nonlinearity": "activation",
    "n_classes": "n_outputs",
    "T": "horizon",
}
LEFT_OUT = cast(ArrayLike, ...)  # so that the error of a call without controls mentions the controls


@dataclass(frozen=True)
class Trajectory:
    """What `Network.forward` returns.

    Attributes
    ----------
    states : ndarray of shape (layers + 1, samples, dim)
        The states of all samples after every layer, the first ones included.
    outputs : ndarray of shape (samples, outputs)
        The outputs ``W y(T) + mu``.

    Examples
    --------
    >>> import numpy as np, ocdl
    >>> net = ocdl.Network(2, 10)
    >>> u, X, y = net.init(random_state=0), np.array([[0.0, 1.0], [1.0, 0.0]]), [0, 1]
    >>> t = net.forward(u, X)
    >>> t.states.shape, t.outputs.shape
    ((11, 2, 2), (2, 1))
    """

    states: FloatArray
    outputs: FloatArray


class Flow(Architecture):
    """Computes states, outputs, objective, gradient, costates, variations and curvature of an architecture.

    Immutable and without weights; the arguments are those of `Network`, which adds what is made of these.
    """

    @known_keywords(FOREIGN_KEYWORDS)
    def __init__(
        self,
        n_features: int,
        n_layers: int,
        *,
        n_outputs: int = 1,
        tableau: str | Tableau = DEFAULT_TABLEAU,
        residual: bool = True,
        field: str = "dense",
        width: int | None = None,
        degree: int | None = None,
        activation: str = "tanh",
        time_steps: str = "fixed",
        horizon: float = 1.0,
        augment: int = 0,
        stage_controls: bool = False,
        control_intervals: int | Sequence[int] | None = None,
        n_inputs: int = 0,
        input_hold: str = "linear",
        dtype: DTypeLike = "float64",
    ) -> None:
        n_layers = validation.integer(n_layers, "n_layers", minimum=1)
        super().__init__(
            n_features=validation.integer(n_features, "n_features", minimum=1),
            n_layers=n_layers,
            n_outputs=validation.integer(n_outputs, "n_outputs", minimum=1),
            tableau=method_of(tableau),
            residual=validation.boolean(residual, "residual"),
            field=validation.choice(field, "field", FIELDS),
            width=None if width is None else validation.integer(width, "width", minimum=1),
            degree=None if degree is None else validation.integer(degree, "degree", minimum=1),
            activation=validation.choice(activation, "activation", ACTIVATIONS, ALIASES),
            time_steps=validation.choice(time_steps, "time_steps", TIME_STEPS),
            horizon=validation.positive(horizon, "horizon"),
            augment=validation.integer(augment, "augment", minimum=0),
            stage_controls=validation.boolean(stage_controls, "stage_controls"),
            control_intervals=validate_control_intervals(control_intervals, n_layers),
            n_inputs=validation.integer(n_inputs, "n_inputs", minimum=0),
            input_hold=validation.choice(input_hold, "input_hold", INPUT_HOLDS),
            dtype=float_dtype(dtype),
        )

    def forward(self, u: Controls, X: ArrayLike = LEFT_OUT, *, inputs: ArrayLike | None = None) -> Trajectory:
        """Return the states after every layer and the outputs.

        From y[0] = x, filled up with zeros, layer j with stages i = 1, ..., s computes ::

            y_i = y[j] + h[j] sum_l A[i, l] k_l,   k_i = f(y_i, (K[j], b[j])),   y[j+1] = y[j] + h[j] sum_i w[i] k_i

        with the coefficients A and weights w of the tableau and the vector field f, ``sigma(K[j] y_i + b[j])`` unless
        another one was chosen; with stage controls, stage i has its own K[j, i] and b[j, i]; with control intervals,
        layer j has those of its interval, ``net.layer_sets[j]`` in the place of j. A feed-forward layer is
        ``y[j+1] = sigma(K[j] y[j] + b[j])``. The outputs are ``W y[N] + mu``.

        With inputs, f takes ``z = (y, x)``. In layer j stage i has, whatever the steps, ``x = inputs[:, j]`` or, with
        a linear hold, ``x = (1 - c[i]) inputs[:, j] + c[i] inputs[:, j+1]``.

        Parameters
        ----------
        u : Controls
        X : array_like of shape (samples, features)
        inputs : array_like of shape (samples, layers + 1, inputs) or (samples, layers, inputs), optional
            Of a network with inputs, for a linear or a zero hold.

        Returns
        -------
        Trajectory
            ``states`` of shape (layers + 1, samples, dim), ``outputs`` of shape (samples, outputs).

        Raises
        ------
        TypeError, ValueError
            If an argument does not fit the network; the message names it, what was given and what is accepted.
        FloatingPointError
            If the flow overflows; the message names the sample and the layer.

        Examples
        --------
        Euler's method with two steps of 1/2 for y' = y:

        >>> import ocdl
        >>> net = ocdl.Network(1, 2, activation="identity")
        >>> u = net.controls(K=[[[1.0]], [[1.0]]], W=[[1.0]])
        >>> net.forward(u, [[1.0]]).states.ravel().tolist()
        [1.0, 1.5, 2.25]
        """
        vector, X = self._vector(u), self._samples(self._joined(X, inputs))
        self._require_memory_for_states(len(X))
        states, outputs = self._core_network.forward(vector, X)
        if _core.first_non_finite(outputs) >= 0 or _core.first_non_finite(states) >= 0:
            overflow.report(self._core_network, vector, X)
        return Trajectory(states, outputs)

    def predict(self, u: Controls, X: ArrayLike = LEFT_OUT, *, inputs: ArrayLike | None = None) -> FloatArray:
        """Return the outputs ``W y[N] + mu``, (samples, outputs).

        They are those of `forward`, to the last bit, but no trajectory is stored. A network with one output decides
        for class 1 where it is positive, one with several for the class of the largest.

        Parameters
        ----------
        u : Controls
        X : array_like of shape (samples, features)
        inputs : array_like of shape (samples, layers [+ 1], inputs), optional
            As for `forward`.

        Returns
        -------
        ndarray of shape (samples, outputs)

        Raises
        ------
        TypeError, ValueError
            If an argument does not fit the network; the message names it, what was given and what is accepted.
        FloatingPointError
            If the flow overflows; the message names the sample and the layer.

        Examples
        --------
        >>> import numpy as np, ocdl
        >>> net = ocdl.Network(2, 10)
        >>> u, X, y = net.init(random_state=0), np.array([[0.0, 1.0], [1.0, 0.0]]), [0, 1]
        >>> net.predict(u, X).shape
        (2, 1)
        >>> np.array_equal(net.predict(u, X), net.forward(u, X).outputs)
        True
        """
        return self._predict_rows(u, self._joined(X, inputs))

    def final_state(self, u: Controls, X: ArrayLike = LEFT_OUT, *, inputs: ArrayLike | None = None) -> FloatArray:
        """Return the states at time T, y[N], (samples, dim): the last ones of `forward`, to the last bit.

        Parameters
        ----------
        u : Controls
        X : array_like of shape (samples, features)
        inputs : array_like of shape (samples, layers [+ 1], inputs), optional
            As for `forward`.

        Returns
        -------
        ndarray of shape (samples, dim)

        Raises
        ------
        TypeError, ValueError
            If an argument does not fit the network; the message names it, what was given and what is accepted.
        FloatingPointError
            If the flow overflows; the message names the sample and the layer.

        Examples
        --------
        >>> import ocdl
        >>> net = ocdl.Network(1, 2, activation="identity")
        >>> net.final_state(net.controls(K=[[[1.0]], [[1.0]]]), [[1.0], [2.0]]).tolist()
        [[2.25], [4.5]]
        """
        return self._end(self._core_network.final_state, u, self._joined(X, inputs))

    def outputs_at(self, u: Controls, X: ArrayLike, times: ArrayLike, *, inputs: ArrayLike | None = None) -> FloatArray:
        """Return the outputs ``W y(t) + mu`` at any times, (samples, times, outputs).

        Between layers y(t) is the cubic polynomial through the states of the nearest four, as for `Observations`.

        Parameters
        ----------
        u : Controls
        X : array_like of shape (samples, features)
        times : array_like of shape (k,) or (samples, k)
            Increasing times from 0 to the horizon, of all samples or of each one; where the steps are learned, and in
            a feed-forward network, numbers of layers.
        inputs : array_like of shape (samples, layers [+ 1], inputs), optional
            As for `forward`.

        Returns
        -------
        ndarray of shape (samples, k, outputs)

        Raises
        ------
        TypeError, ValueError
            If an argument does not fit the network; the message names it, what was given and what is accepted.
        FloatingPointError
            If the flow overflows; the message names the sample and the layer.

        Examples
        --------
        >>> import numpy as np, ocdl
        >>> net = ocdl.Network(1, 8, tableau="kutta4", activation="identity", control_intervals=1)
        >>> u, times = net.controls(K=[[[1.0]]], W=[[1.0]]), np.linspace(0, 1, 20)
        >>> z = net.outputs_at(u, [[1.0], [2.0]], times)
        >>> z.shape, bool(np.allclose(z[0, :, 0], np.exp(times), rtol=1e-4))
        ((2, 20, 1), True)
        """
        vector, X = self._vector(u), self._samples(self._joined(X, inputs))
        targets = times_as_targets(self, times, len(X), u.h)
        return self._outputs_for(vector, X, targets)

    def vjp(
        self,
        u: Controls,
        X: ArrayLike,
        *,
        output_cotangents: ArrayLike | None = None,
        state_cotangents: ArrayLike | None = None,
        inputs: ArrayLike | None = None,
    ) -> Controls:
        """Return the vector-Jacobian product of cotangents with the derivative of the outputs and states.

        This is the gradient of ``sum <output_cotangents, outputs> + sum <state_cotangents, states>`` for constant
        cotangents, by one forward and one adjoint sweep. If the cotangents are the gradient of a function of outputs
        and states, the result is the gradient of that function by the controls and the data.

        Parameters
        ----------
        u : Controls
        X : array_like of shape (samples, features)
        output_cotangents : array_like of shape (samples, outputs), optional
        state_cotangents : array_like of shape (samples, dim) or (layers + 1, samples, dim), optional
            For the final states, or for the states after every layer. Those of layer 0 are added to the gradient
            by X, without those of augmented components.
        inputs : array_like of shape (samples, layers [+ 1], inputs), optional
            As for `forward`.

        Returns
        -------
        Controls
            The gradient by the controls, and as ``.X`` and ``.inputs`` that by the data; 0 for fixed steps.

        Raises
        ------
        TypeError, ValueError
            If an argument does not fit the network; the message names it, what was given and what is accepted.
        FloatingPointError
            If the flow overflows; the message names the sample and the layer.

        Examples
        --------
        The gradient of the mean of ``|y(T)|^2 / 2``, which is not a function of the outputs:

        >>> import numpy as np, ocdl
        >>> net = ocdl.Network(2, 10)
        >>> u, X = net.init(random_state=0), np.array([[0.0, 1.0], [1.0, 0.0]])
        >>> g = net.vjp(u, X, state_cotangents=net.final_state(u, X) / len(X))
        >>> g.K.shape, g.X.shape, bool(np.all(g.W == 0))
        ((10, 2, 2), (2, 2), True)
        """
        if output_cotangents is None and state_cotangents is None:
            raise ValueError("vjp needs output_cotangents or state_cotangents, got neither")
        X = self._joined(X, inputs)
        if isinstance(u, Controls) and u._layout is self._layout:
            found = self._core_network.vjp(u._vector, X, output_cotangents, state_cotangents, False)
            if found is not None:
                return gradient_of_rows(self, found[0], found[1])
        vector, X = self._vector(u), self._samples(X)
        samples = len(X)
        if output_cotangents is not None:
            shape = (samples, self.n_outputs)
            output_cotangents = validation.array_of_shape(
                output_cotangents, "output_cotangents", shape, "(samples, outputs)", self.dtype
            )
        if state_cotangents is not None:
            state_cotangents = validation.real_array(state_cotangents, "state_cotangents", self.dtype)
            of_last, of_all = (samples, self.dim), (self.n_layers + 1, samples, self.dim)
            if state_cotangents.shape not in (of_last, of_all):
                raise ValueError(
                    f"state_cotangents must have shape {of_last}, (samples, dim), or {of_all}, "
                    f"(layers + 1, samples, dim), got {state_cotangents.shape}"
                )
        return self._vjp(vector, X, output_cotangents, state_cotangents)[0]

    def value(
        self,
        u: Controls,
        X: ArrayLike,
        y: ArrayLike | Observations,
        objective: Objective | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        inputs: ArrayLike | None = None,
    ) -> float:
        """Return the objective J(u).

        Parameters
        ----------
        u : Controls
        X : array_like of shape (samples, features)
        y : array_like of shape (samples,) or (samples, outputs), or Observations
            What the loss compares the outputs with: labels 0, 1, ..., where a network with one output takes 0 and 1; or
            real numbers, one for each output; or `Observations` at any times.
        objective : Objective, optional
            Default: ``Objective()``.
        sample_weight : array_like of shape (samples,), optional
            Weights of the samples' losses, not negative.
        inputs : array_like of shape (samples, layers [+ 1], inputs), optional
            As for `forward`.

        Returns
        -------
        float

        Raises
        ------
        TypeError, ValueError
            If an argument does not fit the network; the message names it, what was given and what is accepted.
        FloatingPointError
            If the flow overflows; the message names the sample and the layer.

        Examples
        --------
        >>> import numpy as np, ocdl
        >>> net = ocdl.Network(2, 10)
        >>> u, X, y = net.init(random_state=0), np.array([[0.0, 1.0], [1.0, 0.0]]), [0, 1]
        >>> net.value(u, X, y) > 0
        True
        >>> net.value(u, X, y, sample_weight=[1.0, 0.0]) == net.value(u, X[:1], y[:1])
        True
        """
        objective = DEFAULT_OBJECTIVE if objective is None else objective
        X = self._joined(X, inputs)
        if self._core_may_try(u, objective):
            known = y._targets_if_known(self, objective._loss, u.h, X) if isinstance(y, Observations) else y
            found = objective._core_objective.value(self._core_network, u._vector, X, known, sample_weight)
            if found is not None:
                return found
        vector, X, targets, weights = self._problem(u, X, y, objective, sample_weight)
        if not objective._loss.is_custom:
            J = objective._core_objective.value(self._core_network, vector, X, targets, weights)
        else:
            outputs = self._outputs_for(vector, X, targets)
            J, _ = objective._on_samples(targets, weights, len(X)).value_and_grad(outputs)
            J += objective._core_objective.penalty(self._core_network, vector)[0]
        if J is None or not math.isfinite(J):
            overflow.report(self._core_network, vector, X)
        return J

    def value_and_grad(
        self,
        u: Controls,
        X: ArrayLike,
        y: ArrayLike | Observations,
        objective: Objective | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        inputs: ArrayLike | None = None,
        input_grad: bool = False,
    ) -> tuple[float, Controls]:
        """Return J(u) and its exact gradient, by one forward and one adjoint sweep.

        A custom loss takes one more forward sweep.

        Parameters
        ----------
        u : Controls
        X : array_like of shape (samples, features)
        y : array_like of shape (samples,) or (samples, outputs), or Observations
            The targets, as for `value`.
        objective : Objective, optional
            Default: ``Objective()``.
        sample_weight : array_like of shape (samples,), optional
        inputs : array_like of shape (samples, layers [+ 1], inputs), optional
            As for `forward`.
        input_grad : bool
            Whether the gradient has an attribute ``X``, the derivative with respect to the data, and of a network with
            inputs ``inputs``, that with respect to these.

        Returns
        -------
        J : float
        g : Controls
            Shaped like `u`; ``g.h`` is 0 where the steps are fixed.

        Raises
        ------
        TypeError, ValueError
            If an argument does not fit the network; the message names it, what was given and what is accepted.
        FloatingPointError
            If the flow overflows; the message names the sample and the layer.

        Examples
        --------
        >>> import numpy as np, ocdl
        >>> net = ocdl.Network(2, 10)
        >>> u, X, y = net.init(random_state=0), np.array([[0.0, 1.0], [1.0, 0.0]]), [0, 1]
        >>> J, g = net.value_and_grad(u, X, y, input_grad=True)
        >>> g.K.shape, g.X.shape
        ((10, 2, 2), (2, 2))
        >>> net.value(u - 0.1 * g, X, y) < J
        True
        """
        found = None
        objective = DEFAULT_OBJECTIVE if objective is None else objective
        X = self._joined(X, inputs)
        if self._core_may_try(u, objective):
            known = y._targets_if_known(self, objective._loss, u.h, X) if isinstance(y, Observations) else y
            found = objective._core_objective.value_and_grad(
                self._core_network, u._vector, X, known, sample_weight, input_grad
            )
        if found is None:
            vector, X, targets, weights = self._problem(u, X, y, objective, sample_weight)
            input_grad = validation.boolean(input_grad, "input_grad")
            if objective._loss.is_custom:
                return self._custom_value_and_grad(vector, X, targets, objective, weights, input_grad)
            found = objective._core_objective.value_and_grad(
                self._core_network, vector, X, targets, weights, input_grad
            )
            if found is None:
                overflow.report(self._core_network, vector, X)
        J, gradient, row_gradient = found
        return J, gradient_of_rows(self, gradient, row_gradient)

    def adjoint(
        self,
        u: Controls,
        X: ArrayLike,
        y: ArrayLike | Observations,
        objective: Objective | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        inputs: ArrayLike | None = None,
    ) -> FloatArray:
        """Return the costates p[j] = dJ/dy[j] of all samples, (layers + 1, samples, dim).

        From p[N] = W^T dJ/dz, with the outputs z, layer j goes back through its stages i = s, ..., 1 ::

            g_i = w[i] p[j+1] + sum_l A[l, i] eta_l,   eta_i = h[j] (df/dy(y_i))^T g_i
            p[j] = p[j+1] + sum_i eta_i

        with the coefficients A and weights w of the tableau; of an implicit one these are linear equations. Where no
        weight is 0 this is the adjoint equation by the method `Tableau.adjoint`; weights of 0 need no special care. A
        feed-forward layer has ``p[j] = K[j]^T (sigma'(K[j] y[j] + b[j]) * p[j+1])``.

        Parameters
        ----------
        u : Controls
        X : array_like of shape (samples, features)
        y : array_like of shape (samples,) or (samples, outputs), or Observations
            The targets, as for `value`.
        objective : Objective, optional
            Default: ``Objective()``.
        sample_weight : array_like of shape (samples,), optional
        inputs : array_like of shape (samples, layers [+ 1], inputs), optional
            As for `forward`.

        Returns
        -------
        ndarray of shape (layers + 1, samples, dim)

        Raises
        ------
        TypeError, ValueError
            If an argument does not fit the network; the message names it, what was given and what is accepted.
        FloatingPointError
            If the flow overflows; the message names the sample and the layer.

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
        objective = DEFAULT_OBJECTIVE if objective is None else objective
        vector, X, targets, weights = self._problem(u, self._joined(X, inputs), y, objective, sample_weight)
        self._require_memory_for_states(len(X))
        if objective._loss.is_custom:
            outputs = self._outputs_for(vector, X, targets)
            _, gradient = objective._on_samples(targets, weights, len(X)).value_and_grad(outputs)
            return cast(FloatArray, self._vjp_for(vector, X, targets, gradient, with_costates=True)[1])
        costates = objective._core_objective.adjoint(self._core_network, vector, X, targets, weights)
        if _core.first_non_finite(costates) >= 0:
            overflow.report(self._core_network, vector, X)
        return costates

    def tangent(
        self,
        u: Controls,
        X: ArrayLike,
        du: Controls | None = None,
        dX: ArrayLike | None = None,
        *,
        inputs: ArrayLike | None = None,
        dinputs: ArrayLike | None = None,
    ) -> FloatArray:
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
        inputs, dinputs : array_like of shape (samples, layers [+ 1], inputs), optional
            As for `forward`, and their direction; none: 0.

        Returns
        -------
        ndarray of shape (layers + 1, samples, dim)

        Raises
        ------
        TypeError, ValueError
            If an argument does not fit the network; the message names it, what was given and what is accepted.
        FloatingPointError
            If the flow overflows; the message names the sample and the layer.

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
        vector, X = self._vector(u), self._samples(self._joined(X, inputs))
        direction = None if du is None else self._vector(du, "du")
        row_direction = self._row_direction(dX, dinputs, len(X))
        self._require_memory_for_states(len(X))
        tangents = self._core_network.tangent(vector, X, direction, row_direction)
        if _core.first_non_finite(tangents) >= 0:
            overflow.report(self._core_network, vector, X)
        return tangents

    def _row_direction(self, dX: ArrayLike | None, dinputs: ArrayLike | None, samples: int) -> FloatArray | None:
        """Return the direction of the rows that `_joined` makes; None: 0."""
        if self.n_inputs:
            direction = join_direction(self, samples, dX, dinputs)
        else:
            require_no_inputs(dinputs, "dinputs")
            direction = None if dX is None else validation.samples(dX, self.n_features, self.dtype, "dX")
        if direction is not None and len(direction) != samples:
            raise ValueError(f"dX has {pluralise(len(direction), 'sample')} but X has {samples}")
        return direction

    def _curvature_product(
        self,
        u: Controls,
        X: ArrayLike,
        y: ArrayLike | Observations,
        objective: Objective | None,
        du: Controls,
        sample_weight: ArrayLike | None,
        curvature: str,
        inputs: ArrayLike | None = None,
    ) -> Controls:
        """Return the Hessian or the Gauss-Newton matrix times `du`; in float64, whatever the network's numbers are."""
        objective = DEFAULT_OBJECTIVE if objective is None else objective
        vector, rows, targets, weights = self._problem(u, self._joined(X, inputs), y, objective, sample_weight)
        objective._require_second_derivatives()
        direction = self._vector(du, "du")
        product = objective._core_objective.curvature_product(
            self._core_network,
            _wide(vector),
            _wide(rows),
            targets if targets.dtype.kind == "i" else _wide(targets),
            None if weights is None else _wide(weights),
            curvature,
            _wide(direction),
        ).astype(self.dtype, copy=False)
        if _core.first_non_finite(product) >= 0:
            overflow.report(self._core_network, vector, rows)
        return Controls(self._layout, product)

    def _vjp(
        self,
        vector: FloatArray,
        X: FloatArray,
        output_cotangents: FloatArray | None,
        state_cotangents: FloatArray | None,
        *,
        with_costates: bool = False,
    ) -> tuple[Controls, FloatArray | None]:
        """Return the gradient of `vjp`, and `with_costates` the costates."""
        found = self._core_network.vjp(vector, X, output_cotangents, state_cotangents, with_costates)
        if found is None:
            overflow.report(self._core_network, vector, X)
        gradient, row_gradient, costates = found
        return gradient_of_rows(self, gradient, row_gradient), costates

    def _outputs_for(self, vector: FloatArray, X: FloatArray, targets: Any) -> FloatArray:
        """Return what a loss compares with the targets: the outputs, or of observations those at their times."""
        if not isinstance(targets, ObservedTargets):
            return self._predict_rows(Controls(self._layout, vector), X)
        outputs = _core.outputs_at(self._core_network, vector, X, targets)
        if _core.first_non_finite(outputs) >= 0:
            overflow.report(self._core_network, vector, X)
        return outputs

    def _vjp_for(
        self, vector: FloatArray, X: FloatArray, targets: Any, cotangents: FloatArray, *, with_costates: bool = False
    ) -> tuple[Controls, FloatArray | None]:
        """Return `_vjp` for cotangents of these outputs."""
        if not isinstance(targets, ObservedTargets):
            return self._vjp(vector, X, cotangents, None, with_costates=with_costates)
        gradient, row_gradient, costates = _core.observed_vjp(self._core_network, vector, X, targets, cotangents)
        return gradient_of_rows(self, gradient, row_gradient), costates

    def _end(self, sweep: Callable[[Any, Any], FloatArray | None], u: Controls, X: ArrayLike) -> FloatArray:
        """Return what a function of the core finds at the end of the flow.

        The function of the core checks its arguments and returns None if one must be converted or refused, or if the
        result is not finite. So the arguments of usual calls, which may take microseconds, are not checked twice.
        """
        if isinstance(u, Controls) and u._layout is self._layout:
            found = sweep(u._vector, X)
            if found is not None:
                return found
        vector, rows = self._vector(u), self._samples(X)
        found = sweep(vector, rows)
        if found is None:
            overflow.report(self._core_network, vector, rows)
        return found

    def _predict_rows(self, u: Controls, X: ArrayLike) -> FloatArray:
        """Return the outputs of samples that have been joined with their inputs."""
        return self._end(self._core_network.predict, u, X)

    def _custom_value_and_grad(
        self,
        vector: FloatArray,
        X: FloatArray,
        targets: Any,
        objective: Objective,
        weights: FloatArray | None,
        input_grad: bool,
    ) -> tuple[float, Controls]:
        """Return J and its gradient for a custom loss."""
        outputs = self._outputs_for(vector, X, targets)
        J, output_gradient = objective._on_samples(targets, weights, len(X)).value_and_grad(outputs)
        g = self._vjp_for(vector, X, targets, output_gradient)[0]
        penalty, penalty_gradient = objective._core_objective.penalty(self._core_network, vector)
        J, total = J + penalty, g._vector + penalty_gradient
        if not math.isfinite(J) or _core.first_non_finite(total) >= 0:
            overflow.report(self._core_network, vector, X)
        return J, Controls(self._layout, total, *((g.X, g.inputs) if input_grad else ()))

    def _core_may_try(self, u: object, objective: object) -> bool:
        """Whether the core can check the other arguments itself, as in `_end`, given the controls and the loss."""
        return (
            isinstance(u, Controls)
            and u._layout is self._layout
            and isinstance(objective, Objective)
            and not objective._loss.is_custom
        )

    def _require_memory_for_states(self, samples: int) -> None:
        states = float(self.n_layers + 1) * samples * self.dim * self.dtype.itemsize
        memory.require_memory(
            f"the states of {pluralise(samples, 'sample')} after each of {pluralise(self.n_layers, 'layer')}",
            {"states": states},
        )

    def _joined(self, X: ArrayLike, inputs: ArrayLike | None, minimum: int = 1) -> ArrayLike:
        """Return the samples with their inputs, see `join_inputs`; X itself, unchecked, if the network takes none."""
        if self.n_inputs:
            _require_samples(X)
            return join_inputs(self, X, inputs, minimum=minimum)
        require_no_inputs(inputs)
        return X

    def _samples(self, X: ArrayLike, minimum: int = 1) -> FloatArray:
        """Return samples that have been joined with their inputs."""
        _require_samples(X)
        return validation.samples(X, self._core_network.row_size, self.dtype, minimum=minimum)

    def _problem(
        self, u: Controls, X: ArrayLike, y: Any, objective: Objective, sample_weight: ArrayLike | None, minimum: int = 1
    ) -> tuple[FloatArray, FloatArray, Any, FloatArray | None]:
        """Return vector, joined samples, targets and weights as the core takes them; errors name what does not fit.

        `minimum`: how many samples there have to be; 0 where they are a part of all.
        """
        self._require_fit(objective)
        vector, rows = self._vector(u), self._samples(X, minimum)
        steps = Controls(self._layout, vector).h if isinstance(y, Observations) else None
        targets = validated_targets(self, objective._loss, y, len(rows), steps)
        is_mean = objective.reduction == "mean"
        weights = validation.weights(sample_weight, len(rows), self.dtype, are_all=minimum > 0, mean=is_mean)
        return vector, rows, targets, weights

    def _require_fit(self, objective: Objective) -> None:
        """Raise if the objective is not an `Objective`, or its penalties name parts that the network does not have."""
        if not isinstance(objective, Objective):
            raise TypeError(f"objective must be an Objective, got {type(objective).__name__}")
        for penalty in objective.penalties:
            for part in penalty.parts or ():
                if part not in self._layout.slices:
                    known = ", ".join(self._layout.slices)
                    raise ValueError(
                        f"penalties: {penalty!r} names the part {part!r}; the parts of this network are {known}"
                    )
            if isinstance(penalty, GroupL1):
                penalty._require_fit({part.name: part for part in self.parts})


def _require_samples(X: ArrayLike) -> None:
    if X is LEFT_OUT:
        raise TypeError("X is missing: the controls come first, the samples second, as in net.predict(u, X)")


SomeFlow = TypeVar("SomeFlow", bound=Flow)


def _wide(array: FloatArray) -> FloatArray:
    return array.astype(np.float64, copy=False)
