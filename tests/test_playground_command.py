"""The command that writes the playground's page, wherever the page was built or not."""

from __future__ import annotations

import importlib.util
import json
import os
import webbrowser
from pathlib import Path

import pytest

from ocdl.cli import main, playground

PAGE = "<!doctype html><title>σ</title>"


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    page = tmp_path / "built.html"
    page.write_text(PAGE, encoding="utf-8")
    monkeypatch.setattr(playground, "BUILT_PAGE", page)
    monkeypatch.chdir(tmp_path)
    return page


@pytest.mark.parametrize("has_browser", [True, False])
def test_the_page_is_written_and_opened(
    built: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], has_browser: bool
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or has_browser)
    assert main(["playground"]) == 0
    written = built.with_name("ocdl-playground.html")
    assert written.read_text(encoding="utf-8") == PAGE
    assert opened == [written.as_uri()]
    said = capsys.readouterr().out
    assert said.startswith("page: ocdl-playground.html\n")
    assert (written.as_uri() in said) == (not has_browser)


def test_without_a_browser_and_for_machines(
    built: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda address: pytest.fail(f"opened {address}"))
    assert main(["playground", "--out", "page.html", "--no-browser", "--json"]) == 0
    address = built.with_name("page.html").as_uri()
    assert json.loads(capsys.readouterr().out) == {"page": "page.html", "address": address, "opened": False}


def test_an_installation_without_the_page_says_what_builds_it(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built.unlink()
    assert main(["playground"]) == 2
    assert "build it with: make playground" in capsys.readouterr().err


def test_the_built_page_is_not_replaced(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["playground", "--out", str(built), "--no-browser"]) == 2
    assert "would replace a file that is read" in capsys.readouterr().err


def test_a_build_that_is_stopped_leaves_the_old_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page goes into the package, where half of one would be opened."""
    place = importlib.util.spec_from_file_location("build", Path(__file__).parents[1] / "playground" / "build.py")
    assert place is not None
    assert place.loader is not None
    build = importlib.util.module_from_spec(place)
    place.loader.exec_module(build)
    for folder in ("python/ocdl", "playground", "installed"):
        (tmp_path / folder).mkdir(parents=True)
    pages = [tmp_path / folder / "playground.html" for folder in ("python/ocdl", "installed")]
    for page in pages:
        page.write_text("the old one")
    monkeypatch.setattr(build, "HERE", tmp_path / "playground")
    monkeypatch.setattr(build.ocdl, "__file__", str(tmp_path / "installed" / "__init__.py"))
    monkeypatch.setattr(build, "compile_core", lambda: b"")
    monkeypatch.setattr(build, "page", lambda core: "the new one")

    def stop(descriptor: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", stop)
        with pytest.raises(KeyboardInterrupt):
            build.main()
    assert [page.read_text() for page in pages] == ["the old one"] * 2
    build.main()
    assert [page.read_text() for page in pages] == ["the new one"] * 2
