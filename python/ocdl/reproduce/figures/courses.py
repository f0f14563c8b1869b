"""Loss and accuracy over the iterations: Figs. 6, 7 and 13."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial, reduce
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from ocdl import plot
from ocdl.plot._curves import START
from ocdl.reproduce.figures._figure import Figure, Table
from ocdl.reproduce.results import Results
from ocdl.reproduce.store import Outcome
from ocdl.training.history import History

DATASETS = ("donut1d", "donut2d", "spiral", "squares")  # in the order of the paper's panels


def draw_courses(outcomes: list[dict[str, Outcome]], quantity: str, ax: Axes) -> Any:
    """Draw a quantity of the first seed as lines, and behind each the range that it has over all seeds."""
    first = {name: outcome.history for name, outcome in outcomes[0].items()}
    curves = plot.history(first, evaluated_only=True, ax=ax) if quantity == "loss" else plot.accuracy(first, ax=ax)
    legend = ax.get_legend()
    for text in legend.get_texts() if legend else ():
        text.set_text(text.get_text().replace("validation", "test"))
    for name, line in zip(first, curves.training, strict=True):
        histories = [seed[name].history for seed in outcomes]
        common = reduce(np.intersect1d, [history.evaluated for history in histories])
        together = [_list_evaluations(history, quantity)[np.isin(history.evaluated, common)] for history in histories]
        low, high = np.min(together, axis=0), np.max(together, axis=0)
        ax.fill_between(np.maximum(common, START), low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    return curves


def _list_evaluations(history: History, quantity: str) -> Any:
    return history.loss[history.evaluated] if quantity == "loss" else history.accuracy


def _draw(results: Results, canvas: Canvas, *, experiment: str, quantity: str) -> None:
    canvas.set_size_inches(10, 7.5)
    sets = {
        dataset: [results.networks(experiment, dataset, seed) for seed in results.seeds(experiment, dataset)]
        for dataset in DATASETS
    }
    plot.compare(sets, lambda outcomes, ax: draw_courses(outcomes, quantity, ax), columns=2, fig=canvas)


def tabulate_courses(results: Results, *, experiment: str, datasets: tuple[str, ...], quantity: str) -> Table:
    """Return a quantity on training and test data, at every iteration where both are known."""

    def rows() -> Iterator[tuple[object, ...]]:
        for dataset, seed in results.cases(experiment, datasets):
            for name, outcome in results.networks(experiment, dataset, seed).items():
                history = outcome.history
                test = history.val_loss if quantity == "loss" else history.val_accuracy
                columns = (history.evaluated, _list_evaluations(history, quantity), test)
                for iteration, on_training, on_test in zip(*columns, strict=True):
                    yield (dataset, name, seed, int(iteration), float(on_training), float(on_test))

    return Table(("data set", "network", "seed", "iteration", f"train {quantity}", f"test {quantity}"), rows())


def _figure(name: str, title: str, experiment: str, quantity: str) -> Figure:
    caption = (
        f"Training data solid, test data dashed: the {quantity} of the first seed, and shaded the range on the "
        "training data over all seeds."
    )
    return Figure(
        name,
        title,
        caption,
        partial(_draw, experiment=experiment, quantity=quantity),
        partial(tabulate_courses, experiment=experiment, datasets=DATASETS, quantity=quantity),
        experiment,
        DATASETS,
    )


FIGURES = (
    _figure("fig6", "Function values of the four architectures", "architectures", "loss"),
    _figure("fig7", "Accuracies of the four architectures", "architectures", "accuracy"),
    _figure("fig13", "Function values of four Runge-Kutta methods", "runge_kutta", "loss"),
)
