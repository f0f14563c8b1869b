"""The example scripts run and draw."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
OF_EXTRAS = re.compile(r"^import (torch|jax|optax|onnxruntime|skl2onnx)\b", re.MULTILINE)


def marked(script: Path) -> object:
    """A script that needs an extra runs where extras are tested."""
    marks = [pytest.mark.extras] if OF_EXTRAS.search(script.read_text()) else []
    return pytest.param(script, marks=marks, id=script.stem)


@pytest.mark.parametrize("script", [marked(script) for script in EXAMPLES])
def test_example_runs_and_draws(script: Path, tmp_path: Path) -> None:
    for library in OF_EXTRAS.findall(script.read_text()):
        pytest.importorskip(library, reason=f"{library} is not installed")
    # One thread: beside other work those of two libraries wait for each other, which can take twenty times as long.
    done = subprocess.run(
        [sys.executable, "-W", "error", script, tmp_path],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert [picture.stat().st_size > 10_000 for picture in tmp_path.glob("*.png")] == [True]
