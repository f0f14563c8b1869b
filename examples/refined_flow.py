"""
More layers, the same flow
==========================

A trained network is a differential equation with a method that solves it.
Divide every layer into 2, 4, 8, ... layers with the same controls, and the
flow changes only by the error of the method. With Kutta's method this error
falls like the fourth power of the step.
"""

import sys
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ocdl

# %%
# Train a network of ten layers with each method on two spirals.
X, y = ocdl.datasets.make_spiral(500, random_state=0)
optimiser = ocdl.Chain((ocdl.Adam(lr=0.05), 100), (ocdl.LBFGS(), None))
objective = ocdl.Objective(
    "cross_entropy", penalties=ocdl.Tikhonov(1e-4)
)
models = {}
for method in ("euler", "improved_euler", "kutta4"):
    net = ocdl.Network(
        n_features=2, n_layers=10, tableau=method, augment=1
    )
    start = net.init(random_state=0, scheme="scaled")
    result = ocdl.train(
        net,
        start,
        X,
        y,
        objective=objective,
        optimiser=optimiser,
        max_iter=300,
    )
    models[method] = net, result.controls
    print(f"{method}: accuracy {result.history.accuracy[-1]:.3f}")

# %%
# How far is the flow with n layers from that with 2 n?
FACTORS = 2 ** np.arange(7)


def final_points(
    net: ocdl.Network, u: ocdl.Controls, factor: int
) -> np.ndarray:
    """Return the points at time T with more layers."""
    refined, controls = net.refine(u, factor, interpolation="constant")
    return refined.forward(controls, X).states[-1]


differences = {}
for method, (net, u) in models.items():
    flows = [final_points(net, u, int(factor)) for factor in FACTORS]
    differences[method] = [
        np.abs(fine - coarse).max() for coarse, fine in pairwise(flows)
    ]
    order = np.log2(differences[method][-2] / differences[method][-1])
    print(f"{method}: order {order:.2f}, expected {net.tableau.order}")

# %%
# Draw the differences, the trained network, and the one with four times as
# many layers, which was not trained.
figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(14, 4), layout="constrained"
)
layers = 10 * FACTORS[:-1]
for method, errors in differences.items():
    style = ocdl.plot.style(method)
    order = float(models[method][0].tableau.order)
    guide = errors[-1] * (layers[-1] / layers) ** order
    left.loglog(layers, errors, label=method, **style)
    left.loglog(layers, guide, "--", color=style["color"], alpha=0.5)
left.set_xticks(layers, [str(n) for n in layers])
left.minorticks_off()
left.set(
    xlabel="layers",
    ylabel="difference to twice as many layers",
    title="dashed: the order of the tableau",
)
left.legend(frameon=False)
net, u = models["kutta4"]
fine = net.refine(u, 4, interpolation="constant")
ocdl.plot.prediction(
    (net, u), X, y, legend=False, ax=middle
).ax.set_title("10 layers, trained")
ocdl.plot.prediction(fine, X, y, legend=False, ax=right).ax.set_title(
    "40 layers, refined"
)
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(Path(sys.argv[1]) / "refined_flow.png", dpi=110)
else:
    plt.show()
