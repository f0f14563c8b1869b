# %% [markdown]
# # A ResNet learns two spirals
# A residual network is Euler's method for y' = tanh(K y + b): each layer moves the points a little. Here its controls
# are found by gradient descent with backtracking (the paper's Algorithm 2), written out by hand on top of the exact
# gradient, and drawn. Run it with `python examples/spiral_resnet.py [folder]`.

# %%
import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import ocdl

# %% Two noisy spirals, one per class.
rng = np.random.default_rng(1)


def spirals(samples):
    turn, radius = np.linspace(0.1, 2 * np.pi, samples // 2), np.linspace(0.1, 1.0, samples // 2)
    arm = np.column_stack([radius * np.cos(turn), radius * np.sin(turn)])
    X = np.vstack([arm, -arm]) + 0.05 * rng.standard_normal((2 * len(arm), 2))
    return X, np.repeat([0, 1], len(arm))


X, y = spirals(1000)
X_test, y_test = spirals(1000)

# %% The network, its start, and Algorithm 2: a step of length 1/L, taken once it decreases J enough.
net = ocdl.Network.preset("resnet", n_features=2, n_layers=20)
u = net.init(random_state=1)
L, losses = 0.1, []
started = time.perf_counter()
J, g = net.value_and_grad(u, X, y)
for _ in range(10_000):
    decrease = g.dot(g) / 2
    while True:
        trial = u - (1 / L) * g
        J_trial, g_trial = net.value_and_grad(trial, X, y)
        if J_trial <= J - decrease / L:
            break
        L *= 1.5
    u, J, g, L = trial, J_trial, g_trial, 0.99 * L
    losses.append(J)
seconds = time.perf_counter() - started

# %% How well it does on points it has not seen.
accuracy = {
    name: np.mean((net.predict(u, points)[:, 0] > 0) == labels)
    for name, points, labels in (("train", X, y), ("test", X_test, y_test))
}
print(f"{len(losses)} steps in {seconds:.1f} s: loss {J:.5f}, accuracy {accuracy['train']:.3f} (train), ", end="")
print(f"{accuracy['test']:.3f} (test)")


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
right.loglog(np.arange(1, len(losses) + 1), losses, color="black")
right.set(title="loss", xlabel="iteration")
folder = Path(sys.argv[1] if len(sys.argv) > 1 else "ocdl-demo")
folder.mkdir(parents=True, exist_ok=True)
figure.savefig(folder / "spiral_resnet.png", dpi=120)
print(f"picture: {folder / 'spiral_resnet.png'}")
