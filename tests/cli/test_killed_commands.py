"""Commands that are killed, or find no room to write: whole files or none, and the next call does its work."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from soak import Soak
from subprocesses import Forks

import ocdl
from ocdl.network import files

LONGEST = 3.0  # seconds until a command is killed
TEMPORARY = re.compile(r"\.[^/]+\.[0-9a-f]{16}")


@dataclass(frozen=True)
class Command:
    """What is run in a folder with data.csv, points.csv and model.ocdl, and how to see that what it wrote is whole."""

    argv: tuple[str, ...]
    writes: str
    is_whole: Callable[[Path], object]
    is_resumed: bool = False


def whole_predictions(path: Path) -> None:
    assert len(path.read_text().splitlines()) == 301


ENDINGS = {".png": b"IEND\xaeB`\x82", ".pdf": b"%%EOF\n", ".csv": b"\n", ".html": b"</html>\n"}


def whole_runs(path: Path) -> None:
    """Every finished training of a reproduction can be read, and every figure, table and page is there to its end."""
    for file in path.parent.rglob("*"):
        if file.is_dir() or TEMPORARY.fullmatch(file.name):
            continue
        if file.suffix == ".npz":
            with np.load(file) as arrays:
                assert all(arrays[name].size >= 0 for name in arrays)
        elif file.suffix == ".json":
            json.loads(file.read_text())
        else:
            assert file.read_bytes().endswith(ENDINGS[file.suffix])


def whole_onnx(path: Path) -> None:
    import onnx

    onnx.checker.check_model(onnx.load(path))


QUICK = ("--layers", "5", "--max-iter", "40")
COMMANDS = {
    "train": Command(("train", "--data", "data.csv", *QUICK, "--out", "new.ocdl"), "new.ocdl", ocdl.load),
    "predict": Command(
        ("predict", "model.ocdl", "points.csv", "--out", "predictions.csv"), "predictions.csv", whole_predictions
    ),
    "reproduce": Command(
        ("reproduce", "fig8", "--quick", "--seeds", "1", "--jobs", "1", "--out", "paper"),
        "paper/runs",
        whole_runs,
        is_resumed=True,
    ),
    "export": Command(("export", "model.ocdl", "model.onnx"), "model.onnx", whole_onnx),
}


def commands() -> list[object]:
    return [pytest.param(name, marks=[pytest.mark.extras] if name == "export" else []) for name in COMMANDS]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 2))
    lines = [f"{a},{b},{int(a * b > 0)}" for a, b in rows.tolist()]
    (tmp_path / "data.csv").write_text("\n".join(["a,b,y", *lines]) + "\n")
    (tmp_path / "points.csv").write_text("\n".join(f"{a},{b}" for a, b in rows.tolist()) + "\n")
    model = ocdl.ODEClassifier(n_layers=300, max_iter=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows, rows[:, 0] > 0).save(tmp_path / "model.ocdl")
    return tmp_path


def start(command: Command, folder: Path, first: str = "") -> subprocess.Popen[str]:
    """Run a command in a process after some code, whose effects stay."""
    become = "import os, sys; os.execv(sys.executable, [sys.executable, '-m', 'ocdl', *sys.argv[1:]])"
    return subprocess.Popen(
        [sys.executable, "-c", f"{first}\n{become}", *command.argv],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def finished(command: Command, folder: Path) -> float:
    begun = time.monotonic()
    process = start(command, folder)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return time.monotonic() - begun


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".*") if TEMPORARY.fullmatch(path.name)]


# The command has run once, and so imported all that it needs, where its children begin.
ONCE = """
import contextlib, os, sys
from ocdl.__main__ import run
from ocdl.cli import main
with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
    assert main(sys.argv[1:]) == 0
"""
AGAIN = """
with open(os.devnull, "w") as sys.stdout, open(os.devnull, "w") as sys.stderr:
    run()
