"""
Swing up a pendulum that was learned
====================================

A pendulum hangs down, and its motor is too weak to lift it. From a few series of random motor torques a model learns
how it moves; then the torques that bring it up are computed through the model, and the true pendulum follows them.
Learning a system and controlling it are the same mathematics: both follow derivatives of one flow, in one case by the
parameters, in the other by the inputs.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.integrate import solve_ivp

import ocdl

rng = np.random.default_rng(0)
STEP, WEAK = (
    0.1,
    0.4,
)  # the torque that holds the pendulum sideways is 1


def move_pendulum(
    start: np.ndarray, times: np.ndarray, torque: np.ndarray
) -> np.ndarray:
    """Return angle, 0 hanging down, and velocity, (times, 2)."""

    def rates(t: float, y: np.ndarray) -> list[float]:
        return [
            y[1],
            -np.sin(y[0]) - 0.05 * y[1] + np.interp(t, times, torque),
        ]

    return solve_ivp(
        rates,
        (0, times[-1]),
        start,
        t_eval=times,
        rtol=1e-8,
        max_step=STEP,
    ).y.T


# %%
# Fourteen series of five units of time, from all angles, with random torques.
times = np.arange(0, 5 + STEP / 2, STEP)
X, torques = [], []
for _ in range(14):
    torque = np.interp(
        times, np.linspace(0, 5, 9), rng.uniform(-1, 1, 9)
    )
    states = move_pendulum(
        rng.uniform((-3.5, -1.5), (3.5, 1.5)), times, torque
    )
    X.append(
        pd.DataFrame(
            states + 0.01 * rng.normal(size=states.shape),
            columns=["angle", "velocity"],
        )
    )
    torques.append(torque[:, None])

# %%
model = ocdl.Dynamics(width=16, random_state=0).fit(
    X[:12], [times] * 12, inputs=torques[:12]
)
print(
    "R^2 on new series:",
    round(model.score(X[12:], [times] * 2, inputs=torques[12:]), 4),
)


# %%
# The cost: in the last two units of time the pendulum stands upright and is at rest; torque costs a little.
class SwingUp:
    """The cost of states and inputs, with its gradients."""

    def value_and_grad(
        self, states: np.ndarray, inputs: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the cost and its gradients by states and inputs."""
        error = states - [np.pi, 0.0]
        error[:-20] = 0.0
        return (
            float(np.sum(error**2) + 0.01 * np.sum(inputs**2)),
            2 * error,
            0.02 * inputs,
        )


# %%
# No model is exact, so a plan is followed for one unit of time only. Then the state is measured, and the rest is
# planned again: this is called model predictive control.
LAST, FOLLOWED = 160, 10  # steps
state, truth, torque, first_plan = (
    np.zeros(2),
    [np.zeros((1, 2))],
    [],
    None,
)
for step in range(0, LAST, FOLLOWED):
    plan_times = STEP * np.arange(max(LAST - step, 40) + 1)
    plan = model.optimise_inputs(
        state, plan_times, SwingUp(), bounds=(-WEAK, WEAK), max_iter=60
    )
    first_plan = first_plan or plan
    moved = move_pendulum(
        state,
        plan_times[: FOLLOWED + 1],
        plan.inputs[: FOLLOWED + 1, 0],
    )
    state = moved[-1]
    truth.append(moved[1:])
    torque.append(plan.inputs[:FOLLOWED, 0])
path, torque = np.concatenate(truth), np.concatenate(torque)
print(
    f"the true pendulum ends at the angle {path[-1, 0]:.2f} "
    f"(upright: 3.14), with velocity {path[-1, 1]:.2f}"
)

# %%
figure, (left, right) = plt.subplots(
    1,
    2,
    figsize=(11.5, 4.6),
    layout="constrained",
    width_ratios=(1, 1.4),
)
ocdl.plot.phase_portrait(
    model, trajectories=path, legend=False, ax=left
)
left.plot([0, np.pi], [0, 0], "o", color="0.2", markersize=5)
left.set_title("the learned field without torque, and the swing-up")
clock = STEP * np.arange(LAST + 1)
right.plot(
    clock,
    path[:, 0],
    color="#0072b2",
    label="angle of the true pendulum",
)
right.plot(
    clock,
    first_plan.states[:, 0],
    "--",
    color="0.2",
    linewidth=1,
    label="the first plan",
)
right.fill_between(
    clock[:-1],
    torque,
    color="#e69f00",
    alpha=0.6,
    label=f"torque, at most {WEAK}",
)
right.axhline(np.pi, color="0.5", linewidth=0.8, linestyle=":")
right.set(xlabel="time", title="planned again after every unit of time")
right.legend(loc="lower left", fontsize=8)
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(Path(sys.argv[1]) / "dynamics_pendulum.png", dpi=110)
else:
    plt.show()
