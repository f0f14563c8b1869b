"""The playground in a browser: what it computes, what one can do in it, and what it says to bad input."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from playground_page import Open, controls, notice, picture, wait_for_training
from subprocesses import run_python

import ocdl
from ocdl.cli.playground import BUILT_PAGE

pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("ignore::ResourceWarning")]

ITERATIONS = 100


# ---- what it computes ----


def test_the_page_is_small_and_shows_a_picture_at_once(open_page: Open) -> None:
    assert BUILT_PAGE.stat().st_size <= 0.8e6
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
    n_iter, X, y, start, trained = json.loads(run_python(code, OCDL_CORE="baseline"))
    net = {"features": 2, "augment": 0, "layers": 10, "outputs": 1, "residual": True, "horizon": 1}
    problem = {
        "net": net | {"timeSteps": case["time_steps"]} | {k: case[k] for k in ("tableau", "activation", "field")},
        "objective": {"loss": "cross_entropy", "penalties": {"tikhonov": 1e-3}},
        "method": {"name": method, "settings": METHODS[method]},
        **{"X": X, "targets": y, "start": start, "isCurve": False},
    }
    actual = open_page().evaluate(PAGE, {"problem": problem, "iterations": n_iter})
    assert actual == trained


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
    message = re.match(r"(\d+) of 20 layers dropped. The prediction is the same to the last bit", notice(page))
    assert message is not None
    assert page.evaluate("() => playground.state.chosen.layers") == 20 - int(message[1]) < 8
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
    """At the highest speed it would otherwise continue in the worker, unseen."""
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


def folded(net: ocdl.Network, actual: list[float], X: Any) -> float:
    """The share of points around which the flow turns the plane over: the sign of its Jacobian's determinant."""
    u, rows = net.from_vector(np.array(actual)), np.array(X)
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
