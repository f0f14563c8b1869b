"""`Dynamics`: a scikit-learn estimator that learns a dynamical system from time series."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ocdl.base import validation
from ocdl.base.keywords import known_keywords
from ocdl.dynamics import control, files
from ocdl.dynamics.arguments import FOREIGN_KEYWORDS, make_plan, read_states
from ocdl.dynamics.control import OptimalInputs
from ocdl.dynamics.ensemble import fit_models
from ocdl.dynamics.equations import coefficients, format_equations, term_names
from ocdl.dynamics.learned import LearnedDynamics
from ocdl.dynamics.plan import DynamicsFit
from ocdl.dynamics.series import SeriesSet, read_series, simulation_times

Floats = NDArray[np.float64]


class Dynamics(LearnedDynamics):
    """Learn a dynamical system y' = f(y, x) from time series.

    A neural ordinary differential equation ("mlp"), or an equation ("polynomial"). States and time are scaled; the fit
    starts from smooth series and their derivatives and goes through trajectories: the parameters and the initial states
    of short windows minimise the squared errors at the observed times, by the method of Levenberg and Marquardt, while
    the jumps between neighbouring windows vanish (multiple shooting). So noise is not differentiated, times may be
    irregular, and chaotic systems can be learned.

    Parameters
    ----------
    field : {"mlp", "polynomial"}
        ``V tanh(K y + b) + A y + c``, or all monomials up to a degree.
    width : int
        The hidden units of an mlp.
    degree : int
        The largest total degree of the monomials.
    tableau : str or Tableau
        The explicit Runge-Kutta method.
    max_step : float, optional
        The largest time step, in the units of `times`; None: chosen from the data, and halved until its error is
        below the noise.
    observe : sequence of int or array_like of shape (columns, components), optional
        What the columns of X are: components of the state, or a matrix times the state. None: the first components.
    augment : int
        Hidden components of the state besides.
    linear : array_like of shape (components, components), optional
        A known linear part A of f, in the units of the data: the fit starts from it.
    learn_linear : bool
        Whether the linear part is learned from there, or kept.
    sparsity : "auto", float or None
        Of a polynomial. "auto": terms without which the fit is not significantly worse are dropped, by a level that
        is chosen on held-out windows. A number: the weight of an L1 penalty, beside half the mean squared error of what
        was observed over its scale, chooses the terms. None or 0: all terms stay. The coefficients are then fitted
        without the penalty.
    alpha : "auto" or float
        The precision of the parameters' prior; "auto": that of an mlp is estimated from the data (evidence).
    n_models : int
        The models of an ensemble, each with other random numbers and from a random part of the data.
    max_iter : int
        The maximum number of iterations for each set of terms, series and steps.
    validation_fraction : float
        The part of the series, or of fewer than five series the part of their ends, that is held out for the choice of
        terms and `validation_error_`; in the end all of them are learned from. 0: nothing.
    random_state : None, int, numpy Generator or RandomState
    n_jobs : int, optional
        How many models of an ensemble are fitted at once.
    verbose : int
        Above 0, every stage of the fit is printed.

    Attributes
    ----------
    noise_ : ndarray of shape (columns,)
        The estimated standard deviation of the noise of each column.
    n_iter_ : int
    max_step_ : float
    n_windows_ : int
        Windows that all series were cut into.
    window_length_ : float
    validation_error_ : float
        The root mean square of held-out errors of trajectories, in units of the noise: 1 is perfect. NaN if nothing
        was held out.
    coefficients_, coefficient_errors_ : ndarray of shape (components, terms)
        Of a polynomial: in the units of the data, with standard errors from the Gauss-Newton matrix.
    feature_names_ : list of str
        The terms of a polynomial, or the components of the state.
    state_names_, input_names_ : list of str
    n_features_in_ : int
        The columns of X.
    models_ : list
        The learned systems, without units.

    Raises
    ------
    TypeError, ValueError
        By `fit`, if a parameter is not valid; the message names it.

    Examples
    --------
    An oscillator from a single series:

    >>> import numpy as np, ocdl
    >>> t = np.linspace(0, 5, 40)
    >>> X = np.column_stack([np.cos(t), -np.sin(t)])
    >>> model = ocdl.Dynamics(field="polynomial", degree=1).fit(X, t)
    >>> model.equations(precision=2)
    ["y0' = 1 y1", "y1' = -1 y0"]
    >>> model.feature_names_, model.state_names_, model.input_names_, model.n_features_in_
    (['1', 'y0', 'y1'], ['y0', 'y1'], [], 2)
    >>> model.coefficients_.round(2).tolist()
    [[0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]
    >>> bool(model.coefficient_errors_.max() < 1e-3), bool(model.noise_.max() < 1e-3)
    (True, True)
    >>> model.n_iter_ > 0, model.n_windows_ > 1, model.validation_error_ < 3
    (True, True, True)
    >>> len(model.models_)
    1
    >>> 0 < model.max_step_ < model.window_length_ < 5
    True
    >>> y = model.simulate([0.0, 1.0], [0.0, np.pi / 2])
    >>> y.shape, bool(np.allclose(y[-1], [1.0, 0.0], atol=1e-4))
    ((2, 2), True)
    """

    @known_keywords(FOREIGN_KEYWORDS)
    def __init__(
        self,
        *,
        field: str = "mlp",
        width: int = 32,
        degree: int = 3,
        tableau: Any = "kutta4",
        max_step: float | None = None,
        observe: Any = None,
        augment: int = 0,
        linear: ArrayLike | None = None,
        learn_linear: bool = True,
        sparsity: float | str | None = "auto",
        alpha: float | str = "auto",
        n_models: int = 1,
        max_iter: int = 60,
        validation_fraction: float = 0.2,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.field = field
        self.width = width
        self.degree = degree
        self.tableau = tableau
        self.max_step = max_step
        self.observe = observe
        self.augment = augment
        self.linear = linear
        self.learn_linear = learn_linear
        self.sparsity = sparsity
        self.alpha = alpha
        self.n_models = n_models
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, times: Any, *, inputs: Any = None) -> Self:
        """Learn the system from series.

        Parameters
        ----------
        X : array_like of shape (n, columns) or (series, n, columns), list of these (n_i, columns), or DataFrames
            One series, a stack, or a list of series; NaN: not observed.
        times : float, array_like of shape (n,), or list of them
            A time step, times of all series, or of each one; increasing.
        inputs : like X, optional
            Known inputs at the same times, linear between.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            If an argument does not fit; the message names it.

        Examples
        --------
        >>> import numpy as np, ocdl
        >>> series = [np.exp(-t)[:, None] for t in (np.arange(9.0), np.linspace(0, 3, 12))]
        >>> model = ocdl.Dynamics(field="polynomial").fit(series, [np.arange(9.0), np.linspace(0, 3, 12)])
        >>> model.equations()
        ["y0' = -1 y0"]
        """
        series = read_series(X, times, inputs)
        plan = make_plan(self.get_params(deep=False), series)
        fits = fit_models(plan, self.n_models, self.n_jobs)
        return self._set_fitted(series, fits)

    def equations(self, precision: int = 3, latex: bool = False) -> list[str]:
        """Return the learned polynomial as equations in the units of the data, one per component.

        Parameters
        ----------
        precision : int
            Digits of the coefficients.
        latex : bool
            Whether to write them in LaTeX.

        Returns
        -------
        list of str

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `fit` has not been called.
        TypeError, ValueError
            If an argument does not fit; the message names it.

        Examples
        --------
        >>> import numpy as np, ocdl
        >>> t = np.linspace(0, 3, 20)
        >>> model = ocdl.Dynamics(field="polynomial").fit(np.exp(-t)[:, None], t)
        >>> model.equations(), model.equations(latex=True)
        (["y0' = -1 y0"], ['\\\\dot{y_{0}} = -1 y_{0}'])
        """
        check_is_fitted(self)
        if self._learned.system.field != "polynomial":
            raise ValueError("equations need field='polynomial'; an mlp has none that can be read")
        digits = validation.integer(precision, "precision", minimum=1)
        exponents = self._learned.system.monomials()
        in_latex = validation.boolean(latex, "latex")
        return format_equations(self.coefficients_, exponents, self.state_names_, self.input_names_, digits, in_latex)

    def optimise_inputs(
        self, y0: ArrayLike, times: ArrayLike, cost: Any, bounds: Any = None, *, max_iter: int = 500
    ) -> OptimalInputs:
        """Return the inputs at times that minimise a cost of the trajectory, by L-BFGS-B.

        Parameters
        ----------
        y0 : array_like of shape (components,)
        times : array_like of shape (k,)
        cost : object
            Its method ``value_and_grad(states, inputs)`` returns the cost of states (k, components) and inputs
            (k, inputs), and its gradients by both. Of an ensemble the mean over the models is minimised.
        bounds : pair of float, or one pair per input, optional
            The lowest and the highest value.
        max_iter : int
            The maximum number of iterations.

        Returns
        -------
        OptimalInputs
            With ``inputs``, ``states`` and ``cost``.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `fit` has not been called.
        TypeError, ValueError
            If an argument does not fit; the message names it.

        Examples
        --------
        >>> import numpy as np, ocdl
        >>> t = np.linspace(0, 4, 40)
        >>> x = np.sin(2 * t)[:, None]
        >>> y = ((np.exp(-t) * 2 - 2 * np.cos(2 * t) + np.sin(2 * t)) / 5)[:, None]  # y' = x - y
        >>> model = ocdl.Dynamics(field="polynomial", degree=1).fit(y, t, inputs=x)
        >>> class Distance:
        ...     def value_and_grad(self, states, inputs):
        ...         error = states - 1.0
        ...         return 0.5 * np.sum(error**2), error, np.zeros_like(inputs)
        >>> r = model.optimise_inputs([0.0], np.linspace(0, 2, 11), Distance(), bounds=(-2, 2))
        >>> r.inputs.shape, bool(abs(r.states[-1, 0] - 1) < 0.05)
        ((11, 1), True)
        """
        check_is_fitted(self)
        if self._learned.system.n_inputs == 0:
            raise ValueError("optimise_inputs needs a system with inputs: fit(X, times, inputs=...)")
        state, clock = read_states(y0, self._learned, "y0"), simulation_times(times)
        if state.ndim != 1 or len(clock) < 2:
            raise ValueError(
                f"optimise_inputs takes one state and at least two times, got {state.shape}, {clock.shape}"
            )
        limit = validation.integer(max_iter, "max_iter", minimum=1)
        return control.optimise_inputs(self.models_, state, clock, cost, bounds, limit)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file without code in it (no pickle), for `ocdl.load`.

        Parameters
        ----------
        path : str or path-like

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `fit` has not been called.
        OSError
            If the file cannot be written; the old one is intact.

        Examples
        --------
        >>> import numpy as np, ocdl
        >>> t = np.linspace(0, 3, 20)
        >>> model = ocdl.Dynamics(field="polynomial").fit(np.exp(-t)[:, None], t)
        >>> model.save("model.ocdl")
        >>> ocdl.load("model.ocdl", ocdl.Dynamics).equations()
        ["y0' = -1 y0"]
        """
        check_is_fitted(self)
        files.save(path, self)

    # ---- state of a fitted model ----

    def _set_fitted(self, series: SeriesSet, fits: list[DynamicsFit]) -> Self:
        first = fits[0]
        self.models_ = [fit.learned for fit in fits]
        self.n_features_in_ = series.n_columns
        self.n_iter_ = sum(fit.n_iter for fit in fits)
        self.n_windows_ = first.n_windows
        self.validation_error_ = float(np.mean([fit.validation_error for fit in fits]))
        system = first.learned.system
        self.input_names_ = [*(series.input_names or (f"x{j}" for j in range(system.n_inputs)))]
        names = [f"y{i}" for i in range(system.dim)]
        if series.names is not None:
            for column, row in enumerate(first.learned.W):
                if np.count_nonzero(row) == 1:
                    names[int(np.argmax(np.abs(row)))] = series.names[column]
        self.state_names_ = names
        return self._describe()

    def _describe(self) -> Self:
        """Set the attributes that follow from the models."""
        learned = self._learned
        self.noise_ = np.mean([model.noise * model.output_scale for model in self.models_], axis=0)
        self.max_step_ = learned.step * learned.units.time
        self.window_length_ = learned.layers * self.max_step_
        self.feature_names_ = list(self.state_names_)
        if learned.system.field == "polynomial":
            found = [coefficients(model) for model in self.models_]
            self.coefficients_ = np.mean([C for C, _ in found], axis=0)
            self.coefficient_errors_ = found[0][1]
            if len(found) > 1:
                self.coefficient_errors_ = np.std([C for C, _ in found], axis=0, ddof=1)
            self.feature_names_ = term_names(learned.system.monomials(), [*self.state_names_, *self.input_names_])
        return self
