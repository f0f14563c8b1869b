"""``ocdl inspect``: what a model file holds."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from ocdl.base.names import counted
from ocdl.cli._output import add_command, aligned, json_text, printable
from ocdl.model.controls import Controls
from ocdl.network import files
from ocdl.tables.encoding import Encoding, Target
from ocdl.tables.model import load_model
from ocdl.tables.record import to_record
from ocdl.tables.sheet import counted_name

MOST_COLUMNS = 100  # that are shown
EXAMPLES = """\
  ocdl inspect model.ocdl
  ocdl inspect model.ocdl --json"""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    parser = add_command(commands, "inspect", "show what a model file holds", EXAMPLES)
    parser.add_argument("model", metavar="MODEL", help="a file of ocdl train, an estimator's save or ocdl.save")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the network, its time steps, its classes and the metadata."""
    facts, encoding = describe(arguments.model)
    if arguments.json:
        print(json_text(facts))
        return
    network, steps = facts["network"], facts["time_steps"]
    lines = {
        "file": arguments.model,
        "format": f"version {facts['format_version']}, written by ocdl {facts['ocdl']}",
        "network": f"{counted(network['n_layers'], 'layer')}, {network['field']} field, {network['activation']}, "
        f"{network['dtype']}, "
        + (f"tableau {network['tableau']['name'] or 'of its own'}" if network["residual"] else "feed-forward"),
        "sizes": f"{counted(network['n_features'], 'feature')} + {network['augment']} augmented, "
        f"{counted(network['n_outputs'], 'output')}, {counted(facts['n_controls'], 'control')}",
        "time steps": "none"
        if steps is None
        else f"{network['time_steps']}, {steps['count']} of them, {steps['zero']} zero, {steps['negative']} negative, "
        f"from {steps['least']:.4g} to {steps['greatest']:.4g}, sum {steps['sum']:.4g}",
        "pruning": facts["pruning"]["statement"],
        "classes": "not stored" if facts["classes"] is None else ", ".join(map(str, facts["classes"])),
        "features": "not named" if facts["feature_names"] is None else ", ".join(facts["feature_names"]),
        "target": "not stored" if encoding is None or encoding.target is None else _column(encoding.target),
        "metadata": ", ".join(facts["metadata"]) or "none",
    }
    print(aligned(lines))
    if encoding is not None and len(encoding.features) <= MOST_COLUMNS:
        print("columns")
        print(aligned(_columns(encoding)))


def describe(path: str) -> tuple[dict[str, Any], Encoding | None]:
    """Return what a model file holds, for JSON, and what the columns of a table become."""
    (network, controls, metadata), version, written_by = files.read(path)
    model = load_model(path) if "estimator" in metadata else None
    saving = network.saving(controls)
    facts = {
        "format_version": version,
        "ocdl": written_by,
        "network": files.network_to_dict(network),
        "n_controls": network.n_controls,
        "time_steps": _steps(controls) if network.residual else None,
        "pruning": {"kept": saving.kept, "factor": saving.factor, "statement": str(saving)},
        "classes": model.classes_.tolist() if model is not None and model.is_classifier else None,
        "feature_names": None if model is None else model.feature_names,
        "table": None if model is None else to_record(model.encoding),
        "metadata": metadata,
    }
    return facts, None if model is None else model.encoding


def _column(target: Target) -> str:
    return counted_name(target.position) if target.name is None else target.name


def _columns(encoding: Encoding) -> dict[str, object]:
    """Return a line for every column, and one for the target."""
    lines: dict[str, object] = {}
    for feature in encoding.features:
        if feature.kind == "text":
            meaning = f"text: {', '.join(feature.values)}"
        else:
            written = f" as {feature.format}" if feature.format else ""
            missing = "must not be missing" if feature.fill is None else f"{feature.fill:.6g} if missing"
            meaning = f"{feature.kind}{written}: minus {feature.mean:.6g}, over {feature.scale:.6g}; {missing}"
        lines[f"  {printable(feature.name)}"] = meaning
    return lines


def _steps(controls: Controls) -> dict[str, Any]:
    h = controls.h
    return {
        "count": len(h),
        "zero": int(np.sum(h == 0)),
        "negative": int(np.sum(h < 0)),
        "least": float(h.min()),
        "greatest": float(h.max()),
        "sum": float(h.sum()),
    }
