"""
A flow inside a PyTorch model
=============================

The middle of this model is a learned differential equation: a linear layer
lifts the points of two spirals to four dimensions, the flow moves them, and
another linear layer computes the scores of the classes. An optimiser of
PyTorch trains all three together, with batches of a DataLoader. The flow's
part of the backward pass is ocdl's adjoint sweep. You need
``pip install 'ocdl[torch]'``.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

import ocdl
import ocdl.torch

# %%
# Train with three quarters of the points and test with the rest.
X, y = ocdl.datasets.make_spiral(1200, random_state=0)
rows, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
order = torch.randperm(
    len(rows), generator=torch.Generator().manual_seed(0)
)
known, held_out = order[:900], order[900:]
loader = DataLoader(
    TensorDataset(rows[known], labels[known]),
    batch_size=100,
    shuffle=True,
    generator=torch.Generator().manual_seed(1),
)

# %%
# PyTorch computes in single precision, and so does this network. Its time
# steps are learned on the simplex.
torch.manual_seed(0)
net = ocdl.Network(
    4,
    12,
    tableau="kutta4",
    time_steps="simplex",
    horizon=5.0,
    dtype="float32",
)
flow = ocdl.torch.OCDLayer(net, returns="state")
model = torch.nn.Sequential(
    torch.nn.Linear(2, 4), flow, torch.nn.Linear(4, 2)
)
optimiser = torch.optim.Adam(model.parameters(), lr=0.02)

# %%
# The training loop is the usual one; ``project_`` projects the steps onto
# the simplex.
losses = []
for epoch in range(60):
    total = 0.0
    for some_rows, some_labels in loader:
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            model(some_rows), some_labels
        )
        loss.backward()
        optimiser.step()
        flow.project_()
        total += loss.item() * len(some_rows)
    losses.append(total / len(known))
    if epoch % 20 == 19:
        print(f"epoch {epoch + 1}: loss {losses[-1]:.4f}")
with torch.no_grad():
    predicted = model(rows[held_out]).argmax(dim=1)
accuracy = (predicted == labels[held_out]).float().mean().item()
print(f"accuracy on the test points: {accuracy:.3f}")

# %%
# Take the controls back to ocdl, where all its functions apply to them.
u = flow.to_controls()
with torch.no_grad():
    lifted = model[0](rows[held_out]).numpy()
    states = model[:2](rows[held_out]).numpy()
print(f"steps from {u.h.min():.2f} to {u.h.max():.2f}")
print(
    "same states:", np.array_equal(net.final_state(u, lifted), states)
)

# %%
# Draw the loss, the prediction in the plane, and the states after the flow
# in the two directions in which they vary most.
figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(13, 4), layout="constrained"
)
left.semilogy(1 + np.arange(len(losses)), losses)
left.set(xlabel="epoch", ylabel="cross entropy", title="training")
edge = 1.1 * np.abs(X).max()
axis = np.linspace(-edge, edge, 200, dtype=np.float32)
plane = torch.tensor(np.stack(np.meshgrid(axis, axis), axis=-1))
with torch.no_grad():
    probability = torch.softmax(model(plane), dim=-1)[..., 1].numpy()
middle.contourf(axis, axis, probability, 10, cmap="PuOr", alpha=0.6)
centred = states - states.mean(axis=0)
directions = np.linalg.svd(centred, full_matrices=False)[2][:2]
for label in (0, 1):
    is_label = labels[held_out].numpy() == label
    style = ocdl.plot.style(label) | {"s": 10}
    middle.scatter(*rows[held_out].numpy()[is_label].T, **style)
    points = states[is_label] @ directions.T
    right.scatter(*points.T, **style, label=f"class {label}")
middle.set(title=f"test accuracy {accuracy:.3f}", aspect="equal")
right.set(title="after the flow, in two directions")
right.legend(frameon=False)
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(Path(sys.argv[1]) / "flow_in_torch.png", dpi=110)
else:
    plt.show()
