"""``ocdl dynamics``: a dynamical system from a table of time series."""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ocdl.base.names import pluralise
from ocdl.base.validation import FloatArray
from ocdl.cli._interrupts import Interrupted, reraise_swallowed_interrupts
from ocdl.cli._output import (
    UserError,
    add_command,
    add_seed,
    align,
    has_progress_bar,
    integer_parser,
    json_text,
    name_parser,
    parse_fraction,
    parse_positive,
    parse_real,
    print_warnings,
    report_output_state,
    require_place_for,
)
from ocdl.cli._series import SeriesTable, add_columns, describe_series, read_series_table
from ocdl.model.tableau import ALIASES as TABLEAU_ALIASES
from ocdl.model.tableau import tableaux

POSITIVE = integer_parser(1, 2**31 - 1)
FIELDS = ("mlp", "polynomial")
TEST_SIZE = 0.2
FEWEST = 3  # times of a series that a model is fitted to
EXAMPLES = """\
  ocdl dynamics data.csv --time t --out model.ocdl
  ocdl dynamics data.csv --time t --series id --states a b --inputs c --out model.ocdl
  ocdl dynamics data.parquet --time t --series id --field polynomial --degree 3 --out model.ocdl
  ocdl dynamics data.csv --step 0.1 --ensemble 10 --out model.ocdl

Each row of the table has the states of a series at a time, and its inputs if there are any. Times
may be irregular, and differ from series to series; a state may be missing, an input not.

The saved model is fitted to all rows. A second model is fitted without the data held out, and
forecasts these: whole series if there are enough of them, otherwise the end of each series. R^2 is
1 for a perfect forecast, and 0 for one that says the mean.

Ctrl-C during the fit leaves no model file. Ctrl-C during the evaluation keeps the model of all rows."""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    parser = add_command(commands, "dynamics", "learn a dynamical system from time series", EXAMPLES)
    parser.add_argument("data", metavar="DATA", help="a CSV or Parquet file, or - for CSV from stdin")
    parser.add_argument("--out", required=True, metavar="MODEL", help="the model file to write, usually *.ocdl")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors, and JSON with --json")
    add_columns(parser.add_argument_group("data"))
    _add_model(parser.add_argument_group("model"))
    fitting = parser.add_argument_group("fit and evaluation")
    fitting.add_argument("--max-iter", type=POSITIVE, metavar="N", help="iterations; default: enough for most data")
    fitting.add_argument(
        "--test-size",
        type=parse_fraction,
        default=TEST_SIZE,
        metavar="FRACTION",
        help="the fraction of the series, or of the times of each, to hold out; default: %(default)s",
    )
    add_seed(fitting)
    parser.set_defaults(run=run)


def _add_model(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--field",
        type=name_parser(FIELDS),
        default=FIELDS[0],
        metavar="NAME",
        help="mlp: any smooth system; polynomial: a system that equations describe; default: %(default)s",
    )
    group.add_argument("--width", type=POSITIVE, metavar="N", help="the hidden units of an mlp; default: 32")
    group.add_argument("--degree", type=integer_parser(1, 10), metavar="N", help="of polynomials; default: 3")
    group.add_argument(
        "--sparsity",
        type=_weight,
        metavar="WEIGHT",
        help="how strongly terms of polynomials are left out; default: auto, chosen on data held out",
    )
    group.add_argument("--alpha", type=_weight, metavar="FACTOR", help="the strength of the prior; default: auto")
    group.add_argument(
        "--augment", type=integer_parser(0, 1000), metavar="N", help="hidden states beside those observed; default: 0"
    )
    group.add_argument(
        "--tableau",
        type=name_parser(tableaux(), TABLEAU_ALIASES),
        metavar="NAME",
        help="the Runge-Kutta method; default: kutta4",
    )
    group.add_argument("--max-step", type=parse_positive, metavar="H", help="of time; default: chosen from the data")
    group.add_argument(
        "--ensemble",
        type=integer_parser(1, 1000),
        metavar="N",
        help="how many models to fit, whose differences are the uncertainty of a simulation; default: 1",
    )


PARAMETERS = {
    "width": "width",
    "degree": "degree",
    "sparsity": "sparsity",
    "alpha": "alpha",
    "augment": "augment",
    "tableau": "tableau",
    "max_step": "max_step",
    "ensemble": "n_models",
    "max_iter": "max_iter",
}


def run(arguments: argparse.Namespace) -> None:
    """Fit a model, write it, and print what it has learned."""
    with report_output_state(arguments.out), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _require_options(arguments)
        table = read_series_table(arguments.data, arguments)
        _require_times(table)
        start = time.perf_counter()
        model = fit_series(make_model(arguments), table)
        model.save(arguments.out)
        report = describe_model(model, table) | {"out": arguments.out}
    try:
        report |= _evaluate(table, arguments)
    except KeyboardInterrupt:
        report["interrupted"] = True
    report["seconds"] = round(time.perf_counter() - start, 3)
    if not arguments.quiet:
        print_warnings(caught)
    if arguments.json:
        print(json_text(report))
    elif not arguments.quiet:
        print(_format(report, describe_series(table)))
    if report.get("interrupted"):
        raise Interrupted(f"interrupted during the evaluation; {arguments.out!r} has the model of all rows")


