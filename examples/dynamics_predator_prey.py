"""
Predator and prey, with uncertainty
===================================

Counts of two species are rare, noisy and incomplete. An ensemble of polynomial models finds the equations of Lotka and
Volterra in them, and forecasts three times as long as any region was observed.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.integrate import solve_ivp

import ocdl

rng = np.random.default_rng(1)


def rates(t: float, y: np.ndarray) -> list[float]:
    """Return the true rates of change of hares and lynxes."""
    hares, lynxes = y
    return [
        1.1 * hares - 0.4 * hares * lynxes,
        -0.4 * lynxes + 0.1 * hares * lynxes,
    ]


# %%
# Six regions, each observed for nine years at its own times, less than a cycle. A tenth of the values is missing, and
# the names of the columns become the names in the equations.
series, times, starts = [], [], rng.uniform((4, 1), (12, 5), (6, 2))
for start in starts:
    clock = np.append(0.0, np.sort(rng.uniform(0, 9, 24)))
    states = solve_ivp(
        rates, (0, clock[-1]), start, t_eval=clock, rtol=1e-8
    ).y.T
    noisy = states * (1 + 0.08 * rng.normal(size=states.shape))
    noisy[rng.random(noisy.shape) < 0.1] = np.nan
    series.append(pd.DataFrame(noisy, columns=["hares", "lynxes"]))
    times.append(clock)

# %%
# Ten models, each of which has seen another choice of the series.
model = ocdl.Dynamics(
    field="polynomial", degree=2, n_models=10, random_state=0
).fit(series[:5], times[:5])
print(model.equations())
print(
    "R^2 of the trajectory of a new region:",
    round(model.score(series[5:], times[5:]), 3),
)

# %%
# The new region: its state is computed from the nine years of observations, all after the dotted line is a forecast.
# The dashed line is what will happen. The narrow band is where the models differ; it does not contain the error of the
# state that all of them start from.
figure, (left, right) = plt.subplots(
    1,
    2,
    figsize=(11.5, 4.6),
    layout="constrained",
    width_ratios=(1, 1.5),
)
start = model.initial_state(series[5], times[5])
years = np.linspace(0, 30, 600)
truth = solve_ivp(rates, (0, 30), starts[5], t_eval=years, rtol=1e-8).y
ocdl.plot.phase_portrait(
    model,
    pd.concat(series[:5]),
    trajectories=model.simulate(start, years),
    ax=left,
)
ocdl.plot.forecast(model, series[5], times[5], end=30.0, ax=right)
right.plot(years, truth.T, "--", color="0.3", linewidth=0.8)
right.axvline(9, color="0.5", linewidth=0.8, linestyle=":")
right.set(xlabel="year", ylabel="thousands")
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(
        Path(sys.argv[1]) / "dynamics_predator_prey.png", dpi=110
    )
else:
    plt.show()
