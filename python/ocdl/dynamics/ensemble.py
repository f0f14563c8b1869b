"""Several models of the same data: each with other random numbers and from a random part of the data."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ocdl.base import validation
from ocdl.dynamics.fitting import MIN_SERIES, fit_dynamics
from ocdl.dynamics.plan import DynamicsFit, DynamicsPlan
from ocdl.dynamics.series import Series
from ocdl.estimator.settings import resolve_threads
from ocdl.training.parallel import ShouldStop, run_parallel

LEFT_OUT = 0.2  # of the rows, where there are few series


def fit_models(plan: DynamicsPlan, n_models: Any, n_jobs: Any) -> list[DynamicsFit]:
    """Return the fits of an ensemble; one model learns from all data."""
    count = validation.integer(n_models, "n_models", minimum=1)
    jobs = resolve_threads(n_jobs) or 1
    if count == 1:
        return [fit_dynamics(plan)]
    runs = {i: partial(_fit_member, plan, i) for i in range(count)}
    fits = dict(run_parallel(runs, min(jobs, count)))
    return [fits[i] for i in range(count)]


def _fit_member(plan: DynamicsPlan, number: int, should_stop: ShouldStop) -> DynamicsFit:
    rng = np.random.default_rng([plan.seed, number])
    series = resample(plan.series, rng)
    return fit_dynamics(replace(plan, series=series, seed=plan.seed + number, should_stop=should_stop))


def resample(series: tuple[Series, ...], rng: np.random.Generator) -> tuple[Series, ...]:
    """Return as many series drawn with replacement; of few series all, without a random part of their rows."""
    if len(series) >= MIN_SERIES:
        return tuple(series[i] for i in rng.integers(len(series), size=len(series)))
    members = []
    for one in series:
        values = one.values.copy()
        inner = np.arange(1, len(one) - 1)
        values[rng.choice(inner, size=int(LEFT_OUT * len(inner)), replace=False)] = np.nan
        is_lost = np.isnan(values).all(axis=0) & ~np.isnan(one.values).all(axis=0)
        members.append(Series(one.times, np.where(is_lost, one.values, values), one.inputs))
    return tuple(members)
