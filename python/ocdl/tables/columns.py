"""The kind of a column (numbers, booleans, dates or texts), and its encoding as numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ocdl.base.validation import FloatArray, LabelArray
from ocdl.tables.dialect import MISSING, parse_number
from ocdl.tables.frame import TableError, TableFrame

if TYPE_CHECKING:
    import pandas as pd

MAX_VALUES = 50  # of a column of texts that is one-hot encoded, by default
MIN_FRACTION_OF_NUMBERS = 0.9  # of the cells, from which on the others count as missing
DATES = (
    *("ISO8601", "%d.%m.%Y", "%d.%m.%Y %H:%M", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%m/%d/%y", "%d-%m-%Y"),
    *("%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y"),
    *("%d.%m.%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%d/%m/%Y %H:%M:%S"),
    *("%m/%d/%Y %I:%M %p", "%m/%d/%Y %I:%M:%S %p"),
)
BOOLEANS = {"true": 1.0, "false": 0.0}
NO_VALUES, UNUSABLE = "no values", "neither numbers nor texts nor dates"  # why a column is left out
ALL_DIFFERENT = "nearly every row has a different text"
MAX_UNIQUE = 0.9  # of the rows: with more texts that occur only once, a column is left out
MIN_DATES = 10  # different ones, from which on cycles are considered
# Cycles of dates in days: they carry the same information as month, weekday and hour, without a jump at the end.
CYCLES = {"year": 365.2425, "week": 7.0, "day": 1.0}


@dataclass(frozen=True)
class Feature:
    """A column that a model takes, and its encoding.

    Attributes
    ----------
    name, position
        Of the column in the table that was learned from.
    kind : {"number", "boolean", "date", "text", "code"}
        A code is a number that names a category; it is encoded as a text.
    values : tuple of str
        Of a text that is one-hot encoded: as many numbers as values, one of them 1 and the others 0; a missing text is
        all zeros.
    n_means : int
        Of a text with too many values: the number of target means that it becomes. 0: it is one-hot encoded.
    format : str
        How dates are written.
    cycles : tuple of str
        Those whose cosine and sine encode a date, besides the days since 1970.
    missing : tuple of str
        Texts that count as missing cells, besides the usual ones.
    has_indicator : bool
        Whether another number indicates that the cell is missing.
    """

    name: str
    position: int
    kind: str = "number"
    values: tuple[str, ...] = ()
    n_means: int = 0
    format: str = ""
    cycles: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    has_indicator: bool = False

    @property
    def is_category(self) -> bool:
        """Whether the cells are taken as texts."""
        return self.kind in ("text", "code")

    @property
    def is_one_hot(self) -> bool:
        """Whether a cell becomes zeros and ones."""
        return self.is_category and not self.n_means

    @property
    def n_numbers(self) -> int:
        """How many numbers a cell becomes, without an indicator."""
        if self.is_category:
            return self.n_means or len(self.values)
        return 1 + 2 * len(self.cycles)

    @property
    def number_names(self) -> list[str]:
        """Names for these numbers."""
        if self.is_one_hot:
            return [f"{self.name}_{value}" for value in self.values]
        if self.n_means > 1:
            return [f"{self.name}_mean_{i}" for i in range(self.n_means)]
        if self.n_means:
            return [f"{self.name}_mean"]
        return [self.name, *(f"{self.name}_{cycle}_{part}" for cycle in self.cycles for part in ("cos", "sin"))]


def infer_feature(
    frame: TableFrame, name: str, *, categorical: Collection[str] = (), max_categories: int = MAX_VALUES
) -> Feature | str:
    """Return what a column is, or why it cannot be used.

    A text of more than `max_categories` values has none of them yet, and no target means.
    """
    from pandas.api import types

    column, position = frame.data[name], frame.position(name)
    if isinstance(column.dtype, _categorical()):
        column = column.astype(object)
    if column.isna().all():
        return NO_VALUES
    if types.is_bool_dtype(column.dtype):
        return Feature(name, position, "boolean")
    if types.is_complex_dtype(column.dtype):
        return UNUSABLE
    if types.is_numeric_dtype(column.dtype) and name not in categorical:
        return Feature(name, position)
    if types.is_datetime64_any_dtype(column.dtype):
        return Feature(name, position, "date", format=DATES[0], cycles=_cycles(_convert_dates(column)))
    kind = types.infer_dtype(column, skipna=True)
    if kind == "boolean":
        return Feature(name, position, "boolean")
    if kind in ("date", "datetime", "datetime64"):
        feature = Feature(name, position, "date", format=DATES[0])
        return replace(feature, cycles=_cycles(_dates(frame, feature, name)))
    if name in categorical and kind not in ("string", "empty", "mixed"):
        codes, texts = factorize_texts(frame, name, "code")
        return _category(name, position, "code", codes, [text for text in texts if text not in MISSING], max_categories)
    if kind in ("integer", "floating", "mixed-integer-float", "decimal"):
        return Feature(name, position)
    if kind not in ("string", "empty"):
        return UNUSABLE
    codes, texts = factorize_texts(frame, name)
    if name in categorical:
        present = [text for text in texts if text not in MISSING]
        return _category(name, position, "text", codes, present, max_categories) if present else NO_VALUES
    return _infer_from_texts(frame, name, codes, texts, max_categories)


def _category(
    name: str, position: int, kind: str, codes: LabelArray, present: list[str], max_categories: int
) -> Feature | str:
    if len(present) <= max_categories:
        return Feature(name, position, kind, values=tuple(sorted(present)))
    counts = np.bincount(codes[codes >= 0])
    if np.sum(counts == 1) > MAX_UNIQUE * np.sum(counts):
        return ALL_DIFFERENT
    return Feature(name, position, kind)


def _infer_from_texts(
    frame: TableFrame, name: str, codes: LabelArray, texts: list[str], max_categories: int
) -> Feature | str:
    position, present = frame.position(name), [text for text in texts if text not in MISSING]
    if not present:
        return NO_VALUES
    if all(text.lower() in BOOLEANS for text in present):
        return Feature(name, position, "boolean")
    numbers = np.array([math.nan if text in MISSING else parse_number(text, frame.decimal) for text in texts])
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    is_present = np.array([text not in MISSING for text in texts])
    not_numbers = [
        text for text, number in zip(texts, numbers, strict=True) if math.isnan(number) and text not in MISSING
    ]
    if (
        counts[~np.isnan(numbers)].sum() >= MIN_FRACTION_OF_NUMBERS * counts[is_present].sum()
        and len(not_numbers) <= MAX_VALUES
    ):
        return Feature(name, position, missing=tuple(not_numbers))
    for date_format in DATES:
        days = _parse_dates(present, date_format)
        if not np.isnan(days).any():
            return Feature(name, position, "date", format=date_format, cycles=_cycles(days))
    return _category(name, position, "text", codes, present, max_categories)


def _cycles(days: FloatArray) -> tuple[str, ...]:
    """Return the cycles that dates cover at least once, and in which they are not all at the same point."""
    days = days[~np.isnan(days)]
    if len(np.unique(days)) < MIN_DATES:
        return ()
    span = np.ptp(days)
    return tuple(
        name for name, length in CYCLES.items() if span > length and np.ptp(days % length) > CYCLES["day"] * 1e-9
    )


def to_cycles(days: FloatArray, cycles: Collection[str]) -> FloatArray:
    """Return days, and the cosine and the sine of each cycle; NaN where the date is missing."""
    angles = [2 * np.pi / CYCLES[cycle] * days for cycle in cycles]
    return np.column_stack([days, *(part(angle) for angle in angles for part in (np.cos, np.sin))])


def to_numbers(frame: TableFrame, feature: Feature, name: str) -> FloatArray:
    """Return the numbers of a column that holds no text, NaN where a cell is missing."""
    values = _READERS[feature.kind](frame, feature, name)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise frame.error(int(infinite[0]), name, "{} is not a finite number")
    return values


def factorize_texts(frame: TableFrame, name: str, kind: str = "text") -> tuple[LabelArray, list[str]]:
    """Return the different cells as texts, and for every row which one it has; -1 where the cell is missing.

    Codes that are numbers are the same texts, however they are written.
    """
    import pandas as pd

    column = frame.data[name]
    if isinstance(column.dtype, _categorical()):
        column = column.astype(object)
    try:
        codes, uniques = pd.factorize(column)
        texts = [_text(value) for value in uniques.tolist()]
        if kind == "code":
            numbers = [parse_number(text, frame.decimal) for text in texts]
            texts = [_text(n) if math.isfinite(n) else text for n, text in zip(numbers, texts, strict=True)]
    except Exception as error:  # lists, records and the like; of text that is no UTF-8 Arrow says that it is unknown
        raise TableError(f"{frame.source}{frame.describe(name)} has {UNUSABLE}") from error
    unique = list(dict.fromkeys(texts))
    if len(unique) < len(texts):  # they differed in blanks around them
        index = {text: i for i, text in enumerate(unique)}
        codes = np.append([index[text] for text in texts], -1)[codes]
    return codes.astype(np.int64), unique


def _numbers(frame: TableFrame, feature: Feature, name: str) -> FloatArray:
    from pandas.api import types

    column = frame.data[name]
    if types.is_numeric_dtype(column.dtype):
        return column.to_numpy(np.float64, na_value=np.nan)
    codes, texts = factorize_texts(frame, name)
    numbers = np.array([math.nan if text in MISSING else parse_number(text, frame.decimal) for text in texts])
    return _expand(frame, feature, name, codes, texts, numbers, "{} is not a number")


def _booleans(frame: TableFrame, feature: Feature, name: str) -> FloatArray:
    codes, texts = factorize_texts(frame, name)
    known = BOOLEANS | {"1": 1.0, "0": 0.0}
    numbers = np.array([known.get(text.lower(), math.nan) for text in texts])
    return _expand(frame, feature, name, codes, texts, numbers, "{} is neither true nor false")


def _dates(frame: TableFrame, feature: Feature, name: str) -> FloatArray:
    from pandas.api import types

    column = frame.data[name]
    if types.is_datetime64_any_dtype(column.dtype):
        return _convert_dates(column)
    codes, texts = factorize_texts(frame, name)
    return _expand(frame, feature, name, codes, texts, _parse_dates(texts, feature.format), "{} is not a date")


_READERS: dict[str, Callable[[TableFrame, Feature, str], FloatArray]] = {
    "number": _numbers,
    "boolean": _booleans,
    "date": _dates,
}
KINDS = (*_READERS, "text", "code")


def _expand(
    frame: TableFrame,
    feature: Feature,
    name: str,
    codes: LabelArray,
    texts: list[str],
    numbers: FloatArray,
    reason: str,
) -> FloatArray:
    """Return the numbers of all rows, given those of the different texts; a text that has none is an error."""
    absent = {*MISSING, *feature.missing}
    bad = [i for i, text in enumerate(texts) if math.isnan(numbers[i]) and text not in absent]
    if bad:
        raise frame.error(int(np.isin(codes, bad).argmax()), name, reason)
    return np.append(numbers, math.nan)[codes]


def _parse_dates(texts: list[str], date_format: str) -> FloatArray:
    """Return the days since 1970 of dates that are written in a format, NaN for what is none."""
    import pandas as pd

    return _to_days(pd.to_datetime(pd.Series(texts, dtype=object), format=date_format, utc=True, errors="coerce"))


def _convert_dates(column: Any) -> FloatArray:
    import pandas as pd

    return _to_days(pd.to_datetime(column, utc=True))


def _to_days(dates: pd.Series[Any]) -> FloatArray:
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
