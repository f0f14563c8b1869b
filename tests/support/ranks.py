"""Programs on several ranks: mpiexec starts the functions of rank_programs.py; the first rank prints what came out."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).with_name("rank_programs.py")
BESIDE_PYTHON = Path(sys.executable).with_name("mpiexec")
MPIEXEC = str(BESIDE_PYTHON) if BESIDE_PYTHON.exists() else shutil.which("mpiexec")

needs_mpi = pytest.mark.skipif(
    MPIEXEC is None or importlib.util.find_spec("mpi4py") is None,
    reason="mpiexec or mpi4py is not installed: pip install 'ocdl[mpi]'",
)


@dataclass(frozen=True)
class Done:
    """How a job ended: its exit code, what it wrote, and how long it took."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def message(self) -> Any:
        """What the first rank has printed, from JSON."""
        assert self.code == 0, self.err
        return json.loads(self.out.splitlines()[-1])


def launch(ranks: int, program: str, *, most_seconds: float = 240, environment: Any = None, **arguments: Any) -> Done:
    """Run a function of rank_programs.py on so many ranks."""
    return launch_command(
        ranks,
        [sys.executable, str(PROGRAMS), program, json.dumps(arguments)],
        most_seconds=most_seconds,
        environment=environment,
    )


def launch_command(
    ranks: int, command: list[str], *, most_seconds: float = 240, environment: Any = None, folder: Any = None
) -> Done:
    """Run any command on so many ranks."""
    assert MPIEXEC is not None
    started = time.monotonic()
    process = subprocess.Popen(
        [MPIEXEC, "-n", str(ranks), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=folder,
    )
    try:
        out, err = process.communicate(timeout=most_seconds)
    finally:
        process.kill()
    return Done(process.returncode, out, err, time.monotonic() - started)