"""


def spoil(command: Command, path: Path, rng: random.Random) -> None:
    """Remove one of the files of a reproduction, so that the next call has something to do."""
    if command.is_resumed:
        rng.choice(sorted(path.iterdir())).unlink()
    elif rng.random() < 0.5:
        path.unlink(missing_ok=True)


def kill_at_random(name: str, folder: Path, times: int, seed: int) -> int:
    """Kill the command many times; return how often its file was complete before the command had ended.

    Every tenth is killed at any moment of its life. Much of that are imports, during which it writes nothing, so
    that the others have these behind them, and are killed at any moment of their work.
    """
    command, rng = COMMANDS[name], random.Random(seed)
    path, there, kills = folder / command.writes, 0, 0
    life = finished(command, folder)
    assert path.exists()
    with Forks(ONCE, AGAIN, *command.argv, cwd=folder) as forks:

        def killed_at_work(seconds: float) -> int:
            forks.start(*command.argv)
            time.sleep(seconds)
            return forks.kill()

        def killed(seconds: float) -> int:
            process = start(command, folder)
            time.sleep(seconds)
            process.kill()
            process.communicate()
            return process.returncode

        spoil(command, path, rng)
        work = seconds_of_work(forks, command)
        while kills < times:
            if kills % 10 == 0:
                code = killed(rng.uniform(0.2, 1.0) * min(life, LONGEST))
            else:
                code = killed_at_work(rng.uniform(0.0, 1.0) * min(work, LONGEST))
            assert code in (0, -signal.SIGKILL)
            kills += code != 0
            if path.exists():
                command.is_whole(path)  # the old file, or the new one
                there += 1
            spoil(command, path, rng)
    finished(command, folder)
    command.is_whole(path)
    if not command.is_resumed:
        assert leftovers(folder) == []  # the last one has removed what the killed ones left
    return there


def seconds_of_work(forks: Forks, command: Command) -> float:
    begun = time.monotonic()
    forks.start(*command.argv)
    assert forks.wait() == 0
    return time.monotonic() - begun


@pytest.mark.parametrize("name", ["train", "predict"])
def test_a_killed_command_leaves_whole_files(name: str, folder: Path) -> None:
    kill_at_random(name, folder, 2, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", commands())
def test_two_hundred_kills(name: str, folder: Path, soak: Soak) -> None:
    times = soak.times(200, least=2)
    soak.measured(f"whole files after each, {kill_at_random(name, folder, times, seed=1)} times one was there")


@pytest.mark.slow
def test_killed_trainings_continue_from_their_checkpoints(folder: Path, soak: Soak) -> None:
    """A training that is killed until it reaches its end makes the model of one that was never killed."""
    options = ("train", "--data", "data.csv", "--layers", "5", "--max-iter", "400", "--optimiser", "backtracking")
    whole = Command((*options, "--out", "whole.ocdl"), "whole.ocdl", ocdl.load)
    duration, kills, rng = finished(whole, folder), 0, random.Random(0)
    reference = soak.times(40, least=1)
    while kills < reference:
        (folder / "state").unlink(missing_ok=True)
        (folder / "new.ocdl").unlink(missing_ok=True)
        for patience in itertools.count(1):
            going_on = ("--resume", "state") if (folder / "state").exists() else ()
            argv = (*options, "--checkpoint", "state", *going_on, "--out", "new.ocdl")
            process = start(Command(argv, "new.ocdl", ocdl.load), folder)
            try:
                _, err = process.communicate(timeout=rng.uniform(0.5, 1 + patience / 5) * duration)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                kills += 1
            else:
                assert process.returncode == 0, err
                break
        models = [files.read(folder / name).model.controls.to_vector() for name in ("whole.ocdl", "new.ocdl")]
        assert np.array_equal(*models)
    soak.measured(f"{kills} kills, the same bits in the end")


def complaint(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 2, (out, err)
    assert "Traceback" not in err
    return err.strip().splitlines()[-1]


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def with_an_old_file(command: Command, folder: Path) -> dict[str, bytes]:
    """Put a file where a command writes; return all files of the folder."""
    path = folder / command.writes
    if command.is_resumed:
        finished(command, folder)  # a second call has everything to draw again, and nothing to train
    else:
        path.write_text("the old one")
    return files_in(folder)


FULL_DISK = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
"""


