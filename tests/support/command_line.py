"""Helpers for tests of the command line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

Run = Callable[..., tuple[int, str, str]]
QUICK = ("--layers", "3", "--max-iter", "20")
SPECIES = np.array(["setosa", "versicolor", "virginica"])


def run_process(*argv: object, **settings: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ocdl", *map(str, argv)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **settings)


def assert_one_line_error(result: tuple[int, str, str], *fragments: str) -> None:
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.startswith("ocdl: error: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    for fragment in fragments:
        assert fragment in err
