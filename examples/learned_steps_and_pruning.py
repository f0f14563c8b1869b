"""
Learned time steps, and layers that vanish
==========================================

On the simplex {h >= 0, sum h = 1} a learned step can become exactly 0. A
layer with step 0 does nothing, and ``prune`` removes it: the outputs stay the
same to the last bit and take less time.
"""

import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ocdl

# %%
# Train ODENet+Simplex, the paper's fourth architecture, on two spirals.
# All twenty steps start at 1/20.
X, y = ocdl.datasets.make_spiral(random_state=0)
net = ocdl.Network.preset("odenet+simplex", n_features=2, n_layers=20)
result = ocdl.train(
    net, net.init(random_state=1), X, y, max_iter=10_000, eval_every=100
)
u = result.controls
print(f"accuracy {result.history.accuracy[-1]:.3f}; {net.saving(u)}")

# %%
# Remove the layers whose step is 0: the outputs have the same bits.
small, v = net.prune(u)
many = np.random.default_rng(0).uniform(-1.2, 1.2, size=(200_000, 2))
assert np.array_equal(net.predict(u, many), small.predict(v, many))


def seconds(network: ocdl.Network, controls: ocdl.Controls) -> float:
    """Return the shortest of five times for many points."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        network.predict(controls, many)
        times.append(time.perf_counter() - start)
    return min(times)


before, after = seconds(net, u), seconds(small, v)
print(f"outputs of {len(many):,} points, the same bits:")
print(f"{1e3 * before:.1f} ms before, {1e3 * after:.1f} ms after")

# %%
# Draw the steps, their course, and the classifier that is left.
figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(14, 3.8), layout="constrained"
)
ocdl.plot.time_steps(u, ax=left).ax.set_title(
    f"{small.n_layers} of {net.n_layers} steps are left"
)
middle.plot(result.history.evaluated, result.history.time_steps)
middle.set(
    xlabel="iteration",
    ylabel="time step",
    title="how the steps were learned",
)
middle.set_xscale("symlog", linthresh=100)
accuracy = result.history.accuracy[-1]
title = f"{small.n_layers} layers, accuracy {accuracy:.3f}"
ocdl.plot.prediction(
    (small, v), X, y, legend=False, ax=right
).ax.set_title(title)
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(
        Path(sys.argv[1]) / "learned_steps_and_pruning.png", dpi=110
    )
else:
    plt.show()
