"""``ocdl train``: a model from a table of samples."""

from __future__ import annotations

import argparse
import math
import re
import time
import warnings
from typing import Any

import numpy as np

from ocdl.base.names import NO_ALIASES, pluralise
from ocdl.base.validation import LabelArray
from ocdl.cli._fitting import cross_validate, evaluate_rows, fit_model, save
from ocdl.cli._interrupts import Interrupted, end_training_on_interrupt, reraise_swallowed_interrupts
from ocdl.cli._launch import report_on_root, world
from ocdl.cli._output import (
    UserError,
    add_command,
    add_seed,
    align,
    integer_parser,
    json_text,
    name_parser,
    parse_fraction,
    parse_positive,
    parse_real,
    print_warnings,
    require_place_for,
)
from ocdl.cli._parquet_files import train_on_files
from ocdl.cli._samples import Samples, are_numbers, read_samples, read_scored
from ocdl.cli._scores import Scores, describe_confusion, describe_scores, evaluate
from ocdl.datasets import GENERATORS
from ocdl.estimator import defaults
from ocdl.model.architecture import PRESET_ALIASES, PRESETS
from ocdl.model.fields import FIELDS_WITHOUT_OPTION
from ocdl.model.losses import ALIASES as LOSS_ALIASES
from ocdl.model.losses import loss_names
from ocdl.model.tableau import ALIASES as TABLEAU_ALIASES
from ocdl.model.tableau import tableaux
from ocdl.tables.columns import MAX_VALUES
from ocdl.tables.parquet import is_pattern
from ocdl.training.optimisers import ALIASES as OPTIMISER_ALIASES
from ocdl.training.optimisers import SINGLE_OPTIMISERS

POSITIVE = integer_parser(1, 2**31 - 1)
SCORES = {"accuracy": "accuracy", "log_loss": "log loss", "auc": "AUC", "r2": "R^2", "error": "error"}


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

A table is a CSV file (commas, semicolons, tabs or | between the columns, with or without a header,
plain or compressed by gzip), a Parquet file, or - for CSV from stdin. Numbers are standardised, and missing
ones are replaced by the median; $3,366.33 and 32% are numbers. A text is encoded as zeros and ones,
or as the mean of the target if its column has many different texts. A date is encoded as days, and
as positions in the year, the week and the day. Rows without a target are left out. The model file stores the encoding,
so that ocdl predict and ocdl score read tables in the same form.

The saved model is trained on all rows. A second model, trained without the rows held out, is scored
on these. The baseline is a prediction that uses no column.

