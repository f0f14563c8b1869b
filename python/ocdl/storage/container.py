"""The container of every file: one safetensors file with a description, a digest and arrays.

Its ``__metadata__`` has five texts: ``format`` is "ocdl", ``format_version`` a whole number, ``kind`` "model" or
"checkpoint", ``description`` JSON, and ``sha256`` the digest of the whole file with 64 zeros in the digest's place: no
byte can change unnoticed. A digest is no signature: an attacker can write a file with a valid digest. So all contents
are checked as well, and reading takes at most twice the size of the file and 16 MB of memory.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
import os
import re
import stat
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocdl.base import validation
from ocdl.storage.disk import open_nonblocking, replace_file
from ocdl.storage.signatures import recognise_format

FilePath = str | os.PathLike[str]
Arrays = dict[str, NDArray[Any]]

FORMAT_VERSION = 1  # the version that is written; migrations convert older ones
KINDS = {"model": "it holds a network, not a training", "checkpoint": "a training resumes from it"}
METADATA = ("format", "format_version", "kind", "description", "sha256")
DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "U64": "<u8"}
NO_DIGEST = "0" * 64
DIGEST_FIELD = '"sha256":"'  # unique in a header: quotes inside texts are escaped

# Limits on a header and its description that keep the parsed objects below 16 MB of memory.
LARGEST_HEADER = 2**20
FIRST_BYTES = 4096  # of a foreign file, to recognise its format
MAX_TOKENS = 100_000
DEEPEST_NESTING = 32
MAX_DIGITS = 1000
LARGEST_NUMBER = 10**MAX_DIGITS
TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},]', re.DOTALL)  # linear time: each character is read once


Migration = Callable[[dict[str, Any], Arrays], None]


class Contents(NamedTuple):
    """The contents of a file in the current format, and the version that the file was written in."""

    description: dict[str, Any]
    arrays: Arrays
    version: int


class ModelFileError(ValueError):
    """A file is damaged, truncated, foreign or too new, or its contents are inconsistent; the message says which.

    Examples
    --------
    >>> import ocdl
    >>> with open("no_model.ocdl", "w") as file:
    ...     _ = file.write("something else")
    >>> try:
    ...     ocdl.load("no_model.ocdl")
    ... except ocdl.ModelFileError as error:
    ...     print(error)  # doctest: +ELLIPSIS
    'no_model.ocdl' is not an ocdl file...
    """


def write_container(path: FilePath, kind: str, description: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a file of this kind atomically.

    The description must be valid JSON; messages name the key: ``metadata['accuracy'] must be
    finite, got nan``. The arrays have a type in `DTYPES` and names in ASCII.
    """
    name = os.fsdecode(path)
    kind = validation.choice(kind, "kind", KINDS)
    for key, value in description.items():
        _require_json(value, key, nesting=2)
    text = json.dumps(description, allow_nan=False)
    _parse_json(text, "the description")
    from safetensors.numpy import save as serialise

    metadata = dict(zip(METADATA, ("ocdl", str(FORMAT_VERSION), kind, text, NO_DIGEST), strict=True))
    data = memoryview(serialise({key: _to_little_endian(key, array) for key, array in arrays.items()}, metadata))
    start = 8 + int.from_bytes(data[:8], "little")
    # safetensors writes the metadata in a random order; sorting makes files with equal contents equal.
    header = json.dumps(json.loads(bytes(data[8:start])), sort_keys=True, separators=(",", ":")).encode("ascii")
    header += b" " * (-len(header) % 8)
    if len(header) > LARGEST_HEADER:
        raise ValueError(f"the description makes a header of {len(header)} bytes; {LARGEST_HEADER} are accepted")
    front = len(header).to_bytes(8, "little") + header
    offset = front.index((DIGEST_FIELD + NO_DIGEST).encode()) + len(DIGEST_FIELD)
    digest = _sha256(front, data[start:]).encode()
    replace_file(name, front[:offset] + digest + front[offset + len(NO_DIGEST) :], data[start:])


