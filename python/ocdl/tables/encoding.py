"""Which columns of a table become which numbers: learned once, kept in the model's file, applied again."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ocdl.base.names import counted
from ocdl.base.validation import FloatArray
from ocdl.tables.columns import Feature, distinct, numbers_of
from ocdl.tables.dialect import MISSING
from ocdl.tables.reading import Choice
from ocdl.tables.sheet import Sheet, TableError, TableWarning, counted_names, listed

MOST_UNSEEN = 3  # texts that a warning lists


@dataclass(frozen=True)
class Target:
    """The column that is predicted; without a name in a table without names."""

    name: str | None
    position: int


@dataclass(frozen=True)
class Encoding:
    """What a table becomes: a row of numbers per row, feature by feature.

    Attributes
    ----------
    features : tuple of Feature
    width : int
        The number of columns of the table that was learned from, the target and those left out included.
    named : bool
        Whether its columns have names.
    target : Target or None
    """

    features: tuple[Feature, ...]
    width: int
    named: bool
    target: Target | None = None

    @property
    def n_inputs(self) -> int:
        """How many numbers a row becomes."""
        return sum(feature.width for feature in self.features)

    @property
    def feature_names(self) -> list[str] | None:
        """The columns that are needed, or None where they have no names."""
        return [feature.name for feature in self.features] if self.named else None

    def choice(self, names: list[str], named: bool, source: str, passed_on: Sequence[int] = ()) -> Choice:
        """Return which columns to read of a table; texts are wanted as they are written."""
        places = self._places(names, named, source)
        texts = {place for place, feature in zip(places, self.features, strict=True) if feature.kind != "number"}
        return Choice([*places, *passed_on], texts={*texts, *passed_on})

    def matrix(self, sheet: Sheet) -> FloatArray:
        """Return the numbers of a table, (rows, inputs). Texts that were never seen are all zeros, with one warning."""
        columns = self._columns(sheet)
        values, unseen = raw_numbers(sheet, self.features, columns)
        for i, j in single_numbers(self.features):
            feature, name = self.features[i], columns[i]
            missing = np.isnan(values[:, j])
            if feature.fill is not None:
                values[missing, j] = feature.fill
            elif missing.any():
                raise sheet.complaint(int(missing.argmax()), name, "the value is missing")
            with np.errstate(over="ignore"):
                values[:, j] = (values[:, j] - feature.mean) / feature.scale
            finite = np.isfinite(values[:, j])
            if not finite.all():
                raise sheet.complaint(int(finite.argmin()), name, "{} is too large for the model")
        if unseen:
            what = ", ".join(unseen)
            warn(f"{sheet.source}the model has not seen {what}, and takes that as none of the texts that it knows")
        return values

    def _columns(self, sheet: Sheet) -> list[str]:
        """Return which columns of a table the features are."""
        names = [str(name) for name in sheet.frame.columns]
        if sheet.named and self.named:
            return [names[place] for place in self._places(names, True, sheet.source)]
        places = self._places(counted_names(sheet.width), False, sheet.source)
        return [names[sheet.positions.index(place)] for place in places]

    def _places(self, names: list[str], named: bool, source: str) -> list[int]:
        """Return where the features stand among the columns of a table: by their names, or else in order."""
        if named and self.named:
            place = {name: j for j, name in enumerate(names)}
            missing = [feature.name for feature in self.features if feature.name not in place]
            if missing:
                which = f"column {missing[0]!r:.80}" if len(missing) == 1 else f"columns {listed(missing)}"
                raise TableError(
                    f"{source}the header lacks {which}; the model was trained on {listed(self.feature_names or [])}"
                )
            return [place[feature.name] for feature in self.features]
        if len(names) == self.width:
            return [feature.position for feature in self.features]
        if self.target is not None and len(names) == self.width - 1:
            return [feature.position - (feature.position > self.target.position) for feature in self.features]
        if len(names) == len(self.features):
            order = sorted(range(len(names)), key=lambda i: self.features[i].position)
            return [order.index(i) for i in range(len(names))]
        where = f"{source}row 1" if source else "the table"
        raise TableError(
            f"{where} has {counted(len(names), 'column')}, but the model takes {counted(len(self.features), 'feature')}"
        )


def plain(n_features: int, names: list[str] | None = None) -> Encoding:
    """Return the encoding of numbers that are taken as they are."""
    given = counted_names(n_features) if names is None else names
    return Encoding(tuple(Feature(name, j) for j, name in enumerate(given)), n_features, names is not None)


def raw_numbers(sheet: Sheet, features: Sequence[Feature], columns: Sequence[str]) -> tuple[FloatArray, list[str]]:
    """Return the numbers of the features, not standardised, NaN where one is missing; and texts that are unknown."""
    values = np.empty((len(sheet), sum(feature.width for feature in features)))
    unseen, j = [], 0
    for feature, name in zip(features, columns, strict=True):
        if feature.kind == "text":
            codes, texts = distinct(sheet, name)
            place = {text: i for i, text in enumerate(feature.values)}
            chosen = np.array([*(place.get(text, -1) for text in texts), -1])[codes]
            values[:, j : j + feature.width] = chosen[:, None] == np.arange(feature.width)
            strange = [text for text in texts if text not in place and text not in MISSING]
            if strange:
                more = f" and {len(strange) - MOST_UNSEEN} more" if len(strange) > MOST_UNSEEN else ""
                shown = ", ".join(f"{text!r:.80}" for text in strange[:MOST_UNSEEN])
                unseen.append(f"{shown}{more} in {sheet.column(name)}")
        else:
            values[:, j] = numbers_of(sheet, feature, name)
        j += feature.width
    return values, unseen


def single_numbers(features: Sequence[Feature]) -> Iterator[tuple[int, int]]:
    """Yield which features become one number, and where that stands in a row."""
    j = 0
    for i, feature in enumerate(features):
        if feature.kind != "text":
            yield i, j
        j += feature.width


def warn(message: str) -> None:
    """Warn of something in a table."""
    warnings.warn(message, TableWarning, stacklevel=3)
