"""Properties of the vector fields, as the core states them."""

from __future__ import annotations

from typing import NamedTuple

from ocdl import _core

__all__ = ["FIELDS", "FIELDS_WITHOUT_OPTION", "FIELD_OPTIONS", "Field"]

FIELD_OPTIONS = {"width": 32, "degree": 2}  # with a value for examples


class Field(NamedTuple):
    """A vector field.

    `swept_as` is the field that it is after a linear map of its controls, or itself. The second half of an even state
    are the momenta of the first. `option` is the argument of `Network` that it takes, and others refuse.
    `takes_inputs`: of a network with inputs.
    """

    name: str
    swept_as: str
    needs_even_dim: bool
    option: str | None
    requires_option: bool
    takes_inputs: bool


FIELDS = {
    name: Field(name, swept_as, needs_even_dim, option or None, requires_option, takes_inputs)
    for name, (swept_as, needs_even_dim, option, requires_option, takes_inputs) in _core.fields().items()
}
FIELDS_WITHOUT_OPTION = tuple(name for name, field in FIELDS.items() if not field.requires_option)
