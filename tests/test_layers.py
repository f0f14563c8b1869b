"""The layer arrow: a file of the core includes its own layer and those left of it, nothing else."""

import re
from pathlib import Path

import pytest

CPP = Path(__file__).parents[1] / "cpp"
BASE = "base"  # the files directly in cpp/ocdl (types.hpp, parallel.hpp, thread_policy.hpp)
ARROW = (BASE, "kernel", "tableau", "field", "trajectory", "sweep", "objective", "optimiser")

QUOTED_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
OPENMP = re.compile(r"#\s*include\s*[<\"]omp\.h|#\s*pragma\s+omp\b|_Pragma\s*\(\s*\"omp\b|\bomp_\w+\s*\(")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in {".hpp", ".cpp"})


def layer_of(path_in_ocdl: str) -> str:
    """Return the layer of a path like ``sweep/adjoint.hpp`` or ``types.hpp``."""
    folder, _, rest = path_in_ocdl.partition("/")
    return folder if rest else BASE


def violations(path_in_ocdl: str, text: str) -> list[str]:
    """Return what the file includes against the arrow."""
    layer = layer_of(path_in_ocdl)
    if layer not in ARROW:
        return [f"{path_in_ocdl}: the layer {layer!r} is not part of the arrow {' -> '.join(ARROW)}"]
    found = []
    for include in QUOTED_INCLUDE.findall(text):
        if not include.startswith("ocdl/"):
            found.append(f'{path_in_ocdl}: includes "{include}"; write it as "ocdl/<layer>/<file>"')
            continue
        other = layer_of(include.removeprefix("ocdl/"))
        if other not in ARROW[: ARROW.index(layer) + 1]:
            found.append(f'{path_in_ocdl}: the layer {layer} may not include "{include}"')
    return found


CORE = sources(CPP / "ocdl")
EVERYWHERE = sources(CPP)


def name(path: Path) -> str:
    return path.relative_to(CPP).as_posix()


@pytest.mark.parametrize("path", CORE, ids=name)
def test_core_follows_the_arrow(path: Path) -> None:
    assert not violations(path.relative_to(CPP / "ocdl").as_posix(), path.read_text())


@pytest.mark.parametrize("path", EVERYWHERE, ids=name)
def test_every_include_of_ours_exists(path: Path) -> None:
    includes = QUOTED_INCLUDE.findall(path.read_text())
    missing = [include for include in includes if not any((root / include).is_file() for root in (CPP, path.parent))]
    assert not missing


@pytest.mark.parametrize("path", [path for path in EVERYWHERE if name(path) != "ocdl/parallel.hpp"], ids=name)
def test_only_parallel_hpp_knows_openmp(path: Path) -> None:
    assert not OPENMP.findall(COMMENT.sub("", path.read_text()))


def test_the_core_was_found() -> None:
    """The tests above hold something: there are files, and they include each other."""
    assert len(CORE) > 10
    assert sum(len(QUOTED_INCLUDE.findall(path.read_text())) for path in CORE) > 10


@pytest.mark.parametrize(
    ("path", "text", "allowed"),
    [
        ("sweep/adjoint.hpp", '#include "ocdl/sweep/integrator.hpp"\n#include "ocdl/types.hpp"', True),
        ("sweep/adjoint.hpp", '#include "ocdl/field/dense.hpp"\n#include <vector>', True),
        ("kernel/pack.hpp", '#include "ocdl/types.hpp"', True),
        ("thread_policy.hpp", '#include "ocdl/parallel.hpp"', True),
        ("parallel.hpp", '#include "ocdl/kernel/pack.hpp"', False),
        ("field/dense.hpp", '#include "ocdl/sweep/integrator.hpp"', False),
        ("kernel/pack.hpp", '  #  include "ocdl/tableau/tableau.hpp"', False),
        ("types.hpp", '#include "ocdl/field/dense.hpp"', False),
        ("sweep/adjoint.hpp", '#include "integrator.hpp"', False),
        ("sweep/adjoint.hpp", '#include "bindings/array.hpp"', False),
        ("misc/tools.hpp", "", False),
    ],
)
def test_the_arrow_itself(path: str, text: str, allowed: bool) -> None:
    assert (not violations(path, text)) == allowed
