"""``ocdl train``: a model from a table of samples."""

from __future__ import annotations

import argparse
import math
import re
import time
import warnings
from typing import Any

import numpy as np

from ocdl.base.names import counted
from ocdl.base.validation import LabelArray
from ocdl.cli._fitting import cross_validated, fitted, save, scores, scores_of
from ocdl.cli._interrupts import Interrupted, ending_the_training, reraise_swallowed_interrupts
from ocdl.cli._launch import reporting_on_root, world
from ocdl.cli._output import (
    UserError,
    add_command,
    add_seed,
    aligned,
    json_text,
    name_among,
    print_warnings,
    require_place_for,
    whole_number,
)
from ocdl.cli._parts import trained_in_parts
from ocdl.cli._samples import Samples, are_numbers, read_samples
from ocdl.datasets import GENERATORS
from ocdl.estimator import defaults
from ocdl.model.architecture import PRESET_ALIASES, PRESETS
from ocdl.model.fields import FIELDS
from ocdl.model.losses import ALIASES as LOSS_ALIASES
from ocdl.model.losses import names_of
from ocdl.model.tableau import ALIASES as TABLEAU_ALIASES
from ocdl.model.tableau import tableaux
from ocdl.tables.parts import is_pattern
from ocdl.training.optimisers import ALIASES as OPTIMISER_ALIASES
from ocdl.training.optimisers import SINGLE_OPTIMISERS

POSITIVE = whole_number(1, 2**31 - 1)
SCORES = {"accuracy": "accuracy", "log_loss": "log loss", "r2": "R^2", "error": "error"}


def _option(optimiser: str) -> str:
    """Return the name of an optimiser on the command line: ``newton-cg`` for `NewtonCG`."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "-", optimiser).lower()


OPTIMISERS = tuple(_option(kind.__name__) for kind in SINGLE_OPTIMISERS)
EXAMPLES = """\
  ocdl train --data spiral --out spiral.ocdl
  ocdl train --data iris.csv --target species --out iris.ocdl
  ocdl train --data houses.csv --target price --regression --drop id --out houses.ocdl
  ocdl train --data patients.parquet --target outcome --cv 5
  ocdl train --data digits.npz --architecture odenet+simplex --tableau kutta4 --layers 10 --out digits.ocdl
  mpiexec -n 4 ocdl train --data 'part-*.parquet' --target y --out large.ocdl

