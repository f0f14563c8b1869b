"""The four Runge-Kutta methods: Table 1."""

from __future__ import annotations

from fractions import Fraction

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from ocdl.model.tableau import Tableau
from ocdl.reproduce.figures._figure import Figure, Table
from ocdl.reproduce.results import Results
from ocdl.reproduce.runs import METHODS


def _draw(results: Results, canvas: Canvas) -> None:
    canvas.set_size_inches(10, 2.4)
    for (name, tableau), ax in zip(_tableaux().items(), canvas.subplots(1, 4), strict=True):
        ax.set_title(f"{name}\norder {tableau.order}", fontsize="medium")
        _butcher(tableau, ax)


def _butcher(tableau: Tableau, ax: Axes) -> None:
    """Write c | A over b, as fractions, with the two lines of a Butcher tableau."""
    s = tableau.stages
    ax.set_xlim(-1.2, 4.0)
    ax.set_ylim(4.8, -0.6)
    ax.axis("off")
    for i in range(s):
        _write(ax, -0.6, i, tableau.c[i])
        for j in range(i):
            _write(ax, j + 0.3, i, tableau.A[i, j])
    for j in range(s):
        _write(ax, j + 0.3, s, tableau.b[j])
    ax.plot([-1.1, s - 0.2], [s - 0.5, s - 0.5], color="black", linewidth=0.8)
    ax.plot([-0.15, -0.15], [-0.5, s + 0.5], color="black", linewidth=0.8)


def _write(ax: Axes, x: float, y: float, value: float) -> None:
    ax.text(x, y, str(Fraction(float(value)).limit_denominator(1000)), ha="center", va="center")


def _tableaux() -> dict[str, Tableau]:
    return {name: Tableau.named(key) for name, key in METHODS.items()}


def _table(results: Results) -> Table:
    rows = []
    for name, tableau in _tableaux().items():
        for i in range(tableau.stages):
            entries = {"c": tableau.c[i], "b": tableau.b[i]} | {f"a{j + 1}": a for j, a in enumerate(tableau.A[i])}
            rows += [(name, tableau.order, i + 1, key, float(value)) for key, value in entries.items()]
    return Table(("method", "order", "stage", "coefficient", "value"), rows)


FIGURES = (
    Figure(
        "table1",
        "Four explicit Runge-Kutta methods",
        "The Butcher tableaux of the methods of Figs. 9 to 13; their orders are derived from the coefficients.",
        _draw,
        _table,
    ),
)
