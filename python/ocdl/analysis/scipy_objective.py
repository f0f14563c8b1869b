"""The objective as a function of a vector, for the optimisers and linear algebra of SciPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.model.controls import Controls
from ocdl.model.flow import Flow
from ocdl.model.inputs import split_inputs
from ocdl.model.objective import DEFAULT_OBJECTIVE, Objective
from ocdl.model.observations import Observations, validate_targets

__all__ = ["ScipyObjective", "scipy_objective"]


@dataclass(frozen=True, eq=False)
class ScipyObjective:
    """J of one vector of controls, with its first and second derivatives; made by `Network.scipy_objective`.

    Vectors are those of `Controls.to_vector` and `Network.from_vector`, in float64 whatever the network's numbers are.

    Attributes
    ----------
    net : Network
    X : ndarray of shape (samples, features)
    y : ndarray or Observations
    objective : Objective
    sample_weight : ndarray of shape (samples,) or None
    inputs : ndarray of shape (samples, layers [+ 1], inputs) or None
        The arguments of `Network.scipy_objective`.

    Examples
    --------
    >>> import numpy as np, ocdl
    >>> net = ocdl.Network(2, 5)
    >>> J = net.scipy_objective([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    >>> u = net.init(random_state=0).to_vector()
    >>> J.net is net, J.X.shape, J.y.tolist(), J.objective.loss, J.sample_weight, J.inputs
    (True, (2, 2), [0, 1], 'squared', None, None)
    >>> J.fun(u)[1].shape
    (38,)
    """

    net: Flow
    X: FloatArray
    y: Any
    objective: Objective
    sample_weight: FloatArray | None
    inputs: FloatArray | None = None

    def fun(self, u: ArrayLike | Controls) -> tuple[float, FloatArray]:
        """Return J and its gradient: what ``scipy.optimize.minimize(J.fun, u0, jac=True)`` takes.

        Parameters
        ----------
        u : array_like of shape (n_controls,) or Controls

        Returns
        -------
        J : float
        gradient : ndarray of shape (n_controls,)

        Raises
        ------
        TypeError, ValueError
            If an argument does not fit the network; the message names it, the given value and what is accepted.
        FloatingPointError
            If the flow leaves the finite range; the message names the sample and the layer.

        Examples
        --------
        >>> import numpy as np, ocdl
        >>> net = ocdl.Network(2, 5)
        >>> J = net.scipy_objective([[0.0, 1.0], [1.0, 0.0]], [0, 1])
        >>> u = net.init(random_state=0).to_vector()
        >>> value, gradient = J.fun(u)
        >>> value > 0, gradient.shape
        (True, (38,))
        """
        J, g = self.net.value_and_grad(
            self._controls(u, "u"),
            self.X,
            self.y,
            self.objective,
            sample_weight=self.sample_weight,
            inputs=self.inputs,
        )
        return J, g.to_vector().astype(np.float64, copy=False)

    def hessp(self, u: ArrayLike | Controls, du: ArrayLike | Controls) -> FloatArray:
        """Return the Hessian of J at u times a direction, as ``minimize(..., hessp=J.hessp)`` takes it.

        Parameters
        ----------
        u : array_like of shape (n_controls,) or Controls
        du : array_like of shape (n_controls,) or Controls
            The direction.

        Returns
        -------
        ndarray of shape (n_controls,)

        Raises
        ------
        TypeError, ValueError
            If an argument does not fit the network; the message names it, the given value and what is accepted.
        FloatingPointError
            If the flow leaves the finite range; the message names the sample and the layer.

        Examples
        --------
        >>> import numpy as np, ocdl
        >>> net = ocdl.Network(2, 5)
        >>> J = net.scipy_objective([[0.0, 1.0], [1.0, 0.0]], [0, 1])
        >>> u = net.init(random_state=0).to_vector()
        >>> J.hessp(u, np.ones(38)).shape
        (38,)
        """
        return self._product(self._controls(u, "u"), du, "hessian")

    def hessian(self, u: ArrayLike | Controls) -> Any:
        """Return the Hessian of J at u as a linear operator; see `Network.hessian_product`.

        Parameters
        ----------
        u : array_like of shape (n_controls,) or Controls

        Returns
        -------
        scipy.sparse.linalg.LinearOperator
            Of shape (n_controls, n_controls), symmetric.

        Raises
        ------
        TypeError, ValueError
            If an argument does not fit the network; the message names it, the given value and what is accepted.
        FloatingPointError
            If the flow leaves the finite range; the message names the sample and the layer.

        Examples
        --------
        >>> import numpy as np, ocdl
        >>> net = ocdl.Network(2, 5)
        >>> J = net.scipy_objective([[0.0, 1.0], [1.0, 0.0]], [0, 1])
        >>> u = net.init(random_state=0).to_vector()
        >>> H = J.hessian(u)
        >>> H.shape, np.array_equal(H @ np.ones(38), J.hessp(u, np.ones(38)))
        ((38, 38), True)
        """
        return self._operator(u, "hessian")

    def gauss_newton(self, u: ArrayLike | Controls) -> Any:
        """Return the Gauss-Newton matrix at u as a linear operator; see `Network.gauss_newton_product`.

        Parameters
        ----------
        u : array_like of shape (n_controls,) or Controls

        Returns
        -------
        scipy.sparse.linalg.LinearOperator
            Of shape (n_controls, n_controls), symmetric and without negative eigenvalues.

        Raises
        ------
        TypeError, ValueError
            If an argument does not fit the network; the message names it, the given value and what is accepted.
        FloatingPointError
            If the flow leaves the finite range; the message names the sample and the layer.

        Examples
        --------
        >>> import numpy as np, ocdl
        >>> net = ocdl.Network(2, 5)
        >>> J = net.scipy_objective([[0.0, 1.0], [1.0, 0.0]], [0, 1])
        >>> u = net.init(random_state=0).to_vector()
        >>> bool(np.ones(38) @ (J.gauss_newton(u) @ np.ones(38)) >= 0)
        True
        """
        return self._operator(u, "gauss_newton")

    def _operator(self, u: ArrayLike | Controls, curvature: str) -> Any:
        from scipy.sparse.linalg import LinearOperator

        point = self._controls(u, "u").copy()  # a copy: the operator stays the matrix at this u

        def product(du: FloatArray) -> FloatArray:
            return self._product(point, du, curvature)

        n = self.net.n_controls
        return LinearOperator((n, n), matvec=product, rmatvec=product, dtype=np.dtype(np.float64))

    def _product(self, u: Controls, du: ArrayLike | Controls, curvature: str) -> FloatArray:
        direction = du if isinstance(du, Controls) else self._controls(np.ravel(du), "du")
        product = self.net._curvature_product(
            u, self.X, self.y, self.objective, direction, self.sample_weight, curvature, self.inputs
        )
        return product.to_vector().astype(np.float64, copy=False)

    def _controls(self, u: ArrayLike | Controls, name: str) -> Controls:
        if isinstance(u, Controls):
            return u
        size, dtype = (self.net.n_controls,), self.net.dtype
        return Controls(self.net._layout, validation.array_of_shape(u, name, size, "(n_controls,)", dtype))


def scipy_objective(
    net: Flow,
    X: ArrayLike,
    y: ArrayLike | Observations,
    objective: Objective | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    inputs: ArrayLike | None = None,
) -> ScipyObjective:
    """Return the objective as a function of a vector, for the optimisers and the linear algebra of SciPy.

    Parameters
    ----------
    X : array_like of shape (samples, features)
    y : array_like of shape (samples,) or (samples, outputs), or Observations
        The targets, as for `Network.value`.
    objective : Objective, optional
        Default: ``Objective()``.
    sample_weight : array_like of shape (samples,), optional
    inputs : array_like of shape (samples, layers [+ 1], inputs), optional
        As for `Network.forward`.
        All are checked once, and not copied where they are arrays of the network's number type.

    Returns
    -------
    ScipyObjective
        ``fun(u)`` is J and its gradient, ``hessp(u, du)`` a product with the Hessian; ``hessian(u)`` and
        ``gauss_newton(u)`` are symmetric ``scipy.sparse.linalg.LinearOperator``. All take vectors, or Controls.

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit the network.

    Examples
    --------
    >>> import ocdl
    >>> from scipy.optimize import minimize
    >>> X, y = ocdl.datasets.make_donut2d(200, random_state=0)
    >>> net = ocdl.Network(2, 5)
    >>> J = net.scipy_objective(X, y, ocdl.Objective("cross_entropy", penalties=ocdl.Tikhonov(0.01)))
    >>> start = net.init(random_state=0).to_vector()
    >>> result = minimize(J.fun, start, jac=True, hessp=J.hessp, method="trust-ncg")
    >>> bool(result.success), net.from_vector(result.x).K.shape
    (True, (5, 2, 2))

    The largest eigenvalue of the Gauss-Newton matrix there:

    >>> from scipy.sparse.linalg import eigsh
    >>> bool(eigsh(J.gauss_newton(result.x), k=1, return_eigenvectors=False)[0] > 0)
    True
    """
    objective = DEFAULT_OBJECTIVE if objective is None else objective
    rows, times = split_inputs(net, net._samples(net._joined(X, inputs)))
    net._require_fit(objective)
    targets = validate_targets(net, objective._loss, y, len(rows))
    if isinstance(y, Observations):
        targets = y  # which keeps what was checked
    weights = validation.weights(sample_weight, len(rows), net.dtype, mean=objective.reduction == "mean")
    return ScipyObjective(net, rows, targets, objective, weights, times)
