"""The class `Network`: a flow and all functions of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ocdl.analysis import adaptation, certificate, lipschitz, local_error, second_order
from ocdl.analysis import certified_radius as certified_radii
from ocdl.analysis import scipy_objective as scipy_objectives
from ocdl.analysis import sensitivity as sensitivities
from ocdl.analysis import stability as stabilities
from ocdl.depth import pruning, refinement
from ocdl.model.flow import Flow

__all__ = ["Network"]

FOREIGN_NAMES = {
    "fit": "it holds no weights; ocdl.train(net, net.init(), X, y) returns them, and ocdl.ODEClassifier has fit",
    "train": "ocdl.train(net, u, X, y) trains its controls u",
    "parameters": "it holds no weights; net.init() makes controls, which all methods take",
    "weights": "it holds no weights; net.init() makes controls, which all methods take",
    "predict_proba": "net.predict(u, X) returns the outputs; ocdl.ODEClassifier has predict_proba",
    "save": "ocdl.save(path, net, u)",
    "load": "ocdl.load(path)",
}


class Network(Flow):
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
    field : {"dense", "antisymmetric", "hamiltonian", "mlp", "polynomial", "gradient"}
        The vector field: ``sigma(K y + b)``; ``sigma((K - K^T) y + b)``, whose Jacobian has imaginary eigenvalues only,
        if sigma increases; or ``J K^T sigma(K y + b)`` with ``J = [[0, I], [-I, 0]]``, which conserves
        ``H(y) = sum Phi(K y + b)``, Phi' = sigma, and needs a state of even dimension; ``V sigma(K y + b) + A y + c``
        with `width` hidden units; ``C phi(y)`` with all monomials phi of total degree at most `degree`, in graded
        lexicographic order: 1, y_0, y_1, ..., y_0^2, y_0 y_1, ..., without an activation; or the gradient field
        ``-K^T sigma(K y + b)``, which lowers ``sum Phi(K y + b)``.
    width : int or None
        The hidden units of the field "mlp", which needs it: the rows of K. The fields "hamiltonian" and "gradient" have
        as many as the state has components unless it is given. None for all other fields.
    degree : int or None
        The degree of the field "polynomial", which needs it, at most 10,000 monomials. None for all other fields.
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
        Whether every stage of a layer has its own controls (K, b).
    control_intervals : int, sequence of int or None
        How many sets (K, b) there are, n <= N: layer j uses set ``floor(j n / N)``, and gradients add up over the
        layers of a set. None: one for each layer; 1: a field that does not change in time. A sequence names the set of
        each layer: 0, then the same or the next one, as `prune` and `refine` leave them.
    n_inputs : int
        Known numbers x(t) that the field takes beside the state, ``f(y, x)``: forces, temperatures, settings. Methods
        that take samples X take them as ``inputs``. The fields "mlp" and "polynomial" have them, behind the state: K, A
        and the monomials are those of ``z = (y, x)``.
    input_hold : {"linear", "zero"}
        How inputs go on within a layer: from those of layer j to those of layer j + 1, or constant. `inputs` has the
        shape (samples, layers + 1, n_inputs) or (samples, layers, n_inputs).
    nonexpansive : bool
        Whether training keeps every layer from expanding distances: the singular values of K stay at most
        ``sqrt(2 r / (L h))`` with the `Tableau.contractivity_radius` r and the largest slope L of sigma. So
        perturbations of a sample do not grow, and `certified_radius` is large. It needs the field "gradient", fixed
        steps, an activation that increases and a tableau with r > 0.
    dtype : {"float64", "float32"}
        The number type of controls, data and results.

    Attributes
    ----------
    n_features, n_layers, n_outputs, augment, n_inputs : int
    residual, stage_controls, nonexpansive : bool
    control_intervals : int, tuple of int or None
    field, activation, time_steps, input_hold : str
    width, degree : int or None
    horizon : float
    tableau : Tableau
    dtype : numpy.dtype
        The arguments, with canonical names.

    Raises
    ------
    TypeError, ValueError
        If an argument has a wrong type or value, or two cannot be combined; the message names the argument, what was
        given and what is accepted.

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
    >>> net.n_features, net.n_layers, net.tableau.name, str(net.dtype)
    (2, 10, 'kutta4', 'float64')

    A field of any width, and one that does not change in time:

    >>> net = ocdl.Network(2, 10, field="mlp", width=50, tableau="kutta4", control_intervals=1)
    >>> {name: part.shape for name, part in net.init(random_state=0).parts().items() if name in "KbVAc"}
    {'K': (1, 50, 2), 'b': (1, 50), 'V': (1, 2, 50), 'A': (1, 2, 2), 'c': (1, 2)}

    Inputs, here the force on an oscillator y'' = -y + x, and the gradient by them:

    >>> net = ocdl.Network(2, 20, field="polynomial", degree=1, tableau="kutta4", control_intervals=1, n_inputs=1)
    >>> u = net.controls(C=[[[0, 0, 1, 0], [0, -1, 0, 1]]], W=[[1, 0]])
    >>> force = np.sin(np.linspace(0, 1, 21)).reshape(1, 21, 1)
    >>> J, g = net.value_and_grad(u, [[1.0, 0.0]], [1], inputs=force, input_grad=True)
    >>> g.inputs.shape
    (1, 21, 1)

    Layers that share controls:

    >>> net = ocdl.Network(2, 10, control_intervals=5)
    >>> net.init(random_state=0).K.shape, net.layer_sets
    ((5, 2, 2), (0, 0, 1, 1, 2, 2, 3, 3, 4, 4))

    Layers that expand no distance:

    >>> net = ocdl.Network(2, 10, field="gradient", width=8, augment=2, nonexpansive=True)
    >>> bool(net.lipschitz_bound(net.init(random_state=0)) <= 1)
    True
    """

    if not TYPE_CHECKING:  # so that a type checker sees that other attributes do not exist

        def __getattr__(self, name):
            advice = FOREIGN_NAMES.get(name)
            raise AttributeError(
                f"a Network has no attribute {name!r}{f'; {advice}' if advice else ''}", name=name, obj=self
            )

    prune = pruning.prune
    saving = pruning.saving
    refine = refinement.refine
    resample = refinement.resample
    adapt = adaptation.adapt

    certify = certificate.certify
    stability = stabilities.stability
    sensitivity = sensitivities.sensitivity
    minimal_perturbation = sensitivities.minimal_perturbation
    lipschitz_bound = lipschitz.lipschitz_bound
    certified_radius = certified_radii.certified_radius
    local_errors = local_error.local_errors
    hessian_product = second_order.hessian_product
    gauss_newton_product = second_order.gauss_newton_product
    hamiltonian_hessian = second_order.hamiltonian_hessian
    scipy_objective = scipy_objectives.scipy_objective
