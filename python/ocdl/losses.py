"""Losses with parameters, for `ocdl.Objective`."""

from ocdl.model.losses import *  # noqa: F403
from ocdl.model.losses import __getattr__ as __getattr__  # which says what there is
