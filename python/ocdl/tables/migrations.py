"""What model files of older versions become.

Version 1 of the command line wrote a network with a record of its own, ``command_line``, and no estimator.
"""

from __future__ import annotations

from typing import Any

from ocdl.storage.container import Arrays, Migration, exact_record

OLD_KEY = "command_line"
OLD_FIELDS = ("classes", "loss", "mean", "scale", "feature_names", "target_name", "target_position")
LOSSES = ("squared", "cross_entropy")
# The parameters of an estimator of version 1. What was trained does not depend on them any more, but for the loss.
PARAMETERS: dict[str, Any] = {
    "architecture": "odenet",
    "n_layers": 20,
    "tableau": "euler",
    "activation": "tanh",
    "field": "dense",
    "horizon": 1.0,
    "augment": 1,
    "loss": "cross_entropy",
    "optimiser": None,
    "max_iter": 300,
    "tol": 1e-3,
    "regulariser": None,
    "class_weight": None,
    "validation_fraction": 0.0,
    "early_stopping": False,
    "warm_start": False,
    "verbose": 0,
    "random_state": None,
    "n_jobs": None,
}


def _from_version_1(metadata: dict[str, Any], _: Arrays) -> None:
    """Make an estimator of version 1 and the record of a table out of the command line's own record."""
    if OLD_KEY not in metadata:
        return
    old = exact_record(metadata.pop(OLD_KEY), f"its {OLD_KEY}", OLD_FIELDS)
    classes, mean, names, position = old["classes"], old["mean"], old["feature_names"], old["target_position"]
    if old["loss"] not in LOSSES:
        raise ValueError(f"its loss is {old['loss']!r:.80}")
    if not isinstance(mean, list) or not isinstance(classes, list):
        raise ValueError("its mean and its classes must be lists")
    if not all(type(label) in (str, int) for label in classes):
        raise ValueError("its classes must be texts or whole numbers")
    width = len(mean) + (position is not None)
    metadata["estimator"] = {
        "parameters": PARAMETERS | {"loss": old["loss"]},
        "classes": {"dtype": "|O", "values": classes},
        "feature_names": None,
        "n_iter": 0,
        "status": "ITERATION_LIMIT",
    }
    metadata["table"] = {
        "width": width,
        "names": names,
        "positions": [j for j in range(width) if j != position],
        "fill": [None] * len(mean),
        "mean": mean,
        "scale": old["scale"],
        "kinds": {},
        "values": {},
        "formats": {},
        "missing": {},
        "target": None if position is None else {"name": old["target_name"], "position": position},
    }


MIGRATIONS: dict[int, Migration] = {1: _from_version_1}
