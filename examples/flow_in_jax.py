"""
A flow in JAX, trained by optax
===============================

``ocdl.jax.flow`` is a function of controls and data to which ``jit``, ``grad``
and ``vmap`` apply. Compiled code calls ocdl, and the adjoint sweep is its
derivative. Here it separates a ring from the disc inside. The time steps are
fixed: a part that is not in the dict of controls keeps its default and is not
trained. You need ``pip install 'ocdl[jax]'``.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

import ocdl
import ocdl.jax

# Networks have double precision unless you choose otherwise.
jax.config.update("jax_enable_x64", True)

# %%
# Make a function of a network.
X, y = ocdl.datasets.make_donut2d(500, random_state=0)
net = ocdl.Network(2, 15, tableau="kutta4", horizon=5.0, augment=1)
outputs = ocdl.jax.flow(net)
start = net.init(random_state=0, scheme="scaled").parts()
controls = {
    name: jnp.asarray(part)
    for name, part in start.items()
    if name != "h"
}


def loss(controls: dict, X: jax.Array, y: jax.Array) -> jax.Array:
    z = outputs(controls, X)[:, 0]
    return optax.sigmoid_binary_cross_entropy(z, y).mean()


# %%
# Compile the training.
optimiser = optax.adam(optax.cosine_decay_schedule(0.05, 300))


@jax.jit
def step(
    controls: dict, state: optax.OptState
) -> tuple[dict, optax.OptState, jax.Array]:
    value, gradient = jax.value_and_grad(loss)(controls, X, y)
    updates, state = optimiser.update(gradient, state)
    return optax.apply_updates(controls, updates), state, value


state, losses = optimiser.init(controls), []
for _ in range(300):
    controls, state, value = step(controls, state)
    losses.append(float(value))
u = net.controls(
    **{name: np.asarray(part) for name, part in controls.items()}
)
accuracy = np.mean((net.predict(u, X)[:, 0] > 0) == y)
print(f"loss {losses[0]:.3f} at the start, {losses[-1]:.4f} at the end")
print(f"accuracy {accuracy:.3f}")

# %%
# ``vmap`` of the gradient computes the gradient of each sample's loss.


def sample_loss(
    controls: dict, x: jax.Array, label: jax.Array
) -> jax.Array:
    return loss(controls, x[None], label[None])


sample_gradients = jax.jit(
    jax.vmap(jax.grad(sample_loss), (None, 0, 0))
)
gradients = sample_gradients(controls, X, y)
squares = [
    np.square(part).reshape(len(X), -1).sum(axis=1)
    for part in gradients.values()
]
norms = np.sqrt(sum(squares))
whole = jax.grad(loss)(controls, X, y)
difference = max(
    float(jnp.abs(gradients[name].mean(axis=0) - whole[name]).max())
    for name in whole
)
print(f"mean of the gradients - gradient of the mean: {difference:.0e}")

# %%
# Draw the loss, and the samples by the norms of their gradients.
figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4), layout="constrained"
)
left.semilogy(losses)
left.set(
    xlabel="iteration", ylabel="cross entropy", title="optax's Adam"
)
shown = right.scatter(*X.T, c=norms, norm="log", cmap="viridis", s=12)
figure.colorbar(shown, label="norm of the sample's gradient")
right.set(title="the samples that still matter", aspect="equal")
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(Path(sys.argv[1]) / "flow_in_jax.png", dpi=110)
else:
    plt.show()
