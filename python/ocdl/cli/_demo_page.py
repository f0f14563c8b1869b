"""The page of ``ocdl demo``: what four networks have learned, in pictures."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image, ImageSequence

import ocdl
from ocdl import page, plot
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.network import Network
from ocdl.training.result import Result

PANEL, WIDE = (2.7, 2.7), (5.8, 3.7)  # inches; small, so that letters are readable on a phone
PIXELS_PER_INCH = 180
FILM = "resnet"  # whose flow is shown: with equal steps every layer moves the points a little
FRAMES_A_SECOND, FILM_WIDTH = 12, 520
SPARSE = "odenet+simplex"
STEP = page.Html("<code>y + h tanh(K y + b)</code>")
NETWORKS = (
    ("net", "none: a feed-forward network", page.Html("<code>tanh(K y + b)</code>")),
    ("resnet", "equal", STEP),
    ("odenet", "learned, of either sign", STEP),
    ("odenet+simplex", "learned, at least 0, with sum 1", STEP),
)


@dataclass(frozen=True)
class Demo:
    """The networks and their trainings by name, and the data."""

    networks: dict[str, Network]
    results: dict[str, Result]
    data: tuple[FloatArray, LabelArray]
    test: tuple[FloatArray, LabelArray]
    seed: int
    iterations: int

    @property
    def models(self) -> dict[str, tuple[Network, Any]]:
        return {name: (net, self.results[name].controls) for name, net in self.networks.items()}


def demo_page(demo: Demo, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return the page, which begins with a table of the results."""
    layers = next(iter(demo.networks.values())).n_layers
    return page.document(
        "Four networks learn two spirals",
        f"Deep learning as optimal control: each network has {layers} layers, and its weights are the controls of a "
        "system that moves the points of two spirals until a straight line divides them.",
        [
            page.section(
                "Results",
                page.table(header, rows, numeric=range(1, len(header))),
                page.paragraph(
                    f"After {demo.iterations:,} iterations of gradient descent with backtracking, on "
                    f"{len(demo.data[1]):,} points; tested on as many others. Steps used are the layers whose time "
                    "step is not 0: one with step 0 does nothing and can be removed."
                ),
            ),
            page.section(
                "The networks", page.table(("name", "time steps h", "a layer takes y to"), NETWORKS, stacked=True)
            ),
            page.section("The data", _data(demo)),
            page.section(
                "What they predict",
                page.paragraph(
                    "The plane in the colours of the classes, the paler the less sure the network is, with the "
                    "points that it was tested on."
                ),
                _panels(demo, "prediction", plot.prediction),
            ),
            page.section(
                "What they do to the points",
                page.paragraph(
                    "The same points after the last layer. A straight line has to divide them there: that is all that "
                    "the classifier at the end of a network can do."
                ),
                _panels(demo, "points after the last layer", plot.transformation),
            ),
            page.section("The flow", _film(demo)),
            page.section("The training", _training(demo)),
            page.section("The time steps", _time_steps(demo)),
            page.section("How it was made", _settings(demo, layers)),
        ],
    )


def _data(demo: Demo) -> page.Html:
    figures = []
    for samples, purpose in ((demo.data, "to learn from"), (demo.test, "to be tested on")):
        image = _png(PANEL, partial(plot.data, *samples, legend=False))
        caption = f"{len(samples[1]):,} points {purpose}"
        figures.append(page.figure(image, "image/png", alt=f"Two noisy spirals: {caption}", caption=caption))
    return page.gallery(*figures)


def _panels(demo: Demo, what: str, draw: Callable[..., Any]) -> page.Html:
    """Return the same picture of every network."""
    figures = []
    for name, model in demo.models.items():
        image = _png(PANEL, partial(draw, model, *demo.test, legend=False))
        accuracy = f"test accuracy {demo.results[name].history.val_accuracy[-1]:.3f}"
        figures.append(page.figure(image, "image/png", alt=f"{name}: {what}, {accuracy}", caption=name))
    return page.gallery(*figures)


def _film(demo: Demo) -> page.Html:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flow.gif"
        plot.animate(demo.models[FILM], *demo.test, path=path, frames_per_layer=2, fps=FRAMES_A_SECOND)
        image, frames, (width, height) = _strip(path)
    return page.film(
        image,
        "image/png",
        frames=frames,
        seconds=frames / FRAMES_A_SECOND,
        size=(FILM_WIDTH, round(FILM_WIDTH * height / width)),
        alt=f"Animation: the layers of {FILM} unwind the spirals and move each class to its side of a line",
        caption=f"The points on their way through the layers of {FILM}.",
    )


def _strip(path: Path) -> tuple[bytes, int, tuple[int, int]]:
    """Return the frames of a GIF below each other as a PNG, which a page can pause; how many, and the size of one."""
    with Image.open(path) as film:
        frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(film)]
    width, height = frames[0].size
    strip = Image.new("RGB", (width, height * len(frames)))
    for number, frame in enumerate(frames):
        strip.paste(frame, (0, number * height))
    file = BytesIO()
    strip.quantize(dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
    return file.getvalue(), len(frames), (width, height)


def _training(demo: Demo) -> page.Html:
    histories = {name: result.history for name, result in demo.results.items()}
    return page.figure(
        _png(WIDE, partial(plot.history, histories)),
        "image/png",
        alt="Curves of the loss over the iterations for each network, on logarithmic axes",
        caption="The loss over the iterations; validation is on the points to be tested on.",
        width=640,
    )


def _time_steps(demo: Demo) -> page.Html:
    steps = {name: demo.results[name].controls for name, net in demo.networks.items() if net.residual}
    sparse = steps[SPARSE].h
    used = np.count_nonzero(sparse)
    return page.figure(
        _png(WIDE, partial(plot.time_steps, steps)),
        "image/png",
        alt="Bars of the time step of each layer for each network that has time steps",
        caption=f"{SPARSE} uses {used} of its {len(sparse)} steps; the others are exactly 0.",
        width=640,
    )


def _settings(demo: Demo, layers: int) -> page.Html:
    method = ocdl.Backtracking()
    build = ocdl.build_info()
    rows = [
        ("networks", f"{layers} layers in the plane, tanh, Euler's method, horizon 1"),
        ("start", "weights and classifier drawn from the normal distribution, biases 0, equal time steps"),
        ("loss", "half the mean square of the difference between probability and label"),
        ("training", f"Algorithm 2 with L0 = {method.L0}, factors {method.rho_up} and {method.rho_down}, "
         f"at most {method.max_trials} trials; {demo.iterations:,} iterations"),
        ("seed", str(demo.seed)),
        ("software", f"ocdl {ocdl.__version__}, core {build['variant']}"),
    ]  # fmt: skip
    return page.table(("what", "value"), rows, stacked=True)


def _png(size: tuple[float, float], draw: Callable[..., Any]) -> bytes:
    figure = Figure(figsize=size, layout="constrained")
    draw(ax=figure.add_subplot())
    file = BytesIO()
    figure.savefig(file, format="png", dpi=PIXELS_PER_INCH)
    return file.getvalue()
