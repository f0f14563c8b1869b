"""The objective of a network and its derivatives, by adjoint sweeps through the Runge-Kutta steps of its layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ocdl import _core
from ocdl.base import validation
from ocdl.base.keywords import known_keywords
from ocdl.base.validation import FloatArray
from ocdl.model import overflow
from ocdl.model.activations import ACTIVATIONS, ALIASES
from ocdl.model.architecture import DEFAULT_TABLEAU, INPUT_HOLDS, TIME_STEPS, float_dtype
from ocdl.model.control_intervals import validate_control_intervals
from ocdl.model.controls import Controls
from ocdl.model.fields import FIELDS
from ocdl.model.forward import ForwardFlow
from ocdl.model.inputs import gradient_of_rows
from ocdl.model.objective import DEFAULT_OBJECTIVE, Objective
from ocdl.model.observations import Observations, ObservedTargets
from ocdl.model.tableau import Tableau, method_of

__all__ = ["Flow", "SomeFlow"]

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


class Flow(ForwardFlow):
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
        nonexpansive: bool = False,
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
            nonexpansive=validation.boolean(nonexpansive, "nonexpansive"),
            dtype=float_dtype(dtype),
        )

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
            result = objective._core_objective.value(self._core_network, u._vector, X, known, sample_weight)
            if result is not None:
                return result
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
        """Return J(u) and its exact gradient, by a forward and an adjoint sweep; a custom loss takes two forward ones.

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
        result = None
        objective = DEFAULT_OBJECTIVE if objective is None else objective
        X = self._joined(X, inputs)
        if self._core_may_try(u, objective):
            known = y._targets_if_known(self, objective._loss, u.h, X) if isinstance(y, Observations) else y
            result = objective._core_objective.value_and_grad(
                self._core_network, u._vector, X, known, sample_weight, input_grad
            )
        if result is None:
            vector, X, targets, weights = self._problem(u, X, y, objective, sample_weight)
            input_grad = validation.boolean(input_grad, "input_grad")
            if objective._loss.is_custom:
                return self._custom_value_and_grad(vector, X, targets, objective, weights, input_grad)
            rest = targets, weights, input_grad
            result = objective._core_objective.value_and_grad(self._core_network, vector, X, *rest)
            if result is None:
                overflow.report(self._core_network, vector, X)
        J, gradient, row_gradient = result
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
            result = self._core_network.vjp(u._vector, X, output_cotangents, state_cotangents, False)
            if result is not None:
                return gradient_of_rows(self, result[0], result[1])
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
        result = self._core_network.vjp(vector, X, output_cotangents, state_cotangents, with_costates)
        if result is None:
            overflow.report(self._core_network, vector, X)
        gradient, row_gradient, costates = result
        return gradient_of_rows(self, gradient, row_gradient), costates

    def _vjp_for(
        self, vector: FloatArray, X: FloatArray, targets: Any, cotangents: FloatArray, *, with_costates: bool = False
    ) -> tuple[Controls, FloatArray | None]:
        """Return `_vjp` for cotangents of these outputs."""
        if not isinstance(targets, ObservedTargets):
            return self._vjp(vector, X, cotangents, None, with_costates=with_costates)
        gradient, row_gradient, costates = _core.observed_vjp(self._core_network, vector, X, targets, cotangents)
        return gradient_of_rows(self, gradient, row_gradient), costates

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


SomeFlow = TypeVar("SomeFlow", bound=Flow)


def _wide(array: FloatArray) -> FloatArray:
    return array.astype(np.float64, copy=False)
