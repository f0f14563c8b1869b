"""The layer arrows: a file includes or imports from its own layer and those left of it, nothing else."""

import ast
import graphlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

CPP = Path(__file__).parents[2] / "cpp"
BASE = "base"  # the files directly in cpp/ocdl (types.hpp, parallel.hpp, thread_policy.hpp)
ARROW = (BASE, "kernel", "tableau", "field", "trajectory", "sweep", "objective", "evaluator", "optimiser")

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
    actual = []
    for include in QUOTED_INCLUDE.findall(text):
        if not include.startswith("ocdl/"):
            actual.append(f'{path_in_ocdl}: includes "{include}"; write it as "ocdl/<layer>/<file>"')
            continue
        other = layer_of(include.removeprefix("ocdl/"))
        if other not in ARROW[: ARROW.index(layer) + 1]:
            actual.append(f'{path_in_ocdl}: the layer {layer} may not include "{include}"')
    return actual


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
def test_openmp_is_used_in_parallel_hpp_only(path: Path) -> None:
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


# ---- Python ----

PACKAGE = Path(__file__).parents[2] / "python" / "ocdl"
COMPILED = ("_load_core", "_core", "_cpu")  # what chooses the core, and what it chooses from
FRONT = "ocdl"  # the package itself: its public names
ROOMS = (
    *("_core", "base", "storage", "distributed", "model", "depth", "analysis", "network", "data", "training"),
    *("datasets", "estimator", "dynamics"),
    *("tables", "files", "interop", "plot", "losses", "torch", "jax", FRONT, "page", "reproduce", "cli", "__main__"),
)
AGAINST_THE_ARROW = {  # imports inside of functions, each with its reason
    ("training/history.py", "ocdl.plot"): "History.plot is a shortcut to a picture; matplotlib is imported to draw it",
    (
        "estimator/base.py",
        "ocdl.interop.onnx_estimator",
    ): "to_onnx is a shortcut to a file; onnx is imported to write it",
    ("dynamics/learned.py", "ocdl.interop.onnx_dynamics"): "to_onnx is a shortcut to a file",
    ("estimator/base.py", "ocdl.interop.skl2onnx_converter"): "skl2onnx gets the converters from the estimators",
}
# scikit-learn, pandas, matplotlib or what an extra installs are in them
HEAVY = (
    *("ocdl.estimator", "ocdl.tables", "ocdl.interop", "ocdl.plot", "ocdl.torch", "ocdl.jax"),
    *("ocdl.dynamics", "ocdl.reproduce", "ocdl.cli._demo_page"),
)
MOST_FLAT_MODULES = 12


def module_of(path_in_package: str) -> str:
    """Return ``ocdl.model.flow`` for ``model/flow.py``, and ``ocdl.model`` for ``model/__init__.py``."""
    parts = ["ocdl", *path_in_package.removesuffix(".py").split("/")]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PYTHON = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
MODULES = {module_of(path) for path in PYTHON} | {f"ocdl.{name}" for name in COMPILED}


class Import(NamedTuple):
    module: str
    late: bool  # not at the top of the file: in a function, or for the type checker only


