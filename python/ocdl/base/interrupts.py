"""What `ocdl.tables` still imports of the handling of Ctrl-C, which belongs to the command line now."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def heeding_interrupts(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return the function as it is: no library function changes signal handlers."""
    return function
