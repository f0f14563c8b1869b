"""``ocdl export``: a model as a file in ONNX, for programs without ocdl and Python."""

from __future__ import annotations

import argparse
from typing import Any

from ocdl.base.names import pluralise
from ocdl.cli._interrupts import reraise_swallowed_interrupts
from ocdl.cli._output import (
    UserError,
    add_command,
    escape_unprintable,
    integer_parser,
    json_text,
    report_output_state,
    require_place_for,
)
from ocdl.network import files
from ocdl.tables.model import read_table_model

EXAMPLES = """\
  ocdl export model.ocdl model.onnx
  ocdl export model.ocdl model.onnx --opset 15

A model of numbers has one input, X, with the columns in the order of the training and NaN for missing
numbers. A model of texts, dates or categories has an input for each column, of shape (samples, 1):
texts as strings, dates as days since 1970, all others as numbers of 64 bits. The outputs are label
and probabilities, or variable for a regression; a network saved by ocdl.save has the output logits. The command
needs the package onnx: pip install 'ocdl[onnx]'."""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    parser = add_command(commands, "export", "write a model as a file in ONNX", EXAMPLES)
    parser.add_argument("model", metavar="MODEL", help="a file written by ocdl train or ocdl.save")
    parser.add_argument("out", metavar="FILE", help="the file to write, usually *.onnx")
    parser.add_argument(
        "--opset", type=integer_parser(0, 1000), metavar="N", help="the version of ONNX's operators; default: 17"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Write the file and describe its contents."""
    with report_output_state(arguments.out):
        _run(arguments)


@reraise_swallowed_interrupts
def _run(arguments: argparse.Namespace) -> None:
    require_place_for(arguments.out, arguments.model)
    (network, controls, metadata), *_ = files.read(arguments.model)
    try:
        if "estimator" in metadata:
            columns, n_columns, several = _export_estimator(arguments)
        else:
            from ocdl.interop.onnx_export import export_onnx

            export_onnx(arguments.out, network, controls, opset=arguments.opset)
            columns, n_columns, several = None, network.n_features, False
    except (ImportError, ValueError) as error:
        raise UserError(str(error)) from error
    if arguments.json:
        print(json_text({"out": arguments.out, "n_features": n_columns, "feature_names": columns}))
    else:
        column_list = "" if columns is None else f": {', '.join(columns)}"
        what = "its inputs are columns" if several else f"its input X has {pluralise(n_columns, 'column')}"
        print(escape_unprintable(f"wrote {arguments.out}; {what}{column_list}"))


def _export_estimator(arguments: argparse.Namespace) -> tuple[list[str] | None, int, bool]:
    """Write a table model; return the names of its columns, their number, and whether each is a separate input."""
    from ocdl.interop.onnx_estimator import has_one_input, write_table_model

    model = read_table_model(arguments.model)
    write_table_model(arguments.out, model, arguments.opset)
    return model.feature_names, len(model.encoding.features), not has_one_input(model.encoding)
