"""What the networks predict, and where they move the points: Figs. 2, 4, 5 and 9."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.figure import SubFigure

from ocdl import plot
from ocdl.reproduce.figures._figure import Figure, Table
from ocdl.reproduce.results import Results
from ocdl.reproduce.runs import Data
from ocdl.reproduce.store import Outcome

FIRST = 1  # the seed that is drawn
PANEL = 2.5  # inches
RESOLUTION = 120


def list_rows(canvas: Canvas, count: int) -> list[SubFigure]:
    """Divide a figure into rows, each with a title of its own."""
    return list(np.asarray(canvas.subfigures(count, 1, squeeze=False))[:, 0])


def panels(data: Data) -> dict[str, Callable[..., Any]]:
    """Return the two rows of a comparison: prediction above transformation."""

    def prediction(outcome: Outcome, ax: Any) -> Any:
        return plot.prediction(outcome.model, data.X, data.y, resolution=RESOLUTION, ax=ax)

    def transformation(outcome: Outcome, ax: Any) -> Any:
        return plot.transformation(outcome.model, data.X, data.y, resolution=RESOLUTION, ax=ax)

    return {"prediction": prediction, "transformation": transformation}


def _draw(results: Results, canvas: Canvas, *, experiment: str, datasets: tuple[str, ...]) -> None:
    canvas.set_size_inches(4 * PANEL, 2 * PANEL * len(datasets) + 0.6 * len(datasets))
    for part, dataset in zip(list_rows(canvas, len(datasets)), datasets, strict=True):
        part.suptitle(dataset, fontweight="bold")
        networks = results.networks(experiment, dataset, FIRST)
        plot.compare(networks, panels(results.data(experiment, dataset)), fig=part)


def _draw_seeds(results: Results, canvas: Canvas, *, experiment: str, datasets: tuple[str, ...]) -> None:
    (dataset,) = datasets
    transformation = panels(results.data(experiment, dataset))["transformation"]
    seeds = (1, 2)
    canvas.set_size_inches(4 * PANEL, len(seeds) * (PANEL + 0.5))
    for part, seed in zip(list_rows(canvas, len(seeds)), seeds, strict=True):
        part.suptitle(f"random seed {seed}", fontweight="bold")
        plot.compare(results.networks(experiment, dataset, seed), transformation, fig=part)


def _table(results: Results, *, experiment: str, datasets: tuple[str, ...]) -> Table:
    def rows() -> Iterator[tuple[object, ...]]:
        for dataset, seed in results.cases(experiment, datasets):
            data = results.data(experiment, dataset)
            for name, outcome in results.networks(experiment, dataset, seed).items():
                net, u = outcome.model
                flow = net.forward(u, data.X)
                for i, label in enumerate(data.y):
                    x, y, z = data.X[i], flow.states[-1, i], flow.outputs[i]
                    yield (dataset, name, seed, i, int(label), *map(float, (*x, *y, *z)))

    return Table(("data set", "network", "seed", "sample", "label", "x1", "x2", "y1", "y2", "output"), rows())


def _figure(
    name: str,
    title: str,
    caption: str,
    experiment: str,
    datasets: tuple[str, ...],
    draw: Callable[..., None] = _draw,
    least_seeds: int = 1,
) -> Figure:
    options: dict[str, Any] = {"experiment": experiment, "datasets": datasets}
    return Figure(
        name, title, caption, partial(draw, **options), partial(_table, **options), least_seeds=least_seeds, **options
    )


FIGURES = (
    _figure(
        "fig2",
        "Predictions and transformations of the four architectures",
        "Upper rows: the classifier in the background, the training samples in front. Lower rows: the same samples at "
        "time T, over the linear classifier that divides them. First seed.",
        "architectures",
        ("donut1d", "squares"),
    ),
    _figure(
        "fig4",
        "The same with a classifier that is not trained",
        "As Fig. 2, but W = (10, 10) and mu = 0 stay as they are, and only the flow is learned. First seed.",
        "fixed_classifier",
        ("donut1d", "spiral"),
    ),
    _figure(
        "fig5",
        "Two random starts",
        "The samples of donut2d at time T over the linear classifier, from two random starts.",
        "architectures",
        ("donut2d",),
        _draw_seeds,
        least_seeds=2,
    ),
    _figure(
        "fig9",
        "Predictions and transformations of four Runge-Kutta methods",
        "As Fig. 2, for networks of 15 layers whose layer is a step of the named method; all methods start from the "
        "same controls. First seed.",
        "runge_kutta",
        ("spiral", "donut2d", "squares"),
    ),
)
