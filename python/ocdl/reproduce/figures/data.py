"""The four data sets: Fig. 1."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure as Canvas

from ocdl import plot
from ocdl.reproduce.figures._figure import Figure, Table
from ocdl.reproduce.results import Results
from ocdl.reproduce.runs import DATASETS


def _draw(results: Results, canvas: Canvas) -> None:
    canvas.set_size_inches(10, 3)
    sets = {name: results.data("architectures", name) for name in DATASETS}

    def points(data: Any, ax: Any) -> Any:
        return plot.data(data.X, data.y, ax=ax)

    plot.compare(sets, points, fig=canvas)


def _table(results: Results) -> Table:
    sets = {name: results.data("architectures", name) for name in DATASETS}
    rows = (
        (name, part, i, int(label), *map(float, x))
        for name, data in sets.items()
        for part, X, y in (("train", data.X, data.y), ("test", data.X_test, data.y_test))
        for i, (x, label) in enumerate(zip(X, y, strict=True))
    )
    return Table(("data set", "part", "sample", "label", "x1", "x2"), rows)


FIGURES = (
    Figure(
        "fig1",
        "The four data sets",
        "Training samples of the four sets of points, blue for label 0 and red for label 1: two clouds around one on "
        "a line, a ring around a disc, four squares, two arms of a spiral.",
        _draw,
        _table,
    ),
)
