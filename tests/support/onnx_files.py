"""Run files in ONNX and compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx: Any = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'ocdl[onnx]'")
runtime: Any = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install onnxruntime")

TOLERANCE = {"float64": 1e-13, "float32": 1e-5}


def run(path: Path | bytes, X: np.ndarray) -> list[np.ndarray]:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(path if isinstance(path, bytes) else str(path), options)
    actual: list[np.ndarray] = session.run(None, {"X": X})
    return actual


def checked(path: Path) -> Any:
    """The model, which the checker and the strict inference of shapes have passed."""
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    return model


def error(actual: np.ndarray, expected: np.ndarray) -> float:
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    return float(np.abs(actual - expected).max() / np.abs(expected).max())
