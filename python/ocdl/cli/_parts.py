"""``ocdl train`` on a table in several files, of which every rank reads its own rows."""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.base.validation import FloatArray, LabelArray
from ocdl.cli._fitting import SMALLEST_PROBABILITY, estimator_of, save, scores_of
from ocdl.cli._interrupts import ending_the_training, reraise_swallowed_interrupts
from ocdl.cli._output import UserError
from ocdl.cli._samples import Samples, samples_of
from ocdl.distributed.ranks import Ranks, join_ranks
from ocdl.distributed.row_distribution import row_range
from ocdl.tables.encoding import Encoding
from ocdl.tables.learning import learn
from ocdl.tables.model import TableModel
from ocdl.tables.parts import Parts
from ocdl.tables.reading import PARQUET
from ocdl.tables.sheet import Sheet, TableError, resolved

NEED_ALL_ROWS = ("cv", "patience")  # options that draw on rows from everywhere


def trained_in_parts(arguments: argparse.Namespace, communicator: Any, test_size: float) -> dict[str, Any]:
    """Train together with other ranks, let the first one write the model, and return what is to be said about it.

    The encoding is learned from rows that stand for all, which every rank reads; rows are not merged. So the model has
    the same bits for any number of ranks.
    """
    if not arguments.data.lower().endswith(PARQUET):
        raise UserError(
            "on several ranks --data takes Parquet files, of which each rank reads its own rows, as in "
            f"'part-*.parquet'; got {arguments.data!r}"
        )
    for option in NEED_ALL_ROWS:
        if getattr(arguments, option) is not None:
            raise UserError(f"--{option} needs all rows in one place, and a table in parts is in none; leave it out")
    if arguments.alpha == "cv":
        raise UserError("--alpha cv needs all rows in one place, and a table in parts is in none; give a number")
    with join_ranks(communicator) as ranks:
        parts = reraise_swallowed_interrupts(Parts.found)(arguments.data)
        table = _Table.learned(parts, arguments)
        share = test_size if arguments.test_size is None else arguments.test_size
        return _trained(table, _split(parts.n_rows, share, arguments.seed), arguments, ranks, communicator)


@dataclass(frozen=True)
class _Table:
    """A table in parts, and what its columns become."""

    parts: Parts
    arguments: argparse.Namespace
    target: str
    looked_at: Samples
    encoding: Encoding

    @classmethod
    @reraise_swallowed_interrupts
    def learned(cls, parts: Parts, arguments: argparse.Namespace) -> _Table:
        """Learn the encoding from rows that stand for all."""
        place = len(parts.columns) - 1
        if arguments.target is not None:
            place = resolved(arguments.target, list(parts.columns), "--target", f"{parts.pattern}: ")
        target = parts.columns[place]
        looked_at = _complete(samples_of(parts.looked_at(), target, arguments))
        encoding, _ = learn(
            looked_at.sheet,
            looked_at.candidates,
            target,
            looked_at.rows,
            scaling=not arguments.no_scaling,
            keep_index=looked_at.is_chosen,
        )
        return cls(parts, arguments, target, looked_at, encoding)

    @reraise_swallowed_interrupts
    def read(self, rows: LabelArray) -> tuple[FloatArray, NDArray[Any]]:
        """Return the numbers and the targets of rows in their order, which lie close together."""
        first = int(rows[0]) if len(rows) else 0
        sheet = self.parts.read([(first, int(rows[-1]) + 1)] if len(rows) else [])
        sheet = replace(sheet, frame=sheet.frame.iloc[rows - first])
        if not len(rows):
            return np.zeros((0, self.encoding.n_inputs)), self.looked_at.targets[:0]
        targets = _complete(samples_of(sheet, self.target, self.arguments, several=False)).targets
        return self.encoding.matrix(sheet), targets


def _complete(samples: Samples) -> Samples:
    if samples.n_left_out:
        missing = sorted({*range(len(samples.sheet))} - {*samples.rows.tolist()})[0]
        raise _without_target(samples.sheet, samples.target, missing)
    return samples


def _without_target(sheet: Sheet, target: str, row: int) -> TableError:
    return sheet.complaint(row, target, "the target is missing; a table in parts needs one in every row")


