"""What is known of the vector fields; the core has it."""

from __future__ import annotations

from typing import NamedTuple

from ocdl import _core

__all__ = ["FIELDS", "Field"]


class Field(NamedTuple):
    """A vector field: the one that it is after a linear map of its controls, or itself, and if it needs an even state.

    The second half of an even state are the momenta of the first.
    """

    name: str
    swept_as: str
    needs_even_dim: bool


FIELDS = {name: Field(name, *facts) for name, facts in _core.fields().items()}
