"""Run the tests under sanitizers: `make sanitize`, or `python tests/sanitize.py` with the names of some runs.

quick: the C++ tests alone, with the assertions of a debug build, under the sanitizers of `address`, with a tenth of the
       random networks. It takes minutes: `make test-sanitized`.
address: GCC's sanitizers of addresses, leaks and undefined behaviour; the C++ tests and nearly all Python tests.
thread: Clang's sanitizer of races; the C++ tests and the Python tests with threads. Clang's OpenMP reports barriers
        to it through libarcher; GCC's does not, so that every barrier would count as a race.

Sanitizers write into files where they can, as tests read what processes print. A report with a frame in our code is a
failure, whatever the tests say; nothing of ours is suppressed. Python and its libraries leave memory to the end of the
process, and are not compiled for the sanitizers: reports without any frame in our code are theirs.

What has passed without a report is noted in build/sanitize, step by step, and a second call continues after it, as long
as no source has changed; `--anew` forgets it.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from soak import state_of_the_sources

ROOT = Path(__file__).parents[1]
START = re.compile(r"^(?=(?:Direct|Indirect) leak of |WARNING: ThreadSanitizer|=+\d+=+ERROR: )", re.M)
# A frame of ours has a name: where others omit frame pointers, what is taken for one may be any address.
OURS = re.compile(
    r"#\d+ (?!0x[0-9a-f]+ +\().*(?:\bocdl_tests\b|\b_c(?:ore_\w+|pu)\.cpython|/cpp/(?:ocdl|bindings|tests)/)"
)

ONE_CORE, MEMORY, TIME = "needs the core for this machine", "measures memory", "measures time"
LIMIT = "limits the address space, of which the sanitizer takes terabytes"
LEFT_OUT_WITH_ADDRESSES = {
    "tests/repository/test_package.py::test_a_source_build_holds_baseline_and_the_best_of_its_machine": ONE_CORE,
    "tests/repository/test_package.py::test_vector_variants_contain_fused_multiply_adds": ONE_CORE,
    "tests/robustness/test_leaks.py::test_nothing_is_left_behind": MEMORY,
    "tests/files/test_forged_files.py::test_memory_is_bounded_by_the_size": MEMORY,
    "tests/robustness/test_interrupts.py": TIME,
    "tests/estimator/test_samples.py::test_sorting_rows_is_several_times_faster_than_sorting_them_by_content": TIME,
    "tests/cli/test_cli.py::test_the_process_ends_soon_after_its_command": TIME,
    "tests/playground/test_playground_command.py::test_a_stopped_build_ends_at_once_with_all_its_compilers": TIME,
    "tests/cli/test_killed_commands.py::test_a_limit_on_memory_ends_in_one_line_that_names_the_size": LIMIT,
    "tests/cli/test_killed_commands.py::"
    "test_limits_in_which_libraries_crash_are_refused_before_they_are_imported": LIMIT,
    "tests/cli/test_killed_commands.py::test_a_table_that_does_not_fit_into_a_limit_is_refused_by_name": LIMIT,
    "tests/training/test_streaming.py::test_data_of_ten_times_the_memory_go_through": LIMIT,
    "tests/training/test_streaming.py::test_files_of_ten_times_the_memory_go_through": LIMIT,
}

# A sanitizer that was not set up well reports nothing: each has to find such a mistake first.
PLANTED = {
    "address,undefined": "int main(int count, char**) { return (new int[count])[count]; }",
    "thread": """
