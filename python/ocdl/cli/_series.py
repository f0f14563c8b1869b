"""The series of ``ocdl dynamics`` and ``ocdl simulate``: rows of a table, by their series and in the order of time."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ocdl.base.names import pluralise
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.cli._interrupts import reraise_swallowed_interrupts
from ocdl.cli._output import UserError, has_progress_bar, parse_positive
from ocdl.tables.columns import Feature, infer_feature, to_numbers
from ocdl.tables.frame import TableFrame, resolve_column
from ocdl.tables.reading import peek

if TYPE_CHECKING:
    import pandas as pd

DATES = "days"  # the unit of times that are dates
NUMBERS = ("number", "boolean")


@dataclass(frozen=True, eq=False)
class SeriesTable:
    """The series of a table.

    Attributes
    ----------
    ids : list of str
        What the series are called.
    times : list of ndarray
        The increasing times of each series.
    states, inputs : list of DataFrame
        Its rows, one per time; no inputs: an empty list.
    unit : str
        The unit of the times, where the table says it.
    source : str
        How messages begin.
    """

    ids: list[str]
    times: list[FloatArray]
    states: list[pd.DataFrame]
    inputs: list[pd.DataFrame]
    unit: str = ""
    source: str = ""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_rows(self) -> int:
        """The number of rows of all series."""
        return sum(map(len, self.times))

    def take(self, numbers: Sequence[int]) -> SeriesTable:
        """Return some of the series."""
        return replace(
            self,
            ids=[self.ids[i] for i in numbers],
            times=[self.times[i] for i in numbers],
            states=[self.states[i] for i in numbers],
            inputs=[self.inputs[i] for i in numbers] if self.inputs else [],
        )

    def cut(self, rows: Sequence[slice]) -> SeriesTable:
        """Return a part of each series."""
        return replace(
            self,
            times=[times[part] for times, part in zip(self.times, rows, strict=True)],
            states=[states.iloc[part] for states, part in zip(self.states, rows, strict=True)],
            inputs=[inputs.iloc[part] for inputs, part in zip(self.inputs, rows, strict=True)] if self.inputs else [],
        )

    def options(self, number: int | None = None) -> dict[str, Any]:
        """Return the argument `inputs` of the methods of a model, for one series or for all."""
        if not self.inputs:
            return {}
        return {"inputs": self.inputs if number is None else self.inputs[number]}


def add_columns(group: argparse._ArgumentGroup) -> None:
    """Add the options that say what the columns of a table are."""
    group.add_argument("--time", metavar="COLUMN", help="the times, numbers or dates (which become days)")
    group.add_argument("--step", type=parse_positive, metavar="DT", help="the time between rows, instead of --time")
    group.add_argument(
        "--series", metavar="COLUMN", help="what says which series a row belongs to; default: there is one series"
    )
    group.add_argument("--states", nargs="+", metavar="COLUMN", help="the states; default: all other numbers")
    group.add_argument("--inputs", nargs="+", metavar="COLUMN", help="known inputs of the system; default: none")


@reraise_swallowed_interrupts
def read_series_table(path: str, arguments: argparse.Namespace, known: Sequence[str] = ()) -> SeriesTable:
    """Return the series in a table, whose columns the options describe; `known` are the names of states.

    Rows may stand in any order if there are times. A missing state is NaN; a row without a time or with a missing
    input is an error.
    """
    named = [arguments.time, arguments.series, *(arguments.states or known), *(arguments.inputs or ())]
    table = peek(path, [name for name in named if name is not None and not name.isdecimal()])
    names, source = table.names, table.source
    if (arguments.time is None) == (arguments.step is None):
        raise UserError(
            "--time COLUMN or --step DT is required, one of them: the times of the rows"
            if arguments.time is None
            else "--time and --step cannot be combined; leave one of them out"
        )

    def resolve(entry: str, option: str) -> str:
        return names[resolve_column(entry, names, option, source)]

    time = None if arguments.time is None else resolve(arguments.time, "--time")
    series = None if arguments.series is None else resolve(arguments.series, "--series")
    inputs = [resolve(entry, "--inputs") for entry in arguments.inputs or ()]
    texts = () if series is None else (names.index(series),)
    frame = table.read(texts=texts, progress=has_progress_bar(arguments))
    states = [resolve(entry, "--states") for entry in arguments.states or known]
    others = {time, series, *inputs}
    _require_distinct([*states, *(name for name in (time, series, *inputs) if name is not None)], source)
    if not states:
        states = [name for name in names if name not in others and _is_number(frame, name)]
    if not states:
        raise UserError(f"{source}there is no column of numbers left to be a state; --states names the columns")
    ids, codes = _series_ids(frame, series)
    clock, unit = _read_times(frame, time, arguments.step, codes)
    given = {name: to_numbers(frame, _number_feature(frame, name), name) for name in (*states, *inputs)}
    for name in inputs:
        missing = np.flatnonzero(np.isnan(given[name]))
        if len(missing):
            raise frame.error(int(missing[0]), name, "an input is missing; inputs are known at every time")
    return _split(frame, ids, codes, clock, unit, time, (given, states, inputs))


def _split(
    frame: TableFrame,
    ids: list[str],
    codes: LabelArray,
    clock: FloatArray,
    unit: str,
    time: str | None,
    columns: tuple[dict[str, FloatArray], list[str], list[str]],
) -> SeriesTable:
    """Return the rows of each series, sorted by time."""
    import pandas as pd

    given, states, inputs = columns
    result = SeriesTable([], [], [], [], unit, frame.source)
    for number, name in enumerate(ids):
        rows = np.flatnonzero(codes == number)
        rows = rows[np.argsort(clock[rows], kind="stable")]
        equal = np.flatnonzero(np.diff(clock[rows]) <= 0)
        if len(equal) and time is not None:
            of_series = "" if len(ids) == 1 else f" in series {name!r}"
            advice = "; --series says which series a row belongs to" if len(ids) == 1 else ""
            raise frame.error(int(rows[equal[0] + 1]), time, f"the time {{}} is there twice{of_series}{advice}")
        result.ids.append(name)
        result.times.append(clock[rows])
        result.states.append(pd.DataFrame({column: given[column][rows] for column in states}))
        if inputs:
            result.inputs.append(pd.DataFrame({column: given[column][rows] for column in inputs}))
    return result


def _series_ids(frame: TableFrame, series: str | None) -> tuple[list[str], LabelArray]:
    """Return the names of the series in the order of their first rows, and the number of the series of each row."""
    import pandas as pd

    if series is None:
        return ["1"], np.zeros(len(frame), np.int64)
    codes, uniques = pd.factorize(frame.data[series])
    if (codes < 0).any():
        raise frame.error(int(np.argmax(codes < 0)), series, "the name of the series is missing")
    return [str(name) for name in uniques], codes.astype(np.int64)


def _read_times(frame: TableFrame, time: str | None, step: float | None, codes: LabelArray) -> tuple[FloatArray, str]:
    """Return the time of each row, and its unit if the table says it."""
    if time is None:
        clock = np.empty(len(codes))
        for number in np.unique(codes):
            rows = np.flatnonzero(codes == number)
            clock[rows] = (step or 1.0) * np.arange(len(rows))
        return clock, ""
    feature = infer_feature(frame, time)
    if isinstance(feature, str) or feature.kind not in (*NUMBERS, "date"):
        raise UserError(f"{frame.source}{frame.describe(time)} is --time, but has neither numbers nor dates")
    clock = to_numbers(frame, feature, time)
    missing = np.flatnonzero(np.isnan(clock))
    if len(missing):
        raise frame.error(int(missing[0]), time, "the time is missing")
    if feature.kind != "date":
        return clock, ""
    return clock - clock.min(), DATES


def _is_number(frame: TableFrame, name: str) -> bool:
    feature = infer_feature(frame, name)
    return not isinstance(feature, str) and feature.kind in NUMBERS


def _number_feature(frame: TableFrame, name: str) -> Feature:
    """Return how a column is read that must have numbers."""
    feature = infer_feature(frame, name)
    if isinstance(feature, str) or feature.kind not in NUMBERS:
        kind = feature if isinstance(feature, str) else f"{feature.kind}s"
        raise UserError(f"{frame.source}{frame.describe(name)} must have numbers, it has {kind}")
    return feature


def _require_distinct(names: Sequence[str], source: str) -> None:
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise UserError(
            f"{source}{twice!r} is named twice; --time, --series, --states and --inputs are different columns"
        )


def describe_series(table: SeriesTable) -> str:
    """Return how many series and rows there are, and over which times."""
    spans = [float(times[-1] - times[0]) for times in table.times]
    low, high = min(spans), max(spans)
    length = f"{high:g}" if low == high else f"{low:g} to {high:g}"
    unit = f" {table.unit}" if table.unit else ""
    return f"{pluralise(len(table), 'series', 'series')}, {pluralise(table.n_rows, 'row')}, each over {length}{unit}"
