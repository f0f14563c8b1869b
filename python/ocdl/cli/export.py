"""``ocdl export``: a model as a file in ONNX, for programs that know neither ocdl nor Python."""

from __future__ import annotations

import argparse
from typing import Any

from ocdl.base.names import counted
from ocdl.cli._interrupts import reraise_swallowed_interrupts
from ocdl.cli._output import (
    UserError,
    add_command,
    json_text,
    printable,
    require_place_for,
    telling_what_became_of,
    whole_number,
)
from ocdl.network import files
from ocdl.tables.model import load_model

EXAMPLES = """\
  ocdl export model.ocdl model.onnx
  ocdl export model.ocdl model.onnx --opset 15

The input is X, the columns in the order of the training, as numbers of 64 bits, NaN where one is
missing; the outputs are label and probabilities, or variable of a regression. A file of ocdl.save
has the output logits. It needs the package onnx: pip install 'ocdl[onnx]'."""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    parser = add_command(commands, "export", "write a model as a file in ONNX", EXAMPLES)
    parser.add_argument("model", metavar="MODEL", help="a file of ocdl train, an estimator's save or ocdl.save")
    parser.add_argument("out", metavar="FILE", help="where to write; .onnx is customary")
    parser.add_argument("--opset", type=whole_number(0, 1000), metavar="N", help="the version of ONNX's operators (17)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Write the file and say what is in it."""
    with telling_what_became_of(arguments.out):
        _run(arguments)


@reraise_swallowed_interrupts
def _run(arguments: argparse.Namespace) -> None:
    require_place_for(arguments.out, arguments.model)
    (network, controls, metadata), _, _ = files.read(arguments.model)
    try:
        if "estimator" in metadata:
            columns = _export_estimator(arguments)
        else:
            from ocdl.interop.onnx_export import export_onnx

            export_onnx(arguments.out, network, controls, opset=arguments.opset)
            columns = None
    except (ImportError, ValueError) as error:
        raise UserError(str(error)) from error
    if arguments.json:
        print(json_text({"out": arguments.out, "n_features": network.n_features, "feature_names": columns}))
    else:
        named = "" if columns is None else f": {', '.join(columns)}"
        print(printable(f"wrote {arguments.out}; its input X has {counted(network.n_features, 'column')}{named}"))


def _export_estimator(arguments: argparse.Namespace) -> list[str] | None:
    from ocdl.interop.onnx_estimator import write_table_model

    model = load_model(arguments.model)
    write_table_model(arguments.out, model, arguments.opset)
    return model.feature_names
