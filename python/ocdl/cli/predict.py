"""``ocdl predict``: what a model says about new samples."""

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
    json_text,
    print_warnings,
    require_place_for,
    shows_progress,
    telling_what_became_of,
    write_text,
)
from ocdl.tables.model import TableModel, load_model
from ocdl.tables.reading import Choice, Request, read_sheet
from ocdl.tables.sheet import Sheet, resolved

EXAMPLES = """\
  ocdl predict model.ocdl data.csv
  ocdl predict model.ocdl data.csv --id name --proba --out predictions.csv
  ocdl predict model.ocdl data.parquet --json
  gunzip -c data.csv.gz | ocdl predict model.ocdl -

Columns are found by the names that the model was trained with, in any order, and others are not
looked at; without names they are taken in order, with the column of the labels or without."""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    parser = add_command(commands, "predict", "predict from the samples in a table", EXAMPLES)
    parser.add_argument("model", metavar="MODEL", help="a file of ocdl train, or of an estimator's save")
    parser.add_argument("data", metavar="DATA", help="a CSV or Parquet file, an NPZ file with the array X, or -")
    parser.add_argument("--out", metavar="FILE", help="where to write the predictions, instead of stdout")
    parser.add_argument("--id", metavar="COLUMN", help="a column to write beside the predictions")
    parser.add_argument("--proba", action="store_true", help="write the probabilities of the classes too")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print or write the predictions."""
    with telling_what_became_of(arguments.out):
        _run(arguments)


@reraise_swallowed_interrupts
def _run(arguments: argparse.Namespace) -> None:
    if arguments.out is not None:
        require_place_for(arguments.out, arguments.model, arguments.data)
    model = load_model(arguments.model)
    if arguments.proba and not model.is_classifier:
        raise UserError(f"{arguments.model!r} predicts measurements, which have no probabilities: leave out --proba")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sheet, identity = _read(arguments, model)
        facts = _predicted(model, sheet, arguments.proba)
    print_warnings(caught)
    if identity is not None:
        texts = sheet.frame[identity].astype(object)
        facts = {"id": texts.where(texts.notna(), None).tolist()} | facts
    text = json_text(facts) + "\n" if arguments.json else _csv(facts, arguments.id)
    if arguments.out is None:
        _require_stdout_for(text)
        print(text, end="")
    else:
        write_text(arguments.out, text)


def _require_stdout_for(text: str) -> None:
    """Refuse to change the letters of predictions, which somebody may read as data."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        lost = text[error.start]
        raise UserError(f"stdout takes {encoding}, which has no {lost!r}; --out FILE writes UTF-8") from error


def _read(arguments: argparse.Namespace, model: TableModel) -> tuple[Sheet, str | None]:
    """Return the columns that the model needs, and the name of the one that is passed on."""
    encoding, identity = model.encoding, None

    def choose(names: list[str], named: bool, source: str) -> Choice:
        nonlocal identity
        if arguments.id is None:
            return encoding.choice(names, named, source)
        place = resolved(arguments.id, names, "--id", source)
        identity = names[place]
        return encoding.choice(names, named, source, [place])

    known = encoding.feature_names or []
    label = None if encoding.target is None else encoding.target.position
    request = Request(choose, known, label, shows_progress(arguments), labelled=False)
    return read_sheet(arguments.data, request), identity


def _predicted(model: TableModel, sheet: Sheet, proba: bool) -> dict[str, Any]:
    values = model.inputs(sheet)
    try:
        facts: dict[str, Any] = {"predictions": model.estimator.predict(values).tolist()}
        if model.is_classifier:
            facts["classes"] = model.classes_.tolist()
        if proba:
            facts["probabilities"] = model.estimator.predict_proba(values).tolist()
    except FloatingPointError as error:
        raise UserError(str(error)) from error
    return facts


def _csv(facts: dict[str, Any], identity: str | None) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    header, columns = ["prediction"], [facts["predictions"]]
    if "id" in facts:
        header, columns = [str(identity), *header], [facts["id"], *columns]
    if "probabilities" in facts:
        header += [f"probability of {label}" for label in facts["classes"]]
        columns += zip(*facts["probabilities"], strict=True)
    writer.writerow(header)
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue().encode(errors="backslashreplace").decode()  # a class may be half a character
