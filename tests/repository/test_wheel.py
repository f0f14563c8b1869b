"""The wheel, as a user gets it: it installs with its run-time dependencies alone, and imports."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import ocdl

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path) -> str:
    """Run without the settings that could lead back to this installation."""
    environment = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "OCDL_CORE"}}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_the_wheel_imports_in_an_empty_environment(tmp_path: Path) -> None:
    build = f"--config-settings=build-dir={tmp_path / 'build'}"
    run(sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", build, "-w", tmp_path, cwd=tmp_path)
    (wheel,) = tmp_path.glob("ocdl-*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    run(python, "-m", "pip", "install", wheel, cwd=tmp_path)
    code = "import ocdl; print(ocdl.__file__); print(ocdl.build_info()['variant'])"
    file, variant = run(python, "-c", code, cwd=tmp_path).splitlines()
    assert Path(file).is_relative_to(tmp_path / "venv")
    assert variant == ocdl.build_info()["variant"]
