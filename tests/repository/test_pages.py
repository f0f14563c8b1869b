"""The pages of the site: each is in the tree of contents, and every example on them runs."""

import doctest
import json
import re
import types
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MADE = ("_build", "gallery", "reference/generated")  # by a build of the site
PAGES = sorted(page for page in DOCS.rglob("*.md") if not page.relative_to(DOCS).as_posix().startswith(MADE))
CELL, SESSION = "{code-cell} ipython3", "{code-block} pycon"
FENCE = re.compile(r"^```(python|\{code-cell\} ipython3|\{code-block\} pycon)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OPTIONS = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)  # of a cell
OF_EXTRAS = re.compile(
    r"^(?:import|from) (torch|torchdiffeq|jax|optax|diffrax|pysindy|onnxruntime|skl2onnx|mpi4py|pyarrow)\b", re.M
)


def name(page: Path) -> str:
    return page.relative_to(DOCS).with_suffix("").as_posix()


def blocks(page: Path, kind: str) -> list[str]:
    actual = FENCE.findall(page.read_text(encoding="utf-8"))
    return [OPTIONS.sub("", code) for fence, code in actual if kind == fence]


def toctree(page: Path) -> list[str]:
    """Return the pages that a page lists, by their names."""
    listed = []
    for tree in re.findall(r"^```\{toctree\}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        lines = [line.strip() for line in tree.splitlines() if line.strip() and not line.startswith(":")]
        entries = [re.sub(r".*<(.*)>", r"\1", line) for line in lines]
        listed += [(page.parent / entry).relative_to(DOCS).as_posix() for entry in entries]
    return listed


def test_every_page_is_in_the_tree() -> None:
    listed = [entry for page in PAGES for entry in toctree(page)]
    assert sorted(listed) == sorted({*map(name, PAGES), "gallery/index"} - {"index"})


def test_every_public_name_is_in_the_reference() -> None:
    import ocdl

    text = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    rooms = (ocdl, ocdl.datasets, ocdl.distributed, ocdl.losses, ocdl.plot)
    modules = {module.__name__: module for module in rooms}
    listed: dict[str, set[str]] = {}
    current = ""
    for line in text.splitlines():
        if actual := re.match(r"\.\. (?:current)?module:: (\S+)", line):
            current = actual.group(1)
        elif actual := re.match(r"   (\w+)$", line):
            listed.setdefault(current, set()).add(actual.group(1))
    for module_name, module in modules.items():
        public = getattr(module, "__all__", None) or [name for name in dir(module) if name[0].isupper()]
        expected = {name for name in public if not isinstance(getattr(module, name), types.ModuleType)}
        assert expected == listed[module_name], module_name


def test_every_equation_of_the_paper_stands_once() -> None:
    """Equations (1) to (41) of the paper, those with parts by their parts; (42) and (43) are the appendix."""
    actual = [
        number
        for page in PAGES
        for number in re.findall(r"^:::\{equation\} (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    parts = {16: "abc", 17: "abc", 24: "ab", 41: "abc"}
    expected = [f"{number}{part}" for number in range(1, 42) for part in parts.get(number, [""])]
    assert sorted(actual) == sorted(expected)


def test_every_figure_of_the_paper_is_stored() -> None:
    from ocdl.reproduce import FIGURES

    assert {picture.stem for picture in (DOCS / "paper").glob("*.png")} == set(FIGURES)
    claims = json.loads((DOCS / "paper" / "claims.json").read_text(encoding="utf-8"))["claims"]
    assert [claim["number"] for claim in claims] == list(range(1, 12))
    assert all(claim["verdict"] in ("holds", "mixed", "fails") for claim in claims)


def test_claims_are_counted_alike_wherever_they_are_told() -> None:
    """The file of the site and the table of the comparison, over the same random starts."""
    claims = json.loads((DOCS / "paper" / "claims.json").read_text(encoding="utf-8"))["claims"]
    text = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+)\. [^|]+\| (\w+) \| (\d+) of (\d+) \|", text, re.MULTILINE)
    reported = [(int(number), int(holds), int(cases), verdict) for number, verdict, holds, cases in rows]
    counted = [(c["number"], sum(case["holds"] for case in c["cases"]), len(c["cases"]), c["verdict"]) for c in claims]
    assert reported == counted
    assert [claim["holds_in"] for claim in claims] == [holds for _, holds, _, _ in counted]
    seeds = re.search(r"--seeds (\d+)", text)
    assert seeds
    assert {claim["seeds"] for claim in claims} == {int(seeds.group(1))}


def test_ocdl_is_installed_from_an_index_once_it_is_released() -> None:
    """Until then the pages say how to install a clone, and promise no package of that name."""
    versions = re.findall(r"^## \[\S+\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    is_released = set(versions) != {"unreleased"}
    readme, start = ROOT / "README.md", DOCS / "getting_started.md"
    for page in (readme, start):
        lines = [line.strip() for line in page.read_text(encoding="utf-8").splitlines()]
        assert ("pip install ocdl" in lines) == is_released, page.name
        assert ("pip install ." in lines) != is_released, page.name
    command = re.compile(r"^    pip install '?ocdl", re.MULTILINE)
    output = [page.name for page in (readme, *PAGES) if command.search(page.read_text(encoding="utf-8"))]
    assert bool(output) == is_released


def test_every_example_script_is_a_page_of_the_gallery() -> None:
    for script in (ROOT / "examples").glob("*.py"):
        title = re.match(r'"""\n(.+)\n(=+)\n\n', script.read_text(encoding="utf-8"))
        assert title, f"{script.name} does not begin with a title, underlined"
        assert len(title.group(1)) == len(title.group(2)), script.name


CODE = re.compile(
    r"^```(python|bash|\{code-cell\} ipython3|\{code-block\} pycon)\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
COLUMNS = 72  # of code, which the site has room for beside its menus


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_code_of_a_page_fits_beside_its_menus(page: Path) -> None:
    """Output may be longer, as it is wrapped."""
    long = []
    for kind, block in CODE.findall(page.read_text(encoding="utf-8")):
        is_code = re.compile(r">>> |\.\.\. " if kind == SESSION else "")
        lines = OPTIONS.sub("", block).splitlines()
        long += [line for line in lines if len(line) > COLUMNS and is_code.match(line)]
    assert long == []


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda script: script.stem)
def test_code_of_an_example_fits_beside_the_menus(script: Path) -> None:
    """Comments and the first docstring become paragraphs."""
    _, _, code = script.read_text(encoding="utf-8").split('"""', 2)
    assert [line for line in code.splitlines() if len(line) > COLUMNS and not line.startswith("#")] == []


def examples(kind: str) -> list[Any]:
    """Return the pages with code of this kind; what needs an extra runs where extras are tested."""
    actual = []
    for page in PAGES:
        for number, code in enumerate(blocks(page, kind)) if kind == "python" else [(0, "\n".join(blocks(page, kind)))]:
            if code:
                marks = [pytest.mark.extras] if OF_EXTRAS.search(code) else []
                label = f"{name(page)}-{number}" if kind == "python" else name(page)
                actual.append(pytest.param(name(page), code, marks=marks, id=label))
    return actual


def run(page: str, code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for library in OF_EXTRAS.findall(code):
        pytest.importorskip(library, reason=f"{library} is not installed")
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, page, "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize(("page", "code"), examples("python"))
def test_example_runs(
    page: str, code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(page, code, monkeypatch, tmp_path)
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize(("page", "code"), examples(CELL))
def test_cells_run(page: str, code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All cells of a page, one after the other, as a notebook would."""
    import matplotlib.pyplot as plt

    run(page, code, monkeypatch, tmp_path)
    plt.close("all")


@pytest.mark.parametrize(("page", "code"), examples(SESSION))
def test_sessions_print_the_documented_output(page: str, code: str) -> None:
    test = doctest.DocTestParser().get_doctest(code, {}, page, page, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test).failed == 0
