"""Turn the options of ``ocdl train`` into a fitted model and its scores."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.base.validation import LabelArray
from ocdl.cli._interrupts import reraise_swallowed_interrupts
from ocdl.cli._output import UserError, has_progress_bar
from ocdl.cli._samples import Samples
from ocdl.cli._scores import Scores, evaluate
from ocdl.estimator import defaults
from ocdl.model.architecture import RESIDUAL
from ocdl.model.fields import FIELDS
from ocdl.network import Network
from ocdl.tables.encoding import fit_encoding
from ocdl.tables.frame import TableWarning, join_names
from ocdl.tables.model import TableModel
from ocdl.training.checkpoint import Checkpoint

ESTIMATOR_PARAMETERS = {
    "lr": "learning_rate",
    "batch_size": "batch_size",
    "alpha": "alpha",
    "loss": "loss",
    "optimiser": "optimiser",
}

Fitted = tuple[TableModel, NDArray[Any]]


def fit_model(
    samples: Samples,
    indices: LabelArray,
    arguments: argparse.Namespace,
    callback: Callable[..., Any] | None = None,
    *,
    with_checkpoint: bool = False,
) -> Fitted:
    """Fit a model to some of the rows with a target; return it and the encoded rows.

    With a checkpoint, the training is saved as the options say, or continues a saved one.
    """
    targets = samples.targets[indices]
    encoding, values = reraise_swallowed_interrupts(fit_encoding)(
        samples.frame.take(samples.rows[indices]),
        samples.candidates,
        samples.target,
        targets,
        target_type="continuous" if arguments.regression else "multiclass",
        options=samples.options,
    )
    estimator = make_estimator(arguments, values.shape[1])
    if arguments.class_weight is not None:
        estimator.class_weight = resolve_class_weight(arguments.class_weight, samples.targets)
    weights = None if samples.weights is None else samples.weights[indices]
    try:
        plan = estimator._plan(values, targets, weights, callback=callback)
        if with_checkpoint:
            plan = replace(plan, checkpoint=make_checkpoint(arguments))
        estimator._fit(plan)
    except (FloatingPointError, ValueError) as error:
        raise UserError(str(error)) from error
    return TableModel(estimator, encoding), values


def make_checkpoint(arguments: argparse.Namespace) -> Checkpoint | None:
    """Return the checkpoint that the options describe: --resume continues from its file, and writes it, too."""
    path = arguments.checkpoint or arguments.resume
    return None if path is None else Checkpoint(path, resume=arguments.resume is not None)


def resolve_class_weight(entries: Sequence[str], targets: NDArray[Any]) -> str | dict[Any, float]:
    """Return "balanced", or the weights of ``LABEL=W`` by their labels; other classes have the weight 1."""
    if [*entries] == ["balanced"]:
        return "balanced"
    known = {str(label): label for label in np.unique(targets).tolist()}
    weights = {}
    for entry in entries:
        label, _, text = entry.rpartition("=")
        try:
            weight = float(text)
        except ValueError:
            weight = -1.0
        if not 0 <= weight < np.inf or not label:
            raise UserError(f"--class-weight must be balanced or LABEL=W with W at least 0, got {entry!r}")
        if label not in known:
            raise UserError(f"--class-weight: {label!r} is not one of the classes {join_names(known)}")
        weights[known[label]] = weight
    return weights


def make_estimator(arguments: argparse.Namespace, n_inputs: int) -> Any:
    """Return the estimator that the options describe."""
    from ocdl.estimator import ODEClassifier, ODERegressor

    given = {name: getattr(arguments, option) for option, name in ESTIMATOR_PARAMETERS.items()}
    settings = {name: value for name, value in given.items() if value is not None}
    if {"learning_rate", "batch_size"} & settings.keys():
        settings.setdefault("optimiser", "adam")
    if arguments.patience is not None:
        settings |= {"early_stopping": True, "patience": arguments.patience}
    estimator = (ODERegressor if arguments.regression else ODEClassifier)(
        architecture=arguments.architecture,
        n_layers=arguments.layers,
        tableau=arguments.tableau,
        field=arguments.field,
        max_iter=arguments.max_iter,
        random_state=arguments.seed,
        verbose=int(has_progress_bar(arguments)),
        **settings,
    )
    if FIELDS[arguments.field].needs_even_dim:
        estimator.augment += (n_inputs + estimator.augment) % 2  # positions and momenta
    try:
        Network.preset(
            arguments.architecture,
            n_inputs,
            defaults.resolve_layers(arguments.architecture, arguments.layers),
            tableau=arguments.tableau,
            field=arguments.field,
            augment=estimator.augment,
        )
    except ValueError as error:
        raise UserError(str(error).replace(RESIDUAL, "an --architecture other than net")) from error
    return estimator


def evaluate_rows(model: TableModel, samples: Samples, indices: LabelArray) -> Scores:
    """Return the scores of a model for some of the rows with a target."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)  # about texts that the training rows do not have
        values = reraise_swallowed_interrupts(model.encoding.transform)(samples.frame.take(samples.rows[indices]))
    weights = None if samples.weights is None else samples.weights[indices]
    return evaluate(model, values, samples.targets[indices], weights)


def save(model: TableModel, path: str) -> None:
    """Write the model file."""
    try:
        model.save(path)
    except ValueError as error:  # too many features or classes for the header of a file
        raise UserError(f"{path!r} cannot hold the model: {error}") from error


def cross_validate(samples: Samples, folds: int, arguments: argparse.Namespace) -> dict[str, list[float]]:
    """Return the scores on each fold of a model that is trained on the other folds."""
    from sklearn.model_selection import KFold, StratifiedKFold

    if arguments.regression:
        splitter: Any = KFold(folds, shuffle=True, random_state=arguments.seed)
        smallest = len(samples.rows)
    else:
        splitter = StratifiedKFold(folds, shuffle=True, random_state=arguments.seed)
        smallest = int(np.unique(samples.targets, return_counts=True)[1].min())
    if smallest < folds:
        what = "there are" if arguments.regression else "the smallest class has"
        raise UserError(f"--cv {folds} needs {folds} samples in every class; {what} {smallest}")
    scores: dict[str, list[float]] = {}
    for training, testing in splitter.split(samples.rows, None if arguments.regression else samples.targets):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about single folds
            warnings.simplefilter("always", TableWarning)
            model, _ = fit_model(samples, training, arguments)
        for name, value in evaluate_rows(model, samples, testing).items():
            if isinstance(value, float):
                scores.setdefault(name, []).append(value)
    return scores