def _split(n_rows: int, share: float, seed: int) -> tuple[LabelArray, LabelArray]:
    """Return the numbers of the rows to train on and of those held out, drawn from all by one seed."""
    held_out = math.ceil(share * n_rows)
    if held_out >= n_rows:
        raise UserError(f"--test-size {share:g} of {n_rows} rows leaves none to train on")
    order = np.random.default_rng(seed).permutation(n_rows)
    return np.sort(order[held_out:]), np.sort(order[:held_out])


def _trained(
    table: _Table, split: tuple[LabelArray, LabelArray], arguments: argparse.Namespace, ranks: Ranks, communicator: Any
) -> dict[str, Any]:
    training, held_out = split
    mine = training[row_range(ranks.rank, ranks.size, len(training))]
    others = held_out[len(held_out) * ranks.rank // ranks.size : len(held_out) * (ranks.rank + 1) // ranks.size]
    X, y = table.read(mine)
    looked_at = table.looked_at
    estimator = estimator_of(arguments, X.shape[1])
    estimator.verbose = estimator.verbose if ranks.is_root else 0
    estimator._communicator = communicator
    if ranks.is_root:
        estimator._checkpoint, estimator._resume = arguments.checkpoint, arguments.resume
    if not arguments.regression:
        estimator.classes_ = _classes([looked_at.targets, y], ranks)
    start = time.perf_counter()
    with ending_the_training(is_root=ranks.is_root) as pressed:
        try:
            known = table.encoding.matrix(looked_at.sheet), looked_at.targets
            estimator._fit_part(known, X, y, len(training), [pressed])
        except (FloatingPointError, ValueError) as error:
            raise UserError(str(error)) from error
    seconds = time.perf_counter() - start
    model = TableModel(estimator, table.encoding)
    facts: dict[str, Any] = {"rows_without_target": 0, "train_samples": len(training), "test_samples": len(held_out)}
    for name, (values, targets) in (("train", (X, y)), ("test", table.read(others))):
        found = _scores(model, values, targets, ranks)
        facts |= {f"{name}_{score}": found.get(score) for score in scores_of(arguments)}
    if ranks.is_root:
        save(model, arguments.out)
    return facts | {
        "loss": float(estimator.history_.loss[-1]),
        "iterations": int(estimator.n_iter_),
        "status": estimator.status_.value,
        "seconds": round(seconds, 3),
        "out": arguments.out,
        "interrupted": pressed.is_pressed,
    }


def _classes(labels: list[NDArray[Any]], ranks: Ranks) -> NDArray[Any]:
    """Return the classes of all rows of all ranks."""
    own = [np.unique(some) for some in labels if len(some)]
    found = [some for classes in ranks.allgather(own) for some in classes]
    if len({some.dtype.kind for some in found}) > 1:
        raise UserError("the labels are whole numbers in some files and texts in others; all must be of one kind")
    return np.unique(np.concatenate(found))


def _scores(model: TableModel, X: FloatArray, y: NDArray[Any], ranks: Ranks) -> dict[str, float]:
    """Return how well the model predicts rows of all ranks, as `scores` does; nothing where there are none."""
    sums = np.sum(ranks.allgather(_sums(model, X, y)), axis=0)
    if not sums[0]:
        return {}
    if model.is_classifier:
        return {"accuracy": float(sums[1] / sums[0]), "log_loss": float(sums[2] / sums[0])}
    left, spread = sums[1] / sums[0], sums[3] / sums[0] - (sums[2] / sums[0]) ** 2
    return {"r2": float(1 - left / spread) if spread > 0 else 0.0, "error": float(np.sqrt(left))}


def _sums(model: TableModel, X: FloatArray, y: NDArray[Any]) -> NDArray[np.float64]:
    """Return the number of rows and what their scores are made of."""
    if not len(X):
        return np.zeros(4)
    try:
        if not model.is_classifier:
            scale = model.estimator.target_scale_[0]
            residual, away = (y - model.estimator.predict(X)), (y - model.estimator.target_mean_[0]) / scale
            return np.array([len(X), np.sum(residual**2), np.sum(away) * scale, np.sum(away**2) * scale**2])
        shares = model.estimator.predict_proba(X)
    except FloatingPointError as error:
        raise UserError(str(error)) from error
    own = shares[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    correct = model.estimator.predict(X) == y
    return np.array([len(X), correct.sum(), -np.log(np.maximum(own, SMALLEST_PROBABILITY)).sum(), 0.0])
