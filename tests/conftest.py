"""Settings that all tests share."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

import ocdl

settings.register_profile("ocdl", deadline=None)  # a busy machine is no failure
settings.load_profile("ocdl")


@pytest.fixture
def restored_threads() -> Iterator[None]:
    """Set the number of threads back when the test is over."""
    before = ocdl.get_num_threads()
    yield
    ocdl.set_num_threads(before)
