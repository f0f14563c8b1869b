"""``ocdl train`` on a table in several Parquet files; each rank reads its own rows."""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.base.validation import FloatArray, LabelArray
from ocdl.cli._fitting import make_checkpoint, make_estimator, save
from ocdl.cli._interrupts import end_training_on_interrupt, reraise_swallowed_interrupts
from ocdl.cli._output import UserError
from ocdl.cli._samples import Samples, select_samples
from ocdl.cli._scores import SMALLEST_PROBABILITY
from ocdl.distributed.ranks import Ranks, join_ranks
from ocdl.distributed.row_distribution import row_range
from ocdl.tables.encoding import Encoding, fit_encoding
from ocdl.tables.frame import resolve_column
from ocdl.tables.model import TableModel
from ocdl.tables.parquet import PARQUET, ParquetTable

NEED_ALL_ROWS = ("cv", "patience", "test", "weights", "class_weight")  # options


def train_on_files(arguments: argparse.Namespace, communicator: Any, test_size: float) -> dict[str, Any]:
    """Train on all ranks, write the model on the root, and return the report.

    The encoding is fitted to a sample of the rows, which every rank reads, and equal rows are not merged, so that the
    model has the same bits for any number of ranks.
    """
    if not arguments.data.lower().endswith(PARQUET):
        raise UserError(
            "on several ranks --data takes Parquet files, of which each rank reads its own rows, as in "
            f"'part-*.parquet'; got {arguments.data!r}"
        )
    for option in NEED_ALL_ROWS:
        if getattr(arguments, option) is not None:
            name = option.replace("_", "-")
            raise UserError(f"--{name} needs all rows in one file, but --data names several; leave it out")
    if arguments.alpha == "cv":
        raise UserError("--alpha cv needs all rows in one file, but --data names several; give a number")
    with join_ranks(communicator) as ranks:
        table = reraise_swallowed_interrupts(ParquetTable.peek)(arguments.data)
        data = _EncodedTable.fit(table, arguments)
        test_fraction = test_size if arguments.test_size is None else arguments.test_size
        return _train(data, _split(data.table.n_rows, test_fraction, arguments.seed), arguments, ranks, communicator)


@dataclass(frozen=True)
class _EncodedTable:
    """A table in several files, and the encoding of its columns."""

    table: ParquetTable
    arguments: argparse.Namespace
    target: str
    sample: Samples
    encoding: Encoding

    @classmethod
    @reraise_swallowed_interrupts
    def fit(cls, table: ParquetTable, arguments: argparse.Namespace) -> _EncodedTable:
        """Fit the encoding to a sample of the rows."""
        position = len(table.names) - 1
        if arguments.target is not None:
            position = resolve_column(arguments.target, table.names, "--target", table.source)
        target = table.names[position]
        sample = _require_targets(select_samples(table.read_sample(), target, arguments))
        encoding, _ = fit_encoding(
            sample.frame,
            sample.candidates,
            target,
            options=sample.options,
        )
        return cls(table, arguments, target, sample, encoding)

    @reraise_swallowed_interrupts
    def read(self, rows: LabelArray) -> tuple[FloatArray, NDArray[Any]]:
        """Return the encoded columns and the targets of these rows, which are sorted and lie close together."""
        if not len(rows):
            return np.zeros((0, self.encoding.n_inputs)), self.sample.targets[:0]
        first, end = int(rows[0]), int(rows[-1]) + 1
        frame = self.table.read_rows([(first, end)])
        frame = frame.take(rows - first)
        targets = _require_targets(select_samples(frame, self.target, self.arguments, several=False)).targets
        return self.encoding.transform(frame), targets


def _require_targets(samples: Samples) -> Samples:
    if samples.n_left_out:
        missing = sorted({*range(len(samples.frame))} - {*samples.rows.tolist()})[0]
        reason = "the target is missing; in a table in several files every row must have one"
        raise samples.frame.error(missing, samples.target, reason)
    return samples


def _split(n_rows: int, test_fraction: float, seed: int) -> tuple[LabelArray, LabelArray]:
    """Return the indices of the rows to train on and of those held out, drawn at random."""
    held_out = math.ceil(test_fraction * n_rows)
    if held_out >= n_rows:
        raise UserError(f"--test-size {test_fraction:g} of {n_rows} rows leaves none to train on")
    order = np.random.default_rng(seed).permutation(n_rows)
    return np.sort(order[held_out:]), np.sort(order[:held_out])


