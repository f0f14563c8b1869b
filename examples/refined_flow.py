"""
More layers, the same flow
==========================

A trained network is a differential equation with one method to solve it. Cut every layer into 2, 4, 8, ... with the
same controls, and the flow changes by the error of the method only: with Kutta's method it falls like the fourth
power of the step.
"""

import sys
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ocdl

# %%
# A network with ten layers of each method, trained on two spirals.
X, y = ocdl.datasets.make_spiral(500, random_state=0)
optimiser = ocdl.Chain((ocdl.Adam(lr=0.05), 100), (ocdl.LBFGS(), None))
objective = ocdl.Objective("cross_entropy", penalties=ocdl.Tikhonov(1e-4))
models = {}
for method in ("euler", "improved_euler", "kutta4"):
    net = ocdl.Network(n_features=2, n_layers=10, tableau=method, augment=1)
    start = net.init(random_state=0, scheme="scaled")
    result = ocdl.train(net, start, X, y, objective=objective, optimiser=optimiser, max_iter=300)
    models[method] = net, result.controls
    print(f"{method}: accuracy {result.history.accuracy[-1]:.3f}")

# %%
# How far is the flow with n layers from that with 2 n?
FACTORS = 2 ** np.arange(7)


def points_at_the_end(net: ocdl.Network, u: ocdl.Controls, factor: int) -> np.ndarray:
    """Return the points at time T, by so many times as many layers of the same equation."""
    refined, controls = net.refine(u, factor, interpolation="constant")
    return refined.forward(controls, X).states[-1]


differences = {}
for method, (net, u) in models.items():
    flows = [points_at_the_end(net, u, int(factor)) for factor in FACTORS]
    differences[method] = [np.abs(fine - coarse).max() for coarse, fine in pairwise(flows)]
    order = np.log2(differences[method][-2] / differences[method][-1])
    print(f"{method}: the difference falls with order {order:.2f}, the tableau has order {net.tableau.order}")

# %%
# The differences; and the trained network with four times as many layers, which has never been trained.
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
layers = 10 * FACTORS[:-1]
for (method, results), marker in zip(differences.items(), "o^s", strict=True):
    (line,) = left.loglog(layers, results, marker=marker, label=method)
    guide = results[-1] * (layers[-1] / layers) ** float(models[method][0].tableau.order)
    left.loglog(layers, guide, "--", color=line.get_color(), alpha=0.5)
left.set_xticks(layers, [str(n) for n in layers])
left.minorticks_off()
left.set(xlabel="layers", title="difference to twice as many layers\n(dashed: the order of the tableau)")
left.legend(frameon=False)
net, u = models["kutta4"]
fine = net.refine(u, 4, interpolation="constant")
ocdl.plot.prediction((net, u), X, y, legend=False, ax=middle).ax.set_title("10 layers, trained")
ocdl.plot.prediction(fine, X, y, legend=False, ax=right).ax.set_title("40 layers, refined")
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(Path(sys.argv[1]) / "refined_flow.png", dpi=110)
else:
    plt.show()
