"""`load` returns the contents of a file, `save` writes them, and `expected` checks their type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ocdl
from ocdl.tables.encoding import plain_encoding

X, y = ocdl.datasets.make_donut1d(40, random_state=0)
KINDS = (ocdl.SavedNetwork, ocdl.ODEClassifier, ocdl.ODERegressor, ocdl.TableModel)


@pytest.fixture(scope="module")
def fitted() -> dict[type, Any]:
    settings: dict[str, Any] = {"n_layers": 2, "max_iter": 5, "tol": 10, "random_state": 0}
    classifier = ocdl.ODEClassifier(**settings).fit(X, y)
    return {
        ocdl.ODEClassifier: classifier,
        ocdl.ODERegressor: ocdl.ODERegressor(**settings).fit(X, X),
        ocdl.TableModel: ocdl.TableModel(classifier, plain_encoding(2)),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_load_returns_the_saved_object(kind: type, fitted: dict[type, Any], tmp_path: Path) -> None:
    path = tmp_path / "model.ocdl"
    if kind is ocdl.SavedNetwork:
        net = ocdl.Network(2, 3)
        ocdl.save(path, net, net.init(0), note="x")
    else:
        ocdl.save(path, fitted[kind])
    for loaded in (ocdl.load(path), ocdl.load(path, kind), ocdl.load(path, expected=object)):
        assert type(loaded) is kind
        if kind is not ocdl.SavedNetwork:
            np.testing.assert_array_equal(loaded.predict(X), fitted[kind].predict(X))
    for other in set(KINDS) - {kind}:
        with pytest.raises(ocdl.ModelFileError, match=f"holds {kind.__name__}, not {other.__name__}"):
            ocdl.load(path, other)


def test_wrong_arguments_are_named(fitted: dict[type, Any], tmp_path: Path) -> None:
    path, net = tmp_path / "model.ocdl", ocdl.Network(2, 3)
    model = fitted[ocdl.ODEClassifier]
    for call, message in (
        (lambda: ocdl.save(path, net), "u is missing"),
        (lambda: ocdl.save(path, model, net.init(0)), "only a Network has u and metadata"),
        (lambda: ocdl.save(path, model, note="x"), "only a Network has u and metadata"),
        (lambda: ocdl.save(path, ocdl.ODEClassifier), "net must be a Network, or a fitted"),
        (lambda: ocdl.save(path, pd.DataFrame()), "net must be a Network, or a fitted"),
        (lambda: ocdl.load(path, "ODEClassifier"), "expected must be a type"),
    ):
        with pytest.raises(TypeError, match=message):
            call()
    assert not path.exists()