def imports_of(text: str) -> Iterator[Import]:
    """Yield what a file imports of ours, wherever it does; a name of a package that is a module is that module."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        late = node not in tree.body
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = "." * node.level + (node.module or "")
            members = [f"{package}.{alias.name}" for alias in node.names]
            names = [member if member in MODULES or node.level else package for member in members]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            names = [given.value for given in node.args[:1] if isinstance(given, ast.Constant)]
        else:
            continue
        yield from (Import(name, late) for name in names if str(name).split(".")[0] in ("", "ocdl"))


def room_of(module: str) -> str:
    """Return the room of a module like ``ocdl.model.flow``, or its own name where it stands in none."""
    name = [*module.split("."), FRONT][1]
    return "_core" if name in COMPILED else name


def python_violations(path_in_package: str, text: str) -> list[str]:
    """Return what the file imports against the arrow, or late without being heavy."""
    room = room_of(module_of(path_in_package))
    if room not in ROOMS:
        return [f"{path_in_package}: the room {room!r} is not part of the arrow {' -> '.join(ROOMS)}"]
    actual = []
    for module, late in imports_of(text):
        if module.startswith("."):
            actual.append(f"{path_in_package}: imports {module}; write it as ocdl.<room>.<module>")
        elif room_of(module) not in ROOMS[: ROOMS.index(room) + 1]:
            if not late or (path_in_package, module) not in AGAINST_THE_ARROW:
                actual.append(f"{path_in_package}: the room {room} may not import {module}")
        elif late and not module.startswith(HEAVY):
            actual.append(f"{path_in_package}: {module} is light; import it at the top of the file")
    return actual


@pytest.mark.parametrize("path", PYTHON)
def test_python_follows_the_arrow(path: str) -> None:
    assert not python_violations(path, (PACKAGE / path).read_text())


@pytest.mark.parametrize(("path", "module"), AGAINST_THE_ARROW)
def test_the_exceptions_are_needed(path: str, module: str) -> None:
    assert Import(module, late=True) in imports_of((PACKAGE / path).read_text())


def test_no_modules_import_each_other() -> None:
    """Within a room, too, there is an order, whether imports are at the top of a file or not."""
    graph = {
        module_of(path): {
            one.module
            for one in imports_of((PACKAGE / path).read_text())
            if (path, one.module) not in AGAINST_THE_ARROW and one.module != module_of(path)
        }
        for path in PYTHON
    }
    assert sum(map(len, graph.values())) > 100
    graphlib.TopologicalSorter(graph).prepare()  # which raises the cycle that it finds


def test_few_modules_are_flat() -> None:
    assert len([path for path in PYTHON if "/" not in path]) <= MOST_FLAT_MODULES


def test_every_folder_has_a_docstring() -> None:
    rooms = {path.split("/")[0] for path in PYTHON if "/" in path}
    assert rooms <= set(ROOMS)
    assert len(rooms) > 10
    for room in rooms:
        assert ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text()))


@pytest.mark.parametrize(
    ("path", "text", "allowed"),
    [
        ("model/flow.py", "from ocdl.model.controls import Controls\nfrom ocdl.base import validation", True),
        ("model/flow.py", "import numpy\nfrom ocdl import _core", True),
        ("depth/pruning.py", "from ocdl.model.flow import Flow", True),
        ("analysis/observed_order.py", "from ocdl.depth import refinement", True),
        ("cli/info.py", "import ocdl", True),
        ("cli/train.py", "def run():\n    from ocdl.estimator import ODEClassifier", True),
        ("__init__.py", "from ocdl.training.loop import train", True),
        ("training/history.py", "def plot():\n    from ocdl import plot", True),
        ("training/history.py", "from ocdl import plot", False),
        ("training/session.py", "def plot():\n    from ocdl import plot", False),
        ("model/flow.py", "from ocdl.network.facade import Network", False),
        ("model/flow.py", "from ocdl import network", False),
        ("model/flow.py", "from ocdl import Network", False),
        ("model/flow.py", "import ocdl", False),
        ("model/flow.py", "import ocdl.training.loop", False),
        ("model/flow.py", "import ocdl.training.loop as x, numpy", False),
        ("model/flow.py", "if TYPE_CHECKING:\n    from ocdl.network import Network", False),
        ("model/flow.py", "def f():\n    from ocdl.analysis.certificate import certify", False),
        ("model/flow.py", "class A:\n    def f(self):\n        import ocdl.depth", False),
        ("model/flow.py", "def f():\n    import_module('ocdl.plot')", False),
        ("model/flow.py", "importlib.import_module('ocdl.network')", False),
        ("model/flow.py", "from .controls import Controls", False),
        ("model/flow.py", "from . import controls", False),
        ("model/flow.py", "def f():\n    from ocdl.model.controls import Controls", False),
        ("depth/pruning.py", "from ocdl.analysis import taylor", False),
        ("page.py", "from ocdl.cli import main", False),
        ("storage/disk.py", "from ocdl.model.tableau import Tableau", False),
        ("misc/tools.py", "", False),
        ("tools.py", "", False),
    ],
)
def test_the_python_arrow_itself(path: str, text: str, allowed: bool) -> None:
    assert (not python_violations(path, text)) == allowed


def test_only_the_command_line_handles_signals() -> None:
    handlers = [path for path in PYTHON if "import signal" in (PACKAGE / path).read_text()]
    assert handlers == ["cli/_interrupts.py"]
