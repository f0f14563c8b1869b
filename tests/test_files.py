"""Files return what was saved, to the last bit, and refuse everything else; an old one stays until the new is whole."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from fuzz_files import (
    METHOD,
    SMALL,
    Change,
    controls,
    forged,
    in_array,
    in_metadata,
    mutants,
    nested,
    packed,
    sealed,
    unpacked,
)
from subprocesses import run_python

import ocdl
from ocdl import Network, Tableau
from ocdl.architecture import PRESETS
from ocdl.container import DEEPEST_NESTING, LARGEST_HEADER, read_container, write_container
from ocdl.files import Model, ModelFileError, load, network_from_dict, network_to_dict, save

NETWORKS = [
    *(Network.preset(name, 2, 3) for name in PRESETS),
    *(Network(2, 2, tableau=name) for name in ocdl.tableaux() if Tableau.named(name).is_explicit),
    *(Network(1, 2, activation=name) for name in ("tanh", "sigmoid", "softplus", "relu", "leaky_relu", "sin")),
    Network(2, 2, tableau=METHOD, horizon=0.1 + 0.2),
    Network(2, 2, tableau=Tableau(METHOD.A, METHOD.b), stage_controls=True, augment=3, n_outputs=4, dtype="float32"),
    Network(3, 2, residual=False, tableau="kutta4", stage_controls=True, n_outputs=2, horizon=5e-324),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.ocdl"


def refusal(path: Path) -> str:
    """Return why the file cannot be loaded."""
    with pytest.raises(ModelFileError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{str(path)!r} ")
    return str(caught.value).removeprefix(f"{str(path)!r} ")


# ---- what is saved comes back ----


@pytest.mark.parametrize("net", NETWORKS, ids=repr)
def test_round_trip(net: Network, path: Path) -> None:
    u = controls(net)
    save(path, net, u)
    model = load(path)
    assert isinstance(model, Model)
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


METADATA: dict[str, Any] = {
    "classes": ["ja", "nein", "\N{SNOWMAN}\N{GRINNING FACE}", 'quote " and \\ and \0 and \ud800'],
    "accuracy": 0.1 + 0.2,
    "extremes": [5e-324, -1.7976931348623157e308, -0.0, 2**63, -(10**999)],
    "nothing": {"a": None, "b": [True, False, [], {}, ""], "": {"sha256": "0" * 64, "__metadata__": {}}},
    "format": "other",
    "kind": "checkpoint",
}


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
    description, found = read_container(path, "checkpoint")
    assert description == {"iteration": 3}
    assert found.keys() == arrays.keys()
    for name, array in found.items():
        assert array.dtype.isnative
        assert array.dtype == arrays[name].dtype.newbyteorder("=")
        assert array.shape == arrays[name].shape
        np.testing.assert_array_equal(array, arrays[name])


def test_other_programs_can_read_the_arrays(path: Path) -> None:
    net = NETWORKS[0]
    u = controls(net)
    save(path, net, u)
    found = safetensors.numpy.load_file(path)
    assert sorted(found) == ["K", "W", "b", "h", "mu"]
    for name, array in found.items():
        np.testing.assert_array_equal(array, getattr(u, name))
    with safetensors.safe_open(path, "np") as file:
        metadata = file.metadata()
    assert json.loads(metadata["description"])["network"]["n_layers"] == 3
    assert (metadata["format"], metadata["format_version"], metadata["kind"]) == ("ocdl", "1", "model")


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
    """Nothing that JSON knows."""


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
    with pytest.raises(TypeError, match="net must be a Network, got Controls"):
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
        for place, byte in enumerate(path.read_bytes()):
            for other in (byte ^ 0x01, byte ^ 0x80, byte ^ 0xFF, byte):
                file.seek(place)
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
    assert refusal(path) == "is no ocdl file: its header does not say that its format is ocdl"
    safetensors.numpy.save_file({"x": np.zeros(2)}, path, {"format": "pt"})
    assert refusal(path) == "is no ocdl file: its header does not say that its format is ocdl"
    np.save(path.with_suffix(".npy"), np.zeros(2))
    assert refusal(path.with_suffix(".npy")).startswith("is no ocdl file: its header would take")
    path.write_bytes(pickle.dumps(SMALL[0]))
    assert refusal(path).startswith("is no ocdl file: its header would take")
    path.write_text("a,b\n1,2\n")
    assert refusal(path).startswith("is no ocdl file: its header would take")
    for content in (b"", b"PK\3\4"):
        path.write_bytes(content)
        assert refusal(path) == f"is truncated, or no ocdl file: it has {len(content)} bytes"
    path.write_bytes(bytes(100))
    assert refusal(path).startswith("is damaged, or no ocdl file: its header is not what ocdl writes")


def test_kinds_and_versions_are_told_apart(path: Path) -> None:
    write_container(path, "checkpoint", {}, {"x": np.zeros(1)})
    assert refusal(path) == "is a checkpoint, not a model; resume it with ocdl.train(resume=path)"
    save(path, SMALL[0], controls(SMALL[0]))
    with pytest.raises(ModelFileError, match=r"is a model, not a checkpoint; load it with ocdl.load\(path\)"):
        read_container(path, "checkpoint")
    data = path.read_bytes()
    for newer in ("2", "7"):
        text = "was written by a newer ocdl: its format has version {}, this one reads 1; update ocdl"
        path.write_bytes(data.replace(b'"format_version":"1"', f'"format_version":"{newer}"'.encode()))
        assert refusal(path) == text.format(newer)  # whatever its digest is


def test_what_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No such file or directory.*absent"):
        load(tmp_path / "absent")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    for special in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null")):
        assert refusal(special) == "is no regular file; a model cannot be read from a pipe or a device"
    with pytest.raises(TypeError, match="not int"):
        load(0)  # type: ignore[arg-type]


# ---- files by an enemy: the digest is right, the rest is not ----


def test_a_forgery_without_a_change_is_accepted(path: Path) -> None:
    assert load(forged(SMALL[0], path)).network == SMALL[0]


WRONG_NETWORKS = {
    "n_layers must be at least 1, got 0": {"n_layers": 0},
    "n_layers must be at most 2147483647, got 1000": {"n_layers": 10**999},
    "n_layers must be a whole number, got 1.5": {"n_layers": 1.5},
    "n_layers must be a whole number, got True": {"n_layers": True},
    "n_features must be a whole number, got None": {"n_features": None},
    "horizon must be finite, got a number beyond": {"horizon": 10**999},
    "horizon must be positive, got -1": {"horizon": -1},
    "activation must be one of 'tanh'": {"activation": "\ud800"},
    "time_steps must be one of": {"time_steps": ["simplex"]},
    "residual must be True or False": {"residual": 1},
    "dtype must be one of 'float64', 'float32', got 'f8,(f8'": {"dtype": "f8,(f8"},
    "dtype must be one of 'float64', 'float32', got {": {"dtype": {"names": ["a"], "formats": ["f8"]}},
    "the network has 'depth', which is none of": {"depth": 3},
    "the tableau must be a dict, got str": {"tableau": "kutta4"},
    "the tableau lacks A, b, c": {"tableau": {"name": None}},
    "K has shape (1, 1, 1) but the network needs (2147483647, 1, 1)": {"n_layers": 2**31 - 1},
    "K has shape (1, 1, 1) but the network needs (2147483647, 4294967294, 4294967294)": {
        "n_layers": 2**31 - 1,
        "n_features": 2**31 - 1,
        "augment": 2**31 - 1,
    },
    "K has dtype float64 but the network needs float32": {"dtype": "float32"},
    "h has shape (1,) but the network needs (0,)": {"residual": False},
}


@pytest.mark.parametrize("message", WRONG_NETWORKS)
def test_impossible_networks(message: str, path: Path) -> None:
    forged(SMALL[0], path, lambda header, description: description["network"].update(WRONG_NETWORKS[message]))
    start = time.perf_counter()
    assert message in refusal(path)
    assert time.perf_counter() - start < 1
    assert "is malformed: " in refusal(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": [[1.0]]}, "tableau must be explicit"),
        ({"A": [[0.0, 0.0]]}, "A must be a square matrix"),
        ({"A": []}, "A must be an array of 2 dimension"),
        ({"A": {}}, "the tableau's A must be a list of lists, got dict"),
        ({"A": [[0.0], []]}, "A must be an array of real numbers, got a ragged sequence"),
        ({"A": [[[0.0]]]}, "the tableau's A[0] must be a list of numbers, got [[0.0]]"),
        ({"A": [["0.0"]]}, "the tableau's A[0] must be a list of numbers, got ['0.0']"),
        ({"A": [["x" * 500_000]] + [["y"]] * 9_000}, "the tableau's A[0] must be a list of numbers"),
        ({"b": [0.5]}, "b must sum to 1"),
        ({"b": [10**999]}, "finite"),
        ({"b": [True]}, "the tableau's b must be a list of numbers, got [True]"),
        ({"c": None}, "the tableau's c must be a list of numbers, got None"),
        ({"name": 3}, "name must be a string or None, got int"),
        ({"name": "\ud800"}, "it describes no valid network"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_impossible_tableaux(change: dict[str, Any], message: str, path: Path) -> None:
    forged(SMALL[0], path, lambda header, description: description["network"]["tableau"].update(change))
    assert message in refusal(path)


DESCRIPTIONS = {
    "[" * 100_000: "its description is nested more than 32 deep",
    '{"a":' * 100_000: "its description is nested more than 32 deep",
    '["' + '\\"' * 200_000: "its description is no JSON",
    "[" + "0," * 200_000 + "0]": "its description has more than 100000 texts, commas and brackets",
    '["' + "x" * 900_000 + '"]': "its description must be a dict, got list",
    '{"a": 1' + "0" * 5000 + "}": "a number has more than 1000 digits",
    '{"a": -Infinity}': "-Infinity is not finite",
    '{"a": NaN}': "NaN is not finite",
    '{"a": 1e400}': "1e400 is not finite",
    '{"a": 1, "a": 2}': "'a' occurs twice",
    "{1: 2}": "its description is no JSON",
    "{}": "the description lacks network, metadata, ocdl",
    "null": "its description must be a dict, got NoneType",
    "": "its description is no JSON",
}


@pytest.mark.parametrize("description", DESCRIPTIONS, ids=lambda text: text[:10])
def test_impossible_descriptions(description: str, path: Path) -> None:
    start = time.perf_counter()
    reason = refusal(forged(SMALL[0], path, description=description))
    assert DESCRIPTIONS[description] in reason
    assert reason.startswith("is malformed: ")
    assert time.perf_counter() - start < 5


HEADERS = {
    "is a pudding, not a model; this ocdl knows model, checkpoint": in_metadata(kind="pudding"),
    "is malformed: its format_version must be a whole number, got '1.0'": in_metadata(format_version="1.0"),
    "is malformed: its format_version must be a whole number, got '\u0661'": in_metadata(format_version="\u0661"),
    "was written by a newer ocdl: its format has version 999999999,": in_metadata(format_version="9" * 9),
    "is malformed: its metadata must be texts": in_metadata(kind=["model"]),
    "is malformed: its metadata has 'more', which is none of": in_metadata(more="x"),
    "is malformed: its metadata lacks kind": lambda header, _: header["__metadata__"].pop("kind"),
    "is malformed: its metadata lacks description": lambda header, _: header["__metadata__"].pop("description"),
    "is malformed: its sha256 must be 64 hexadecimal digits, got '": in_metadata(sha256="0" * 65),
    "is malformed: the set of arrays lacks mu": lambda header, _: header.update(nu=header.pop("mu")),
    "is malformed: the set of arrays has 'x', which": in_array("x", dtype="F64", shape=[0], data_offsets=[40, 40]),
    "is malformed: K has dtype F16; accepted are F64, F32, I64, U64": in_array("K", dtype="F16", shape=[1, 2, 2]),
    "is malformed: K has dtype int64 but the network needs float64": in_array("K", dtype="I64"),
    "is malformed: K has shape (1,) but the network needs (1, 1, 1)": in_array("K", shape=[1]),
    "is malformed: K: ": in_array("K", shape=[1] * 70),
    "is malformed: x: ": in_array("x", dtype="F64", shape=[0, 2**62], data_offsets=[40, 40]),
    "is malformed: Error while deserializing": in_array("K", shape=[2**61, 2**61]),
    "is malformed: Error": in_array("K", data_offsets=[8, 16]),
    "is malformed: Error while": in_array("K", shape=[-1, -1, 1]),
    "is malformed: Error while deser": in_array("K", shape=[1.5]),
    "is malformed: its header has an array without data_offsets": in_array("K", data_offsets=None),
    "is malformed: its header has an array without": in_array("K", data_offsets=[0, "8"]),
    "is malformed: its header has an array": lambda header, _: header.update(x="y"),
    "is truncated: it has ": in_array("mu", data_offsets=[32, 2**63]),
    "is truncated: it has": in_array("mu", data_offsets=[32, 10**900]),
    "is damaged: it has ": in_array("mu", data_offsets=[32, 39]),
    "is no ocdl file: its header does not say": lambda header, _: (
        header.pop("__metadata__") and header.update(__metadata__={})
    ),
}


@pytest.mark.parametrize("message", HEADERS)
def test_impossible_headers(message: str, path: Path) -> None:
    assert refusal(forged(SMALL[0], path, HEADERS[message])).startswith(message)


@pytest.mark.parametrize("header", ["[]", "null", "3", '"x"', "{}", "[" * 500_000, "{" * 500_000, '"' * LARGEST_HEADER])
def test_headers_that_are_none(header: str, path: Path) -> None:
    path.write_bytes(packed(header, b""))
    assert "no ocdl file" in refusal(path)


def test_arrays_that_occur_twice(path: Path) -> None:
    save(path, SMALL[0], controls(SMALL[0]))
    header, data = unpacked(path.read_bytes())
    text = json.dumps(header, separators=(",", ":"))
    path.write_bytes(packed(text[:-1] + ',"K":' + json.dumps(header["K"]) + "}", data))
    assert "'K' occurs twice" in refusal(path)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("net", SMALL[:2], ids=repr)
def test_numbers_that_are_not_finite(net: Network, wrong: float, path: Path) -> None:
    save(path, net, controls(net))
    data = path.read_bytes()
    path.write_bytes(sealed(data[: -net.dtype.itemsize] + np.array(wrong, net.dtype).tobytes()))
    assert refusal(path) == f"is malformed: mu[0] is {wrong}; all of mu must be finite"


# ---- mutations ----


@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_mutations_are_refused_or_harmless(count: int, path: Path) -> None:
    rng = np.random.default_rng(count)
    originals = []
    for net in SMALL:
        save(path, net, controls(net), **METADATA)
        originals.append(path.read_bytes())
    sources = [mutants(rng, original) for original in originals]
    accepted = refused = 0
    for i in range(count):
        data, right = next(sources[i % len(sources)])
        path.unlink()  # a new file is written faster than an old one is overwritten
        path.write_bytes(data)
        try:
            model = load(path)
        except ModelFileError:
            refused += 1
            continue
        assert right or data in originals
        assert np.isfinite(model.controls.to_vector()).all()
        assert model.network.predict(model.controls, np.zeros((1, model.network.n_features))).shape[0] == 1
        accepted += 1
    assert min(accepted, refused) > count / 50  # both sides of the border were visited


# ---- memory ----

MEASURE = """
import os, warnings
from pathlib import Path
from ocdl.files import ModelFileError, load

