"""Files return what was saved, to the last bit, and refuse everything else; an old one stays until the new is whole."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from fuzz_files import (
    METADATA,
    METHOD,
    SMALL,
    controls,
    nested,
    refusal,
    sealed,
)
from problems import field_options

import ocdl
from ocdl import ModelFileError, Network, SavedNetwork, Tableau, load, save
from ocdl.model.architecture import FIELDS, PRESETS
from ocdl.network.files import network_from_dict, network_to_dict
from ocdl.storage.container import DEEPEST_NESTING, FORMAT_VERSION, LARGEST_HEADER, read_container, write_container

NETWORKS = [
    *(Network.preset(name, 2, 3) for name in PRESETS),
    *(Network(2, 2, tableau=name) for name in ocdl.tableaux()),
    *(Network(1, 2, activation=name) for name in ocdl._core.activations()),
    *(Network(2, 2, **field_options(name)) for name in FIELDS),
    Network(2, 2, tableau=METHOD, horizon=0.1 + 0.2),
    Network(2, 2, tableau=Tableau(METHOD.A, METHOD.b), stage_controls=True, augment=3, n_outputs=4, dtype="float32"),
    Network(3, 2, residual=False, stage_controls=True, n_outputs=2, horizon=5e-324),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.ocdl"


# ---- round trips ----


@pytest.mark.parametrize("net", NETWORKS, ids=repr)
def test_round_trip(net: Network, path: Path) -> None:
    u = controls(net)
    save(path, net, u)
    model = load(path)
    assert isinstance(model, SavedNetwork)
    assert model.network == net
    assert repr(model.network) == repr(net)
    assert [getattr(model.network.tableau, part).tobytes() for part in "Abc"] == [
        getattr(net.tableau, part).tobytes() for part in "Abc"
    ]
    assert model.controls.to_vector().dtype == net.dtype
    assert model.controls.to_vector().tobytes() == u.to_vector().tobytes()
    assert model.metadata == {}
    model.controls.W[...] = 1  # memory of their own
    assert net.predict(model.controls, np.zeros((2, net.n_features))).shape == (2, net.n_outputs)


@pytest.mark.parametrize("net", NETWORKS, ids=repr)
def test_networks_survive_json(net: Network) -> None:
    assert network_from_dict(json.loads(json.dumps(network_to_dict(net), allow_nan=False))) == net


def test_metadata_come_back(path: Path) -> None:
    save(path, SMALL[0], controls(SMALL[0]), **METADATA)
    assert load(path).metadata == METADATA
    assert list(load(path).metadata) == list(METADATA)
    assert str(load(path).metadata["extremes"]) == str(METADATA["extremes"])
    save(path, SMALL[0], controls(SMALL[0]), pair=(1, 2.5), size=np.float64(0.5))
    assert load(path).metadata == {"pair": [1, 2.5], "size": 0.5}


def test_containers_hold_all_their_types(path: Path) -> None:
    arrays = {
        "doubles": np.linspace(0, 1, 7),
        "transposed": np.arange(6.0, dtype=np.float32).reshape(2, 3).T,
        "foreign order": np.arange(4.0).astype(">f8"),
        "counts": np.array([-1, 2**62]),
        "state": np.array([2**64 - 1], dtype=np.uint64),
        "number": np.array(3.5),
        "none": np.zeros((0, 3)),
    }
    write_container(path, "checkpoint", {"iteration": 3}, arrays)
    description, actual, version = read_container(path, "checkpoint")
    assert version == FORMAT_VERSION
    assert description == {"iteration": 3}
    assert actual.keys() == arrays.keys()
    for name, array in actual.items():
        assert array.dtype.isnative
        assert array.dtype == arrays[name].dtype.newbyteorder("=")
        assert array.shape == arrays[name].shape
        np.testing.assert_array_equal(array, arrays[name])


def test_other_programs_can_read_the_arrays(path: Path) -> None:
    net = NETWORKS[0]
    u = controls(net)
    save(path, net, u)
    actual = safetensors.numpy.load_file(path)
    assert sorted(actual) == ["K", "W", "b", "h", "mu"]
    for name, array in actual.items():
        np.testing.assert_array_equal(array, getattr(u, name))
    with safetensors.safe_open(path, "np") as file:
        metadata = file.metadata()
    assert json.loads(metadata["description"])["network"]["n_layers"] == 3
    assert (metadata["format"], metadata["format_version"], metadata["kind"]) == ("ocdl", str(FORMAT_VERSION), "model")


def test_equal_models_make_equal_files(tmp_path: Path) -> None:
    for i in range(10):
        save(tmp_path / str(i), NETWORKS[0], controls(NETWORKS[0]), **METADATA)
    assert len({file.read_bytes() for file in tmp_path.iterdir()}) == 1


def test_the_digest_is_that_of_the_file_with_zeros_in_its_place(path: Path) -> None:
    save(path, SMALL[0], controls(SMALL[0]), **METADATA)
    data = path.read_bytes()
    assert sealed(data) == data
    with safetensors.safe_open(path, "np") as file:
        digest = file.metadata()["sha256"]
    assert data.count(digest.encode()) == 1
    assert hashlib.sha256(data.replace(digest.encode(), b"0" * 64)).hexdigest() == digest


# ---- what cannot be saved ----


class Text:
    """A value that JSON cannot hold."""


def circular() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (float("nan"), ValueError, r"metadata\['a'\] must be finite, got nan"),
        ([1.0, float("inf")], ValueError, r"metadata\['a'\]\[1\] must be finite, got inf"),
        ({"b": Text()}, TypeError, r"metadata\['a'\]\['b'\] must be text, a number, .* got Text$"),
        ({1: 2}, TypeError, r"metadata\['a'\] must have text as keys, got 1 \(int\)"),
        (np.zeros(2), TypeError, r"metadata\['a'\] must be text, .* got ndarray; .tolist\(\) converts it"),
        (np.float32(1), TypeError, r"metadata\['a'\] must be text, .* got float32; .tolist\(\) converts it"),
        (b"bytes", TypeError, r"metadata\['a'\] must be text, .* got bytes$"),
        (1j, TypeError, r"metadata\['a'\] must be text, .* got complex$"),
        ({1, 2}, TypeError, r"metadata\['a'\] must be text, .* got set$"),
        (10**5000, ValueError, r"metadata\['a'\] must have at most 1000 digits"),
        (circular(), ValueError, r"metadata\['a'\]\[0\].* is nested more than 32 deep, or contains itself"),
        ("x" * LARGEST_HEADER, ValueError, "the description makes a header of 10[0-9]* bytes; 1048576 are accepted"),
        ([0] * 200_000, ValueError, "the description has more than 100000 texts, commas and brackets"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_metadata_that_a_file_cannot_hold(path: Path, value: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        save(path, SMALL[0], controls(SMALL[0]), a=value)
    assert not path.exists()


@pytest.mark.parametrize("name", ["estimator", "table"])
def test_names_of_fitted_models_are_no_metadata(name: str, path: Path) -> None:
    with pytest.raises(ValueError, match=f"metadata must not have the name '{name}'"):
        save(path, SMALL[0], controls(SMALL[0]), **{name: 1})
    assert not path.exists()


def test_whatever_can_be_saved_can_be_loaded(path: Path) -> None:
    deepest = nested(DEEPEST_NESTING - 2)  # inside of the description and the metadata
    save(path, SMALL[0], controls(SMALL[0]), a=deepest, b=["\N{GRINNING FACE}"] * 30_000, c=['"'] * 10_000)
    assert load(path).metadata["a"] == deepest
    with pytest.raises(ValueError, match="is nested more than 32 deep"):
        save(path, SMALL[0], controls(SMALL[0]), a=[deepest])
    for length in range(LARGEST_HEADER - 1200, LARGEST_HEADER, 16):
        try:
            save(path, SMALL[0], controls(SMALL[0]), a="x" * length)
        except ValueError:
            assert length > LARGEST_HEADER - 1200  # not the first
            break
        assert load(path).metadata["a"] == "x" * length


def test_wrong_arguments(path: Path) -> None:
    net = SMALL[0]
    u = controls(net)
    with pytest.raises(TypeError, match=r"net must be a Network, or a fitted .*, got Controls"):
        save(path, u, net)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="u must be Controls"):
        save(path, net, u.to_vector())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="u does not fit the network"):
        save(path, net, NETWORKS[0].init(random_state=0))
    with pytest.raises(TypeError, match="not int"):
        save(0, net, u)  # type: ignore[arg-type]
    u.mu[0] = np.nan
    with pytest.raises(ValueError, match=r"u\.mu\[0\] is nan; all of u\.mu must be finite"):
        save(path, net, u)
    with pytest.raises(TypeError, match="x must have dtype float64, float32, int64 or uint64, got int8"):
        write_container(path, "model", {}, {"x": np.zeros(2, np.int8)})
    with pytest.raises(TypeError, match="x must be an array, got list"):
        write_container(path, "model", {}, {"x": [1.0]})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="arrays must have names in ASCII other than '__metadata__', got 'é'"):
        write_container(path, "model", {}, {"é": np.zeros(2)})
    with pytest.raises(ValueError, match="kind must be one of 'model', 'checkpoint', got 'pudding'"):
        write_container(path, "pudding", {}, {})
    assert not list(path.parent.iterdir())


# ---- damage ----


@pytest.mark.parametrize("net", SMALL, ids=repr)
def test_every_changed_byte_is_noticed(net: Network, path: Path) -> None:
    save(path, net, controls(net))
    with open(path, "r+b", buffering=0) as file:
        for position, byte in enumerate(path.read_bytes()):
            for other in (byte ^ 0x01, byte ^ 0x80, byte ^ 0xFF, byte):
                file.seek(position)
                file.write(bytes([other]))
                if other != byte:
                    refusal(path)
    load(path)


@pytest.mark.parametrize("net", SMALL, ids=repr)
def test_every_truncation_is_noticed(net: Network, path: Path) -> None:
    save(path, net, controls(net))
    data = path.read_bytes()
    for length in reversed(range(len(data))):
        os.truncate(path, length)
        assert refusal(path).startswith("is truncated")
    for extra in (b"\0", b"x" * 8, data):
        path.write_bytes(data + extra)
        assert refusal(path).startswith(f"is damaged: it has {len(data + extra)} bytes where its header describes")


def test_files_of_others_are_told_apart(path: Path) -> None:
    safetensors.numpy.save_file({"x": np.zeros(2)}, path)
    assert refusal(path) == "is not an ocdl file: its header does not give ocdl as its format"
    safetensors.numpy.save_file({"x": np.zeros(2)}, path, {"format": "pt"})
    assert refusal(path) == "is not an ocdl file: its header does not give ocdl as its format"
    np.save(path.with_suffix(".npy"), np.zeros(2))
    assert refusal(path.with_suffix(".npy")) == "is not an ocdl file: it looks like an NPY file of NumPy"
    path.write_bytes(pickle.dumps(SMALL[0]))
    assert refusal(path) == "is not an ocdl file: it looks like a pickle"
    for text, look in {
        "a,b\n1,2\n3,4\n": "text with commas, as tables have them",
        "\ufeffGröße\tb\n1\t2\n": "text with tabs, as tables have them",
        '{"format": "ocdl"}': "text in JSON",
        "<!DOCTYPE html>": "text in HTML or XML",
        "ä" * 3000: "text",
    }.items():
        path.write_text(text, encoding="utf-8")
        assert refusal(path) == f"is not an ocdl file: it looks like {look}"
    path.write_bytes(b"PAR1" + bytes(range(100, 200)))
    assert refusal(path) == "is not an ocdl file: it looks like a Parquet file"
    path.write_bytes(bytes(range(100, 200)))
    assert refusal(path) == "is not an ocdl file"
    for content in (b"", b"PK\3\4"):
        path.write_bytes(content)
        assert refusal(path) == f"is truncated, or not an ocdl file: it has {len(content)} bytes"
    path.write_bytes(bytes(100))
    assert refusal(path).startswith("is damaged, or not an ocdl file: its header is not what ocdl writes")


def test_kinds_and_versions_are_told_apart(path: Path) -> None:
    write_container(path, "checkpoint", {}, {"x": np.zeros(1)})
    assert refusal(path) == "is a checkpoint, not a model; a training resumes from it"
    save(path, SMALL[0], controls(SMALL[0]))
    with pytest.raises(ModelFileError, match="is a model, not a checkpoint; it holds a network, not a training"):
        read_container(path, "checkpoint")
    data = path.read_bytes()
    own = f'"format_version":"{FORMAT_VERSION}"'.encode()
    for newer in (str(FORMAT_VERSION + 1), "7"):
        text = f"was written by a newer ocdl: its format has version {{}}, this one reads {FORMAT_VERSION}; update ocdl"
        path.write_bytes(data.replace(own, f'"format_version":"{newer}"'.encode()))
        assert refusal(path) == text.format(newer)  # whatever its digest is


def test_paths_that_are_not_regular_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No such file or directory.*absent"):
        load(tmp_path / "absent")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    for special in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null")):
        assert refusal(special) == "is not a regular file; a model cannot be read from a pipe or a device"
    with pytest.raises(TypeError, match="not int"):
        load(0)  # type: ignore[arg-type]
