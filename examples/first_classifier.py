"""
A first classifier
==================

``ODEClassifier`` is a scikit-learn estimator. It moves the points along a
learned flow until a straight line separates the classes.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ocdl

# %%
# Fit a pipeline to two spirals and score it on new points.
X, y = ocdl.datasets.make_spiral(random_state=0)
X_test, y_test = ocdl.datasets.make_spiral(random_state=1)
model = make_pipeline(
    StandardScaler(), ocdl.ODEClassifier(random_state=0)
).fit(X, y)
train, test = model.score(X, y), model.score(X_test, y_test)
print(f"accuracy {train:.3f} (train), {test:.3f} (test)")

# %%
# Draw the prediction in the plane, and the points on their way through
# the layers.
figure = plt.figure(figsize=(14, 3.8), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1, 2.6))
ocdl.plot.prediction(
    model, X_test, y_test, legend=False, ax=left.subplots()
).ax.set_title("prediction")
ocdl.plot.snapshots(
    model, X_test, y_test, layers=3, same_limits=False, fig=right
)
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(Path(sys.argv[1]) / "first_classifier.png", dpi=110)
else:
    plt.show()
