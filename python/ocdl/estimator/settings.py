"""The optimiser, prior and threads that the parameters of an estimator describe."""

from __future__ import annotations

from typing import Any, cast

import joblib

from ocdl.base import validation
from ocdl.estimator import defaults
from ocdl.model.fields import FIELDS, FIELDS_WITHOUT_OPTION
from ocdl.training.optimisers import (
    ALIASES,
    SINGLE_OPTIMISERS,
    Adam,
    Chain,
    GradientDescent,
    Optimiser,
    optimiser_by_name,
)

AUTO, CV = "auto", "cv"
BY_NAME = {kind.__name__: kind for kind in SINGLE_OPTIMISERS}
FOREIGN_KEYWORDS = {
    "lr": "learning_rate",
    "learning_rate_init": "learning_rate",
    "solver": "optimiser",
    "epochs": "max_iter",
    "n_iter": "max_iter",
    "l2": "alpha",
    "C": "alpha",
    "seed": "random_state",
    "n_iter_no_change": "patience",
    "early_stopping_rounds": "patience",
    "hidden_layer_sizes": "n_layers",
}


def resolve_optimiser(optimiser: Any, learning_rate: Any, batch_size: Any) -> Optimiser | Chain | None:
    """Return the optimiser that the parameters describe; None: the default training."""
    given = {"learning_rate": learning_rate, "batch_size": batch_size}
    given = {name: value for name, value in given.items() if value is not None}
    if optimiser is None:
        if given:
            raise ValueError(
                f"{' and '.join(given)} beside optimiser=None, which is L-BFGS and has none; choose optimiser='adam'"
            )
        return None
    if not isinstance(optimiser, str):
        if given:
            raise ValueError(
                f"{' and '.join(given)} beside optimiser={optimiser!r}: set it in the optimiser, or name one, "
                "as in optimiser='adam'"
            )
        return cast(Optimiser | Chain, optimiser)  # `train` checks the type
    kind = BY_NAME[validation.choice(optimiser, "optimiser", BY_NAME, ALIASES)]
    if kind is Adam:
        rate = validation.positive(given.get("learning_rate", defaults.LEARNING_RATE), "learning_rate")
        return Adam(lr=rate, batch_size=_batch_size(batch_size))
    if kind is GradientDescent and "batch_size" not in given:
        if "learning_rate" not in given:
            raise ValueError("optimiser='GradientDescent' needs a learning_rate: the length of its steps")
        return GradientDescent(validation.positive(learning_rate, "learning_rate"))
    if given:
        raise ValueError(f"{' and '.join(given)} beside optimiser={optimiser!r}, which has none: leave one of them out")
    return optimiser_by_name(optimiser)


def _batch_size(batch_size: Any) -> int | None:
    return None if batch_size is None else validation.integer(batch_size, "batch_size", minimum=1)


def resolve_alpha(alpha: Any, penalties: Any) -> float | str:
    """Return the factor of the prior, or how it is chosen; custom penalties replace the prior."""
    if penalties is not None:
        if not isinstance(alpha, str) or alpha != defaults.ALPHA:
            raise ValueError(
                f"alpha={validation.format_value(alpha)} and penalties={penalties!r} are both given, but penalties "
                "replace the prior of which alpha is the factor; leave one of them out"
            )
        return 0.0
    if isinstance(alpha, str):
        if alpha not in (AUTO, CV):
            raise ValueError(f"alpha must be a number that is not negative, 'auto' or 'cv', got {alpha!r}")
        return alpha
    return validation.not_negative(alpha, "alpha")


def resolve_components(n_components: Any, n_features: int, field: str) -> int | str | None:
    """Return how many principal components of the columns the flow moves, None for all columns, or "auto".

    A field whose states are pairs takes all columns, as fewer might be an odd number.
    """
    if n_components is None:
        return None
    if isinstance(n_components, str) and n_components == AUTO:
        return None if FIELDS[validation.choice(field, "field", FIELDS_WITHOUT_OPTION)].needs_even_dim else AUTO
    if isinstance(n_components, str):
        raise ValueError(f"n_components must be a whole number, 'auto' or None, got {n_components!r}")
    number = validation.integer(n_components, "n_components", minimum=1)
    if number > n_features:
        raise ValueError(f"n_components={number}, but X has {n_features} features")
    return number


def resolve_threads(n_jobs: Any) -> int | None:
    """Return how many threads a fit may use; below 0 they are counted from the number of processors, -1 is all."""
    if n_jobs is None:
        return None
    number = validation.integer(n_jobs, "n_jobs", minimum=-validation.LARGEST_COUNT)
    if number == 0:
        raise ValueError("n_jobs must be None, a number of threads, or below 0, where -1 is all processors; got 0")
    threads: int = joblib.effective_n_jobs(number)
    return threads
