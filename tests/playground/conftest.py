"""The page of the playground in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ocdl.cli.playground import BUILT_PAGE


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playground_page import BROWSER, driver  # skips where there is no browser

    with driver.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open the page with a link; it must report no error, send no request to the network, and open no dialog."""
    errors: list[str] = []
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
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", lambda dialog: errors.append(f"dialog: {dialog.message}") or dialog.dismiss())
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
    assert errors == []
    assert [url for url in requests if not url.startswith(("file:", "blob:", "data:"))] == []
