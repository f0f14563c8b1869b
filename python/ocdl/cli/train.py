"""``ocdl train``: a classifier from a file of samples."""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.base.validation import FloatArray
from ocdl.cli._models import Classifier, Description
from ocdl.cli._output import UserError, add_command, add_seed, aligned, json_text, require_place_for, whole_number
from ocdl.cli._tables import Table, read_table
from ocdl.datasets import GENERATORS
from ocdl.estimator import defaults
from ocdl.model.architecture import PRESETS
from ocdl.model.fields import FIELDS
from ocdl.model.losses import names_of
from ocdl.model.tableau import tableaux
from ocdl.network import Network
from ocdl.training.optimisers import Optimiser, without_settings

POSITIVE = whole_number(1, 2**31 - 1)


def _option(optimiser: Optimiser) -> str:
    """Return the name of an optimiser on the command line: ``newton-cg`` for `NewtonCG`."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "-", type(optimiser).__name__).lower()


OPTIMISERS = {_option(optimiser): optimiser for optimiser in (*without_settings(), defaults.OPTIMISER)}
EXAMPLES = """\
  ocdl train --data spiral --out spiral.ocdl
  ocdl train --data iris.csv --target species --out iris.ocdl
  ocdl train --data digits.npz --architecture odenet+simplex --tableau kutta4 --layers 10 --out digits.ocdl

A CSV file has commas, semicolons or tabs between its columns, and a header or none. An NPZ file
has the arrays X, of shape (samples, features), and y, of shape (samples,). Inputs are
standardised; the model file holds how, so that ocdl predict takes them as they are."""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    parser = add_command(commands, "train", "train a classifier and write it to a model file", EXAMPLES)
    parser.add_argument("--data", required=True, metavar="DATA", help=f"{', '.join(GENERATORS)}, or a CSV or NPZ file")
    parser.add_argument("--out", required=True, metavar="MODEL", help="the model file to write; .ocdl is customary")
    parser.add_argument("--target", metavar="COLUMN", help="name or number of the column of labels (the last one)")
    parser.add_argument("--architecture", default=defaults.ARCHITECTURE, choices=tuple(PRESETS), help="(%(default)s)")
    parser.add_argument(
        "--tableau",
        default=defaults.TABLEAU,
        choices=tableaux(),
        metavar="NAME",
        help=f"{', '.join(tableaux())} (%(default)s)",
    )
    parser.add_argument("--field", default=defaults.FIELD, choices=tuple(FIELDS), help="the vector field (%(default)s)")
    parser.add_argument(
        "--layers", default=defaults.N_LAYERS, type=POSITIVE, metavar="N", help="number of steps (%(default)s)"
    )
    parser.add_argument("--loss", default=defaults.LOSS, choices=names_of("classes"), help="(%(default)s)")
    parser.add_argument(
        "--max-iter", default=defaults.MAX_ITER, type=POSITIVE, metavar="N", help="iterations (%(default)s)"
    )
    add_seed(parser)
    parser.add_argument(
        "--optimiser", default=_option(defaults.OPTIMISER), choices=tuple(OPTIMISERS), help="(%(default)s)"
    )
    parser.add_argument(
        "--test-size", default=0.25, type=_share, metavar="SHARE", help="of the samples, held out (%(default)s)"
    )
    parser.add_argument("--no-scaling", action="store_true", help="take the inputs as they are")
    parser.add_argument("--quiet", action="store_true", help="write nothing but errors, and JSON if asked for")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Train, print how it went, and write the model file."""
    require_place_for(arguments.out, arguments.data)
    table = _table(arguments.data, arguments.target, arguments.seed)
    training, held_out = _split(table.labels, arguments.test_size, arguments.seed)
    classifier, facts = _fit(table, training, arguments)
    accuracies = {
        name: _accuracy(classifier, table.rows[rows], table.labels[rows]) if len(rows) else None
        for name, rows in (("train_accuracy", training), ("test_accuracy", held_out))
    }
    classifier.save(arguments.out)
    facts = {"train_samples": len(training), "test_samples": len(held_out)} | accuracies | facts
    facts["out"] = arguments.out
    if arguments.json:
        print(json_text(facts))
    elif not arguments.quiet:
        print(_report(facts))


def _table(data: str, target: str | None, seed: int) -> Table:
    if data in GENERATORS:
        if target is not None:
            raise UserError(f"--target is for CSV files; {data} has labels of its own")
        return Table(*GENERATORS[data](random_state=seed))
    if not os.path.exists(data):
        raise UserError(f"--data {data!r} is no file and none of {', '.join(GENERATORS)}")
    return read_table(data, target)


