"""The number of threads that ocdl uses."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ocdl import _core
from ocdl.base import validation

__all__ = ["get_num_threads", "set_num_threads"]

_was_set = threading.Event()  # by set_num_threads
_thread_state = threading.local()


def set_num_threads(k: int) -> None:
    """Let ocdl use at most `k` threads.

    Samples are cut into blocks by the size of the problem alone, and J(u) and its gradient are sums over the blocks in
    a fixed order. So no bit of a result depends on `k`, or on how many of the `k` threads an evaluation uses: as many
    as make it faster. Other libraries are not affected. A forked child process stays at one thread, even if you set
    more there, because OpenMP's threads do not survive a fork.

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
    name = f"set_num_threads({validation.format_value(k)}): the number of threads"
    _core.set_num_threads(validation.integer(k, name, minimum=1))
    _was_set.set()


def get_num_threads() -> int:
    """Return how many threads ocdl may use: the number set, else OpenMP's limit (OMP_NUM_THREADS, else the cores).

    A core that was built without OpenMP (see `build_info`) always computes with one thread.

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


def has_thread_limit() -> bool:
    """Whether the number of threads is set: by `set_num_threads`, `limit_threads` or OMP_NUM_THREADS."""
    return _was_set.is_set() or getattr(_thread_state, "is_limited", False) or "OMP_NUM_THREADS" in os.environ


@contextmanager
def limit_threads(k: int | None) -> Iterator[None]:
    """Limit the calling thread, and no other, to `k` threads within the context; None changes nothing."""
    if k is None:
        yield
        return
    _core.set_num_threads_here(k)
    _thread_state.is_limited = True
    try:
        yield
    finally:
        _thread_state.is_limited = False
        _core.set_num_threads_here(0)
