"""Tables and numbers from ``benchmarks/results``: no number of a page is typed.

The directive ``measured`` takes the name of a table; `numbers` are for the text, where a page says ``{{ name }}``.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
SHARE_OF_TIME = "fit time / MLP's"

Rows = list[Sequence[str]]


def stored(name: str) -> Any:
    """Return what a benchmark has written."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def duration(seconds: float) -> str:
    """Return a time with its unit, to three digits."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def jobs(*names: str) -> Rows:
    """Return ocdl beside the fastest other library, job by job."""
    rows: Rows = [("job", "what", "ocdl", "fastest other library", "its time", "ratio")]
    for name in names:
        for job in stored(name)["jobs"]:
            peer = job["best_peer_any_threads"]
            seconds = job["seconds"]
            own = min(seconds["ocdl"], seconds.get("ocdl (1 thread)", seconds["ocdl"]))
            theirs = duration(seconds[peer["name"]])
            rows.append((job["job"], job["summary"], duration(own), peer["name"], theirs, f"{peer['ratio']:.1f}"))
    return rows


def gradients() -> Rows:
    """Return the table of gradients, of a training and of predictions."""
    return jobs("gradient", "training", "prediction")


def growth() -> Rows:
    """Return the exponents with which the time of a gradient grows."""
    words = {"m": "samples", "N": "layers", "d": "width of the state", "s": "stages of the method"}
    rows: Rows = [("in", "from", "to", "exponent")]
    for sweep in stored("growth")["sweeps"]:
        low, high = sweep["values"][0], sweep["values"][-1]
        rows.append((words[sweep["quantity"]], f"{low:,}", f"{high:,}", f"{sweep['slopes']['ocdl']:.2f}"))
    return rows


def memory() -> Rows:
    """Return the memory that a gradient takes beyond its data."""
    rows: Rows = [("samples", "memory beyond the data")]
    for entry in stored("memory")["entries"]:
        if entry["contender"] == "ocdl":
            rows.append((f"{entry['m']:,}", f"{entry['bytes'] / 1e6:.1f} MB"))
    return rows


def interop() -> Rows:
    """Return a flow inside PyTorch beside the same network written in PyTorch."""
    rows: Rows = [("job", "what", "OCDLayer", "written in PyTorch", "times as fast")]
    for row in stored("interop")["rows"]:
        own, theirs = row["seconds"]["OCDLayer"], row["seconds"]["written in torch"]
        rows.append((row["job"], row["summary"], duration(own), duration(theirs), f"{row['times_as_fast']:.1f}"))
    return rows


def bridges() -> Rows:
    """Return what the ways from PyTorch and JAX to the core and back take, forward and backward."""
    rows: Rows = [("job", "predict and vjp", "OCDLayer (times the core)", "flow of JAX (times the core)")]
    for row in stored("interop")["rows"]:
        seconds, ratios = row["seconds"], row["times_the_core"]
        taken = [f"{duration(seconds[name])} ({ratio:.1f})" for name, ratio in ratios.items()]
        rows.append((row["job"], duration(seconds["predict and vjp"]), *taken))
    return rows


def optimisers() -> Rows:
    """Return how many evaluations a chain needs for the loss that Algorithm 2 ends with."""
    rows: Rows = [("data", "evaluations of Algorithm 2", "of the chain", "median ratio")]
    result = stored("optimisers")["rows"]
    for data in dict.fromkeys(row["data"] for row in result):
        own = [row for row in result if row["data"] == data]
        chain = [row["chain"] for row in own]
        ratios = [row["algorithm 2"] / row["chain"] if row["chain"] else 0.0 for row in own]
        there = sorted(count for count in chain if count)
        missing = f"; {len(chain) - len(there)} of {len(chain)} starts never" if len(there) < len(chain) else ""
        rows.append(
            (
                data,
                _range([row["algorithm 2"] for row in own]),
                _range(there) + missing,
                f"{statistics.median(ratios):.0f}",
            )
        )
    return rows


def evaluations() -> Rows:
    """Return how many evaluations each method needs for a loss, in the median over the starts."""
    results = stored("second_order")
    methods = {
        "algorithm 2": "Algorithm 2",
        "adam": "Adam",
        "adam, l-bfgs": "Adam, L-BFGS",
        "newton": "Newton",
        "newton, l-bfgs": "Newton, L-BFGS",
        "multilevel": "multilevel",
    }
    rows: Rows = [("data", "loss", *methods.values())]
    for data in dict.fromkeys(row["data"] for row in results["rows"]):
        starts = [row["reached"] for row in results["rows"] if row["data"] == data]
        for place, loss in enumerate(results["losses"]):
            counts = [[start[method][place] or math.inf for start in starts] for method in methods]
            medians = [statistics.median(count) for count in counts]
            if min(medians) < math.inf:
                rows.append((data, f"{loss:g}", *(f"{m:,.0f}" if m < math.inf else "never" for m in medians)))
    return rows


def pruning() -> Rows:
    """Return how much faster predictions are without the layers whose step is 0."""
    rows: Rows = [("start", "points", "layers", "left", "times as fast")]
    rows += [
        (str(row["seed"]), f"{row['samples']:,}", str(row["layers"]), str(row["kept"]), f"{row['ratio']:.1f}")
        for row in stored("pruning")["rows"]
    ]
    return rows


def hessian() -> Rows:
    """Return the cost of a product with the Hessian."""
    rows: Rows = [("width of the state", "method", "gradient", "product", "ratio")]
    for cost in stored("second_order")["costs"]:
        ratio = cost["product"] / cost["gradient"]
        times = duration(cost["gradient"]), duration(cost["product"])
        rows.append((str(cost["dim"]), cost["tableau"], *times, f"{ratio:.1f}"))
    return rows


def reproduction() -> Rows:
    """Return how long the paper's trainings take, and in plain NumPy."""
    words = {
        "architectures": "architectures",
        "fixed_classifier": "architectures, classifier fixed",
        "runge_kutta": "Runge-Kutta methods",
        "all": "all in the plane",
    }
    rows: Rows = [("experiment, one start", "ocdl, one thread", "NumPy", "ratio")]
    for name, total in stored("reproduction")["totals"].items():
        rows.append((words[name], f"{total['ocdl']:.0f} s", f"{total['NumPy']:.0f} s", f"{total['ratio']:.1f}"))
    return rows


