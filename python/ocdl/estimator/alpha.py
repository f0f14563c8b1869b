"""The choice of the factor of the prior, and of the columns that count, by left-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from ocdl.base.validation import FloatArray, LabelArray
from ocdl.estimator import defaults
from ocdl.estimator.plan import FitPlan, FittedNetwork
from ocdl.estimator.prior import SHORT, reach
from ocdl.estimator.samples import Samples
from ocdl.estimator.subspace import rises_without_columns
from ocdl.model.controls import Controls
from ocdl.model.objective import Objective

import os
from ocdl.estimator.settings import AUTO, CV
FOLDS = 3
MIN_ROWS = 20  # of "auto": fewer left-out rows say less than the prior
ONE_FOLD = int(os.environ.get('ONE_FOLD', 1000))  # rows from which on "auto" leaves out one fold only
MAX_ROWS = int(os.environ.get('MAX_ROWS', 4500))  # that "auto" uses
OUTLIER = 25.0  # times the mean excess of the losses over the smallest: the loss of a row is clipped there
BATCHES = 10
SIGNIFICANT = float(os.environ.get('SIGNIF', 2.0))
MIN_SCREENED = 300
SMARGIN = float(os.environ.get('SMARGIN', 0.0))
SELECT = int(os.environ.get('SELECT', 1))
WARM = int(os.environ.get('WARM', 100))


class Search(NamedTuple):
    """Candidates from weak to strong, the numbers of iterations for the first and for later ones, and a margin.

    A candidate other than 1 must be better than 1 by this number of standard errors of the difference. With a margin,
    the search ends after the first fold in which no candidate is better than 1.
    """

    candidates: tuple[float, ...]
    iterations: tuple[int, int]
    margin: float


SEARCHES = {
    AUTO: Search((0.03, 0.1, 0.3, 1.0), (160, 60), float(os.environ.get('MARGIN', 1.5))),
    CV: Search((0.03, 0.1, 0.3, 1.0, 3.0, 10.0), (230, 57), 0.0),
}
Fit = Callable[[FitPlan], FittedNetwork]


def resolve_by_folds(plan: FitPlan, fit: Fit) -> FitPlan:
    assert isinstance(plan.alpha, str)
    search, samples, rng = SEARCHES[plan.alpha], plan.probe, np.random.default_rng(plan.seed)
    is_auto = plan.alpha == AUTO
    is_held = reach(plan.network, samples.total, 1.0, plan.noise) < SHORT
    if len(samples.X) < (MIN_ROWS if is_auto else 2 * FOLDS) or (is_auto and is_held):
        return replace(plan, alpha=1.0)
    if is_auto and len(samples.X) > MAX_ROWS:
        samples = samples.select(np.sort(rng.permutation(len(samples.X))[:MAX_ROWS]))
    labels = samples.y if samples.y.dtype.kind == "i" else np.zeros(len(samples.y), np.int64)
    is_stratified = np.bincount(labels)[np.unique(labels)].min() >= FOLDS
    folds = (StratifiedKFold if is_stratified else KFold)(FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
    splits = list(folds.split(samples.X, labels))
    if is_auto and len(samples.X) >= ONE_FOLD:
        splits = splits[:1]
    best, losses, controls = _follow(plan, fit, samples, splits, search)
    chosen = replace(plan, alpha=best)
    if SELECT and plan.selects_columns and plan.components is None and len(samples.X) >= MIN_SCREENED:
        columns = _screen(plan, controls[best], samples.select(splits[0][1]))
        if len(columns) < samples.X.shape[1]:
            narrow = plan.restrict(columns)
            nsamples = samples._replace(X=samples.X[:, columns])
            best2, losses2, controls2 = _follow(narrow, fit, nsamples, splits, search)
            i, j = search.candidates.index(best), search.candidates.index(best2)
            known = ~np.isnan(losses[:, 0]) & ~np.isnan(losses2[:, 0])
            two = np.column_stack([losses2[known, j], losses[known, i]])
            if os.environ.get('VERB'): print('screen', len(columns), 'of', samples.X.shape[1], sorted(columns)[:20], best, best2, np.mean(two,0))
            if _best(two, samples.row_weights[known], (0.5, 1.0), SMARGIN) == 0.5:
                chosen, best, controls = replace(narrow, alpha=best2), best2, controls2
    if WARM and plan.optimiser is None:
        chosen = replace(chosen, start=controls[best], is_warm=True, max_iter=min(plan.max_iter, WARM))
    return chosen


def _screen(plan: FitPlan, u: Controls, samples: Samples) -> LabelArray:
    batches = np.array_split(np.arange(len(samples.X)), BATCHES)
    rises = np.array([rises_without_columns(plan.network, u, samples.select(b), plan.loss, None) for b in batches])
    error = rises.std(axis=0, ddof=1) / BATCHES**0.5
    columns = np.flatnonzero(rises.mean(axis=0) > SIGNIFICANT * error)
    return columns if len(columns) else np.arange(samples.X.shape[1])


def _follow(plan, fit, samples, splits, search):
    losses = np.full((len(samples.X), len(search.candidates)), np.nan)
    best, controls = 1.0, {}
    for kept, left_out in splits:
        training, u = samples.select(kept), plan.start
        for number, alpha in enumerate(search.candidates):
            changes = {"max_iter": search.iterations[number > 0], "is_warm": number > 0, "rtol": 10 * defaults.RTOL}
            u = fit(plan.for_fold(training, alpha=alpha, start=u, **changes)).controls
            controls.setdefault(alpha, u)
            losses[left_out, number] = _row_losses(plan, u, samples, left_out)
        known = ~np.isnan(losses[:, 0])
        best = _best(losses[known], samples.row_weights[known], search.candidates, search.margin)
        if search.margin and _best(losses[known], samples.row_weights[known], search.candidates, 0.0) == 1.0:
            break
    return best, losses, controls


def _best(losses: FloatArray, weights: FloatArray, candidates: tuple[float, ...], margin: float) -> float:
    """Return the candidate with the lowest mean loss, of those that are better than 1 by the margin.

    A candidate is better if the mean of its losses is lower, so that rare large losses count, and if the mean of its
    clipped losses is lower by the margin, so that rare large losses do not hide the other rows.
    """
    default = candidates.index(1.0)
    weights = weights / weights.sum()
    smallest = losses[:, default].min()
    limit = smallest + OUTLIER * (weights @ (losses[:, default] - smallest))
    gains = np.minimum(losses[:, [default]], limit) - np.minimum(losses, limit)
    gain = weights @ gains
    error = np.linalg.norm(weights[:, None] * (gains - gain), axis=0)
    is_better = (gain > margin * error) & (weights @ losses < weights @ losses[:, default])
    is_better[default] = True
    return candidates[int(np.argmax(np.where(is_better, gain, -np.inf)))]


def _row_losses(plan: FitPlan, u: Controls, samples: Samples, rows: LabelArray) -> FloatArray:
    """Return the loss of each of these rows; infinite where the outputs are not finite."""
    objective, losses = Objective(plan.loss), np.full(len(rows), np.inf)
    for number, i in enumerate(rows):
        try:
            losses[number] = plan.network.value(u, samples.X[i : i + 1], samples.y[i : i + 1], objective)
        except FloatingPointError:
            continue
    return losses
