"""The figures and the table of the paper, one kind of figure per file."""

from ocdl.reproduce.figures import courses, data, decisions, digits, snapshots, steps, tableaux
from ocdl.reproduce.figures._figure import Figure

__all__ = ["FIGURES", "Figure"]

_FORMS = (data, decisions, snapshots, courses, steps, digits, tableaux)
_FOUND = {figure.name: figure for form in _FORMS for figure in form.FIGURES}
FIGURES: dict[str, Figure] = {name: _FOUND[name] for name in (*(f"fig{i}" for i in range(1, 16)), "table1")}
