"""The scores of a model, and those of a baseline that uses no column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.base.names import pluralise
from ocdl.base.validation import FloatArray
from ocdl.cli._interrupts import reraise_swallowed_interrupts
from ocdl.cli._output import UserError, escape_unprintable, format_table, wrap_text
from ocdl.tables.model import TableModel

SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)  # keeps the log loss of a certain but wrong prediction finite
MAX_CLASSES = 12  # of a confusion matrix that is printed

Scores = dict[str, Any]


@reraise_swallowed_interrupts
def evaluate(model: TableModel, X: Any, y: NDArray[Any], weights: FloatArray | None = None) -> Scores:
    """Return the scores of a model for inputs and targets.

    For classes: accuracy, log_loss, auc, and confusion, whose entry (i, j) is the number of rows of class i for which
    class j is predicted. For measurements: r2 and error, the root of the mean squared error. The baseline always
    predicts the most frequent class of these rows, with the frequencies as probabilities, or the mean.
    """
    try:
        predicted = model.estimator.predict(X)
        probabilities = model.estimator.predict_proba(X) if model.is_classifier else None
    except FloatingPointError as error:
        raise UserError(str(error)) from error
    if probabilities is None:
        return _score_measurements(predicted, y, weights)
    return _score_classes(predicted, probabilities, y, model.classes_, weights)


def _score_measurements(predicted: FloatArray, y: FloatArray, weights: FloatArray | None) -> Scores:
    error = np.average((predicted - y) ** 2, weights=weights)
    variance = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)
    return {
        "r2": float(1 - error / variance) if variance > 0 else 0.0,
        "error": float(np.sqrt(error)),
        "baseline_error": float(np.sqrt(variance)),
    }


def _score_classes(
    predicted: NDArray[Any], probabilities: FloatArray, y: NDArray[Any], classes: NDArray[Any], weights: Any
) -> Scores:
    actual, guess = np.searchsorted(classes, y), np.searchsorted(classes, predicted)
    confidence = probabilities[np.arange(len(y)), actual]
    frequencies = np.bincount(actual, weights, len(classes)) / (len(y) if weights is None else weights.sum())
    present = frequencies[frequencies > 0]
    confusion = np.zeros((len(classes), len(classes)), np.int64)
    np.add.at(confusion, (actual, guess), 1)
    return {
        "accuracy": float(np.average(actual == guess, weights=weights)),
        "log_loss": float(-np.average(np.log(np.maximum(confidence, SMALLEST_PROBABILITY)), weights=weights)),
        "auc": _area(actual, probabilities, weights),
        "baseline_accuracy": float(frequencies.max()),
        "baseline_log_loss": float(-np.sum(present * np.log(present))),
        "confusion": confusion.tolist(),
    }


def _area(actual: NDArray[Any], probabilities: FloatArray, weights: Any) -> float | None:
    """Return the area under the ROC curve, averaged over one-against-the-rest for several classes; None for one."""
    from sklearn.metrics import roc_auc_score

    classes = range(1, 2) if probabilities.shape[1] == 2 else range(probabilities.shape[1])
    areas = [
        roc_auc_score(actual == k, probabilities[:, k], sample_weight=weights)
        for k in classes
        if 0 < np.sum(actual == k) < len(actual)
    ]
    return float(np.mean(areas)) if areas else None


def describe_scores(scores: Scores, n_rows: int, name: str) -> dict[str, object]:
    """Return the scores as text; `name` is that of the rows."""
    of_rows = f" of {pluralise(n_rows, 'row')}"
    if "accuracy" in scores:
        lines: dict[str, object] = {
            f"{name} accuracy": f"{scores['accuracy']:.4f}{of_rows}; baseline {scores['baseline_accuracy']:.4f}",
            f"{name} log loss": f"{scores['log_loss']:.4f}; baseline {scores['baseline_log_loss']:.4f}",
        }
        return lines | ({} if scores["auc"] is None else {f"{name} AUC": f"{scores['auc']:.4f}; baseline 0.5"})
    return {
        f"{name} R^2": f"{scores['r2']:.4f}{of_rows}; baseline 0",
        f"{name} error": f"{scores['error']:.6g} (root mean square); baseline {scores['baseline_error']:.6g}",
    }


def describe_confusion(scores: Scores, classes: list[Any]) -> str:
    """Return the confusion matrix as text; empty if there is none or it is too large."""
    matrix = scores.get("confusion")
    if matrix is None or len(classes) > MAX_CLASSES:
        return ""
    names = [escape_unprintable(str(label)) for label in classes]
    rows = [[name, *map(str, row)] for name, row in zip(names, matrix, strict=True)]
    title = wrap_text("confusion matrix: actual classes in rows, predicted classes in columns", "")
    return f"{title}\n{format_table(['', *names], rows)}"