@pytest.mark.parametrize("name", commands())
def test_a_full_disk_keeps_the_old_file(name: str, folder: Path) -> None:
    command = COMMANDS[name]
    before = with_an_old_file(command, folder)

    message = complaint(start(command, folder, FULL_DISK))
    assert message.startswith("ocdl: error: File too large")
    assert command.writes.partition("/")[0] in message
    assert files_in(folder) == before


# Permissions hold for root as well, who may otherwise write everywhere, without CAP_DAC_OVERRIDE.
WITHOUT_ROOTS_POWER = """
import ctypes, os
if os.geteuid() == 0:
    drop_from_bounding_set, dac_override = 24, 1
    assert ctypes.CDLL(None).prctl(drop_from_bounding_set, dac_override, 0, 0, 0) == 0
"""


@pytest.mark.parametrize("name", commands())
def test_a_folder_that_is_read_only_is_refused_before_the_work(name: str, folder: Path) -> None:
    command = COMMANDS[name]
    before = with_an_old_file(command, folder)
    folders = [path for path in (folder, *folder.rglob("*")) if path.is_dir()]
    for path in folders:
        path.chmod(0o555)
    try:
        message = complaint(start(command, folder, WITHOUT_ROOTS_POWER))
    finally:
        for path in folders:
            path.chmod(0o755)
    assert message.startswith("ocdl: error: Permission denied: ")
    assert command.writes.partition("/")[0] in message
    assert files_in(folder) == before


@pytest.mark.parametrize("name", ["train", "predict"])
def test_a_path_below_a_file_is_refused_before_the_work(name: str, folder: Path) -> None:
    command = COMMANDS[name]
    argv = tuple("data.csv/new" if word == command.writes else word for word in command.argv)
    message = complaint(start(Command(argv, "", ocdl.load), folder))
    assert "There is no such folder" in message or "Not a directory" in message


def limited(megabytes: float) -> str:
    return f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({int(megabytes * 1e6)}, resource.RLIM_INFINITY))"


NAMES_A_SIZE = r"not enough memory: .*\d (MB|GB|TB|MiB|GiB)"


@pytest.mark.parametrize("layers", [10**6, 10**8])
def test_a_limit_on_memory_ends_in_one_line_that_names_the_size(layers: int, folder: Path) -> None:
    argv = ("train", "--data", "data.csv", "--layers", str(layers), "--max-iter", "2", "--out", "new.ocdl")
    message = complaint(start(Command(argv, "", ocdl.load), folder, limited(2000)))
    assert re.search(NAMES_A_SIZE, message), message
    assert not (folder / "new.ocdl").exists()


@pytest.mark.parametrize("megabytes", [200, 500])
@pytest.mark.parametrize("name", commands())
def test_limits_in_which_libraries_crash_are_refused_before_they_are_imported(
    name: str, megabytes: float, folder: Path
) -> None:
    command = COMMANDS[name]
    message = complaint(start(command, folder, limited(megabytes)))
    assert re.search(f"ocdl {name} needs about 80. MB: .* the limit .* is {megabytes} MB", message), message
    assert not (folder / command.writes).exists()


@pytest.mark.parametrize("name", ["train", "predict"])
def test_a_table_that_does_not_fit_into_a_limit_is_refused_by_name(name: str, folder: Path) -> None:
    for file in ("data.csv", "points.csv"):
        os.truncate(folder / file, 2 * 10**8)
    message = complaint(start(COMMANDS[name], folder, limited(1500)))
    assert re.search(r"needs about \S+ GB: 800 MB for the libraries, \S+ GB for (data|points).csv", message), message
