"""ocdl's own number of threads."""

from ocdl import _core, _validation

__all__ = ["get_num_threads", "set_num_threads"]


def set_num_threads(k: int) -> None:
    """Let ocdl use at most `k` threads. Results do not depend on it, and no other library is affected."""
    _core.set_num_threads(_validation.integer(k, "k", least=1))


def get_num_threads() -> int:
    """Return how many threads ocdl may use: what was set, else OpenMP's limit (OMP_NUM_THREADS, else the cores)."""
    return _core.get_num_threads()
