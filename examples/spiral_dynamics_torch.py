"""
The dynamics behind a time series
=================================

A point spirals inwards, y' = A y^3. Given is only a noisy time series of it. A
network learns the dynamics from short windows: an encoder lifts the first
point of a window, and a flow with the same controls in every layer moves it.
With ``returns="trajectory"`` the flow returns the states after every layer,
and a decoder maps all of them to points of the window. One adjoint sweep
computes the gradient. You need ``pip install 'ocdl[torch]'``. If torchdiffeq
is installed, the script also computes the gradient with it and prints both
times.
"""

import sys
import time
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy.integrate import solve_ivp

import ocdl
import ocdl.torch

# %%
# Make the time series.
A = np.array([[-0.1, 2.0], [-2.0, -0.1]])
STEP, LENGTH, WINDOW = 0.025, 400, 20
times = STEP * np.arange(LENGTH)
exact = solve_ivp(
    lambda t, y: A @ y**3,
    (0, times[-1]),
    [2.0, 0.0],
    t_eval=times,
    rtol=1e-9,
    atol=1e-9,
).y.T
series = torch.tensor(
    exact + 0.01 * np.random.default_rng(0).normal(size=exact.shape)
)

# %%
# The flow has 32 dimensions; "rk38" is the method that torchdiffeq calls
# "rk4". All layers share their controls: the parameters are K and b of one
# layer, and ``functional_call`` passes them to every layer. A window takes 3
# units of the flow's time, because its speed, a value of tanh, is at most 1 in
# each component.
torch.manual_seed(0)
DIM, HORIZON = 32, 3.0
net = ocdl.Network(DIM, WINDOW, tableau="rk38", horizon=HORIZON)
flow = ocdl.torch.OCDLayer(net, returns="trajectory")
encoder = torch.nn.Sequential(
    torch.nn.Linear(2, 64), torch.nn.Tanh(), torch.nn.Linear(64, DIM)
).double()
decoder = torch.nn.Linear(DIM, 2).double()
K = torch.nn.Parameter(
    torch.randn(DIM, DIM, dtype=torch.float64) / DIM**0.5
)
b = torch.nn.Parameter(torch.zeros(DIM, dtype=torch.float64))


def trajectory(
    layer: ocdl.torch.OCDLayer, start: torch.Tensor
) -> torch.Tensor:
    """Return the states after every layer, (layers + 1, ..., DIM)."""
    layers = layer.net.n_layers
    shared = {
        "K": K.expand(layers, DIM, DIM),
        "b": b.expand(layers, DIM),
    }
    return torch.func.functional_call(layer, shared, (start,))


# %%
# Train. The loss is the squared distance to all points of 100 windows.
parameters = [K, b, *encoder.parameters(), *decoder.parameters()]
ITERATIONS = 2500
optimiser = torch.optim.Adam(parameters, lr=0.02)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
    optimiser, ITERATIONS
)
generator = torch.Generator().manual_seed(1)
# (windows, WINDOW + 1, 2)
windows = series.unfold(0, WINDOW + 1, 1).permute(0, 2, 1)
losses = []
for _ in range(ITERATIONS):
    some = windows[
        torch.randint(len(windows), (100,), generator=generator)
    ]
    optimiser.zero_grad()
    predicted = decoder(trajectory(flow, encoder(some[:, 0])))
    loss = (predicted - some.transpose(0, 1)).square().mean()
    loss.backward()
    optimiser.step()
    schedule.step()
    losses.append(loss.item())
first, last = np.sqrt(losses[0]), np.sqrt(np.mean(losses[-50:]))
print(f"root of the mean squared error: {first:.3f}, then {last:.3f}")

# %%
# Follow the learned dynamics from the first point through all windows. It
# was trained on single windows only.
with torch.no_grad():
    points = [torch.tensor(exact[:1])]
    while sum(map(len, points)) < LENGTH:
        points.append(
            decoder(trajectory(flow, encoder(points[-1][-1:])))[1:, 0]
        )
    learned = torch.cat(points)[:LENGTH].numpy()
distance = np.linalg.norm(learned - exact, axis=1)
print(f"distance over {LENGTH // WINDOW} windows: {distance.max():.2f}")

# %%
# Compute the same gradient with torchdiffeq, which differentiates its
# solver.
if find_spec("torchdiffeq"):
    from torchdiffeq import odeint

    start = encoder(windows[:100, 0]).detach()
    grid = torch.linspace(0, HORIZON, WINDOW + 1, dtype=torch.float64)

    def gradients(states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        residuals = decoder(states) - windows[:100].transpose(0, 1)
        return torch.autograd.grad(residuals.square().mean(), [K, b])

    def field(t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.tanh(y @ K.T + b)

    flows = {
        "ocdl": lambda: trajectory(flow, start),
        "torchdiffeq": lambda: odeint(field, start, grid, method="rk4"),
    }
    (ours, _), (theirs, _) = (gradients(f()) for f in flows.values())
    difference = (ours - theirs).abs().max() / theirs.abs().max()
    print(f"relative difference of the gradients: {difference:.0e}")
    for name, solve in flows.items():
        seconds = []
        for _ in range(20):
            begin = time.process_time()
            gradients(solve())
            seconds.append(time.process_time() - begin)
        print(
            f"{name}: {1e3 * np.median(seconds):.2f} ms for a gradient"
        )

# %%
# Draw the series, the learned spiral and the learned vector field in the
# phase plane.
figure, (left, right) = plt.subplots(
    1, 2, figsize=(12, 5), layout="constrained", width_ratios=(3, 2)
)
axis = np.linspace(-2.2, 2.2, 25)
plane = np.stack(np.meshgrid(axis, axis), axis=-1)
with torch.no_grad():
    speed = (
        torch.tanh(encoder(torch.tensor(plane)) @ K.T + b)
        @ decoder.weight.T
    )
left.streamplot(
    axis,
    axis,
    *np.moveaxis(speed.numpy(), -1, 0),
    color="0.8",
    density=1.2,
    linewidth=0.7,
    arrowsize=0.7,
)
left.plot(
    *series.numpy().T,
    ".",
    color="tab:orange",
    markersize=3,
    label="time series",
)
left.plot(*exact.T, "--", color="0.3", linewidth=1, label="true spiral")
left.plot(
    *learned.T,
    color="tab:blue",
    linewidth=1.5,
    label="learned, from the first point on",
)
left.set(
    title="phase plane, and the learned vector field",
    aspect="equal",
    xlim=(-2.2, 2.2),
    ylim=(-2.2, 2.2),
)
left.legend(
    loc="upper center",
    bbox_to_anchor=(0.5, -0.06),
    ncols=3,
    frameon=False,
    fontsize=8,
)
for component, (colour, name) in enumerate(
    (("tab:blue", "first"), ("tab:red", "second"))
):
    right.plot(
        times,
        learned[:, component],
        color=colour,
        label=f"{name} component, learned",
    )
    right.plot(
        times, exact[:, component], "--", color="0.3", linewidth=1
    )
right.axvspan(0, WINDOW * STEP, color="0.9", label="length of a window")
right.set(xlabel="time", title="over time (dashed: true)")
right.legend(fontsize=8)
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(
        Path(sys.argv[1]) / "spiral_dynamics_torch.png", dpi=110
    )
else:
    plt.show()
