"""How long does a training take: Algorithm 2, many iterations of step, loss and gradient?"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import report
from agreement import TRAINING_TOLERANCE, deviation, reference
from bounds import Peak, measure_peak
from comparison import arguments, selection
from jobs import TRAINING_JOBS, Job, Training
from matplotlib.ticker import LogLocator, NullFormatter
from timing import Comparison, Field, interleave, start_workers

TITLE = "Training by Algorithm 2"


def measure(job: Job, field: Field) -> tuple[Comparison, dict[str, Training]]:
    """The timings of all contenders whose losses are right, and what each arrived at."""
    workers, left_out = start_workers("training", job, field)
    with ExitStack() as running:
        for worker in workers:
            running.enter_context(worker)
        labels = [worker.assignment.label for worker in workers]
        answers = [worker.result() for worker in workers]
        timings = interleave(workers, field.rounds)
    return Comparison(job, dict(zip(labels, timings, strict=True)), left_out), dict(zip(labels, answers, strict=True))


def training_row(results: Comparison, answers: dict[str, Training], expected: Training, peak: Peak) -> dict[str, Any]:
    """What a comparison of gradients says, its bounds times the evaluations, and where each contender arrived."""
    row = report.comparison_row("gradient", results, {results.job.dtype: peak})
    row["bounds"] = {name: expected.evaluations * seconds for name, seconds in row["bounds"].items()}
    row["bound"] *= expected.evaluations
    if "over_bound" in row:
        row["over_bound"] /= expected.evaluations
    row["evaluations"] = {label: int(answer.evaluations) for label, answer in answers.items()}
    row["last_loss"] = {label: float(answer.losses[-1]) for label, answer in answers.items()}
    row["deviation"] = {label: float(deviation(answer, expected).max()) for label, answer in answers.items()}
    return row


def print_training(row: dict[str, Any]) -> None:
    report.print_comparison(row)
    body = [
        (
            label,
            str(evaluations),
            report.milliseconds(row["seconds"][label] / evaluations),
            f"{row['last_loss'][label]:.6g}",
            f"{row['deviation'][label]:.0e}",
        )
        for label, evaluations in row["evaluations"].items()
    ]
    report.print_table(("contender", "evaluations", "per evaluation", "last loss", "largest deviation"), body)


def plot(row: dict[str, Any], expected: Training, answers: dict[str, Training]) -> None:
    """Seconds on the left; on the right how far the losses are from the reference, on two threads."""
    with plt.rc_context(report.STYLE):
        figure, (times, distances) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
        order = sorted(row["seconds"], key=row["seconds"].__getitem__)
        times.plot([row["seconds"][label] for label in order], order, "o", color=report.COLOURS[0])
        times.axvline(row["bound"], color="0.3", linewidth=1, linestyle="--", label="bound")
        times.set_xscale("log")
        times.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        times.xaxis.set_major_formatter("{x:g}")
        times.xaxis.set_minor_formatter(NullFormatter())
        times.invert_yaxis()
        times.set_xlabel(f"seconds for {len(expected.losses) - 1} iterations")
        times.legend(loc="upper right")
        times.set_title(f"{TITLE}, {row['job']}", loc="left")
        shown = [label for label in answers if not label.startswith("numpy") and not label.endswith("(1 thread)")]
        for label, colour in zip(shown, report.COLOURS, strict=False):
            distances.semilogy(
                np.maximum(deviation(answers[label], expected), 1e-17), color=colour, label=label, linewidth=1
            )
        distances.axhline(TRAINING_TOLERANCE, color="0.3", linewidth=1, linestyle="--", label="tolerance")
        distances.set_xlabel("iteration")
        distances.set_ylabel("relative deviation from NumPy's loss")
        distances.legend(loc="upper left", bbox_to_anchor=(1, 1))
        report.save_figure("training", figure)


def main() -> None:
    field, (job,) = selection(arguments(__doc__, TRAINING_JOBS))
    peak, expected = measure_peak(job.dtype, threads=2), reference("training", job)
    results, answers = measure(job, field)
    row = training_row(results, answers, expected, peak)
    print_training(row)
    report.save("training", {"gflops": {job.dtype: peak.gflops}, "jobs": [row]})
    plot(row, expected, answers)


if __name__ == "__main__":
    main()
