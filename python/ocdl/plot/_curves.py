"""Plot loss and accuracy over the iterations of one or several trainings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatterSciNotation, LogLocator
from numpy.typing import ArrayLike

from ocdl.base import validation as checks
from ocdl.base.validation import FloatArray
from ocdl.plot._axes import get_axes
from ocdl.plot._style import line_styles
from ocdl.training.history import History
from ocdl.training.result import Result, Status

Training = History | Result
Histories = Training | Mapping[str, Training] | Sequence[Training]
START = 0.5  # where iteration 0 is drawn on a logarithmic axis
WIDE = (5.6, 3.8)  # inches
MARKS = 8  # per curve, to distinguish curves in grey


class Curves(NamedTuple):
    """The artists of plotted trainings.

    Attributes
    ----------
    ax : Axes
    training : list of Line2D
        A solid line per training.
    validation : list of Line2D
        A dashed one per training with validation data.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import ocdl, ocdl.plot
    >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
    >>> net = ocdl.Network(2, 5)
    >>> r = ocdl.train(net, net.init(random_state=0), X, y, max_iter=10, validation=(X, y))
    >>> curves = ocdl.plot.history(r.history)
    >>> curves.ax.get_xlabel(), len(curves.training), len(curves.validation)
    ('iteration', 1, 1)
    """

    ax: Axes
    training: list[Line2D]
    validation: list[Line2D]

    def __repr__(self) -> str:
        return f"<Curves: {len(self.training)} of training, {len(self.validation)} of validation>"


def history(
    histories: Histories, *, evaluated_only: bool = False, legend: bool = True, ax: Axes | None = None
) -> Curves:
    """Draw the loss over the iterations on logarithmic axes: training solid, validation dashed.

    The start, iteration 0, stands left of iteration 1. A star marks the iterate that a training kept, where it ended
    because the validation loss did not become lower.

    Parameters
    ----------
    histories : Result, History, mapping of names to these, or sequence of these
        One training or several; those of a sequence are named by their numbers.
    evaluated_only : bool
        Whether to draw the training loss only at iterations with a validation loss.
    legend : bool
        Whether to add one.
    ax : Axes, optional
        Where to draw; none: on a new figure.

    Returns
    -------
    Curves
        Validation lines only for trainings with validation data.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of its kind, or what is given does not fit each other; the message names it.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import ocdl, ocdl.plot
    >>> X, y = ocdl.datasets.make_squares(100, random_state=0)
    >>> net = ocdl.Network(2, 5)
    >>> r = ocdl.train(net, net.init(random_state=0), X, y, max_iter=20, validation=(X, y))
    >>> curves = ocdl.plot.history({"ResNet": r})
    >>> len(curves.training), len(curves.validation)
    (1, 1)
    """
    by_name = _name_histories(histories)
    every = not checks.boolean(evaluated_only, "evaluated_only")
    courses = [(h.loss if every else h.loss[h.evaluated], h.val_loss) for h in by_name.values()]
    curves = _draw(histories, courses, legend, ax, every_iteration=every)
    curves.ax.set_yscale("log")
    curves.ax.set_ylabel("loss")
    return curves


def score(histories: Histories, *, legend: bool = True, ax: Axes | None = None) -> Curves:
    """Draw the score over the iterations, accuracy or R^2: training solid, validation dashed.

    Parameters
    ----------
    histories, legend, ax
        As for `history`. The iterations are on a logarithmic axis.

    Returns
    -------
    Curves

    Raises
    ------
    TypeError, ValueError
        If an argument is not of its kind, or what is given does not fit each other; the message names it.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np, ocdl, ocdl.plot
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> net = ocdl.Network(1, 5)
    >>> r = ocdl.train(net, net.init(random_state=0), X, X[:, 0] ** 2, objective=ocdl.Objective("squared_error"))
    >>> ocdl.plot.score(r.history).ax.get_ylabel()
    '$R^2$'
    """
    by_name = _name_histories(histories)
    courses = [(h.score, h.val_score) for h in by_name.values()]
    curves = _draw(histories, courses, legend, ax, every_iteration=False)
    kinds = {h.score_name for h in by_name.values()}
    name = kinds.pop() if len(kinds) == 1 else "score"
    curves.ax.set_ylabel("$R^2$" if name == "R^2" else name)
    return curves


def accuracy(histories: Histories, *, legend: bool = True, ax: Axes | None = None) -> Curves:
    """Draw the fraction of correctly classified samples over the iterations: training solid, validation dashed.

    Parameters
    ----------
    histories, legend, ax
        As for `history`. The iterations are on a logarithmic axis.

    Returns
    -------
    Curves

    Raises
    ------
    TypeError, ValueError
        If an argument is not of its kind, or what is given does not fit each other; the message names it.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import ocdl, ocdl.plot
    >>> X, y = ocdl.datasets.make_squares(100, random_state=0)
    >>> net = ocdl.Network(2, 5)
    >>> r = ocdl.train(net, net.init(random_state=0), X, y, max_iter=20, eval_every=5)
    >>> ocdl.plot.accuracy(r.history).ax.get_ylabel()
    'accuracy'
    """
    for one in _name_histories(histories).values():
        one.require_accuracy()
    return score(histories, legend=legend, ax=ax)


def _name_histories(histories: Histories) -> dict[str, History]:
    """Return the histories by name; the name of a single one is empty."""
    return {name: one.history if isinstance(one, Result) else one for name, one in _name_trainings(histories).items()}


def _name_trainings(histories: Histories) -> dict[str, Training]:
    accepted = "a Result, a History, a mapping of names to these or a sequence of these"
    if isinstance(histories, Training):
        return {"": histories}
    if isinstance(histories, Mapping):
        by_name = {str(name): one for name, one in histories.items()}
    elif isinstance(histories, Sequence) and not isinstance(histories, str):
        by_name = {str(i + 1): one for i, one in enumerate(histories)}
    else:
        raise TypeError(f"histories must be {accepted}, got {type(histories).__name__}")
    for name, one in by_name.items():
        if not isinstance(one, Training):
            raise TypeError(f"histories must be {accepted}, got {type(one).__name__} for {name!r}")
    if not by_name:
        raise ValueError(f"histories must be {accepted}, got an empty one")
    return by_name


def _draw(
    histories: Histories,
    courses: Sequence[tuple[FloatArray, FloatArray]],
    legend: bool,
    ax: Axes | None,
    *,
    every_iteration: bool,
) -> Curves:
    trainings, by_name = _name_trainings(histories), _name_histories(histories)
    legend = checks.boolean(legend, "legend")
    ax = get_axes(ax, WIDE, "constrained")
    training: list[Line2D] = []
    validation: list[Line2D] = []
    stars: list[Line2D] = []
    styles = line_styles(by_name)
    for i, ((name, one), (values, val_values)) in enumerate(zip(by_name.items(), courses, strict=True)):
        colour, marker = styles[i]["color"], styles[i]["marker"] if len(by_name) > 1 else ""
        iterations = np.arange(len(one)) if every_iteration else one.evaluated
        training.append(_draw_line(ax, iterations, values, "-", colour, marker, name or "training"))
        if np.isfinite(val_values).any():
            label = f"{name}, validation" if name else "validation"
            validation.append(_draw_line(ax, one.evaluated, val_values, "--", colour, "", label))
            if (kept := _find_kept(trainings[name])) is not None:
                stars += _draw_star(ax, one.evaluated[kept], val_values[kept])
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(_StartLocator())
    ax.xaxis.set_major_formatter(_IterationFormatter())
    ax.xaxis.set_minor_locator(_IterationLocator(subs="auto"))
    ax.xaxis.set_minor_formatter(_IterationFormatter())
    ax.set_xlabel("iteration")
    ax.grid(alpha=0.3)
    if legend:
        ax.legend(handles=[*_legend_handles(by_name, training, validation), *stars[:1]], frameon=False)
    return Curves(ax, training, validation)


class _IterationLocator(LogLocator):
    """Place ticks on a logarithmic axis at iterations from 1 on."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        ticks = np.asarray(super().tick_values(vmin, vmax))
        return ticks[ticks >= 1]


