"""The site: it is built without a warning and without a network, no link leads nowhere, and people can use it.

Pages are tested in a browser if there is one.
"""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SITE = DOCS / "_build" / "html"
LONGEST = 800  # seconds of the build beside other tests; by itself it takes a tenth of that
LOOKED_AT = (
    "index.html",
    "getting_started.html",
    "glossary.html",
    "faq.html",
    "exercises.html",
    "tutorials/certificates.html",
    "tutorials/classification.html",
    "theory/adjoint.html",
    "reference/generated/ocdl.Network.html",
    "reference/generated/ocdl.train.html",
    "gallery/index.html",
    "gallery/first_classifier.html",
    "measured/how_fast.html",
    "paper_figures.html",
    "command_line.html",
)
NOTEBOOKS = ("classification", "certificates", "learned_steps")

pytestmark = [
    pytest.mark.extras,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def site() -> Path:
    """Build the site, once for all the processes of a test run."""
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    this_run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    mark = ROOT / "build" / "site"
    mark.parent.mkdir(exist_ok=True)
    with mark.open("a+") as shared:
        fcntl.flock(shared, fcntl.LOCK_EX)
        shared.seek(0)
        if shared.read() != this_run:
            build()
            shared.truncate(0)
            shared.write(this_run)
    return SITE


def build() -> None:
    """Build the site, as ``make docs`` does; a proxy that leads nowhere stands for the network."""
    for folder in ("_build", "gallery", "reference/generated"):
        shutil.rmtree(DOCS / folder, ignore_errors=True)
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-j", "2"]
    done = subprocess.run(
        [*command, "-d", str(DOCS / "_build" / "doctrees"), str(DOCS), str(SITE)],
        env=os.environ | nowhere | {"no_proxy": "127.0.0.1,localhost", "PATH": programs},
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr.lower(), done.stderr


class Page(HTMLParser):
    """The links, the pictures and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def test_no_link_leads_nowhere(site: Path) -> None:
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("[!_]*.html")}
    pages = {path: page for path, page in pages.items() if "_static" not in path.parts}
    assert len(pages) > 100
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            anchor = unquote(parts.fragment)
            if not target.exists():
                broken.append(f"{path.relative_to(site)}: {link}")
            elif anchor and target in pages and anchor not in pages[target].anchors | {"top"}:
                broken.append(f"{path.relative_to(site)}: {link} has no such anchor")
    assert broken == []


def test_a_page_leads_on_once(site: Path) -> None:
    pages = [path.read_text(encoding="utf-8") for path in (site / "index.html", *site.glob("tutorials/*.html"))]
    assert {page.count('class="prev-next-area"') for page in pages} == {1}


def test_indices_stand_beside_letters_with_accents(site: Path) -> None:
    page = (site / "theory" / "adjoint.html").read_text(encoding="utf-8")
    assert "<msub><mover><mi>a</mi>" in page
    assert "<munderover><mi>" not in page


def test_the_start_page_has_outputs_and_pictures_of_measurements(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    assert page.count('class="cell_output') >= 3
    assert re.search(r"largest error of a new swing: 0\.00", page)
    assert {"speed.png", "exactness.png"} <= {Path(link).name for link in Page(page).links}


def test_tutorials_can_be_downloaded(site: Path) -> None:
    for name in ("classification", "regression", "own_data", "learned_steps", "certificates", "custom_loss"):
        page = Page((site / "tutorials" / f"{name}.html").read_text(encoding="utf-8"))
        assert f"{name}.ipynb" in {Path(link).name for link in page.links}, name


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    fetched = re.compile(
        r"<(?:script|img|iframe)[^>]+src=\"(https?:)?//|<link[^>]+rel=\"stylesheet\"[^>]+href=\"https?:"
    )
    assert [path.name for path in site.rglob("*.html") if fetched.search(path.read_text(encoding="utf-8"))] == []


def test_every_public_name_has_a_page(site: Path) -> None:
    import ocdl

    public = [f"ocdl.{name}" for name in ocdl.__all__ if name not in ("datasets", "distributed", "losses", "plot")]
    public += [f"ocdl.datasets.{name}" for name in ocdl.datasets.__all__]
    public += [f"ocdl.plot.{name}" for name in ocdl.plot.__all__]
    pages = {path.stem for path in (site / "reference" / "generated").glob("*.html")}
    assert set(public) - pages == set()
    assert {"ocdl.torch.OCDLayer", "ocdl.jax.flow"} <= pages


def test_every_example_is_a_page_with_its_pictures(site: Path) -> None:
    from importlib.util import find_spec

    for script in (ROOT / "examples").glob("*.py"):
        page = (site / "gallery" / f"{script.stem}.html").read_text(encoding="utf-8")
        needed = re.findall(r"^import (torch|jax|onnxruntime|skl2onnx|mpi4py)\b", script.read_text(), re.MULTILINE)
        if all(map(find_spec, needed)):
            assert f"sphx_glr_{script.stem}_001" in page, script.name


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test-all")
    program = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if program is None:
        pytest.skip("there is no browser: install chromium")
    with driver.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("page", LOOKED_AT)
def test_people_can_read_it(page: str, width: int, scheme: str, address: str, browser: Any, tmp_path: Path) -> None:
    """Axe finds nothing, nothing is wider than the window, everything is there; OCDL_PICTURES keeps screenshots."""
    from axe_playwright_python.sync_playwright import Axe

    messages: list[str] = []
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab = context.new_page()
    tab.on("pageerror", lambda error: messages.append(str(error)))
    tab.on("response", lambda answer: messages.append(answer.url) if answer.status >= 400 else None)
    tab.on("requestfailed", lambda request: messages.append(request.url))
    tab.goto(f"{address}/{page}")
    tab.wait_for_timeout(300)  # what the page does when it has been loaded
    folder = os.environ.get("OCDL_PICTURES")
    tab.screenshot(path=Path(folder or tmp_path) / f"{page.replace('/', '_')}-{width}-{scheme}.png")
    boxes = "html, .bd-article-container, .prev-next-area a"
    wider = "(found) => Math.max(...found.map((box) => box.scrollWidth - box.clientWidth))"
    overflow = tab.eval_on_selector_all(boxes, wider)
    missing = list(messages)  # axe fetches style sheets once more, from where it thinks they are
    violations = [actual["id"] for actual in Axe().run(tab).response["violations"]]
    context.close()
    assert (missing, overflow, violations) == ([], 0, [])


def test_no_code_is_cut(site: Path, address: str, browser: Any) -> None:
    """No block of code on any page is wider than its place in a window of 1280 pixels."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    cut = "(blocks) => blocks.filter((block) => block.scrollWidth > block.clientWidth).map((block) => block.innerText)"
    found = []
    for path in sorted(site.rglob("*.html")):
        page = path.relative_to(site).as_posix()
        if not page.startswith("_") and page != "play.html":
            tab.goto(f"{address}/{page}")
            found += [f"{page}: {text}" for text in tab.eval_on_selector_all(".bd-article pre", cut)]
    tab.close()
    assert found == []


def test_search_finds_a_function(address: str, browser: Any) -> None:
    tab = browser.new_page()
    tab.goto(f"{address}/search.html?q=project_simplex")
    tab.wait_for_selector("#search-results li a[href*='ocdl.project_simplex']", timeout=30_000)
    tab.close()


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_tutorial_runs_as_a_notebook(name: str, tmp_path: Path) -> None:
    jupytext = pytest.importorskip("jupytext", reason="the extra docs is not installed")
    notebook = tmp_path / f"{name}.ipynb"
    jupytext.write(jupytext.read(DOCS / "tutorials" / f"{name}.md", fmt="md:myst"), notebook)
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--inplace", str(notebook)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert any("text/html" in output.get("data", {}) for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert all(output["output_type"] != "error" for output in outputs)
