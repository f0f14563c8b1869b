"""The time steps that the networks learn: Fig. 8."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from matplotlib.figure import Figure as Canvas

from ocdl import plot
from ocdl.reproduce.figures._figure import Figure, Table
from ocdl.reproduce.figures.courses import DATASETS
from ocdl.reproduce.figures.decisions import FIRST
from ocdl.reproduce.results import Results
from ocdl.reproduce.store import Outcome


def draw_steps(networks: dict[str, Outcome], ax: Any) -> Any:
    """Draw the steps of the networks that have some."""
    return plot.time_steps({name: outcome.steps for name, outcome in networks.items() if outcome.steps.size}, ax=ax)


def _draw(results: Results, canvas: Canvas) -> None:
    canvas.set_size_inches(10, 6.5)
    sets = {dataset: results.networks("architectures", dataset, FIRST) for dataset in DATASETS}
    plot.compare(sets, draw_steps, columns=2, fig=canvas)


def tabulate_steps(results: Results, experiment: str, datasets: tuple[str, ...]) -> Iterator[tuple[object, ...]]:
    """Yield data set, network, seed, layer and step."""
    for dataset, seed in results.cases(experiment, datasets):
        for name, outcome in results.networks(experiment, dataset, seed).items():
            for layer, step in enumerate(outcome.steps, start=1):
                yield (dataset, name, seed, layer, float(step))


STEP_HEADER = ("data set", "network", "seed", "layer", "time step")

FIGURES = (
    Figure(
        "fig8",
        "Learned time steps",
        "The step of each layer: fixed for ResNet, free for ODENet, on the simplex for ODENet+Simplex, where a layer "
        "without a bar has the step 0. First seed.",
        _draw,
        lambda results: Table(STEP_HEADER, tabulate_steps(results, "architectures", DATASETS)),
        "architectures",
        DATASETS,
    ),
)
