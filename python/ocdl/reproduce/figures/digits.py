"""Zeros and eights: Figs. 14 and 15."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure as Canvas

from ocdl import plot
from ocdl.reproduce.figures._figure import Figure, Table
from ocdl.reproduce.figures.courses import draw_courses, tabulate_courses
from ocdl.reproduce.figures.decisions import FIRST
from ocdl.reproduce.figures.steps import draw_steps, tabulate_steps
from ocdl.reproduce.results import Results
from ocdl.reproduce.runs import MNIST, SHOWN


def _draw_courses(results: Results, canvas: Canvas) -> None:
    canvas.set_size_inches(10, 4.4)
    accuracy, steps = canvas.subplots(1, 2)
    seeds = [results.networks(MNIST, MNIST, seed) for seed in results.seeds(MNIST, MNIST)]
    draw_courses(seeds, "accuracy", accuracy)
    draw_steps(seeds[0], steps)
    legend = accuracy.get_legend()
    if legend is not None:  # inside of the axes it would cover a curve
        keys, names = legend.legend_handles, [text.get_text() for text in legend.get_texts()]
        accuracy.legend(keys, names, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)


def _tabulate_courses(results: Results) -> Table:
    """Return both halves: the accuracies, then the steps."""
    accuracies = tabulate_courses(results, experiment=MNIST, datasets=(MNIST,), quantity="accuracy")

    def rows() -> Iterator[tuple[object, ...]]:
        for row in accuracies.rows:
            yield ("accuracy", *row[1:], "", "")
        for _, network, seed, layer, step in tabulate_steps(results, MNIST, (MNIST,)):
            yield ("time step", network, seed, "", "", "", layer, step)

    return Table(("panel", *accuracies.header[1:], "layer", "time step"), rows())


def _draw_images(results: Results, canvas: Canvas) -> None:
    canvas.set_size_inches(10, 5.2)
    data = results.data(MNIST, MNIST)
    rows = {"features": data.X_test[:SHOWN]}
    rows |= {name: outcome.shown for name, outcome in results.networks(MNIST, MNIST, FIRST).items()}
    plot.images(rows, titles=[8 if label else 0 for label in data.y_test[:SHOWN]], ax=canvas.subplots())


def _tabulate_images(results: Results) -> Table:
    features = results.data(MNIST, MNIST).X_test[:SHOWN]
    pictures = {"features": features}
    pictures |= {name: outcome.shown for name, outcome in results.networks(MNIST, MNIST, FIRST).items()}
    rows = ((name, i, *map(float, image)) for name, images in pictures.items() for i, image in enumerate(images))
    return Table(("row", "image", *(f"pixel_{i}" for i in range(features.shape[1]))), rows)


FIGURES = (
    Figure(
        "fig14",
        "Zeros and eights: accuracy and time steps",
        "Left: the share of correctly classified images, training data (100 images) solid, test data (500) dashed; "
        "shaded the range over all seeds. Right: the steps of the layers. First seed.",
        _draw_courses,
        _tabulate_courses,
        MNIST,
        (MNIST,),
    ),
    Figure(
        "fig15",
        "Zeros and eights before and after the flow",
        "Ten test images, and below them what each network has made of them at time T, just before the linear "
        "classifier. Each row has its own grey scale, from its lowest to its highest value. First seed.",
        _draw_images,
        _tabulate_images,
        MNIST,
        (MNIST,),
    ),
)
