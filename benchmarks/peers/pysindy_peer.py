"""PySINDy, in an environment of its own: reads a problem as JSON from standard input, writes what it found.

python -m venv env; env/bin/pip install pysindy; env/bin/python benchmarks/peers/pysindy_peer.py < problem.json
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np
import pysindy
from scipy.integrate import solve_ivp


def make_model(kind: str) -> pysindy.SINDy:
    if kind == "default":
        return pysindy.SINDy()
    return pysindy.SINDy(
        optimizer=pysindy.EnsembleOptimizer(pysindy.STLSQ(threshold=0.1), bagging=True, n_models=20),
        feature_library=pysindy.PolynomialLibrary(degree=3),
        differentiation_method=pysindy.SmoothedFiniteDifference(
            smoother_kws={"window_length": 7, "polyorder": 3, "axis": 0}
        ),
    )


def simulate(model: pysindy.SINDy, y0: np.ndarray, times: np.ndarray, x: np.ndarray | None) -> np.ndarray:
    def field(t: float, y: np.ndarray) -> np.ndarray:
        u = None if x is None else np.array([[np.interp(t, times, x[:, 0])]])
        return np.asarray(model.predict(y[None], u=u))[0]

    def has_left(t: float, y: np.ndarray) -> float:
        return float(1e6 - np.abs(y).max())

    has_left.terminal = True
    found = solve_ivp(field, (times[0], times[-1]), y0, t_eval=times, rtol=1e-5, atol=1e-6, events=has_left)
    path = np.full((len(times), len(y0)), np.nan)
    path[: found.y.shape[1]] = found.y.T
    return path


def main() -> None:
    problem = json.load(sys.stdin)
    X, times = ([np.array(one) for one in problem[name]] for name in ("X", "times"))
    inputs = problem["inputs"] and [np.array(one) for one in problem["inputs"]]
    y0, clock = np.array(problem["y0"]), np.array(problem["new_times"])
    x = problem["new_inputs"] and np.array(problem["new_inputs"])
    begin = time.process_time()
    model = make_model(problem["kind"])
    model.fit(X, t=times, u=inputs)
    seconds = time.process_time() - begin
    paths = [simulate(model, y, clock, None if x is None else x[i]) for i, y in enumerate(y0)]
    result = {
        "seconds": seconds,
        "simulated": np.where(np.isfinite(paths), paths, 1e9).tolist(),
        "coefficients": np.asarray(model.coefficients()).tolist(),
        "exponents": np.asarray(model.feature_library.powers_).tolist(),
        "version": pysindy.__version__,
    }
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
