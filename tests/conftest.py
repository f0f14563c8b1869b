"""Settings that all tests share."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from soak import Soak

import ocdl
from ocdl import _core
from ocdl.cli import main

# A busy machine is no failure; CI draws the same examples every time.
settings.register_profile("ocdl", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("ocdl")

# What a shell starts in the background ignores Ctrl-C, and so do its children; some tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    share = "share of their full counts that the slow tests run: 1 is what `make soak` takes"
    parser.addoption("--soak", type=float, default=0.1, metavar="SHARE", help=share)
    parser.addoption("--soak-list", metavar="FILE", help="write there which tests were chosen, count, and run alone")


def pytest_collection_finish(session: pytest.Session) -> None:
    if place := session.config.getoption("--soak-list"):
        chosen = [
            {
                "name": item.nodeid,
                "counts": "soak" in getattr(item, "fixturenames", ()),
                "alone": item.get_closest_marker("alone") is not None,
            }
            for item in session.items
        ]
        Path(place).write_text(json.dumps(chosen))


@pytest.fixture
def soak(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Soak:
    """How often a long test does what it does, and what it measured: soak.py prints both."""
    return Soak(request.config.getoption("--soak"), record_property)


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    """Close what a test has drawn: the next one may count the open figures, whichever test that is."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture
def all_threads() -> Iterator[None]:
    """Take all threads that are allowed, even where fewer are faster; set their number back when the test is over."""
    before = ocdl.get_num_threads()
    _core.insist_on_threads(True)
    yield
    _core.insist_on_threads(False)
    ocdl.set_num_threads(before)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command; return its exit code, and what it wrote to stdout and to stderr."""

    def call(*argv: object) -> tuple[int, str, str]:
        code = main([str(word) for word in argv])
        written = capsys.readouterr()
        return code, written.out, written.err

    return call
