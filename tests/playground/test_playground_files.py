"""What the page reads and writes: links, models, tables, scripts and pictures."""

from __future__ import annotations

import importlib.resources
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from playground_page import Open, controls, driver, notice, picture, wait_for_training
from subprocesses import run_python

import ocdl

pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("ignore::ResourceWarning")]

# ---- what comes in and goes out ----


def test_a_link_gives_the_same_picture(open_page: Open) -> None:
    page = open_page("#data=squares&architecture=odenet&layers=8&layer=4.5&shown=heat.line.points.paths&iterations=40")
    wait_for_training(page, 40)
    page.click("#step")
    page.wait_for_function("() => playground.frame?.iteration === 41")
    page.click("#copy-link")
    link = page.url.partition("html")[2]
    assert "iterations=41" in link
    again = open_page(link)
    wait_for_training(again, 41)
    assert controls(again) == controls(page)
    assert picture(again) == picture(page)


def downloaded(page: Any, button: str, folder: Path) -> Path:
    with page.expect_download() as waiting:
        page.click(button)
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


CSV = "height,width,kind\n" + "".join(
    f"{170 + 10 * x + i % 3},{50 + 20 * x * x + i % 5},{'tall ü' if x > 0 else 'small'}\n"
    for i, x in enumerate(np.linspace(-1, 1, 40))
)


def test_a_model_is_read_by_ocdl_and_by_the_page(open_page: Open, tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    table.write_text(CSV, encoding="utf-8")
    page = open_page()
    page.set_input_files("#csv", table)
    assert "40 points of 2 classes, scaled" in notice(page)
    page.click("#play")
    page.wait_for_function("() => playground.frame?.now.score === 1")
    page.click("#play")
    path = downloaded(page, "#save-model", tmp_path)
    model = ocdl.load(path)
    labels = [line.split(",")[2] for line in CSV.splitlines()[1:]]
    command = [sys.executable, "-m", "ocdl", "predict", str(path), str(table), "--json"]
    message = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert message["predictions"] == labels
    assert model.estimator.controls_.to_vector().tolist() == controls(page)
    trained = controls(page)
    page.click("#reset")
    page.set_input_files("#model", path)
    page.wait_for_function("() => playground.state.start")
    assert controls(page) == trained
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    page.set_input_files("#model", path)
    assert "is damaged" in notice(page)
    for content in (b"", b"PK", b"\x08" + bytes(7) + b"<script>", json.dumps({}).encode() * 50):
        path.write_bytes(content)
        page.set_input_files("#model", path)
        assert "no model of ocdl" in notice(page)


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (ocdl.Network(3, 5), "more than two features"),
        (ocdl.Network(2, 5, dtype="float32"), "single precision"),
        (ocdl.Network(2, 60), "has 60 layers; this page shows up to 50"),
        (ocdl.Network(2, 5, n_outputs=3), "has 3 outputs, which does not fit the data"),
        (ocdl.Network(2, 5, horizon=100.0), "Horizon T must be a number from 0.5 to 20"),
        (ocdl.Network(2, 5, augment=10), "Extra dimensions must be a whole number from 0 to 6"),
    ],
    ids=str,
)
def test_models_that_the_page_cannot_show_are_explained(
    open_page: Open, tmp_path: Path, net: ocdl.Network, message: str
) -> None:
    ocdl.save(tmp_path / "model.ocdl", net, net.init(random_state=0))
    page = open_page()
    page.set_input_files("#model", tmp_path / "model.ocdl")
    assert message in notice(page)


def test_a_network_saved_in_python_opens(open_page: Open, tmp_path: Path) -> None:
    method = ocdl.Tableau([[0, 0], [0.75, 0]], [1 / 3, 2 / 3])
    net = ocdl.Network(2, 7, tableau=method, field="antisymmetric", time_steps="free", augment=1)
    u = net.init(random_state=0)
    ocdl.save(tmp_path / "model.ocdl", net, u)
    page = open_page()
    page.set_input_files("#model", tmp_path / "model.ocdl")
    page.wait_for_function("() => playground.state.start && playground.frame")
    assert controls(page) == u.to_vector().tolist()
    assert page.evaluate("() => playground.state.chosen.tableau") == "own"


