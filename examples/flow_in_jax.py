"""
A flow in JAX, trained by optax
===============================

``ocdl.jax.flow`` is a function of controls and data that ``jit``, ``grad`` and ``vmap`` take like any other; compiled
code calls ocdl back, and its adjoint sweep is the derivative. Here it tells a ring from the disc inside, with fixed
time steps: what is left out of the dict of controls keeps its default and is not trained. Needs
``pip install 'ocdl[jax]'``.
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

jax.config.update("jax_enable_x64", True)  # networks have double precision by default

# %%
# A network as a function.
X, y = ocdl.datasets.make_donut2d(500, random_state=0)
net = ocdl.Network(2, 15, tableau="kutta4", horizon=5.0, augment=1)
outputs = ocdl.jax.flow(net)
start = net.init(random_state=0, scheme="scaled").parts()
controls = {name: jnp.asarray(part) for name, part in start.items() if name != "h"}


def loss(controls: dict, X: jax.Array, y: jax.Array) -> jax.Array:
    return optax.sigmoid_binary_cross_entropy(outputs(controls, X)[:, 0], y).mean()


# %%
# Training, compiled.
optimiser = optax.adam(optax.cosine_decay_schedule(0.05, 300))


@jax.jit
def step(controls: dict, state: optax.OptState) -> tuple[dict, optax.OptState, jax.Array]:
    value, slopes = jax.value_and_grad(loss)(controls, X, y)
    updates, state = optimiser.update(slopes, state)
    return optax.apply_updates(controls, updates), state, value


state, losses = optimiser.init(controls), []
for _ in range(300):
    controls, state, value = step(controls, state)
    losses.append(float(value))
u = net.controls(**{name: np.asarray(part) for name, part in controls.items()})
accuracy = np.mean((net.predict(u, X)[:, 0] > 0) == y)
print(f"loss {losses[0]:.3f} at first, {losses[-1]:.4f} at last; accuracy {accuracy:.3f}")

# %%
# ``vmap`` of the gradient: how much each sample pulls at the controls, and where these samples lie.
each = jax.jit(
    jax.vmap(jax.grad(lambda controls, x, label: loss(controls, x[None], label[None])), in_axes=(None, 0, 0))
)
slopes = each(controls, X, y)
pull = np.sqrt(sum(np.square(part).reshape(len(X), -1).sum(axis=1) for part in slopes.values()))
whole = jax.grad(loss)(controls, X, y)
difference = max(float(jnp.abs(slopes[name].mean(axis=0) - whole[name]).max()) for name in whole)
print(f"the mean of {len(X)} gradients differs from the gradient of the mean by {difference:.0e}")

# %%
# The training, and the samples by how much they pull.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.semilogy(losses)
left.set(xlabel="iteration", ylabel="cross entropy", title="optax's Adam")
shown = right.scatter(*X.T, c=pull, norm="log", cmap="viridis", s=12)
figure.colorbar(shown, label="norm of the sample's gradient")
right.set(title="who still pulls at the controls", aspect="equal")
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(Path(sys.argv[1]) / "flow_in_jax.png", dpi=110)
else:
    plt.show()
