"""What earlier releases wrote is read for ever, and gives what it gave then."""

from __future__ import annotations

import json
from typing import Any

import make_golden as golden
import numpy as np
import pytest

import ocdl
from ocdl import ODEClassifier
from ocdl.cli._models import load_classifier


def expected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((golden.FOLDER / f"{name}.json").read_text())
    return found


def assert_close(actual: Any, wanted: Any, dtype: Any = np.float64) -> None:
    """To 1e-12 of the largest number, in single precision to 100 of its roundoffs: processors round differently."""
    tolerance = 1e-12 if dtype == np.float64 else 100 * float(np.finfo(dtype).eps)
    wanted = np.asarray(wanted)
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


def test_every_file_has_its_line() -> None:
    assert {path.stem for path in golden.FOLDER.iterdir()} == set(golden.files())
    assert sum(path.stat().st_size for path in golden.FOLDER.iterdir()) < 200_000


@pytest.mark.parametrize("name", golden.MODELS)
def test_models(name: str) -> None:
    net, wanted = golden.MODELS[name], expected(f"model_{name}")
    loaded, u, metadata = ocdl.load(golden.FOLDER / f"model_{name}.ocdl")
    assert loaded == net
    assert loaded.tableau.name == net.tableau.name
    assert u.to_vector().tobytes() == golden.controls(net).to_vector().tobytes()
    assert metadata == {"classes": ["a", "b"], "accuracy": 0.5, "nothing": None}
    assert_close(loaded.predict(u, wanted["inputs"]), wanted["outputs"], net.dtype)


@pytest.mark.parametrize("name", golden.CHECKPOINTS)
def test_checkpoints(name: str) -> None:
    wanted = expected(f"checkpoint_{name}")
    result = golden.training(name, max_iter=golden.RESUMED, resume=golden.FOLDER / f"checkpoint_{name}.ocdl")
    dtype = result.controls.to_vector().dtype
    assert result.n_iter == golden.RESUMED
    assert result.history.loss[: golden.STORED + 1].tolist() == wanted["loss"][: golden.STORED + 1]
    assert_close(result.history.loss, wanted["loss"], dtype)
    assert_close(result.controls.to_vector(), wanted["controls"], dtype)


@pytest.mark.parametrize("name", golden.ESTIMATORS)
def test_estimators(name: str) -> None:
    wanted = expected(name)
    model = ODEClassifier.load(golden.FOLDER / f"{name}.ocdl")
    assert model.get_params() == golden.ESTIMATORS[name].get_params()
    assert model.classes_.tolist() == wanted["classes"]
    assert_close(model.predict_proba(wanted["inputs"]), wanted["outputs"])


def test_models_of_the_command_line() -> None:
    wanted, model = expected("command_line"), load_classifier(str(golden.FOLDER / "command_line.ocdl"))
    assert model.description == golden.command_line_model().description
    assert_close(model.probabilities(np.array(wanted["inputs"])), wanted["outputs"])
    assert model.predict(np.array(wanted["inputs"])) == wanted["classes"]