def test_a_regression_model_is_read_by_ocdl(open_page: Open, tmp_path: Path) -> None:
    page = open_page("#task=regression&augment=1&iterations=100")
    wait_for_training(page, 100)
    model = ocdl.load(downloaded(page, "#save-model", tmp_path))
    x = np.linspace(-1, 1, 50)
    assert np.abs(model.predict(x[:, None]) - 0.8 * np.sin(1.5 * np.pi * x)).mean() < 0.1


def test_the_largest_state_can_be_opened_again(open_page: Open, tmp_path: Path) -> None:
    """A Hamiltonian field has as many positions as momenta: one extra dimension more or less than was chosen."""
    page = open_page("#task=regression&field=hamiltonian&augment=6")
    page.wait_for_function("() => playground.frame")
    path = downloaded(page, "#save-model", tmp_path)
    page.set_input_files("#model", path)
    page.wait_for_function("() => playground.state.start && playground.frame")
    assert page.is_hidden("#notice")


@pytest.mark.parametrize(
    "link",
    [
        "#architecture=odenet&optimiser=Adam&iterations=30",
        "#seed=7&optimiser=Adam&batch_size=32&iterations=30",
        "#task=regression&curveLoss=huber&l1=0.001&iterations=30",
    ],
)
def test_the_script_repeats_the_training(open_page: Open, tmp_path: Path, link: str) -> None:
    page = open_page(link)
    wait_for_training(page, 30)
    script = downloaded(page, "#save-script", tmp_path)
    code = f"import os, runpy; os.chdir({str(tmp_path)!r}); runpy.run_path({str(script)!r})"
    assert "after 30 iterations" in run_python(code, OCDL_CORE="baseline")
    assert ocdl.load(tmp_path / "playground.ocdl").controls.to_vector().tolist() == controls(page)


def test_a_picture_is_saved(open_page: Open, tmp_path: Path) -> None:
    page = open_page()
    picture(page)
    assert downloaded(page, "#save-picture", tmp_path).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "The file is empty"),
        ("x,y,label\n", "has a header but no rows"),
        ("0.1,0.2,a\n0.3,<img src=x onerror=alert(1)>,b\n", "Line 2 holds “<img src=x onerror=alert(1)>”"),
        ("0.1,0.2,a\nzwei,0.2,b\n", "Line 2 holds “zwei” where a number is expected"),
        ("0.1,0.2,0.3,a\n", "Line 1 has 4 columns; expected are three columns"),
        ("0.1,0.2\n0.3,0.4\n", "Line 1 has 2 columns"),
        ("0.1,0.2,a\n0.3,nan,b\n", "Line 2 holds “nan”"),
        ("0.1,0.2,a\n0.3,0.4,a\n", "All rows have the label “a”"),
        ("x,x,label\n0.1,0.2,a\n0.3,0.4,b\n", "Line 1 calls two columns “x”"),
        ("".join(f"{i},{i},{i}\n" for i in range(9)), "9 different labels"),
        ("0.5,0.5,a\n" * 2000, "The file has 2000 rows"),
        ("0.5,0.5,a\n" * 1_000_000, "The file has 10.0 MB"),
        ("\x00\x01\x02", "Line 1 has 1 column"),
    ],
)
def test_bad_tables_are_explained(open_page: Open, tmp_path: Path, content: str, message: str) -> None:
    table = tmp_path / "table.csv"
    table.write_text(content)
    page = open_page()
    before = controls(page)
    page.set_input_files("#csv", table)
    assert message in notice(page)
    assert controls(page) == before


