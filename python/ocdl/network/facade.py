"""Networks: a Runge-Kutta step per layer, and what can be computed with one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ocdl import _core
from ocdl.analysis import certificate, lipschitz, second_order
from ocdl.analysis import sensitivity as sensitivities
from ocdl.analysis.stability import Stability, stability_along
from ocdl.base import validation
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.depth import pruning, refinement
from ocdl.model import overflow
from ocdl.model.architecture import FIELDS, TIME_STEPS, Architecture, float_dtype, method_of
from ocdl.model.controls import Controls
from ocdl.model.objective import DEFAULT_OBJECTIVE, Objective
from ocdl.model.tableau import Tableau

__all__ = ["Network", "Trajectory"]


@dataclass(frozen=True)
class Trajectory:
    """The states of all samples after every layer, (layers + 1, samples, dim), and the outputs, (samples, outputs)."""

    states: FloatArray
    outputs: FloatArray


class Network(Architecture):
    """A network as a discretised optimal control problem.

    Layer j takes one Runge-Kutta step of size ``h[j]`` for ``y' = f(y, (K[j], b[j]))``, from y(0) = x (extra components
    start at 0) to y(T); the outputs are ``W y(T) + mu``. A network is immutable and holds no weights: the controls are
    passed to its methods.

    Parameters
    ----------
    n_features : int
        Components of a sample.
    n_layers : int
        Number of steps, N.
    n_outputs : int
        1 for two classes, else the number of classes.
    tableau : str or Tableau
        The Runge-Kutta method; `ocdl.tableaux` lists the names. The stages of an implicit one are solved for to
        roundoff, sample by sample; where that fails, FloatingPointError names the sample and the layer.
    residual : bool
        False gives the feed-forward network ``y[j+1] = f(y[j], u[j])``, which has neither tableau nor steps.
    field : {"dense", "antisymmetric", "hamiltonian"}
        The vector field: ``sigma(K y + b)``; ``sigma((K - K^T) y + b)``, whose Jacobian has imaginary eigenvalues only,
        if sigma increases; or ``J K^T sigma(K y + b)`` with ``J = [[0, I], [-I, 0]]``, which conserves
        ``H(y) = sum Phi(K y + b)``, Phi' = sigma, and needs a state of even dimension.
    activation : {"tanh", "sigmoid", "softplus", "relu", "leaky_relu", "sin", "identity"}
        The function sigma.
    time_steps : {"fixed", "free", "simplex"}
        Whether the steps are given, learned, or learned on {h >= 0, sum h = T}. The gradient with respect to fixed
        steps is 0.
    horizon : float
        The final time T; steps start at T/N.
    augment : int
        Extra components of the state.
    stage_controls : bool
        Whether every stage of a layer has a pair (K, b) of its own.
    dtype : {"float64", "float32"}
        The number type of controls, data and results.

    Examples
    --------
    >>> import numpy as np, ocdl
    >>> net = ocdl.Network(2, 10, tableau="kutta4")
    >>> u = net.init(random_state=0)
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> net.predict(u, X).shape
    (2, 1)
    >>> J, g = net.value_and_grad(u, X, [0, 1])
    >>> net.value(u - 0.1 * g, X, [0, 1]) < J
    True
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

    def hessian_product(
        self,
        u: Controls,
        X: ArrayLike,
        y: ArrayLike,
        objective: Objective,
        du: Controls,
        sample_weight: ArrayLike | None = None,
    ) -> Controls:
        """Return the Hessian of J at u times the direction `du`.

        Exact: the derivative of the gradient along `du`, by one forward and one adjoint sweep in dual numbers. It takes
        about three times as long as `value_and_grad`. Penalties and kinks of activations count with a second
        derivative of 0 where they have none. The steps of a network with fixed steps are no variables: ``du.h`` is
        ignored, and that part of the product is 0. Networks of float32 are computed in float64.

        Parameters
        ----------
        u, X, y, objective, sample_weight
            As for `value`.
        du : Controls
            The direction.

        Examples
        --------
        The Hessian is symmetric:

        >>> import numpy as np, ocdl
        >>> net = ocdl.Network(2, 10, tableau="kutta4", time_steps="free")
        >>> u, v, w = (net.init(random_state=seed) for seed in range(3))
        >>> X, y, obj = np.array([[0.0, 1.0], [1.0, 0.0]]), [0, 1], ocdl.Objective()
        >>> Hv, Hw = net.hessian_product(u, X, y, obj, v), net.hessian_product(u, X, y, obj, w)
        >>> bool(np.isclose(w.dot(Hv), v.dot(Hw), rtol=1e-12))
        True
        """
        return self._curvature_product(u, X, y, objective, du, sample_weight, "hessian")

    def gauss_newton_product(
        self,
        u: Controls,
        X: ArrayLike,
        y: ArrayLike,
        objective: Objective,
        du: Controls,
        sample_weight: ArrayLike | None = None,
    ) -> Controls:
        """Return the Gauss-Newton matrix of J at u times the direction `du`.

        With the outputs z and their derivative Z with respect to the controls it is the sum of ``Z^T D Z`` over the
        samples, weighted and reduced as the losses are, plus the Hessian of the regulariser: positive semidefinite.
        For the cross entropy, D is its second derivative with respect to z. The squared loss is not convex in z: its D
        is diagonal with the entries C'(z)^2, the square of the residual's derivative. Where the outputs depend linearly
        on the controls, the matrix of the cross entropy is its Hessian. Cost, parameters and conventions are those of
        `hessian_product`.
        """
        return self._curvature_product(u, X, y, objective, du, sample_weight, "gauss_newton")

    def hamiltonian_hessian(
        self,
        u: Controls,
        X: ArrayLike,
        y: ArrayLike,
        objective: Objective = DEFAULT_OBJECTIVE,
        layer: int = 0,
        sample_weight: ArrayLike | None = None,
    ) -> FloatArray:
        """Return the Hessian H_uu of a layer's Hamiltonian with respect to its controls (K, b).

        The Hamiltonian of layer j is ::

            H(K, b) = sum over samples and stages i of <g_i, f(y_i, (K, b))>

        with the stage states y_i of `forward` and the g_i of `adjoint` held fixed. For Euler's method it is
        <p[j+1], f(y[j], (K, b))>, and always ``dJ/d(K, b) = h[j] dH/d(K, b)``, up to the regulariser. It is not the
        block of the Hessian of J that belongs to the layer: states and costates do not follow the controls. Computed
        in float64, for the field "dense" and explicit methods.

        Parameters
        ----------
        u, X, y, objective, sample_weight
            As for `value`.
        layer : int
            From 0 to n_layers - 1.

        Returns
        -------
        ndarray of shape (d^2 + d, d^2 + d), or (stages, d^2 + d, d^2 + d) with stage controls
            Entries are ordered as K[j], row by row, and b[j].

        Examples
        --------
        >>> import numpy as np, ocdl
        >>> net = ocdl.Network(2, 10)
        >>> u, X = net.init(random_state=0), np.array([[0.0, 1.0], [1.0, 0.0]])
        >>> net.hamiltonian_hessian(u, X, [0, 1], layer=9).shape
        (6, 6)
        """
        if self.field != "dense" or not self.tableau.is_explicit:
            raise ValueError(
                "hamiltonian_hessian takes networks with field='dense' and an explicit tableau, "
                f"got field={self.field!r} and tableau={self.tableau.name or self.tableau!r}"
            )
        if validation.integer(layer, "layer", least=0) >= self.n_layers:
            raise ValueError(f"layer must be at most {self.n_layers - 1}, got {layer}")
        p = self.adjoint(u, X, y, objective, sample_weight)[layer + 1]
        state = self.forward(u, X).states[layer]
        h = float(u.h[layer]) if self.residual else 1.0
        K, b = (part[layer] if self.stage_controls else [part[layer]] * self.stages for part in (u.K, u.b))
        K, b, state, p = (np.asarray(part, np.float64) for part in (K, b, state, p))
        hessians = second_order.hamiltonian_hessian(self, h, K, b, state, p)
        return hessians if self.stage_controls else hessians.sum(axis=0)

    def stability(self, u: Controls, X: ArrayLike) -> Stability:
        """Return how much each layer stretches small variations of the state, and the spectral abscissa of its field.

        The Jacobians of all samples are computed, dim x dim each: this is for states of at most some dozen components.

        Parameters
        ----------
        u : Controls
        X : array_like of shape (samples, features)

        Returns
        -------
        Stability
            ``growth``, ``total_growth`` and ``abscissa``, one number per layer; it prints as a table.

        Examples
        --------
        The Jacobian of an antisymmetric field has imaginary eigenvalues only:

        >>> import numpy as np, ocdl
        >>> net = ocdl.Network(2, 3, field="antisymmetric", tableau="implicit_midpoint")
        >>> u = net.controls(K=np.tile([[0.0, 1.0], [0.0, 0.0]], (3, 1, 1)))
        >>> report = net.stability(u, [[0.5, -0.5], [1.0, 2.0]])
        >>> bool(np.abs(report.abscissa).max() < 1e-15)
        True
        >>> print(report)  # doctest: +ELLIPSIS
        layer       step     growth      total   abscissa
            0     0.3333 ...
        """
        if not self.residual:
            raise ValueError("stability needs a network with residual=True: a feed-forward network has no flow")
        return stability_along(self, u, self.forward(u, X).states)

    def prune(self, u: Controls) -> tuple[Self, Controls]:
        """Return a network and controls without the layers whose step is 0; the outputs are the same to the last bit.

        One layer is kept where all steps are 0. A feed-forward network has no steps and stays as it is. `saving` says
        beforehand how many layers that are.

        Examples
        --------
        >>> import ocdl
        >>> net = ocdl.Network.preset("odenet+simplex", 2, 4)
        >>> small, controls = net.prune(net.controls(h=[0.0, 0.75, 0.0, 0.25]))
        >>> small.n_layers, controls.h.tolist()
        (2, [0.75, 0.25])
        """
        self._vector(u)
        kept = pruning.kept_layers(self, u)
        small = type(self)(**(self._arguments() | {"n_layers": len(kept)}))
        layers = [u.K[kept], u.b[kept], u.h[kept] if self.residual else u.h]
        vector = np.concatenate([part.ravel() for part in (*layers, u.W, u.mu)])
        return small, Controls(small._layout, vector)

    certify = certificate.certify
    saving = pruning.saving
    refine = refinement.refine
    resample = refinement.resample
    sensitivity = sensitivities.sensitivity
    smallest_flip = sensitivities.smallest_flip
    lipschitz_bound = lipschitz.lipschitz_bound

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
        problem, direction = self._problem(u, X, y, sample_weight), self._vector(du, "du")
        product = second_order.curvature_product(self, problem, core_of(objective), direction, curvature)
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


def core_of(objective: Objective) -> _core.Objective:
    """Return what the core takes for an objective."""
    if not isinstance(objective, Objective):
        raise TypeError(f"objective must be an Objective, got {type(objective).__name__}")
    return objective._core_objective
