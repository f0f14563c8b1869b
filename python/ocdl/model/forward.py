"""The flow of a network from time 0 on: states, outputs, and their variations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from ocdl import _core
from ocdl.base.validation import FloatArray
from ocdl.model import overflow
from ocdl.model.call_arguments import LEFT_OUT, CallArguments
from ocdl.model.controls import Controls
from ocdl.model.observations import ObservedTargets, times_as_targets


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


class ForwardFlow(CallArguments):
    """Computes states and outputs, by forward sweeps, and variations, by tangent sweeps."""

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

    def _outputs_for(self, vector: FloatArray, X: FloatArray, targets: Any) -> FloatArray:
        """Return what a loss compares with the targets: the outputs, or of observations those at their times."""
        if not isinstance(targets, ObservedTargets):
            return self._predict_rows(Controls(self._layout, vector), X)
        outputs = _core.outputs_at(self._core_network, vector, X, targets)
        if _core.first_non_finite(outputs) >= 0:
            overflow.report(self._core_network, vector, X)
        return outputs

    def _predict_rows(self, u: Controls, X: ArrayLike) -> FloatArray:
        """Return the outputs of samples that have been joined with their inputs."""
        return self._end(self._core_network.predict, u, X)

    def _end(self, sweep: Callable[[Any, Any], FloatArray | None], u: Controls, X: ArrayLike) -> FloatArray:
        """Return what a function of the core finds at the end of the flow.

        The function of the core checks its arguments and returns None if one must be converted or refused, or if the
        result is not finite. So the arguments of usual calls, which may take microseconds, are not checked twice.
        """
        if isinstance(u, Controls) and u._layout is self._layout:
            result = sweep(u._vector, X)
            if result is not None:
                return result
        vector, rows = self._vector(u), self._samples(X)
        result = sweep(vector, rows)
        if result is None:
            overflow.report(self._core_network, vector, rows)
        return result
