"""The command that writes the playground's page, wherever the page was built or not."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import webbrowser
from pathlib import Path
from typing import Any

import pytest
from soak import Soak

import ocdl
from ocdl.cli import main, playground

ROOT = Path(__file__).parents[2]
PAGE = "<!doctype html><title>σ</title>"


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    page = tmp_path / "built.html"
    page.write_text(PAGE, encoding="utf-8")
    monkeypatch.setattr(playground, "BUILT_PAGE", page)
    monkeypatch.chdir(tmp_path)
    return page


@pytest.mark.parametrize("has_browser", [True, False])
def test_the_page_is_written_and_opened(
    built: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], has_browser: bool
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or has_browser)
    assert main(["playground"]) == 0
    written = built.with_name("ocdl-playground.html")
    assert written.read_text(encoding="utf-8") == PAGE
    assert opened == [written.as_uri()]
    message = capsys.readouterr().out
    assert message.startswith("page: ocdl-playground.html\n")
    assert (written.as_uri() in message) == (not has_browser)


def test_without_a_browser_and_for_machines(
    built: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda address: pytest.fail(f"opened {address}"))
    assert main(["playground", "--out", "page.html", "--no-browser", "--json"]) == 0
    address = built.with_name("page.html").as_uri()
    assert json.loads(capsys.readouterr().out) == {"page": "page.html", "address": address, "opened": False}


def test_an_installation_without_the_page_gives_the_command_to_build_it(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built.unlink()
    assert main(["playground"]) == 2
    assert "build it with: make playground" in capsys.readouterr().err


def test_the_built_page_is_not_replaced(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["playground", "--out", str(built), "--no-browser"]) == 2
    assert "would replace a file that is read" in capsys.readouterr().err


@pytest.fixture
def build() -> Any:
    """The module that builds the page."""
    place = importlib.util.spec_from_file_location("build", ROOT / "playground" / "build.py")
    assert place is not None
    assert place.loader is not None
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


def test_a_build_that_is_stopped_leaves_the_old_page(
    build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page goes into the package, where half of one would be opened."""
    for folder in ("python/ocdl", "playground", "installed"):
        (tmp_path / folder).mkdir(parents=True)
    pages = [tmp_path / folder / "playground.html" for folder in ("python/ocdl", "installed")]
    for page in pages:
        page.write_text("the old one")
    monkeypatch.setattr(build, "HERE", tmp_path / "playground")
    monkeypatch.setattr(build.ocdl, "__file__", str(tmp_path / "installed" / "__init__.py"))
    monkeypatch.setattr(build, "compile_core", lambda: b"")
    monkeypatch.setattr(build, "page", lambda core: "the new one")

    def stop(descriptor: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", stop)
        with pytest.raises(KeyboardInterrupt):
            build.main()
    assert [page.read_text() for page in pages] == ["the old one"] * 2
    build.main()
    assert [page.read_text() for page in pages] == ["the new one"] * 2


def test_ctrl_c_while_the_compiler_starts_ends_it_too(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    class Pressed(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            started.append(self.pid)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Pressed)
    with pytest.raises(KeyboardInterrupt):
        build.run_to_the_end([sys.executable, "-c", "import time; time.sleep(60)"], {})
    assert not at_work(started[0])


# A compiler that has started others, as the real one does, and says which.
COMPILER = """
import os, pathlib, subprocess, sys, time
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path("compilers.new").write_text(f"{os.getpid()} {other.pid}")
os.rename("compilers.new", "compilers")
time.sleep(600)
"""
LONGEST = 0.1  # seconds from Ctrl-C to the prompt


def start_build(folder: Path) -> subprocess.Popen[str]:
    """Build the page from the sources in a folder, with the modules there before those that are installed."""
    path = os.pathsep.join([str(folder), str(Path(ocdl.__file__).parents[1])])
    command = [sys.executable, str(folder / "playground" / "build.py")]
    return subprocess.Popen(
        command, cwd=folder, env=os.environ | {"PYTHONPATH": path}, stderr=subprocess.PIPE, text=True
    )


def seconds_to_the_prompt(build: subprocess.Popen[str], number: int) -> float:
    build.send_signal(number)
    begun = time.perf_counter()
    build.wait()  # without a time limit, for which Python would look every 50 ms
    return time.perf_counter() - begun


def at_work(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_build_ends_at_once_with_all_its_compilers(tmp_path: Path, number: int) -> None:
    """The signal goes to the build alone, as a process manager sends it; where a busy machine is slow, once more."""
    (tmp_path / "ziglang").mkdir()
    (tmp_path / "ziglang" / "__init__.py").touch()
    (tmp_path / "ziglang" / "__main__.py").write_text(COMPILER)
    (tmp_path / "playground").mkdir()
    shutil.copy(ROOT / "playground" / "build.py", tmp_path / "playground")
    actual: list[float] = []
    while len(actual) < 5 and min(actual, default=LONGEST) >= LONGEST:
        (tmp_path / "compilers").unlink(missing_ok=True)
        build = start_build(tmp_path)
        while not (tmp_path / "compilers").exists():
            assert build.poll() is None
            time.sleep(0.01)
        compilers = [int(pid) for pid in (tmp_path / "compilers").read_text().split()]
        actual.append(seconds_to_the_prompt(build, number))
        assert build.returncode == 128 + number
        _, message = build.communicate()
        assert message == "\ninterrupted; the next build continues with what has been compiled\n"
        assert not any(map(at_work, compilers))
    assert min(actual) < LONGEST, actual


def interrupted_build(folder: Path, wait: float) -> float | None:
    """Press Ctrl-C after so many seconds; return how long the answer takes, None where the build has ended before.

    Of a slow one the fastest of five counts: a machine that is busy is not slow at the same moment again.
    """
    actual: list[float] = []
    while len(actual) < 5 and min(actual, default=LONGEST) >= LONGEST:
        build = start_build(folder)
        time.sleep(wait)
        actual.append(seconds_to_the_prompt(build, signal.SIGINT))
        _, message = build.communicate()
        if build.returncode == 0:
            return None
        in_pythons_own_start = build.returncode == 1 and message.endswith("KeyboardInterrupt\n")
        assert in_pythons_own_start or build.returncode in (128 + signal.SIGINT, -signal.SIGINT), message
    return min(actual)


def seconds_of_a_build(folder: Path) -> float:
    begun = time.perf_counter()
    build = start_build(folder)
    _, message = build.communicate()
    assert build.returncode == 0, message
    return time.perf_counter() - begun


def slowest_answer(folder: Path, times: int, longest_wait: float, rng: random.Random) -> float:
    actual: list[float] = []
    while len(actual) < times:
        answer = interrupted_build(folder, rng.uniform(0.0, longest_wait))
        actual += [] if answer is None else [answer]
    return max(actual)


@pytest.mark.slow
@pytest.mark.extras
def test_three_hundred_interrupts_of_a_build(tmp_path: Path, soak: Soak) -> None:
    """At random moments: of its first seconds, in which it compiles, and of a whole one, when all has been compiled."""
    pytest.importorskip("ziglang")
    for name in ("playground", "cpp"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copytree(Path(ocdl.__file__).parent, tmp_path / "ocdl")
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "ocdl").symlink_to(tmp_path / "ocdl")
    rng, times = random.Random(1), soak.times(300, least=2)
    compiling = max(2, times // 3)
    longest = slowest_answer(tmp_path, compiling, 2.0, rng)
    if times > compiling:
        seconds_of_a_build(tmp_path)  # that compiles
        whole = seconds_of_a_build(tmp_path)
        longest = max(longest, slowest_answer(tmp_path, times - compiling, whole, rng))
    soak.measured(f"answered after at most {longest:.3f} s")
    assert longest < LONGEST