int main() {
  int sum = 0;
#pragma omp parallel num_threads(2)
  ++sum;
  return sum == 0;
}
""",
}

COMPILER = os.environ.get("CXX", "g++")
UNDEFINED = "halt_on_error=1:print_stacktrace=1"  # it cannot write into a file, so it ends the test
FILES_AT_ONCE = 8  # of the Python tests, in one step
WITH_THREADS = [
    *(f"tests/{name}.py" for name in ("robustness/test_threads", "robustness/test_determinism")),
    *(f"tests/{name}.py" for name in ("model/test_custom_loss", "training/test_streaming")),
    *("-k", "not fork and not ten_times_the_memory"),  # the latter has a limit, see above
]


def run(*command: object, **environment: str) -> bool:
    """Whether the command succeeds; it is printed as a shell would take it."""
    print("+", *(f"{name}='{value}'" for name, value in environment.items()), *command, flush=True)
    done = subprocess.run([str(part) for part in command], cwd=ROOT, env=os.environ | environment, check=False)
    return done.returncode == 0


def build(folder: Path, compiler: str, sanitizers: str, link_options: str = "", quick: bool = False) -> None:
    """Build the C++ tests for this machine, a mistake and, unless quick, `folder`/package with the baseline core."""
    flags = f"{'-O1 -g1 -D_GLIBCXX_ASSERTIONS' if quick else '-O2 -g1'} -fno-omit-frame-pointer -fsanitize={sanitizers}"
    settings = {
        "CMAKE_BUILD_TYPE": "None",
        "CMAKE_CXX_COMPILER": compiler,
        "CMAKE_CXX_FLAGS": flags,
        "CMAKE_EXE_LINKER_FLAGS": link_options,
        "Python_EXECUTABLE": sys.executable,
        "OCDL_BUILD_PYTHON": "OFF" if quick else "ON",
        "OCDL_BUILD_TESTS": "ON",
        "OCDL_BUILD_BASELINE_TESTS": "OFF",
        "OCDL_VARIANTS": "baseline",
    }
    package = folder / "package"
    shutil.rmtree(package, ignore_errors=True)
    if not quick:
        ignored = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(ROOT / "python" / "ocdl", package / "ocdl", ignore=ignored)
    mistake = folder / "cpp" / "tests" / "mistake.cpp"
    mistake.parent.mkdir(parents=True, exist_ok=True)
    mistake.write_text(PLANTED[sanitizers])
    if not (
        run("cmake", "-S", ".", "-B", folder, "-G", "Ninja", *(f"-D{name}={value}" for name, value in settings.items()))
        and run("cmake", "--build", folder)
        and (quick or run("cmake", "--install", folder, "--prefix", package))
        and run(compiler, *flags.split(), *link_options.split(), "-fopenmp", mistake, "-o", folder / "mistake")
    ):
        sys.exit("the build failed")


def imported_from(package: Path, **environment: str) -> bool:
    """Whether Python finds the package in this folder: an editable installation comes before PYTHONPATH."""
    code = f"import ocdl, sys; sys.exit(not ocdl.__file__.startswith({str(package)!r}))"
    return run(sys.executable, "-c", code, **environment)


def find_library(compiler: str, file: str) -> str:
    """Return the path of a library of the compiler."""
    command = [compiler, f"-print-file-name={file}"]
    path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return str(Path(path).resolve()) if os.path.isabs(path) else ""


def our_reports(folder: Path) -> list[str]:
    pieces = [piece for file in sorted(folder.iterdir()) for piece in START.split(file.read_text(errors="replace"))]
    return [piece for piece in pieces if START.match(piece) and OURS.search(piece)]


def tests_pass(folder: Path, pytest_arguments: list[str], preloaded: list[str], **options: str) -> bool:
    """Run the C++ tests, then Python tests with the sanitizer's libraries loaded before Python; read the reports."""
    reports = folder / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir()
    options = {name: f"{value}:log_path={reports}/report" for name, value in options.items()}
    options["OMP_WAIT_POLICY"] = "passive"  # instrumented code is slow enough without threads that wait at full speed
    python = options | {
        "LD_PRELOAD": ":".join(preloaded),
        "PYTHONPATH": str(folder / "package"),
        "PYTHONMALLOC": "malloc",  # Python's own allocator hides every mistake with memory that it has allocated
        "OPENBLAS_NUM_THREADS": "1",
    }
    if not imported_from(folder / "package", **python):
        sys.exit("an editable installation of ocdl hides the one to be tested: make VENV=.venv-sanitize sanitize")
    run(folder / "mistake", **options)
    if not our_reports(reports):
        sys.exit("the sanitizer does not see a mistake that was made on purpose")
    for report in reports.iterdir():
        report.unlink()
    steps: dict[str, Callable[[], bool]] = {
        "ctest": lambda: run("ctest", "--test-dir", folder, "--output-on-failure", "--no-tests=error", "-j2", **options)
    }
    for number, files in enumerate(file_groups(pytest_arguments)):
        pytest = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *files]
        steps[f"pytest-{number}"] = partial(run, *pytest, **python)
    passed = [step_passes(folder / f"{name}.passed", step, reports) for name, step in steps.items()]
    return all(passed)


