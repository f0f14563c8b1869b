"""`save` and `load`: one function each for networks, estimators and models for tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from ocdl.dynamics.files import is_dynamics
from ocdl.dynamics.files import restore as restore_dynamics
from ocdl.model.controls import Controls
from ocdl.network import Network, files
from ocdl.network.files import SavedNetwork
from ocdl.storage.container import FilePath, file_error

if TYPE_CHECKING:
    from ocdl.dynamics import Dynamics
    from ocdl.estimator import ODEClassifier, ODERegressor
    from ocdl.tables.model import TableModel

__all__ = ["load", "save"]

Expected = TypeVar("Expected")


@overload
def save(path: FilePath, net: Network, u: Controls, **metadata: Any) -> None: ...
@overload
def save(path: FilePath, net: ODEClassifier | ODERegressor | TableModel | Dynamics) -> None: ...
def save(path: FilePath, net: Any, u: Controls | None = None, **metadata: Any) -> None:
    """Write a network and its controls, or a fitted estimator or table model, to a file; `load` returns the same bits.

    The file is written under a temporary name, flushed to the disk and then renamed, so that `path` is always either
    the old file or the new one. If `path` is a symbolic link, the file it points to is replaced. The file holds no code
    (no pickle).

    Parameters
    ----------
    path : str or path-like
        Any name; ``.ocdl`` is customary. The format is safetensors, which other programs can read.
    net : Network, or a fitted ODEClassifier, ODERegressor, TableModel or Dynamics
    u : Controls
        The controls of the network; a fitted model has its own.
    **metadata
        Other values to store with a network: text, finite numbers, True, False, None, and lists and dicts of them.
        Tuples are read as lists.

    Raises
    ------
    OSError
        If the file cannot be written: the folder is missing or protected, the disk full. The old file is intact.
    TypeError, ValueError
        If the controls do not fit the network, if JSON cannot hold the metadata, or if one of them has the name
        ``estimator`` or ``table``, under which a fitted model is stored.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(2, 10, tableau="kutta4")
    >>> ocdl.save("model.ocdl", net, net.init(random_state=0), classes=["in", "out"], accuracy=0.99)
    >>> ocdl.load("model.ocdl").metadata
    {'classes': ['in', 'out'], 'accuracy': 0.99}
    """
    if isinstance(net, Network):
        if u is None:
            raise TypeError("u is missing: ocdl.save(path, net, u) writes a network with its controls")
        files.save(path, net, u, **metadata)
        return
    if isinstance(net, type) or not callable(getattr(net, "save", None)):
        raise TypeError(
            "net must be a Network, or a fitted ODEClassifier, ODERegressor, TableModel or Dynamics, got "
            f"{type(net).__name__}: ocdl.save takes (path, net, u) or (path, fitted)"
        )
    if u is not None or metadata:
        raise TypeError(
            f"only a Network has u and metadata; ocdl.save(path, fitted) takes a {type(net).__name__} alone"
        )
    net.save(path)


@overload
def load(path: FilePath) -> SavedNetwork | ODEClassifier | ODERegressor | TableModel | Dynamics: ...
@overload
def load(path: FilePath, expected: type[Expected]) -> Expected: ...
def load(path: FilePath, expected: type[Any] | None = None) -> Any:
    """Return what a file holds: a network with its controls, a fitted estimator, or a model for tables.

    A file holds no code: one from an untrusted source can be wrong, but it cannot run anything.

    Parameters
    ----------
    path : str or path-like
    expected : type, optional
        The type that the file must hold: `SavedNetwork`, `ODEClassifier`, `ODERegressor`, `TableModel` or `Dynamics`.
        Any other raises a ModelFileError, and type checkers infer the type of the result.

    Returns
    -------
    SavedNetwork, ODEClassifier, ODERegressor, TableModel or Dynamics
        What `save` wrote: a `SavedNetwork` is a named tuple (network, controls, metadata). ``ocdl train`` writes a
        `TableModel`.

    Raises
    ------
    ModelFileError
        If the file is damaged, truncated, foreign, written by a newer ocdl, a checkpoint, or does not hold `expected`;
        the message says which.
    OSError
        If it cannot be read; FileNotFoundError if it does not exist.

    Examples
    --------
    >>> import ocdl
    >>> net = ocdl.Network(2, 10)
    >>> u = net.init(random_state=0)
    >>> ocdl.save("model.ocdl", net, u)
    >>> network, controls, metadata = ocdl.load("model.ocdl", ocdl.SavedNetwork)
    >>> network == net, (controls - u).norm()
    (True, 0.0)
    """
    if expected is not None and not isinstance(expected, type):
        raise TypeError(f"expected must be a type, as in expected=ocdl.ODEClassifier, got {type(expected).__name__}")
    stored = files.read(path)
    result: Any = stored.model
    if is_dynamics(stored.model.metadata):
        from ocdl.dynamics.estimator import Dynamics

        result = restore_dynamics(path, stored, Dynamics)
    elif "estimator" in stored.model.metadata:
        from ocdl.tables.model import restore

        result = restore(path, stored)
    if expected is not None and not isinstance(result, expected):
        raise file_error(path, f"holds {type(result).__name__}, not {expected.__name__}")
    return result
