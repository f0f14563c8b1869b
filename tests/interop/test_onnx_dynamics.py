"""The fields of learned dynamical systems as files in ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_files import TOLERANCE, checked, error, runtime

import ocdl

pytestmark = pytest.mark.extras


@pytest.mark.parametrize("field", ["mlp", "polynomial"])
@pytest.mark.parametrize("has_inputs", [False, True])
@pytest.mark.parametrize("n_models", [1, 2])
def test_derivative(field: str, has_inputs: bool, n_models: int, tmp_path: Path) -> None:
    t = np.linspace(0, 4, 30)
    X, x = np.column_stack([5 + np.exp(-t), 1e3 * np.cos(t)]), np.sin(2 * t)[:, None]
    model: Any = ocdl.Dynamics(field=field, width=4, degree=2, max_iter=6, n_models=n_models, random_state=0)
    model.fit(X, 2 * t, inputs=x if has_inputs else None)
    model.to_onnx(tmp_path / "field.onnx")
    described = checked(tmp_path / "field.onnx").graph
    assert [one.name for one in described.input] == ["y", "x"][: 1 + has_inputs]
    session = runtime.InferenceSession(str(tmp_path / "field.onnx"))
    actual = session.run(None, {"y": X} | ({"x": x} if has_inputs else {}))[0]
    assert error(actual, model.derivative(X, x if has_inputs else None)) < 100 * TOLERANCE["float64"]
