"""How does `ODEClassifier` with its defaults compare to scikit-learn's `MLPClassifier` with its own?"""

from __future__ import annotations

import argparse
import time
import warnings
from statistics import mean, median
from typing import Any

import matplotlib.pyplot as plt
import report
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_circles,
    make_classification,
    make_moons,
)
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ocdl

DATA = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "moons": lambda: make_moons(500, noise=0.25, random_state=0),
    "circles": lambda: make_circles(500, noise=0.1, factor=0.6, random_state=0),
    "classification": lambda: make_classification(500, n_informative=5, n_classes=3, random_state=0),
    "donut1d": lambda: ocdl.datasets.make_donut1d(random_state=0),
    "donut2d": lambda: ocdl.datasets.make_donut2d(random_state=0),
    "squares": lambda: ocdl.datasets.make_squares(random_state=0),
    "spiral": lambda: ocdl.datasets.make_spiral(random_state=0),
}


def fold(model: Any, X: Any, y: Any, train: Any, test: Any) -> tuple[float, float]:
    """Accuracy on the test samples and seconds of the fit."""
    pipeline = make_pipeline(StandardScaler(), model)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline.fit(X[train], y[train])
    return pipeline.score(X[test], y[test]), time.perf_counter() - started


def compare(name: str, contenders: dict[str, Any]) -> dict[str, Any]:
    """Five folds, the contenders taking turns in each."""
    X, y = DATA[name]()
    scores: dict[str, list[float]] = {label: [] for label in contenders}
    seconds: dict[str, list[float]] = {label: [] for label in contenders}
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        for label, model in contenders.items():
            score, spent = fold(model, X, y, train, test)
            scores[label].append(score)
            seconds[label].append(spent)
    return {
        "data": name,
        "shape": X.shape,
        "accuracy": {label: mean(values) for label, values in scores.items()},
        "seconds": {label: median(values) for label, values in seconds.items()},
    }


def summary(rows: list[dict[str, Any]], labels: list[str]) -> dict[str, Any]:
    return {
        "accuracy": {label: mean(row["accuracy"][label] for row in rows) for label in labels},
        "seconds": {label: median(row["seconds"][label] for row in rows) for label in labels},
        "speed-up": median(row["seconds"]["MLPClassifier"] / row["seconds"]["ODEClassifier"] for row in rows),
    }


def plot(rows: list[dict[str, Any]], labels: list[str]) -> None:
    with plt.rc_context(report.STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", sharey=True)
        for label, colour, marker in zip(labels, report.COLOURS, report.MARKERS, strict=False):
            names = [row["data"] for row in rows]
            left.plot([row["accuracy"][label] for row in rows], names, marker, color=colour, label=label)
            right.plot([row["seconds"][label] for row in rows], names, marker, color=colour)
        left.invert_yaxis()
        left.set_xlabel("accuracy, mean of five folds")
        right.set_xlabel("seconds per fit, median of five folds")
        right.set_xscale("log")
        left.legend(loc="lower left")
        report.save_figure("estimator", figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=list(DATA))
    options = parser.parse_args()
    contenders = {"ODEClassifier": ocdl.ODEClassifier(random_state=0), "MLPClassifier": MLPClassifier(random_state=0)}
    labels = list(contenders)
    rows = [compare(name, contenders) for name in options.data]
    total = summary(rows, labels)
    lines = [
        (row["data"], *(f"{row['accuracy'][label]:.3f}" for label in labels), *map(in_seconds, row["seconds"].values()))
        for row in rows
    ]
    average = (f"{total['accuracy'][label]:.4f}" for label in labels)
    lines.append(("mean accuracy, median time", *average, *map(in_seconds, total["seconds"].values())))
    report.print_table(("data", *(f"{label}" for label in labels), *(f"{label}, fit" for label in labels)), lines)
    print(f"ODEClassifier fits {total['speed-up']:.1f} times as fast in the median")
    report.save("estimator", {"rows": rows, "summary": total})
    plot(rows, labels)


def in_seconds(value: float) -> str:
    return f"{value:.3f} s"


if __name__ == "__main__":
    main()
