"""ocdl's own number of threads."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ocdl import _core
from ocdl.base import validation

__all__ = ["get_num_threads", "set_num_threads"]

_chosen = threading.Event()  # by set_num_threads
_here = threading.local()


def set_num_threads(k: int) -> None:
    """Let ocdl use at most `k` threads.

    Samples are cut into blocks by the size of the problem alone, and J(u) and its gradient are the sums over the blocks
    in their order. So no bit of a result depends on `k`, nor on how many of the `k` threads an evaluation takes: as
    many as pay. No other library is affected. A forked child stays at one thread, whatever is set there, because
    OpenMP's threads do not survive a fork.

    Parameters
    ----------
    k : int
        At least 1.

    Raises
    ------
    TypeError, ValueError
        If `k` is no whole number, or below 1.

    Examples
    --------
    >>> import ocdl
    >>> before = ocdl.get_num_threads()
    >>> ocdl.set_num_threads(1)
    >>> ocdl.get_num_threads()
    1
    >>> ocdl.set_num_threads(before)
    """
    name = f"set_num_threads({validation.written(k)}): the number of threads"
    _core.set_num_threads(validation.integer(k, name, least=1))
    _chosen.set()


def get_num_threads() -> int:
    """Return how many threads ocdl may use: what was set, else OpenMP's limit (OMP_NUM_THREADS, else the cores).

    A core that was built without OpenMP, as `build_info` says, computes with one thread whatever is set.

    Returns
    -------
    int

    Examples
    --------
    >>> import ocdl
    >>> ocdl.get_num_threads() >= 1
    True
    """
    return _core.get_num_threads()


def are_threads_chosen() -> bool:
    """Whether somebody has said how many threads there are: by a call, for a while, or by OMP_NUM_THREADS."""
    return _chosen.is_set() or getattr(_here, "is_limited", False) or "OMP_NUM_THREADS" in os.environ


@contextmanager
def limited_threads(k: int | None) -> Iterator[None]:
    """Let the calling thread, and no other, use at most `k` threads for a while; None changes nothing."""
    if k is None:
        yield
        return
    _core.set_num_threads_here(k)
    _here.is_limited = True
    try:
        yield
    finally:
        _here.is_limited = False
        _core.set_num_threads_here(0)
