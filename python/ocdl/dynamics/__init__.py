"""Learn a dynamical system from time series: the estimator `Dynamics`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ocdl.dynamics.estimator import Dynamics

__all__ = ["Dynamics"]


def __getattr__(name: str) -> Any:
    """Import scikit-learn with the class that needs it."""
    if name in __all__:
        return getattr(import_module("ocdl.dynamics.estimator"), name)
    raise AttributeError(f"module 'ocdl.dynamics' has no attribute {name!r}")
