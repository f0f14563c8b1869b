"""Model files: a network and its controls, written and read."""

from __future__ import annotations

import dataclasses
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from ocdl.base import validation
from ocdl.model.architecture import Architecture
from ocdl.model.controls import Controls
from ocdl.model.fields import FIELD_OPTIONS
from ocdl.model.tableau import Tableau
from ocdl.network import Network
from ocdl.storage.container import (
    Arrays,
    FilePath,
    Migration,
    ModelFileError,
    file_error,
    read_container,
    require_keys,
    write_container,
)

__all__ = ["ModelFileError", "SavedNetwork"]


# By version n: the function that changes a description and arrays of version n to those of version n + 1.
MIGRATIONS: dict[int, Migration] = {}
RESERVED_METADATA = frozenset({"estimator", "table"})
OTHERS = "other."  # how names of arrays begin that are no controls


class SavedNetwork(NamedTuple):
    """A network with its controls, as `load` returns them.

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
    """Write a network and its controls; `ocdl.save` documents it."""
    if reserved := sorted(RESERVED_METADATA & metadata.keys()):
        raise ValueError(
            f"metadata must not have the name {reserved[0]!r}, under which ocdl.save(path, fitted) stores what a "
            "fitted model has beside its network; give it another name"
        )
    write(path, net, u, metadata, {})


def write(path: FilePath, net: Network, u: Controls, metadata: dict[str, Any], others: Arrays) -> None:
    """Do what `save` does, with other arrays beside the controls."""
    if not isinstance(net, Network):
        raise TypeError(f"net must be a Network, got {type(net).__name__}")
    description = {"network": network_to_dict(net), "metadata": metadata, "ocdl": version("ocdl")}
    arrays = controls_to_arrays(net, u) | {f"{OTHERS}{name}": array for name, array in others.items()}
    write_container(path, "model", description, arrays)


class Stored(NamedTuple):
    """A model, the version of the format in its file, which its metadata may depend on, and the ocdl that wrote it.

    `others` are the arrays beside the controls.
    """

    model: SavedNetwork
    version: int
    written_by: str
    others: Arrays


def read(path: FilePath) -> Stored:
    """Return the network in a file of any model, and who wrote it."""
    description, arrays, version = read_container(path, "model", MIGRATIONS)
    try:
        parts = require_keys(description, "the description", ("network", "metadata", "ocdl"))
        metadata = parts["metadata"]
        if not isinstance(metadata, dict):
            raise ValueError(f"the metadata must be a dict, got {type(metadata).__name__}")
        net = network_from_dict(parts["network"])
        others = {name: arrays.pop(name) for name in [*arrays] if name.startswith(OTHERS)}
        others = {name.removeprefix(OTHERS): array for name, array in others.items()}
        model = SavedNetwork(net, controls_from_arrays(net, arrays), metadata)
        return Stored(model, version, str(parts["ocdl"]), others)
    except ValueError as error:
        raise file_error(path, f"is malformed: {error}") from error


def network_to_dict(net: Network) -> dict[str, Any]:
    """Return the arguments that make the network, for JSON: the tableau by its coefficients, the dtype by its name.

    Where layers share controls it has the set of each layer; else it has none, as files by the playground. Width and
    degree are there for the fields that have one, what concerns inputs for networks that take some.
    """
    arguments = net._arguments() | {"tableau": tableau_to_dict(net.tableau), "dtype": net.dtype.name}
    if arguments.pop("control_intervals") is not None:
        arguments["control_intervals"] = list(net.layer_sets)
    if not net.n_inputs:
        del arguments["n_inputs"], arguments["input_hold"]
    if not net.nonexpansive:
        del arguments["nonexpansive"]
    return {name: value for name, value in arguments.items() if name not in FIELD_OPTIONS or value is not None}


def network_from_dict(d: object) -> Network:
    """Return the network of `network_to_dict`, or raise a ValueError that says what is wrong; allocates no controls."""
    names = [field.name for field in dataclasses.fields(Architecture) if field.init]
    for optional in ("control_intervals", "n_inputs", "input_hold", "nonexpansive", *FIELD_OPTIONS):
        if not isinstance(d, dict) or optional not in d:
            names.remove(optional)
    arguments = require_keys(d, "the network", names)
    try:
        # A number would be a small file that needs memory for as many layers as it claims.
        if not isinstance(arguments.get("control_intervals", []), list):
            raise TypeError("control_intervals must be a list with the set of each layer")
        dtype = validation.choice(arguments["dtype"], "dtype", ("float64", "float32"))
        return Network(**(arguments | {"tableau": tableau_from_dict(arguments["tableau"]), "dtype": dtype}))
    except (TypeError, ValueError) as error:
        raise ValueError(f"it describes no valid network: {error!s:.300}") from error


def tableau_to_dict(tableau: Tableau) -> dict[str, Any]:
    """Return the name and the coefficients of a method, for JSON; second weights where it has some."""
    parts = [part for part in ("A", "b", "c", "b_embedded") if getattr(tableau, part) is not None]
    return {"name": tableau.name} | {part: getattr(tableau, part).tolist() for part in parts}


def tableau_from_dict(d: object) -> Tableau:
    """Return the method of `tableau_to_dict`; ValueError or TypeError where it is none."""
    optional = ("b_embedded",) if isinstance(d, dict) and "b_embedded" in d else ()
    tableau = require_keys(d, "the tableau", ("name", "A", "b", "c", *optional))
    A = tableau["A"]
    if not isinstance(A, list):
        raise ValueError(f"the tableau's A must be a list of lists, got {type(A).__name__}")
    # NumPy would make room for the longest text in every entry.
    vectors = [(name, tableau[name]) for name in ("b", "c", *optional)]
    for name, row in [*vectors, *((f"A[{i}]", row) for i, row in enumerate(A))]:
        if not isinstance(row, list) or not all(type(entry) in (int, float) for entry in row):
            raise ValueError(f"the tableau's {name} must be a list of numbers, got {row!r:.80}")
    return Tableau(A, tableau["b"], tableau["c"], b_embedded=tableau.get("b_embedded"), name=tableau["name"])


def controls_to_arrays(net: Network, u: Controls, name: str = "u") -> Arrays:
    """Return the parts of the controls by their names; all of them, so that h is empty for a feed-forward network."""
    net._vector(u, name)
    return u.parts()


def controls_from_arrays(net: Network, arrays: Arrays) -> Controls:
    """Return the controls of `controls_to_arrays`; nothing is allocated before all shapes fit the network."""
    names = [part.name for part in net.parts]
    require_keys(arrays, "the set of arrays", names)
    for name, _, _, shape in net.parts:
        if arrays[name].shape != shape:
            raise ValueError(f"{name} has shape {arrays[name].shape} but the network needs {shape}")
        if arrays[name].dtype != net.dtype:
            raise ValueError(f"{name} has dtype {arrays[name].dtype} but the network needs {net.dtype}")
        validation.real_array(arrays[name], name, net.dtype)
    return Controls(net._layout, np.concatenate([arrays[name].ravel() for name in names]))
