"""One training over many ranks, on MPI: the same bits for any number of them.

Call ``ocdl.train(..., communicator=MPI.COMM_WORLD)`` on every rank with the rows of that rank, which `local_rows`
returns.
"""

from ocdl.distributed.collectives import RankError
from ocdl.distributed.communicator import Communicator
from ocdl.distributed.row_distribution import local_rows

__all__ = ["Communicator", "RankError", "local_rows"]
