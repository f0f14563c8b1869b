"""What a column is - numbers, booleans, dates or texts - and the numbers that it becomes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ocdl.base.validation import FloatArray, LabelArray
from ocdl.tables.dialect import GROUPED, MISSING, NUMBER, OTHER_MARK
from ocdl.tables.sheet import Sheet, TableError

if TYPE_CHECKING:
    import pandas as pd

MOST_VALUES = 50  # of a column of texts
SHARE_OF_NUMBERS = 0.9  # of the cells, from which on the others count as missing
DATES = (
    *("ISO8601", "%d.%m.%Y", "%d.%m.%Y %H:%M", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%m/%d/%y", "%d-%m-%Y"),
    *("%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y"),
    *("%d.%m.%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%d/%m/%Y %H:%M:%S"),
    *("%m/%d/%Y %I:%M %p", "%m/%d/%Y %I:%M:%S %p"),
)
BOOLEANS = {"true": 1.0, "false": 0.0}
NOTHING, STRANGE = "no values", "neither numbers nor texts nor dates"  # why a column is left out
INFINITE = ("inf", "infinity")


@dataclass(frozen=True)
class Feature:
    """A column that a model takes, and what it becomes.

    Attributes
    ----------
    name, position
        Of the column in the table that was learned from.
    kind : {"number", "boolean", "date", "text"}
        A date becomes days since 1970; a text as many numbers as there are `values`, one of them 1 and the others 0.
    fill : float or None
        What a missing cell counts as; None: there must be none. A missing text is all zeros.
    mean, scale : float
        A number x becomes (x - mean) / scale.
    values : tuple of str
        The texts.
    format : str
        How dates are written.
    missing : tuple of str
        Texts that count as missing cells, besides the usual ones.
    """

    name: str
    position: int
    kind: str = "number"
    fill: float | None = None
    mean: float = 0.0
    scale: float = 1.0
    values: tuple[str, ...] = ()
    format: str = ""
    missing: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """How many numbers a cell becomes."""
        return len(self.values) if self.kind == "text" else 1


def recognised(sheet: Sheet, name: str) -> Feature | str:
    """Return what a column is, or why it cannot be used."""
    from pandas.api import types

    column, position = sheet.frame[name], sheet.position(name)
    if isinstance(column.dtype, _categorical()):
        column = column.astype(object)
    if column.isna().all():
        return NOTHING
    if types.is_bool_dtype(column.dtype):
        return Feature(name, position, "boolean")
    if types.is_complex_dtype(column.dtype):
        return STRANGE
    if types.is_numeric_dtype(column.dtype):
        return Feature(name, position)
    if types.is_datetime64_any_dtype(column.dtype):
        return Feature(name, position, "date", format=DATES[0])
    kind = types.infer_dtype(column, skipna=True)
    if kind == "boolean":
        return Feature(name, position, "boolean")
    if kind in ("date", "datetime", "datetime64"):
        return Feature(name, position, "date", format=DATES[0])
    if kind in ("integer", "floating", "mixed-integer-float", "decimal"):
        return Feature(name, position)
    if kind not in ("string", "empty"):
        return STRANGE
    return _recognised_by_texts(sheet, name, *distinct(sheet, name))


def _recognised_by_texts(sheet: Sheet, name: str, codes: LabelArray, texts: list[str]) -> Feature | str:
    position, present = sheet.position(name), [text for text in texts if text not in MISSING]
    if not present:
        return NOTHING
    if all(text.lower() in BOOLEANS for text in present):
        return Feature(name, position, "boolean")
    numbers = np.array([math.nan if text in MISSING else number_of(text, sheet.decimal) for text in texts])
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    there = np.array([text not in MISSING for text in texts])
    odd = [text for text, number in zip(texts, numbers, strict=True) if math.isnan(number) and text not in MISSING]
    if counts[~np.isnan(numbers)].sum() >= SHARE_OF_NUMBERS * counts[there].sum() and len(odd) <= MOST_VALUES:
        return Feature(name, position, missing=tuple(odd))
    for written in DATES:
        if not np.isnan(_days(present, written)).any():
            return Feature(name, position, "date", format=written)
    if len(present) > MOST_VALUES:
        return f"more than {MOST_VALUES} different texts"
    return Feature(name, position, "text", values=tuple(sorted(present)))


def numbers_of(sheet: Sheet, feature: Feature, name: str) -> FloatArray:
    """Return the numbers of a column that holds no text, NaN where a cell is missing."""
    values = _READERS[feature.kind](sheet, feature, name)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise sheet.complaint(int(infinite[0]), name, "{} is no finite number")
    return values


def distinct(sheet: Sheet, name: str) -> tuple[LabelArray, list[str]]:
    """Return the different cells as texts, and for every row which one it has; -1 where the cell is missing."""
    import pandas as pd

    column = sheet.frame[name]
    if isinstance(column.dtype, _categorical()):
        column = column.astype(object)
    try:
        codes, uniques = pd.factorize(column)
        texts = [_text(value) for value in uniques.tolist()]
    except Exception as error:  # lists, records and the like; of text that is no UTF-8 Arrow says that it is unknown
        raise TableError(f"{sheet.source}{sheet.column(name)} has {STRANGE}") from error
    kept = list(dict.fromkeys(texts))
    if len(kept) < len(texts):  # they differed in blanks around them
        place = {text: i for i, text in enumerate(kept)}
        codes = np.append([place[text] for text in texts], -1)[codes]
    return codes.astype(np.int64), kept


def _numbers(sheet: Sheet, feature: Feature, name: str) -> FloatArray:
    from pandas.api import types

    column = sheet.frame[name]
    if types.is_numeric_dtype(column.dtype):
        return column.to_numpy(np.float64, na_value=np.nan)
    codes, texts = distinct(sheet, name)
    found = np.array([math.nan if text in MISSING else number_of(text, sheet.decimal) for text in texts])
    return _spread(sheet, feature, name, codes, texts, found, "{} is no number")


def _booleans(sheet: Sheet, feature: Feature, name: str) -> FloatArray:
    codes, texts = distinct(sheet, name)
    known = BOOLEANS | {"1": 1.0, "0": 0.0}
    found = np.array([known.get(text.lower(), math.nan) for text in texts])
    return _spread(sheet, feature, name, codes, texts, found, "{} is neither true nor false")


def _dates(sheet: Sheet, feature: Feature, name: str) -> FloatArray:
    import pandas as pd
    from pandas.api import types

    column = sheet.frame[name]
    if types.is_datetime64_any_dtype(column.dtype):
        return _days_of(pd.to_datetime(column, utc=True))
    codes, texts = distinct(sheet, name)
    return _spread(sheet, feature, name, codes, texts, _days(texts, feature.format), "{} is no date")


_READERS: dict[str, Callable[[Sheet, Feature, str], FloatArray]] = {
    "number": _numbers,
    "boolean": _booleans,
    "date": _dates,
}
KINDS = (*_READERS, "text")


def _spread(
    sheet: Sheet, feature: Feature, name: str, codes: LabelArray, texts: list[str], found: FloatArray, reason: str
) -> FloatArray:
    """Return the numbers of all rows, given those of the different texts; a text that has none is an error."""
    absent = {*MISSING, *feature.missing}
    bad = [i for i, text in enumerate(texts) if math.isnan(found[i]) and text not in absent]
    if bad:
        raise sheet.complaint(int(np.isin(codes, bad).argmax()), name, reason)
    return np.append(found, math.nan)[codes]


def number_of(text: str, decimal: str) -> float:
    """Return the number that a text is, NaN where it is none."""
    if GROUPED[decimal].fullmatch(text):
        text = text.replace(OTHER_MARK[decimal], "")
    if NUMBER[decimal].fullmatch(text):
        return float(text.replace(",", "."))
    return math.inf if text.lower().lstrip("+-") in INFINITE else math.nan


def _days(texts: list[str], written: str) -> FloatArray:
    """Return the days since 1970 of dates that are written in a format, NaN for what is none."""
    import pandas as pd

    return _days_of(pd.to_datetime(pd.Series(texts, dtype=object), format=written, utc=True, errors="coerce"))


def _days_of(dates: pd.Series[Any]) -> FloatArray:
    """Return days since 1970 by the unit that the dates have: in nanoseconds, the year 9999 would be out of range."""
    moments = dates.dt.tz_localize(None).to_numpy()
    days: FloatArray = (moments - np.zeros((), moments.dtype)) / np.timedelta64(1, "D")
    return days


def _text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def _categorical() -> type:
    import pandas as pd

    return pd.CategoricalDtype
