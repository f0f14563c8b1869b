"""``ocdl simulate``: trajectories of a learned system."""

from __future__ import annotations

import argparse
import csv
import io
import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocdl.base.names import pluralise
from ocdl.base.validation import FloatArray
from ocdl.cli._interrupts import reraise_swallowed_interrupts
from ocdl.cli._output import (
    UserError,
    add_command,
    json_text,
    parse_real,
    print_warnings,
    report_output_state,
    require_place_for,
    write_text,
)
from ocdl.cli._series import SeriesTable, add_columns, read_series_table
from ocdl.files import load
from ocdl.storage.container import file_error
from ocdl.tables.columns import Feature, to_numbers
from ocdl.tables.frame import resolve_column
from ocdl.tables.reading import peek

MAX_TIMES = 10_000_000
NEGATIVE = re.compile(r"^-(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$", re.IGNORECASE)
EXAMPLES = """\
  ocdl simulate model.ocdl --start 1 2 --times 0:10:0.1
  ocdl simulate model.ocdl --starts starts.csv --times 0:10:0.1 --out trajectories.csv
  ocdl simulate model.ocdl --data new.csv --time t --series id --out simulated.csv
  ocdl simulate model.ocdl --data new.csv --time t --times 0:20:0.1 --quantiles 0.1 0.9

A simulation starts from --start, from each row of --starts, or from the state that fits a series of
--data best, whose times it takes unless there are --times. A system with inputs takes them from
--data, also from --start on; between the times of the table they are interpolated."""


