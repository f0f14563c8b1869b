"""``ocdl inspect``: what a model file holds."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from ocdl.cli._models import KEY, load_classifier
from ocdl.cli._output import add_command, aligned, json_text
from ocdl.model.controls import Controls
from ocdl.network import files

EXAMPLES = """\
  ocdl inspect model.ocdl
  ocdl inspect model.ocdl --json"""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    parser = add_command(commands, "inspect", "show what a model file holds", EXAMPLES)
    parser.add_argument("model", metavar="MODEL", help="a file of ocdl train, ODEClassifier.save or ocdl.save")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the network, its time steps, its classes and the metadata."""
    facts = describe(arguments.model)
    if arguments.json:
        print(json_text(facts))
        return
    network, steps = facts["network"], facts["time_steps"]
    lines = {
        "file": arguments.model,
        "format": f"version {facts['format_version']}, written by ocdl {facts['ocdl']}",
        "network": f"{network['n_layers']} layers, {network['field']} field, {network['activation']}, "
        f"{network['dtype']}, "
        + (f"tableau {network['tableau']['name'] or 'of its own'}" if network["residual"] else "feed-forward"),
        "sizes": f"{network['n_features']} features + {network['augment']} augmented, "
        f"{network['n_outputs']} outputs, {facts['n_controls']} controls",
        "time steps": "none"
        if steps is None
        else f"{network['time_steps']}, {steps['count']} of them, {steps['zero']} zero, {steps['negative']} negative, "
        f"from {steps['least']:.4g} to {steps['greatest']:.4g}, sum {steps['sum']:.4g}",
        "pruning": facts["pruning"]["statement"],
        "classes": "not stored" if facts["classes"] is None else ", ".join(map(str, facts["classes"])),
        "features": "not named" if facts["feature_names"] is None else ", ".join(facts["feature_names"]),
        "metadata": ", ".join(facts["metadata"]) or "none",
    }
    print(aligned(lines))


def describe(path: str) -> dict[str, Any]:
    """Return what a model file holds, for JSON."""
    (network, controls, metadata), version, written_by = files.read(path)
    description = load_classifier(path).description if metadata.keys() & {KEY, "estimator"} else None
    saving = network.saving(controls)
    return {
        "format_version": version,
        "ocdl": written_by,
        "network": files.network_to_dict(network),
        "n_controls": network.n_controls,
        "time_steps": _steps(controls) if network.residual else None,
        "pruning": {"kept": saving.kept, "factor": saving.factor, "statement": str(saving)},
        "classes": None if description is None else description.classes,
        "feature_names": None if description is None else description.feature_names,
        "metadata": metadata,
    }


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
