"""Python in a separate process: for tests that may end it, and for settings that are read when ocdl is imported."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self


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


# Each child has the words that its parent was sent in sys.argv, as a separate process would, and continues after this.
FORKS = """
import json, os, sys
print("ready", flush=True)
while line := sys.stdin.readline():
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.argv[1:] = json.loads(line)
        break
    print(child, flush=True)
    sys.stdin.readline()
    print(os.waitpid(child, 0)[1], flush=True)
else:
    sys.exit()
"""


class Forks:
    """A process that has executed some code, and children of it that go on with other code, one at a time.

    For many short lives: what they import is imported once. No thread is at work when a child is forked.
    """

    def __init__(self, before: str, after: str, *arguments: str, cwd: Path | None = None) -> None:
        self._parent = subprocess.Popen(
            [sys.executable, "-c", before + FORKS + after, *arguments],
            cwd=cwd,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._child = 0
        assert self._answer() == "ready\n"

    def start(self, *arguments: str) -> None:
        """Let a child begin."""
        self._child = int(self._asked(json.dumps(arguments)))

    def wait(self) -> int:
        """Return the exit code of the child, as subprocess does, when it has come to its end."""
        status = int(self._asked(""))
        self._child = 0
        return os.waitstatus_to_exitcode(status)

    def kill(self) -> int:
        """Kill the child, which may have ended before; return its exit code."""
        os.kill(self._child, signal.SIGKILL)  # the number is still its own, because no process has waited for it
        return self.wait()

    def _asked(self, line: str) -> str:
        assert self._parent.stdin is not None
        print(line, file=self._parent.stdin, flush=True)
        return self._answer()

    def _answer(self) -> str:
        assert self._parent.stdout is not None
        return self._parent.stdout.readline()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._child:
            os.kill(self._child, signal.SIGKILL)
        self._parent.communicate()
