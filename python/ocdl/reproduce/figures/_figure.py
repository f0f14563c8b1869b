"""A figure of the paper: its runs, its drawing function and its numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure as Canvas

from ocdl.reproduce.results import Results
from ocdl.reproduce.runs import Run, list_runs


@dataclass(frozen=True)
class Table:
    """The numbers behind a figure."""

    header: Sequence[str]
    rows: Iterable[Sequence[object]]

    def csv(self) -> bytes:
        """Return the table as a CSV file; numbers are written so that reading them gives the same bits."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.header)
        writer.writerows(self.rows)
        return text.getvalue().encode()


@dataclass(frozen=True)
class Figure:
    """A figure of the paper, or its table."""

    name: str
    title: str
    caption: str
    draw: Callable[[Results, Canvas], None]
    table: Callable[[Results], Table]
    experiment: str | None = None
    datasets: tuple[str, ...] = ()
    least_seeds: int = 1

    def runs(self, seeds: int, quick: bool) -> list[Run]:
        """Return the trainings that the figure needs."""
        if self.experiment is None:
            return []
        return list_runs(self.experiment, self.datasets, max(seeds, self.least_seeds), quick)
