"""Files that are made to be wrong: forged with the right digest, or changed at random."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ocdl import Controls, Network, Tableau
from ocdl.files import ModelFileError, load, save

Change = Callable[[dict[str, Any], dict[str, Any]], object]  # of the header and of the description in it

METHOD = Tableau([[0, 0], [0.7, 0]], [1 - 1 / 1.4, 1 / 1.4], [0.1, 0.7], name="mine")
SMALL = [
    Network(1, 1),
    Network(1, 1, residual=False, dtype="float32"),
    Network(1, 1, tableau=METHOD, stage_controls=True),
]


def controls(net: Network, seed: int = 0) -> Controls:
    """Return controls with all sorts of finite bits in them."""
    u = net.from_vector(np.random.default_rng(seed).normal(size=net.n_controls))
    u.K.flat[0], u.b.flat[0], u.W.flat[0] = -0.0, np.finfo(net.dtype).smallest_subnormal, np.finfo(net.dtype).max
    return u


def sealed(data: bytes) -> bytes:
    """Return a file with the digest that it should have; without a place for one, as it is."""
    place = data.find(b'"sha256":"') + len(b'"sha256":"')
    if place < len(b'"sha256":"') or len(data) < place + 64:
        return data
    front, back = data[:place], data[place + 64 :]
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
        place, length = int(rng.integers(len(result) + 1)), int(rng.integers(1, 9))
        end = min(place + length, len(result))
        what = rng.integers(5)
        if what == 0:
            result[place:end] = rng.bytes(end - place)
        elif what == 1:
            result[place:place] = rng.bytes(length)
        elif what == 2:
            del result[place:end]
        elif what == 3:
            result[place:place] = result[place : place + 8 * length]
        else:
            result[place:end] = bytes(
                rng.choice(list(b'0123456789-.eE[]{},:"\\ tfnKbhW'), end - place).astype(np.uint8)
            )
    return bytes(result)


def places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return (container, key) of everything inside of a JSON value."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        found.append((value, key))
        places(value[key], found)
    return found


def changed(rng: np.random.Generator, value: dict[str, Any]) -> dict[str, Any]:
    """Change a JSON value in one or two places."""
    for _ in range(rng.integers(1, 3)):
        inside = places(value, [])
        container, key = inside[rng.integers(len(inside))]
        if isinstance(container, dict) and rng.random() < 0.2:
            del container[key]
        else:
            container[key] = copy.deepcopy(HOSTILE[rng.integers(len(HOSTILE))])
    return value


def mutants(rng: np.random.Generator, file: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield files and whether their digest is right: bytes, headers, headers as JSON and descriptions change."""
    start = 8 + int.from_bytes(file[:8], "little")
    while True:
        yield mutated(rng, file), False
        yield sealed(mutated(rng, file)), True
        yield packed(mutated(rng, file[8:start]), file[start:]), True
        header, data = unpacked(file)
        yield packed(json.dumps(changed(rng, header), separators=(",", ":")), data), True
        header, data = unpacked(file)
        description = changed(rng, json.loads(header["__metadata__"]["description"]))
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
