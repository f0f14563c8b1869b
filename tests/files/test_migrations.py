"""Files of older versions are changed to the present one, a version at a time; newer files are refused.

There is one version so far, so that these tests make up others.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz_files import packed, unpacked

import ocdl
from ocdl import Network, ODEClassifier
from ocdl.estimator import files as estimator_files
from ocdl.network import files as network_files
from ocdl.storage import container
from ocdl.storage.container import FORMAT_VERSION, ModelFileError, read_container, write_container
from ocdl.training import checkpoint

NET = Network.preset("odenet+simplex", 2, 3)
X = np.random.default_rng(0).normal(size=(40, 2))
Y = (X[:, 0] > X[:, 1]).astype(int)


def train(**arguments: Any) -> ocdl.Result:
    return ocdl.train(NET, NET.init(random_state=0), X, Y, **{"max_iter": 12, "tol": 0.0} | arguments)


def write_version(version: int, path: Path, kind: str, description: Any, arrays: Any) -> None:
    """Write a container as a release with this version of the format does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(container, "FORMAT_VERSION", version)
        write_container(path, kind, description, arrays)


# ---- every kind of file goes through its migrations ----


@pytest.fixture
def next_version(monkeypatch: pytest.MonkeyPatch) -> int:
    """Let the present version be the next one, in which every kind of file has changed."""

    def rename_layers(description: dict[str, Any], arrays: dict[str, Any]) -> None:
        description["network"]["n_layers"] = description["network"].pop("depth")
        arrays["K"] = arrays.pop("kernel")

    def rename_parameters(metadata: dict[str, Any], arrays: dict[str, Any]) -> None:
        metadata["estimator"]["parameters"] = metadata["estimator"].pop("settings")

    def rename_seed(description: dict[str, Any], arrays: dict[str, Any]) -> None:
        description["seed"] = description.pop("random_state")
        arrays["records"] = arrays.pop("history")

    monkeypatch.setattr(container, "FORMAT_VERSION", FORMAT_VERSION + 1)
    monkeypatch.setitem(network_files.MIGRATIONS, FORMAT_VERSION, rename_layers)
    monkeypatch.setitem(estimator_files.MIGRATIONS, FORMAT_VERSION, rename_parameters)
    monkeypatch.setitem(checkpoint.MIGRATIONS, FORMAT_VERSION, rename_seed)
    return FORMAT_VERSION + 1


def make_older(path: Path) -> None:
    """Change a model file to the made-up version before the present one."""
    description, arrays, _ = read_container(path, "model")
    description["network"]["depth"] = description["network"].pop("n_layers")
    arrays["kernel"] = arrays.pop("K")
    if "estimator" in description["metadata"]:
        estimator = description["metadata"]["estimator"]
        estimator["settings"] = estimator.pop("parameters")
    write_version(FORMAT_VERSION, path, "model", description, arrays)


def test_a_network_of_an_older_version_is_read(next_version: int, tmp_path: Path) -> None:
    path, u = tmp_path / "m", NET.init(random_state=0)
    ocdl.save(path, NET, u)
    assert read_container(path, "model").version == next_version
    make_older(path)
    assert read_container(path, "model").version == FORMAT_VERSION
    model = ocdl.load(path)
    assert model.network == NET
    assert np.array_equal(model.controls.to_vector(), u.to_vector())


def test_an_estimator_of_an_older_version_is_read(next_version: int, tmp_path: Path) -> None:
    path, model = tmp_path / "m", ODEClassifier(n_layers=3, max_iter=200, tol=1e-2, random_state=0).fit(X, Y)
    model.save(path)
    make_older(path)
    loaded = ocdl.load(path)
    assert loaded.get_params() == model.get_params()
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_a_checkpoint_of_an_older_version_resumes_bit_for_bit(next_version: int, tmp_path: Path) -> None:
    path, whole = tmp_path / "c", train()
    train(max_iter=7, checkpoint=path)
    description, arrays, _ = read_container(path, "checkpoint")
    description["random_state"] = description.pop("seed")
    arrays["history"] = arrays.pop("records")
    write_version(FORMAT_VERSION, path, "checkpoint", description, arrays)
    resumed = train(checkpoint=ocdl.Checkpoint(path, resume=True))
    assert np.array_equal(resumed.controls.to_vector(), whole.controls.to_vector())
    assert np.array_equal(resumed.history.loss, whole.history.loss)


