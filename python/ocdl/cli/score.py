"""``ocdl score``: the scores of a model on a table with targets."""

from __future__ import annotations

import argparse
import warnings
from typing import Any

from ocdl.cli._output import add_command, align, has_progress_bar, json_text, print_warnings
from ocdl.cli._samples import read_scored
from ocdl.cli._scores import describe_confusion, describe_scores, evaluate
from ocdl.tables.model import read_table_model

EXAMPLES = """\
  ocdl score model.ocdl new.csv
  ocdl score model.ocdl new.csv --target outcome --weights visits
  ocdl score model.ocdl new.parquet --json

The baseline is a prediction that uses no column: the most frequent class of the table and the
frequencies of its classes, or the mean. Rows without a target are left out. AUC is the area under
the ROC curve; for more than two classes, the mean over each class against the others."""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    parser = add_command(commands, "score", "measure how well a model predicts a table", EXAMPLES)
    parser.add_argument("model", metavar="MODEL", help="a file of ocdl train, or of an estimator's save")
    parser.add_argument("data", metavar="DATA", help="a CSV, Parquet or NPZ file with the target, or -")
    parser.add_argument("--target", metavar="COLUMN", help="the column with the targets; default: as in the training")
    parser.add_argument("--weights", metavar="COLUMN", help="the weights of the rows; default: 1")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the scores."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = read_table_model(arguments.model)
        samples = read_scored(model, arguments.data, arguments, has_progress_bar(arguments))
        scores = evaluate(model, model.inputs(samples.frame), samples.targets, samples.weights)
    print_warnings(caught)
    classes = model.classes_.tolist() if model.is_classifier else []
    report: dict[str, Any] = {"rows": len(samples.targets), "rows_without_target": samples.n_left_out, **scores}
    if arguments.json:
        print(json_text(report | ({"classes": classes} if classes else {})))
        return
    lines = describe_scores(scores, len(samples.targets), "")
    print(align({name.strip(): value for name, value in lines.items()}))
    confusion = describe_confusion(scores, classes)
    if confusion:
        print(confusion)
