"""Drive the page in a browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest

from ocdl.cli.playground import BUILT_PAGE

driver: Any = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test-all")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
if BROWSER is None:
    pytest.skip("there is no browser: install chromium", allow_module_level=True)
if not BUILT_PAGE.is_file():
    pytest.skip("the page is not built: make playground", allow_module_level=True)

# The policy of the page forbids to evaluate texts, so that waiting takes functions.
TRAINED = "least => window.playground?.frame?.iteration >= least && !playground.isPlaying"


Open = Callable[..., Any]


def wait_for_training(page: Any, iterations: int) -> None:
    page.wait_for_function(TRAINED, arg=iterations, timeout=60_000)


def controls(page: Any) -> list[float]:
    actual: list[float] = page.evaluate("async () => [...(await playground.engine.ask('controls')).u]")
    return actual


def picture(page: Any) -> str:
    page.wait_for_function("() => !playground.isStale && !playground.isAwaiting && !playground.isDirty")
    actual: str = page.evaluate("() => document.getElementById('plane').toDataURL()")
    return actual


def notice(page: Any) -> str:
    page.wait_for_selector("#notice:not([hidden])")
    text: str = page.inner_text("#notice p")
    return text
