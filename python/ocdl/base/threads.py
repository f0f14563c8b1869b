"""ocdl's own number of threads."""

from collections.abc import Iterator
from contextlib import contextmanager

from ocdl import _core
from ocdl.base import validation

__all__ = ["get_num_threads", "set_num_threads"]


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

    Examples
    --------
    >>> import ocdl
    >>> before = ocdl.get_num_threads()
    >>> ocdl.set_num_threads(1)
    >>> ocdl.get_num_threads()
    1
    >>> ocdl.set_num_threads(before)
    """
    _core.set_num_threads(validation.integer(k, f"set_num_threads({k!r:.80}): k", least=1))


def get_num_threads() -> int:
    """Return how many threads ocdl may use: what was set, else OpenMP's limit (OMP_NUM_THREADS, else the cores)."""
    return _core.get_num_threads()


@contextmanager
def limited_threads(k: int | None) -> Iterator[None]:
    """Let the calling thread, and no other, use at most `k` threads for a while; None changes nothing."""
    if k is None:
        yield
        return
    _core.set_num_threads_here(k)
    try:
        yield
    finally:
        _core.set_num_threads_here(0)
