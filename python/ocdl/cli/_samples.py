"""What ``ocdl train`` learns from: a table, the columns in question, and for every row what is to be predicted."""

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

from ocdl.base.validation import LabelArray
from ocdl.cli._interrupts import reraise_swallowed_interrupts
from ocdl.cli._output import UserError, shows_progress
from ocdl.datasets import GENERATORS
from ocdl.tables.archives import LABELS, sheet_of
from ocdl.tables.columns import Feature, distinct, number_of, numbers_of
from ocdl.tables.reading import Choice, Request, read_sheet
from ocdl.tables.sheet import Sheet, resolved
from ocdl.tables.source import STDIN

WHOLE_NUMBER = re.compile("0|-?[1-9][0-9]{0,17}")


@dataclass(frozen=True, eq=False)
class Samples:
    """A table and its targets: labels, which are whole numbers or texts, or measurements.

    `rows` are those that have a target; `targets` has an entry for each of them.
    """

    sheet: Sheet
    candidates: list[str]
    target: str
    rows: LabelArray
    targets: NDArray[Any]
    is_chosen: bool  # whether the user has named the columns to learn from

    @property
    def n_left_out(self) -> int:
        """The number of rows without a target."""
        return len(self.sheet) - len(self.rows)


@reraise_swallowed_interrupts
def read_samples(arguments: argparse.Namespace) -> Samples:
    """Return what the options describe: one of the paper's sets of points, a file or stdin."""
    return samples_of(*_read(arguments), arguments)


@reraise_swallowed_interrupts
def samples_of(sheet: Sheet, target: str, arguments: argparse.Namespace, *, several: bool = True) -> Samples:
    """Return the rows of a table that have a target, and these; of classes there have to be several."""
    names = [str(name) for name in sheet.frame.columns]
    chosen = _resolved(arguments.features, "--features", names, sheet.source)
    dropped = _resolved(arguments.drop, "--drop", names, sheet.source)
    if target in chosen:
        raise UserError(f"{sheet.source}--features has {target!r}, which is the target")
    candidates = [name for name in (chosen or names) if name != target and name not in dropped]
    if not candidates:
        raise UserError(f"{sheet.source}there is no column to learn from beside the target, {sheet.column(target)}")
    rows, targets = _numbers(sheet, target) if arguments.regression else _labels(sheet, target)
    if several and not arguments.regression:
        _require_several(targets, sheet, target)
    if not len(rows):
        raise UserError(f"{sheet.source}{sheet.column(target)} is the target, but nothing is in it")
    return Samples(sheet, candidates, target, rows, targets, bool(chosen))


def _read(arguments: argparse.Namespace) -> tuple[Sheet, str]:
    """Return the table and the name of its target."""
    data, target = arguments.data, arguments.target
    if data in GENERATORS or data.lower().endswith(".npz"):
        if target is not None:
            raise UserError(f"--target is for tables with columns; {data} has labels of its own")
        if data in GENERATORS:
            return sheet_of(*GENERATORS[data](random_state=arguments.seed), data), LABELS
        sheet = read_sheet(data)
        if LABELS not in sheet.frame.columns:
            raise UserError(f"{data}: it has no array {LABELS}")
        return sheet, LABELS
    if data != STDIN and not os.path.exists(data):
        raise UserError(f"--data {data!r} is no file and none of {', '.join(GENERATORS)}")
    place = -1

    def choose(names: list[str], named: bool, source: str) -> Choice:
        nonlocal place
        if len(names) < 2:
            raise UserError(
                f"{source}row 1 has one column; needed are features and a target, separated by commas, "
                "semicolons, tabs or vertical bars"
            )
        place = len(names) - 1 if target is None else resolved(target, names, "--target", source)
        return Choice(labels=() if arguments.regression else (place,))

    is_number = target is not None and target.isdecimal()
    label = -1 if target is None else int(target) - 1 if is_number and len(target) < 10 else None
    known = [] if target is None or is_number else [target]
    sheet = read_sheet(data, Request(choose, known, label, shows_progress(arguments)))
    return sheet, str(sheet.frame.columns[place])


def _resolved(entries: list[str] | None, option: str, names: list[str], source: str) -> list[str]:
    """Return the columns that an option names; several may stand in one word, with commas between them."""
    words: list[str] = []
    for entry in entries or []:
        words += [entry] if entry in names else [word.strip() for word in entry.split(",")]
    return [names[resolved(word, names, option, source)] for word in words]


def _numbers(sheet: Sheet, target: str) -> tuple[LabelArray, NDArray[Any]]:
    numbers = numbers_of(sheet, Feature(target, sheet.position(target)), target)
    rows = np.flatnonzero(~np.isnan(numbers))
    return rows, numbers[rows]


def _labels(sheet: Sheet, target: str) -> tuple[LabelArray, NDArray[Any]]:
    """Return the labels as whole numbers if all are, written as usual; else as text."""
    column = sheet.frame[target]
    if column.dtype == bool:
        return np.arange(len(column)), column.to_numpy()
    codes, texts = distinct(sheet, target)
    odd = next((text for text in texts if text and not number_of(text, sheet.decimal).is_integer()), None)
    if odd is not None and are_numbers(texts, sheet.decimal):
        raise UserError(
            f"{sheet.source}{sheet.column(target)} must have whole numbers or text as labels, it has {odd}; "
            "--regression learns measurements"
        )
    rows = np.flatnonzero((codes >= 0) & (np.array([*texts, ""])[codes] != ""))
    whole = all(WHOLE_NUMBER.fullmatch(text) for text in texts if text)
    known = np.array([int(text or 0) for text in texts] if whole else texts)
    return rows, known[codes[rows]] if len(rows) else known[:0]


def are_numbers(labels: Iterable[str], decimal: str) -> bool:
    """Whether every label is a number, which may be a measurement."""
    return all(math.isfinite(number_of(label, decimal)) for label in labels if label)


def _require_several(labels: NDArray[Any], sheet: Sheet, target: str) -> None:
    if len(labels) and np.all(labels == labels[0]):
        label = labels[0].item()
        raise UserError(f"{sheet.source}{sheet.column(target)} has one class, {label!r}; a classifier needs at least 2")
