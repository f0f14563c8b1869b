"""An encoding as a record of plain lists, which JSON can hold, and read strictly: a stranger may have written it."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

from ocdl.storage.container import exact_record
from ocdl.tables.columns import DATES, KINDS, MOST_VALUES, Feature
from ocdl.tables.encoding import Encoding, Target
from ocdl.tables.sheet import counted_name

FIELDS = ("width", "names", "positions", "fill", "mean", "scale", "kinds", "values", "formats", "missing", "target")
MOST_COLUMNS = 2**31


def to_record(encoding: Encoding) -> dict[str, Any]:
    """Return an encoding for JSON: lists with an entry per feature, and what only some features have by their names."""
    features = encoding.features
    target = encoding.target
    return {
        "width": encoding.width,
        "names": encoding.feature_names,
        "positions": [feature.position for feature in features],
        "fill": [feature.fill for feature in features],
        "mean": [feature.mean for feature in features],
        "scale": [feature.scale for feature in features],
        "kinds": {feature.name: feature.kind for feature in features if feature.kind != KINDS[0]},
        "values": {feature.name: list(feature.values) for feature in features if feature.kind == "text"},
        "formats": {feature.name: feature.format for feature in features if feature.kind == "date"},
        "missing": {feature.name: list(feature.missing) for feature in features if feature.missing},
        "target": None if target is None else {"name": target.name, "position": target.position},
    }


def from_record(stored: object) -> Encoding:
    """Return the encoding of `to_record`, or raise a ValueError that says what is wrong with it."""
    record = exact_record(stored, "the table", FIELDS)
    width = _position(record["width"], "width", MOST_COLUMNS)
    positions = _list(record["positions"], "positions")
    n = len(positions)
    positions = [_position(position, "positions", width) for position in positions]
    given = record["names"]
    names = [counted_name(j) for j in positions] if given is None else _texts(given, "names", n)
    if len(set(names)) < n or len(set(positions)) < n or not n:
        raise ValueError("the table needs features, each with a name and a position of its own")
    numbers = [_list(record[part], part, n) for part in ("fill", "mean", "scale")]
    kinds = _of_some(record["kinds"], "kinds", names)
    texts, dates = ([name for name in names if kinds.get(name) == kind] for kind in ("text", "date"))
    values = _of_some(record["values"], "values", texts, all_of_them=True)
    formats = _of_some(record["formats"], "formats", dates, all_of_them=True)
    missing = _of_some(record["missing"], "missing", [name for name in names if name not in kinds])
    features = []
    for name, position, fill, mean, scale in zip(names, positions, *numbers, strict=True):
        kind = _one_of(kinds.get(name, KINDS[0]), f"the kind of {name!r:.80}", KINDS)
        features.append(
            Feature(
                name,
                position,
                kind,
                fill=None if fill is None else _number(fill, "fill"),
                mean=_number(mean, "mean"),
                scale=_number(scale, "scale", zero_allowed=False),
                values=tuple(_several(values.get(name, []), "values", least=int(kind == "text"))),
                format=_one_of(formats[name], "the format", DATES) if kind == "date" else "",
                missing=tuple(_several(missing.get(name, []), "missing")),
            )
        )
    return Encoding(tuple(features), width, given is not None, _target(record["target"], width, positions))


def _target(stored: object, width: int, positions: list[int]) -> Target | None:
    if stored is None:
        return None
    record = exact_record(stored, "the target", ("name", "position"))
    if not isinstance(record["name"], (str, type(None))):
        raise ValueError("the target's name must be text")
    position = _position(record["position"], "the target's position", width)
    if position in positions:
        raise ValueError("the target is one of the features")
    return Target(record["name"], position)


def _position(value: object, name: str, end: int) -> int:
    if type(value) is not int or not 0 <= value < end:
        raise ValueError(f"the table's {name} must be whole numbers from 0 on and below {end}")
    return value


def _number(value: object, name: str, *, zero_allowed: bool = True) -> float:
    number = math.nan
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        with suppress(OverflowError):  # of a whole number that no float is
            number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"the table's {name} must be finite numbers")
    if not (number or zero_allowed):
        raise ValueError(f"the table's {name} has a 0")
    return number


def _list(value: object, name: str, length: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise ValueError(f"the table's {name} must be a list" + ("" if length is None else f" of {length}"))
    return value


def _texts(value: object, name: str, length: int | None = None) -> list[str]:
    found = _list(value, name, length)
    if not all(isinstance(text, str) for text in found):
        raise ValueError(f"the table's {name} must be texts")
    return found


def _several(value: object, name: str, least: int = 0) -> list[str]:
    texts = _texts(value, name)
    if not least <= len(texts) <= MOST_VALUES or len(set(texts)) < len(texts):
        raise ValueError(f"the table's {name} must be {least} to {MOST_VALUES} different texts for each of its columns")
    return texts


def _of_some(value: object, name: str, allowed: list[str], *, all_of_them: bool = False) -> dict[str, Any]:
    if not isinstance(value, dict) or not value.keys() <= set(allowed) or (all_of_them and len(value) < len(allowed)):
        raise ValueError(f"the table's {name} must be a dict with the names of columns")
    return value


def _one_of(value: object, name: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r:.80}")
    return str(value)
