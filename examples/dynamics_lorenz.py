"""
The Lorenz system from one noisy series
=======================================

In a chaotic system an error grows exponentially, so no model forecasts it for long. What a model can learn is the
system itself: its equations, and with them the shape of the attractor.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

import ocdl

rng = np.random.default_rng(0)


def rates(t: float, y: np.ndarray) -> list[float]:
    """Return the right-hand side of Lorenz's equations."""
    return [
        10 * (y[1] - y[0]),
        y[0] * (28 - y[2]) - y[1],
        y[0] * y[1] - 8 / 3 * y[2],
    ]


# %%
# One series of twenty units of time, with noise of 0.2 in states of a size of 10 to 40.
times = np.linspace(0, 20, 1001)
exact = solve_ivp(
    rates,
    (0, 30),
    [-8.0, 8.0, 27.0],
    t_eval=np.linspace(0, 30, 1501),
    rtol=1e-10,
    atol=1e-10,
).y.T
noisy = exact + 0.2 * rng.normal(size=exact.shape)

# %%
# The terms are chosen, and then their coefficients are fitted again without a penalty.
model = ocdl.Dynamics(field="polynomial", degree=2, random_state=0).fit(
    noisy[:1001], times
)
print(model.equations())

# %%
# Forecasts of the ten units of time after the data. The dashed line is the error of a forecast that says the mean.
later = np.linspace(20, 30, 501)
figure = plt.figure(figsize=(11.5, 7.2), layout="constrained")
axes = figure.subplot_mosaic([["plane", "error"], ["series", "series"]])
start = model.initial_state(
    noisy[1000:1026], later[:26]
)  # of half a unit of time
free = model.simulate(start, np.linspace(0, 40, 4000))
ocdl.plot.phase_portrait(
    model,
    trajectories=free,
    components=(0, 2),
    ax=axes["plane"],
    legend=False,
)
axes["plane"].set_title("forty units of time of the learned system")
ocdl.plot.forecast_error(
    model, noisy[1000:], later, n_observations=10, ax=axes["error"]
)
drawn = ocdl.plot.forecast(
    model,
    noisy[1000:],
    later,
    origin=20.5,
    components=[0],
    ax=axes["series"],
    legend=False,
)
axes["series"].set_ylabel("first component")
error = np.abs(model.simulate(start, later) - exact[1000:])
print(
    "the error of the first component stays below 1 for "
    f"{later[np.argmax(error[:, 0] > 1)] - 20:.1f} units of time"
)
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(Path(sys.argv[1]) / "dynamics_lorenz.png", dpi=110)
else:
    plt.show()
