"""What earlier releases wrote is read for ever, and gives what it gave then."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import make_golden as golden
import numpy as np
import pandas as pd
import pytest

import ocdl
from ocdl import ODEClassifier, ODERegressor
from ocdl.tables.columns import Feature
from ocdl.tables.encoding import Encoding, Target
from ocdl.tables.sheet import TableWarning


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


@pytest.mark.parametrize("name", golden.REGRESSORS)
def test_regressors(name: str) -> None:
    wanted = expected(name)
    model = ODERegressor.load(golden.FOLDER / f"{name}.ocdl")
    assert model.get_params() == golden.REGRESSORS[name].get_params()
    assert_close(model.predict(wanted["inputs"]), wanted["outputs"])


def test_tables() -> None:
    wanted, model = expected("table"), ocdl.load_model(golden.FOLDER / "table.ocdl")
    assert model.feature_names == ["length", "colour", "seen"]
    assert model.classes_.tolist() == ["cheap", "dear"]
    frame = pd.read_csv(io.StringIO(golden.TABLE))
    assert_close(model.predict_proba(frame), wanted["outputs"])
    assert model.predict(frame).tolist() == wanted["classes"]
    unseen = frame.assign(colour="black", seen=None, length=np.nan)[["seen", "colour", "length"]]
    with pytest.warns(TableWarning, match="'black'"):
        assert len(np.unique(model.predict_proba(unseen), axis=0)) == 1


def test_models_of_the_command_line() -> None:
    """Version 1 had a kind of file for them alone, without an estimator in it."""
    wanted, model = expected("command_line"), ocdl.load_model(golden.FOLDER / "command_line.ocdl")
    length, width = Feature("length", 0, mean=0.5, scale=2.0), Feature("width", 1, mean=-0.5, scale=1.0)
    assert model.encoding == Encoding((length, width), 3, named=True, target=Target("is it?", 2))
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.estimator.loss == "cross_entropy"
    assert_close(model.predict_proba(np.array(wanted["inputs"])), wanted["outputs"])
    assert model.predict(np.array(wanted["inputs"])).tolist() == wanted["classes"]
    frame = pd.DataFrame(wanted["inputs"], columns=["length", "width"])
    assert model.predict(frame[["width", "length"]]).tolist() == wanted["classes"]


def test_old_and_new_models_of_the_command_line_are_one_kind(tmp_path: Path) -> None:
    model, wanted = ocdl.load_model(golden.FOLDER / "command_line.ocdl"), expected("command_line")
    model.save(tmp_path / "new.ocdl")
    again = ocdl.load_model(tmp_path / "new.ocdl")
    assert again.encoding == model.encoding
    assert again.estimator.get_params() == model.estimator.get_params()
    assert_close(again.predict_proba(np.array(wanted["inputs"])), wanted["outputs"])
