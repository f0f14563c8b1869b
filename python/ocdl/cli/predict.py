"""``ocdl predict``: the classes of new samples."""

from __future__ import annotations

import argparse
import csv
import io
from typing import Any

from ocdl.cli._models import load_classifier
from ocdl.cli._output import add_command, json_text, require_place_for, write_text
from ocdl.cli._tables import read_samples

EXAMPLES = """\
  ocdl predict model.ocdl data.csv
  ocdl predict model.ocdl data.csv --proba --out predictions.csv
  ocdl predict model.ocdl data.npz --json

Columns are found by the names that the model was trained with, in any order; without
names they are taken in order. The column of the labels may be there and is not looked at."""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    parser = add_command(commands, "predict", "predict the classes of the samples in a file", EXAMPLES)
    parser.add_argument("model", metavar="MODEL", help="a file of ocdl train or ODEClassifier.save")
    parser.add_argument("data", metavar="DATA", help="a CSV file, or an NPZ file with the array X")
    parser.add_argument("--out", metavar="FILE", help="where to write the predictions, instead of stdout")
    parser.add_argument("--proba", action="store_true", help="write the probabilities of the classes too")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print or write the predictions."""
    if arguments.out is not None:
        require_place_for(arguments.out, arguments.model, arguments.data)
    model = load_classifier(arguments.model)
    rows = read_samples(arguments.data, model.network.n_features, model.description)
    predictions = model.predict(rows)
    shares = model.probabilities(rows).tolist() if arguments.proba else None
    if arguments.json:
        facts = {"predictions": predictions, "classes": model.description.classes}
        text = json_text(facts if shares is None else facts | {"probabilities": shares}) + "\n"
    else:
        text = _csv(predictions, model.description.classes, shares)
    if arguments.out is None:
        print(text, end="")
    else:
        write_text(arguments.out, text)


def _csv(predictions: list[Any], classes: list[Any], shares: list[list[float]] | None) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["prediction"] + ([] if shares is None else [f"probability of {label}" for label in classes]))
    writer.writerows([label, *(shares[i] if shares else ())] for i, label in enumerate(predictions))
    return text.getvalue().encode(errors="backslashreplace").decode()  # a class may be half a character
