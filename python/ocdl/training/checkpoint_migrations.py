"""What checkpoints of older versions become.

Version 1 knew objective and optimiser by how they print and the score as accuracy, and did not look at decreases.
"""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np

from ocdl.model.objective import Objective
from ocdl.model.penalties import Regulariser
from ocdl.storage.container import Arrays, Migration
from ocdl.training import optimisers

LONGEST_TEXT = 10_000  # of what was printed: far more than any optimiser takes


def _from_version_1(description: dict[str, Any], arrays: Arrays) -> None:
    training = description["training"]
    objective = _printed(training["objective"])["Objective"]
    penalty = objective["regulariser"]
    regulariser = None if penalty is None else Regulariser(**penalty["Regulariser"])
    training["objective"] = Objective(objective["loss"], objective["reduction"], regulariser)._to_dict()
    training["optimiser"] = optimisers.to_dict(optimisers.from_dict(_printed(training["optimiser"])))
    for old, new in (("accuracy", "score"), ("val_accuracy", "val_score")):
        arrays[f"evaluated.{new}"] = arrays.pop(f"evaluated.{old}")
    arrays["state.decrease"] = np.array(math.inf)


MIGRATIONS: dict[int, Migration] = {1: _from_version_1}


def _printed(text: Any) -> Any:
    """Return what the text of a call with constants says, ``Adam(lr=0.05)`` as {"Adam": {"lr": 0.05}}; runs nothing."""
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise ValueError(f"{text!r:.80} describes nothing that was trained")
    try:
        return _read(ast.parse(text, mode="eval").body)
    except (SyntaxError, MemoryError) as error:
        raise ValueError(f"{text!r:.80} describes nothing that was trained") from error


def _read(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Tuple(elts=entries):
            return [_read(entry) for entry in entries]
        case ast.Call(func=ast.Name(id=name), args=[], keywords=settings):
            return {name: {setting.arg: _read(setting.value) for setting in settings}}
        case ast.Call(func=ast.Name(id=name), args=entries, keywords=[]):
            return {name: [_read(entry) for entry in entries]}
    raise ValueError(f"{ast.unparse(node):.80} is no setting")
