"""Fitted dynamical systems in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from dynamical_systems import irregular_series, oscillator

import ocdl
from ocdl.network import files as network_files


@pytest.fixture(scope="module")
def model() -> ocdl.Dynamics:
    X, times = irregular_series(oscillator, noise=0.01, count=5)
    return ocdl.Dynamics(field="polynomial", linear=np.eye(2), n_models=2, random_state=0).fit(X, times)


def test_a_file_gives_the_same_bits(model: ocdl.Dynamics, tmp_path: Path) -> None:
    ocdl.save(tmp_path / "a.ocdl", model)
    again = ocdl.load(tmp_path / "a.ocdl", ocdl.Dynamics)
    times = np.linspace(0, 5, 7)
    for quantiles in (None, (0.2, 0.8)):
        first, second = (one.simulate([1.0, 0.0], times, quantiles=quantiles) for one in (model, again))
        assert first.tobytes() == second.tobytes()
    for name in ("coefficients_", "coefficient_errors_", "noise_", "max_step_", "n_iter_", "validation_error_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert again.equations() == model.equations()
    assert repr(again.get_params()) == repr(model.get_params() | {"linear": [[1.0, 0.0], [0.0, 1.0]]})
    X, clock = irregular_series(oscillator, count=1)
    np.testing.assert_array_equal(again.initial_state(X, clock), model.initial_state(X, clock))


def test_other_types_are_refused(model: ocdl.Dynamics, tmp_path: Path) -> None:
    model.save(tmp_path / "a.ocdl")
    with pytest.raises(ocdl.ModelFileError, match="holds Dynamics, not SavedNetwork"):
        ocdl.load(tmp_path / "a.ocdl", ocdl.SavedNetwork)
    net = ocdl.Network(2, 3)
    ocdl.save(tmp_path / "b.ocdl", net, net.init(0))
    with pytest.raises(ocdl.ModelFileError, match="holds SavedNetwork, not Dynamics"):
        ocdl.load(tmp_path / "b.ocdl", ocdl.Dynamics)


@pytest.mark.parametrize("what", ["array", "shape", "nan", "scale", "names", "kind", "parameters"])
def test_forged_files_are_refused(model: ocdl.Dynamics, tmp_path: Path, what: str) -> None:
    path = tmp_path / "a.ocdl"
    model.save(path)
    (net, u, metadata), _, _, others = network_files.read(path)
    spec, arrays = dict(metadata["estimator"]), {name: np.array(array) for name, array in others.items()}
    if what == "array":
        del arrays["1.noise"]
    elif what == "shape":
        arrays["0.theta"] = arrays["0.theta"][1:]
    elif what == "nan":
        arrays["0.theta"][0] = np.nan
    elif what == "scale":
        arrays["0.scale"][0] = 0.0
    elif what == "names":
        spec["state_names"] = ["a"]
    elif what == "kind":
        spec["kind"] = "Else"
    else:
        spec["parameters"] = {}
    network_files.write(path, net, u, {"estimator": spec}, arrays)
    with pytest.raises(ocdl.ModelFileError):
        ocdl.load(path)
