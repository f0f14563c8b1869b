"""
A flow inside a PyTorch model
=============================

The middle of a model is a learned differential equation: a linear layer lifts the points of two spirals, the flow
moves them for one unit of time, another linear layer reads the classes. All three learn together, from batches of a
DataLoader, with an optimiser of PyTorch; the flow's part of the backward pass is ocdl's adjoint sweep. Needs
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
# The data: three quarters to learn from, the rest to look at.
X, y = ocdl.datasets.make_spiral(1200, random_state=0)
rows, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
known, held_out = order[:900], order[900:]
loader = DataLoader(
    TensorDataset(rows[known], labels[known]),
    batch_size=100,
    shuffle=True,
    generator=torch.Generator().manual_seed(1),
)

# %%
# The model. Networks of single precision fit the rest of PyTorch; learned steps live on the simplex.
torch.manual_seed(0)
net = ocdl.Network(4, 12, tableau="kutta4", time_steps="simplex", horizon=5.0, dtype="float32")
flow = ocdl.torch.OCDLayer(net, returns="state")
model = torch.nn.Sequential(torch.nn.Linear(2, 4), flow, torch.nn.Linear(4, 2))
optimiser = torch.optim.Adam(model.parameters(), lr=0.02)

# %%
# Any training loop works; ``project_`` puts the steps back onto the simplex.
losses = []
for epoch in range(60):
    total = 0.0
    for some_rows, some_labels in loader:
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(some_rows), some_labels)
        loss.backward()
        optimiser.step()
        flow.project_()
        total += loss.item() * len(some_rows)
    losses.append(total / len(known))
    if epoch % 20 == 19:
        print(f"epoch {epoch + 1}: loss {losses[-1]:.4f}")
with torch.no_grad():
    accuracy = (model(rows[held_out]).argmax(dim=1) == labels[held_out]).float().mean().item()
print(f"accuracy on points that it has not seen: {accuracy:.3f}")

# %%
# The controls are ocdl's again, with all its functions of a flow.
u = flow.to_controls()
with torch.no_grad():
    lifted = model[0](rows[held_out]).numpy()
print(f"steps from {u.h.min():.2f} to {u.h.max():.2f}, sum {u.h.sum():.2f}")
print("same states:", np.array_equal(net.final_state(u, lifted), model[:2](rows[held_out]).detach().numpy()))

# %%
# The loss, the decision in the plane, and the two directions of the state that vary most, before and after.
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
left.semilogy(1 + np.arange(len(losses)), losses)
left.set(xlabel="epoch", ylabel="cross entropy", title="training")
edge = 1.1 * np.abs(X).max()
axis = np.linspace(-edge, edge, 200, dtype=np.float32)
plane = torch.tensor(np.stack(np.meshgrid(axis, axis), axis=-1))  # (200, 200, 2): any axes before the features
with torch.no_grad():
    share = torch.softmax(model(plane), dim=-1)[..., 1].numpy()
    moved = model[:2](rows[held_out]).numpy()
middle.contourf(axis, axis, share, levels=np.linspace(0, 1, 11), cmap="RdBu", alpha=0.6)
colours, marks = ("tab:red", "tab:blue"), ("^", "o")
truth = labels[held_out].numpy()
_, _, directions = np.linalg.svd(moved - moved.mean(axis=0), full_matrices=False)
for label, (colour, mark) in enumerate(zip(colours, marks, strict=True)):
    chosen = truth == label
    middle.plot(*rows[held_out].numpy()[chosen].T, mark, color=colour, markersize=3)
    right.plot(*(moved[chosen] @ directions[:2].T).T, mark, color=colour, markersize=3, label=f"class {label}")
middle.set(title=f"held-out points and the decision\naccuracy {accuracy:.3f}", aspect="equal")
right.set(title="the same points after the flow,\nin their two main directions")
right.legend(frameon=False)
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(Path(sys.argv[1]) / "flow_in_torch.png", dpi=110)
else:
    plt.show()
