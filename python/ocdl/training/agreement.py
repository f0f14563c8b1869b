"""The arguments that must be equal on all ranks of a training."""

from __future__ import annotations

import hashlib
from typing import Any

from ocdl.base.validation import FloatArray
from ocdl.data.data import Data
from ocdl.network.files import network_to_dict
from ocdl.training import optimisers
from ocdl.training.optimisers import Chain, Optimiser
from ocdl.training.problem import Problem


def describe_times(data: Data) -> str:
    """Return which times all rows must be observed at."""
    observed = data.observed
    if observed is None:
        return "None"
    if observed.shared_times is None:
        return f"{observed.count} own times per sample"
    return f"{observed.count} times with digest {hashlib.sha256(observed.times_digest()).hexdigest()[:12]}"


def describe_arguments(problem: Problem, start: FloatArray, optimiser: Optimiser | Chain) -> dict[str, Any]:
    """Return the arguments by name, as JSON can hold them; controls by their sum and a digest."""
    objective = problem.objective
    return {
        "net": network_to_dict(problem.net),
        "u": f"a vector of sum {start.sum():.17g} and digest {hashlib.sha256(start.data).hexdigest()[:12]}",
        "the loss of the objective": {"name": objective.loss_name, "parameters": objective._loss.parameters()},
        "the reduction of the objective": objective.reduction,
        "the penalties of the objective": repr(objective.penalties),
        "optimiser": optimisers.to_dict(optimiser),
        "sample_weight": "given" if problem.data.is_weighted else "None",
        "the observations of y": describe_times(problem.data),
        "validation": "given" if problem.validation is not None else "None",
        "freeze": list(problem.frozen),
        "tol": problem.tol,
        "rtol": problem.rtol,
    }
