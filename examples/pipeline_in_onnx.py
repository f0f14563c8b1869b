"""
A trained pipeline where there is no Python
===========================================

A pipeline of scikit-learn that ends with an ``ODEClassifier`` becomes one file in ONNX, scaler included, which
onnxruntime runs: same labels, same probabilities. A network by itself is exported with the states after every layer,
and a pruned one has few nodes. Needs ``pip install 'ocdl[onnx]'``.
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
# Two spirals with names for classes, learned and converted whole.
X, y = ocdl.datasets.make_spiral(600, random_state=0)
names = np.array(["first arm", "second arm"])[y]
model = make_pipeline(StandardScaler(), ocdl.ODEClassifier(architecture="odenet+simplex", random_state=0)).fit(X, names)
converted = skl2onnx.to_onnx(model, X[:1])  # an example of what comes in: float64, two columns
(folder / "spiral.onnx").write_bytes(converted.SerializeToString())

session = onnxruntime.InferenceSession(folder / "spiral.onnx")
labels, probabilities = session.run(None, {"X": X})
print(f"accuracy {np.mean(labels == names):.3f} in onnxruntime, {model.score(X, names):.3f} in scikit-learn")
print("all labels equal:", np.array_equal(labels, model.predict(X)))
print(f"largest difference of a probability: {np.abs(probabilities - model.predict_proba(X)).max():.0e}")

# %%
# The network by itself: ``to_onnx`` of the estimator, or any network with its controls.
classifier = model[-1]
net, u = classifier.network_, classifier.controls_
scaled = model[0].transform(X)
ocdl.export_onnx(folder / "states.onnx", net, u, outputs="states")
(states,) = onnxruntime.InferenceSession(folder / "states.onnx").run(None, {"X": scaled})
print(f"states {states.shape}, different by {np.abs(states - net.forward(u, scaled).states).max():.0e}")
print(net.saving(u), "- and they are in none of the files")

# %%
# Everything that is drawn comes from onnxruntime.
figure, panels = plt.subplots(1, 4, figsize=(14, 3.6), layout="constrained")
edge = 1.1 * np.abs(X).max()
axis = np.linspace(-edge, edge, 200)
plane = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
share = session.run(["probabilities"], {"X": plane})[0][:, 1].reshape(200, 200)
panels[0].contourf(axis, axis, share, levels=np.linspace(0, 1, 11), cmap="RdBu", alpha=0.6)
panels[0].set(title="probabilities in onnxruntime", aspect="equal")
moments = [0, net.n_layers - 2, net.n_layers]
for label, (colour, mark) in enumerate((("tab:red", "^"), ("tab:blue", "o"))):
    panels[0].plot(*X[y == label].T, mark, color=colour, markersize=2)
    for panel, layer in zip(panels[1:], moments, strict=True):
        panel.plot(*states[layer][y == label, :2].T, mark, color=colour, markersize=2)
        panel.set_title(f"first components after {layer} layers")
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(folder / "pipeline_in_onnx.png", dpi=110)
else:
    plt.show()