def read_container(path: FilePath, kind: str, migrations: Mapping[int, Migration] | None = None) -> Contents:
    """Return description and arrays of a file of this kind; raise a ModelFileError if the file is invalid.

    A file of an older version goes through a chain of migrations: migration n changes the description and the arrays
    of version n, in place, to those of version n + 1. No migration is needed where nothing changed.
    """
    name = os.fsdecode(path)
    kind = validation.choice(kind, "kind", KINDS)
    with open(name, "rb", opener=open_nonblocking) as file:
        try:
            data, metadata = _read_file(file)
            if metadata["kind"] != kind:
                advice = KINDS.get(metadata["kind"], f"this ocdl reads {', '.join(KINDS)}")
                raise ValueError(f"is a {metadata['kind']:.80}, not a {kind}; {advice}")
            arrays = _parse_arrays(data)
            del data
            description = _parse_json(metadata["description"], "is malformed: its description")
            if not isinstance(description, dict):
                raise ValueError(f"is malformed: its description must be a dict, got {type(description).__name__}")
            version = int(metadata["format_version"])
            migrate(description, arrays, version, migrations or {})
        except ValueError as error:
            raise file_error(path, str(error)) from error
    return Contents(description, arrays, version)


def migrate(description: dict[str, Any], arrays: Arrays, version: int, migrations: Mapping[int, Migration]) -> None:
    """Convert the contents of an older version to the current one, one version at a time."""
    try:
        for old in range(version, FORMAT_VERSION):
            if old in migrations:
                migrations[old](description, arrays)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"is malformed: it does not follow version {version} of the format: {error!s:.300}") from error


def require_keys(value: object, name: str, expected: list[str] | tuple[str, ...]) -> dict[str, Any]:
    """Return a dict, which must have exactly the expected keys."""
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be a dict, got {type(value).__name__}")
    missing = [key for key in expected if key not in value]
    if missing:
        raise ValueError(f"{name} lacks {', '.join(missing)}")
    unknown = [key for key in value if key not in expected]
    if unknown:
        raise ValueError(f"{name} has {unknown[0]!r:.80}, which is none of {', '.join(expected)}")
    return value


def file_error(path: FilePath, reason: str) -> ModelFileError:
    """Return the error for a file; the reason continues a sentence that begins with the path."""
    return ModelFileError(f"{os.fsdecode(path)!r} {reason:.600}")


def _read_file(file: BinaryIO) -> tuple[bytes, dict[str, str]]:
    """Return all bytes of a file and its metadata after checking size, format, version and digest."""
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("is not a regular file; a model cannot be read from a pipe or a device")
    size = status.st_size
    front = file.read(8)
    if len(front) < 8:
        raise ValueError(f"is truncated, or not an ocdl file: it has {len(front)} bytes")
    start = 8 + int.from_bytes(front, "little")
    if start - 8 > LARGEST_HEADER:
        guess = recognise_format(front + file.read(FIRST_BYTES))
        raise ValueError(f"is not an ocdl file{f': it looks like {guess}' if guess else ''}")
    front += file.read(start - 8)
    if len(front) < start:
        raise ValueError(f"is truncated: it has {len(front)} bytes, its header alone takes {start}")
    metadata, length = _parse_header(front[8:])
    if start + length != size:
        state = "truncated" if size < start + length else "damaged"
        raise ValueError(f"is {state}: it has {size} bytes where its header describes {start + length}")
    offset = front.find((DIGEST_FIELD + metadata["sha256"]).encode()) + len(DIGEST_FIELD)
    file.seek(0)
    data = file.read(size)
    view = memoryview(data)
    if _sha256(view[:offset], NO_DIGEST.encode(), view[offset + len(NO_DIGEST) :]) != metadata["sha256"]:
        raise ValueError("is damaged: its contents do not have the SHA-256 that it was written with")
    return data, metadata


def _parse_header(header: bytes) -> tuple[dict[str, str], int]:
    """Return the metadata, which this version can read, and the number of data bytes that the header describes."""
    try:
        tensors = _parse_json(header.decode("ascii"), "it")
    except ValueError as error:
        raise ValueError(f"is damaged, or not an ocdl file: its header is not what ocdl writes: {error}") from error
    metadata = tensors.pop("__metadata__", None) if isinstance(tensors, dict) else None
    if not isinstance(metadata, dict) or metadata.get("format") != "ocdl":
        raise ValueError("is not an ocdl file: its header does not give ocdl as its format")
    given = metadata.get("format_version")
    if not isinstance(given, str) or not re.fullmatch("[1-9][0-9]{0,8}", given):
        raise ValueError(f"is malformed: its format_version must be a whole number, got {given!r:.80}")
    if int(given) > FORMAT_VERSION:
        raise ValueError(
            f"was written by a newer ocdl: its format has version {given}, this one reads {FORMAT_VERSION}; update ocdl"
        )
    try:
        require_keys(metadata, "its metadata", METADATA)
        if not all(isinstance(text, str) for text in metadata.values()):
            raise ValueError("its metadata must be texts")
        if not re.fullmatch("[0-9a-f]{64}", metadata["sha256"]):
            raise ValueError(f"its sha256 must be 64 hexadecimal digits, got {metadata['sha256']!r:.80}")
        return metadata, max((operator.index(entry["data_offsets"][1]) for entry in tensors.values()), default=0)
    except ValueError as error:
        raise ValueError(f"is malformed: {error}") from error
    except (TypeError, LookupError) as error:
        raise ValueError("is malformed: its header has an array without data_offsets") from error


