"""The scikit-learn estimator, its defaults and its files."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ocdl.estimator.classifier import ODEClassifier

__all__ = ["ODEClassifier"]


def __getattr__(name: str) -> Any:
    """Import scikit-learn with the class that needs it: the defaults beside it are read by every command line."""
    if name == "ODEClassifier":
        from ocdl.estimator.classifier import ODEClassifier

        return ODEClassifier
    raise AttributeError(f"module 'ocdl.estimator' has no attribute {name!r}")