class _StartLocator(_IterationLocator):
    """Place ticks at iterations from 1 on and at iteration 0."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        return np.append(START, super().tick_values(vmin, vmax))


class _IterationFormatter(LogFormatterSciNotation):
    """Label ticks: 0 for the start, plain numbers below 10,000, powers of ten above."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        if x == START:
            return "0"
        usual = super().__call__(x, pos)
        return f"{x:g}" if usual and x < 10_000 else usual


def _find_kept(training: Training) -> int | None:
    """Return which evaluated iterate early stopping has returned: that of the lowest validation loss."""
    if not isinstance(training, Result) or training.status is not Status.EARLY_STOPPING:
        return None
    return int(np.nanargmin(training.history.val_loss))


def _draw_star(ax: Axes, iteration: float, value: float) -> list[Line2D]:
    return ax.plot(max(iteration, START), value, "*", color="black", markersize=11, zorder=5, label="kept")


def _draw_line(
    ax: Axes, iterations: ArrayLike, values: FloatArray, style: str, colour: str, marker: str, label: str
) -> Line2D:
    at = np.maximum(np.asarray(iterations, dtype=np.float64), START)
    spread = np.geomspace(START, max(START, at.max(initial=START)), MARKS)
    marks = np.unique(np.searchsorted(at, spread).clip(0, max(len(at) - 1, 0)))
    (line,) = ax.plot(
        at, values, style, color=colour, marker=marker, markevery=[int(i) for i in marks], markersize=5, label=label
    )
    return line


def _legend_handles(by_name: Mapping[str, History], training: list[Line2D], validation: list[Line2D]) -> list[Line2D]:
    """Return the handles of the legend: the trainings, and one solid and one dashed line."""
    if len(by_name) == 1 or not validation:
        return [*training, *validation]
    solid = Line2D([], [], color="0.3", linestyle="-", label="training")
    dashed = Line2D([], [], color="0.3", linestyle="--", label="validation")
    return [*training, solid, dashed]
