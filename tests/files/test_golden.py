"""The golden files are read, and give the results that stand beside them."""

from __future__ import annotations

import io
import json
from typing import Any

import make_golden as golden
import numpy as np
import pandas as pd
import pytest
from checkpoints import resume_copy

import ocdl
from ocdl.tables.frame import TableWarning


def expected(name: str) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((golden.FOLDER / f"{name}.json").read_text())
    return results


def assert_close(actual: Any, reference: Any) -> None:
    """Compare to 1e-12 of the largest number, as processors round differently."""
    reference = np.asarray(reference)
    np.testing.assert_allclose(actual, reference, rtol=0, atol=1e-12 * np.abs(reference).max())


def test_there_is_one_file_of_each_kind() -> None:
    assert {path.stem for path in golden.FOLDER.iterdir()} == set(golden.WRITERS)
    assert sum(path.stat().st_size for path in golden.FOLDER.iterdir()) < 50_000


def test_network() -> None:
    reference = expected("network")
    net, u, metadata = ocdl.load(golden.FOLDER / "network.ocdl")
    assert net == golden.NETWORK
    assert net.tableau.name == golden.METHOD.name
    assert u.to_vector().tobytes() == golden.controls(net).to_vector().tobytes()
    assert metadata == golden.METADATA
    assert_close(net.predict(u, reference["inputs"]), reference["outputs"])


@pytest.mark.filterwarnings("ignore:resume. the checkpoint .* was written with the core:RuntimeWarning")
def test_checkpoint() -> None:
    reference = expected("checkpoint")
    result = golden.training(max_iter=golden.RESUMED, checkpoint=resume_copy(golden.FOLDER / "checkpoint.ocdl"))
    assert result.n_iter == golden.RESUMED
    assert result.history.loss[: golden.STORED + 1].tolist() == reference["loss"][: golden.STORED + 1]
    assert_close(result.history.loss, reference["loss"])
    assert_close(result.controls.to_vector(), reference["controls"])


def test_classifier() -> None:
    reference, model = expected("classifier"), ocdl.load(golden.FOLDER / "classifier.ocdl")
    assert model.get_params() == golden.CLASSIFIER.get_params()
    assert model.classes_.tolist() == reference["classes"]
    assert_close(model.predict_proba(reference["inputs"]), reference["outputs"])


def test_regressor() -> None:
    reference, model = expected("regressor"), ocdl.load(golden.FOLDER / "regressor.ocdl")
    assert model.get_params() == golden.REGRESSOR.get_params()
    assert_close(model.predict(reference["inputs"]), reference["outputs"])


def test_dynamics() -> None:
    reference, model = expected("dynamics"), ocdl.load(golden.FOLDER / "dynamics.ocdl", ocdl.Dynamics)
    assert repr(model.get_params()) == repr(golden.DYNAMICS.get_params())
    X, times, inputs = golden.decay()
    assert_close(model.simulate(X[0], times, inputs=inputs), reference["outputs"])
    assert model.equations() == reference["equations"]


def test_table() -> None:
    reference, model = expected("table"), ocdl.load(golden.FOLDER / "table.ocdl")
    assert model.feature_names == ["length", "colour", "seen"]
    assert model.classes_.tolist() == ["cheap", "dear"]
    frame = pd.read_csv(io.StringIO(golden.TABLE))
    assert_close(model.predict_proba(frame), reference["outputs"])
    assert model.predict(frame).tolist() == reference["classes"]
    unseen = frame.assign(colour="black", seen=None, length=np.nan)[["seen", "colour", "length"]]
    with pytest.warns(TableWarning, match="'black'"):
        assert len(np.unique(model.predict_proba(unseen), axis=0)) == 1
