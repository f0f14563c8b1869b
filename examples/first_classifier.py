"""
A first classifier
==================

``ODEClassifier`` is a scikit-learn estimator: it moves the points by a learned flow until a line separates the classes.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ocdl

# %%
# Two spirals, a pipeline, a score on points it has not seen.
X, y = ocdl.datasets.make_spiral(random_state=0)
X_test, y_test = ocdl.datasets.make_spiral(random_state=1)
model = make_pipeline(StandardScaler(), ocdl.ODEClassifier(random_state=0)).fit(X, y)
print(f"accuracy {model.score(X, y):.3f} (train), {model.score(X_test, y_test):.3f} (test)")

# %%
# What it predicts in the plane, and where the flow takes the points.
figure = plt.figure(figsize=(14, 3.8), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1, 2.6))
ocdl.plot.prediction(model, X_test, y_test, legend=False, ax=left.subplots()).ax.set_title("prediction")
ocdl.plot.snapshots(model, X_test, y_test, layers=3, same_limits=False, fig=right)
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(Path(sys.argv[1]) / "first_classifier.png", dpi=110)
else:
    plt.show()
