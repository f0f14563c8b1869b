"""The scikit-learn estimators, their defaults and their files."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ocdl.estimator.classifier import ODEClassifier
    from ocdl.estimator.regressor import ODERegressor

__all__ = ["ODEClassifier", "ODERegressor"]

ROOMS = {"ODEClassifier": "ocdl.estimator.classifier", "ODERegressor": "ocdl.estimator.regressor"}


def __getattr__(name: str) -> Any:
    """Import scikit-learn with the class that needs it: the defaults beside it are read by every command line."""
    if name in ROOMS:
        return getattr(import_module(ROOMS[name]), name)
    raise AttributeError(f"module 'ocdl.estimator' has no attribute {name!r}")