def _parse_arrays(data: bytes) -> Arrays:
    """Return copies of the arrays in the bytes of a file, in native byte order."""
    from safetensors import SafetensorError, deserialize

    try:
        entries = deserialize(data)  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise ValueError(f"is malformed: {error!s:.300}") from error
    arrays: Arrays = {}
    for name, entry in entries:
        if entry["dtype"] not in DTYPES:
            raise ValueError(f"is malformed: {name:.80} has dtype {entry['dtype']}; accepted are {', '.join(DTYPES)}")
        try:
            array = np.frombuffer(entry["data"], DTYPES[entry["dtype"]]).reshape(entry["shape"])
            arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"is malformed: {name:.80}: {error!s:.300}") from error
    return arrays


def _to_little_endian(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return an array in the byte order of safetensors; refuse unsupported types."""
    if not name.isascii() or name == "__metadata__":
        raise ValueError(f"arrays must have names in ASCII other than '__metadata__', got {name!r}")
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be an array, got {type(array).__name__}")
    dtype = array.dtype.newbyteorder("<")
    if dtype not in [np.dtype(known) for known in DTYPES.values()]:
        raise TypeError(f"{name} must have dtype float64, float32, int64 or uint64, got {array.dtype}")
    return np.asarray(array, dtype, order="C")


def _require_json(value: object, name: str, nesting: int) -> None:
    """Refuse values that JSON cannot hold or `read_container` would refuse."""
    if nesting > DEEPEST_NESTING:
        raise ValueError(f"{name} is nested more than {DEEPEST_NESTING} deep, or contains itself")
    if isinstance(value, dict):
        for key, entry in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{name} must have text as keys, got {key!r} ({type(key).__name__})")
            _require_json(entry, f"{name}[{key!r}]", nesting + 1)
    elif isinstance(value, (list, tuple)):
        for i, entry in enumerate(value):
            _require_json(entry, f"{name}[{i}]", nesting + 1)
    elif isinstance(value, float):
        validation.real(value, name)
    elif isinstance(value, int):
        if abs(value) >= LARGEST_NUMBER:
            raise ValueError(f"{name} must have at most {MAX_DIGITS} digits, got a larger number")
    elif value is not None and not isinstance(value, str):
        advice = "; .tolist() converts it" if isinstance(value, (np.ndarray, np.generic)) else ""
        accepted = "text, a number, True, False, None, or a list or dict of them"
        raise TypeError(f"{name} must be {accepted}, got {type(value).__name__}{advice}")


def _parse_json(text: str, name: str) -> Any:
    """Parse a JSON text. Tokens are counted first, which bounds memory and stack depth."""
    nesting = 0
    for count, token in enumerate(TOKEN.finditer(text)):
        mark = text[token.start()]
        nesting += (mark in "[{") - (mark in "]}")
        if nesting > DEEPEST_NESTING:
            raise ValueError(f"{name} is nested more than {DEEPEST_NESTING} deep")
        if count == MAX_TOKENS:
            raise ValueError(f"{name} has more than {MAX_TOKENS} texts, commas and brackets")
    try:
        return json.loads(
            text,
            object_pairs_hook=_build_dict,
            parse_float=_parse_finite,
            parse_constant=_parse_finite,
            parse_int=_parse_integer,
        )
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is not JSON that ocdl reads: {error}") from error


def _build_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"{key!r:.80} occurs twice")
        result[key] = value
    return result


def _parse_finite(text: str) -> float:
    if not math.isfinite(float(text)):
        raise ValueError(f"{text:.80} is not finite")
    return float(text)


def _parse_integer(text: str) -> int:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise ValueError(f"a number has more than {MAX_DIGITS} digits")
    return int(text)


def _sha256(*chunks: bytes | memoryview) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()
