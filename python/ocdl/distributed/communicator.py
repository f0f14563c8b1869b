"""A communicator of mpi4py, and how long its ranks wait for each other."""

from __future__ import annotations

from typing import Any

from ocdl.base import validation

__all__ = ["Communicator"]

DEFAULT_TIMEOUT = 600.0  # seconds
REQUIRED_METHODS = ("Idup", "Iallgather", "Iallgatherv", "Ialltoallv", "Isend", "Iprobe")


class Communicator:
    """A communicator of mpi4py with a time limit, for ``ocdl.train(..., communicator=...)``.

    `train` also accepts a communicator of mpi4py itself, with the default limit.

    Parameters
    ----------
    mpi : mpi4py.MPI.Intracomm
        For example ``MPI.COMM_WORLD``.
    timeout : float
        Seconds that a rank waits for the others before it raises a TimeoutError that names the missing ones. In every
        evaluation all ranks wait for the slowest, so the limit must be longer than the longest evaluation.

    Attributes
    ----------
    mpi : mpi4py.MPI.Intracomm
    timeout : float
    rank, size : int
        Which of the ranks this is, and how many there are.

    Raises
    ------
    TypeError
        If `mpi` is no communicator of mpi4py.
    ValueError
        If `timeout` is not positive.

    Examples
    --------
    >>> from mpi4py import MPI  # doctest: +SKIP
    >>> comm = ocdl.distributed.Communicator(MPI.COMM_WORLD, timeout=60)  # doctest: +SKIP
    >>> comm.rank, comm.size, comm.timeout  # doctest: +SKIP
    (0, 1, 60.0)
    >>> ocdl.train(net, u, X, y, communicator=comm)  # doctest: +SKIP
    """

    def __init__(self, mpi: Any, *, timeout: float = DEFAULT_TIMEOUT) -> None:
        missing = [name for name in REQUIRED_METHODS if not hasattr(mpi, name)]
        if missing or not isinstance(getattr(mpi, "size", None), int):
            raise TypeError(
                "communicator must be one of mpi4py, such as MPI.COMM_WORLD, or an ocdl.distributed.Communicator, got "
                f"{type(mpi).__name__}"
            )
        self.mpi, self.timeout = mpi, validation.positive(timeout, "timeout")
        self.rank: int = mpi.rank
        self.size: int = mpi.size

    def __repr__(self) -> str:
        return f"<Communicator: rank {self.rank} of {self.size}, timeout {self.timeout:g} s>"


def as_communicator(given: Any) -> Communicator:
    """Return a communicator of mpi4py as a `Communicator`."""
    return given if isinstance(given, Communicator) else Communicator(given)
