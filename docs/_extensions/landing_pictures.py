"""The two pictures of the start page: speed, from the stored benchmarks, and exactness, computed by each build."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from measured import stored

import ocdl
from ocdl.plot._style import OKABE_ITO

SIZE = (5.2, 3.4)  # inches
JOBS = {
    "J1": "2 wide, 20 layers, Euler",
    "J2": "2 wide, 15 layers, Kutta 4",
    "J9": "2 wide, 5 layers, Euler",
    "J5": "16 wide, 100 layers, Kutta 4",
}
LIBRARIES = {"jax": "JAX", "numba": "Numba", "numpy": "NumPy"}


def write_pictures(folder: Path) -> None:
    """Write speed.png and exactness.png."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in (("speed", draw_speed), ("exactness", draw_exactness)):
        figure = Figure(figsize=SIZE, dpi=120, layout="constrained")
        draw(figure)
        figure.savefig(folder / f"{name}.png")


def draw_speed(figure: Figure) -> None:
    """Draw the time of a gradient in other libraries, relative to ocdl."""
    ax = figure.add_subplot()
    jobs = {job["job"]: job["seconds"] for job in stored("gradient")["jobs"]}
    height = 0.8 / len(LIBRARIES)
    for i, (key, name) in enumerate(LIBRARIES.items()):
        for row, job in enumerate(JOBS):
            ratio = fastest(jobs[job], key) / fastest(jobs[job], "ocdl")
            at = row + (i - 1) * height
            ax.barh(at, ratio, height, color=OKABE_ITO[i], label=name if row == 0 else None)
            ax.annotate(f"{ratio:.0f}", (ratio, at), (3, 0), textcoords="offset points", va="center", fontsize="small")
    ax.axvline(1, color="black", linewidth=1)
    ax.set_yticks(range(len(JOBS)), list(JOBS.values()))
    ax.invert_yaxis()
    ax.set_xlabel("time of a gradient / that of ocdl")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)


def fastest(seconds: dict[str, float], library: str) -> float:
    """Return the time of a library with the number of threads that suits it best."""
    return min(taken for name, taken in seconds.items() if name in (library, f"{library} (1 thread)"))


def draw_exactness(figure: Figure) -> None:
    """Draw the error of a directional derivative: of difference quotients and of the adjoint sweep."""
    net = ocdl.Network(2, 20, tableau="euler")
    u, other = net.init(random_state=0), net.init(random_state=1)
    w = net.controls(K=other.K, b=np.ones_like(other.b), h=np.zeros_like(other.h))
    X, _ = ocdl.datasets.make_spiral(200, random_state=0)
    reference = complex_step(net, u, w, X)
    ones = np.ones_like(X)
    adjoint = net.vjp(u, X, state_cotangents=ones).dot(w)
    steps = np.logspace(-1, -14, 27)
    start = net.final_state(u, X).sum()
    quotients = [(net.final_state(u + float(e) * w, X).sum() - start) / e for e in steps]
    ax = figure.add_subplot()
    ax.loglog(steps, np.abs(np.array(quotients) / reference - 1), "o-", color=OKABE_ITO[1], label="difference quotient")
    error = max(abs(adjoint / reference - 1), np.finfo(float).eps)
    ax.axhline(error, color=OKABE_ITO[0], linewidth=2, label="adjoint sweep of ocdl")
    ax.set_xlabel("step of the difference")
    ax.set_ylabel("relative error")
    ax.grid(alpha=0.3)
    ax.legend(frameon=False)


def complex_step(net: ocdl.Network, u: ocdl.Controls, w: ocdl.Controls, X: np.ndarray) -> float:
    """Return the derivative of the sum of the final states in the direction w, without a truncation error."""
    e = 1e-200
    y = X.astype(complex)
    for j in range(net.n_layers):
        K, b = u.K[j] + 1j * e * w.K[j], u.b[j] + 1j * e * w.b[j]
        y = y + u.h[j] * np.tanh(y @ K.T + b)
    return float(y.sum().imag / e)
