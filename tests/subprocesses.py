"""Python in a process of its own: for what may end it, and for what is decided when ocdl is imported."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def run_python(code: str, *, timeout: float = 120, **environment: str) -> str:
    """Return what the code prints. If it fails or crashes, raise a RuntimeError with what it wrote to stderr."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=timeout, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr}")
    return done.stdout.strip()


def interrupted(*arguments: str) -> tuple[int, str, str]:
    """Start Python, press Ctrl-C when it is at work; return its exit code and what it wrote to stdout and stderr.

    Inside of the tests' own process interrupts can get lost: in what hypothesis does after a garbage collection.
    """
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while _seconds_of_work(process.pid) < 4 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, out, err


def _seconds_of_work(pid: int) -> float:
    after_the_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(after_the_name[11]) / os.sysconf("SC_CLK_TCK")
