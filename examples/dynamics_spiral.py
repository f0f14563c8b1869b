"""
Learn a spiral from noisy series
================================

The demo of torchdiffeq, y' = A y^3, as a user meets it: a few short noisy series, each with its own irregular times.
Two models learn it. The network assumes nothing but smoothness; the polynomial also finds the equation.
"""

import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

import ocdl

A = np.array([[-0.1, 2.0], [-2.0, -0.1]])
rng = np.random.default_rng(0)


def simulate_truth(start: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the true states at the times, (times, 2)."""
    return solve_ivp(
        lambda t, y: A @ y**3,
        (0, times[-1]),
        start,
        t_eval=times,
        rtol=1e-9,
        atol=1e-9,
    ).y.T


# %%
# Twelve series of forty observations. Lists are all that `fit` needs: the lengths and times may differ.
times = [
    np.append(0.0, np.sort(rng.uniform(0, 6, 39))) for _ in range(12)
]
starts = rng.uniform(-2, 2, (12, 2))
X = [
    simulate_truth(start, clock) + 0.02 * rng.normal(size=(40, 2))
    for start, clock in zip(starts, times, strict=True)
]

# %%
# The two models. `score` is the R^2 of whole trajectories, here of two series that neither has seen.
models = {
    "mlp": ocdl.Dynamics(width=16, random_state=0),
    "polynomial": ocdl.Dynamics(
        field="polynomial", degree=3, random_state=0
    ),
}
for name, model in models.items():
    begin = time.process_time()
    model.fit(X[:10], times[:10])
    seconds = time.process_time() - begin
    print(
        f"{name}: R^2 {model.score(X[10:], times[10:]):.4f} "
        f"on new series, fitted in {seconds:.1f} s"
    )
print(models["polynomial"].equations())

# %%
# From the start of the demo, four times as long as any series: the distance to the true spiral.
long = np.linspace(0, 25, 2000)
exact = simulate_truth(np.array([2.0, 0.0]), long)
simulated = {
    name: model.simulate([2.0, 0.0], long)
    for name, model in models.items()
}
for name, states in simulated.items():
    print(
        f"{name}: mean distance to the true trajectory "
        f"{np.abs(states - exact).mean():.4f}"
    )

# %%
# The phase plane, with the field that the network has learned, and the error over the horizon of a forecast.
figure, (left, right) = plt.subplots(
    1,
    2,
    figsize=(11.5, 4.8),
    layout="constrained",
    width_ratios=(1, 1.15),
)
ocdl.plot.phase_portrait(
    models["mlp"],
    np.concatenate(X),
    trajectories=simulated["mlp"],
    ax=left,
)
left.plot(*exact.T, "--", color="0.2", linewidth=0.8, label="true")
left.set_aspect("equal")
ocdl.plot.forecast_error(models, X[10:], times[10:], ax=right)
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(Path(sys.argv[1]) / "dynamics_spiral.png", dpi=110)
else:
    plt.show()