def file_groups(pytest_arguments: list[str]) -> list[list[str]]:
    """Return the arguments of several calls of pytest instead of one, where it would run all files."""
    if any(argument.startswith("tests/") for argument in pytest_arguments):
        return [pytest_arguments]
    files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))
    return [[*files[i : i + FILES_AT_ONCE], *pytest_arguments] for i in range(0, len(files), FILES_AT_ONCE)]


def step_passes(mark: Path, step: Callable[[], bool], reports: Path) -> bool:
    """Run a step unless it is noted that it has passed, with the sources as they are; note it where it passes."""
    state = state_of_the_sources()
    if mark.exists() and mark.read_text() == state:
        print(f"{mark.stem}: passed before, with these sources")
        return True
    before = len(our_reports(reports))
    passed = step()
    found_here = our_reports(reports)
    print(*found_here[before:], f"{len(found_here) - before} reports in our code; all are in {reports}", sep="\n")
    if passed and len(found_here) == before:
        mark.write_text(state)
        return True
    return False


def quick(folder: Path) -> bool:
    """Every report ends the test that it comes from, so that none has to be read."""
    build(folder, COMPILER, "address,undefined", quick=True)
    options = {"UBSAN_OPTIONS": UNDEFINED, "OMP_WAIT_POLICY": "passive", "OCDL_TEST_FRACTION": "0.1"}
    if run(folder / "mistake", **options):
        sys.exit("the sanitizer does not see a mistake that was made on purpose")
    return run("ctest", "--test-dir", folder, "--output-on-failure", "--no-tests=error", "-j2", **options)


def address(folder: Path) -> bool:
    build(folder, COMPILER, "address,undefined")
    # Python does not load libstdc++, but the sanitizer looks for what throws exceptions when the process starts.
    preloaded = [find_library(COMPILER, f"{library}.so") for library in ("libasan", "libubsan", "libstdc++")]
    left_out = [f"--deselect={test}" for test in LEFT_OUT_WITH_ADDRESSES]
    for test, reason in LEFT_OUT_WITH_ADDRESSES.items():
        print(f"left out: {test}: {reason}")
    return tests_pass(
        folder,
        left_out,
        preloaded,
        ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=1",
        LSAN_OPTIONS="exitcode=0:print_suppressions=0",
        UBSAN_OPTIONS=UNDEFINED,
    )


def thread(folder: Path) -> bool:
    library = f"libclang_rt.tsan-{platform.machine()}.so"
    names = [*(f"clang++-{version}" for version in range(30, 14, -1)), "clang++"]
    compiler = next(
        (name for name in names if shutil.which(name) and archer(name) and find_library(name, library)), None
    )
    if compiler is None:
        print("thread: NOT RUN. It needs Clang 15 or newer with OpenMP, Archer and the sanitizer's runtime; on Debian")
        print("        apt-get install clang-16 libomp-16-dev libclang-rt-16-dev")
        return False
    runtime = find_library(compiler, library)
    # Shared, as the tests replace operator new, and so does the runtime.
    build(folder, compiler, "thread", f"-shared-libsan -Wl,-rpath,{Path(runtime).parent}")
    # What happens inside Clang's OpenMP is its own affair; what it means to us, it says through Archer.
    suppressions = folder / "suppressions"
    suppressions.write_text("called_from_lib:libomp.so\n")
    os.environ["OMP_TOOL_LIBRARIES"] = archer(compiler)
    return tests_pass(folder, WITH_THREADS, [runtime], TSAN_OPTIONS=f"exitcode=0:suppressions={suppressions}")


def archer(compiler: str) -> str:
    command = [compiler, "-print-resource-dir"]
    resources = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    library = resources.parents[1] / "libarcher.so"
    return str(library) if library.exists() else ""


RUNS: dict[str, Callable[[Path], bool]] = {"quick": quick, "address": address, "thread": thread}


def main() -> None:
    folder, names = ROOT / "build" / "sanitize", [name for name in sys.argv[1:] if name != "--anew"]
    if "--anew" in sys.argv:
        for mark in folder.glob("*/*.passed"):
            mark.unlink()
    results = {name: RUNS[name](folder / name) for name in names or ("address", "thread")}
    for name, passed in results.items():
        print(f"{name}: {'no report in our code, all tests pass' if passed else 'FAILED'}")
    sys.exit(not all(results.values()))


if __name__ == "__main__":
    main()
