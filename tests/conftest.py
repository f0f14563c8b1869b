"""Settings that all tests share."""

import os
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

import ocdl
from ocdl import _core

# A busy machine is no failure; CI draws the same examples every time.
settings.register_profile("ocdl", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("ocdl")


def pytest_addoption(parser: pytest.Parser) -> None:
    share = "share of their full counts that the slow tests run: 1 is what `make soak` takes"
    parser.addoption("--soak", type=float, default=0.1, metavar="SHARE", help=share)


@pytest.fixture
def often(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Callable[[int], int]:
    """Return a function from the full count of a long test to how often it runs now; soak.py prints that."""

    def scaled(full: int, least: int = 1) -> int:
        count = max(least, round(full * request.config.getoption("--soak")))
        record_property("count", count)
        return count

    return scaled


@pytest.fixture
def all_threads() -> Iterator[None]:
    """Take all threads that are allowed, even where fewer are faster; set their number back when the test is over."""
    before = ocdl.get_num_threads()
    _core.insist_on_threads(True)
    yield
    _core.insist_on_threads(False)
    ocdl.set_num_threads(before)