@dataclass(frozen=True, eq=False)
class Task:
    """A simulation: its name, initial state and times; `path` are the times at which its inputs are known, too."""

    name: str
    start: FloatArray
    times: FloatArray
    path: FloatArray
    inputs: FloatArray | None


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    parser = add_command(commands, "simulate", "simulate a learned system", EXAMPLES)
    parser._negative_number_matcher = NEGATIVE  # argparse's own has no exponents
    parser.add_argument("model", metavar="MODEL", help="a file of ocdl dynamics, or of the method save of Dynamics")
    start = parser.add_argument_group("start")
    start.add_argument("--start", nargs="+", type=_number, metavar="VALUE", help="the initial state")
    start.add_argument("--starts", metavar="FILE", help="a table with an initial state in each row")
    start.add_argument("--data", metavar="FILE", help="a table of series: their states, times and inputs")
    add_columns(parser.add_argument_group("columns of --data"))
    output = parser.add_argument_group("times and output")
    output.add_argument(
        "--times", type=_times, metavar="FIRST:LAST:STEP", help="the times; default: those of the series in --data"
    )
    output.add_argument(
        "--quantiles", nargs="+", type=_level, metavar="LEVEL", help="quantiles over the models of an ensemble"
    )
    output.add_argument("--out", metavar="FILE", help="the CSV file to write, instead of stdout")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print or write the trajectories."""
    with report_output_state(arguments.out):
        _run(arguments)


@reraise_swallowed_interrupts
def _run(arguments: argparse.Namespace) -> None:
    _require_options(arguments)
    model = _read_model(arguments.model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        columns: dict[str, list[Any]] = {}
        for task in _tasks(model, arguments):
            for name, values in _simulate(model, task, arguments.quantiles or []).items():
                columns.setdefault(name, []).extend(values)
    print_warnings(caught)
    text = json_text(columns) + "\n" if arguments.json else _csv(columns)
    if arguments.out is None:
        print(text, end="")
    else:
        write_text(arguments.out, text)


def _require_options(arguments: argparse.Namespace) -> None:
    """Refuse options that cannot be combined, before any file is read."""
    if arguments.start is not None and arguments.starts is not None:
        raise UserError("--start and --starts cannot be combined; leave one of them out")
    if arguments.starts is not None and arguments.data is not None:
        raise UserError("--starts and --data cannot be combined; --start and --data can, for the inputs of --data")
    if arguments.start is None and arguments.starts is None and arguments.data is None:
        raise UserError("--start, --starts or --data is required: where the simulation starts")
    if arguments.data is None and arguments.times is None:
        raise UserError("--times is required, as FIRST:LAST:STEP, unless --data has the times")
    if arguments.data is None:
        for option in ("time", "step", "series", "states", "inputs"):
            if getattr(arguments, option) is not None:
                raise UserError(f"--{option} says what a column of --data is; there is no --data")
    if arguments.out is not None:
        files = (arguments.model, arguments.starts, arguments.data)
        require_place_for(arguments.out, *(path for path in files if path is not None))


def _read_model(path: str) -> Any:
    """Return the model of a file, which must be a Dynamics."""
    model = load(path)
    if not callable(getattr(model, "simulate", None)):
        raise file_error(path, f"holds {type(model).__name__}, not Dynamics: ocdl dynamics writes one")
    return model


def _tasks(model: Any, arguments: argparse.Namespace) -> Iterator[Task]:
    """Yield the simulations that the options describe."""
    if arguments.data is not None:
        yield from _tasks_of_series(model, arguments)
        return
    _require_inputs(model, 0)
    starts = [arguments.start] if arguments.starts is None else _read_starts(model, arguments.starts)
    for number, start in enumerate(starts, 1):
        yield Task(str(number), _check_start(model, start), arguments.times, arguments.times, None)


def _tasks_of_series(model: Any, arguments: argparse.Namespace) -> Iterator[Task]:
    if arguments.inputs is None and model.input_names_:
        arguments.inputs = model.input_names_
    table = read_series_table(arguments.data, arguments, _observed_names(model))
    _require_inputs(model, table.inputs[0].shape[1] if table.inputs else 0)
    for i, name in enumerate(table.ids):
        times = table.times[i] if arguments.times is None else arguments.times
        path, inputs = times, None
        if table.inputs:
            clock = table.times[i]
            path = np.union1d(times, clock[(clock > times[0]) & (clock < times[-1])])
            inputs = _interpolate(table, i, path)
        if arguments.start is not None:
            start = _check_start(model, arguments.start)
        else:
            start = _initial_state(model, table, i, times[0])
        yield Task(name, start, times, path, inputs)


def _initial_state(model: Any, table: SeriesTable, number: int, first: float) -> FloatArray:
    """Return the state of a series at the first time of a simulation."""
    name, clock = table.ids[number], table.times[number]
    try:
        state: FloatArray = model.initial_state(table.states[number], clock, **table.options(number))
        if first == clock[0]:
            return state
        if first < clock[0]:
            raise UserError(
                f"--times begin at {first:g}, before series {name!r} does, at {clock[0]:g}: its state is not known then"
            )
        inputs = {}
        path = np.array([clock[0], first])
        if table.inputs:
            path = np.union1d(clock[clock < first], [first])
            inputs = {"inputs": _interpolate(table, number, path)}
        states: FloatArray = model.simulate(state, path, **inputs)
        last: FloatArray = states[-1]
        return last
    except (FloatingPointError, ValueError) as error:
        raise UserError(f"{table.source}series {name!r}: {error}") from error


def _interpolate(table: SeriesTable, number: int, times: FloatArray) -> FloatArray:
    """Return the inputs of a series at these times."""
    clock = table.times[number]
    if times[0] < clock[0] or times[-1] > clock[-1]:
        raise UserError(
            f"{table.source}--times {times[0]:g} to {times[-1]:g} must lie within those of series "
            f"{table.ids[number]!r}, {clock[0]:g} to {clock[-1]:g}: its inputs are known there"
        )
    values = table.inputs[number].to_numpy(np.float64)
    return np.stack([np.interp(times, clock, column) for column in values.T], axis=1)


def _require_inputs(model: Any, given: int) -> None:
    expected = len(model.input_names_)
    if expected and not given:
        raise UserError(f"the system takes {pluralise(expected, 'input')}; --data and --inputs say what they are")
    if given != expected:
        raise UserError(f"the system takes {pluralise(expected, 'input')}, but --inputs names {given}")


def _observed_names(model: Any) -> list[str]:
    """Return the names of the columns that a model was fitted to: those of the components that they observe."""
    matrix = np.abs(model.models_[0].W)
    return (
        [model.state_names_[j] for j in matrix.argmax(axis=1)] if (np.count_nonzero(matrix, axis=1) == 1).all() else []
    )


def _read_starts(model: Any, path: str) -> list[FloatArray]:
    """Return the initial states in the rows of a table, whose columns are matched by name, or else by position."""
    names = model.state_names_
    table = peek(path, names, labelled=False)
    if table.has_names and {*names} & {*table.names}:
        columns = [resolve_column(name, table.names, "--starts", table.source) for name in names]
    elif len(table.names) == len(names):
        columns = list(range(len(names)))
    else:
        raise UserError(
            f"{table.source}there are {pluralise(len(table.names), 'column')}, but the system has "
            f"{pluralise(len(names), 'state')}, {', '.join(names)}"
        )
    frame = table.read(columns)
    order = [table.names[column] for column in columns]
    values = [to_numbers(frame, Feature(name, frame.position(name)), name) for name in order]
    for name, column in zip(order, values, strict=True):
        missing = np.flatnonzero(np.isnan(column))
        if len(missing):
            raise frame.error(int(missing[0]), name, "an initial state is missing")
    return [*np.stack(values, axis=1)]


def _check_start(model: Any, start: Any) -> FloatArray:
    names = model.state_names_
    if len(start) != len(names):
        raise UserError(
            f"--start takes {pluralise(len(names), 'number')}, one for each state, {', '.join(names)}; got {len(start)}"
        )
    return np.asarray(start, np.float64)


def _simulate(model: Any, task: Task, levels: list[float]) -> dict[str, list[Any]]:
    """Return the columns of a trajectory: its name, the times, and each state or its quantiles."""
    options = {} if task.inputs is None else {"inputs": task.inputs}
    if levels and len(model.models_) == 1:
        raise UserError("--quantiles need an ensemble, which ocdl dynamics --ensemble N fits; this is a single model")
    try:
        rows = np.searchsorted(task.path, task.times)
        states = model.simulate(task.start, task.path, **options)[rows]
        bands = model.simulate(task.start, task.path, quantiles=levels, **options)[:, rows] if levels else ()
    except (FloatingPointError, ValueError) as error:
        raise UserError(str(error)) from error
    columns: dict[str, list[Any]] = {"series": [task.name] * len(states), "time": task.times.tolist()}
    for j, name in enumerate(model.state_names_):
        columns[name] = states[:, j].tolist()
        columns |= {f"{name} q{level:g}": band[:, j].tolist() for level, band in zip(levels, bands, strict=True)}
    return columns


def _csv(columns: dict[str, list[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _times(text: str) -> FloatArray:
    """Parse FIRST:LAST:STEP; the last time is one of them, where the step divides the interval."""
    parts = [parse_real(part) for part in text.split(":")]
    if len(parts) != 3 or not all(map(math.isfinite, parts)) or not (parts[1] > parts[0] and parts[2] > 0):
        raise argparse.ArgumentTypeError(
            f"must be FIRST:LAST:STEP, three numbers as 0:10:0.1 with FIRST < LAST and STEP > 0, got {text!r}"
        )
    first, last, step = parts
    count = math.floor((last - first) / step * (1 + 1e-12)) + 1
    if count > MAX_TIMES:
        raise argparse.ArgumentTypeError(f"must be at most {MAX_TIMES} times, got {text!r} with {count}")
    times: FloatArray = first + step * np.arange(count)
    return times


def _number(text: str) -> float:
    value = parse_real(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be numbers, got {text!r}")
    return value


def _level(text: str) -> float:
    value = parse_real(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be from 0 to 1, got {text!r}")
    return value
