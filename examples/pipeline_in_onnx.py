"""
A trained pipeline where there is no Python
===========================================

Convert a pipeline of scikit-learn that ends with an ``ODEClassifier`` to one
ONNX file, with its scaler. onnxruntime computes the same labels and
probabilities from it. You can also export a network alone, with the states
after every layer. You need ``pip install 'ocdl[onnx]'``.
"""

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import skl2onnx
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ocdl

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())

# %%
# Fit a pipeline to two spirals whose classes have names, and convert it.
X, y = ocdl.datasets.make_spiral(600, random_state=0)
names = np.array(["first arm", "second arm"])[y]
model = make_pipeline(
    StandardScaler(),
    ocdl.ODEClassifier(architecture="odenet+simplex", random_state=0),
).fit(X, names)
converted = skl2onnx.to_onnx(model, X[:1])  # a row shows the input type
(folder / "spiral.onnx").write_bytes(converted.SerializeToString())

session = onnxruntime.InferenceSession(folder / "spiral.onnx")
labels, probabilities = session.run(None, {"X": X})
difference = np.abs(probabilities - model.predict_proba(X)).max()
print(f"accuracy {np.mean(labels == names):.3f} in onnxruntime")
print(f"accuracy {model.score(X, names):.3f} in scikit-learn")
print("all labels equal:", np.array_equal(labels, model.predict(X)))
print(f"largest difference of a probability: {difference:.0e}")

# %%
# Export the network alone, with its controls.
classifier = model[-1]
net, u = classifier.network_, classifier.controls_
scaled = model[0].transform(X)
ocdl.export_onnx(folder / "states.onnx", net, u, outputs="states")
network_session = onnxruntime.InferenceSession(folder / "states.onnx")
(states,) = network_session.run(None, {"X": scaled})
difference = np.abs(states - net.forward(u, scaled).states).max()
print(f"states {states.shape}, largest difference {difference:.0e}")
print(net.saving(u), "(the files do not contain them)")

# %%
# Draw what onnxruntime computes.
figure, panels = plt.subplots(
    1, 4, figsize=(14, 3.6), layout="constrained"
)
edge = 1.1 * np.abs(X).max()
axis = np.linspace(-edge, edge, 200)
plane = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
(computed,) = session.run(["probabilities"], {"X": plane})
probability = computed[:, 1].reshape(200, 200)
panels[0].contourf(axis, axis, probability, 10, cmap="PuOr", alpha=0.6)
panels[0].set(title="probabilities in onnxruntime", aspect="equal")
layers = [0, net.n_layers - 2, net.n_layers]
for label in (0, 1):
    style = ocdl.plot.style(label) | {"s": 6}
    panels[0].scatter(*X[y == label].T, **style)
    for panel, layer in zip(panels[1:], layers, strict=True):
        panel.scatter(*states[layer][y == label, :2].T, **style)
        panel.set_title(f"after {layer} layers")
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(folder / "pipeline_in_onnx.png", dpi=110)
else:
    plt.show()
