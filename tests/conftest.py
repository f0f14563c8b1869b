"""Settings that all tests share."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

import ocdl
from ocdl import _core

# A busy machine is no failure; CI draws the same examples every time.
settings.register_profile("ocdl", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("ocdl")


@pytest.fixture
def all_threads() -> Iterator[None]:
    """Take all threads that are allowed, even where fewer are faster; set their number back when the test is over."""
    before = ocdl.get_num_threads()
    _core.insist_on_threads(True)
    yield
    _core.insist_on_threads(False)
    ocdl.set_num_threads(before)
