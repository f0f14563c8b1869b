"""Model files: a network and its controls, written and read."""

from __future__ import annotations

import dataclasses
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from ocdl.base import validation
from ocdl.model.architecture import Architecture
from ocdl.model.controls import Controls
from ocdl.model.tableau import Tableau
from ocdl.network import Network
from ocdl.storage.container import (
    Arrays,
    FilePath,
    Migration,
    ModelFileError,
    exact_record,
    read_container,
    refusal,
    write_container,
)

__all__ = ["Model", "ModelFileError", "load", "save"]


# By version n: the function that changes a description and arrays of version n to those of version n + 1.
MIGRATIONS: dict[int, Migration] = {}


class Model(NamedTuple):
    """What `load` returns.

    Attributes
    ----------
    network : Network
    controls : Controls
    metadata : dict
        What else was saved with them.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(2, 10)
    >>> ocdl.save("model.ocdl", net, net.init(random_state=0), source="spirals")
    >>> model = ocdl.load("model.ocdl")
    >>> model.network == net, model.controls.K.shape, model.metadata
    (True, (10, 2, 2), {'source': 'spirals'})
    """

    network: Network
    controls: Controls
    metadata: dict[str, Any]


def save(path: FilePath, net: Network, u: Controls, **metadata: Any) -> None:
    """Write a network and its controls to a file, from which `load` returns them to the last bit.

    The file is written under another name, flushed to the disk and then renamed: whatever happens, there is either the
    old file or the new one at `path`. Where `path` is a symbolic link, the file it points to is replaced.

    Parameters
    ----------
    path : str or path-like
        Any name; ``.ocdl`` is customary. The format is safetensors, which other programs can read.
    net : Network
    u : Controls
    **metadata
        What else to store: text, finite numbers, True, False, None, and lists and dicts of them. Tuples come back as
        lists.

    Raises
    ------
    OSError
        If the file cannot be written: the folder is missing or protected, the disk full. The old file is intact.
    TypeError, ValueError
        If the controls do not fit the network, or JSON cannot hold the metadata.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(2, 10, tableau="kutta4")
    >>> ocdl.save("model.ocdl", net, net.init(random_state=0), classes=["in", "out"], accuracy=0.99)
    >>> ocdl.load("model.ocdl").metadata
    {'classes': ['in', 'out'], 'accuracy': 0.99}
    """
    if not isinstance(net, Network):
        raise TypeError(f"net must be a Network, got {type(net).__name__}")
    description = {"network": network_to_dict(net), "metadata": metadata, "ocdl": version("ocdl")}
    write_container(path, "model", description, controls_to_arrays(net, u))


def load(path: FilePath) -> Model:
    """Read the network, the controls and the metadata that `save` wrote.

    No code in a file is ever run: a file by a stranger can be wrong, but not do harm.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    Model
        A named tuple (network, controls, metadata).

    Raises
    ------
    ModelFileError
        If the file is damaged, truncated, foreign, written by a newer ocdl, or a checkpoint; the message says which.
    OSError
        If it cannot be read; FileNotFoundError if it is not there.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(2, 10)
    >>> u = net.init(random_state=0)
    >>> ocdl.save("model.ocdl", net, u)
    >>> network, controls, metadata = ocdl.load("model.ocdl")
    >>> network == net, (controls - u).norm()
    (True, 0.0)
    """
    return read(path)[0]


class Stored(NamedTuple):
    """A model, the version of the format in its file, which its metadata may depend on, and the ocdl that wrote it."""

    model: Model
    version: int
    written_by: str


def read(path: FilePath) -> Stored:
    """Return what `load` does, and who wrote it."""
    description, arrays, version = read_container(path, "model", MIGRATIONS)
    try:
        parts = exact_record(description, "the description", ("network", "metadata", "ocdl"))
        metadata = parts["metadata"]
        if not isinstance(metadata, dict):
            raise ValueError(f"the metadata must be a dict, got {type(metadata).__name__}")
        net = network_from_dict(parts["network"])
        return Stored(Model(net, controls_from_arrays(net, arrays), metadata), version, str(parts["ocdl"]))
    except ValueError as error:
        raise refusal(path, f"is malformed: {error}") from error


def network_to_dict(net: Network) -> dict[str, Any]:
    """Return the arguments that make the network, for JSON: the tableau by its coefficients, the dtype by its name."""
    return net._arguments() | {"tableau": tableau_to_dict(net.tableau), "dtype": net.dtype.name}


def network_from_dict(d: object) -> Network:
    """Return the network of `network_to_dict`, or raise a ValueError that says what is wrong; allocates no controls."""
    arguments = exact_record(d, "the network", [field.name for field in dataclasses.fields(Architecture) if field.init])
    try:
        dtype = validation.choice(arguments["dtype"], "dtype", ("float64", "float32"))
        return Network(**(arguments | {"tableau": tableau_from_dict(arguments["tableau"]), "dtype": dtype}))
    except (TypeError, ValueError) as error:
        raise ValueError(f"it describes no valid network: {error!s:.300}") from error


def tableau_to_dict(tableau: Tableau) -> dict[str, Any]:
    """Return the name and the coefficients of a method, for JSON."""
    return {"name": tableau.name} | {part: getattr(tableau, part).tolist() for part in ("A", "b", "c")}


def tableau_from_dict(d: object) -> Tableau:
    """Return the method of `tableau_to_dict`; ValueError or TypeError where it is none."""
    tableau = exact_record(d, "the tableau", ("name", "A", "b", "c"))
    A = tableau["A"]
    if not isinstance(A, list):
        raise ValueError(f"the tableau's A must be a list of lists, got {type(A).__name__}")
    # NumPy would make room for the longest text in every entry.
    for name, row in [("b", tableau["b"]), ("c", tableau["c"]), *((f"A[{i}]", row) for i, row in enumerate(A))]:
        if not isinstance(row, list) or not all(type(entry) in (int, float) for entry in row):
            raise ValueError(f"the tableau's {name} must be a list of numbers, got {row!r:.80}")
    return Tableau(A, tableau["b"], tableau["c"], name=tableau["name"])


def controls_to_arrays(net: Network, u: Controls, name: str = "u") -> Arrays:
    """Return the parts of the controls by their names; all of them, so that h is empty for a feed-forward network."""
    net._vector(u, name)
    return u.parts()


def controls_from_arrays(net: Network, arrays: Arrays) -> Controls:
    """Return the controls of `controls_to_arrays`; nothing is allocated before all shapes fit the network."""
    names = [part.name for part in net.parts]
    exact_record(arrays, "the set of arrays", names)
    for name, _, _, shape in net.parts:
        if arrays[name].shape != shape:
            raise ValueError(f"{name} has shape {arrays[name].shape} but the network needs {shape}")
        if arrays[name].dtype != net.dtype:
            raise ValueError(f"{name} has dtype {arrays[name].dtype} but the network needs {net.dtype}")
        validation.real_array(arrays[name], name, net.dtype)
    return Controls(net._layout, np.concatenate([arrays[name].ravel() for name in names]))
