"""``ocdl predict``: predictions for new samples."""

from __future__ import annotations

import argparse
import csv
import io
import sys
import warnings
from typing import Any

from ocdl.cli._interrupts import reraise_swallowed_interrupts
from ocdl.cli._output import (
    UserError,
    add_command,
    has_progress_bar,
    json_text,
    print_warnings,
    report_output_state,
    require_place_for,
    write_text,
)
from ocdl.tables.frame import TableFrame, resolve_column
from ocdl.tables.model import TableModel, read_table_model
from ocdl.tables.reading import peek

EXAMPLES = """\
  ocdl predict model.ocdl data.csv
  ocdl predict model.ocdl data.csv --id name --proba --out predictions.csv
  ocdl predict model.ocdl data.parquet --json
  gunzip -c data.csv.gz | ocdl predict model.ocdl -

Columns are matched to those of the training data by name, in any order; other columns are ignored.
Columns without names are taken in order, with or without the column of the labels."""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    parser = add_command(commands, "predict", "predict from the samples in a table", EXAMPLES)
    parser.add_argument(
        "model", metavar="MODEL", help="a file written by ocdl train or by the method save of an estimator"
    )
    parser.add_argument("data", metavar="DATA", help="a CSV or Parquet file, an NPZ file with the array X, or -")
    parser.add_argument("--out", metavar="FILE", help="where to write the predictions, instead of stdout")
    parser.add_argument("--id", metavar="COLUMN", help="a column to write beside the predictions")
    parser.add_argument("--proba", action="store_true", help="write the probabilities of the classes too")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print or write the predictions."""
    with report_output_state(arguments.out):
        _run(arguments)


@reraise_swallowed_interrupts
def _run(arguments: argparse.Namespace) -> None:
    if arguments.out is not None:
        require_place_for(arguments.out, arguments.model, arguments.data)
    model = read_table_model(arguments.model)
    if arguments.proba and not model.is_classifier:
        raise UserError(f"{arguments.model!r} predicts measurements, which have no probabilities: leave out --proba")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frame, identity = _read(arguments, model)
        report = _predict(model, frame, arguments.proba)
    print_warnings(caught)
    if identity is not None:
        texts = frame.data[identity].astype(object)
        report = {"id": texts.where(texts.notna(), None).tolist()} | report
    text = json_text(report) + "\n" if arguments.json else _csv(report, arguments.id)
    if arguments.out is None:
        _require_encodable(text)
        print(text, end="")
    else:
        write_text(arguments.out, text)


def _require_encodable(text: str) -> None:
    """Raise if stdout cannot encode the predictions, instead of escaping characters of data."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        character = text[error.start]
        raise UserError(f"stdout is in {encoding}, which cannot encode {character!r}; --out writes UTF-8") from error


def _read(arguments: argparse.Namespace, model: TableModel) -> tuple[TableFrame, str | None]:
    """Return the columns that the model needs, and the name of the column that --id copies."""
    encoding = model.encoding
    label = None if encoding.target is None else encoding.target.position
    table = peek(arguments.data, encoding.feature_names or [], label, labelled=False)
    columns, texts = encoding.select(table.names, table.has_names, table.source)
    identity = None
    if arguments.id is not None:
        position = resolve_column(arguments.id, table.names, "--id", table.source)
        identity, columns, texts = table.names[position], [*columns, position], {*texts, position}
    return table.read(columns, texts=texts, progress=has_progress_bar(arguments)), identity


def _predict(model: TableModel, frame: TableFrame, proba: bool) -> dict[str, Any]:
    values = model.inputs(frame)
    try:
        report: dict[str, Any] = {"predictions": model.estimator.predict(values).tolist()}
        if model.is_classifier:
            report["classes"] = model.classes_.tolist()
        if proba:
            report["probabilities"] = model.estimator.predict_proba(values).tolist()
    except FloatingPointError as error:
        raise UserError(str(error)) from error
    return report


def _csv(report: dict[str, Any], identity: str | None) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    header, columns = ["prediction"], [report["predictions"]]
    if "id" in report:
        header, columns = [str(identity), *header], [report["id"], *columns]
    if "probabilities" in report:
        header += [f"probability of {label}" for label in report["classes"]]
        columns += zip(*report["probabilities"], strict=True)
    writer.writerow(header)
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue().encode(errors="backslashreplace").decode()  # a class may be half a character