def classifiers() -> Rows:
    """Return the classifiers on the tables that nothing was chosen on."""
    return _estimators("judged", (("accuracy", 4), ("log loss", 4), ("calibration error", 4), (SHARE_OF_TIME, 2)))


def regressors() -> Rows:
    """Return the regressors on the tables that nothing was chosen on."""
    return _estimators("regression", (("R^2", 4), ("R^2, median", 4), (SHARE_OF_TIME, 2)))


def machine() -> Rows:
    """Return where the times were taken."""
    facts = stored("gradient")["machine"]
    rows: Rows = [("machine", "what it is")]
    rows += [
        ("processor", f"{facts['processor']}, {facts['cores']} cores, {', '.join(facts['instruction_sets'])}"),
        ("memory", f"{facts['memory_gb']} GB"),
        ("libraries", ", ".join(f"{name} {number}" for name, number in facts["versions"].items() if name != "ocdl")),
    ]
    return rows


TABLES: dict[str, Callable[[], Rows]] = {
    table.__name__: table
    for table in (
        gradients,
        growth,
        memory,
        interop,
        bridges,
        optimisers,
        evaluations,
        pruning,
        hessian,
        reproduction,
        classifiers,
        regressors,
        machine,
    )
}


def numbers() -> dict[str, str]:
    """Return the numbers that a text may name."""
    layer = {row["job"]: f"{row['times_as_fast']:.1f}" for row in stored("interop")["rows"]}
    timed = {name for job in stored("gradient")["jobs"] for name in job["seconds"] if "thread" not in name}
    *others, last = sorted(timed - {"ocdl", "before"})
    return {
        "peers": f"{', '.join(others)} and {last}" if others else last,
        "layer_euler": layer["J1"],
        "layer_kutta4": layer["J2"],
        "reproduction_ratio": f"{stored('reproduction')['totals']['all']['ratio']:.0f}",
    }


def _estimators(group: str, columns: tuple[tuple[str, int], ...]) -> Rows:
    summary = stored("estimator")["summary"][group]
    rows: Rows = [("estimator", *(name for name, _ in columns))]
    rows += [(name, *(f"{facts[key]:.{digits}f}" for key, digits in columns)) for name, facts in summary.items()]
    return rows


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


class Measured(SphinxDirective):
    """A table of `TABLES`; columns of numbers are flush right."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        header, *rows = TABLES[self.arguments[0]]()
        classes = [["number"] if all(map(_is_number, column)) else [] for column in zip(*rows, strict=True)]

        def row(texts: Sequence[str]) -> nodes.row:
            cells = zip(texts, classes, strict=True)
            return nodes.row("", *(nodes.entry("", nodes.paragraph("", text), classes=kind) for text, kind in cells))

        group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in header), cols=len(header))
        group += nodes.thead("", row(header))
        group += nodes.tbody("", *map(row, rows))
        return [nodes.table("", group, classes=["measured"])]


def _is_number(text: str) -> bool:
    return text[:1].isdigit() or text[:1] == "-" or text == "never"


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx of the directive."""
    app.add_directive("measured", Measured)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