# ---- the chain ----


def test_migrations_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of version n goes through those of n, n + 1, ..., and is what the present version would have written."""
    calls: list[int] = []

    def first(description: dict[str, Any], arrays: dict[str, Any]) -> None:
        calls.append(1)
        description["length"] = description.pop("size")
        arrays["b"] = arrays.pop("a")

    def second(description: dict[str, Any], arrays: dict[str, Any]) -> None:
        calls.append(2)
        description["length"] *= 100
        arrays["b"] = arrays["b"] * 2

    contents: dict[int, tuple[Any, Any]] = {
        1: ({"size": 3}, {"a": np.ones(2)}),
        2: ({"length": 3}, {"b": np.ones(2)}),
        3: ({"length": 300}, {"b": 2 * np.ones(2)}),
    }
    for version, (description, arrays) in contents.items():
        write_version(version, tmp_path / str(version), "model", description, arrays)
    monkeypatch.setattr(container, "FORMAT_VERSION", 3)
    for version in contents:
        calls.clear()
        actual = read_container(tmp_path / str(version), "model", {1: first, 2: second})
        assert calls == list(range(version, 3))
        assert (actual.description, actual.version) == ({"length": 300}, version)
        assert {name: array.tolist() for name, array in actual.arrays.items()} == {"b": [2.0, 2.0]}
    calls.clear()
    read_container(tmp_path / "1", "model", {2: lambda *_: calls.append(2)})  # version 1 to 2 changed nothing
    assert calls == [2]


@pytest.mark.parametrize(
    "error", [KeyError("x"), TypeError("x"), ValueError("x"), AttributeError("x"), RecursionError()]
)
def test_contents_that_a_migration_cannot_convert_are_malformed(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(description: dict[str, Any], arrays: dict[str, Any]) -> None:
        raise error

    write_version(1, tmp_path / "m", "model", {}, {"a": np.ones(2)})
    monkeypatch.setattr(container, "FORMAT_VERSION", 2)
    with pytest.raises(ModelFileError, match="is malformed: it does not follow version 1"):
        read_container(tmp_path / "m", "model", {1: fail})


@pytest.mark.parametrize("newer", [FORMAT_VERSION + 1, 77])
def test_a_newer_file_names_both_versions(newer: int, tmp_path: Path) -> None:
    path = tmp_path / "f"
    message = (
        f"was written by a newer ocdl: its format has version {newer}, this one reads {FORMAT_VERSION}; update ocdl"
    )
    train(max_iter=2, checkpoint=path)
    write_version(newer, path, "checkpoint", *read_container(path, "checkpoint")[:2])
    with pytest.raises(ModelFileError, match=message):
        train(checkpoint=ocdl.Checkpoint(path, resume=True))
    ocdl.save(path, NET, NET.init(0))
    write_version(newer, path, "model", *read_container(path, "model")[:2])
    with pytest.raises(ModelFileError, match=message):
        ocdl.load(path)


@pytest.mark.parametrize("version", ["0", "-1", "1.0", "01", "", "2 ", "x", "1" * 10, 2, None])
def test_versions_that_are_none(version: Any, tmp_path: Path) -> None:
    path = tmp_path / "m"
    ocdl.save(path, NET, NET.init(0))
    header, data = unpacked(path.read_bytes())
    header["__metadata__"]["format_version"] = version
    path.write_bytes(packed(json.dumps(header, separators=(",", ":")), data))
    with pytest.raises(ModelFileError, match="is malformed: its format_version must be a whole number"):
        ocdl.load(path)
