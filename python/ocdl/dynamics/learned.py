"""What a learned system can do: simulate, find initial states, and be compared with series."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ocdl.base import validation
from ocdl.dynamics.arguments import read_inputs, read_states
from ocdl.dynamics.plan import LearnedSystem
from ocdl.dynamics.series import SeriesSet, read_series, simulation_times
from ocdl.dynamics.simulation import fit_states, guess_lift, scale_series, simulate

Floats = NDArray[np.float64]
FLOAT64 = np.dtype(np.float64)


class LearnedDynamics(BaseEstimator):  # type: ignore[misc]
    """The methods of `Dynamics` that use its models and do not learn."""

    models_: list[LearnedSystem]
    n_features_in_: int

    def simulate(self, y0: ArrayLike, times: ArrayLike, *, inputs: Any = None, quantiles: Any = None) -> Floats:
        """Return the states at any times, from states at the first of them.

        Parameters
        ----------
        y0 : array_like of shape (components,) or (m, components)
            The state at ``times[0]``.
        times : array_like of shape (k,)
            Increasing; the system does not depend on time, so they may be anywhere.
        inputs : array_like of shape (k, inputs) or (m, k, inputs), optional
            Of a system with inputs: at the times, linear between.
        quantiles : sequence of float, optional
            Of an ensemble: instead of the median of the models, these quantiles.

        Returns
        -------
        ndarray of shape (k, components) or (m, k, components)
            With quantiles (quantiles, k, components) or (quantiles, m, k, components). What is beyond the range of the
            numbers is NaN, with a RuntimeWarning.

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
        >>> model.simulate([[1.0], [2.0]], [0.0, 1.0, 2.0]).round(2).tolist()
        [[[1.0], [0.37], [0.14]], [[2.0], [0.74], [0.27]]]
        """
        check_is_fitted(self)
        levels = self._read_quantiles(quantiles)
        states, clock = read_states(y0, self._learned, "y0"), simulation_times(times)
        rows = np.atleast_2d(states)
        x = read_inputs(inputs, self._learned, len(rows), len(clock))
        found = np.stack([simulate(model, rows, clock, x) for model in self.models_])
        one = states.ndim == 1
        if levels is not None:
            bands: Floats = np.nanquantile(found, levels, axis=0)
            return bands[:, 0] if one else bands
        middle: Floats = found[0] if len(found) == 1 else np.nanmedian(found, axis=0)
        return middle[0] if one else middle

    def initial_state(self, X: Any, times: Any, *, inputs: Any = None) -> Floats:
        """Return the state at the first time of a new series from which the trajectory fits it best.

        Parameters
        ----------
        X : array_like, list or DataFrame
        times : float, array_like or list
        inputs : array_like, list or DataFrame, optional
            As for `fit`.

        Returns
        -------
        ndarray of shape (components,) or, for a stack or a list, (series, components)

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
        >>> model.initial_state([[np.nan], [1.0]], [0.0, 1.0]).round(2).tolist()  # doctest: +SKIP
        [2.72]
        """
        series = self._read_like_fit(X, times, inputs)
        states = np.mean([self._states_of(model, series) for model in self.models_], axis=0)
        result: Floats = states[0] if series.is_single else states
        return result

    def derivative(self, y: ArrayLike, inputs: Any = None) -> Floats:
        """Return f(y, x), the derivative of the state.

        Parameters
        ----------
        y : array_like of shape (components,) or (m, components)
        inputs : array_like of shape (inputs,) or (m, inputs), optional

        Returns
        -------
        ndarray, like y

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
        >>> model.derivative([2.0]).round(2).tolist()
        [-2.0]
        """
        check_is_fitted(self)
        states = read_states(y, self._learned, "y")
        rows = np.atleast_2d(states)
        x = read_inputs(None if inputs is None else np.asarray(inputs), self._learned, len(rows), None)
        values = []
        for model in self.models_:
            scaled = None if x is None else model.units.inputs_to_scaled(x)
            slopes = model.system.derivative(model.theta, model.units.to_scaled(rows), scaled)
            values.append(slopes * model.units.scale / model.units.time)
        found: Floats = np.mean(values, axis=0)
        return found[0] if states.ndim == 1 else found

    def score(self, X: Any, times: Any, *, inputs: Any = None) -> float:
        """Return R^2 of the trajectories that `initial_state` starts, over all columns and series.

        Of each column it is one minus the sum of squared errors over that of the deviations from the mean; the result
        is the mean of the columns, minus infinity where a trajectory leaves the range of the numbers.

        Parameters
        ----------
        X : array_like, list or DataFrame
        times : float, array_like or list
        inputs : array_like, list or DataFrame, optional
            As for `fit`.

        Returns
        -------
        float

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
        >>> X = np.exp(-t)[:, None]
        >>> ocdl.Dynamics(field="polynomial").fit(X, t).score(X, t) > 0.999
        True
        """
        series = self._read_like_fit(X, times, inputs)
        starts = np.mean([self._states_of(model, series) for model in self.models_], axis=0)
        errors, values = [], []
        for start, one in zip(starts, series.members, strict=True):
            x = None if one.inputs is None else one.inputs[None]
            paths = [simulate(model, start[None], one.times, x)[0] for model in self.models_]
            errors.append(np.median(paths, axis=0) @ self._observation_matrix.T - one.values)
            values.append(one.values)
        observed, error = np.concatenate(values), np.concatenate(errors)
        if not np.isfinite(error[~np.isnan(observed)]).all():
            return -float("inf")
        total = np.nansum((observed - np.nanmean(observed, axis=0)) ** 2, axis=0)
        return float(np.mean(1 - np.nansum(error**2, axis=0) / np.where(total > 0, total, 1.0)))

    def to_onnx(self, path: str | os.PathLike[str], *, opset: int | None = None) -> None:
        """Write the field as a file in ONNX, which programs without Python can run.

        The inputs are "y", (samples, components) in float64, and of a system with inputs "x", (samples, inputs); the
        output is "derivative", (samples, components): what `derivative` returns. It needs ``pip install 'ocdl[onnx]'``.

        Parameters
        ----------
        path : str or path-like
        opset : int, optional
            As for `ocdl.export_onnx`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `fit` has not been called.
        ImportError
            If onnx is not installed.
        ValueError
            If `opset` is too old.

        Examples
        --------
        >>> import numpy as np, ocdl
        >>> t = np.linspace(0, 3, 20)
        >>> model = ocdl.Dynamics(field="polynomial").fit(np.exp(-t)[:, None], t)
        >>> model.to_onnx("field.onnx")  # doctest: +SKIP
        """
        check_is_fitted(self)
        from ocdl.interop.onnx_dynamics import write_field

        write_field(path, self, opset)

    @property
    def _learned(self) -> LearnedSystem:
        first: LearnedSystem = self.models_[0]
        return first

    @property
    def _observation_matrix(self) -> Floats:
        learned = self._learned
        matrix: Floats = learned.W * learned.output_scale[:, None] / learned.units.scale
        return matrix

    def _read_like_fit(self, X: Any, times: Any, inputs: Any) -> SeriesSet:
        check_is_fitted(self)
        series, system = read_series(X, times, inputs), self._learned.system
        if series.n_columns != self.n_features_in_:
            raise ValueError(f"X has {series.n_columns} columns but fit had {self.n_features_in_}")
        if series.n_inputs != system.n_inputs:
            raise ValueError(f"inputs has {series.n_inputs} columns but fit had {system.n_inputs}")
        return series

    def _states_of(self, model: LearnedSystem, series: SeriesSet) -> Floats:
        states = fit_states(model, scale_series(model, series.members), guess_lift(model))[0]
        return model.units.to_data(states)

    def _read_quantiles(self, quantiles: Any) -> Floats | None:
        if quantiles is None:
            return None
        if len(self.models_) == 1:
            raise ValueError("quantiles need an ensemble, as in Dynamics(n_models=10); this model was fitted with one")
        levels = np.asarray(validation.real_array(quantiles, "quantiles", FLOAT64))
        if levels.ndim != 1 or levels.size == 0 or levels.min() < 0 or levels.max() > 1:
            raise ValueError(f"quantiles must be numbers from 0 to 1, as in (0.1, 0.9), got {quantiles!r:.80}")
        return levels

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "models_")
