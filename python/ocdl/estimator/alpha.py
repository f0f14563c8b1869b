"""The choice of the factor of the prior, and of the columns that count, by left-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from ocdl.base.validation import FloatArray, LabelArray
from ocdl.estimator import defaults
from ocdl.estimator.importances import rises_without_columns
from ocdl.estimator.plan import FitPlan, FittedNetwork
from ocdl.estimator.prior import SHORT, reach
from ocdl.estimator.samples import Samples
from ocdl.estimator.settings import AUTO, CV
from ocdl.model.controls import Controls
from ocdl.model.objective import Objective

FOLDS = 3
MIN_ROWS = 20  # of "auto": fewer left-out rows say less than the prior
ONE_FOLD = 1000  # rows from which on "auto" leaves out one fold only
MAX_ROWS, FEW_COLUMNS = 4500, 30  # rows that "auto" uses; with more columns fewer rows
OUTLIER = 25.0  # times the mean excess of the losses over the smallest: the loss of a row is clipped there
MIN_SCREENED = 300  # rows from which on columns may be left out
BATCHES = 10  # of left-out rows, for a standard error
SIGNIFICANT = 2.0  # standard errors by which the loss rises without a column that counts
MARGIN = 0.5  # standard errors by which these columns must predict better than all

Fit = Callable[[FitPlan], FittedNetwork]


class Search(NamedTuple):
    """Candidates from strong to weak, the number of iterations, and a margin.

    A candidate other than 1 must be better than 1 by this number of standard errors of the difference. With a margin,
    the search ends with the first candidate that is worse than the one before.
    """

    candidates: tuple[float, ...]
    iterations: int
    margin: float


SEARCHES = {
    AUTO: Search((1.0, 0.3, 0.1, 0.03), 100, 1.0),
    CV: Search((10.0, 3.0, 1.0, 0.3, 0.1, 0.03), 160, 0.0),
}


class Folds(NamedTuple):
    """Rows, and for each fold which of them are kept and which are left out."""

    samples: Samples
    splits: list[tuple[LabelArray, LabelArray]]

    @property
    def left_out(self) -> LabelArray:
        """All left-out rows, fold by fold."""
        return np.concatenate([left_out for _, left_out in self.splits])

    @property
    def weights(self) -> FloatArray:
        """Their weights, of sum 1."""
        weights = self.samples.row_weights[self.left_out]
        shares: FloatArray = weights / weights.sum()
        return shares

    def restrict(self, columns: LabelArray) -> Folds:
        """Return the same folds of some of the columns."""
        return self._replace(samples=self.samples._replace(X=np.ascontiguousarray(self.samples.X[:, columns])))


class Trial(NamedTuple):
    """A candidate, the losses of all left-out rows, and the controls of each fold."""

    alpha: float
    losses: FloatArray
    controls: list[Controls]


def resolve_by_folds(plan: FitPlan, fit: Fit) -> FitPlan:
    """Return the plan with the factor of the prior under which left-out rows have the lowest mean loss.

    It may have fewer columns: those that count, if they alone predict the rows that another partition leaves out better
    than all columns do.
    """
    assert isinstance(plan.alpha, str)
    search, samples, rng = SEARCHES[plan.alpha], plan.probe, np.random.default_rng(plan.seed)
    is_auto = plan.alpha == AUTO
    is_held = reach(plan.network, samples.total, 1.0, plan.noise) < SHORT
    if len(samples.X) < (MIN_ROWS if is_auto else 2 * FOLDS) or (is_auto and is_held):
        return replace(plan, alpha=1.0)
    limit = MAX_ROWS * FEW_COLUMNS // max(samples.X.shape[1], FEW_COLUMNS)
    if is_auto and len(samples.X) > limit:
        samples = samples.select(np.sort(rng.permutation(len(samples.X))[:limit]))
    count = 1 if is_auto and len(samples.X) >= ONE_FOLD else FOLDS
    folds = _split(samples, count, rng)
    best = _try_candidates(plan, fit, folds, search)
    chosen = replace(plan, alpha=best.alpha)
    if not is_auto or not plan.selects_columns or len(samples.X) < MIN_SCREENED:
        return chosen
    columns = _columns_that_count(plan, folds, best)
    if not 0 < len(columns) < samples.X.shape[1]:
        return chosen
    folds, narrow = _split(samples, count, rng), plan.restrict(columns)
    of_all = _try_candidates(plan, fit, folds, search._replace(candidates=(best.alpha,)))
    of_some = _try_candidates(narrow, fit, folds.restrict(columns), search)
    is_better = _best(np.column_stack([of_all.losses, of_some.losses]), folds.weights, MARGIN, default=0) == 1
    return replace(narrow, alpha=of_some.alpha) if is_better else chosen


def _split(samples: Samples, count: int, rng: np.random.Generator) -> Folds:
    """Return some of the folds of a random partition, with the classes in equal shares if they are large enough."""
    labels = samples.y if samples.y.dtype.kind == "i" else np.zeros(len(samples.y), np.int64)
    is_stratified = np.bincount(labels)[np.unique(labels)].min() >= FOLDS
    kind = StratifiedKFold if is_stratified else KFold
    folds = kind(FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
    return Folds(samples, list(folds.split(samples.X, labels))[:count])


def _try_candidates(plan: FitPlan, fit: Fit, folds: Folds, search: Search) -> Trial:
    """Fit each candidate on the kept rows, from the start of the plan, and return the best for the left-out rows."""
    trials: list[Trial] = []
    weights = folds.weights
    for alpha in search.candidates:
        changes = {"alpha": alpha, "max_iter": search.iterations, "rtol": 10 * defaults.RTOL}
        controls = [fit(plan.for_fold(folds.samples.select(kept), **changes)).controls for kept, _ in folds.splits]
        pairs = zip(controls, folds.splits, strict=True)
        losses = [_row_losses(plan, u, folds.samples, left_out) for u, (_, left_out) in pairs]
        trials.append(Trial(alpha, np.concatenate(losses), controls))
        if search.margin and len(trials) > 1 and weights @ trials[-1].losses > weights @ trials[-2].losses:
            break
    default = search.candidates.index(1.0) if 1.0 in search.candidates else 0
    return trials[_best(np.column_stack([trial.losses for trial in trials]), weights, search.margin, default)]


def _columns_that_count(plan: FitPlan, folds: Folds, trial: Trial) -> LabelArray:
    """Return the columns without which the loss of left-out rows rises significantly."""
    rises = [
        rises_without_columns(plan.network, u, folds.samples.select(rows), plan.loss, plan.components)
        for u, (_, left_out) in zip(trial.controls, folds.splits, strict=True)
        for rows in np.array_split(left_out, BATCHES)
    ]
    error = np.std(rises, axis=0, ddof=1) / len(rises) ** 0.5
    return np.flatnonzero(np.mean(rises, axis=0) > SIGNIFICANT * error)


def _best(losses: FloatArray, weights: FloatArray, margin: float, default: int) -> int:
    """Return the candidate with the lowest mean loss, of those that are better than the default by the margin.

    A candidate is better if the mean of its losses is lower, so that rare large losses count, and if the mean of its
    clipped losses is lower by the margin, so that rare large losses do not hide the other rows.
    """
    smallest = losses[:, default].min()
    limit = smallest + OUTLIER * (weights @ (losses[:, default] - smallest))
    gains = np.minimum(losses[:, [default]], limit) - np.minimum(losses, limit)
    gain = weights @ gains
    error = np.linalg.norm(weights[:, None] * (gains - gain), axis=0)
    is_better = (gain > margin * error) & (weights @ losses < weights @ losses[:, default])
    is_better[default] = True
    return int(np.argmax(np.where(is_better, gain, -np.inf)))


def _row_losses(plan: FitPlan, u: Controls, samples: Samples, rows: LabelArray) -> FloatArray:
    """Return the loss of each of these rows; infinite where the outputs are not finite."""
    objective, losses = Objective(plan.loss), np.full(len(rows), np.inf)
    for number, i in enumerate(rows):
        try:
            losses[number] = plan.network.value(u, samples.X[i : i + 1], samples.y[i : i + 1], objective)
        except FloatingPointError:
            continue
    return losses
