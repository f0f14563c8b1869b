"""
Your own data, your own picture
===============================

Pass a table with named columns through scikit-learn's tools to
``ODEClassifier``. Every function of ``ocdl.plot`` draws on the axes that you
give it and returns what it drew.
"""

import io
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ocdl


# %%
# Any CSV file will do. This one is made up: the bills of penguins in
# millimetres, and the name of one of three species.
def made_up_csv() -> str:
    """Return a table as a file would hold it."""
    rng = np.random.default_rng(0)
    centres = {
        "Adelie": (38.8, 18.3),
        "Chinstrap": (48.8, 18.4),
        "Gentoo": (47.5, 15.0),
    }
    rows = [
        f"{x:.1f},{d:.1f},{s}"
        for s, c in centres.items()
        for x, d in rng.normal(c, (2.6, 1.0), (110, 2))
    ]
    return "\n".join(["bill_length,bill_depth,species", *rows])


table = np.genfromtxt(
    io.StringIO(made_up_csv()),
    delimiter=",",
    names=True,
    dtype=None,
    encoding="utf-8",
)
X = np.column_stack([table["bill_length"], table["bill_depth"]])
y = table["species"]
X_train, X_test, y_train, y_test = train_test_split(
    X, y, stratify=y, random_state=0
)

# %%
# Put scaling and classifier into a pipeline; the labels stay text.
classifier = ocdl.ODEClassifier(random_state=0)
model = make_pipeline(StandardScaler(), classifier)
scores = cross_val_score(model, X_train, y_train)
print(f"cross-validated accuracy {scores.mean():.3f}")
model.fit(X_train, y_train)
print(f"test accuracy {model.score(X_test, y_test):.3f}")

# %%
# How safe is a prediction? Compute the distance, in standard deviations,
# at which it changes.
perturbation = classifier.network_.minimal_perturbation(
    classifier.controls_, model[0].transform(X_test), radius=3.0
)
least_safe = np.argsort(perturbation.distance)[:8]
farthest = perturbation.distance[least_safe[-1]]
print(f"eight predictions change within {farthest:.2f} deviations")

# %%
# Draw on axes of your own, and add something to the picture.
figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=(3, 2)
)
ocdl.plot.prediction(model, X_test, y_test, ax=left)
left.scatter(
    *X_test[least_safe].T,
    s=110,
    facecolors="none",
    edgecolors="black",
    linewidths=1.3,
)
left.set(
    xlabel="bill length [mm]",
    title="prediction; circles: the least safe ones",
    aspect="auto",
    ylim=(12, 22),
)
left.set_ylabel("bill depth [mm]", rotation=90)
right.hist(
    perturbation.distance[np.isfinite(perturbation.distance)],
    bins=20,
    color="0.6",
    edgecolor="white",
)
right.set(
    xlabel="distance to another prediction",
    ylabel="samples",
    title="how safe the predictions are",
)
if len(sys.argv) > 1:  # a folder for the picture
    figure.savefig(Path(sys.argv[1]) / "own_data_own_plot.png", dpi=110)
else:
    plt.show()
