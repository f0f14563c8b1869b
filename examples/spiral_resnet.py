"""
A ResNet learns two spirals
===========================

A residual network is Euler's method for y' = tanh(K y + b): each layer moves
the points a little. Here gradient descent with backtracking, the paper's
Algorithm 2, finds its controls.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt

import ocdl

# %%
# There are two noisy spirals, one per class, and as many test points.
X, y = ocdl.datasets.make_spiral(random_state=1)
X_test, y_test = ocdl.datasets.make_spiral(random_state=2)

# %%
# Train the network by 10,000 iterations of Algorithm 2
# (``ocdl.Backtracking``, the default).
net = ocdl.Network.preset("resnet", n_features=2, n_layers=20)
result = ocdl.train(
    net,
    net.init(random_state=1),
    X,
    y,
    max_iter=10_000,
    validation=(X_test, y_test),
)
u, history = result.controls, result.history
print(f"{result.message}; {history.seconds[-1]:.1f} s")
train, test = history.accuracy[-1], history.val_accuracy[-1]
print(f"accuracy {train:.3f} (train), {test:.3f} (test)")


# %%
# Draw the classifier in the plane, the points at time T, and the loss.
figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(13, 4), layout="constrained"
)
ocdl.plot.prediction(
    (net, u), X_test, y_test, ax=left, legend=False
).ax.set_title("prediction")
ocdl.plot.transformation(
    (net, u), X_test, y_test, ax=middle, legend=False
).ax.set_title("points at time T")
ocdl.plot.history(result, ax=right).ax.set_title("loss")
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(Path(sys.argv[1]) / "spiral_resnet.png", dpi=110)
else:
    plt.show()
