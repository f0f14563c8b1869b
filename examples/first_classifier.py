# %% [markdown]
# # A first classifier
# `ODEClassifier` is a scikit-learn estimator: it moves the points by a learned flow until a line separates the classes.
# Run it with `python examples/first_classifier.py [folder]`.

# %%
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ocdl

# %% Two spirals, a pipeline, a score on points it has not seen.
X, y = ocdl.datasets.make_spiral(random_state=0)
X_test, y_test = ocdl.datasets.make_spiral(random_state=1)
model = make_pipeline(StandardScaler(), ocdl.ODEClassifier(random_state=0)).fit(X, y)
print(f"accuracy {model.score(X, y):.3f} (train), {model.score(X_test, y_test):.3f} (test)")

# %% The probability of class 1 in the plane, and where the flow takes the points.
COLOURS = np.array(["#2166ac", "#b2182b"])
figure, panels = plt.subplots(1, 4, figsize=(14, 3.5), layout="constrained")
axis = np.linspace(-1.3, 1.3, 300)
grid = np.stack(np.meshgrid(axis, axis), axis=-1)
probability = model.predict_proba(grid.reshape(-1, 2))[:, 1].reshape(300, 300)
panels[0].contourf(axis, axis, probability, levels=np.linspace(0, 1, 21), cmap="RdBu_r", alpha=0.5)
panels[0].scatter(*X_test.T, s=4, c=COLOURS[y_test])
panels[0].set_title("prediction")
classifier = model[-1]
states = classifier.trajectory(model[0].transform(X_test))
for panel, layer in zip(panels[1:], (0, classifier.n_layers // 2, classifier.n_layers), strict=True):
    panel.scatter(*states[layer, :, :2].T, s=4, c=COLOURS[y_test])  # the third component started at 0
    panel.set_title(f"after {layer} of {classifier.n_layers} layers")
folder = Path(sys.argv[1] if len(sys.argv) > 1 else "ocdl-demo")
folder.mkdir(parents=True, exist_ok=True)
figure.savefig(folder / "first_classifier.png", dpi=110)
print(f"picture: {folder / 'first_classifier.png'}")