def _require_options(arguments: argparse.Namespace) -> None:
    """Refuse options that cannot be combined, before the table is read."""
    for option, field in (("width", "mlp"), ("degree", "polynomial"), ("sparsity", "polynomial")):
        if getattr(arguments, option) is not None and arguments.field != field:
            raise UserError(f"--{option} is for --field {field}; leave it out with --field {arguments.field}")
    require_place_for(arguments.out, arguments.data)


def _require_times(table: SeriesTable) -> None:
    for name, times in zip(table.ids, table.times, strict=True):
        if len(times) < FEWEST:
            of = f"series {name!r}" if len(table) > 1 else "the table"
            raise UserError(f"{table.source}{of} has {pluralise(len(times), 'row')}; a series needs {FEWEST} at least")


def make_model(arguments: argparse.Namespace) -> Any:
    """Return the estimator that the options describe."""
    from ocdl.dynamics import Dynamics

    given = {name: getattr(arguments, option) for option, name in PARAMETERS.items()}
    settings = {name: value for name, value in given.items() if value is not None}
    return Dynamics(
        field=arguments.field, random_state=arguments.seed, verbose=int(has_progress_bar(arguments)), **settings
    )


def fit_series(model: Any, table: SeriesTable) -> Any:
    """Fit a model to the series of a table; what it prints of its progress goes to stderr."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return reraise_swallowed_interrupts(model.fit)(table.states, table.times, **table.options())
    except (FloatingPointError, ValueError) as error:
        raise UserError(f"{table.source}{error}") from error


def describe_model(model: Any, table: SeriesTable) -> dict[str, Any]:
    """Return what was learned, for JSON."""
    states = [str(name) for name in table.states[0].columns]
    noise = np.broadcast_to(np.asarray(model.noise_, np.float64), len(states))
    return {
        "series": len(table),
        "rows": table.n_rows,
        "states": states,
        "inputs": [str(name) for name in table.inputs[0].columns] if table.inputs else [],
        "field": model.field,
        "noise": dict(zip(states, noise.tolist(), strict=True)),
        "equations": model.equations() if model.field == "polynomial" else [],
    }


def _evaluate(table: SeriesTable, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the R^2 of forecasts of the data held out, by a model that is fitted without these."""
    if not arguments.test_size:
        return {"test_series": 0, "test_rows": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit to all rows gave the same warnings
        model = make_model(arguments)
        n_held = int(arguments.test_size * len(table))
        if n_held and len(table) > n_held:
            order = np.random.default_rng(arguments.seed).permutation(len(table)).tolist()
            held = table.take(sorted(order[:n_held]))
            fit_series(model, table.take(sorted(order[n_held:])))
            score = float(model.score(held.states, held.times, **held.options()))
            return {"test_series": n_held, "test_rows": held.n_rows, "test_r2": score}
        kept = [slice(max(FEWEST, len(times) - math.ceil(arguments.test_size * len(times)))) for times in table.times]
        beginnings = table.cut(kept)
        fit_series(model, beginnings)
        n_rows = table.n_rows - beginnings.n_rows
        return {"test_series": 0, "test_rows": n_rows, "test_r2": forecast_score(model, beginnings, table)}


def forecast_score(model: Any, beginnings: SeriesTable, table: SeriesTable) -> float:
    """Return the R^2 of the ends of series, forecast from their beginnings."""
    actual: list[FloatArray] = []
    forecast: list[FloatArray] = []
    for i in range(len(table)):
        n_used = len(beginnings.times[i])
        y0 = model.initial_state(beginnings.states[i], beginnings.times[i], **beginnings.options(i))
        states = model.simulate(y0, table.times[i], **table.options(i))
        actual.append(table.states[i].to_numpy()[n_used:])
        forecast.append(np.asarray(states)[n_used:])
    return r2(np.concatenate(actual), np.concatenate(forecast))


def r2(actual: FloatArray, forecast: FloatArray) -> float:
    """Return R^2, the mean over the columns; NaN in `actual` is missing."""
    residual = np.nansum((actual - forecast) ** 2, axis=0)
    total = np.nansum((actual - np.nanmean(actual, axis=0)) ** 2, axis=0)
    varied = total > 0
    return float(np.mean(1 - residual[varied] / total[varied])) if varied.any() else math.nan


def _format(report: dict[str, Any], series: str) -> str:
    inputs = f"; inputs: {', '.join(report['inputs'])}" if report["inputs"] else ""
    lines: dict[str, object] = {
        "data": series,
        "states": f"{', '.join(report['states'])}{inputs}",
        "noise": ", ".join(f"{value:.3g} of {name}" for name, value in report["noise"].items()),
    }
    if "test_r2" in report:
        held = pluralise(report["test_series"], "series", "series") if report["test_series"] else "the ends of series"
        lines["test R^2"] = f"{report['test_r2']:.4f} of {held} held out, {pluralise(report['test_rows'], 'row')}"
        lines["saved model"] = f"fitted to all {pluralise(report['rows'], 'row')}"
    elif not report.get("interrupted"):
        lines["test R^2"] = "nothing was held out"
    lines |= {"seconds": f"{report['seconds']:.2f}", "model file": report["out"]}
    return "\n".join([align(lines), *_equation_lines(report["equations"])])


def _equation_lines(equations: Sequence[str]) -> list[str]:
    return ["equations", *(f"  {line}" for line in equations)] if equations else []


def _weight(text: str) -> float | str:
    if text == "auto":
        return text
    value = parse_real(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number that is not negative, or auto, got {text!r}")
    return value
