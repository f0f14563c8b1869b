"""``ocdl inspect``: the contents of a model file."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from ocdl.base.names import pluralise
from ocdl.cli._output import add_command, align, escape_unprintable, json_text
from ocdl.dynamics.files import is_dynamics
from ocdl.files import load
from ocdl.model.controls import Controls
from ocdl.network import files
from ocdl.tables.columns import Feature
from ocdl.tables.encoding import Encoding, Target
from ocdl.tables.frame import column_number
from ocdl.tables.model import TableModel, read_table_model
from ocdl.tables.spec import to_spec

MAX_COLUMNS = 100  # that are shown
EXAMPLES = """\
  ocdl inspect model.ocdl
  ocdl inspect model.ocdl --json"""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    parser = add_command(commands, "inspect", "show what a model file holds", EXAMPLES)
    parser.add_argument("model", metavar="MODEL", help="a file of ocdl train, an estimator's save or ocdl.save")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the target and the inputs of the model, its network, its time steps and its columns."""
    report, model = describe(arguments.model)
    if arguments.json:
        print(json_text(report))
        return
    network, steps = report["network"], report["time_steps"]
    name = network["tableau"]["name"] or "without a name"
    kind = f"residual, tableau {name}" if network["residual"] else "feed-forward"
    augmented = f" and {network['augment']} augmented" if network["augment"] else ""
    system = report["dynamics"]
    lines: dict[str, object] = {"file": arguments.model, **(_system_lines(system) if system else _model_lines(model))}
    lines |= {
        "network": f"{pluralise(network['n_layers'], 'layer')}, {kind}, {network['field']} field, "
        f"{network['activation']}, {network['dtype']}",
        "sizes": f"{pluralise(network['n_features'], 'input')}{augmented}, "
        f"{pluralise(network['n_outputs'], 'output')}, "
        f"{pluralise(report['n_controls'], 'control')}",
        "time steps": "none" if steps is None else _describe_steps(steps, network["time_steps"]),
        "pruning": report["pruning"]["statement"],
        "format": f"version {report['format_version']}, written by ocdl {report['ocdl']}",
    }
    metadata = [
        entry
        for entry in report["metadata"]
        if (model is None and system is None) or entry not in ("estimator", "table")
    ]
    if metadata:
        lines["metadata"] = ", ".join(metadata)
    print(align(lines))
    if model is not None and len(model.encoding.features) <= MAX_COLUMNS:
        print("columns")
        print(align(_columns(model.encoding)))


def _system_lines(system: dict[str, Any]) -> dict[str, object]:
    """Return the lines on the states, the noise and the equations of a dynamical system."""
    inputs = f"; inputs: {', '.join(system['inputs'])}" if system["inputs"] else ""
    noise = ", ".join(f"{value:.3g}" for value in system["noise"])
    lines: dict[str, object] = {
        "model": "dynamical system" + (f", an ensemble of {system['models']}" if system["models"] > 1 else ""),
        "states": f"{', '.join(system['states'])}{inputs}",
        "noise": f"{noise} of what was observed; largest step {system['max_step']:.3g}",
    }
    lines |= {("equations" if i == 0 else " " * i): line for i, line in enumerate(system["equations"])}
    return lines


def _describe_system(model: Any) -> dict[str, Any]:
    """Return what a dynamical system is, for JSON."""
    return {
        "states": model.state_names_,
        "inputs": model.input_names_,
        "noise": model.noise_.tolist(),
        "max_step": float(model.max_step_),
        "models": len(model.models_),
        "equations": model.equations() if model.field == "polynomial" else [],
    }


def _model_lines(model: TableModel | None) -> dict[str, object]:
    """Return the lines on the target, the inputs and the training of a model."""
    if model is None:
        return {"model": "a network and its controls, without classes or targets"}
    encoding, estimator = model.encoding, model.estimator
    target = "" if encoding.target is None else f" of {_column(encoding.target)}"
    classes = f"; classes: {', '.join(map(str, model.classes_.tolist()))}" if model.is_classifier else ""
    columns = pluralise(len(encoding.features), "column") + ("" if encoding.has_names else " without names")
    lines: dict[str, object] = {
        "model": f"{'classification' if model.is_classifier else 'regression'}{target}{classes}",
        "inputs": f"{columns}; {pluralise(encoding.n_inputs, 'number')} after encoding",
    }
    status = getattr(estimator, "status_", None)
    lines["training"] = pluralise(estimator.n_iter_, "iteration") + ("" if status is None else f": {status.value}")
    return lines


def _describe_steps(steps: dict[str, Any], kind: str) -> str:
    special = "".join(f", {steps[name]} {name}" for name in ("zero", "negative") if steps[name])
    size = f"from {steps['minimum']:.4g} to {steps['maximum']:.4g}, sum {steps['sum']:.4g}"
    return f"{steps['count']}, {kind}{special}, {size}"


def describe(path: str) -> tuple[dict[str, Any], TableModel | None]:
    """Return what a model file holds, for JSON, and its model if it has one."""
    (network, controls, metadata), version, written_by, _ = files.read(path)
    has_system = is_dynamics(metadata)
    model = read_table_model(path) if "estimator" in metadata and not has_system else None
    summary = network.saving(controls)
    report = {
        "format_version": version,
        "ocdl": written_by,
        "network": files.network_to_dict(network),
        "n_controls": network.n_controls,
        "time_steps": _steps(controls) if network.residual else None,
        "pruning": {"kept": summary.kept, "factor": summary.factor, "statement": str(summary)},
        "classes": model.classes_.tolist() if model is not None and model.is_classifier else None,
        "feature_names": None if model is None else model.feature_names,
        "table": None if model is None else to_spec(model.encoding),
        "dynamics": _describe_system(load(path)) if has_system else None,
        "metadata": metadata,
    }
    return report, model


def _column(target: Target) -> str:
    return column_number(target.position) if target.name is None else target.name


def _columns(encoding: Encoding) -> dict[str, object]:
    """Return a line for every column."""
    return {f"  {escape_unprintable(feature.name)}": _describe(feature, encoding) for feature in encoding.features}


def _describe(feature: Feature, encoding: Encoding) -> str:
    kind = {"text": "text", "code": "category"}.get(feature.kind, feature.kind)
    if feature.is_one_hot:
        return f"{kind}: {', '.join(feature.values)}"
    if feature.n_means:
        return f"{kind} with {len(encoding.means[feature.name].lengths)} values, which become means of the target"
    first = encoding.number_slices[feature.name].start
    parts = [kind + (f" as {feature.format}" if feature.format else "")]
    if feature.cycles:
        parts.append(f"days and positions in the {', '.join(feature.cycles)}")
    if encoding.scaler is not None:
        parts.append(f"mean {encoding.scaler.mean_[first]:.6g}, scale {encoding.scaler.scale_[first]:.6g}")
    if encoding.imputer is None:
        parts.append("must not be missing")
    else:
        fill = f"{encoding.imputer.statistics_[first]:.6g} if missing"
        parts.append(fill + (", with an indicator" if feature.has_indicator else ""))
    return "; ".join(parts)


def _steps(controls: Controls) -> dict[str, Any]:
    h = controls.h
    return {
        "count": len(h),
        "zero": int(np.sum(h == 0)),
        "negative": int(np.sum(h < 0)),
        "minimum": float(h.min()),
        "maximum": float(h.max()),
        "sum": float(h.sum()),
    }
