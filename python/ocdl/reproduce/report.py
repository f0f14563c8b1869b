"""The page of a reproduction: verdicts on the claims, figures, settings and timings."""

from __future__ import annotations

from dataclasses import dataclass

from ocdl import page
from ocdl.base.names import pluralise
from ocdl.reproduce.figures import Figure
from ocdl.reproduce.runs import EXPERIMENTS, MNIST_K, MNIST_W, QUICK
from ocdl.reproduce.verdict import AT_LEAST, AT_MOST, FAILS, HOLDS, MIXED, NOT_EVALUATED, NOT_JUDGED, Verdict

TITLE = "Deep learning as optimal control problems, reproduced"
NAMES = {
    "architectures": "architectures",
    "fixed_classifier": "architectures, classifier fixed",
    "runge_kutta": "Runge-Kutta methods",
    "mnist100": "zeros and eights",
}
TONES = {HOLDS: "good", MIXED: "fair", FAILS: "bad", NOT_EVALUATED: "none", NOT_JUDGED: "none"}
STARTS = {
    "architectures": "K, W normal; b, mu = 0",
    "fixed_classifier": "K normal; b = 0; W = (10, 10), mu = 0 stay",
    "runge_kutta": "K, b, W normal; mu uniform on [0, 1]",
    "mnist100": f"K normal times {MNIST_K}, W normal times {MNIST_W}; b, mu = 0",
}


@dataclass(frozen=True)
class Drawn:
    """A drawn figure with the seconds of its training and drawing."""

    figure: Figure
    png: bytes
    training_seconds: float
    drawing_seconds: float


@dataclass(frozen=True)
class Setting:
    """The settings of a reproduction."""

    seeds: int
    quick: bool
    jobs: int
    seconds: float
    version: str
    remark: str = ""  # on omitted figures


def render_page(drawn: list[Drawn], verdicts: list[Verdict], setting: Setting) -> str:
    """Return the page as HTML."""
    lead = (
        "The figures of Benning, Celledoni, Ehrhardt, Owren and Schönlieb, Deep learning as optimal control problems: "
        f"models and numerical methods (2019), from {setting.seeds} random start{'s' if setting.seeds > 1 else ''} "
        "each."
    )
    if setting.quick:
        lead += f" This is a quick run, with a {QUICK}th of the iterations: it shows the figures and judges no claim."
    if setting.remark:
        lead += f" {setting.remark}"
    return page.document(
        TITLE,
        lead,
        [
            *([] if setting.quick else [_claims(verdicts)]),
            *(_figure(one) for one in drawn),
            _settings(setting),
            _timings(drawn, setting),
        ],
    )


def _claims(verdicts: list[Verdict]) -> page.Section:
    explanation = (
        f"Each claim is judged over all seeds and data sets: it holds when at least {AT_LEAST:.0%} of the cases are as "
        f"claimed, fails when at most {AT_MOST:.0%} are, and is mixed in between. claims.json has every case."
    )
    header = ("", "The paper's claim", "Verdict", "Cases", "What is measured", "Medians", "What to make of it")
    rows = [
        (
            str(v.claim.number),
            v.claim.claim,
            page.mark(v.word, TONES[v.word]),
            v.count,
            v.claim.measure,
            _numbers(v.medians),
            v.remark,
        )
        for v in verdicts
    ]
    otherwise = [
        (str(v.claim.number), case.where, _numbers(case.numbers))
        for v in verdicts
        for case in v.cases
        if not case.holds
    ]
    exceptions = page.details(
        f"Cases that are not as claimed: {len(otherwise)}",
        page.table(("", "Case", "Numbers"), otherwise, stacked=True),
    )
    return page.section("Claims", page.paragraph(explanation), page.table(header, rows, stacked=True), exceptions)


def _numbers(numbers: dict[str, float]) -> str:
    return "; ".join(f"{name} {value:.3g}" for name, value in numbers.items())


def _figure(drawn: Drawn) -> page.Section:
    name = label(drawn.figure.name)
    picture = page.figure(drawn.png, "image/png", alt=drawn.figure.title, caption=drawn.figure.caption)
    return page.section(f"{name}: {drawn.figure.title}", picture, anchor=drawn.figure.name)


def label(name: str) -> str:
    """Return the label of a figure: Fig. 2 for fig2."""
    return name.replace("fig", "Fig. ").replace("table", "Table ")


def _settings(setting: Setting) -> page.Section:
    rows = []
    for key, experiment in EXPERIMENTS.items():
        net = experiment.network(experiment.networks[-1], 2)
        divisor = QUICK if setting.quick else 1
        iterations = ", ".join(f"{name} {count // divisor}" for name, count in experiment.iterations.items())
        rows.append(
            (
                NAMES[key],
                ", ".join(experiment.networks),
                f"{net.n_layers}, T = {net.horizon:g}",
                STARTS[key],
                f"squared, {experiment.objective.reduction}",
                repr(experiment.optimiser),
                iterations,
            )
        )
    header = ("experiment", "networks", "layers", "start", "loss", "training", "iterations")
    note = (
        "The data sets are drawn once; a seed is a random start. The activation is tanh, and there are no penalties. "
        "The paper does not say how the networks for the images start: here K and W are scaled as in the table, so "
        "that neither the activations nor the classifier are saturated."
    )
    return page.section("Settings", page.table(header, rows, stacked=True), page.paragraph(note), anchor="settings")


def _timings(drawn: list[Drawn], setting: Setting) -> page.Section:
    rows = [(label(one.figure.name), f"{one.training_seconds:.1f}", f"{one.drawing_seconds:.1f}") for one in drawn]
    header = ("", "training its networks, s", "drawing, s")
    note = (
        f"Everything took {setting.seconds:.0f} s on the clock with {pluralise(setting.jobs, 'training')} in parallel; "
        "the seconds of training are those of one thread, and those of runs that several figures share are counted in "
        f"each of them. Finished runs are reused. ocdl {setting.version}."
    )
    return page.section("Timings", page.table(header, rows, numeric=(1, 2)), page.paragraph(note), anchor="timings")