An NPZ file has the arrays X, of shape (samples, features), and y, of shape (samples,). A pattern
stands for a table in several Parquet files; with MPI each rank reads its own rows, and the saved
model is trained without the rows held out. Ctrl-C ends the training and saves what has been learned."""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    parser = add_command(commands, "train", "train a model and write it to a model file", EXAMPLES)
    parser.add_argument("--out", metavar="MODEL", help="the model file to write, usually *.ocdl")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors, and JSON with --json")
    _add_data(parser.add_argument_group("data"))
    _add_evaluation(parser.add_argument_group("evaluation"))
    _add_model(parser.add_argument_group("model"))
    training = parser.add_argument_group("training")
    _add_training(training)
    add_seed(training)
    parser.set_defaults(run=run)


TEST_SIZE = 0.25


def _add_data(group: argparse._ArgumentGroup) -> None:
    data = f"a CSV, Parquet or NPZ file, - for CSV from stdin, or one of {', '.join(GENERATORS)}"
    group.add_argument("--data", required=True, metavar="DATA", help=data)
    group.add_argument(
        "--target",
        metavar="COLUMN",
        help="the column to predict, by its name or its number, counted from 1; default: the last column",
    )
    group.add_argument("--regression", action="store_true", help="predict numbers; default: classes")
    group.add_argument(
        "--features", nargs="+", metavar="COLUMN", help="the columns to learn from; default: all but the target"
    )
    group.add_argument("--drop", nargs="+", metavar="COLUMN", help="columns to leave out")
    group.add_argument(
        "--categorical", nargs="+", metavar="COLUMN", help="columns of numbers that are codes, such as postal codes"
    )
    group.add_argument(
        "--max-categories",
        type=integer_parser(1, 1000),
        default=MAX_VALUES,
        metavar="N",
        help="columns with more texts are encoded by means of the target; default: %(default)s",
    )
    group.add_argument("--weights", metavar="COLUMN", help="the weights of the rows; default: 1")
    group.add_argument(
        "--class-weight",
        nargs="+",
        metavar="LABEL=W",
        help="the weight W of each class, or balanced: the same total weight for each class; default: 1",
    )
    group.add_argument("--no-scaling", action="store_true", help="do not standardise the numbers")


def _add_evaluation(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--test", metavar="FILE", help="a table to score the model on, instead of rows of --data")
    group.add_argument(
        "--test-size",
        type=parse_fraction,
        metavar="FRACTION",
        help=f"the fraction of the rows to hold out and score on; default: {TEST_SIZE}, or 0 with --cv or --test",
    )
    group.add_argument(
        "--cv",
        type=integer_parser(2, 1000),
        metavar="FOLDS",
        help="compute scores by cross-validation with this number of folds",
    )


def _add_model(group: argparse._ArgumentGroup) -> None:
    losses = [*loss_names("classes"), *loss_names("numbers")]
    loss = f"{defaults.CLASSIFIER_LOSS}, with --regression {defaults.REGRESSOR_LOSS}"
    layers = f"{defaults.N_LAYERS}, with --architecture net {defaults.N_LAYERS_FEED_FORWARD}"
    for option, names, default, aliases in (
        ("--architecture", PRESETS, defaults.ARCHITECTURE, PRESET_ALIASES),
        ("--tableau", tableaux(), defaults.TABLEAU, TABLEAU_ALIASES),
        ("--field", FIELDS_WITHOUT_OPTION, defaults.FIELD, NO_ALIASES),
    ):
        group.add_argument(
            option,
            default=default,
            type=name_parser(names, aliases),
            metavar="NAME",
            help=f"{', '.join(names)}; default: %(default)s",
        )
    group.add_argument(
        "--layers", type=POSITIVE, metavar="N", help=f"the number of layers (time steps); default: {layers}"
    )
    group.add_argument(
        "--loss", type=name_parser(losses, LOSS_ALIASES), metavar="NAME", help=f"{', '.join(losses)}; default: {loss}"
    )
    group.add_argument(
        "--alpha",
        type=_alpha,
        metavar="FACTOR",
        help="the strength of the prior, larger for noisier data; auto and cv choose it by cross-validation; "
        f"default: {defaults.ALPHA}",
    )


def _add_training(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--max-iter", default=defaults.MAX_ITER, type=POSITIVE, metavar="N", help="iterations; default: %(default)s"
    )
    first = _option(type(defaults.OPTIMISER).__name__)
    group.add_argument(
        "--optimiser",
        type=name_parser(OPTIMISERS, {text: _option(name) for text, name in OPTIMISER_ALIASES.items()}),
        metavar="NAME",
        help=f"{', '.join(OPTIMISERS)}; default: {first}, initially with a weaker prior",
    )
    group.add_argument("--lr", type=parse_positive, metavar="RATE", help="the learning rate of the optimiser")
    group.add_argument("--batch-size", type=POSITIVE, metavar="N", help="rows per step of adam; default: all rows")
    group.add_argument(
        "--patience", type=POSITIVE, metavar="N", help="stop after N evaluations without a better one; default: never"
    )
    group.add_argument("--checkpoint", metavar="FILE", help="where to save the state of the training, for --resume")
    group.add_argument("--resume", metavar="FILE", help="continue from a checkpoint, with the same data and options")


def run(arguments: argparse.Namespace) -> None:
    """Train, print a report, and write the model file."""
    communicator = world()
    with report_on_root(communicator) as is_root, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _require_options(arguments)
        if communicator is not None or is_pattern(arguments.data):
            report = train_on_files(arguments, communicator, TEST_SIZE)
        else:
            report = _train_on_table(arguments)
    if not is_root:
        return
    if not arguments.quiet:
        print_warnings(caught)
    if arguments.json:
        print(json_text(report))
    elif not arguments.quiet:
        print(_report(report))
    if report.get("interrupted"):
        raise Interrupted(
            f"interrupted after {pluralise(report['iterations'], 'iteration')}; what has been learned is in "
            f"{arguments.out!r}"
        )
    if report.get("evaluation_interrupted"):
        raise Interrupted(f"interrupted during the evaluation; {arguments.out!r} has the model of all rows")


def _require_options(arguments: argparse.Namespace) -> None:
    """Refuse options that cannot be combined, before any file is read."""
    if arguments.out is None and arguments.cv is None:
        raise UserError("--out is required, the model file to write; it may be left out with --cv FOLDS")
    given = [
        option
        for option, value in (
            ("--cv", arguments.cv),
            ("--test", arguments.test),
            ("--test-size", arguments.test_size),
        )
        if value
    ]
    if len(given) > 1:
        raise UserError(f"{given[0]} and {given[1]} cannot be combined; leave one of them out")
    fitting = loss_names("numbers" if arguments.regression else "classes")
    if arguments.loss not in (None, *fitting):
        advice = "leave out --regression" if arguments.regression else "add --regression"
        raise UserError(f"--loss {arguments.loss} must be one of {', '.join(fitting)}; choose one of them, or {advice}")
    if arguments.regression and arguments.class_weight is not None:
        raise UserError("--class-weight is for classes; leave it out with --regression")
    if arguments.out is None and (arguments.checkpoint or arguments.resume):
        raise UserError("--checkpoint and --resume need --out, the model file to write")
    if arguments.resume is not None and arguments.checkpoint not in (None, arguments.resume):
        raise UserError(
            f"--checkpoint {arguments.checkpoint!r} and --resume {arguments.resume!r} must be the same file; "
            "--resume alone continues to write its file"
        )
    for path in (arguments.out, arguments.checkpoint, arguments.resume):
        if path is not None:
            require_place_for(path, arguments.data, *([] if arguments.test is None else [arguments.test]))


def _train_on_table(arguments: argparse.Namespace) -> dict[str, Any]:
    """Train on a table that is read as a whole, and return what to report."""
    samples = read_samples(arguments)
    report: dict[str, Any] = {"rows_without_target": samples.n_left_out}
    if arguments.cv is not None:
        report["cv"] = {"folds": arguments.cv} | cross_validate(samples, arguments.cv, arguments)
    if arguments.out is not None:
        report |= _fit_and_score(samples, arguments)
    return report


def _fit_and_score(samples: Samples, arguments: argparse.Namespace) -> dict[str, Any]:
    """Train on all rows, write the model, and score a model that is trained without the rows held out."""
    everywhere = np.arange(len(samples.rows))
    fraction = arguments.test_size
    if fraction is None:
        fraction = TEST_SIZE if arguments.cv is None and arguments.test is None else 0.0
    training, held_out = _split(samples, fraction, arguments)
    start = time.perf_counter()
    with end_training_on_interrupt() as interrupt_flag:
        model, values = fit_model(samples, everywhere, arguments, interrupt_flag, with_checkpoint=True)
    seconds = time.perf_counter() - start
    save(model, arguments.out)
    report: dict[str, Any] = {"train_samples": len(everywhere), "test_samples": 0}
    report |= _add_prefix("train", evaluate(model, values, samples.targets, samples.weights))
    report |= {
        "loss": float(model.estimator.history_.loss[-1]),
        "iterations": int(model.estimator.n_iter_),
        "status": model.estimator.status_.value,
        "alpha": getattr(model.estimator, "alpha_", None),
        "seconds": round(seconds, 3),
        "out": arguments.out,
        "interrupted": interrupt_flag.is_set,
        "classes": model.classes_.tolist() if model.is_classifier else None,
    }
    if interrupt_flag.is_set:
        return report
    if arguments.test is not None:
        test = read_scored(model, arguments.test, arguments, False)
        report["test_samples"] = len(test.targets)
        return report | _add_prefix("test", evaluate(model, model.inputs(test.frame), test.targets, test.weights))
    if len(held_out):
        with warnings.catch_warnings(), end_training_on_interrupt() as interrupt_flag:
            warnings.simplefilter("ignore")  # the training on all rows gave the same warnings
            held_back, _ = fit_model(samples, training, arguments, interrupt_flag)
        if interrupt_flag.is_set:
            return report | {"evaluation_interrupted": True}
        report["test_samples"] = len(held_out)
        report |= _add_prefix("test", evaluate_rows(held_back, samples, held_out))
    return report


def _add_prefix(name: str, scores: Scores) -> Scores:
    return {f"{name}_{score}": value for score, value in scores.items()}


@reraise_swallowed_interrupts
def _split(samples: Samples, fraction: float, arguments: argparse.Namespace) -> tuple[LabelArray, LabelArray]:
    """Return the indices of the samples to train on and of those held out, with equal fractions of every class."""
    from sklearn.model_selection import train_test_split

    indices = np.arange(len(samples.rows))
    held_out = math.ceil(fraction * len(indices))
    if held_out == 0:
        return indices, indices[:0]
    n_classes = 1
    if not arguments.regression:
        classes, counts = np.unique(samples.targets, return_counts=True)
        n_classes = len(classes)
        if counts.min() < 2:
            alone = classes[counts.argmin()].item()
            doubt = f" (there are {n_classes} classes: are they measurements? --regression learns those)"
            raise UserError(
                f"class {alone!r} has one sample, which cannot be trained on and held out; --test-size 0 holds nothing "
                f"out{doubt if are_numbers(map(str, classes), samples.frame.decimal) else ''}"
            )
    if min(held_out, len(indices) - held_out) < n_classes:
        raise UserError(
            f"--test-size {fraction:g} of {pluralise(len(indices), 'sample')} leaves {len(indices) - held_out} to "
            f"train on and {held_out} held out; both need one of each of the {n_classes} classes at least"
        )
    stratify = None if arguments.regression else samples.targets
    training, testing = train_test_split(indices, test_size=held_out, stratify=stratify, random_state=arguments.seed)
    return training, testing


def _report(report: dict[str, Any]) -> str:
    lines: dict[str, object] = {}
    if report["rows_without_target"]:
        lines["left out"] = f"{pluralise(report['rows_without_target'], 'row')} without a target"
    for score, name in SCORES.items():
        folds = report.get("cv", {}).get(score)
        if folds:
            baseline = report["cv"].get(f"baseline_{score}")
            beside = "" if baseline is None else f"; baseline {np.mean(baseline):.4f}"
            lines[f"{name} in {len(folds)} folds"] = f"{np.mean(folds):.4f}, spread {np.std(folds):.4f}{beside}"
    if "out" not in report:
        return align(lines)
    confusion = ""
    for name in ("train", "test"):
        scores = {key.removeprefix(f"{name}_"): value for key, value in report.items() if key.startswith(f"{name}_")}
        if "baseline_accuracy" in scores or "baseline_error" in scores:
            lines |= describe_scores(scores, report[f"{name}_samples"], name)
            confusion = describe_confusion(scores, report["classes"] or []) if name == "test" else ""
        elif "accuracy" in scores or "r2" in scores:  # of a table in several files
            score = "accuracy" if "accuracy" in scores else "r2"
            lines[f"{name} {SCORES[score]}"] = f"{scores[score]:.4f} of {pluralise(report[f'{name}_samples'], 'row')}"
    if report["test_samples"]:
        if "classes" in report:
            evaluated = f"the model file has a model of all {pluralise(report['train_samples'], 'row')}"
            lines["saved model"] = evaluated
    else:
        lines["test"] = "no rows held out"
    lines |= {"loss": f"{report['loss']:.6g}", "iterations": f"{report['iterations']}: {report['status']}"}
    if report.get("alpha") is not None:
        lines["alpha"] = f"{report['alpha']:g}"
    lines |= {"seconds": f"{report['seconds']:.2f}", "model file": report["out"]}
    return align(lines) + (f"\n{confusion}" if confusion else "")


def _alpha(text: str) -> float | str:
    if text in ("auto", "cv"):
        return text
    value = parse_real(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number that is not negative, auto or cv, got {text!r}")
    return value