def test_a_separator_between_quotes_is_a_letter(open_page: Open, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text('"x","y, in cm","kind"\n0.1,0.9,"red, or ""pink"""\n-0.8,-0.5,blue\n')
    page = open_page()
    page.set_input_files("#csv", table)
    assert "2 points of 2 classes" in notice(page)
    page.wait_for_function("() => playground.frame")
    model = ocdl.load(downloaded(page, "#save-model", tmp_path))
    assert set(model.classes_) == {'red, or "pink"', "blue"}
    assert model.feature_names == ["x", "y, in cm"]


def test_a_good_link_removes_the_error_of_a_bad_one(open_page: Open) -> None:
    page = open_page("#layers=1000")
    assert "damaged" in notice(page)
    page.evaluate("() => (location.hash = 'data=squares')")
    page.wait_for_function("() => playground.state.chosen.data === 'squares' && playground.frame")
    assert page.is_hidden("#notice")


WITHOUT_A_FRAME = """() => {
  const { engine } = playground;
  const look = engine.look.bind(engine);
  engine.look = (given) => look({ ...given, frame: null });
}"""


def test_a_failure_of_the_worker_is_reported(open_page: Open) -> None:
    page = open_page("#optimiser=Adam")
    page.click("#play")
    page.wait_for_function("() => playground.frame?.iteration > 0")
    page.evaluate(WITHOUT_A_FRAME)
    assert re.match(r"The training stopped: .*\. Reset starts it anew\.", notice(page))
    assert page.inner_text("#play").endswith("Train")
    page.evaluate("() => delete playground.engine.look")
    page.click("#reset")
    page.click("#step")
    page.wait_for_function("() => playground.frame?.iteration === 1")


HOSTILE = "<script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("#layers=1000", "Layers must be a whole number from 1 to 50"),
        ("#layers=2.5", "Layers must be a whole number"),
        ("#layers=5&layers=6", "occurs twice"),
        ("#data=mnist", "Data set must be one of"),
        ("#__proto__=1", "is nothing that can be chosen"),
        ("#constructor=1", "is nothing that can be chosen"),
        (f"#data={quote(HOSTILE)}", "Data set must be one of"),
        (f"#{quote(HOSTILE)}=1", "is nothing that can be chosen"),
        ("#noise=1e999", "Noise must be a number from 0 to 0.3"),
        ("#data=own&points=!!!", "characters that no link has"),
        ("#data=own&points=AAAA", "whole points"),
        ("#data=own&points=AAAAA", "it was cut off"),
        ("#data=own&points=AAAAAP8", "a class that does not exist"),
        ("#tableau=own&method=1_2_3", "are no method"),
        ("#tableau=own&method=0_0.5", "b must sum to 1"),
        ("#tableau=own&method=0_javascript:alert(1)", "is no coefficient"),
        ("#iterations=1e9", "iterations must be a whole number up to"),
        ("#start=AAAAAAAAAAA", "controls, but 1 are given"),
        ("#layer=99", "layer must be a number up to 50"),
        ("#shown=heat.heat", "shown must be some of"),
        ("#" + "x" * 300_000, "it is too long"),
    ],
)
def test_bad_links_are_explained_and_run_nothing(open_page: Open, link: str, message: str) -> None:
    page = open_page(link)
    text = notice(page)
    assert text.startswith("This link is damaged: ")
    assert message in text
    assert page.evaluate("() => window.hacked") is None
    page.wait_for_function("() => playground.frame")


def test_foreign_text_does_not_become_markup(open_page: Open, tmp_path: Path) -> None:
    """Labels of a table, too, go into the model and the script as texts."""
    table = tmp_path / "t.csv"
    table.write_text(f'x,y,label\n0.1,0.9,"{HOSTILE}"\n-0.8,-0.5,</script>\n')
    page = open_page()
    page.set_input_files("#csv", table)
    assert "2 points of 2 classes" in notice(page)
    page.click("#step")
    page.wait_for_function("() => playground.frame?.iteration === 1")
    assert page.evaluate("() => window.hacked") is None
    model = ocdl.load(downloaded(page, "#save-model", tmp_path))
    assert set(model.classes_) == {HOSTILE, "</script>"}


# ---- accessibility ----


def test_a_browser_without_simd_gets_an_explanation(open_page: Open) -> None:
    page = open_page(script="WebAssembly.validate = () => false", waits=False)
    assert "lacks WebAssembly SIMD" in notice(page)


AXE = importlib.resources.files("axe_playwright_python") / "axe.min.js" if driver else None


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(open_page: Open, width: int, dark: bool) -> None:
    assert AXE is not None
    page = open_page("#data=own&tableau=own", width, dark=dark)
    page.click("#tour-start")
    page.evaluate(AXE.read_text())
    for act in ("#tour-next", "#certify", "#penalties summary"):
        page.click(act)
    page.wait_for_selector("#certificate table")
    actual = page.evaluate(
        "async () => (await axe.run()).violations.map(({ id, nodes }) => [id, nodes.map((n) => n.html)])"
    )
    assert actual == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
