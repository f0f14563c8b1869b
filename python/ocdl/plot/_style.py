"""The colour and the marker of each architecture, method, optimiser and class, the same in all pictures.

The colours of lines are those of Okabe and Ito (2008), which readers with any kind of colour vision can distinguish; in
grey, the markers differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypedDict

from ocdl.base import validation

OKABE_ITO = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#000000")
# Of classes: the hues of the paper, the first of which stays darker in grey, then others, enough for ten digits.
COLOURS = ("#0f4c91", "#e0472f", *OKABE_ITO[2:], "#999999", "#882255")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">")
GUIDE = "0.5"  # the grey of lines that a measurement is compared with

# What is compared with each other has different numbers: four architectures, four methods, five optimisers.
NUMBERS = {
    "net": 0,
    "resnet": 1,
    "odenet": 2,
    "odenetsimplex": 3,
    "euler": 0,
    "resneteuler": 0,
    "improvedeuler": 1,
    "kutta3": 2,
    "kutta4": 3,
    "midpoint": 4,
    "heun3": 5,
    "dormandprince": 7,
    "gradientdescent": 4,
    "backtracking": 0,
    "adam": 1,
    "lbfgs": 2,
    "newtoncg": 3,
    "chain": 7,
}


class Style(TypedDict):
    """A colour and a marker, as arguments of matplotlib; returned by `style`.

    Attributes
    ----------
    color, marker : str

    Examples
    --------
    >>> import ocdl.plot
    >>> sorted(ocdl.plot.style("resnet"))
    ['color', 'marker']
    """

    color: str
    marker: str


def style(name: str | int) -> Style:
    """Return the colour and the marker of a class, an architecture, a method or an optimiser.

    All functions of `ocdl.plot` use these styles, so that one thing looks the same in all pictures. Use them for lines
    and points of your own.

    Parameters
    ----------
    name : str or int
        A number: the class with this number, from 0. A text: "resnet", "odenet+simplex", "kutta4", "L-BFGS", ...; case,
        spaces and punctuation do not matter.

    Returns
    -------
    dict
        With the keys "color" and "marker", for ``plot`` or ``scatter`` of matplotlib.

    Raises
    ------
    TypeError, ValueError
        If the number is negative, or the name has no style of its own; the message lists the names.

    Examples
    --------
    >>> import ocdl.plot
    >>> ocdl.plot.style(0)
    {'color': '#0f4c91', 'marker': 'o'}
    >>> ocdl.plot.style("ODENet+Simplex") == ocdl.plot.style("odenet+simplex")
    True
    """
    if not isinstance(name, str):
        number = validation.integer(name, "name", minimum=0)
        return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
    known = _normalise(name)
    if known not in NUMBERS:
        raise ValueError(f"name must be a class number or one of {', '.join(NUMBERS)}, got {name!r}")
    return _line_style(NUMBERS[known])


def line_styles(names: Iterable[str]) -> list[Style]:
    """Return a style for each of the names that are compared: their own, or else the first ones that are left."""
    known = [NUMBERS.get(_normalise(name)) for name in names]
    if len({*known} - {None}) < sum(number is not None for number in known):
        known = [None] * len(known)  # two of them look the same, such as an architecture and a method
    left = [number for number in range(len(OKABE_ITO)) if number not in known] or [0]
    others = iter(range(len(known)))
    return [_line_style(left[next(others) % len(left)] if number is None else number) for number in known]


def _line_style(number: int) -> Style:
    return {"color": OKABE_ITO[number % len(OKABE_ITO)], "marker": MARKERS[number % len(MARKERS)]}


def _normalise(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())