A table is a CSV file (commas, semicolons, tabs or | between its columns, a header or none, also
packed by gzip), a Parquet file, or - for CSV from stdin. Numbers are standardised and missing ones
filled in, texts of up to 50 values become 0 and 1, dates become days, rows without a target are left
out. The model file holds how, so that ocdl predict takes tables as they are. An NPZ file has the
arrays X, of shape (samples, features), and y, of shape (samples,). A pattern stands for a table in
several Parquet files; on several ranks of MPI each reads its own rows. Ctrl-C ends the training
and writes what has been learned."""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    parser = add_command(commands, "train", "train a model and write it to a model file", EXAMPLES)
    parser.add_argument(
        "--data", required=True, metavar="DATA", help=f"{', '.join(GENERATORS)}, or a CSV, Parquet or NPZ file, or -"
    )
    parser.add_argument("--out", metavar="MODEL", help="the model file to write; .ocdl is customary")
    _add_columns(parser)
    _add_network(parser)
    _add_training(parser)
    parser.add_argument(
        "--test-size", type=_share, metavar="SHARE", help=f"of the samples, held out ({TEST_SIZE}; with --cv none)"
    )
    parser.add_argument(
        "--cv", type=whole_number(2, 1000), metavar="FOLDS", help="measure how well it predicts by cross validation"
    )
    parser.add_argument("--quiet", action="store_true", help="write nothing but errors, and JSON if asked for")
    parser.set_defaults(run=run)


TEST_SIZE = 0.25


def _add_columns(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--target", metavar="COLUMN", help="what to predict: its name, or its number from 1 on (the last)"
    )
    parser.add_argument("--features", nargs="+", metavar="COLUMN", help="the columns to learn from (all others)")
    parser.add_argument("--drop", nargs="+", metavar="COLUMN", help="columns to leave out")
    parser.add_argument("--regression", action="store_true", help="predict measurements, not classes")
    parser.add_argument("--no-scaling", action="store_true", help="take numbers as they are")


def _add_network(parser: argparse.ArgumentParser) -> None:
    presets = name_among(PRESETS, PRESET_ALIASES)
    parser.add_argument(
        "--architecture",
        default=defaults.ARCHITECTURE,
        type=presets,
        metavar="NAME",
        help=f"{', '.join(PRESETS)} (%(default)s)",
    )
    parser.add_argument(
        "--tableau",
        default=defaults.TABLEAU,
        type=name_among(tableaux(), TABLEAU_ALIASES),
        metavar="NAME",
        help=f"{', '.join(tableaux())} (%(default)s)",
    )
    parser.add_argument(
        "--field",
        default=defaults.FIELD,
        type=name_among(FIELDS),
        metavar="NAME",
        help=f"{', '.join(FIELDS)} (%(default)s)",
    )
    parser.add_argument(
        "--layers",
        type=POSITIVE,
        metavar="N",
        help=f"number of steps ({defaults.N_LAYERS}, of net {defaults.N_LAYERS_FEED_FORWARD})",
    )


def _add_training(parser: argparse.ArgumentParser) -> None:
    losses = [*names_of("classes"), *names_of("numbers")]
    usual = f"{defaults.CLASSIFIER_LOSS}, with --regression {defaults.REGRESSOR_LOSS}"
    parser.add_argument(
        "--loss", type=name_among(losses, LOSS_ALIASES), metavar="NAME", help=f"{', '.join(losses)} ({usual})"
    )
    parser.add_argument(
        "--max-iter", default=defaults.MAX_ITER, type=POSITIVE, metavar="N", help="iterations (%(default)s)"
    )
    parser.add_argument(
        "--optimiser",
        type=name_among(OPTIMISERS, {text: _option(name) for text, name in OPTIMISER_ALIASES.items()}),
        metavar="NAME",
        help=f"{', '.join(OPTIMISERS)} ({_option(type(defaults.OPTIMISER).__name__)}, first under a weak prior)",
    )
    parser.add_argument("--lr", type=_positive, metavar="RATE", help="the learning rate, of adam unless named")
    parser.add_argument("--batch-size", type=POSITIVE, metavar="N", help="the samples of a step of adam (all)")
    parser.add_argument(
        "--alpha",
        type=_alpha,
        metavar="FACTOR",
        help=f"of the prior: more for noisier data, or cv ({defaults.ALPHA})",
    )
    parser.add_argument("--checkpoint", metavar="FILE", help="where to keep the state of the training, to go on from")
    parser.add_argument("--resume", metavar="FILE", help="a checkpoint to go on from, with the same data and options")
    parser.add_argument(
        "--patience", type=POSITIVE, metavar="N", help="stop early, after N evaluations without a better one"
    )
    add_seed(parser)


def run(arguments: argparse.Namespace) -> None:
    """Train, print how it went, and write the model file."""
    communicator = world()
    with reporting_on_root(communicator) as is_root, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _require_options(arguments)
        if communicator is not None or is_pattern(arguments.data):
            facts = trained_in_parts(arguments, communicator, TEST_SIZE)
        else:
            facts = _trained(arguments)
    if not is_root:
        return
    if not arguments.quiet:
        print_warnings(caught)
    if arguments.json:
        print(json_text(facts))
    elif not arguments.quiet:
        print(_report(facts))
    if facts.get("interrupted"):
        raise Interrupted(
            f"interrupted after {counted(facts['iterations'], 'iteration')}; what has been learned is in "
            f"{arguments.out!r}"
        )


def _require_options(arguments: argparse.Namespace) -> None:
    """Refuse what does not go together, before anything is read."""
    if arguments.out is None and arguments.cv is None:
        raise UserError("needed is --out MODEL, the file to write, or --cv FOLDS, to measure only")
    if arguments.cv is not None and arguments.test_size:
        raise UserError("--cv and --test-size are two ways to measure; leave one of them out")
    fitting = names_of("numbers" if arguments.regression else "classes")
    if arguments.loss not in (None, *fitting):
        advice = "leave out --regression" if arguments.regression else "add --regression"
        raise UserError(f"--loss {arguments.loss} is none of {', '.join(fitting)}; choose one of them, or {advice}")
    if arguments.out is None and (arguments.checkpoint or arguments.resume):
        raise UserError("--checkpoint and --resume are for a training that writes a model: add --out MODEL")
    for path in (arguments.out, arguments.checkpoint):
        if path is not None:
            require_place_for(path, arguments.data)


def _trained(arguments: argparse.Namespace) -> dict[str, Any]:
    """Train on a table that is read as a whole, and return what is to be said about it."""
    samples = read_samples(arguments)
    facts: dict[str, Any] = {"rows_without_target": samples.n_left_out}
    if arguments.cv is not None:
        facts["cv"] = {"folds": arguments.cv} | cross_validated(samples, arguments.cv, arguments)
    if arguments.out is not None:
        facts |= _train(samples, arguments)
    return facts


def _train(samples: Samples, arguments: argparse.Namespace) -> dict[str, Any]:
    """Train on the rows that are not held out, write the model, and return what is to be said about it."""
    share = arguments.test_size if arguments.test_size is not None else TEST_SIZE if arguments.cv is None else 0.0
    training, held_out = _split(samples, share, arguments)
    start = time.perf_counter()
    with ending_the_training() as pressed:
        model, values = fitted(samples, samples.rows[training], arguments, [pressed], stored=True)
    seconds = time.perf_counter() - start
    facts: dict[str, Any] = {"train_samples": len(training), "test_samples": len(held_out)}
    for name, places in (("train", training), ("test", held_out)):
        found = scores(model, values[samples.rows[places]], samples.targets[places]) if len(places) else {}
        facts |= {f"{name}_{score}": found.get(score) for score in scores_of(arguments)}
    save(model, arguments.out)
    return facts | {
        "loss": float(model.estimator.history_.loss[-1]),
        "iterations": int(model.estimator.n_iter_),
        "status": model.estimator.status_.value,
        "seconds": round(seconds, 3),
        "out": arguments.out,
        "interrupted": pressed.is_pressed,
    }


@reraise_swallowed_interrupts
def _split(samples: Samples, share: float, arguments: argparse.Namespace) -> tuple[LabelArray, LabelArray]:
    """Return the places of the samples to train on and of those held out, with equal shares of every class."""
    from sklearn.model_selection import train_test_split

    places = np.arange(len(samples.rows))
    held_out = math.ceil(share * len(places))
    if held_out == 0:
        return places, places[:0]
    n_classes = 1
    if not arguments.regression:
        classes, counts = np.unique(samples.targets, return_counts=True)
        n_classes = len(classes)
        if counts.min() < 2:
            alone = classes[counts.argmin()].item()
            doubt = f" (there are {n_classes} classes: are they measurements? --regression learns those)"
            raise UserError(
                f"class {alone!r} has one sample, which cannot be trained on and held out; --test-size 0 holds nothing "
                f"out{doubt if are_numbers(map(str, classes), samples.sheet.decimal) else ''}"
            )
    if min(held_out, len(places) - held_out) < n_classes:
        raise UserError(
            f"--test-size {share:g} of {counted(len(places), 'sample')} leaves {len(places) - held_out} to train on "
            f"and {held_out} held out; both need one of each of the {n_classes} classes at least"
        )
    stratify = None if arguments.regression else samples.targets
    training, testing = train_test_split(places, test_size=held_out, stratify=stratify, random_state=arguments.seed)
    return training, testing


def _report(facts: dict[str, Any]) -> str:
    lines: dict[str, object] = {}
    if facts["rows_without_target"]:
        lines["left out"] = f"{counted(facts['rows_without_target'], 'row')} without a target"
    for score, name in SCORES.items():
        found = facts.get("cv", {}).get(score)
        if found is not None:
            lines[f"{name} in {len(found)} folds"] = f"{np.mean(found):.4f}, spread {np.std(found):.4f}"
    if "out" not in facts:
        return aligned(lines)
    score = "accuracy" if "train_accuracy" in facts else "r2"
    for part in ("train", "test"):
        count = facts[f"{part}_samples"]
        lines[f"{part} {SCORES[score]}"] = (
            f"{facts[f'{part}_{score}']:.4f} of {counted(count, 'sample')}" if count else "no samples held out"
        )
    if score == "r2" and facts["test_samples"]:
        lines["test error"] = f"{facts['test_error']:.6g}, the root of the mean square"
    return aligned(
        lines
        | {
            "loss": f"{facts['loss']:.6g}",
            "iterations": f"{facts['iterations']}: {facts['status']}",
            "seconds": f"{facts['seconds']:.2f}",
            "model file": facts["out"],
        }
    )


def _share(text: str) -> float:
    share = _real(text)
    if not 0 <= share < 1:
        raise argparse.ArgumentTypeError(f"must be at least 0 and below 1, got {text!r}")
    return share


def _positive(text: str) -> float:
    value = _real(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text!r}")
    return value


def _alpha(text: str) -> float | str:
    value = _real(text)
    if text != "cv" and not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number that is not negative, or cv, got {text!r}")
    return "cv" if text == "cv" else value


def _real(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