def _split(labels: NDArray[Any], share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of the samples to train on and of those held out, with equal shares of every class."""
    from sklearn.model_selection import train_test_split

    places = np.arange(len(labels))
    held_out = math.ceil(share * len(labels))
    if held_out == 0:
        return places, places[:0]
    classes, counts = np.unique(labels, return_counts=True)
    if counts.min() < 2:
        alone = classes[counts.argmin()].item()
        raise UserError(
            f"class {alone!r} has one sample, which cannot be trained on and held out; "
            f"--test-size 0 holds nothing out (there are {len(classes)} classes: are they measurements?)"
        )
    if min(held_out, len(labels) - held_out) < len(classes):
        raise UserError(
            f"--test-size {share:g} of {len(labels)} samples leaves {len(labels) - held_out} to train on and "
            f"{held_out} held out; both need one of each of the {len(classes)} classes at least"
        )
    training, testing = train_test_split(places, test_size=held_out, stratify=labels, random_state=seed)
    return training, testing


def _fit(table: Table, training: NDArray[np.int64], arguments: argparse.Namespace) -> tuple[Classifier, dict[str, Any]]:
    from ocdl.estimator import ODEClassifier

    rows, labels = table.rows[training], table.labels[training]
    mean, scale = _standardisation(rows, arguments.no_scaling)
    estimator = ODEClassifier(
        architecture=arguments.architecture,
        n_layers=arguments.layers,
        tableau=arguments.tableau,
        field=arguments.field,
        loss=arguments.loss,
        optimiser=OPTIMISERS[arguments.optimiser],
        max_iter=arguments.max_iter,
        random_state=arguments.seed,
        verbose=int(not arguments.quiet and not arguments.json and sys.stderr.isatty()),
    )
    if FIELDS[arguments.field].needs_even_dim:
        estimator.augment += (rows.shape[1] + estimator.augment) % 2  # positions and momenta
    try:
        Network.preset(
            arguments.architecture,
            rows.shape[1],
            arguments.layers,
            tableau=arguments.tableau,
            field=arguments.field,
            augment=estimator.augment,
        )
    except ValueError as error:
        raise UserError(str(error)) from error
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            estimator.fit((rows - mean) / scale, labels)
        except FloatingPointError as error:
            raise UserError(str(error)) from error
    seconds = time.perf_counter() - start
    for warning in [] if arguments.quiet else caught:
        print(f"ocdl: warning: {' '.join(str(warning.message).splitlines())}", file=sys.stderr)
    description = Description(
        classes=estimator.classes_.tolist(),
        loss=arguments.loss,
        mean=mean.tolist(),
        scale=scale.tolist(),
        feature_names=table.feature_names,
        target_name=table.target_name,
        target_position=table.target_position,
    )
    facts = {
        "loss": float(estimator.history_.loss[-1]),
        "iterations": int(estimator.n_iter_),
        "status": estimator.status_.value,
        "seconds": round(seconds, 3),
    }
    return Classifier(estimator.network_, estimator.controls_, description), facts


def _standardisation(rows: FloatArray, no_scaling: bool) -> tuple[FloatArray, FloatArray]:
    """Return mean and scale of each feature, computed as scikit-learn does."""
    from sklearn.preprocessing import StandardScaler

    if no_scaling:
        return np.zeros(rows.shape[1]), np.ones(rows.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler().fit(rows)
    bad = np.flatnonzero(~(np.isfinite(scaler.mean_) & np.isfinite(scaler.scale_)))
    if len(bad):
        raise UserError(f"the numbers of feature {bad[0] + 1} are too large to be standardised")
    return scaler.mean_, scaler.scale_


def _accuracy(classifier: Classifier, rows: FloatArray, labels: NDArray[Any]) -> float:
    return float(np.mean(np.array(classifier.predict(rows)) == labels))


def _report(facts: dict[str, Any]) -> str:
    lines: dict[str, object] = {
        "train accuracy": f"{facts['train_accuracy']:.4f} of {facts['train_samples']} samples",
        "test accuracy": f"{facts['test_accuracy']:.4f} of {facts['test_samples']} samples"
        if facts["test_samples"]
        else "no samples held out",
        "loss": f"{facts['loss']:.6g}",
        "iterations": f"{facts['iterations']}: {facts['status']}",
        "seconds": f"{facts['seconds']:.2f}",
        "model file": facts["out"],
    }
    return aligned(lines)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share < 1:
        raise argparse.ArgumentTypeError(f"must be at least 0 and below 1, got {text!r}")
    return share
