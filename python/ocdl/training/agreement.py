"""What all ranks of a training must have been called with, so that they take the same path."""

from __future__ import annotations

import hashlib
from typing import Any

from ocdl.base.validation import FloatArray
from ocdl.model.losses import Loss
from ocdl.network.files import network_to_dict
from ocdl.training import optimisers
from ocdl.training.optimisers import Chain, Optimiser
from ocdl.training.session import Problem


def agreed_upon(problem: Problem, start: FloatArray, optimiser: Optimiser | Chain) -> dict[str, Any]:
    """Return it as JSON can hold it, by the names of the arguments; the controls by what they add up to."""
    objective = problem.objective
    loss = objective._to_dict()["loss"] if isinstance(objective.record, Loss) else objective.loss_name
    return {
        "net": network_to_dict(problem.net),
        "u": f"a vector of sum {start.sum():.17g} and digest {hashlib.sha256(start.data).hexdigest()[:12]}",
        "the loss of the objective": loss,
        "the reduction of the objective": objective.reduction,
        "the regulariser of the objective": repr(objective.regulariser),
        "optimiser": optimisers.to_dict(optimiser),
        "sample_weight": "not None" if problem.sample_weight is not None else "None",
        "validation": "not None" if problem.validation is not None else "None",
        "freeze": list(problem.frozen),
        "tol": problem.tol,
        "rtol": problem.rtol,
    }
