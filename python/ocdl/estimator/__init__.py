"""The scikit-learn estimator and its files."""

from ocdl.estimator.classifier import ODEClassifier

__all__ = ["ODEClassifier"]
