"""One training over many ranks, on MPI: the same bits for any number of them.

``ocdl.train(..., communicator=MPI.COMM_WORLD)`` is called on every rank with that rank's rows; `my_rows` says which
these are.
"""

from ocdl.distributed.communicator import Communicator
from ocdl.distributed.meetings import RankError
from ocdl.distributed.shares import my_rows

__all__ = ["Communicator", "RankError", "my_rows"]
