"""How do the estimators with their defaults compare to scikit-learn's with theirs, on tables with noise and without?"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from statistics import mean, median, stdev
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts threads: a fit takes one

import joblib
import matplotlib.pyplot as plt
import numpy as np
import report
import tables
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_circles,
    make_classification,
    make_moons,
)
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ocdl

CLEAN: dict[str, Callable[[], Any]] = {
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
REGRESSION = {"regression": tables.REGRESSION_JUDGED_ON, "regression-chosen": tables.REGRESSION_CHOSEN_ON}
GROUPS = {"judged": tables.JUDGED_ON, "chosen": tables.CHOSEN_ON, "clean": CLEAN, **REGRESSION}

CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "ODEClassifier": lambda seed: ocdl.ODEClassifier(random_state=seed),
    'ODEClassifier(alpha="cv")': lambda seed: ocdl.ODEClassifier(alpha="cv", random_state=seed),
    "MLPClassifier": lambda seed: MLPClassifier(random_state=seed),
    "LogisticRegression": lambda seed: LogisticRegression(),
    "HistGradientBoostingClassifier": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}
REGRESSORS: dict[str, Callable[[int], Any]] = {
    "ODERegressor": lambda seed: ocdl.ODERegressor(random_state=seed),
    'ODERegressor(alpha="cv")': lambda seed: ocdl.ODERegressor(alpha="cv", random_state=seed),
    "MLPRegressor": lambda seed: TransformedTargetRegressor(
        MLPRegressor(max_iter=1000, random_state=seed), transformer=StandardScaler()
    ),
    "LinearRegression": lambda seed: LinearRegression(),
    "HistGradientBoostingRegressor": lambda seed: HistGradientBoostingRegressor(random_state=seed),
}


def calibration_error(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """The expected calibration error over ten bins of the confidence."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    bins = np.minimum((confidence * 10).astype(int), 9)
    return float(sum(abs((confidence - right)[bins == b].sum()) for b in np.unique(bins)) / len(labels))


def classify(name: str, group: str, label: str, seed: int) -> dict[str, Any]:
    """Five folds of a table: accuracy, log loss and calibration of the predictions of all rows, seconds per fit."""
    X, y = GROUPS[group][name]()
    classes, labels = np.unique(y, return_inverse=True)
    folds = StratifiedKFold(max(2, min(5, np.bincount(labels).min())), shuffle=True, random_state=seed)
    results, seconds = np.zeros((len(y), len(classes))), []
    for train, test in folds.split(X, labels):
        model, spent = fitted(CLASSIFIERS[label](seed), X[train], labels[train])
        seconds.append(spent)
        results[test] = model.predict_proba(X[test])
    return {
        "accuracy": float(np.mean(results.argmax(axis=1) == labels)),
        "log loss": float(log_loss(labels, results, labels=np.arange(len(classes)))),
        "calibration error": calibration_error(results, labels),
        "seconds": median(seconds),
    }


def regress(name: str, group: str, label: str, seed: int) -> dict[str, Any]:
    """Five folds of a table: R^2 of the predictions of all rows, seconds per fit."""
    X, y = GROUPS[group][name]()
    results, seconds = np.zeros(len(y)), []
    for train, test in KFold(5, shuffle=True, random_state=seed).split(X):
        model, spent = fitted(REGRESSORS[label](seed), X[train], y[train])
        seconds.append(spent)
        results[test] = model.predict(X[test])
    return {"R^2": float(r2_score(y, results)), "seconds": median(seconds)}


def fitted(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[Any, float]:
    pipeline = make_pipeline(StandardScaler(), model)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline.fit(X, y)
    return pipeline, time.perf_counter() - started


def compare(group: str, seeds: Iterable[int]) -> list[dict[str, Any]]:
    """All tables of a group with all contenders and seeds, on all cores, a fit on one."""
    contenders, judge = (REGRESSORS, regress) if group in REGRESSION else (CLASSIFIERS, classify)
    cases = [(name, label, seed) for name in GROUPS[group] for label in contenders for seed in seeds]
    work = (joblib.delayed(partial(judge, name, group, label, seed))() for name, label, seed in cases)
    results = joblib.Parallel(n_jobs=-1, return_as="generator")(work)
    rows = []
    for (name, label, seed), result in zip(cases, results, strict=True):
        rows.append({"data": name, "contender": label, "seed": seed} | result)
        print(f"\r{group}: {len(rows)} of {len(cases)}", end="", flush=True)
    print()
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """For each contender the mean over tables and seeds, the spread over the seeds, and the fit time beside MLP's."""
    labels = list(dict.fromkeys(row["contender"] for row in rows))
    by = {(row["contender"], row["data"], row["seed"]): row for row in rows}
    names = list(dict.fromkeys(row["data"] for row in rows))
    seeds = list(dict.fromkeys(row["seed"] for row in rows))
    peer = next(label for label in labels if label.startswith("MLP"))
    total = {}
    for label in labels:
        output: dict[str, float] = {}
        for measure in ("accuracy", "log loss", "calibration error", "R^2"):
            if measure in rows[0]:
                means = [mean(by[label, name, seed][measure] for name in names) for seed in seeds]
                output[measure] = mean(means)
                output[f"{measure}, spread"] = stdev(means) if len(means) > 1 else 0.0
                output[f"{measure}, median"] = median(
                    mean(by[label, name, seed][measure] for seed in seeds) for name in names
                )
        output["fit time / MLP's"] = median(
            by[label, name, seed]["seconds"] / by[peer, name, seed]["seconds"] for name in names for seed in seeds
        )
        total[label] = output
    return total


def plot(totals: dict[str, dict[str, dict[str, float]]]) -> None:
    panels = [("judged", "accuracy"), ("judged", "log loss"), ("clean", "accuracy"), ("regression", "R^2")]
    panels = [(group, measure) for group, measure in panels if group in totals]
    with plt.rc_context(report.STYLE):
        figure, axes = plt.subplots(1, len(panels), figsize=(4 * len(panels), 3), layout="constrained", squeeze=False)
        for ax, (group, measure) in zip(axes[0], panels, strict=True):
            total = totals[group]
            labels = list(total)[::-1]
            ax.plot([total[label][measure] for label in labels], labels, report.MARKERS[0], color=report.COLOURS[0])
            low = min(total[label][measure] for label in labels)
            high = max(total[label][measure] for label in labels)
            ax.set_xlim(low - 0.5 * (high - low), high + 0.1 * (high - low))
            ax.set_xlabel(f"{measure}, {group}")
        report.save_figure("estimator", figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", nargs="+", default=["judged", "clean", "regression"], choices=list(GROUPS))
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    before = report.load("estimator")  # groups that are not run keep their results
    rows, totals = before.get("rows", {}), before.get("summary", {})
    for group in options.groups:
        rows[group] = compare(group, range(options.seeds))
        totals[group] = summary(rows[group])
        measures = list(next(iter(totals[group].values())))
        lines = [(label, *(f"{output[m]:.4f}" for m in measures)) for label, output in totals[group].items()]
        report.print_table((group, *measures), lines)
        report.save("estimator", {"summary": totals, "rows": rows})
    plot(totals)


if __name__ == "__main__":
    main()
