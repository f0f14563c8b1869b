"""Files that are made to be wrong: forged with the right digest, or changed at random."""

from __future__ import annotations

import copy
import faulthandler
import hashlib
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import make_golden as golden
import numpy as np
import pytest

import ocdl
from ocdl import LBFGS, Adam, Backtracking, Chain, Controls, Network, Tableau
from ocdl.files import load, save
from ocdl.network.files import ModelFileError
from ocdl.tables.model import read_table_model

Change = Callable[[dict[str, Any], dict[str, Any]], object]  # of the header and of the description in it

ESTIMATORS = ("classifier", "regressor", "table")  # golden files
METHOD = Tableau([[0, 0], [0.7, 0]], [1 - 1 / 1.4, 1 / 1.4], [0.1, 0.7], name="mine")
SMALL = [
    Network(1, 1),
    Network(1, 1, residual=False, dtype="float32"),
    Network(1, 1, tableau=METHOD, stage_controls=True),
]


def controls(net: Network, seed: int = 0) -> Controls:
    """Return controls with all sorts of finite bits in them."""
    u = net.from_vector(np.random.default_rng(seed).normal(size=net.n_controls))
    of_field = [getattr(u, part.name) for part in net.parts if part.role == "field"]
    of_field[0].flat[0], of_field[-1].flat[-1] = -0.0, np.finfo(net.dtype).smallest_subnormal
    u.W.flat[0] = np.finfo(net.dtype).max
    return u


def sealed(data: bytes) -> bytes:
    """Return a file with the digest that it should have; without a place for one, as it is."""
    position = data.find(b'"sha256":"') + len(b'"sha256":"')
    if position < len(b'"sha256":"') or len(data) < position + 64:
        return data
    front, back = data[:position], data[position + 64 :]
    return front + hashlib.sha256(front + b"0" * 64 + back).hexdigest().encode() + back


def packed(header: str | bytes, data: bytes) -> bytes:
    text = header.encode() if isinstance(header, str) else header
    return sealed(len(text).to_bytes(8, "little") + text + data)


def unpacked(file: bytes) -> tuple[dict[str, Any], bytes]:
    start = 8 + int.from_bytes(file[:8], "little")
    return json.loads(file[8:start]), file[start:]


def forged(
    net: Network,
    path: Path,
    change: Change = lambda header, description: None,
    description: str | None = None,
) -> Path:
    """Write a file whose header and description are changed, or whose description is another text."""
    save(path, net, controls(net))
    header, data = unpacked(path.read_bytes())
    inner = json.loads(header["__metadata__"]["description"])
    change(header, inner)
    if "description" in header["__metadata__"]:
        header["__metadata__"]["description"] = json.dumps(inner) if description is None else description
    path.write_bytes(packed(json.dumps(header, separators=(",", ":")), data))
    return path


def in_metadata(**changes: Any) -> Change:
    return lambda header, description: header["__metadata__"].update(changes)


def in_array(name: str, **changes: Any) -> Change:
    return lambda header, description: header.setdefault(name, {}).update(changes)


def nested(depth: int) -> list[Any]:
    return [nested(depth - 1)] if depth > 1 else []


HOSTILE: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    3,
    2**31 - 1,
    2**64,
    10**999,
    1.5,
    1e308,
    "",
    "x",
    "\ud800",
    [],
    {},
    [[]],
    nested(40),
]


def mutated(rng: np.random.Generator, data: bytes) -> bytes:
    """Return bytes with some changed, inserted, deleted or repeated."""
    result = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        position, length = int(rng.integers(len(result) + 1)), int(rng.integers(1, 9))
        end = min(position + length, len(result))
        what = rng.integers(5)
        if what == 0:
            result[position:end] = rng.bytes(end - position)
        elif what == 1:
            result[position:position] = rng.bytes(length)
        elif what == 2:
            del result[position:end]
        elif what == 3:
            result[position:position] = result[position : position + 8 * length]
        else:
            result[position:end] = bytes(
                rng.choice(list(b'0123456789-.eE[]{},:"\\ tfnKbhW'), end - position).astype(np.uint8)
            )
    return bytes(result)


