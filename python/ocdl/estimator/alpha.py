"""The choice of the factor of the prior by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from ocdl.base.validation import FloatArray, LabelArray
from ocdl.estimator import defaults
from ocdl.estimator.plan import FitPlan, FittedNetwork
from ocdl.estimator.prior import SHORT, reach
from ocdl.estimator.samples import Samples
from ocdl.estimator.settings import AUTO, CV
from ocdl.model.controls import Controls
from ocdl.model.objective import Objective

FOLDS = 3
FEW_ROWS, MANY_ROWS, SHARE = 500, 3000, 3  # of m rows "auto" uses m / 3, at least 500 and at most 3000
OUTLIER = 25.0  # times the mean excess of the losses over the smallest: the loss of a row is clipped there


class Search(NamedTuple):
    """Candidates from weak to strong, the numbers of iterations for the first and for later ones, and a margin.

    A candidate other than 1 must be better than 1 by this number of standard errors of the difference. With a margin,
    the search ends after the first fold in which no candidate is better than 1.
    """

    candidates: tuple[float, ...]
    iterations: tuple[int, int]
    margin: float


SEARCHES = {
    AUTO: Search((0.03, 0.1, 0.3, 1.0), (160, 60), 1.5),
    CV: Search((0.03, 0.1, 0.3, 1.0, 3.0, 10.0), (230, 57), 0.0),
}


def choose_alpha(plan: FitPlan, fit: Callable[[FitPlan], FittedNetwork]) -> float:
    """Return the factor under which left-out rows have the lowest mean loss, by the search that the plan names.

    In each fold the prior is strengthened step by step, and every fit starts from the controls of the one before.
    """
    assert isinstance(plan.alpha, str)
    search, samples, rng = SEARCHES[plan.alpha], plan.probe, np.random.default_rng(plan.seed)
    is_held = reach(plan.network, samples.total, 1.0, plan.noise) < SHORT
    if len(samples.X) < 2 * FOLDS or (plan.alpha == AUTO and is_held):
        return 1.0
    limit = int(np.clip(len(samples.X) // SHARE, FEW_ROWS, MANY_ROWS))
    if plan.alpha == AUTO and limit < len(samples.X):
        samples = samples.select(np.sort(rng.permutation(len(samples.X))[:limit]))
    labels = samples.y if samples.y.dtype.kind == "i" else np.zeros(len(samples.y), np.int64)
    is_stratified = np.bincount(labels)[np.unique(labels)].min() >= FOLDS
    folds = (StratifiedKFold if is_stratified else KFold)(FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
    losses = np.full((len(samples.X), len(search.candidates)), np.nan)
    best = 1.0
    for kept, left_out in folds.split(samples.X, labels):
        training, u = samples.select(kept), plan.start
        for number, alpha in enumerate(search.candidates):
            changes = {"max_iter": search.iterations[number > 0], "is_warm": number > 0, "rtol": 10 * defaults.RTOL}
            u = fit(plan.for_fold(training, alpha=alpha, start=u, **changes)).controls
            losses[left_out, number] = _row_losses(plan, u, samples, left_out)
        known = ~np.isnan(losses[:, 0])
        best = _best(losses[known], samples.row_weights[known], search)
        if search.margin and _best(losses[known], samples.row_weights[known], search._replace(margin=0.0)) == 1.0:
            break
    return best


def _best(losses: FloatArray, weights: FloatArray, search: Search) -> float:
    """Return the candidate with the lowest mean loss, of those that are better than 1 by the margin.

    A candidate is better if the mean of its losses is lower, so that rare large losses count, and if the mean of its
    clipped losses is lower by the margin, so that rare large losses do not hide the other rows.
    """
    default = search.candidates.index(1.0)
    weights = weights / weights.sum()
    smallest = losses[:, default].min()
    limit = smallest + OUTLIER * (weights @ (losses[:, default] - smallest))
    gains = np.minimum(losses[:, [default]], limit) - np.minimum(losses, limit)
    gain = weights @ gains
    error = np.linalg.norm(weights[:, None] * (gains - gain), axis=0)
    is_better = (gain > search.margin * error) & (weights @ losses < weights @ losses[:, default])
    is_better[default] = True
    return search.candidates[int(np.argmax(np.where(is_better, gain, -np.inf)))]


def _row_losses(plan: FitPlan, u: Controls, samples: Samples, rows: LabelArray) -> FloatArray:
    """Return the loss of each of these rows; infinite where the outputs are not finite."""
    objective, losses = Objective(plan.loss), np.full(len(rows), np.inf)
    for number, i in enumerate(rows):
        try:
            losses[number] = plan.network.value(u, samples.X[i : i + 1], samples.y[i : i + 1], objective)
        except FloatingPointError:
            continue
    return losses
