"""Python in a process of its own: for what may end it, and for what is decided when ocdl is imported."""

import os
import subprocess
import sys


def run_python(code: str, **environment: str) -> str:
    """Return what the code prints. If it fails or crashes, raise a RuntimeError with what it wrote to stderr."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr}")
    return done.stdout.strip()
