"""The points on their way through the layers: Figs. 3 and 10 to 12."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from matplotlib.figure import Figure as Canvas

from ocdl import plot
from ocdl.plot._axes import enlarge_legend_markers
from ocdl.reproduce.figures._figure import Figure, Table
from ocdl.reproduce.figures.decisions import FIRST, PANEL, RESOLUTION, list_rows
from ocdl.reproduce.results import Results

Layers = Mapping[str, tuple[int, ...]]


def _draw(results: Results, canvas: Canvas, *, experiment: str, dataset: str, layers: Layers) -> None:
    data = results.data(experiment, dataset)
    networks = results.networks(experiment, dataset, FIRST)
    canvas.set_size_inches(4 * PANEL, len(networks) * (PANEL + 0.45))
    for part, (name, outcome) in zip(list_rows(canvas, len(networks)), networks.items(), strict=True):
        part.suptitle(name, fontweight="bold")
        scenes = plot.snapshots(
            outcome.model, data.X, data.y, layers=layers[name], resolution=RESOLUTION, legend=False, fig=part
        )
    legend = canvas.legend(handles=scenes[0].points, loc="outside lower center", ncols=2, frameon=False)
    enlarge_legend_markers(legend)


def _table(results: Results, *, experiment: str, dataset: str, layers: Layers) -> Table:
    data = results.data(experiment, dataset)

    def rows() -> Iterator[tuple[object, ...]]:
        for name, outcome in results.networks(experiment, dataset, FIRST).items():
            net, u = outcome.model
            states = net.forward(u, data.X).states
            for layer in layers[name]:
                for i, label in enumerate(data.y):
                    yield (name, layer, i, int(label), *map(float, states[layer, i]))

    return Table(("network", "layer", "sample", "label", "y1", "y2"), rows())


def _figure(name: str, title: str, caption: str, experiment: str, dataset: str, layers: Layers) -> Figure:
    options: dict[str, Any] = {"experiment": experiment, "dataset": dataset, "layers": layers}
    return Figure(name, title, caption, partial(_draw, **options), partial(_table, **options), experiment, (dataset,))


# The layers that the paper shows, each architecture its own.
ARCHITECTURES = {
    "Net": (0, 2, 8, 20),
    "ResNet": (0, 7, 14, 20),
    "ODENet": (0, 4, 13, 20),
    "ODENet+Simplex": (0, 1, 14, 20),
}
METHODS = dict.fromkeys(("ResNet/Euler", "Improved Euler", "Kutta(3)", "Kutta(4)"), (0, 4, 9, 15))
CAPTION = "The training samples after some of the layers, the last of them over the linear classifier. First seed."

FIGURES = (
    _figure("fig3", "Snapshots of the four architectures: spiral", CAPTION, "architectures", "spiral", ARCHITECTURES),
    *(
        _figure(
            f"fig{number}",
            f"Snapshots of four Runge-Kutta methods: {dataset}",
            CAPTION,
            "runge_kutta",
            dataset,
            METHODS,
        )
        for number, dataset in ((10, "spiral"), (11, "donut2d"), (12, "squares"))
    ),
)
