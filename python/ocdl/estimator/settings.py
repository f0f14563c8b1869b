"""From the parameters of an estimator to what a training takes: optimiser, choice of the prior, threads."""

from __future__ import annotations

from numbers import Real
from typing import Any

import joblib

from ocdl.base import validation
from ocdl.estimator import defaults
from ocdl.training.optimisers import ALIASES, SINGLE_OPTIMISERS, Adam, Chain, GradientDescent, Optimiser, named

CHOSEN_BY_FOLDS = "cv"
BY_NAME = {kind.__name__: kind for kind in SINGLE_OPTIMISERS}


KEYWORDS_OF_OTHERS = {
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


def optimiser_of(optimiser: Any, learning_rate: Any, batch_size: Any) -> Optimiser | Chain | None:
    """Return the optimiser that the parameters ask for; None: the default, with all that belongs to it."""
    given = {"learning_rate": learning_rate, "batch_size": batch_size}
    given = {name: value for name, value in given.items() if value is not None}
    if optimiser is None and not given:
        return None
    if not isinstance(optimiser, (str, type(None))):
        if given:
            raise ValueError(
                f"{' and '.join(given)} beside optimiser={optimiser!r}: leave out what is not meant, set it in the "
                "optimiser, or name the optimiser, as in optimiser='adam'"
            )
        chosen: Optimiser | Chain = optimiser  # `train` says what is none
        return chosen
    kind = Adam if optimiser is None else BY_NAME[validation.choice(optimiser, "optimiser", BY_NAME, ALIASES)]
    if kind is Adam:
        rate = validation.positive(given.get("learning_rate", defaults.LEARNING_RATE), "learning_rate")
        return Adam(lr=rate, batch_size=_batch_size(batch_size))
    if kind is GradientDescent and "batch_size" not in given:
        if "learning_rate" not in given:
            raise ValueError("optimiser='GradientDescent' needs a learning_rate: the length of its steps")
        return GradientDescent(validation.positive(learning_rate, "learning_rate"))
    if given:
        raise ValueError(f"{' and '.join(given)} beside optimiser={optimiser!r}, which has none: leave one of them out")
    return named(optimiser)


def _batch_size(batch_size: Any) -> int | None:
    return None if batch_size is None else validation.integer(batch_size, "batch_size", least=1)


def alpha_of(alpha: Any, regulariser: Any) -> float | str:
    """Return the factor of the prior, or that folds choose it; a regulariser of one's own replaces the prior."""
    if regulariser is not None:
        if not isinstance(alpha, Real) or alpha != defaults.ALPHA:
            raise ValueError(
                f"alpha={validation.written(alpha)} beside regulariser={regulariser!r}: a regulariser replaces the "
                "prior of which alpha is the factor; leave one of them out"
            )
        return 0.0
    if isinstance(alpha, str):
        if alpha != CHOSEN_BY_FOLDS:
            raise ValueError(f"alpha must be a number that is not negative, or 'cv', got {alpha!r}")
        return CHOSEN_BY_FOLDS
    return validation.not_negative(alpha, "alpha")


def threads_of(n_jobs: Any) -> int | None:
    """Return how many threads a fit may use; below 0 they are counted from the number of processors, -1 is all."""
    if n_jobs is None:
        return None
    number = validation.integer(n_jobs, "n_jobs", least=-validation.LARGEST_COUNT)
    if number == 0:
        raise ValueError("n_jobs must be None, a number of threads, or below 0, where -1 is all processors; got 0")
    threads: int = joblib.effective_n_jobs(number)
    return threads