warnings.simplefilter("ignore")  # newer Pythons warn of a fork beside the threads of NumPy, which are idle here

def kilobytes(field):
    return next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if field in line)

def attempt(path):
    try:
        load(path)
    except ModelFileError:
        return "refused"
    return "loaded"

paths = [Path(name) for name in {paths!r}]
attempt(paths[0])
for path in paths:
    if os.fork():
        os.wait()
    else:  # a process that has no memory left over from the paths before
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        before = kilobytes("VmHWM")
        print(path.name, attempt(path), kilobytes("VmHWM") - before, path.stat().st_size // 1024, flush=True)
        os._exit(0)
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the system does not tell a peak")
def test_memory_is_bounded_by_the_size(tmp_path: Path) -> None:
    wide = "\N{GRINNING FACE}"
    names = [f"{i:05}" for i in range(11_000)]
    forged(SMALL[0], tmp_path / "small")
    net = Network(256, 48)
    save(tmp_path / "large", net, net.init(random_state=0))
    save(tmp_path / "text", SMALL[0], controls(SMALL[0]), a="x" * 950_000 + wide)
    save(tmp_path / "numbers", SMALL[0], controls(SMALL[0]), a=[0.5] * 99_000)
    save(tmp_path / "dicts", SMALL[0], controls(SMALL[0]), a=[{name: {name: 1.5}} for name in names])
    save(tmp_path / "lists", SMALL[0], controls(SMALL[0]), a=[nested(10)] * 4_500)
    save(tmp_path / "keys", SMALL[0], controls(SMALL[0]), a={name + wide: name for name in names})

    def network(**changes: Any) -> Change:
        return lambda header, description: description["network"].update(changes)

    def tableau(**changes: Any) -> Change:
        return lambda header, description: description["network"]["tableau"].update(changes)

    def both(header: dict[str, Any], description: dict[str, Any]) -> None:
        description["metadata"]["a"] = [{name: {name: 1.5}} for name in names]
        description["network"]["activation"] = "x" * 600_000 + wide

    def arrays(header: dict[str, Any], description: dict[str, Any]) -> None:
        header.update({name: {"dtype": "F64", "shape": [0], "data_offsets": [40, 40]} for name in names[:8_000]})

    forged(SMALL[0], tmp_path / "layers", network(n_layers=2**31 - 1, n_features=2**31 - 1))
    forged(SMALL[0], tmp_path / "activation", network(activation="x" * 950_000 + wide))
    forged(SMALL[0], tmp_path / "unknown", network(**{"x" * 950_000 + wide: 3}))
    forged(SMALL[0], tmp_path / "rows", tableau(A=[["x" * 500_000, *range(20_000)]]))
    forged(SMALL[0], tmp_path / "stages", tableau(A=[[0] * 280] * 280, b=[1] + [0] * 279, c=[0] * 280))
    forged(SMALL[0], tmp_path / "arrays", arrays)
    forged(SMALL[0], tmp_path / "both", both)
    forged(SMALL[0], tmp_path / "shape", in_array("K", shape=[1] * 95_000))
    forged(SMALL[0], tmp_path / "twice", description='{"%s": 1, "%s": 1}' % (("x" * 500_000 + wide,) * 2))
    forged(SMALL[0], tmp_path / "brackets", description="[" * 1_000_000)
    forged(SMALL[0], tmp_path / "quotes", description='\\"' * 250_000)
    (tmp_path / "header").write_bytes((2**63).to_bytes(8, "little") + b"{" * 1_000)
    (tmp_path / "texts").write_bytes(packed('"' * LARGEST_HEADER, b""))
    with open(tmp_path / "sparse", "wb") as file:
        file.write(b"\x02" + bytes(7) + b"{}")
        file.truncate(2**30)
    paths = ["small", *sorted(path.name for path in tmp_path.iterdir() if path.name != "small")]
    report = run_python(MEASURE.format(paths=[str(tmp_path / name) for name in paths]))
    outcomes = {}
    fork = int(report.split()[2])  # pages that a child copies before it loads anything: the peak of the small file
    for line in report.splitlines():
        name, outcome, peak, size = line.split()
        outcomes[name] = outcome
        assert int(peak) - fork <= min(2 * int(size), 10**6) + 16 * 1024, line
    assert len(outcomes) == len(paths)
    loaded = {name for name, outcome in outcomes.items() if outcome == "loaded"}
    assert loaded == {"small", "large", "text", "numbers", "dicts", "lists", "keys", "stages"}


# ---- the disk ----


@pytest.fixture
def old(path: Path) -> bytes:
    """A file that is there already; return its bytes."""
    save(path, NETWORKS[0], controls(NETWORKS[0]), age="old")
    return path.read_bytes()


def save_new(path: Path) -> None:
    save(path, NETWORKS[0], controls(NETWORKS[0], seed=1), age="new")


def test_a_file_is_replaced_whole(path: Path, old: bytes) -> None:
    with open(path, "rb") as reader:
        save_new(path)
        assert reader.read() == old  # whoever reads the old file goes on reading it
    assert load(path).metadata == {"age": "new"}
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("function", "error"),
    [
        ("fsync", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))),
        ("replace", PermissionError(errno.EPERM, os.strerror(errno.EPERM), "a", None, "b")),
        ("replace", OSError(errno.EIO, os.strerror(errno.EIO))),
        ("chmod", OSError(errno.EROFS, os.strerror(errno.EROFS))),
        ("replace", KeyboardInterrupt()),
        ("fsync", KeyboardInterrupt()),
        ("fsync", MemoryError()),
    ],
    ids=repr,
)
def test_the_old_file_survives_whatever_happens(
    function: str, error: BaseException, path: Path, old: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, function, fail)
        with pytest.raises(type(error)) as caught:
            save_new(path)
    if isinstance(error, OSError):
        assert isinstance(caught.value, OSError)
        assert caught.value.errno == error.errno
        assert str(caught.value) == f"[Errno {error.errno}] {error.strerror}: {str(path)!r}"
    assert path.read_bytes() == old
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("limit", [0, 100, 2000])
def test_a_full_disk(limit: int, path: Path, old: bytes) -> None:
    net = Network(8, 40)  # beyond the buffer of a file
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(OSError, match=f"File too large: {str(path)!r}") as caught:
            save(path, net, net.init(random_state=0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.errno == errno.EFBIG
    assert path.read_bytes() == old
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_cannot_be_flushed_is_no_failure(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(errno.EINVAL, "not here")

    monkeypatch.setattr(os, "open", fail)
    save_new(path)
    monkeypatch.undo()
    assert load(path).metadata == {"age": "new"}


def test_file_and_folder_are_flushed_before_and_after_the_renaming(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    fsync, replace = os.fsync, os.replace

    def record_fsync(descriptor: int) -> None:
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        order.append("folder" if name == str(path.parent) else "file")
        if order[-1] == "file":
            assert Path(name).name.startswith(".model.ocdl")
            assert safetensors.numpy.load_file(name).keys() == {"K", "b", "h", "W", "mu"}  # whole already
        fsync(descriptor)

    def record_replace(source: str, target: str) -> None:
        order.append("rename")
        assert (Path(source).parent, target) == (path.parent, str(path))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "replace", record_replace)
    save_new(path)
    assert order == ["file", "rename", "folder"]


def test_targets_that_are_no_files(path: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("text")
    before = sorted(tmp_path.iterdir())
    for target, error, message in [
        (tmp_path, IsADirectoryError, "Is a directory"),
        (tmp_path / "folder", IsADirectoryError, "Is a directory"),
        (str(tmp_path / "new") + "/", IsADirectoryError, "Is a directory"),
        (tmp_path / "pipe", OSError, "Not a regular file"),
        (tmp_path / "loop", OSError, "Too many levels of symbolic links"),
        (tmp_path / "absent" / "model", FileNotFoundError, "No such file or directory"),
        (tmp_path / "file" / "model", NotADirectoryError, "Not a directory"),
        (tmp_path / ("x" * 300), OSError, "File name too long"),
    ]:
        with pytest.raises(error, match=f"{message}: {str(target)!r}"):
            save_new(target)  # type: ignore[arg-type]
    assert sorted(tmp_path.iterdir()) == before


def test_links_stay_and_what_they_point_to_is_replaced(path: Path, old: bytes, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link, chain, dangling = tmp_path / "folder" / "link", tmp_path / "chain", tmp_path / "dangling"
    link.symlink_to("../model.ocdl")
    chain.symlink_to(link)
    save_new(chain)
    assert chain.is_symlink()
    assert link.is_symlink()
    assert not path.is_symlink()
    assert load(path).metadata == load(link).metadata == load(chain).metadata == {"age": "new"}
    dangling.symlink_to(tmp_path / "folder" / "later")
    save_new(dangling)
    assert dangling.is_symlink()
    assert load(tmp_path / "folder" / "later").metadata == {"age": "new"}
    assert sorted(file.name for file in (tmp_path / "folder").iterdir()) == ["later", "link"]


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: list[Any] = [
        "plain",
        "x" * 255,
        "\N{SNOWMAN}" * 85,
        "with space\n",
        os.fsencode("bytes"),
        Path("path"),
        "\udcff",
    ]
    for name in names:
        save_new(name)
        assert load(name).metadata == {"age": "new"}
    assert len(list(tmp_path.iterdir())) == len(names)


def test_permissions_are_kept(path: Path) -> None:
    umask = os.umask(0o027)
    try:
        save_new(path)
        assert path.stat().st_mode & 0o777 == 0o640
        for mode in (0o600, 0o666, 0o644):
            path.chmod(mode)
            save_new(path)
            assert path.stat().st_mode & 0o777 == mode
    finally:
        os.umask(umask)


PROTECTED = """
import os, ocdl
from ocdl.files import save
net = ocdl.Network(1, 1)
u = net.init(random_state=0)
if os.geteuid() == 0:
    os.setuid(65534)  # nobody: root may write everywhere
for path in {paths!r}:
    try:
        save(path, net, u)
    except PermissionError as error:
        print(error)
"""


def test_what_is_protected_stays_as_it_is() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [folder / "locked" / "model", folder / "open" / "model"]
        for path in paths:
            path.parent.mkdir()
        paths[1].write_text("old")
        paths[1].chmod(0o444)
        paths[0].parent.chmod(0o555)
        paths[1].parent.chmod(0o777)
        folder.chmod(0o755)
        printed = run_python(PROTECTED.format(paths=[str(path) for path in paths])).splitlines()
        assert printed == [f"[Errno 13] Permission denied: {str(path)!r}" for path in paths]
        assert not paths[0].exists()
        assert paths[1].read_text() == "old"
        assert list(paths[1].parent.iterdir()) == [paths[1]]
        paths[0].parent.chmod(0o755)


WRITER = """
import ocdl
from ocdl.files import save
net = ocdl.Network(2, 3)
u = net.init(random_state=0)
for i in range({count}):
    save({path!r}, net, u, i=i)
"""


def writing(path: Path, count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITER.format(path=str(path), count=count)])


def test_writers_at_the_same_time_leave_one_whole_file(path: Path) -> None:
    writers = [writing(path, 100) for _ in range(2)]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert load(path).metadata == {"i": 99}
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.slow
def test_a_killed_writer_leaves_a_whole_file(path: Path, old: bytes) -> None:
    for i in range(50):
        with writing(path, 10**9) as writer:
            while path.read_bytes() == old:
                time.sleep(0.001)
            time.sleep(i / 1000)
            writer.kill()
        assert load(path).metadata["i"] >= 0
        path.write_bytes(old)