def _train(
    data: _EncodedTable,
    split: tuple[LabelArray, LabelArray],
    arguments: argparse.Namespace,
    ranks: Ranks,
    communicator: Any,
) -> dict[str, Any]:
    training, held_out = split
    local_rows = training[row_range(ranks.rank, ranks.size, len(training))]
    local_test = held_out[len(held_out) * ranks.rank // ranks.size : len(held_out) * (ranks.rank + 1) // ranks.size]
    X, y = data.read(local_rows)
    sample = data.sample
    estimator = make_estimator(arguments, X.shape[1])
    estimator.verbose = estimator.verbose if ranks.is_root else 0
    from ocdl.estimator.targets import ClassTargets

    known = None if arguments.regression else ClassTargets(_classes([sample.targets, y], ranks))
    start = time.perf_counter()
    with end_training_on_interrupt(is_root=ranks.is_root) as flag:
        try:
            probe = data.encoding.transform(sample.frame), sample.targets
            plan = replace(estimator._plan_on_ranks(probe, known, X, y, len(training), communicator), callback=flag)
            if ranks.is_root:
                plan = replace(plan, checkpoint=make_checkpoint(arguments))
            estimator._fit(plan)
        except (FloatingPointError, ValueError) as error:
            raise UserError(str(error)) from error
    seconds = time.perf_counter() - start
    model = TableModel(estimator, data.encoding)
    report: dict[str, Any] = {"rows_without_target": 0, "train_samples": len(training), "test_samples": len(held_out)}
    for name, (values, targets) in (("train", (X, y)), ("test", data.read(local_test))):
        scores = _scores(model, values, targets, ranks)
        report |= {f"{name}_{score}": value for score, value in scores.items()}
    if ranks.is_root:
        save(model, arguments.out)
    return report | {
        "loss": float(estimator.history_.loss[-1]),
        "iterations": int(estimator.n_iter_),
        "status": estimator.status_.value,
        "seconds": round(seconds, 3),
        "out": arguments.out,
        "interrupted": flag.is_set,
    }


def _classes(labels: list[NDArray[Any]], ranks: Ranks) -> NDArray[Any]:
    """Return the classes of all rows of all ranks."""
    local_classes = [np.unique(column) for column in labels if len(column)]
    all_classes = [column for columns in ranks.allgather(local_classes) for column in columns]
    if len({column.dtype.kind for column in all_classes}) > 1:
        raise UserError("the labels are whole numbers in some files and texts in others; all must be of one kind")
    return np.unique(np.concatenate(all_classes))


def _scores(model: TableModel, X: FloatArray, y: NDArray[Any], ranks: Ranks) -> dict[str, float]:
    """Return the scores of the model on the rows of all ranks, as `evaluate` does; empty if there are no rows."""
    sums = np.sum(ranks.allgather(_sums(model, X, y)), axis=0)
    if not sums[0]:
        return {}
    if model.is_classifier:
        return {"accuracy": float(sums[1] / sums[0]), "log_loss": float(sums[2] / sums[0])}
    error, variance = sums[1] / sums[0], sums[3] / sums[0] - (sums[2] / sums[0]) ** 2
    return {"r2": float(1 - error / variance) if variance > 0 else 0.0, "error": float(np.sqrt(error))}


def _sums(model: TableModel, X: FloatArray, y: NDArray[Any]) -> NDArray[np.float64]:
    """Return the number of rows and the sums from which their scores are computed."""
    if not len(X):
        return np.zeros(4)
    try:
        if not model.is_classifier:
            scale = model.estimator.target_scale_[0]
            residual, deviation = (y - model.estimator.predict(X)), (y - model.estimator.target_mean_[0]) / scale
            return np.array([len(X), np.sum(residual**2), np.sum(deviation) * scale, np.sum(deviation**2) * scale**2])
        probabilities = model.estimator.predict_proba(X)
    except FloatingPointError as error:
        raise UserError(str(error)) from error
    actual = probabilities[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    correct = model.estimator.predict(X) == y
    return np.array([len(X), correct.sum(), -np.log(np.maximum(actual, SMALLEST_PROBABILITY)).sum(), 0.0])
