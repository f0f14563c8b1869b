"""The installed package: its core, the choice between the cores, and the stub."""

import ast
import doctest
import importlib
import importlib.util
import pkgutil
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from subprocesses import run_python

import ocdl
from ocdl import _core, _cpu, _load_core
from ocdl.model import losses
from ocdl.model.fields import FIELDS_WITHOUT_OPTION
from ocdl.model.penalties import PENALTIES
from ocdl.training import optimisers

ROOT = Path(__file__).parents[2]
BUILT = _load_core.built_variants()
USABLE = tuple(name for name in BUILT if _cpu.supports(name))
VECTOR_BITS = {"avx2": 256, "avx512": 512}


def test_version_is_the_one_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert ocdl.__version__ == project["version"]


def test_build_info_describes_the_core_in_use() -> None:
    info = ocdl.build_info()
    assert info["variant"] in USABLE
    assert info["eigen"].startswith("3.4")
    assert info["vector_bits"] == VECTOR_BITS.get(info["variant"], info["vector_bits"])
    assert info["compiler"]
    assert info["openmp"] == "none" or info["openmp"].isdigit()


def test_the_core_has_one_name() -> None:
    assert sys.modules["ocdl._core"] is _core
    assert importlib.import_module("ocdl._core") is _core
    assert _core.__name__ == "ocdl._core"


def test_a_source_build_holds_baseline_and_the_best_of_its_machine() -> None:
    assert "baseline" in BUILT
    assert _cpu.supports("baseline")
    assert not _cpu.supports("pentium")
    assert _cpu.best_variant() in BUILT


# ---- the choice ----


def test_the_fastest_usable_core_is_chosen() -> None:
    assert run_python("import ocdl; print(ocdl.build_info()['variant'])", OCDL_CORE="") == USABLE[-1]


@pytest.mark.parametrize("variant", USABLE)
def test_environment_pins_a_core(variant: str) -> None:
    code = "import sys, ocdl; print(ocdl.build_info()['variant'], *(m for m in sys.modules if 'ocdl._core_' in m))"
    assert run_python(code, OCDL_CORE=variant).split() == [variant, f"ocdl._core_{variant}"]


def test_unknown_core_is_refused_with_a_list() -> None:
    message = "ImportError: OCDL_CORE=pentium is not a core; known are baseline, avx2, avx512"
    with pytest.raises(RuntimeError, match=f"{message}; usable here: {', '.join(USABLE)}"):
        run_python("import ocdl", OCDL_CORE="pentium")


@pytest.mark.parametrize(
    ("requested", "built", "supported", "chosen"),
    [
        (None, ["baseline", "avx2"], ["baseline", "avx2", "avx512"], "avx2"),
        (None, ["baseline", "avx2", "avx512"], ["baseline"], "baseline"),
        ("", ["baseline", "avx2"], ["baseline", "avx2"], "avx2"),
        ("baseline", ["baseline", "avx2"], ["baseline", "avx2"], "baseline"),
    ],
)
def test_choice(requested: str | None, built: list[str], supported: list[str], chosen: str) -> None:
    assert _load_core.choose(requested, built, supported) == chosen


@pytest.mark.parametrize(
    ("requested", "built", "supported", "message"),
    [
        ("avx512", ["baseline", "avx2"], ["baseline", "avx2"], "was not built .* usable here: baseline, avx2"),
        ("avx512", ["baseline", "avx512"], ["baseline"], "needs instructions .* usable here: baseline"),
        ("AVX2", ["baseline", "avx2"], ["baseline", "avx2"], "is not a core; known are baseline, avx2, avx512"),
        (None, [], ["baseline"], "no compiled core .*built: none; the CPU supports: baseline"),
    ],
)
def test_refusal(requested: str | None, built: list[str], supported: list[str], message: str) -> None:
    with pytest.raises(ImportError, match=message):
        _load_core.choose(requested, built, supported)


# ---- the binaries: what they contain, not what they are called ----


def disassembly(module: str) -> str:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    objdump = shutil.which("objdump")
    assert objdump is not None, "objdump is part of binutils, which every Linux compiler brings"
    command = [objdump, "-d", "--no-show-raw-insn", spec.origin]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


on_linux_x86 = pytest.mark.skipif((sys.platform, platform.machine()) != ("linux", "x86_64"), reason="reads x86 code")


