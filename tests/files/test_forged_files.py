"""Files by an enemy: the digest is right, the rest is not. They are refused, and cost little."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz_files import (
    SMALL,
    Change,
    controls,
    forged,
    in_array,
    in_metadata,
    nested,
    packed,
    refusal,
    sealed,
    survive,
    unpacked,
)
from soak import Soak
from subprocesses import run_python

from ocdl import Network
from ocdl.files import load, save
from ocdl.storage.container import LARGEST_HEADER


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.ocdl"


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
    start = time.process_time()
    assert message in refusal(path)
    assert time.process_time() - start < 1
    assert "is malformed: " in refusal(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
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
    '["' + '\\"' * 200_000: "its description is not JSON",
    "[" + "0," * 200_000 + "0]": "its description has more than 100000 texts, commas and brackets",
    '["' + "x" * 900_000 + '"]': "its description must be a dict, got list",
    '{"a": 1' + "0" * 5000 + "}": "a number has more than 1000 digits",
    '{"a": -Infinity}': "-Infinity is not finite",
    '{"a": NaN}': "NaN is not finite",
    '{"a": 1e400}': "1e400 is not finite",
    '{"a": 1, "a": 2}': "'a' occurs twice",
    "{1: 2}": "its description is not JSON",
    "{}": "the description lacks network, metadata, ocdl",
    "null": "its description must be a dict, got NoneType",
    "": "its description is not JSON",
}


@pytest.mark.parametrize("description", DESCRIPTIONS, ids=lambda text: text[:10])
def test_impossible_descriptions(description: str, path: Path) -> None:
    start = time.process_time()
    reason = refusal(forged(SMALL[0], path, description=description))
    assert DESCRIPTIONS[description] in reason
    assert reason.startswith("is malformed: ")
    assert time.process_time() - start < 5


HEADERS = {
    "is a pudding, not a model; this ocdl reads model, checkpoint": in_metadata(kind="pudding"),
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
    "is not an ocdl file: its header does not give": lambda header, _: (
        header.pop("__metadata__") and header.update(__metadata__={})
    ),
}


@pytest.mark.parametrize("message", HEADERS)
def test_impossible_headers(message: str, path: Path) -> None:
    assert refusal(forged(SMALL[0], path, HEADERS[message])).startswith(message)


@pytest.mark.parametrize("header", ["[]", "null", "3", '"x"', "{}", "[" * 500_000, "{" * 500_000, '"' * LARGEST_HEADER])
def test_headers_that_are_none(header: str, path: Path) -> None:
    path.write_bytes(packed(header, b""))
    assert "not an ocdl file" in refusal(path)


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


@pytest.mark.parametrize("kind", ["models", "checkpoints"])
def test_changed_files_are_refused_or_harmless(kind: str, path: Path) -> None:
    survive(kind, path, 1000)


def test_changed_estimators_are_refused_or_harmless(path: Path) -> None:
    survive("estimators", path, 600)


@pytest.mark.slow
def test_fifty_thousand_changed_estimators(path: Path, soak: Soak) -> None:
    soak.measured(survive("estimators", path, soak.times(50_000, least=600)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["models", "checkpoints"])
def test_a_million_changed_files_are_refused_or_harmless(kind: str, path: Path, soak: Soak) -> None:
    soak.measured(survive(kind, path, soak.times(500_000, least=500)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["models", "checkpoints"])
def test_files_that_a_fuzzer_makes_for_new_lines(kind: str, tmp_path: Path, soak: Soak) -> None:
    runs = soak.times(100_000, least=300)
    pytest.importorskip("atheris")
    command = [sys.executable, str(Path(__file__).parents[1] / "support" / "fuzz_coverage.py"), kind, f"-runs={runs}"]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-5000:]
    covered = re.findall("cov: ([0-9]+)", done.stderr)
    soak.measured(f"{covered[-1]} places of the code reached, {covered[0]} by the files that are right")


MEASURE = """
import os, warnings
from pathlib import Path
from ocdl import ModelFileError, load

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


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the system does not report peak memory")
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
