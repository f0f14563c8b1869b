# %% [markdown]
# # A ResNet learns two spirals
# A residual network is Euler's method for y' = tanh(K y + b): each layer moves the points a little. Here its controls
# are found by gradient descent with backtracking, the paper's Algorithm 2, and drawn. Run it with
# `python examples/spiral_resnet.py [folder]`.

# %%
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import ocdl

# %% Two noisy spirals, one per class, and as many points to test on.
X, y = ocdl.datasets.make_spiral(random_state=1)
X_test, y_test = ocdl.datasets.make_spiral(random_state=2)

# %% The network, its start, and 10,000 iterations of Algorithm 2 (`ocdl.Backtracking`, the default).
net = ocdl.Network.preset("resnet", n_features=2, n_layers=20)
result = ocdl.train(net, net.init(random_state=1), X, y, max_iter=10_000, validation=(X_test, y_test))
u, history = result.controls, result.history
print(f"{result.message}; {history.seconds[-1]:.1f} s")
print(f"accuracy {history.accuracy[-1]:.3f} (train), {history.val_accuracy[-1]:.3f} (test)")


# %% The classifier in the plane, the points moved to time T, and the loss.
def draw_classes(ax, points, score, title):
    low, high = points.min(axis=0) - 0.1, points.max(axis=0) + 0.1
    a, b = np.meshgrid(np.linspace(low[0], high[0], 200), np.linspace(low[1], high[1], 200))
    probability = 1 / (1 + np.exp(-score(np.column_stack([a.ravel(), b.ravel()])).reshape(a.shape)))
    ax.contourf(a, b, probability, levels=np.linspace(0, 1, 21), cmap="RdBu_r", alpha=0.45)
    for label, colour, marker in ((0, "#2166ac", "o"), (1, "#b2182b", "^")):
        ax.plot(*points[y_test == label].T, marker, color=colour, markersize=3, label=f"class {label}")
    ax.set_title(title)
    ax.legend(loc="upper right")


figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
draw_classes(left, X_test, lambda points: net.predict(u, points)[:, 0], "prediction")
moved = net.forward(u, X_test).states[-1]
draw_classes(middle, moved, lambda points: points @ u.W[0] + u.mu[0], "points at time T, linear classifier")
history.plot(ax=right).set_title("loss")
folder = Path(sys.argv[1] if len(sys.argv) > 1 else "ocdl-demo")
folder.mkdir(parents=True, exist_ok=True)
figure.savefig(folder / "spiral_resnet.png", dpi=120)
print(f"picture: {folder / 'spiral_resnet.png'}")
