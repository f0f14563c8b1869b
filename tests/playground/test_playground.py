"""The playground in a browser: what it computes, what one can do in it, and what it says to bad input."""

from __future__ import annotations

import importlib.resources
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from subprocesses import run_python

import ocdl
from ocdl.cli.playground import BUILT_PAGE

pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("ignore::ResourceWarning")]
driver: Any = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test-all")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
if BROWSER is None:
    pytest.skip("there is no browser: install chromium", allow_module_level=True)
if not BUILT_PAGE.is_file():
    pytest.skip("the page is not built: make playground", allow_module_level=True)

# The policy of the page forbids to evaluate texts, so that waiting takes functions.
TRAINED = "least => window.playground?.frame?.iteration >= least && !playground.isPlaying"
ITERATIONS = 100


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with driver.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Open the page with a link; it may complain to nobody, ask nobody on the network, and open no dialog."""
    complaints: list[str] = []
    requests: list[str] = []
    contexts: list[Any] = []

    def open_page(
        link: str = "", width: int = 1280, *, dark: bool = False, script: str = "", waits: bool = True
    ) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", accept_downloads=True
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}") or dialog.dismiss())
        page.on("request", lambda request: requests.append(request.url))
        if script:
            page.add_init_script(script)
        page.goto(f"{BUILT_PAGE.as_uri()}{link}")
        if waits:
            page.wait_for_function("() => window.playground")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "blob:", "data:"))] == []


def wait_for_training(page: Any, iterations: int) -> None:
    page.wait_for_function(TRAINED, arg=iterations, timeout=60_000)


def controls(page: Any) -> list[float]:
    found: list[float] = page.evaluate("async () => [...(await playground.engine.ask('controls')).u]")
    return found


def picture(page: Any) -> str:
    page.wait_for_function("() => !playground.isStale && !playground.isAwaiting && !playground.isDirty")
    found: str = page.evaluate("() => document.getElementById('plane').toDataURL()")
    return found


def notice(page: Any) -> str:
    page.wait_for_selector("#notice:not([hidden])")
    text: str = page.inner_text("#notice p")
    return text


# ---- what it computes ----


def test_the_page_is_small_and_shows_a_picture_at_once(open_page: Open) -> None:
    assert BUILT_PAGE.stat().st_size < 1.5e6
    page = open_page()
    assert page.title() == "ocdl playground: networks as flows"
    assert len(picture(page)) > 10_000


def test_resnet_learns_the_spiral(open_page: Open) -> None:
    page = open_page()
    page.click("#play")
    page.wait_for_function("() => playground.frame?.now.score > 0.95 && playground.frame.now.testScore > 0.95")
    page.click("#play")
    assert page.inner_text("#play").endswith("Train")
    assert float(page.inner_text("#score").removesuffix(" %")) > 95
    assert "iterations=" in page.url


METHODS = {
    "Backtracking": [0.1, 1.5, 0.99, 200],
    "Adam": [0.05, 0.9, 0.999, 1e-8, 0, 0],
    "LBFGS": [20, 25],
    "NewtonCG": [0, 1.0, 0.5, 20, 25],
}
CASES = [
    {"tableau": "euler", "activation": "tanh", "field": "dense", "time_steps": "fixed"},
    {"tableau": "kutta4", "activation": "sin", "field": "hamiltonian", "time_steps": "free"},
    {"tableau": "gauss2", "activation": "sigmoid", "field": "antisymmetric", "time_steps": "simplex"},
]
PYTHON = """
import json, numpy as np, ocdl
X, y = ocdl.datasets.make_spiral(200, random_state=1)
net = ocdl.Network(2, 10, **{case})
u = net.init(random_state=0)
objective = ocdl.Objective("cross_entropy", penalties=ocdl.Tikhonov(1e-3))
result = ocdl.train(net, u, X, y, objective=objective, optimiser=ocdl.{method}(), max_iter={iterations})
parts = (X.ravel(), y, u.to_vector(), result.controls.to_vector())
print(json.dumps([result.n_iter, *(part.tolist() for part in parts)]))
"""
PAGE = """async ({ problem, iterations }) => {
  const samples = { X: Float64Array.from(problem.X), targets: Float64Array.from(problem.targets) };
  const none = { X: new Float64Array(), targets: new Float64Array() };
  await playground.engine.setUp({ ...problem, train: samples, test: none, start: Float64Array.from(problem.start) }, 0);
  for (let n = 0; n < iterations; n++) await playground.engine.ask("step");
  return [...(await playground.engine.ask("controls")).u];
}"""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["tableau"])
@pytest.mark.parametrize("method", METHODS)
def test_controls_have_the_bits_of_the_baseline_core(open_page: Open, method: str, case: dict[str, str]) -> None:
    code = PYTHON.format(case=case, method=method, iterations=ITERATIONS)
    made, X, y, start, trained = json.loads(run_python(code, OCDL_CORE="baseline"))
    net = {"features": 2, "augment": 0, "layers": 10, "outputs": 1, "residual": True, "horizon": 1}
    problem = {
        "net": net | {"timeSteps": case["time_steps"]} | {k: case[k] for k in ("tableau", "activation", "field")},
        "objective": {"loss": "cross_entropy", "penalties": {"tikhonov": 1e-3}},
        "method": {"name": method, "settings": METHODS[method]},
        **{"X": X, "targets": y, "start": start, "isCurve": False},
    }
    found = open_page().evaluate(PAGE, {"problem": problem, "iterations": made})
    assert found == trained


def test_the_certificate_holds(open_page: Open) -> None:
    page = open_page("#tableau=kutta4&iterations=20")
    wait_for_training(page, 20)
    page.click("#certify")
    page.wait_for_selector("#certificate table")
    assert page.locator("#certificate .holds").count() == 5
    assert page.locator("#certificate .fails").count() == 0


def test_a_chaotic_flow_is_not_judged(open_page: Open) -> None:
    page = open_page("#layers=10&field=hamiltonian&augment=6")
    page.wait_for_function("() => playground.frame")
    page.click("#certify")
    page.wait_for_selector("#certificate table")
    assert page.locator("#certificate .fails").count() == 0
    assert "not settled" in page.inner_text("#certificate")


WITH_A_WRONG_GRADIENT = """async () => {
  const text = (id) => document.getElementById(id).textContent;
  const source = text("worker").replace("gradient: gradient.copy()", "gradient: gradient.copy().map((g) => 1.001 * g)");
  const packed = Uint8Array.from(atob(text("core")), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = await new Response(unpacked).arrayBuffer();
  const { problem } = await playground.engine.ask("controls");
  const other = new playground.engine.constructor(source, () => {}, () => {});
  await other.ask("core", { bytes: new Uint8Array(bytes) });
  await other.setUp(problem, 0);
  return (await other.ask("certify")).map(({ passed }) => passed);
}"""


def test_a_gradient_that_is_wrong_by_a_thousandth_fails(open_page: Open) -> None:
    assert open_page().evaluate(WITH_A_WRONG_GRADIENT) == [False, True, False, True, True]


# ---- what one can do ----


SIMPLEX = (
    "#architecture=odenet%2Bsimplex&loss=squared&tikhonov=0&horizon=1&optimiser=Backtracking&seed=1&iterations=600"
)


def test_pruning_drops_layers_and_no_bit(open_page: Open) -> None:
    page = open_page(SIMPLEX)
    wait_for_training(page, 600)
    score = page.inner_text("#score")
    page.click("#prune")
    said = re.match(r"(\d+) of 20 layers dropped. The prediction is the same to the last bit", notice(page))
    assert said is not None
    assert page.evaluate("() => playground.state.chosen.layers") == 20 - int(said[1]) < 8
    page.wait_for_function("() => playground.frame")
    assert page.inner_text("#score") == score
    again = open_page(page.url.partition("html")[2])
    again.wait_for_function("() => playground.frame")
    assert controls(again) == controls(page)


def test_the_slider_moves_the_points(open_page: Open) -> None:
    page = open_page("#iterations=30")
    wait_for_training(page, 30)
    pictures = []
    for layer in (0, 10, 20):
        page.locator("#layer").fill(str(layer))
        pictures.append(picture(page))
    assert len(set(pictures)) == 3
    page.click("#flow")
    page.wait_for_function("() => playground.layer === 20 && !playground.flowStart", timeout=20_000)
    assert picture(page) == pictures[2]


def test_points_are_drawn_with_mouse_and_keyboard(open_page: Open) -> None:
    page = open_page("#data=own")
    assert page.inner_text("#plane-note").startswith("Draw points here")
    box = page.locator("#plane").bounding_box()
    page.mouse.click(box["x"] + 100, box["y"] + 100)
    page.locator("#brushes label").nth(1).click()
    page.mouse.move(box["x"] + 300, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 200, steps=10)
    page.mouse.up()
    page.focus("#plane")
    for key in ("3", "ArrowLeft", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    classes = page.evaluate("() => playground.state.points.map(({ target }) => target)")
    assert classes[0] == 0
    assert set(classes[1:-1]) == {1}
    assert classes[-1] == 2
    page.click("#play")
    page.wait_for_function("() => playground.frame?.now.score === 1", timeout=30_000)
    page.click("#undo")
    assert page.evaluate("() => playground.state.points.length") == len(classes) - 1
    page.click("#erase")
    page.click("#play")
    assert notice(page).startswith("There is nothing to learn yet")


@pytest.mark.parametrize("button", ["#save-model", "#save-script"])
def test_where_no_points_are_there_is_nothing_to_save(open_page: Open, button: str) -> None:
    page = open_page("#data=own")
    page.click(button)
    assert notice(page) == "That did not work: there is no network yet; draw some points, or load a CSV."


def test_removing_all_points_ends_the_training(open_page: Open) -> None:
    """At the highest speed it would otherwise go on in the worker, with nobody to see it."""
    page = open_page("#data=own&optimiser=Adam")
    box = page.locator("#plane").bounding_box()
    page.mouse.click(box["x"] + 100, box["y"] + 100)
    page.select_option("#speed", "Infinity")
    page.click("#play")
    page.wait_for_function("() => playground.frame?.iteration > 10")
    page.click("#erase")
    assert page.evaluate("() => playground.engine.ask('controls')") is None
    page.click("#certify")
    page.wait_for_function("() => document.getElementById('certificate').textContent === 'There is no network yet.'")


def test_a_training_ends_where_links_end(open_page: Open) -> None:
    page = open_page("#size=20&layers=1&optimiser=Adam&iterations=99990")
    wait_for_training(page, 99_990)
    page.click("#play")
    wait_for_training(page, 100_000)
    page.wait_for_function("() => document.getElementById('plane-note').textContent.includes('100000 iterations')")
    again = open_page(page.url.partition("html")[2])
    wait_for_training(again, 100_000)
    assert again.is_hidden("#notice")
    assert controls(again) == controls(page)


def test_the_keyboard_starts_and_steps(open_page: Open) -> None:
    page = open_page()
    page.keyboard.press("s")
    page.wait_for_function("() => playground.frame?.iteration === 1")
    page.keyboard.press(" ")
    page.wait_for_function("() => playground.frame?.iteration > 10")
    page.keyboard.press(" ")
    page.wait_for_function("() => !playground.isPlaying")
    page.keyboard.press("r")
    page.wait_for_function("() => playground.frame?.iteration === 0")
    page.focus("#step")
    page.keyboard.press("Enter")
    page.wait_for_function("() => playground.frame?.iteration === 1")


def test_a_curve_is_learned(open_page: Open) -> None:
    page = open_page("#task=regression&augment=1&iterations=200")
    wait_for_training(page, 200)
    assert page.inner_text("#score-name") == "R²"
    assert float(page.inner_text("#test-score")) > 0.95
    assert page.inner_text("#layer-value") == "20"


MADE_A_STEP = """() => playground.frame?.iteration === 1 ||
  document.getElementById("plane-note").textContent.startsWith("the numbers left the finite range")"""


def test_every_choice_can_be_made(open_page: Open) -> None:
    """Each value of each list gives a network that the core takes, and that learns or says why it does not."""
    page = open_page()
    for architecture in ("net", "odenet", "odenet+simplex", "resnet"):
        page.check(f"input[name=architecture][value='{architecture}']", force=True)
        page.click("#step")
        page.wait_for_function(MADE_A_STEP)
    for key in ("tableau", "activation", "optimiser"):
        for value in page.evaluate(
            f"() => [...document.getElementById('choice-{key}').options].map((one) => one.value)"
        ):
            page.select_option(f"#choice-{key}", value)
            page.click("#step")
            page.wait_for_function(MADE_A_STEP)
    assert page.is_hidden("#notice")


def test_a_custom_method(open_page: Open) -> None:
    page = open_page("#tableau=own")
    page.wait_for_function("() => document.getElementById('order')?.textContent.startsWith('Order 2, explicit')")
    page.fill("[aria-label='b 1']", "1/3")
    page.wait_for_function("() => document.getElementById('order').textContent.includes('b must sum to 1')")
    page.fill("[aria-label='b 1']", "nothing")
    page.wait_for_function("() => document.getElementById('order').textContent.includes('is no number')")
    page.fill("[aria-label='b 1']", "1/4")
    page.fill("[aria-label='b 2']", "3/4")
    page.wait_for_function("() => document.getElementById('order').textContent.startsWith('Order 1')")
    page.fill("[aria-label='a 2 1']", "2/3")
    page.wait_for_function("() => document.getElementById('order').textContent.startsWith('Order 2')")
    page.click("text=Add a stage")
    page.wait_for_function("() => document.getElementById('order').textContent.includes('3 stages')")
    page.click("#step")
    page.wait_for_function("() => playground.frame?.iteration === 1")


def test_a_method_that_is_typed_starts_anew(open_page: Open) -> None:
    page = open_page("#tableau=own&iterations=20")
    wait_for_training(page, 20)
    page.fill("[aria-label='b 1']", "1/4")
    page.fill("[aria-label='b 2']", "3/4")
    page.wait_for_function("() => playground.state.method.b[0] === 0.25 && playground.frame")
    assert page.evaluate("() => playground.frame.iteration") == 0


def folded(net: ocdl.Network, found: list[float], X: Any) -> float:
    """The share of points around which the flow turns the plane over: the sign of its Jacobian's determinant."""
    u, rows = net.from_vector(np.array(found)), np.array(X)
    J = np.stack([net.tangent(u, rows, dX=np.tile(one, (len(rows), 1)))[-1] for one in np.eye(2)], axis=-1)
    return float(np.mean(np.linalg.det(J) < 0))


def test_the_tour_explains_each_step(open_page: Open) -> None:
    """Six stops: Net fails, ResNet unrolls, ODENet folds, the simplex keeps three steps."""
    page = open_page()
    page.click("#tour-start")
    seen: dict[str, dict[str, Any]] = {}
    for number in range(6):
        title = page.inner_text("#tour-title")
        if number in (1, 2, 3, 4):
            page.wait_for_function("() => playground.frame?.iteration >= 1000", timeout=60_000)
            page.click("#play")
        page.wait_for_function("() => playground.frame")
        seen[title] = page.evaluate("() => ({ ...playground.frame.now, steps: playground.frame.steps })")
        seen[title]["u"] = controls(page)
        page.click("#tour-next")
    assert page.is_hidden("#tour")
    assert len(seen) == 6
    X = page.evaluate("() => playground.points.train.map(({ x, y }) => [x, y])")
    assert seen["Net fails"]["score"] < 0.7
    assert seen["ResNet unrolls"]["score"] > 0.95
    assert folded(ocdl.Network(2, 20), seen["ResNet unrolls"]["u"], X) == 0
    assert seen["ODENet folds"]["score"] > 0.95
    assert min(seen["ODENet folds"]["steps"]) < 0
    assert folded(ocdl.Network(2, 20, time_steps="free"), seen["ODENet folds"]["u"], X) > 0.1
    assert seen["The simplex keeps few steps"]["score"] > 0.95
    assert np.count_nonzero(seen["The simplex keeps few steps"]["steps"]) == 3


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
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert said["predictions"] == labels
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
    ("net", "said"),
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
    open_page: Open, tmp_path: Path, net: ocdl.Network, said: str
) -> None:
    ocdl.save(tmp_path / "model.ocdl", net, net.init(random_state=0))
    page = open_page()
    page.set_input_files("#model", tmp_path / "model.ocdl")
    assert said in notice(page)


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
    ("content", "said"),
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
def test_bad_tables_are_explained(open_page: Open, tmp_path: Path, content: str, said: str) -> None:
    table = tmp_path / "table.csv"
    table.write_text(content)
    page = open_page()
    before = controls(page)
    page.set_input_files("#csv", table)
    assert said in notice(page)
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
    ("link", "said"),
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
def test_bad_links_are_explained_and_run_nothing(open_page: Open, link: str, said: str) -> None:
    page = open_page(link)
    text = notice(page)
    assert text.startswith("This link is damaged: ")
    assert said in text
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


# ---- for everybody ----


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
    found = page.evaluate(
        "async () => (await axe.run()).violations.map(({ id, nodes }) => [id, nodes.map((n) => n.html)])"
    )
    assert found == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