def places(value: Any, actual: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return (container, key) of everything inside of a JSON value."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        actual.append((value, key))
        places(value[key], actual)
    return actual


def changed(rng: np.random.Generator, value: dict[str, Any]) -> dict[str, Any]:
    """Change a JSON value in one or two places."""
    for _ in range(rng.integers(1, 3)):
        inside = places(value, [])
        if not inside:
            break
        container, key = inside[rng.integers(len(inside))]
        if isinstance(container, dict) and rng.random() < 0.2:
            del container[key]
        else:
            container[key] = copy.deepcopy(HOSTILE[rng.integers(len(HOSTILE))])
    return value


NUMBERS = [np.array(value).tobytes() for value in (np.nan, -np.inf, 1e308, -5e-324, 0.0, -1, 1, 3, 2**31, -(2**63))]


def renumbered(rng: np.random.Generator, data: bytes) -> bytes:
    """Return numbers with some replaced, by strange ones or by any bytes; they stay as many as they are."""
    result = bytearray(data)
    for position in rng.integers(len(data) // 8, size=rng.integers(1, 4)):
        strange = rng.integers(2 * len(NUMBERS))
        result[8 * position : 8 * position + 8] = NUMBERS[strange] if strange < len(NUMBERS) else rng.bytes(8)
    return bytes(result)


def mutants(rng: np.random.Generator, file: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield files and whether their digest is right: bytes, headers, descriptions and numbers change."""
    start = 8 + int.from_bytes(file[:8], "little")
    while True:
        yield sealed(file[:start] + renumbered(rng, file[start:])), True
        yield mutated(rng, file), False
        yield sealed(mutated(rng, file)), True
        yield packed(mutated(rng, file[8:start]), file[start:]), True
        header, data = unpacked(file)
        yield packed(json.dumps(changed(rng, header), separators=(",", ":")), data), True
        header, data = unpacked(file)
        description = json.loads(header["__metadata__"]["description"])
        entry = str(rng.choice(list(description)))
        description |= changed(rng, {entry: description.pop(entry)})
        header["__metadata__"]["description"] = json.dumps(description)
        yield packed(json.dumps(header, separators=(",", ":")), data), True


def refusal(path: Path) -> str:
    """Return why the file cannot be loaded."""
    with pytest.raises(ModelFileError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{str(path)!r} ")
    return str(caught.value).removeprefix(f"{str(path)!r} ")


METADATA: dict[str, Any] = {
    "classes": ["ja", "nein", "\N{SNOWMAN}\N{GRINNING FACE}", 'quote " and \\ and \0 and \ud800'],
    "accuracy": 0.1 + 0.2,
    "extremes": [5e-324, -1.7976931348623157e308, -0.0, 2**63, -(10**999)],
    "nothing": {"a": None, "b": [True, False, [], {}, ""], "": {"sha256": "0" * 64, "__metadata__": {}}},
    "format": "other",
    "kind": "checkpoint",
}


# ---- many of them ----

# Checkpoints of trainings that take no time, between them with everything that a checkpoint can hold.
LITTLE_DATA = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 1, 0])
TRAININGS: list[dict[str, Any]] = [
    {"net": Network.preset("odenet+simplex", 1, 2), "optimiser": LBFGS(memory=2)},
    {"net": Network(1, 1, dtype="float32"), "optimiser": Adam(batch_size=2)},
    {
        "net": Network(1, 1),
        "optimiser": Chain((Adam(), 3), (Backtracking(), None)),
        "validation": ocdl.Validation(*LITTLE_DATA, patience=3),
    },
]
GENERATOR = np.random.default_rng(0)
SECONDS = 1.0  # the most that any file may take
ATTEMPTS = 5  # of which the fastest counts: other processes may take the processors away for a while
KILOBYTES = 50_000  # that the process may grow by over all of them


def resumed(training: dict[str, Any], path: Path, **arguments: Any) -> ocdl.Result:
    """Go on with one of the trainings for two iterations after the ten that its checkpoint has."""
    settings = dict(training)
    net = settings.pop("net")
    defaults = {
        "max_iter": 12,
        "eval_every": 2,
        "checkpoint": ocdl.Checkpoint(path, resume=True),
        "tol": 0.0,
        "random_state": GENERATOR,
    }
    u = net.controls(W=np.ones((1, 1)))
    return ocdl.train(net, u, *LITTLE_DATA, **(defaults | settings | arguments))


def use_model(path: Path) -> None:
    model = load(path)
    assert np.isfinite(model.controls.to_vector()).all()
    rows = np.zeros((1, model.network.n_features))
    try:
        assert np.isfinite(model.network.predict(model.controls, rows)).all()
    except FloatingPointError as error:
        if "controls down" not in str(error):  # as all those say that belong to a network
            raise


def use_estimator(path: Path) -> None:
    """Load an estimator and predict; labels and numbers may be any."""
    model = read_table_model(path)
    rows = np.zeros((1, model.estimator.network_.n_features))
    try:
        assert len(model.estimator.predict(rows)) == 1
    except FloatingPointError as error:
        if "controls down" not in str(error):
            raise


def use_checkpoint(resume: Callable[[Path], ocdl.Result]) -> Callable[[Path], None]:
    def use(path: Path) -> None:
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "resume: the checkpoint .* was written with the core", RuntimeWarning)
                result = resume(path)
        except ValueError as error:
            if str(error).startswith("resume: the checkpoint "):  # it belongs to another training
                raise ModelFileError from error
            raise
        assert np.isfinite(result.controls.to_vector()).all()
        assert len(result.history) == result.n_iter + 1

    return use


def targets(kind: str, path: Path) -> list[tuple[bytes, Callable[[Path], None]]]:
    """Return files that are right, and what is done with the changed ones."""
    actual: list[tuple[bytes, Callable[[Path], None]]] = []
    if kind == "estimators":
        for name in ESTIMATORS:
            path.write_bytes((golden.FOLDER / f"{name}.ocdl").read_bytes())
            actual.append((path.read_bytes(), use_estimator))
    elif kind == "models":
        for net in SMALL:
            save(path, net, controls(net), **METADATA)
            actual.append((path.read_bytes(), use_model))
    else:
        for training in TRAININGS:
            resumed(training, path, max_iter=10, checkpoint=path)
            actual.append((path.read_bytes(), use_checkpoint(partial(resumed, training))))
    return actual


def resident_kilobytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def outcome(use: Callable[[Path], None], path: Path) -> tuple[bool, float]:
    """Return whether a file is accepted, and how long that took."""
    fastest = math.inf
    for _ in range(ATTEMPTS):
        start = time.perf_counter()
        try:
            use(path)
            harmless = True
        except ModelFileError:
            harmless = False
        fastest = min(fastest, time.perf_counter() - start)
        if fastest < SECONDS:
            break
    return harmless, fastest


def survive(kind: str, path: Path, count: int) -> str:
    """Load so many changed files: each is refused with a ModelFileError, or harmless; none takes long or much memory.

    Return what happened, in a few words.
    """
    rng = np.random.default_rng(count)
    originals = targets(kind, path)
    sources = [mutants(rng, original) for original, _ in originals]
    accepted = refused = before = 0
    slowest = 0.0
    for i in range(count):
        if i % 1000 == 0:
            faulthandler.dump_traceback_later(300, exit=True)  # a file that hangs ends everything, and says where
        if i == count // 10:
            before = resident_kilobytes()
        original, use = originals[i % len(originals)]
        data, right = next(sources[i % len(originals)])
        path.unlink()  # a new file is written faster than an old one is overwritten
        path.write_bytes(data)
        harmless, seconds = outcome(use, path)
        if harmless:
            assert right or data == original
        accepted += harmless
        refused += not harmless
        slowest = max(slowest, seconds)
        assert slowest < SECONDS
    faulthandler.cancel_dump_traceback_later()
    grown = resident_kilobytes() - before
    assert min(accepted, refused) > count / 50  # both sides of the border were visited
    assert grown <= KILOBYTES
    return f"{refused:,} refused, {accepted:,} harmless, slowest {slowest:.3f} s, {grown:+} kB"
