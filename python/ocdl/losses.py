"""Losses with parameters, for `ocdl.Objective`."""

from ocdl.model.losses import (
    CrossEntropy,
    CustomLoss,
    Huber,
    Loss,
    Poisson,
    Quantile,
    Squared,
    SquaredError,
)

__all__ = ["CrossEntropy", "CustomLoss", "Huber", "Loss", "Poisson", "Quantile", "Squared", "SquaredError"]
