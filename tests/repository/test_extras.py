"""Optional libraries are imported on demand only, and an error names what to install."""

from __future__ import annotations

import sys

import pytest
from bridged_problems import FIFTY
from problems import ACTIVATIONS, EXPLICIT, FIELDS, IMPLICIT
from subprocesses import run_python

import ocdl
from ocdl.interop.bridge import RETURNS

HEAVY = "{'torch', 'jax', 'onnx', 'skl2onnx', 'onnxruntime'} & {*sys.modules}"


def test_none_is_imported_with_ocdl() -> None:
    code = "import sys, ocdl, ocdl.plot, ocdl.cli; from ocdl import *; ocdl.ODEClassifier; ocdl.export_onnx"
    assert run_python(f"{code}; print({HEAVY})") == "set()"


@pytest.mark.parametrize(("library", "name"), [("torch", "PyTorch"), ("jax", "JAX")])
def test_a_missing_library_is_named(library: str, name: str) -> None:
    message = f"ocdl.{library} needs {name}, which is not installed: pip install 'ocdl[{library}]'"
    for call in (f"ocdl.{library}", f"import ocdl.{library}", f"from ocdl.{library} import *"):
        without = f"import sys; sys.modules['{library}'] = None; import ocdl"
        assert run_python(f"{without}\ntry:\n    {call}\nexcept ImportError as error: print(error)") == message


def test_a_broken_library_raises_its_own_error(tmp_path: object) -> None:
    code = f"""
import sys, pathlib
(pathlib.Path({str(tmp_path)!r}) / "torch.py").write_text("raise ImportError('libsomething.so is missing')")
sys.path.insert(0, {str(tmp_path)!r})
try:
    import ocdl.torch
except ImportError as error:
    print(error)
"""
    assert run_python(code) == "libsomething.so is missing"


def test_export_without_onnx(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    for module in [name for name in sys.modules if name.startswith("ocdl.interop.onnx_")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "onnx", None)
    net = ocdl.Network(2, 3)
    with pytest.raises(ImportError, match=r"needs onnx, which is not installed: pip install 'ocdl\[onnx\]'"):
        ocdl.export_onnx(f"{tmp_path}/net.onnx", net, net.init())
    model = ocdl.ODEClassifier(n_layers=2, max_iter=2, tol=1e9).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ImportError, match=r"needs onnx, which is not installed: pip install 'ocdl\[onnx\]'"):
        model.to_onnx(f"{tmp_path}/model.onnx")


def test_ocdl_torch_is_not_torch() -> None:
    """A module of ours that is called like theirs hides neither."""
    code = "import sys, ocdl; sys.modules['torch'] = None\nfor name in ('torch', 'jax'): assert name not in vars(ocdl)"
    assert run_python(f"{code}\nprint(hasattr(ocdl, 'tensorflow'))") == "False"


def test_the_fifty_networks_that_gradients_are_checked_on_are_of_every_kind() -> None:
    fields, tableaux, results = zip(*FIFTY, strict=True)
    assert set(fields) == set(FIELDS)
    assert set(tableaux) >= set(IMPLICIT)
    assert len(set(tableaux) & set(EXPLICIT)) > 5
    assert {returns for returns, _ in results} == set(RETURNS)
    assert {activation for _, activation in results} == set(ACTIVATIONS)
