"""The scikit-learn estimators, their defaults and their files."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ocdl.estimator.classifier import ODEClassifier
    from ocdl.estimator.regressor import ODERegressor

__all__ = ["ODEClassifier", "ODERegressor"]
MODULES = {"ODEClassifier": "classifier", "ODERegressor": "regressor"}


def __getattr__(name: str) -> Any:
    """Import scikit-learn with the class that needs it: the defaults beside it are read by every command line."""
    if name in MODULES:
        return getattr(import_module(f"ocdl.estimator.{MODULES[name]}"), name)
    raise AttributeError(f"module 'ocdl.estimator' has no attribute {name!r}")
