"""An encoding as a dict for JSON; reading is strict, because the file may be from an untrusted source."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.storage.container import require_keys
from ocdl.tables.categories import TargetMeans
from ocdl.tables.columns import CYCLES, DATES, KINDS, Feature
from ocdl.tables.encoding import Encoding, Target
from ocdl.tables.frame import column_number

FIELDS = (
    *("width", "names", "positions", "kinds", "categories", "n_means", "formats", "cycles", "missing", "indicators"),
    *("fill", "mean", "scale", "target"),
)
MAX_COLUMNS = 2**31
MAX_MISSING = 50  # texts of a column that count as missing cells
MAX_VALUES_OF_ALL = 100_000  # one-hot encoded, of all columns together
WORD = 8  # bytes: files hold no smaller numbers
Arrays = dict[str, NDArray[Any]]


def to_spec(encoding: Encoding) -> dict[str, Any]:
    """Return an encoding for JSON: properties of some features by name, the parameters of the encoders as lists.

    It holds the number of categories of each feature; `to_arrays` returns their texts.
    """
    features, target, imputer, scaler = encoding.features, encoding.target, encoding.imputer, encoding.scaler
    return {
        "width": encoding.width,
        "names": encoding.feature_names,
        "positions": [feature.position for feature in features],
        "kinds": {feature.name: feature.kind for feature in features if feature.kind != KINDS[0]},
        "categories": {
            feature.name: len(encoding.means[feature.name].lengths) if feature.n_means else len(feature.values)
            for feature in features
            if feature.is_category
        },
        "n_means": {feature.name: feature.n_means for feature in features if feature.n_means},
        "formats": {feature.name: feature.format for feature in features if feature.kind == "date"},
        "cycles": {feature.name: list(feature.cycles) for feature in features if feature.cycles},
        "missing": {feature.name: list(feature.missing) for feature in features if feature.missing},
        "indicators": [feature.name for feature in features if feature.has_indicator],
        "fill": None if imputer is None else imputer.statistics_.tolist(),
        "mean": None if scaler is None else scaler.mean_.tolist(),
        "scale": None if scaler is None else scaler.scale_.tolist(),
        "target": None if target is None else {"name": target.name, "position": target.position},
    }


def to_arrays(encoding: Encoding) -> Arrays:
    """Return the categories: all letters in UTF-8, the number of bytes of each text, and the target means."""
    categories = [feature for feature in encoding.features if feature.is_category]
    if not categories:
        return {}
    letters, lengths, means = [], [], [np.empty(0)]
    for feature in categories:
        if feature.n_means:
            target_means = encoding.means[feature.name]
            letters.append(target_means.letters.tobytes())
            lengths += target_means.lengths.tolist()
            means.append(target_means.means.ravel())
        else:
            texts = [value.encode("utf-8", "surrogatepass") for value in feature.values]
            letters.append(b"".join(texts))
            lengths += map(len, texts)
    text = b"".join(letters)
    return {
        "letters": np.frombuffer(text + bytes(-len(text) % WORD), "<u8").astype(np.uint64),
        "lengths": np.array(lengths, np.int64),
        "means": np.concatenate(means),
    }


def from_spec(stored: object, arrays: Arrays | None = None) -> Encoding:
    """Return the encoding of `to_spec` and `to_arrays`, or raise a ValueError that says what is wrong with it."""
    spec = require_keys(stored, "the table", FIELDS)
    width = _position(spec["width"], "width", MAX_COLUMNS)
    positions = [_position(position, "positions", width) for position in _list(spec["positions"], "positions")]
    n = len(positions)
    names = [column_number(j) for j in positions] if spec["names"] is None else _texts(spec["names"], "names", n)
    if len(set(names)) < n or len(set(positions)) < n or not n:
        raise ValueError("the table needs features, each with a unique name and position")
    kinds = _by_name(spec["kinds"], "kinds", names)
    kinds = {name: _one_of(kinds.get(name, KINDS[0]), f"the kind of {name!r:.80}", KINDS) for name in names}
    texts = [name for name in names if kinds[name] in ("text", "code")]
    dates = [name for name in names if kinds[name] == "date"]
    formats = _by_name(spec["formats"], "formats", dates, are_all=True)
    cycles = _by_name(spec["cycles"], "cycles", dates)
    missing = _by_name(spec["missing"], "missing", [name for name in names if kinds[name] == KINDS[0]])
    indicators = _distinct(spec["indicators"], "indicators", MAX_COLUMNS)
    if not set(indicators) <= set(names) - set(texts):
        raise ValueError("the table's indicators must be columns of numbers or dates")
    values, means = _categories(spec, texts, arrays or {})
    features = tuple(
        Feature(
            name,
            position,
            kinds[name],
            values=values.get(name, ()),
            n_means=means[name].means.shape[1] if name in means else 0,
            format=_one_of(formats[name], "the format", DATES) if name in dates else "",
            cycles=tuple(
                _one_of(cycle, "a cycle", tuple(CYCLES)) for cycle in _distinct(cycles.get(name, []), "cycles")
            ),
            missing=tuple(_distinct(missing.get(name, []), "missing")),
            has_indicator=name in indicators,
        )
        for name, position in zip(names, positions, strict=True)
    )
    target = _target(spec["target"], width, positions)
    encoding = Encoding(features, width, spec["names"] is not None, target, means=means)
    n_numbers = sum(feature.n_numbers for feature in encoding.numbers)
    fill, mean, scale = (_numbers(spec[part], part, n_numbers) for part in ("fill", "mean", "scale"))
    if (mean is None) != (scale is None) or (scale is not None and 0 in scale):
        raise ValueError("the table's mean and scale belong together, and no scale is 0")
    return replace(encoding, imputer=_restore_imputer(fill), scaler=_restore_scaler(mean, scale))


def _categories(
    spec: dict[str, Any], names: list[str], arrays: Arrays
) -> tuple[dict[str, tuple[str, ...]], dict[str, TargetMeans]]:
    """Return the values of the columns that are one-hot encoded, and the target means of the others."""
    counts = _by_name(spec["categories"], "categories", names, are_all=True)
    n_means = _by_name(spec["n_means"], "n_means", names)
    if not names and not arrays:
        return {}, {}
    require_keys(arrays, "the table's set of arrays", ("letters", "lengths", "means"))
    letters, lengths, numbers = (arrays[name] for name in ("letters", "lengths", "means"))
    if [array.dtype.name for array in (letters, lengths, numbers)] != ["uint64", "int64", "float64"] or not (
        letters.ndim == lengths.ndim == numbers.ndim == 1
    ):
        raise ValueError("the table's letters, lengths and means must be vectors of uint64, int64 and float64")
    letters = letters.astype("<u8", copy=False).view(np.uint8)
    if len(lengths) and (lengths.min() < 0 or lengths.max() > len(letters)):
        raise ValueError("the table's lengths must be those of its texts")
    if not len(letters) - WORD < lengths.sum() <= len(letters) or not np.isfinite(numbers).all():
        raise ValueError("the table's letters must be as many as its lengths say, and its means finite")
    values: dict[str, tuple[str, ...]] = {}
    means: dict[str, TargetMeans] = {}
    text, start, mean, n_values = 0, 0, 0, 0
    for name in names:
        end = text + _position(counts[name], "categories", len(lengths) + 1)
        byte_counts = lengths[text:end]
        if end > len(lengths) or end == text:
            raise ValueError("the table's categories must be as many as its lengths")
        stop = start + int(byte_counts.sum())
        k = _position(n_means[name], "n_means", len(numbers) + 1) if name in n_means else 0
        last = mean + (len(byte_counts) + 1) * k
        if last > len(numbers) or (name in n_means and not k):
            raise ValueError("the table's means must be as many as its categories")
        target_means = TargetMeans(
            letters[start:stop], byte_counts, numbers[mean:last].reshape(-1, k or 1)[: len(byte_counts) + 1]
        )
        if k:
            for _ in target_means.iterate_texts():  # each must be UTF-8
                pass
            means[name] = target_means
        else:
            n_values += len(byte_counts)
            if n_values > MAX_VALUES_OF_ALL:
                raise ValueError(f"the table has more than {MAX_VALUES_OF_ALL} categories that are one-hot encoded")
            values[name] = tuple(target_means.texts)
            if len(set(values[name])) < len(values[name]):
                raise ValueError("the table's categories must be different texts")
        text, start, mean = end, stop, last
    if (text, mean) != (len(lengths), len(numbers)):
        raise ValueError("the table's lengths and means must be those of its categories")
    return values, means


def _restore_imputer(fill: list[float] | None) -> Any:
    """Return an imputer with these statistics, fitted to one row: the median of a number is the number."""
    from sklearn.impute import SimpleImputer

    return None if not fill else SimpleImputer(strategy="median", keep_empty_features=True).fit([fill])


def _restore_scaler(mean: list[float] | None, scale: list[float] | None) -> Any:
    from sklearn.preprocessing import StandardScaler

    if not mean:
        return None
    scaler = StandardScaler()
    scaler.mean_, scaler.scale_, scaler.n_features_in_ = np.array(mean), np.array(scale), len(mean)
    return scaler


def _target(stored: object, width: int, positions: list[int]) -> Target | None:
    if stored is None:
        return None
    target = require_keys(stored, "the target", ("name", "position"))
    if not isinstance(target["name"], (str, type(None))):
        raise ValueError("the target's name must be text")
    position = _position(target["position"], "the target's position", width)
    if position in positions:
        raise ValueError("the target is one of the features")
    return Target(target["name"], position)


def _position(value: object, name: str, end: int) -> int:
    if type(value) is not int or not 0 <= value < end:
        raise ValueError(f"the table's {name} must be whole numbers from 0 on and below {end}")
    return value


def _numbers(value: object, name: str, length: int) -> list[float] | None:
    if value is None:
        return None
    numbers = []
    for entry in _list(value, name, length):
        number = math.nan
        if isinstance(entry, (int, float)) and not isinstance(entry, bool):
            with suppress(OverflowError):  # of a whole number that no float is
                number = float(entry)
        if not math.isfinite(number):
            raise ValueError(f"the table's {name} must be finite numbers")
        numbers.append(number)
    return numbers


def _list(value: object, name: str, length: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise ValueError(f"the table's {name} must be a list" + ("" if length is None else f" of {length}"))
    return value


def _texts(value: object, name: str, length: int | None = None) -> list[str]:
    entries = _list(value, name, length)
    if not all(isinstance(text, str) for text in entries):
        raise ValueError(f"the table's {name} must be texts")
    return entries


def _distinct(value: object, name: str, maximum: int = MAX_MISSING) -> list[str]:
    texts = _texts(value, name)
    if len(texts) > maximum or len(set(texts)) < len(texts):
        raise ValueError(f"the table's {name} must be at most {maximum} different texts for each column")
    return texts


def _by_name(value: object, name: str, allowed: list[str], *, are_all: bool = False) -> dict[str, Any]:
    if not isinstance(value, dict) or not value.keys() <= set(allowed) or (are_all and len(value) < len(allowed)):
        raise ValueError(f"the table's {name} must be a dict with the names of columns")
    return value


def _one_of(value: object, name: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r:.80}")
    return str(value)
