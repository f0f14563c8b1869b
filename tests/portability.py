"""Build and test with other compilers and for other machines: `python tests/portability.py`, or name the runs.

clang: the C++ tests, compiled by Clang with its own OpenMP, for this machine.
aarch64: the C++ tests, cross-compiled by GCC with NEON packs and run by qemu, without the two suites that take longest.
aarch64-whole: all of them.
serial: the package, made from the source archive by Clang without OpenMP, as on a Mac; it tests itself.

`make portability` runs all of these but aarch64-whole, `make test-all` the first one. What is missing is installed
where apt-get is there and allowed to; otherwise a run says what it needs and fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
CLANGS = [*(f"clang++-{version}" for version in range(30, 14, -1)), "clang++"]
CROSS_COMPILER, EMULATOR, SYSROOT = "aarch64-linux-gnu-g++", "qemu-aarch64", "/usr/aarch64-linux-gnu"

LONG_SUITES = ("objective", "adjoint_sweep")  # with an emulator, which takes ten to twenty times as long


def run(*command: object, **environment: str) -> bool:
    """Whether the command succeeds; it is printed as a shell would take it."""
    print("+", *(f"{name}='{value}'" for name, value in environment.items()), *command, flush=True)
    done = subprocess.run([str(part) for part in command], cwd=ROOT, env=os.environ | environment, check=False)
    return done.returncode == 0


def provided(is_there: Callable[[], bool], what: str, packages: str) -> bool:
    """Whether a tool is there, if need be from Debian's packages."""
    if is_there():
        return True
    if shutil.which("apt-get") and os.geteuid() == 0:
        run("apt-get", "update", "-qq")
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages.split())
    if is_there():
        return True
    print(f"NOT RUN: it needs {what}; on Debian: apt-get install {packages}")
    return False


def first_of(names: Iterable[str]) -> str | None:
    return next((name for name in names if shutil.which(name)), None)


def clang_with_openmp() -> bool:
    name = first_of(CLANGS)
    program = "#include <omp.h>\nint main() { return omp_get_max_threads() < 1; }"
    command = [name, "-fopenmp", "-x", "c++", "-", "-o", os.devnull]
    return name is not None and subprocess.run(command, input=program, text=True, check=False).returncode == 0


def cpp_tests_pass(folder: Path, left_out: Iterable[str] = (), **settings: object) -> bool:
    """Build the C++ tests in a folder of their own, warnings as errors, and run them but for some suites."""
    settings |= {
        "CMAKE_BUILD_TYPE": "Release",
        "Python_EXECUTABLE": sys.executable,
        "OCDL_BUILD_PYTHON": "OFF",
        "OCDL_BUILD_TESTS": "ON",
        "OCDL_BUILD_BASELINE_TESTS": "OFF",
        "OCDL_WERROR": "ON",
    }
    leaving = ["--exclude-regex", "|".join(left_out)] if left_out else []
    return (
        run("cmake", "-S", ".", "-B", folder, "-G", "Ninja", *(f"-D{name}={value}" for name, value in settings.items()))
        and run("cmake", "--build", folder)
        and run("ctest", "--test-dir", folder, *leaving, "--output-on-failure", "--no-tests=error", "-j2")
    )


def clang(folder: Path) -> bool:
    if not provided(clang_with_openmp, "Clang 15 or newer with OpenMP", "clang-16 libomp-16-dev"):
        return False
    return cpp_tests_pass(folder, CMAKE_CXX_COMPILER=first_of(CLANGS))


def aarch64(folder: Path, left_out: Iterable[str] = LONG_SUITES) -> bool:
    def tools() -> bool:
        return bool(shutil.which(CROSS_COMPILER) and shutil.which(EMULATOR))

    if not provided(tools, "a cross-compiler and an emulator for aarch64", "g++-aarch64-linux-gnu qemu-user"):
        return False
    os.environ["OMP_WAIT_POLICY"] = "passive"  # emulated threads that wait at full speed keep the others from working
    return cpp_tests_pass(
        folder,
        left_out,
        CMAKE_SYSTEM_NAME="Linux",
        CMAKE_SYSTEM_PROCESSOR="aarch64",
        CMAKE_CXX_COMPILER=CROSS_COMPILER,
        CMAKE_CROSSCOMPILING_EMULATOR=f"{EMULATOR};-L;{SYSROOT}",
    )


def serial(folder: Path) -> bool:
    """The libraries are those of this Python, seen by way of a .pth file: an editable ocdl stays out of sight.

    Another ocdl among them is seen; `--target` lets pip install ours nevertheless, before it.
    """
    if not provided(lambda: first_of(CLANGS) is not None, "Clang 15 or newer", "clang-16"):
        return False
    compiler = first_of(CLANGS) or ""
    shutil.rmtree(folder, ignore_errors=True)
    environment = folder / "venv"
    venv.create(environment)
    (site_packages,) = environment.glob("lib/python*/site-packages")
    (site_packages / "libraries.pth").write_text(next(path for path in sys.path if path.endswith("site-packages")))
    settings = {"OCDL_VARIANTS": "baseline", "OCDL_WERROR": "ON", "CMAKE_DISABLE_FIND_PACKAGE_OpenMP": "ON"}
    defines = [f"--config-settings=cmake.define.{name}={value}" for name, value in settings.items()]
    pip, python = (sys.executable, "-m", "pip", "-q"), environment / "bin/python"
    built_here = ("--no-deps", "--no-build-isolation", "-w", folder)
    return (
        run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", folder)
        and run(*pip, "wheel", *built_here, *defines, *folder.glob("*.tar.gz"), CXX=compiler)
        and run(*pip, "install", "--no-deps", "--target", site_packages, *folder.glob("*.whl"))
        and run(python, "-P", "-c", "import ocdl; assert ocdl.build_info()['openmp'] == 'none', ocdl.build_info()")
        and run(python, "-P", "-m", "ocdl", "selftest")
    )


def aarch64_whole(folder: Path) -> bool:
    return aarch64(folder.with_name("aarch64"), left_out=())


DEFAULT: dict[str, Callable[[Path], bool]] = {"clang": clang, "aarch64": aarch64, "serial": serial}
RUNS = DEFAULT | {"aarch64-whole": aarch64_whole}


def main() -> None:
    results, seconds = {}, {}
    for name in sys.argv[1:] or DEFAULT:
        started = time.monotonic()
        results[name] = RUNS[name](ROOT / "build" / "portability" / name)
        seconds[name] = time.monotonic() - started
    for name, passed in results.items():
        print(f"{name}: {'all tests pass' if passed else 'FAILED'}, {seconds[name]:.0f} s")
    sys.exit(not all(results.values()))


if __name__ == "__main__":
    main()
