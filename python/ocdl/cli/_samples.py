"""The samples of ``ocdl train`` and ``ocdl score``: a table, its columns, and a target for each row."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.base.validation import FloatArray, LabelArray
from ocdl.cli._interrupts import reraise_swallowed_interrupts
from ocdl.cli._output import UserError, has_progress_bar
from ocdl.datasets import GENERATORS
from ocdl.tables.archives import LABELS, ArrayTable
from ocdl.tables.columns import Feature, factorize_texts, to_numbers
from ocdl.tables.csv_file import STDIN
from ocdl.tables.dialect import parse_number
from ocdl.tables.encoding import Encoding, EncodingOptions
from ocdl.tables.frame import TableFrame, join_names, resolve_column
from ocdl.tables.model import TableModel
from ocdl.tables.reading import peek

WHOLE_NUMBER = re.compile("0|-?[1-9][0-9]{0,17}")


@dataclass(frozen=True, eq=False)
class Samples:
    """A table and its targets: labels (whole numbers or texts) or measurements.

    `rows` are the rows that have a target; `targets` and `weights` have an entry for each of them.
    """

    frame: TableFrame
    candidates: list[str]
    target: str
    rows: LabelArray
    targets: NDArray[Any]
    options: EncodingOptions
    weights: FloatArray | None = None

    @property
    def n_left_out(self) -> int:
        """The number of rows without a target."""
        return len(self.frame) - len(self.rows)


@reraise_swallowed_interrupts
def read_samples(arguments: argparse.Namespace) -> Samples:
    """Return the samples that the options describe: generated points, a file or stdin."""
    return select_samples(*_read(arguments), arguments)


@reraise_swallowed_interrupts
def select_samples(frame: TableFrame, target: str, arguments: argparse.Namespace, *, several: bool = True) -> Samples:
    """Return the rows that have a target, and the targets; raise if `several` classes are required but missing."""
    names = frame.names
    selected = _resolve_columns(arguments.features, "--features", names, frame.source)
    dropped = _resolve_columns(arguments.drop, "--drop", names, frame.source)
    if target in selected:
        raise UserError(f"{frame.source}--features has {target!r}, which is the target")
    weighting = _resolve_weights(arguments.weights, target, names, frame.source)
    candidates = [name for name in (selected or names) if name not in (target, weighting, *dropped)]
    if not candidates:
        raise UserError(f"{frame.source}there is no column to learn from except the target, {frame.describe(target)}")
    rows, targets = _numbers(frame, target) if arguments.regression else _labels(frame, target)
    weights = None if weighting is None else _weights(frame, weighting, rows)
    if several and not arguments.regression:
        _require_several_classes(targets, frame, target)
    if not len(rows):
        raise UserError(f"{frame.source}{frame.describe(target)} is the target, but it has no values")
    options = EncodingOptions(
        categorical=tuple(_resolve_columns(arguments.categorical, "--categorical", names, frame.source)),
        max_categories=arguments.max_categories,
        scaling=not arguments.no_scaling,
        keep_index=bool(selected),
        random_state=arguments.seed,
    )
    return Samples(frame, candidates, target, rows, targets, options, weights)


def _read(arguments: argparse.Namespace) -> tuple[TableFrame, str]:
    """Return the table and the name of its target."""
    data, target = arguments.data, arguments.target
    if data in GENERATORS or data.lower().endswith(".npz"):
        if target is not None:
            raise UserError(f"--target is for tables with columns; {data} has its own labels")
        if data in GENERATORS:
            return ArrayTable(*GENERATORS[data](random_state=arguments.seed), data).read(), LABELS
        arrays = peek(data)
        if LABELS not in arrays.names:
            raise UserError(f"{data} has no array {LABELS}")
        return arrays.read(), LABELS
    if data != STDIN and not os.path.exists(data):
        raise UserError(f"--data {data!r} is neither a file nor one of {', '.join(GENERATORS)}")
    is_number = target is not None and target.isdecimal()
    label = -1 if target is None else int(target) - 1 if is_number and len(target) < 10 else None
    table = peek(data, [] if target is None or is_number else [target], label)
    names = table.names
    if len(names) < 2:
        raise UserError(
            f"{table.source}row 1 has one column; a table has features and a target, separated by commas, semicolons, "
            "tabs or vertical bars"
        )
    position = len(names) - 1 if target is None else resolve_column(target, names, "--target", table.source)
    labels = () if arguments.regression else (position,)
    return table.read(labels=labels, progress=has_progress_bar(arguments)), names[position]


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """The rows of a table that have a target, with the columns that a model needs."""

    frame: TableFrame
    targets: NDArray[Any]
    weights: FloatArray | None
    n_left_out: int


@reraise_swallowed_interrupts
def read_scored(model: TableModel, path: str, arguments: argparse.Namespace, progress: bool) -> ScoredRows:
    """Return the rows of a table with targets that a model is scored on."""
    encoding = model.encoding
    if path != STDIN and not os.path.exists(path):
        raise UserError(f"{path!r} is not a file")
    label = None if encoding.target is None else encoding.target.position
    table = peek(path, encoding.feature_names or [], label)
    names = table.names
    target = names[_target_position(encoding, table.has_names, names, arguments.target, table.source)]
    columns, texts = encoding.select(names, table.has_names, table.source)
    weighting = _resolve_weights(arguments.weights, target, names, table.source)
    others = {names.index(name) for name in (target, weighting) if name is not None}
    labels = {names.index(target)} if model.is_classifier else set[int]()
    frame = table.read([*columns, *others], labels=labels, texts=texts - labels, progress=progress)
    rows, targets = _class_labels(frame, target, model.classes_) if model.is_classifier else _numbers(frame, target)
    if not len(rows):
        raise UserError(f"{table.source}{frame.describe(target)} is the target, but it has no values")
    weights = None if weighting is None else _weights(frame, weighting, rows)
    return ScoredRows(frame.take(rows), targets, weights, len(frame) - len(rows))


def _target_position(encoding: Encoding, has_names: bool, names: list[str], target: str | None, source: str) -> int:
    """Return the position of the targets: of the column that the user names, or that of the training."""
    if target is not None:
        return resolve_column(target, names, "--target", source)
    known = encoding.target
    if known is not None and known.name is not None and known.name in names:
        return names.index(known.name)
    if known is not None and len(names) == encoding.width and not (has_names and encoding.has_names):
        return known.position
    hint = "" if known is None or known.name is None else f"; the model was trained with {known.name!r:.80}"
    raise UserError(f"{source}--target is required: the table has {join_names(names)}{hint}")


def _class_labels(frame: TableFrame, target: str, classes: NDArray[Any]) -> tuple[LabelArray, NDArray[Any]]:
    """Return the rows with a label, and their classes."""
    codes, texts = factorize_texts(frame, target)
    position = {str(label): i for i, label in enumerate(classes.tolist())}
    numbers = np.array([position.get(text, -1) for text in (*texts, "")])
    rows = np.flatnonzero((codes >= 0) & (np.array([*texts, ""])[codes] != ""))
    unknown = rows[numbers[codes[rows]] < 0]
    if len(unknown):
        raise frame.error(int(unknown[0]), target, f"{{}} is not one of the classes {join_names(classes.tolist())}")
    return rows, classes[numbers[codes[rows]]]


def _resolve_weights(entry: str | None, target: str, names: list[str], source: str) -> str | None:
    if entry is None:
        return None
    name = names[resolve_column(entry, names, "--weights", source)]
    if name == target:
        raise UserError(f"{source}--weights names {name!r}, which is the target")
    return name


def _weights(frame: TableFrame, name: str, rows: LabelArray) -> FloatArray:
    """Return the weights of rows, which are numbers that are not negative."""
    weights = to_numbers(frame, Feature(name, frame.position(name)), name)[rows]
    wrong = np.flatnonzero(~(weights >= 0))
    if len(wrong):
        raise frame.error(int(rows[wrong[0]]), name, "{} is not a weight; weights are numbers of 0 or more")
    if not weights.sum() > 0:
        raise UserError(f"{frame.source}{frame.describe(name)}: all weights are 0")
    return weights


def _resolve_columns(entries: list[str] | None, option: str, names: list[str], source: str) -> list[str]:
    """Return the columns that an option names; a word may name several, separated by commas."""
    words: list[str] = []
    for entry in entries or []:
        words += [entry] if entry in names else [word.strip() for word in entry.split(",")]
    return [names[resolve_column(word, names, option, source)] for word in words]


def _numbers(frame: TableFrame, target: str) -> tuple[LabelArray, NDArray[Any]]:
    numbers = to_numbers(frame, Feature(target, frame.position(target)), target)
    rows = np.flatnonzero(~np.isnan(numbers))
    return rows, numbers[rows]


def _labels(frame: TableFrame, target: str) -> tuple[LabelArray, NDArray[Any]]:
    """Return the labels as whole numbers if all of them are written as such; otherwise as text."""
    column = frame.data[target]
    if column.dtype == bool:
        return np.arange(len(column)), column.to_numpy()
    codes, texts = factorize_texts(frame, target)
    fraction = next((text for text in texts if text and not parse_number(text, frame.decimal).is_integer()), None)
    if fraction is not None and are_numbers(texts, frame.decimal):
        raise UserError(
            f"{frame.source}{frame.describe(target)} must have whole numbers or text as labels, it has {fraction}; "
            "use --regression to learn measurements"
        )
    rows = np.flatnonzero((codes >= 0) & (np.array([*texts, ""])[codes] != ""))
    whole = all(WHOLE_NUMBER.fullmatch(text) for text in texts if text)
    known = np.array([int(text or 0) for text in texts] if whole else texts)
    return rows, known[codes[rows]] if len(rows) else known[:0]


def are_numbers(labels: Iterable[str], decimal: str) -> bool:
    """Whether every label is a number, which may be a measurement."""
    return all(math.isfinite(parse_number(label, decimal)) for label in labels if label)


def _require_several_classes(labels: NDArray[Any], frame: TableFrame, target: str) -> None:
    if len(labels) and np.all(labels == labels[0]):
        label = labels[0].item()
        column = frame.source + frame.describe(target)
        raise UserError(f"{column} has one class, {label!r}; a classifier needs at least 2")
