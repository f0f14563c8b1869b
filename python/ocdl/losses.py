"""Losses with parameters, for `ocdl.Objective`."""

from ocdl.model.losses import *  # noqa: F403