@on_linux_x86
@pytest.mark.parametrize(("variant", "register"), [("avx2", "%ymm"), ("avx512", "%zmm")])
def test_vector_variants_contain_fused_multiply_adds(variant: str, register: str) -> None:
    if variant not in BUILT:
        assert _cpu.best_variant() != variant
        pytest.skip(f"this installation was built without {variant}")
    fused = [line for line in disassembly(f"ocdl._core_{variant}").splitlines() if re.search(r"\bvfn?m(add|sub)", line)]
    assert sum(register in line and line.split("\t")[-1].split()[0].endswith("pd") for line in fused) > 100


@on_linux_x86
@pytest.mark.parametrize("module", ["ocdl._core_baseline", "ocdl._cpu"])
def test_portable_modules_contain_no_avx(module: str) -> None:
    assert not re.search(r"%[yz]mm|\tv(mov|add|mul|sub|fmadd)[a-z0-9]*[ps][sd]\b", disassembly(module))


# ---- the stub and the docstrings ----

OPTIMISERS = [kind.__name__ for kind in optimisers.SINGLE_OPTIMISERS]


@pytest.mark.parametrize(
    ("documented", "registered"),
    [
        (ocdl.Network, _core.activations()),
        (ocdl.Network, _core.fields()),
        (ocdl.ODEClassifier, _core.activations()),
        (ocdl.ODEClassifier, FIELDS_WITHOUT_OPTION),
        (ocdl.ODEClassifier, OPTIMISERS),
        (ocdl.train, OPTIMISERS),
        (ocdl.Objective, losses.LOSSES),
        (ocdl.Objective, [kind.__name__ for kind in PENALTIES.values()]),
    ],
)
def test_docstrings_name_all_registered_items(documented: Any, registered: Iterable[str]) -> None:
    assert [name for name in registered if not re.search(rf"\b{name}\b", documented.__doc__)] == []


def parameters_in_stub() -> dict[str, list[list[str]]]:
    """Return the parameter names of every overload of every function, method and property in the stub."""
    actual: dict[str, list[list[str]]] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef) and not node.args.vararg:  # *args: a class without a constructor
                names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                actual.setdefault(prefix + node.name, []).append([name for name in names if name != "self"])

    visit(ast.parse((ROOT / "python/ocdl/_core.pyi").read_text()).body, "")
    return actual


def parameters_in_binary() -> dict[str, list[list[str]]]:
    """Return the same from the signatures that pybind11 writes into the docstrings."""
    actual: dict[str, list[list[str]]] = {}

    def visit(owner: object, prefix: str) -> None:
        for name, member in vars(owner).items():
            if isinstance(member, type) and member.__module__ == "ocdl._core":
                visit(member, f"{prefix}{name}.")
            elif isinstance(member, property):
                actual[prefix + name] = [[]]
            elif callable(member) or isinstance(member, staticmethod):
                described = getattr(member, "__func__", member).__doc__ or ""
                signatures = re.findall(rf"^(?:\d+\. )?{name}\((.*)\) -> ", described, re.MULTILINE)
                concrete = [signature for signature in signatures if signature != "*args, **kwargs"]
                if concrete:
                    actual[prefix + name] = [names_in_signature(signature) for signature in concrete]

    visit(_core, "")
    return actual


def names_in_signature(signature: str) -> list[str]:
    flat = re.sub(r"'[^']*'", "", signature)
    while (shorter := re.sub(r"\[[^\[\]]*\]|\([^()]*\)", "", flat)) != flat:
        flat = shorter
    names = [part.split(":")[0].split("=")[0].strip() for part in flat.split(",")]
    return [name for name in names if name and name not in {"self", "*", "/"}]


def test_stub_and_binary_agree_on_every_parameter() -> None:
    stub, binary = parameters_in_stub(), parameters_in_binary()
    assert "build_info" in binary
    assert sorted(binary.keys() - stub.keys()) == [], "in the binary, not in _core.pyi"
    assert sorted(stub.keys() - binary.keys()) == [], "in _core.pyi, not in the binary"
    assert stub == binary


MODULES = ["ocdl", *sorted(module.name for module in pkgutil.walk_packages(ocdl.__path__, "ocdl."))]
WITH_DOCSTRINGS = [name for name in MODULES if not re.search(r"\._core|\._cpu|\.__main__", name)]


@pytest.mark.parametrize("module", WITH_DOCSTRINGS)
def test_examples_in_docstrings_run(module: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    try:
        imported = importlib.import_module(module)
    except ImportError as error:
        is_extra = error.name in ("torch", "jax") or "pip install 'ocdl[" in str(error)
        if not is_extra:
            raise
        pytest.skip(str(error))
    assert doctest.testmod(imported, optionflags=flags).failed == 0
