"""
A Runge-Kutta method of your own
================================

A method is given by its coefficients. Its order, the symplectic partner that
computes the costates, and exact gradients follow from them.
"""

import sys
from fractions import Fraction as F
from pathlib import Path

import matplotlib.pyplot as plt

import ocdl

# %%
# This method has three stages, at the times 0, 1/2 and 3/4. Its order,
# three, is derived from the coefficients.
own = ocdl.Tableau(
    A=[[0, 0, 0], [F(1, 2), 0, 0], [0, F(3, 4), 0]],
    b=[F(2, 9), F(1, 3), F(4, 9)],
    name="ralston3",
)
print(own)
print("times of the stages:", own.c)
print("the partner for the costates:", own.adjoint())

# %%
# The partner integrates the costates. Its coefficients are
# b_j - b_j a_ji / b_i, which makes the gradient exact. ``certify`` measures
# the gradient and the order on a network with data.
X, y = ocdl.datasets.make_squares(random_state=0)
X_test, y_test = ocdl.datasets.make_squares(random_state=1)
net = ocdl.Network(n_features=2, n_layers=10, tableau=own)
print(net.certify(net.init(random_state=0), X, y))

# %%
# Train with Euler's method and with the new one.
networks = {"euler": ocdl.Network(2, 10), "ralston3": net}
optimiser = ocdl.Chain((ocdl.Adam(lr=0.05), 100), (ocdl.LBFGS(), None))
objective = ocdl.Objective(
    "cross_entropy", penalties=ocdl.Tikhonov(1e-4)
)
trained = {
    name: ocdl.train(
        network,
        network.init(random_state=0),
        X,
        y,
        objective=objective,
        optimiser=optimiser,
        max_iter=300,
        validation=(X_test, y_test),
        eval_every=10,
    )
    for name, network in networks.items()
}
for name, result in trained.items():
    loss = result.history.loss[-1]
    accuracy = result.history.val_accuracy[-1]
    print(f"{name}: loss {loss:.4f}, test accuracy {accuracy:.3f}")

# %%
figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(13.5, 3.8), layout="constrained"
)
ocdl.plot.history(trained, ax=left).ax.set_title("loss")
model = (net, trained["ralston3"].controls)
ocdl.plot.prediction(
    model, X_test, y_test, legend=False, ax=middle
).ax.set_title("prediction with the new method")
ocdl.plot.transformation(
    model, X_test, y_test, legend=False, ax=right
).ax.set_title("points at time T")
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(Path(sys.argv[1]) / "own_tableau.png", dpi=110)
else:
    plt.show()
