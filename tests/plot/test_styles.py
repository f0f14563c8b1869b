"""One thing looks the same in all pictures."""

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex
from plot_examples import make_figure, make_network, make_points

import ocdl
from ocdl import plot
from ocdl.plot._style import COLOURS, MARKERS, NUMBERS, OKABE_ITO, line_styles


def linear(colour: str) -> np.ndarray:
    value = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


# How linear RGB appears to readers without red, green and blue cones (Machado, Oliveira and Fernandes 2009).
VISION = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(colour: str, vision: str) -> np.ndarray:
    """Return CIE L*a*b* of a colour."""
    rgb = np.clip(np.asarray(VISION[vision]) @ linear(colour), 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ rgb
    f = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("colours", [OKABE_ITO, COLOURS[:8]], ids=["lines", "classes"])
def test_colours_differ_for_every_kind_of_vision(colours: tuple[str, ...], vision: str) -> None:
    """A difference of 2.3 is just noticeable."""
    seen = [lab(colour, vision) for colour in colours]
    closest = min(np.linalg.norm(a - b) for i, a in enumerate(seen) for b in seen[:i])
    assert closest > 4 * 2.3


@pytest.mark.parametrize("classes", [2, 3])
def test_a_class_has_its_style_for_any_number_of_classes(classes: int) -> None:
    X, y = make_points(2, classes)
    for scene in (plot.data(X, y), plot.prediction(make_network(2, classes), X, y, resolution=5)):
        drawn = [to_hex(points.get_facecolor()[0]) for points in scene.points]
        assert drawn == [plot.style(number)["color"] for number in range(classes)]


def test_an_architecture_has_its_colour_in_every_plot() -> None:
    X, y = make_points(2, 2)
    results = {}
    for name in ("odenet", "resnet"):
        net = ocdl.Network.preset(name, 2, 3)
        results[name] = ocdl.train(net, net.init(random_state=0), X, y, max_iter=2)
    courses = plot.history(results, ax=make_figure().add_subplot())
    steps = plot.time_steps({"ODENet": results["odenet"].controls}, ax=make_figure().add_subplot())
    assert [line.get_color() for line in courses.training] == [plot.style(name)["color"] for name in results]
    assert to_hex(steps.bars[0].patches[0].get_facecolor()) == plot.style("odenet")["color"]


def test_what_is_compared_has_different_styles() -> None:
    for group in (["net", "resnet", "odenet", "odenet+simplex"], ["Euler", "Improved Euler", "Kutta(3)", "Kutta(4)"]):
        assert len({style["color"] for style in line_styles(group)}) == len(group)
        assert len({style["marker"] for style in line_styles(group)}) == len(group)
    names = ["mine", "ResNet", "yours", "Euler"]
    assert len({style["color"] for style in line_styles(names[:3])}) == 3
    assert line_styles(names[:3])[1] == plot.style("resnet")
    assert len({style["color"] for style in line_styles(["resnet", "improved euler"])}) == 2
    assert len(line_styles(map(str, range(30)))) == 30


def test_every_named_style_is_one_of_the_palette() -> None:
    for name in NUMBERS:
        assert plot.style(name)["color"] in OKABE_ITO
        assert plot.style(name)["marker"] in MARKERS
    with pytest.raises(ValueError, match=r"name must be a class number or one of net, resnet, .* got 'tree'"):
        plot.style("tree")
    with pytest.raises(ValueError, match="name must be at least 0, got -1"):
        plot.style(-1)


def test_the_playground_has_the_colours_of_the_classes() -> None:
    palette = Path(__file__).parents[2] / "playground" / "src" / "palette.js"
    (colours,) = re.findall(r"export const COLOURS = \[(.*)\];", palette.read_text(encoding="utf-8"))
    assert colours.replace('"', "").split(", ") == list(COLOURS[:6])
