"""From the options of ``ocdl train`` to a fitted model, and to how well it predicts."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.base.validation import LabelArray
from ocdl.cli._interrupts import reraise_swallowed_interrupts
from ocdl.cli._output import UserError, shows_progress
from ocdl.cli._samples import Samples
from ocdl.estimator import defaults
from ocdl.model.fields import FIELDS
from ocdl.network import Network
from ocdl.tables.learning import learn
from ocdl.tables.model import TableModel
from ocdl.tables.sheet import TableWarning

GIVEN = {"lr": "learning_rate", "batch_size": "batch_size", "alpha": "alpha", "loss": "loss", "optimiser": "optimiser"}
SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)  # whose logarithm counts: the loss of a sure mistake is finite

Fitted = tuple[TableModel, NDArray[Any]]


def fitted(
    samples: Samples,
    training: LabelArray,
    arguments: argparse.Namespace,
    callbacks: Sequence[Callable[..., Any]] = (),
    *,
    stored: bool = False,
) -> Fitted:
    """Return the model that learned from these rows of the table, and the numbers that all rows became.

    Stored, its training is written to a checkpoint, or goes on from one.
    """
    encoding, values = reraise_swallowed_interrupts(learn)(
        samples.sheet,
        samples.candidates,
        samples.target,
        training,
        scaling=not arguments.no_scaling,
        keep_index=samples.is_chosen,
    )
    estimator = estimator_of(arguments, values.shape[1])
    if stored:
        estimator._checkpoint, estimator._resume = arguments.checkpoint, arguments.resume
    targets = samples.targets[np.searchsorted(samples.rows, training)]
    try:
        estimator.fit(values[training], targets, callbacks=callbacks)
    except (FloatingPointError, ValueError) as error:
        raise UserError(str(error)) from error
    return TableModel(estimator, encoding), values


def estimator_of(arguments: argparse.Namespace, n_inputs: int) -> Any:
    """Return the estimator that the options describe."""
    from ocdl.estimator import ODEClassifier, ODERegressor

    given = {name: getattr(arguments, option) for option, name in GIVEN.items()}
    settings = {name: value for name, value in given.items() if value is not None}
    if arguments.patience is not None:
        settings |= {"early_stopping": True, "patience": arguments.patience}
    estimator = (ODERegressor if arguments.regression else ODEClassifier)(
        architecture=arguments.architecture,
        n_layers=arguments.layers,
        tableau=arguments.tableau,
        field=arguments.field,
        max_iter=arguments.max_iter,
        random_state=arguments.seed,
        verbose=int(shows_progress(arguments)),
        **settings,
    )
    if FIELDS[arguments.field].needs_even_dim:
        estimator.augment += (n_inputs + estimator.augment) % 2  # positions and momenta
    try:
        Network.preset(
            arguments.architecture,
            n_inputs,
            defaults.layers_of(arguments.architecture, arguments.layers),
            tableau=arguments.tableau,
            field=arguments.field,
            augment=estimator.augment,
        )
    except ValueError as error:
        raise UserError(str(error)) from error
    return estimator


def scores(model: TableModel, values: NDArray[Any], targets: NDArray[Any]) -> dict[str, float]:
    """Return how well a model predicts: accuracy and log loss of classes, R^2 and the error of measurements."""
    try:
        if not model.is_classifier:
            return _of_measurements(model.estimator.predict(values), targets)
        shares = model.estimator.predict_proba(values)
    except FloatingPointError as error:
        raise UserError(str(error)) from error
    accuracy = float(np.mean(model.estimator.predict(values) == targets))
    own = shares[np.arange(len(targets)), np.searchsorted(model.classes_, targets)]
    return {"accuracy": accuracy, "log_loss": float(-np.mean(np.log(np.maximum(own, SMALLEST_PROBABILITY))))}


def _of_measurements(predicted: NDArray[Any], targets: NDArray[Any]) -> dict[str, float]:
    """Return 1 minus the share of the variance that is left, and the root of the mean squared error."""
    left, spread = np.mean((predicted - targets) ** 2), np.var(targets)
    return {"r2": float(1 - left / spread) if spread > 0 else 0.0, "error": float(np.sqrt(left))}


def scores_of(arguments: argparse.Namespace) -> tuple[str, str]:
    """Return the names of these scores."""
    return ("r2", "error") if arguments.regression else ("accuracy", "log_loss")


def save(model: TableModel, path: str) -> None:
    """Write the model file."""
    try:
        model.save(path)
    except ValueError as error:  # too many features or classes for the header of a file
        raise UserError(f"{path!r} cannot hold the model: {error}") from error


def cross_validated(samples: Samples, folds: int, arguments: argparse.Namespace) -> dict[str, list[float]]:
    """Return the scores on each of the folds, by a model that learned from the others."""
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
    found: dict[str, list[float]] = {}
    for training, testing in splitter.split(samples.rows, None if arguments.regression else samples.targets):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of single folds
            warnings.simplefilter("always", TableWarning)
            model, values = fitted(samples, samples.rows[training], arguments)
        for name, value in scores(model, values[samples.rows[testing]], samples.targets[testing]).items():
            found.setdefault(name, []).append(value)
    return found
