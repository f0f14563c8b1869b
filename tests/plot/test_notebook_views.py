"""What a notebook shows: HTML that is well formed, says what it is about, and takes the colours of its page."""

from fractions import Fraction
from xml.etree import ElementTree

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

import ocdl
from ocdl.base import markup

X, Y = ocdl.datasets.make_donut1d(60, random_state=0)
NET = ocdl.Network(2, 7, tableau="kutta4", time_steps="simplex")
U = NET.init(random_state=0)
RESULT = ocdl.train(NET, U, X, Y, max_iter=20)
SHOWN = {
    "Network": NET,
    "feed-forward Network": ocdl.Network(2, 3, residual=False, augment=2),
    "deep Network": ocdl.Network(2, 1000, n_outputs=3),
    "Tableau": ocdl.Tableau.named("dormand_prince"),
    "Stability": NET.stability(U, X),
    "deep Stability": ocdl.Network(1, 100).stability(ocdl.Network(1, 100).init(0), [[1.0]]),
    "Certificate": NET.certify(U, X, Y),
}


def parsed(html: str) -> ElementTree.Element:
    return ElementTree.fromstring(f"<div>{html}</div>")


def texts(html: str) -> list[str]:
    return [text.strip() for text in parsed(html).itertext() if text.strip()]


@pytest.mark.parametrize("name", SHOWN)
def test_html_is_well_formed_and_short(name: str) -> None:
    html = SHOWN[name]._repr_html_()
    tree = parsed(html)
    assert len(html) < 30_000
    colours = {element.get(part) for element in tree.iter() for part in ("fill", "stroke")}
    assert colours <= {None, "none", "currentColor"}
    for picture in tree.iter("{http://www.w3.org/2000/svg}svg"):
        assert picture.get("role") == "img"
        assert picture.get("aria-label")


def test_network_html_shows_layers_over_time() -> None:
    html = NET._repr_html_()
    circles = list(parsed(html).iter("{http://www.w3.org/2000/svg}circle"))
    assert len(circles) == NET.n_layers + 1
    assert {"2 features", "1 output", "7 layers of kutta4", "simplex, horizon 1"} <= set(texts(html))


@pytest.mark.parametrize("name", ocdl.tableaux())
def test_a_tableau_is_written_as_its_numbers(name: str) -> None:
    tableau = ocdl.Tableau.named(name)
    rows = [[cell.text or "" for cell in row.iter("td")] for row in parsed(tableau._repr_html_()).iter("tr")]
    written = [[float(Fraction(cell.replace("\N{MINUS SIGN}", "-"))) if cell else 0.0 for cell in row] for row in rows]
    expected = np.block([[tableau.c[:, None], tableau.A], [np.zeros((1, 1)), tableau.b[None]]])
    np.testing.assert_allclose(written, expected, atol=1e-6)


def test_rational_coefficients_are_fractions() -> None:
    assert "1/6" in texts(ocdl.Tableau.named("kutta4")._repr_html_())
    assert "\N{MINUS SIGN}2187/6784" in texts(ocdl.Tableau.named("dormand_prince")._repr_html_())


def test_text_is_escaped() -> None:
    assert texts(markup.table(("<b>",), [("a & b",)])) == ["<b>", "a & b"]
    named = ocdl.Tableau([[0]], [1], name="<script>")
    assert "<script>" not in named._repr_html_()
    assert "<script>" not in ocdl.Network(2, 3, tableau=named)._repr_html_()


def test_plots_have_short_reprs() -> None:
    matplotlib.use("agg")
    model = NET, U
    drawn = [
        ocdl.plot.data(X, Y),
        ocdl.plot.prediction(model, X, Y),
        ocdl.plot.transformation(model, X, Y),
        ocdl.plot.snapshots(model, X, Y, layers=5),
        ocdl.plot.history(RESULT.history),
        ocdl.plot.time_steps(U),
        ocdl.plot.images(np.random.default_rng(0).random((20, 16))),
        ocdl.plot.certificate(SHOWN["Certificate"]),
        ocdl.plot.compare({"one": model, "two": model}, lambda model, ax: ocdl.plot.prediction(model, X, Y, ax=ax)),
    ]
    plt.close("all")
    for picture in drawn:
        assert len(repr(picture)) < 250


def test_numbers_in_tables_do_not_wrap() -> None:
    cells = list(parsed(markup.table(("a",), [("1.24e-05", "at most 1e-05", "-3", "12.5")])).iter("td"))
    assert [cell.get("style") for cell in cells] == ["white-space: nowrap", None, *["white-space: nowrap"] * 2]
